//! A decider: its attribute, and the erased trait that the attribute implements.

use crate::error::BatchError;
use crate::execution::StepExecution;

/// Makes a type a decider, which selects the transition of a job after a step, flow or split.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes).
///
#[doc = batch_macros::__role_methods!(decider)]
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
/// It can also be on a [function](crate#artifact-attributes).
// Spec: ART-15, DECIDER-01, DECIDER-02
#[doc(inline)]
pub use batch_macros::decider;

/// A decider.
// Spec: DECIDER-01
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a decider",
    label = "this type has no `#[decider]` impl block"
)]
pub trait Decider: Send {
    /// `#[decide]`: the exit status, not empty. An error fails the job.
    // Spec: DECIDER-02, DEC-17
    fn decide(&mut self, steps: &StepsBefore<'_>) -> Result<String, BatchError>;
}

/// The executions of the steps before a decision, which are read from the repository only if the decider takes them.
pub struct StepsBefore<'a>(&'a dyn Fn() -> Result<Vec<StepExecution>, BatchError>);

impl<'a> StepsBefore<'a> {
    pub(crate) fn new(read: &'a dyn Fn() -> Result<Vec<StepExecution>, BatchError>) -> Self {
        Self(read)
    }

    /// Returns no executions, for a decider that is called by itself.
    pub fn none() -> Self {
        Self(&|| Ok(Vec::new()))
    }

    /// Reads them: after a step, its latest execution; after a flow, the execution of the step that ran last in it; after a split, the last
    /// one of each flow, in the order of the document. Called by generated code.
    ///
    /// # Errors
    /// When the repository fails.
    pub fn read(&self) -> Result<Vec<StepExecution>, BatchError> {
        (self.0)()
    }
}

impl std::fmt::Debug for StepsBefore<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StepsBefore")
    }
}
