//! The context of a step.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::element::{ElementState, ShowsStop, element_methods, ended, lock, shows_stop};
use super::records::RecordCounts;
use crate::activity::Activity;
use crate::checkpoint::{CheckpointInfo, Externalizable, UserDataError};
use crate::context_gate;
use crate::error::BatchError;
use crate::execution::{Metric, StepCounters};
use crate::ids::StepExecutionId;
use crate::observer::{Dataset, DatasetReporter};
use crate::secret::Secrets;
use crate::status::BatchStatus;

/// The context of a running step.
// Spec: CTX-07, CTX-20 to CTX-30
#[derive(Clone)]
pub struct StepContext(Arc<StepShared>);

struct StepShared {
    id: String,
    execution_id: StepExecutionId,
    properties: BTreeMap<String, String>,
    element: Mutex<ElementState>,
    state: Mutex<StepState>,
    /// The maximum size of the persistent user data, in bytes.
    data_limit: usize,
    /// The name of the step execution; `None`: the id.
    execution_name: Option<String>,
    /// The counters of the earlier executions of the step since it last completed.
    earlier: StepCounters,
    /// Counts the signs of life.
    beats: AtomicU64,
    /// The current [`Activity`].
    activity: AtomicU8,
    /// `None` if the program has no observers.
    datasets: Option<DatasetReporter>,
}

#[derive(Default)]
struct StepState {
    persistent: Option<CheckpointInfo>,
    /// The persistent user data at the beginning of the interval.
    persistent_before: Option<CheckpointInfo>,
    exception: Option<Arc<BatchError>>,
    counters: StepCounters,
    description: Description,
    /// The description at the beginning of the interval, which a rollback restores.
    before_interval: Description,
    /// The description after the items were read, restored by a rollback that keeps the items.
    before_writing: Description,
}

/// The exit description.
#[derive(Clone, Default)]
struct Description {
    /// The lines of artifacts, by topic.
    lines: BTreeMap<String, String>,
    records: RecordCounts,
}

impl StepContext {
    pub(crate) fn new(
        id: &str,
        execution_id: StepExecutionId,
        properties: BTreeMap<String, String>,
        persistent: Option<CheckpointInfo>,
    ) -> Self {
        let state = StepState {
            persistent,
            ..StepState::default()
        };
        Self(Arc::new(StepShared {
            id: id.to_owned(),
            execution_id,
            properties,
            element: Mutex::default(),
            state: Mutex::new(state),
            data_limit: usize::MAX,
            execution_name: None,
            earlier: StepCounters::default(),
            beats: AtomicU64::new(0),
            activity: AtomicU8::new(Activity::Starting as u8),
            datasets: None,
        }))
    }

    /// Sets the name of the step execution, and limits the size of the persistent user data, in bytes.
    pub(crate) fn of_execution(mut self, name: &str, data_limit: usize) -> Self {
        if let Some(new) = Arc::get_mut(&mut self.0) {
            new.execution_name = Some(name.to_owned());
            new.data_limit = data_limit;
        }
        self
    }

    /// Adds the counters of earlier executions.
    pub(crate) fn after(mut self, earlier: StepCounters) -> Self {
        if let Some(new) = Arc::get_mut(&mut self.0) {
            new.earlier = earlier;
        }
        self
    }

    /// Sets what reports datasets.
    pub(crate) fn reporting(mut self, datasets: Option<DatasetReporter>) -> Self {
        if let Some(new) = Arc::get_mut(&mut self.0) {
            new.datasets = datasets;
        }
        self
    }

    /// Reports a dataset that the step reads or writes, to the [observers](crate::observer) of the program. Call it when it is opened, not
    /// for each item. A dataset that was reported before, and any after the first 256 of the step execution, is not reported again.
    // Spec: LIN-02
    pub fn report_dataset(&self, dataset: Dataset) {
        if let Some(datasets) = &self.0.datasets {
            datasets.report(dataset);
        }
    }

    /// Returns the counters of earlier executions of the step.
    pub(crate) fn earlier_counters(&self) -> StepCounters {
        self.0.earlier
    }

