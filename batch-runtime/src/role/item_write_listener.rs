//! An item write listener: its attribute, and the erased trait that the attribute implements.

use crate::artifact::ChunkItems;
use crate::artifact::listener_items::ListenerItems;
use crate::error::BatchError;

/// Makes a type an item write listener, called around each call of the writer. `ChunkItems<'_>` instead of `&[Out]` accepts
/// lists of every type.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes).
///
#[doc = batch_macros::__role_methods!(item_write_listener)]
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Sum {
///     sum: u64,
/// }
///
/// #[item_write_listener]
/// impl Sum {
///     #[after_write]
///     fn add(&mut self, squares: &[u64]) {
///         self.sum += squares.iter().sum::<u64>();
///     }
///
///     #[on_write_error]
///     fn complain(&mut self, ex: &BatchError, squares: &[u64]) {
///         eprintln!("{} squares: {ex}", squares.len());
///     }
/// }
/// ```
// Spec: LISTEN-WRITE-01 to LISTEN-WRITE-04
#[doc(inline)]
pub use batch_macros::item_write_listener;

/// An item write listener.
// Spec: LISTEN-WRITE-01
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an item write listener",
    label = "this type has no `#[item_write_listener]` impl block"
)]
pub trait ItemWriteListener: Send {
    /// `#[before_write]`.
    // Spec: LISTEN-WRITE-02
    fn before_write(&mut self, items: &ChunkItems<'_>) -> Result<(), BatchError>;

    /// `#[after_write]`.
    // Spec: LISTEN-WRITE-03
    fn after_write(&mut self, items: &ChunkItems<'_>) -> Result<(), BatchError>;

    /// `#[on_write_error]`.
    // Spec: LISTEN-WRITE-04
    fn on_write_error(&mut self, error: &BatchError, items: &ChunkItems<'_>) -> Result<(), BatchError>;

    /// Returns the item types that the methods name.
    fn items() -> ListenerItems
    where
        Self: Sized;
}
