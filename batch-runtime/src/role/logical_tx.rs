//! A logical transaction: its attribute, and the erased trait that the attribute implements.

use crate::error::BatchError;

/// Makes a type a logical transaction: the subjobs of a step, flow or split become one unit of work, which is undone as a
/// whole.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes).
///
#[doc = batch_macros::__role_methods!(logical_tx)]
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Staging;
///
/// #[logical_tx]
/// impl Staging {
///     #[logical_tx_rollback]
///     fn undo(&mut self) -> Result<(), std::io::Error> {
///         match std::fs::remove_dir_all("/tmp/staging") {
///             Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
///             other => other,
///         }
///     }
///
///     #[logical_tx_after_completion]
///     fn report(&mut self, status: &str) {
///         println!("staging: {status}");
///     }
/// }
/// ```
///
/// A rollback that fails stays pending: later executions of the instance call it again before anything else, until it
/// succeeds. So it must also succeed when there is nothing to undo: nothing was done yet, or it was called before.
// Spec: PALG-10, LTX-06 to LTX-22
#[doc(inline)]
pub use batch_macros::logical_tx;

/// A logical transaction.
// Spec: LTX-06
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a logical transaction",
    label = "this type has no `#[logical_tx]` impl block"
)]
pub trait LogicalTX: Send {
    /// `#[logical_tx_begin]`. An error rolls the logical transaction back.
    // Spec: LTX-07, LTX-13
    fn logical_tx_begin(&mut self) -> Result<(), BatchError>;

    /// `#[logical_tx_before_completion]`. An error rolls the logical transaction back.
    // Spec: LTX-08, LTX-13
    fn logical_tx_before_completion(&mut self) -> Result<(), BatchError>;

    /// `#[logical_tx_rollback]`. After an error, the rollback stays pending.
    // Spec: LTX-09, LTX-22
    fn logical_tx_rollback(&mut self) -> Result<(), BatchError>;

    /// `#[logical_tx_after_completion]`: `status` is `COMMIT` or `ROLLBACK`. An error fails the element.
    // Spec: LTX-17, LTX-18
    fn logical_tx_after_completion(&mut self, status: &str) -> Result<(), BatchError>;

    /// Returns whether there is a `#[logical_tx_rollback]` method.
    // Spec: D-48
    fn compensates() -> bool
    where
        Self: Sized;
}
