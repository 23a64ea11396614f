//! An item writer: its attribute, and the erased trait that the attribute implements.

use crate::artifact::ChunkItems;
use crate::artifact::item::ItemType;
use crate::checkpoint::CheckpointInfo;
use crate::error::BatchError;
use crate::marker::AnyDestination;
use crate::repository::ChunkTransaction;

/// Makes a type an item writer, which writes the results of a chunk step, a list at a time.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes); `buffered = false` on the impl block for one item per
/// call; and `pipelined = false` if a step with the writer must read each chunk after the commit of the one before.
///
/// `rewindable = true` on the impl block declares that the writer can be opened at any checkpoint that it has returned, not only at the
/// last one, and then removes or overwrites what it has written after it. If the reader is rewindable, too, the step may resume at an
/// earlier checkpoint after a loss of power, so its commits on SQLite do not wait for the disk, except for the last one, before
/// `#[finish]`. With checkpoint listeners or a collector, which may act on a commit, all of them wait.
///
#[doc = batch_macros::__role_methods!(item_writer)]
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Print;
///
/// // `buffered = false` would give it one item per call.
/// #[item_writer("Print", buffered = true)]
/// impl Print {
///     #[open]
///     fn open(&mut self, _checkpoint: Option<()>) {}
///
///     #[write_items]
///     fn print(&mut self, squares: &[u64]) {
///         println!("{squares:?}");
///     }
///
///     #[get_checkpoint_info]
///     fn checkpoint(&self) {}
/// }
/// ```
///
/// It can also be on a [function](crate#artifact-attributes).
// Spec: ART-15, WRITE-01 to WRITE-09, D-10, D-96, D-103
#[doc(inline)]
pub use batch_macros::item_writer;

/// A writer's items, and how it takes them.
#[derive(Clone, Copy, Debug)]
pub struct WriterInfo {
    /// The type of the items.
    pub items: ItemType,
    /// `buffered = true`: chunks; `false`: one item per call.
    // Spec: WRITE-02
    pub buffered: bool,
    /// True if `#[write_items]` takes a transaction, and so writes exactly once.
    pub transactional: bool,
    /// True if it takes the transaction of a destination.
    // Spec: MARK-03
    pub has_destination: bool,
    /// True if it may have the destination of a writer inside it, or none.
    pub may_have_destination: bool,
    /// True if the checkpoint is not `()`: the writer can continue where its output ended.
    pub keeps_position: bool,
    /// `rewindable = true`: it can be opened at any of its checkpoints.
    // Spec: D-103
    pub rewindable: bool,
    /// True if it has `#[finish]` or `#[close]`.
    // Spec: D-107
    pub has_end_methods: bool,
}

/// An item writer.
// Spec: WRITE-01
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an item writer",
    label = "this type has no `#[item_writer]` impl block"
)]
pub trait ItemWriter: Send {
    /// `#[destination]`: called once, before `open`.
    // Spec: MARK-03
    fn destination(&mut self) -> Result<Option<AnyDestination>, BatchError>;

    /// `#[open]`. Fails as well if the checkpoint does not decode.
    // Spec: WRITE-05
    fn open(&mut self, checkpoint: Option<&CheckpointInfo>) -> Result<(), BatchError>;

    /// `#[finish]`: completes the output. Called after the last checkpoint has committed, before `close`.
    // Spec: D-96
    fn finish(&mut self) -> Result<(), BatchError>;

    /// `#[close]`.
    // Spec: WRITE-06
    fn close(&mut self) -> Result<(), BatchError>;

    /// `#[get_checkpoint_info]`. Fails as well if the checkpoint does not encode.
    // Spec: WRITE-08
    fn checkpoint_info(&mut self) -> Result<CheckpointInfo, BatchError>;

    /// `#[write_items]`: never called with an empty list.
    // Spec: WRITE-07
    fn write(&mut self, items: &ChunkItems<'_>, tx: &mut ChunkTransaction) -> Result<(), BatchError>;

    /// Returns the type of the items, and how they are written.
    fn info() -> WriterInfo
    where
        Self: Sized;
}
