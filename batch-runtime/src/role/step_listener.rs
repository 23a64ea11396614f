//! A step listener: its attribute, and the erased trait that the attribute implements.

use crate::error::BatchError;

/// Makes a type a step listener, called around a step.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes).
///
#[doc = batch_macros::__role_methods!(step_listener)]
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Stopwatch {
///     #[batch_context]
///     step: StepContext,
///     begin: Option<std::time::Instant>,
/// }
///
/// #[step_listener]
/// impl Stopwatch {
///     #[before_step]
///     fn begin(&mut self) {
///         self.begin = Some(std::time::Instant::now());
///     }
///
///     #[after_step]
///     fn end(&mut self) {
///         let time = self.begin.map(|begin| begin.elapsed());
///         println!("{}: {time:?}", self.step.id());
///     }
/// }
/// ```
// Spec: LISTEN-STEP-01 to LISTEN-STEP-04
#[doc(inline)]
pub use batch_macros::step_listener;

/// A step listener.
// Spec: LISTEN-STEP-01
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a step listener",
    label = "this type has no `#[step_listener]` impl block"
)]
pub trait StepListener: Send {
    /// `#[before_step]`. An error fails the step without running it.
    // Spec: LISTEN-STEP-02
    fn before_step(&mut self) -> Result<(), BatchError>;

    /// `#[after_step]`. An error fails the step.
    // Spec: LISTEN-STEP-03
    fn after_step(&mut self) -> Result<(), BatchError>;
}
