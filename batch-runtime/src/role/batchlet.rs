//! A batchlet: its attribute, and the erased trait that the attribute implements.

use crate::error::BatchError;

/// Makes a type a batchlet, a step that does one thing. All methods take `&self`, because `#[cancel]` runs on another
/// thread while `#[process]` does.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes).
///
#[doc = batch_macros::__role_methods!(batchlet)]
///
/// ```
/// use batch_runtime::prelude::*;
///
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// #[derive(BatchArtifact)]
/// struct Download {
///     stop: AtomicBool,
/// }
///
/// #[batchlet]
/// impl Download {
///     #[process]
///     fn download(&self) -> Result<String, std::io::Error> {
///         for _part in 0..10 {
///             if self.stop.load(Ordering::Relaxed) {
///                 return Ok("INCOMPLETE".into());
///             }
///             // load the part
///         }
///         Ok("COMPLETE".into())
///     }
///
///     #[cancel]
///     fn cancel(&self) {
///         self.stop.store(true, Ordering::Relaxed);
///     }
/// }
/// ```
///
/// It can also be on a [function](crate#artifact-attributes).
// Spec: ART-15, BLET-01 to BLET-10
#[doc(inline)]
pub use batch_macros::batchlet;

/// A batchlet. All methods take `&self`, because `cancel` runs on another thread while `process` does.
// Spec: BLET-01, BLET-06
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a batchlet",
    label = "this type has no `#[batchlet]` impl block"
)]
pub trait Batchlet: Send + Sync {
    /// `#[begin_step]`.
    // Spec: BLET-02
    fn begin_step(&self) -> Result<(), BatchError>;

    /// `#[process]`: the exit status, not empty.
    // Spec: BLET-03, BLET-04
    fn process(&self) -> Result<String, BatchError>;

    /// `#[cancel]`. An error is logged.
    // Spec: BLET-06
    fn cancel(&self) -> Result<(), BatchError>;

    /// `#[end_step]`.
    // Spec: BLET-10
    fn end_step(&self) -> Result<(), BatchError>;
}
