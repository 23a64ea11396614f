//! A retry listener: its attribute, and the erased trait that the attribute implements.

use std::any::Any;

use crate::artifact::ChunkItems;
use crate::artifact::listener_items::ListenerItems;
use crate::error::BatchError;

/// Makes a type a retry listener, called when the reader, the processor or the writer is retried. `&dyn Any` instead of an item
/// type accepts every type.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes).
///
#[doc = batch_macros::__role_methods!(retry_listener)]
///
/// All but the last are called in the transaction that failed. An error that they return forces the rollback and the retry of the
/// whole chunk.
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
// Spec: LISTEN-RETRY-01 to LISTEN-RETRY-09, D-15, JAK-29
#[doc(inline)]
pub use batch_macros::retry_listener;

/// A retry listener.
// Spec: LISTEN-RETRY-01
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a retry listener",
    label = "this type has no `#[retry_listener]` impl block"
)]
pub trait RetryListener: Send {
    /// `#[on_retry_read_exception]`. After an error, the whole chunk is retried.
    // Spec: JAK-29
    fn on_retry_read_exception(&mut self, error: &BatchError) -> Result<(), BatchError>;

    /// `#[on_retry_process_exception]`. After an error, the whole chunk is retried.
    // Spec: JAK-29
    fn on_retry_process_exception(&mut self, error: &BatchError, item: &dyn Any) -> Result<(), BatchError>;

    /// `#[on_retry_exception]`. After an error, the whole chunk is retried.
    // Spec: LISTEN-RETRY-02, LISTEN-RETRY-04
    fn on_retry_exception(&mut self, error: &BatchError, items: &ChunkItems<'_>) -> Result<(), BatchError>;

    /// `#[on_retry_item]`. The skip rules apply to an error.
    // Spec: LISTEN-RETRY-06, LISTEN-RETRY-09
    fn on_retry_item(&mut self, error: &BatchError, item: &dyn Any) -> Result<(), BatchError>;

    /// Returns the item types that the methods name.
    fn items() -> ListenerItems
    where
        Self: Sized;
}
