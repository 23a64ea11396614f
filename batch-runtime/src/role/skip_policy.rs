//! A skip policy: its attribute, and the erased trait that the attribute implements. An extension of the draft.

use crate::artifact::FailedItem;
use crate::error::BatchError;

/// Makes a type a skip policy, which decides in code which errors of a chunk step are skipped, in place of
/// `skippable-exception-classes`. An extension of the draft.
///
/// The property `batch.skip.policy` of the step names it. The limits of skips apply as without it. The policy receives the properties of
/// the step. Takes the arguments of [every artifact attribute](crate#artifact-attributes).
///
#[doc = batch_macros::__role_methods!(skip_policy)]
///
/// ```
/// use batch_runtime::FailedItem;
/// use batch_runtime::prelude::*;
///
/// /// Skips orders below a value.
/// #[derive(BatchArtifact)]
/// struct SmallOrders {
///     #[batch_property(name = "most", value = "100")]
///     most: u64,
/// }
///
/// #[skip_policy]
/// impl SmallOrders {
///     #[should_skip]
///     fn should_skip(&mut self, failed: &FailedItem<'_>) -> bool {
///         failed.item::<u64>().is_some_and(|value| *value < self.most)
///     }
/// }
/// ```
///
/// It is asked at every error of the reader, the processor or the writer that is not a panic, also before a retry, so it may be asked more
/// than once about an item. If the writer fails with a list and does not name the item, the item is searched first. (In Jakarta Batch the
/// policy is asked about the whole list, without an item.)
///
/// It can also be on a [function](crate#artifact-attributes).
// Spec: ART-15, FAULT-04
#[doc(inline)]
pub use batch_macros::skip_policy;

/// A skip policy.
// Spec: FAULT-04
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a skip policy",
    label = "this type has no `#[skip_policy]` impl block"
)]
pub trait SkipPolicy: Send {
    /// `#[should_skip]`. An error fails the step.
    fn should_skip(&mut self, failed: &FailedItem<'_>) -> Result<bool, BatchError>;
}
