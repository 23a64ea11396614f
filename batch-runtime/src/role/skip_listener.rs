//! A skip listener: its attribute, and the erased trait that the attribute implements.

use std::any::Any;

use crate::artifact::ChunkItems;
use crate::artifact::listener_items::ListenerItems;
use crate::error::BatchError;

/// Makes a type a skip listener, called for each skipped item or error. `&dyn Any` instead of an item type accepts every type.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes).
///
#[doc = batch_macros::__role_methods!(skip_listener)]
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Rejects;
///
/// #[skip_listener]
/// impl Rejects {
///     #[on_skip_in_process]
///     fn reject(&mut self, ex: &BatchError, number: &u64) {
///         eprintln!("rejected {number}: {ex}");
///     }
/// }
/// ```
///
/// The methods run within the chunk's transaction. A write to the same SQLite database through another connection would wait for this
/// transaction: write to a file, or count and write in a later step.
// Spec: LISTEN-SKIP-01 to LISTEN-SKIP-04, D-13, D-54, JAK-28
#[doc(inline)]
pub use batch_macros::skip_listener;

/// A skip listener.
// Spec: LISTEN-SKIP-01
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a skip listener",
    label = "this type has no `#[skip_listener]` impl block"
)]
pub trait SkipListener: Send {
    /// `#[on_skip_in_read]`. An error fails the step.
    // Spec: LISTEN-SKIP-02
    fn on_skip_in_read(&mut self, error: &BatchError) -> Result<(), BatchError>;

    /// `#[on_skip_in_process]`. An error fails the step.
    // Spec: LISTEN-SKIP-03
    fn on_skip_in_process(&mut self, error: &BatchError, item: &dyn Any) -> Result<(), BatchError>;

    /// `#[on_skip_in_write]`. An error fails the step.
    // Spec: LISTEN-SKIP-04, D-13
    fn on_skip_in_write(&mut self, error: &BatchError, items: &ChunkItems<'_>) -> Result<(), BatchError>;

    /// Returns the item types that the methods name.
    fn items() -> ListenerItems
    where
        Self: Sized;
}
