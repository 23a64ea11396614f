//! Annotations: what stands around partitions and splits.

/// Makes a type a partition algorithm: says into how many partitions a step or a flow is divided, and gives each
/// its properties. Section 5.5.1 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`.
///
/// | method | required | |
/// |---|---|---|
/// | [`calculate_partitions`] | yes | the plan; called once, at the beginning |
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Months;
///
/// #[partition_algorithm]
/// impl Months {
///     #[calculate_partitions]
///     fn months(&mut self) -> PartitionPlan {
///         PartitionPlan::with_properties((1..=12).map(|month| [("month", month.to_string())]))
///     }
/// }
/// ```
///
/// Spec: PALG-01 to PALG-04, ART-01, ART-02
#[doc(inline)]
pub use batch_macros::partition_algorithm;

/// Makes a type a logical transaction: makes the subjobs of a step, flow or split one unit of work, undone as a
/// whole. Section 5.5.2 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`.
///
/// | method | required | |
/// |---|---|---|
/// | [`logical_tx_begin`] | no | before the partition algorithm and the subjobs |
/// | [`logical_tx_before_completion`] | no | when all subjobs are complete |
/// | [`logical_tx_rollback`] | no | undoes what the subjobs did; none is running any more |
/// | [`logical_tx_after_completion`] | no | with `COMMIT` or `ROLLBACK` |
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
/// A rollback that fails is owed: later executions of the instance call it again before anything else, until it
/// succeeds. So it also has to succeed when nothing is there to be undone: nothing was done yet, or it was called before.
///
/// Spec: PALG-10, LTX-06 to LTX-22, ART-01, ART-02
#[doc(inline)]
pub use batch_macros::logical_tx;

/// Makes a type a subjob collector: sends what a subjob has found to the analyzer, from the thread of the subjob.
/// Section 5.5.3 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`.
///
/// | method | required | |
/// |---|---|---|
/// | [`collect_sub_job_data`] | yes | the payload; `None` sends nothing |
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Delays {
///     #[batch_context]
///     step: Option<StepContext>,
/// }
///
/// #[sub_job_collector]
/// impl Delays {
///     #[collect_sub_job_data]
///     fn minutes(&mut self) -> Option<u64> {
///         let step = self.step.as_ref()?;
///         let minutes = step.transient_user_data::<u64>().ok()?.map(|minutes| *minutes);
///         // What was sent is not sent again.
///         step.set_transient_user_data(0_u64);
///         minutes
///     }
/// }
/// ```
///
/// Without an analyzer what it sends is dropped.
///
/// Spec: PALG-05, PALG-06, ART-01, ART-02
#[doc(inline)]
pub use batch_macros::sub_job_collector;

/// Makes a type a subjob analyzer: receives on the main thread what the collectors send, and how the subjobs end.
/// Section 5.5.4 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`.
///
/// | method | required | |
/// |---|---|---|
/// | [`analyze_collector_data`] | no | one payload |
/// | [`analyze_exit_status`] | no | the exit status of one subjob |
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Total {
///     minutes: u64,
/// }
///
/// #[sub_job_analyzer]
/// impl Total {
///     #[analyze_collector_data]
///     fn add(&mut self, minutes: u64) {
///         self.minutes += minutes;
///     }
///
///     #[analyze_exit_status]
///     fn ended(&mut self, exit_status: &str) {
///         println!("{exit_status} after {} minutes", self.minutes);
///     }
/// }
/// ```
///
/// Spec: PALG-07 to PALG-09, PALG-11, ART-01, ART-02
#[doc(inline)]
pub use batch_macros::sub_job_analyzer;

/// In a partition algorithm, required: the number of partitions and the properties of each. Section 5.5.1.1 of the
/// draft; see [`partition_algorithm`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[partition_algorithm]
/// impl Sample {
///     #[calculate_partitions]
///     fn calculate(&mut self) -> PartitionPlan {
///         PartitionPlan::new(4)
///     }
/// }
/// ```
///
/// Spec: PALG-04
#[doc(inline)]
pub use batch_macros::calculate_partitions;

/// In a logical transaction: called before the partition algorithm and the subjobs. Section 5.5.2.1 of the draft;
/// see [`logical_tx`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[logical_tx]
/// impl Sample {
///     #[logical_tx_begin]
///     fn logical_tx_begin(&mut self) {}
/// }
/// ```
///
/// Spec: LTX-07
#[doc(inline)]
pub use batch_macros::logical_tx_begin;

/// In a logical transaction: called when all subjobs are complete. Section 5.5.2.2 of the draft; see
/// [`logical_tx`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[logical_tx]
/// impl Sample {
///     #[logical_tx_before_completion]
///     fn logical_tx_before_completion(&mut self) {}
/// }
/// ```
///
/// Spec: LTX-08
#[doc(inline)]
pub use batch_macros::logical_tx_before_completion;

/// In a logical transaction: undoes what the subjobs did. None is running any more. Section 5.5.2.3 of the draft;
/// see [`logical_tx`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[logical_tx]
/// impl Sample {
///     #[logical_tx_rollback]
///     fn logical_tx_rollback(&mut self) {}
/// }
/// ```
///
/// Spec: LTX-09
#[doc(inline)]
pub use batch_macros::logical_tx_rollback;

/// In a logical transaction: told `COMMIT` or `ROLLBACK`. Section 5.5.2.4 of the draft; see [`logical_tx`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[logical_tx]
/// impl Sample {
///     #[logical_tx_after_completion]
///     fn logical_tx_after_completion(&mut self, status: &str) {}
/// }
/// ```
///
/// Spec: LTX-17, LTX-18, D-46
#[doc(inline)]
pub use batch_macros::logical_tx_after_completion;

/// In a collector, required: what to send to the analyzer; `None` sends nothing. Called after each checkpoint and
/// at the end, on the thread of the subjob. Section 5.5.3.1 of the draft; see [`sub_job_collector`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[sub_job_collector]
/// impl Sample {
///     #[collect_sub_job_data]
///     fn collect(&mut self) -> Option<u64> {
///         Some(1)
///     }
/// }
/// ```
///
/// Spec: PALG-06, D-47
#[doc(inline)]
pub use batch_macros::collect_sub_job_data;

/// In an analyzer: receives one payload, on the main thread. Section 5.5.4.1 of the draft; see
/// [`sub_job_analyzer`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[sub_job_analyzer]
/// impl Sample {
///     #[analyze_collector_data]
///     fn analyze_collector_data(&mut self, data: u64) {}
/// }
/// ```
///
/// Spec: PALG-08, PALG-11
#[doc(inline)]
pub use batch_macros::analyze_collector_data;

/// In an analyzer: told of the exit status of one subjob, on the main thread. Section 5.5.4.2 of the draft; see
/// [`sub_job_analyzer`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[sub_job_analyzer]
/// impl Sample {
///     #[analyze_exit_status]
///     fn analyze_exit_status(&mut self, exit_status: &str) {}
/// }
/// ```
///
/// Spec: PALG-09
#[doc(inline)]
pub use batch_macros::analyze_exit_status;
