//! Annotations: listeners of jobs, steps and checkpoints.

/// Makes a type a job listener: told when a job and its steps begin and end. Section 5.2.1 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`.
///
/// | method | required | |
/// |---|---|---|
/// | [`before_job`] | no | before the job begins |
/// | [`after_job`] | no | after it has ended |
/// | [`before_step`] | no | before each step |
/// | [`after_step`] | no | after each step |
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
///
/// Spec: LISTEN-JOB-01 to LISTEN-JOB-09, ART-01, ART-02
#[doc(inline)]
pub use batch_macros::job_listener;

/// Makes a type a step listener: told when its step begins and ends. Section 5.2.2 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`.
///
/// | method | required | |
/// |---|---|---|
/// | [`before_step`] | no | before the step |
/// | [`after_step`] | no | after it, also when it failed |
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
///
/// Spec: LISTEN-STEP-01 to LISTEN-STEP-04, ART-01, ART-02
#[doc(inline)]
pub use batch_macros::step_listener;

/// Makes a type a checkpoint listener: told of each checkpoint of its chunk step. Section 5.2.3 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`.
///
/// | method | required | |
/// |---|---|---|
/// | [`before_checkpoint`] | no | before the positions are asked for |
/// | [`after_checkpoint`] | no | after the transaction has been committed |
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
///
/// Spec: LISTEN-CKPT-01 to LISTEN-CKPT-03, ART-01, ART-02
#[doc(inline)]
pub use batch_macros::checkpoint_listener;

/// In a job listener: called before the job begins. Section 5.2.1.1 of the draft; see [`job_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[job_listener]
/// impl Sample {
///     #[before_job]
///     fn before_job(&mut self) {}
/// }
/// ```
///
/// Spec: LISTEN-JOB-02
#[doc(inline)]
pub use batch_macros::before_job;

/// In a job listener: called after the job has ended. Section 5.2.1.2 of the draft; see [`job_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[job_listener]
/// impl Sample {
///     #[after_job]
///     fn after_job(&mut self) {}
/// }
/// ```
///
/// Spec: LISTEN-JOB-03
#[doc(inline)]
pub use batch_macros::after_job;

/// In a step listener: called before its step begins. In a job listener: before each step. Sections 5.2.1.3,
/// 5.2.2.1 of the draft; see [`step_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[step_listener]
/// impl Sample {
///     #[before_step]
///     fn before_step(&mut self) {}
/// }
/// ```
///
/// Spec: LISTEN-JOB-04, LISTEN-STEP-02
#[doc(inline)]
pub use batch_macros::before_step;

/// In a step listener: called after its step has ended, also when it failed. In a job listener: after each step.
/// Sections 5.2.1.4, 5.2.2.2 of the draft; see [`step_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[step_listener]
/// impl Sample {
///     #[after_step]
///     fn after_step(&mut self) {}
/// }
/// ```
///
/// Spec: LISTEN-JOB-05, LISTEN-STEP-03
#[doc(inline)]
pub use batch_macros::after_step;

/// In a checkpoint listener: called before the positions of reader and writer are asked for. Section 5.2.3.1 of the
/// draft; see [`checkpoint_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[checkpoint_listener]
/// impl Sample {
///     #[before_checkpoint]
///     fn before_checkpoint(&mut self) {}
/// }
/// ```
///
/// Spec: LISTEN-CKPT-02
#[doc(inline)]
pub use batch_macros::before_checkpoint;

/// In a checkpoint listener: called after the transaction has been committed. Section 5.2.3.2 of the draft; see
/// [`checkpoint_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[checkpoint_listener]
/// impl Sample {
///     #[after_checkpoint]
///     fn after_checkpoint(&mut self) {}
/// }
/// ```
///
/// Spec: LISTEN-CKPT-03
#[doc(inline)]
pub use batch_macros::after_checkpoint;
