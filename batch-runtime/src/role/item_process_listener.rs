//! An item process listener: its attribute, and the erased trait that the attribute implements.

use std::any::Any;

use crate::artifact::listener_items::ListenerItems;
use crate::error::BatchError;

/// Makes a type an item process listener, called around each call of the processor. `&dyn Any` instead of an item type
/// accepts every type.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes).
///
#[doc = batch_macros::__role_methods!(item_process_listener)]
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Filtered {
///     count: u64,
/// }
///
/// #[item_process_listener]
/// impl Filtered {
///     #[after_process]
///     fn count(&mut self, _number: &u64, square: Option<&u64>) {
///         self.count += u64::from(square.is_none());
///     }
///
///     #[on_process_error]
///     fn complain(&mut self, ex: &BatchError, number: &u64) {
///         eprintln!("{number}: {ex}");
///     }
/// }
/// ```
// Spec: LISTEN-PROC-01 to LISTEN-PROC-05, D-54
#[doc(inline)]
pub use batch_macros::item_process_listener;

/// An item process listener.
// Spec: LISTEN-PROC-01
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an item process listener",
    label = "this type has no `#[item_process_listener]` impl block"
)]
pub trait ItemProcessListener: Send {
    /// `#[before_process]`.
    // Spec: LISTEN-PROC-02
    fn before_process(&mut self, item: &dyn Any) -> Result<(), BatchError>;

    /// `#[after_process]`; no result for a filtered item.
    // Spec: LISTEN-PROC-03, LISTEN-PROC-04
    fn after_process(&mut self, item: &dyn Any, result: Option<&dyn Any>) -> Result<(), BatchError>;

    /// `#[on_process_error]`.
    // Spec: LISTEN-PROC-05
    fn on_process_error(&mut self, error: &BatchError, item: &dyn Any) -> Result<(), BatchError>;

    /// Returns the item types that the methods name.
    fn items() -> ListenerItems
    where
        Self: Sized;
}
