//! The items of listeners: erased by the engine, typed again where a listener's method names their type.

use std::any::Any;

use super::item::ItemType;
use crate::error::BatchError;

/// The item types that a listener's methods name; `None` if they accept every type, or no method takes such an item.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListenerItems {
    /// The type of the reader's items.
    pub input: Option<ItemType>,
    /// The type of the processor's results.
    pub output: Option<ItemType>,
}

/// Requires that the methods of a listener name one item type. Called by generated code.
pub fn require_same_item<First, Other: SameItem<First>>() {}

/// Implemented by `T` for `T` only.
#[diagnostic::on_unimplemented(
    message = "the methods of this listener name different item types, `{T}` and `{Self}`",
    label = "another method takes `{T}`",
    note = "the items of a step have one type; take `&dyn Any` (or `ChunkItems<'_>` for lists) to accept every type"
)]
pub trait SameItem<T: ?Sized> {}

#[diagnostic::do_not_recommend]
impl<T: ?Sized> SameItem<T> for T {}

/// Returns the item as the type that a listener's method names. Called by generated code.
///
/// # Errors
/// If it has another type, which the loader rules out before a job starts.
// Spec: CHUNK-LOOP-17
pub fn typed_item<T: 'static>(item: &dyn Any) -> Result<&T, BatchError> {
    item.downcast_ref().ok_or_else(|| {
        BatchError::msg(format!(
            "the listener takes items of type `{}`, this item has another type",
            std::any::type_name::<T>()
        ))
    })
}

/// Returns the processor's result as the type that a listener's method names; `None` for a filtered item. Called by generated
/// code.
///
/// # Errors
/// If it has another type.
pub fn typed_result<T: 'static>(result: Option<&dyn Any>) -> Result<Option<&T>, BatchError> {
    result.map(typed_item).transpose()
}
