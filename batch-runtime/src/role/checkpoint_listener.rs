//! A checkpoint listener: its attribute, and the erased trait that the attribute implements.

use crate::error::BatchError;

/// Makes a type a checkpoint listener, called around each checkpoint of a chunk step.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes).
///
#[doc = batch_macros::__role_methods!(checkpoint_listener)]
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Heartbeat;
///
/// #[checkpoint_listener]
/// impl Heartbeat {
///     #[after_checkpoint]
///     fn beat(&mut self) -> Result<(), std::io::Error> {
///         std::fs::write("/tmp/heartbeat", "")
///     }
/// }
/// ```
// Spec: LISTEN-CKPT-01 to LISTEN-CKPT-03
#[doc(inline)]
pub use batch_macros::checkpoint_listener;

/// A checkpoint listener.
// Spec: LISTEN-CKPT-01
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a checkpoint listener",
    label = "this type has no `#[checkpoint_listener]` impl block"
)]
pub trait CheckpointListener: Send {
    /// `#[before_checkpoint]`. An error rolls back the interval and fails the step.
    // Spec: LISTEN-CKPT-02
    fn before_checkpoint(&mut self) -> Result<(), BatchError>;

    /// `#[after_checkpoint]`. An error fails the step; the commit remains.
    // Spec: LISTEN-CKPT-03
    fn after_checkpoint(&mut self) -> Result<(), BatchError>;
}