    /// Returns the maximum size of a checkpoint and of the persistent user data.
    pub(crate) fn checkpoint_limit(&self) -> usize {
        self.0.data_limit
    }

    /// Reports that the step is alive. A step with the property `batch.step.heartbeat` is stopped and fails if it neither commits nor
    /// calls this for that number of seconds. Cheap enough to call for every item.
    pub fn heartbeat(&self) {
        self.0.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of signs of life.
    pub(crate) fn beats(&self) -> u64 {
        self.0.beats.load(Ordering::Relaxed)
    }

    pub(crate) fn set_activity(&self, activity: Activity) {
        self.0.activity.store(activity as u8, Ordering::Relaxed);
    }

    /// Returns a description of what the step is doing.
    pub(crate) fn activity(&self) -> String {
        let activity = Activity::describe(self.0.activity.load(Ordering::Relaxed));
        let commits = lock(&self.0.state).counters.commits;
        format!("{activity} (commits so far: {commits})")
    }

    /// Returns the step's id in its Job XML.
    // Spec: CTX-20
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Returns the id of the step execution.
    pub fn execution_id(&self) -> StepExecutionId {
        self.0.execution_id
    }

    /// Returns the name of the step execution in the repository: the step's id, and for a partition also its number, such as `load:2`.
    /// A restart keeps the name.
    // Spec: D-75
    pub fn execution_name(&self) -> &str {
        self.0.execution_name.as_deref().unwrap_or(&self.0.id)
    }

    /// Returns the step-level properties with their effective values.
    // Spec: CTX-21
    pub fn properties(&self) -> &BTreeMap<String, String> {
        &self.0.properties
    }

    /// Returns the data stored by `set_persistent_user_data`, in this or an earlier execution of the instance.
    ///
    /// # Errors
    /// When the stored data is of another type.
    // Spec: CTX-23, RESTART-14
    pub fn persistent_user_data<P: Externalizable>(&self) -> Result<Option<P>, UserDataError> {
        let _ = context_gate::wait();
        let Some(stored) = self.persistent_info() else {
            return Ok(None);
        };
        stored
            .decode()
            .map(Some)
            .map_err(|_| UserDataError::of_json::<P>(stored.as_json()))
    }

    /// Stores data that survives the execution: saved with each checkpoint, and for a batchlet when the step has ended.
    ///
    /// # Errors
    /// When serde cannot serialise it as JSON, or the JSON is larger than the property `batch.checkpoint.limit`, by default
    /// 1 MiB.
    // Spec: CTX-23, CHUNK-LOOP-11
    pub fn set_persistent_user_data<P: Externalizable>(&self, data: &P) -> Result<(), BatchError> {
        let stored = CheckpointInfo::encode(data)?;
        if let Some(problem) = stored.too_large(self.0.data_limit) {
            return Err(BatchError::msg(format!("the persistent user data {problem}")));
        }
        if context_gate::wait() {
            lock(&self.0.state).persistent = Some(stored);
        }
        Ok(())
    }

    /// Sets a line of the exit description, which tables and reports show under the counters of the step; the description of a step
    /// that fails is its error instead. A later line with the same topic, such as the name of an artifact, replaces this one.
    ///
    /// Of a chunk step, set it in `#[before_checkpoint]` or `#[get_checkpoint_info]`, from what that checkpoint commits: so it is true of
    /// the last one, and of a step that is restarted.
    // Spec: LOSS-07
    pub fn set_exit_description(&self, topic: &str, line: impl Into<String>) {
        let line = line.into();
        if context_gate::wait() {
            lock(&self.0.state)
                .description
                .lines
                .insert(topic.to_owned(), line);
        }
    }

    /// Sets the number of records that were read, including skipped ones, and how many of them were skipped, for a reader whose items are
    /// lists of records. If the writer counts its [records](Self::set_records_written) too, the exit description shows what became of them:
    /// `14 records read: 8 written, 3 filtered, 3 skipped`.
    ///
    /// Call it in `#[get_checkpoint_info]`, with numbers that the checkpoint keeps, so that they count the whole job instance. Records that
    /// were neither skipped nor written count as filtered, so this number means nothing if the processor adds records.
    // Spec: LOSS-07
    pub fn set_records_read(&self, read: u64, skipped: u64) {
        if context_gate::wait() {
            lock(&self.0.state).description.records.read = Some((read, skipped));
        }
    }

    /// Sets the number of records that were written, for a writer whose items are lists of records: see
    /// [`set_records_read`](Self::set_records_read).
    // Spec: LOSS-07
    pub fn set_records_written(&self, written: u64) {
        if context_gate::wait() {
            lock(&self.0.state).description.records.written = Some(written);
        }
    }

    /// Begins an interval of a chunk step.
    pub(crate) fn begin_interval(&self) {
        let mut state = lock(&self.0.state);
        state.before_interval = state.description.clone();
        state.before_writing = state.description.clone();
        state.persistent_before = state.persistent.clone();
    }

    /// Removes from the persistent user data what artifacts have set since the beginning of an interval whose items are read again.
    // Spec: CTX-25
    pub(crate) fn roll_back_persistent_info(&self) {
        let mut state = lock(&self.0.state);
        state.persistent = state.persistent_before.clone();
    }

    /// Keeps what the reader has set if a rollback keeps its items.
    pub(crate) fn begin_writing(&self) {
        let mut state = lock(&self.0.state);
        state.before_writing = state.description.clone();
    }

    /// Removes from the exit description what artifacts have set since the beginning of an interval that is rolled back; since the items
    /// were read, if they are kept.
    pub(crate) fn roll_back_description(&self, keeps_items: bool) {
        let mut state = lock(&self.0.state);
        state.description = match keeps_items {
            true => state.before_writing.clone(),
            false => state.before_interval.clone(),
        };
    }

    /// Returns the exit description: the counts of records, and the lines in the order of the topics, with secrets hidden.
    pub(crate) fn exit_description(&self, secrets: &Secrets) -> String {
        let items = self.counters();
        let Description { lines, records } = lock(&self.0.state).description.clone();
        let lines: Vec<_> = records
            .line(&items)
            .into_iter()
            .chain(lines.into_values())
            .collect();
        secrets.hidden(lines.join("\n"))
    }

    /// Returns the last exception that a step-level artifact threw.
    // Spec: CTX-29
    pub fn exception(&self) -> Option<Arc<BatchError>> {
        let _ = context_gate::wait();
        lock(&self.0.state).exception.clone()
    }

    /// Returns the counters of the step in its job instance, as of the last commit: of this execution and the earlier ones since
    /// the step last completed. If the reader has a checkpoint, they are the same as without an interruption. In
    /// `#[before_checkpoint]` they include the items of the checkpoint that is about to be committed.
    // Spec: CTX-30, D-95, D-98
    pub fn counters(&self) -> StepCounters {
        let _ = context_gate::wait();
        self.0.earlier.plus(self.execution_counters())
    }

    /// Returns the [`counters`](Self::counters) by name.
    // Spec: CTX-30, D-95
    pub fn metrics(&self) -> Vec<Metric> {
        self.counters().metrics()
    }

    /// Returns the counters of this step execution alone, as in its row in the repository, by name.
    // Spec: CTX-30, D-98
    pub fn execution_metrics(&self) -> Vec<Metric> {
        let _ = context_gate::wait();
        self.execution_counters().metrics()
    }

    fn execution_counters(&self) -> StepCounters {
        lock(&self.0.state).counters
    }

    /// Restores the data of the last commit after a rollback that no artifact handles.
    pub(crate) fn restore_persistent_info(&self, info: Option<CheckpointInfo>) {
        lock(&self.0.state).persistent = info;
    }

    pub(crate) fn persistent_info(&self) -> Option<CheckpointInfo> {
        lock(&self.0.state).persistent.clone()
    }

    pub(crate) fn set_exception(&self, error: Arc<BatchError>) {
        lock(&self.0.state).exception = Some(error);
    }

    pub(crate) fn set_counters(&self, counters: StepCounters) {
        lock(&self.0.state).counters = counters;
    }

    element_methods!("step");
}

impl fmt::Debug for StepContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StepContext({}:{})", self.0.id, self.0.execution_id)
    }
}

shows_stop!(StepContext);
ended!(StepContext);
