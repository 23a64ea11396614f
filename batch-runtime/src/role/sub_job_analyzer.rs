//! A subjob analyzer: its attribute, and the erased trait that the attribute implements.

use crate::artifact::item::ItemType;
use crate::artifact::payload::CollectorData;
use crate::error::BatchError;
use crate::status::BatchStatus;

/// Makes a type a subjob analyzer, which receives the payloads of the collectors and the exit statuses of the subjobs, on the
/// main thread.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes).
///
#[doc = batch_macros::__role_methods!(sub_job_analyzer)]
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Total {
///     minutes: u64,
/// }
///
/// #[sub_job_analyzer]
/// impl Total {
///     #[analyze_collector_data]
///     fn add(&mut self, minutes: u64) {
///         self.minutes += minutes;
///     }
///
///     #[analyze_exit_status]
///     fn ended(&mut self, exit_status: &str) {
///         println!("{exit_status} after {} minutes", self.minutes);
///     }
/// }
/// ```
// Spec: PALG-07 to PALG-09, PALG-11
#[doc(inline)]
pub use batch_macros::sub_job_analyzer;

/// A subjob analyzer.
// Spec: PALG-07
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a subjob analyzer",
    label = "this type has no `#[sub_job_analyzer]` impl block"
)]
pub trait SubJobAnalyzer: Send {
    /// `#[analyze_collector_data]`. An error rolls the logical transaction back.
    // Spec: PALG-08, LTX-15
    fn analyze_collector_data(&mut self, data: CollectorData) -> Result<(), BatchError>;

    /// `#[analyze_exit_status]`. An error rolls the logical transaction back.
    // Spec: PALG-09, LTX-15
    fn analyze_exit_status(&mut self, batch_status: BatchStatus, status: &str) -> Result<(), BatchError>;

    /// Returns the type of the payloads; `None` without an `#[analyze_collector_data]` method.
    // Spec: PALG-11
    fn payload_type() -> Option<ItemType>
    where
        Self: Sized;
}
