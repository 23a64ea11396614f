//! A retry listener: its attribute, and the erased trait that the attribute implements.

use std::any::Any;

use crate::artifact::listener_items::ListenerItems;
use crate::error::BatchError;

/// Makes a type a retry listener, called when the writer is retried. `&dyn Any` instead of an item type accepts every
/// type. Section 5.2.8 of the draft.
///
/// The arguments are those of [every artifact attribute](crate#artifact-attributes).
///
/// | method | required | |
/// |---|---|---|
/// | [`on_retry_exception`](macro@crate::on_retry_exception) | no | in the transaction that failed; an error forces the rollback and the retry of the whole chunk |
/// | [`on_retry_item`](macro@crate::on_retry_item) | no | right before the item is written again |
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Retries;
///
/// #[retry_listener]
/// impl Retries {
///     #[on_retry_exception]
///     fn log(&mut self, ex: &BatchError, square: &u64) {
///         eprintln!("{square}: {ex}; trying again");
///     }
/// }
/// ```
///
/// Spec: LISTEN-RETRY-01 to LISTEN-RETRY-09, D-15
#[doc(inline)]
pub use batch_macros::retry_listener;

/// A retry listener. Spec: LISTEN-RETRY-01
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a retry listener",
    label = "this type has no `#[retry_listener]` impl block"
)]
pub trait RetryListener: Send {
    /// `#[on_retry_exception]`. After an error, the whole chunk is retried. Spec: LISTEN-RETRY-02, LISTEN-RETRY-04
    fn on_retry_exception(&mut self, error: &BatchError, item: &dyn Any) -> Result<(), BatchError>;

    /// `#[on_retry_item]`. The skip rules apply to an error. Spec: LISTEN-RETRY-06, LISTEN-RETRY-09
    fn on_retry_item(&mut self, error: &BatchError, item: &dyn Any) -> Result<(), BatchError>;

    /// Returns the item types that the methods name.
    fn items() -> ListenerItems
    where
        Self: Sized;
}
