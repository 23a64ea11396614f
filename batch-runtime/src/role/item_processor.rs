//! An item processor: its attribute, and the erased trait that the attribute implements.

use crate::artifact::item::{ItemSink, ItemType};

/// Makes a type an item processor, which transforms or filters one item at a time.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes), and `pipelined = false` if the processor depends on
/// what the writer of its step writes: a step with it reads each chunk after the commit of the one before.
///
#[doc = batch_macros::__role_methods!(item_processor)]
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Squares;
///
/// #[item_processor]
/// impl Squares {
///     /// `&u64`, or `u64` by value where the item is `Clone`.
///     #[process_item]
///     fn square(&mut self, number: &u64) -> Result<Option<u64>, BatchError> {
///         let square = number.checked_mul(*number);
///         Ok(Some(square.ok_or_else(|| BatchError::msg("too large"))?))
///     }
/// }
/// ```
///
/// It can also be on a [function](crate#artifact-attributes).
// Spec: ART-15, PROC-01 to PROC-04
#[doc(inline)]
pub use batch_macros::item_processor;

/// The item types of a processor, and its errors.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorInfo {
    /// The type of its items.
    pub input: ItemType,
    /// The type of its results.
    pub output: ItemType,
    /// The path of the type of its errors, empty if it has none.
    pub error_type: &'static str,
}

/// An item processor.
// Spec: PROC-01
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an item processor",
    label = "this type has no `#[item_processor]` impl block"
)]
pub trait ItemProcessor: Send {
    /// Turns the processor into a sink for the reader's items, which calls `#[process_item]`.
    // Spec: PROC-02
    fn into_sink(self: Box<Self>) -> ItemSink;

    /// Returns the types of items, results and errors.
    fn info() -> ProcessorInfo
    where
        Self: Sized;
}
