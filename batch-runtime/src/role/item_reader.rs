//! An item reader: its attribute, and the erased trait that the attribute implements.

use crate::artifact::item::{Fill, ItemType};
use crate::artifact::{FillEnd, FillError};
use crate::checkpoint::CheckpointInfo;
use crate::error::BatchError;

/// Makes a type an item reader, the source of the items of a chunk step.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes), and `pipelined = false` if the reader depends on what
/// the writer of its step writes: a step with it reads each chunk after the commit of the one before. `rewindable = true` on the impl block
/// declares that the reader can be opened at any of its checkpoints, not only at the last one, because reading changes nothing: see
/// [`item_writer`](macro@crate::item_writer).
///
#[doc = batch_macros::__role_methods!(item_reader)]
///
/// ```
/// use batch_runtime::prelude::*;
///
/// /// Counts up; a restart resumes after the last committed number.
/// #[derive(BatchArtifact)]
/// struct Numbers {
///     #[batch_property(name = "limit", value = "10")]
///     limit: u64,
///     next: u64,
/// }
///
/// #[item_reader("Numbers")]
/// impl Numbers {
///     #[open]
///     fn open(&mut self, checkpoint: Option<u64>) {
///         self.next = checkpoint.unwrap_or(0);
///     }
///
///     #[read_item]
///     fn read(&mut self) -> Result<Option<u64>, std::io::Error> {
///         self.next += 1;
///         Ok((self.next <= self.limit).then_some(self.next))
///     }
///
///     #[get_checkpoint_info]
///     fn checkpoint(&self) -> u64 {
///         self.next.min(self.limit)
///     }
/// }
/// ```
// Spec: READ-01 to READ-11, D-103
#[doc(inline)]
pub use batch_macros::item_reader;

/// A reader's items and errors, and where it can be opened.
#[derive(Clone, Copy, Debug)]
pub struct ReaderInfo {
    /// The type of the items.
    pub items: ItemType,
    /// True if the checkpoint is not `()`: a restart continues where the last commit ended.
    pub keeps_position: bool,
    /// `rewindable = true`: it can be opened at any of its checkpoints.
    // Spec: D-103
    pub rewindable: bool,
    /// True if it has `#[close]`.
    // Spec: D-107
    pub has_end_methods: bool,
    /// True if it has `#[get_item_origin]`.
    pub has_origin: bool,
    /// The path of the type of its errors, empty if it has none.
    pub error_type: &'static str,
}

/// An item reader.
// Spec: READ-01
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an item reader",
    label = "this type has no `#[item_reader]` impl block"
)]
pub trait ItemReader: Send {
    /// `#[open]`: positions at the checkpoint, at the start for `None`. Fails as well if the checkpoint does not decode.
    // Spec: READ-02, READ-03
    fn open(&mut self, checkpoint: Option<&CheckpointInfo>) -> Result<(), BatchError>;

    /// `#[close]`.
    // Spec: READ-05
    fn close(&mut self) -> Result<(), BatchError>;

    /// `#[get_checkpoint_info]`: the current position. Fails as well if the checkpoint does not encode.
    // Spec: READ-08
    fn checkpoint_info(&mut self) -> Result<CheckpointInfo, BatchError>;

    /// `#[get_item_count]`: the number of items of the whole input, `None` if unknown. Called once, after the first `open`
    /// of a step execution. An error is logged; progress then has no bar.
    fn get_item_count(&mut self) -> Result<Option<u64>, BatchError> {
        Ok(None)
    }

    /// `#[get_item_origin]`: where the last item comes from.
    // Spec: READ-11
    fn get_item_origin(&mut self) -> Result<Option<String>, BatchError> {
        Ok(None)
    }

    /// `#[read_item]`, in a loop. Returns the first error of reader or processor.
    // Spec: READ-06
    fn fill(&mut self, fill: &mut Fill<'_>) -> Result<FillEnd, FillError>;

    /// Returns the type of the items, and where the reader can be opened.
    fn info() -> ReaderInfo
    where
        Self: Sized;
}
