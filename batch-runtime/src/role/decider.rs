//! A decider: its attribute, and the erased trait that the attribute implements.

use crate::error::BatchError;

/// Makes a type a decider, which selects the transition of a job after a step, flow or split. Section 5.6 of the draft.
///
/// The arguments are those of [every artifact attribute](crate#artifact-attributes).
///
/// | method | required | |
/// |---|---|---|
/// | [`decide`](macro@crate::decide) | yes | returns the exit status that selects the transition, not empty |
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct EnoughRows {
///     #[batch_context]
///     step: Option<StepContext>,
/// }
///
/// #[decider]
/// impl EnoughRows {
///     #[decide]
///     fn decide(&mut self) -> String {
///         match &self.step {
///             Some(step) if step.exit_status().as_deref() == Some("EMPTY") => "NOTHING TO DO".into(),
///             _ => "LOAD".into(),
///         }
///     }
/// }
/// ```
///
/// Spec: DECIDER-01, DECIDER-02
#[doc(inline)]
pub use batch_macros::decider;

/// A decider. Spec: DECIDER-01
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a decider",
    label = "this type has no `#[decider]` impl block"
)]
pub trait Decider: Send {
    /// `#[decide]`: the exit status, not empty. An error fails the job. Spec: DECIDER-02, DEC-17
    fn decide(&mut self) -> Result<String, BatchError>;
}
