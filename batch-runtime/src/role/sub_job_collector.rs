//! A subjob collector: its attribute, and the erased trait that the attribute implements.

use crate::artifact::item::ItemType;
use crate::artifact::payload::CollectorData;
use crate::error::BatchError;

/// Makes a type a subjob collector, which sends data of a subjob to the analyzer, from the thread of the subjob.
///
/// It is called with each checkpoint of a chunk step, before the commit, and its payload is committed with the checkpoint: if that is rolled
/// back, the payload is, too. It is called once more before the end of the step is recorded. What it keeps for a later call belongs into the
/// persistent user data of the step, which is committed with the checkpoint; its fields do not survive the process.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes).
///
#[doc = batch_macros::__role_methods!(sub_job_collector)]
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Delays {
///     #[batch_context]
///     step: Option<StepContext>,
/// }
///
/// #[sub_job_collector]
/// impl Delays {
///     #[collect_sub_job_data]
///     fn minutes(&mut self) -> Option<u64> {
///         let step = self.step.as_ref()?;
///         let minutes = step.transient_user_data::<u64>().ok()?.map(|minutes| *minutes);
///         // Do not send it again.
///         step.set_transient_user_data(0_u64);
///         minutes
///     }
/// }
/// ```
///
/// Without an analyzer, the payloads are dropped.
///
/// It can also be on a [function](crate#artifact-attributes).
// Spec: ART-15, PALG-05, PALG-06
#[doc(inline)]
pub use batch_macros::sub_job_collector;

/// A subjob collector.
// Spec: PALG-05
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a subjob collector",
    label = "this type has no `#[sub_job_collector]` impl block"
)]
pub trait SubJobCollector: Send {
    /// `#[collect_sub_job_data]`; `None` sends nothing. An error rolls the logical transaction back.
    // Spec: PALG-06, SUBJOB-15, LTX-14
    fn collect_sub_job_data(&mut self) -> Result<Option<CollectorData>, BatchError>;

    /// Returns the type of the payloads.
    // Spec: PALG-11
    fn payload_type() -> ItemType
    where
        Self: Sized;
}
