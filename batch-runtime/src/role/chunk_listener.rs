//! A chunk listener: its attribute, and the erased trait that the attribute implements.

use crate::error::BatchError;

/// Makes a type a chunk listener, called around each chunk: what is read, processed and written between two checkpoints.
/// The `ChunkListener` of Jakarta Batch; an extension of the draft.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes).
///
#[doc = batch_macros::__role_methods!(chunk_listener)]
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct LogRollbacks;
///
/// #[chunk_listener]
/// impl LogRollbacks {
///     #[on_chunk_error]
///     fn log(&mut self, ex: &BatchError) {
///         eprintln!("the chunk is rolled back: {ex}");
///     }
/// }
/// ```
///
/// A chunk that is rolled back and retried begins again with `#[before_chunk]`. In a pipelined step, items may have been read
/// before it. A [checkpoint listener](macro@crate::checkpoint_listener) is called after the commit, too.
// Spec: JAK-27
#[doc(inline)]
pub use batch_macros::chunk_listener;

/// A chunk listener.
// Spec: JAK-27
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a chunk listener",
    label = "this type has no `#[chunk_listener]` impl block"
)]
pub trait ChunkListener: Send {
    /// `#[before_chunk]`. An error rolls back the chunk and fails the step.
    fn before_chunk(&mut self) -> Result<(), BatchError>;

    /// `#[after_chunk]`. An error rolls back the chunk and fails the step.
    fn after_chunk(&mut self) -> Result<(), BatchError>;

    /// `#[on_chunk_error]`. An error fails the step; if the step fails already, it is logged.
    fn on_chunk_error(&mut self, error: &BatchError) -> Result<(), BatchError>;
}
