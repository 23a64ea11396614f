//! A checkpoint algorithm: its attribute, and the erased trait that the attribute implements.

use crate::error::BatchError;

/// Makes a type a checkpoint algorithm, which decides when a chunk step with `checkpoint-policy="custom"` takes a
/// checkpoint.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes).
///
#[doc = batch_macros::__role_methods!(checkpoint_algorithm)]
///
/// ```
/// use batch_runtime::prelude::*;
///
/// /// Takes a checkpoint after every tenth item.
/// #[derive(BatchArtifact)]
/// struct EveryTenth {
///     items: u32,
/// }
///
/// #[checkpoint_algorithm]
/// impl EveryTenth {
///     #[begin_checkpoint]
///     fn begin(&mut self) {
///         self.items = 0;
///     }
///
///     #[is_ready_to_checkpoint]
///     fn is_ready(&mut self) -> bool {
///         self.items += 1;
///         self.items == 10
///     }
/// }
/// ```
///
/// It can also be on a [function](crate#artifact-attributes).
// Spec: ART-15, CKALG-01 to CKALG-08
#[doc(inline)]
pub use batch_macros::checkpoint_algorithm;

/// A checkpoint algorithm.
// Spec: CKALG-01
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a checkpoint algorithm",
    label = "this type has no `#[checkpoint_algorithm]` impl block"
)]
pub trait CheckpointAlgorithm: Send {
    /// `#[get_checkpoint_timeout]`: seconds in, seconds out.
    // Spec: CKALG-02 to CKALG-04
    fn get_checkpoint_timeout(&mut self, timeout: i32) -> Result<i32, BatchError>;

    /// `#[begin_checkpoint]`.
    // Spec: CKALG-05
    fn begin_checkpoint(&mut self) -> Result<(), BatchError>;

    /// `#[is_ready_to_checkpoint]`.
    // Spec: CKALG-06
    fn is_ready_to_checkpoint(&mut self) -> Result<bool, BatchError>;

    /// `#[end_checkpoint]`.
    // Spec: CKALG-07
    fn end_checkpoint(&mut self) -> Result<(), BatchError>;
}
