//! Annotations: batchlets and deciders.

/// Makes a type a batchlet: a step that does one thing. All methods take `&self`, since `#[cancel]` runs on another
/// thread while `#[process]` does. Section 5.1.2 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`.
///
/// | method | required | |
/// |---|---|---|
/// | [`process`] | yes | the work; its result is the exit status, not empty |
/// | [`cancel`] | yes | asks the work to end; called when the job is stopped |
/// | [`begin_step`] | no | before the work |
/// | [`end_step`] | no | after it, also when it failed or was cancelled |
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
/// Spec: BLET-01 to BLET-10, ART-01, ART-02
#[doc(inline)]
pub use batch_macros::batchlet;

/// Makes a type a decider: decides how a job goes on after a step, flow or split. Section 5.6 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`.
///
/// | method | required | |
/// |---|---|---|
/// | [`decide`] | yes | the exit status that the transitions of the decision are compared with, not empty |
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
/// Spec: DECIDER-01, DECIDER-02, ART-01, ART-02
#[doc(inline)]
pub use batch_macros::decider;

/// In a batchlet: called before `#[process]`. Section 5.1.2.1 of the draft; see [`batchlet`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[batchlet]
/// impl Sample {
///     #[begin_step]
///     fn begin(&self) {}
/// #     #[process]
/// #     fn run(&self) -> String {
/// #         "DONE".into()
/// #     }
/// #     #[cancel]
/// #     fn cancel(&self) {}
/// }
/// ```
///
/// Spec: BLET-02
#[doc(inline)]
pub use batch_macros::begin_step;

/// In a batchlet, required: the work. The result is the exit status of the step, not empty. Section 5.1.2.2 of the
/// draft; see [`batchlet`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[batchlet]
/// impl Sample {
///     #[process]
///     fn run(&self) -> String {
///         "DONE".into()
///     }
/// #     #[cancel]
/// #     fn cancel(&self) {}
/// }
/// ```
///
/// Spec: BLET-03 to BLET-05
#[doc(inline)]
pub use batch_macros::process;

/// In a batchlet, required: asks `#[process]` to end; called on another thread while it runs. Section 5.1.2.3 of
/// the draft; see [`batchlet`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[batchlet]
/// impl Sample {
///     #[cancel]
///     fn cancel(&self) {}
/// #     #[process]
/// #     fn run(&self) -> String {
/// #         "DONE".into()
/// #     }
/// }
/// ```
///
/// Spec: BLET-06
#[doc(inline)]
pub use batch_macros::cancel;

/// In a batchlet: called after `#[process]`, also when it failed or was cancelled. Section 5.1.2.4 of the draft;
/// see [`batchlet`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[batchlet]
/// impl Sample {
///     #[end_step]
///     fn end(&self) {}
/// #     #[process]
/// #     fn run(&self) -> String {
/// #         "DONE".into()
/// #     }
/// #     #[cancel]
/// #     fn cancel(&self) {}
/// }
/// ```
///
/// Spec: BLET-10
#[doc(inline)]
pub use batch_macros::end_step;

/// In a decider, required: the exit status of the decision, not empty. Section 5.6.1 of the draft; see [`decider`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[decider]
/// impl Sample {
///     #[decide]
///     fn decide(&mut self) -> String {
///         "LOAD".into()
///     }
/// }
/// ```
///
/// Spec: DECIDER-02
#[doc(inline)]
pub use batch_macros::decide;
