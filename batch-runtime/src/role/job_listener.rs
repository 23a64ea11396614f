//! A job listener: its attribute, and the erased trait that the attribute implements.

use crate::error::BatchError;

/// Makes a type a job listener, called around a job and around each of its steps.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes).
///
#[doc = batch_macros::__role_methods!(job_listener)]
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Notifier {
///     #[batch_context]
///     job: JobContext,
/// }
///
/// #[job_listener]
/// impl Notifier {
///     #[after_job]
///     fn ended(&mut self) -> Result<(), std::io::Error> {
///         std::fs::write("/tmp/last-job", self.job.name())
///     }
/// }
/// ```
// Spec: LISTEN-JOB-01 to LISTEN-JOB-09
#[doc(inline)]
pub use batch_macros::job_listener;

/// A job listener.
// Spec: LISTEN-JOB-01
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job listener",
    label = "this type has no `#[job_listener]` impl block"
)]
pub trait JobListener: Send {
    /// `#[before_job]`. An error fails the job before a step runs.
    // Spec: LISTEN-JOB-02
    fn before_job(&mut self) -> Result<(), BatchError>;

    /// `#[after_job]`. An error fails the job.
    // Spec: LISTEN-JOB-03
    fn after_job(&mut self) -> Result<(), BatchError>;

    /// `#[before_step]`. An error fails the step without running it.
    // Spec: LISTEN-JOB-04
    fn before_step(&mut self) -> Result<(), BatchError>;

    /// `#[after_step]`. An error fails the step.
    // Spec: LISTEN-JOB-05
    fn after_step(&mut self) -> Result<(), BatchError>;
}
