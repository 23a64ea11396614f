//! An item read listener: its attribute, and the erased trait that the attribute implements.

use std::any::Any;

use crate::artifact::listener_items::ListenerItems;
use crate::error::BatchError;

/// Makes a type an item read listener, called around each call of the reader. `&dyn Any` instead of an item type
/// accepts every type.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes).
///
#[doc = batch_macros::__role_methods!(item_read_listener)]
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Largest {
///     largest: u64,
/// }
///
/// #[item_read_listener]
/// impl Largest {
///     #[after_read]
///     fn look(&mut self, number: &u64) {
///         self.largest = self.largest.max(*number);
///     }
///
///     #[on_read_error]
///     fn complain(&mut self, ex: &BatchError) {
///         eprintln!("after {}: {ex}", self.largest);
///     }
/// }
/// ```
// Spec: LISTEN-READ-01 to LISTEN-READ-04
#[doc(inline)]
pub use batch_macros::item_read_listener;

/// An item read listener.
// Spec: LISTEN-READ-01
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an item read listener",
    label = "this type has no `#[item_read_listener]` impl block"
)]
pub trait ItemReadListener: Send {
    /// `#[before_read]`.
    // Spec: LISTEN-READ-02
    fn before_read(&mut self) -> Result<(), BatchError>;

    /// `#[after_read]`.
    // Spec: LISTEN-READ-03
    fn after_read(&mut self, item: &dyn Any) -> Result<(), BatchError>;

    /// `#[on_read_error]`.
    // Spec: LISTEN-READ-04
    fn on_read_error(&mut self, error: &BatchError) -> Result<(), BatchError>;

    /// Returns the item types that the methods name.
    fn items() -> ListenerItems
    where
        Self: Sized;
}
