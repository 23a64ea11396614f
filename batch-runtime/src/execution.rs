//! Job instances and executions, as recorded in the repository: plain data.
// Spec: OP-33, DOM-18

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::checkpoint::{CheckpointInfo, Externalizable, UserDataError};
use crate::clock::Timestamp;
pub use crate::ids::{JobExecutionId, JobInstanceId, JobName, LaunchId, StepExecutionId};
use crate::parameters::{JobParameters, ParameterValue};
use crate::status::BatchStatus;

/// One logical run of a job; owns one or more executions.
// Spec: DOM-05
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobInstance {
    /// The instance's id.
    pub id: JobInstanceId,
    /// The job's id in its Job XML.
    pub job_name: String,
    /// Digest of the identifying parameters, 32 hexadecimal digits.
    // Spec: REPO-26
    pub job_key: String,
}

/// One attempt to run a job instance.
// Spec: DOM-12
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobExecution {
    /// The execution's id.
    pub id: JobExecutionId,
    /// The instance that it belongs to.
    pub instance_id: JobInstanceId,
    /// The job's id in its Job XML.
    pub job_name: String,
    /// The time when the runtime accepted it.
    pub created: Timestamp,
    /// The start time; `None` before.
    pub started: Option<Timestamp>,
    /// The end time; `None` before.
    pub ended: Option<Timestamp>,
    /// The time of the last update of its row.
    pub last_updated: Timestamp,
    /// Batch status.
    pub status: BatchStatus,
    /// Exit status; `UNKNOWN` until it has ended.
    pub exit_status: String,
    /// The error with its causes, or empty.
    pub exit_message: String,
    /// Number of updates of the row.
    // Spec: REPO-14
    pub version: i64,
    /// The file that the job was read from.
    pub configuration_location: Option<String>,
}

impl JobExecution {
    /// Returns the unique name of the execution, `{JobId}:{InstanceId}:{ExecutionId}`.
    // Spec: ID-01
    pub fn name(&self) -> String {
        format!("{}:{}:{}", self.job_name, self.instance_id, self.id)
    }
}

/// Formats as one line.
// Spec: OP-19
impl fmt::Display for JobExecution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}, exit status {}, ",
            self.name(),
            self.status,
            self.exit_status.escape_debug()
        )?;
        write!(
            f,
            "created {}, {}",
            self.created,
            Period(self.started, self.ended)
        )
    }
}

/// Start and end of an execution, as far as known.
struct Period(Option<Timestamp>, Option<Timestamp>);

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(started) => write!(f, "started {started}, ")?,
            None => f.write_str("not started, ")?,
        }
        match self.1 {
            Some(ended) => write!(f, "ended {ended}"),
            None => f.write_str("not ended"),
        }
    }
}

/// One attempt to execute a step.
// Spec: DOM-16, DOM-18
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepExecution {
    /// The execution's id.
    pub id: StepExecutionId,
    /// The job execution that it belongs to.
    pub job_execution_id: JobExecutionId,
    /// The step's id in its Job XML.
    pub step_name: String,
    /// The start time.
    pub started: Timestamp,
    /// The end time; `None` before.
    pub ended: Option<Timestamp>,
    /// The time of the last update of its row.
    pub last_updated: Timestamp,
    /// Batch status.
    pub status: BatchStatus,
    /// Exit status; `EXECUTING` until it has ended.
    pub exit_status: String,
    /// The error with its causes, or empty.
    pub exit_message: String,
    /// The counters as of the last commit.
    pub counters: StepCounters,
    /// The persistent user data as of the last commit, as JSON; `None` if the step has not set any.
    // Spec: JAK-37
    pub user_data: Option<String>,
    /// Number of updates of the row.
    // Spec: REPO-14
    pub version: i64,
}

impl StepExecution {
    /// Returns whether it belongs to a partition: it is one, or a step in a partitioned flow. Each partition has a row in addition to the
    /// row of the partitioned step.
    // Spec: D-75
    pub fn is_of_partition(&self) -> bool {
        // No id of Job XML has this form.
        let is_numbered = |key: &str| {
            let parts = key.rsplit_once(':');
            parts.is_some_and(|(_, number)| number.parse::<u32>().is_ok())
        };
        self.step_name.split('/').any(is_numbered)
    }

    /// Returns the job that the step has run, if it has; see [`NestedJob`].
    // Spec: NEST-04
    pub fn nested_job(&self) -> Option<NestedJob> {
        // Most steps have user data of another type.
        self.persistent_user_data().ok().flatten()
    }

    /// Returns the persistent user data that the step has set, as of the last commit.
    ///
    /// # Errors
    /// When the stored data is of another type.
    // Spec: JAK-37
    pub fn persistent_user_data<P: Externalizable>(&self) -> Result<Option<P>, UserDataError> {
        let Some(stored) = &self.user_data else {
            return Ok(None);
        };
        let decoded = CheckpointInfo::from_json(stored.clone()).decode();
        decoded.map(Some).map_err(|_| UserDataError::of_json::<P>(stored))
    }
}

/// The job that a step has run, which `runJob` of `batch-items` stores as the persistent user data of the step.
// Spec: NEST-04
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NestedJob {
    /// The id of the job.
    pub nested_job: String,
    /// Its latest execution.
    pub execution: JobExecutionId,
}

/// The step of the outer job that runs a nested job, as identifying parameters of the nested job name it. `runJob` of `batch-items` sets
/// them.
// Spec: NEST-01
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OuterStep {
    /// The instance of the outer job.
    pub instance: JobInstanceId,
    /// The name of the step in the repository: `load`, and `load:1` for its first partition.
    pub step: String,
}

impl OuterStep {
    /// The parameter with the instance.
    pub const INSTANCE: &str = "parent.instance";
    /// The parameter with the step.
    pub const STEP: &str = "parent.step";

    /// Returns the step that the parameters of a job name; `None` if it is not a nested job.
    pub fn of(parameters: &JobParameters) -> Option<Self> {
        let of_name = |name| parameters.iter().find(|(other, _)| *other == name);
        match (&of_name(Self::INSTANCE)?.1.value, &of_name(Self::STEP)?.1.value) {
            (ParameterValue::Long(instance), ParameterValue::String(step)) => Some(Self {
                instance: JobInstanceId(*instance),
                step: step.clone(),
            }),
            _ => None,
        }
    }

    /// Returns the parameters that name it.
    pub fn to_parameters(&self) -> JobParameters {
        JobParameters::new()
            .with_parameter(Self::INSTANCE, ParameterValue::Long(self.instance.0), true)
            .with(Self::STEP, &self.step)
    }
}

/// Formats as one line.
// Spec: OP-20
impl fmt::Display for StepExecution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = self.counters;
        write!(
            f,
            "{} {}, exit status {}, ",
            self.step_name,
            self.status,
            self.exit_status.escape_debug()
        )?;
        write!(f, "{}, ", Period(Some(self.started), self.ended))?;
        write!(
            f,
            "read {}, written {}, filtered {}, commits {}, ",
            c.reads, c.writes, c.filters, c.commits
        )?;
        write!(f, "rollbacks {}, read skips {}, ", c.rollbacks, c.read_skips)?;
        write!(
            f,
            "process skips {}, write skips {}",
            c.process_skips, c.write_skips
        )
    }
}

/// The eight counters of a step execution. Except for `rollbacks`, they count committed work.
// Spec: REPO-55 to REPO-60, REPO-63
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepCounters {
    /// Items that the reader returned.
    pub reads: i64,
    /// Items written.
    pub writes: i64,
    /// Items that the processor filtered.
    pub filters: i64,
    /// Checkpoints committed, the last one included.
    pub commits: i64,
    /// Transactions rolled back.
    pub rollbacks: i64,
    /// Reads skipped.
    pub read_skips: i64,
    /// Items skipped while processing.
    pub process_skips: i64,
    /// Items skipped while writing.
    pub write_skips: i64,
}

/// The counters of a step in its job instance: of a step execution and the earlier ones since the step last completed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepTotal {
    /// The step's name in the repository.
    pub step_name: String,
    /// The sums of their counters.
    pub counters: StepCounters,
    /// The number of step executions counted.
    pub executions: u32,
}

impl StepTotal {
    /// Adds an execution of the step.
    pub(crate) fn add(&mut self, step: &StepExecution) {
        self.counters = self.counters.plus(step.counters);
        self.executions += 1;
    }

    pub(crate) fn new(step_name: &str) -> Self {
        Self {
            step_name: step_name.to_owned(),
            counters: StepCounters::default(),
            executions: 0,
        }
    }
}

/// The names of the [`Metric`]s.
// Spec: CTX-19, CTX-30
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricName {
    /// Items read.
    ReadCount,
    /// Items written.
    WriteCount,
    /// Items filtered.
    FilterCount,
    /// Checkpoints committed.
    CommitCount,
    /// Rollbacks.
    RollbackCount,
    /// Reads skipped.
    ReadSkipCount,
    /// Items skipped while processing.
    ProcessSkipCount,
    /// Items skipped while writing.
    WriteSkipCount,
    /// Milliseconds since the start of the job execution.
    ElapsedMillis,
}

/// A named number.
// Spec: CTX-40
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The counted quantity.
    pub name: MetricName,
    /// The count.
    pub value: i64,
}

impl StepCounters {
    /// Returns the number of items that were skipped while they were read, processed or written.
    pub fn skips(&self) -> i64 {
        self.read_skips
            .saturating_add(self.process_skips)
            .saturating_add(self.write_skips)
    }

    /// Returns the sums with the counters of another execution of the step.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            reads: self.reads.saturating_add(other.reads),
            writes: self.writes.saturating_add(other.writes),
            filters: self.filters.saturating_add(other.filters),
            commits: self.commits.saturating_add(other.commits),
            rollbacks: self.rollbacks.saturating_add(other.rollbacks),
            read_skips: self.read_skips.saturating_add(other.read_skips),
            process_skips: self.process_skips.saturating_add(other.process_skips),
            write_skips: self.write_skips.saturating_add(other.write_skips),
        }
    }

    /// Returns the counters as metrics.
    // Spec: CTX-30
    pub fn metrics(&self) -> Vec<Metric> {
        [
            (MetricName::ReadCount, self.reads),
            (MetricName::WriteCount, self.writes),
            (MetricName::FilterCount, self.filters),
            (MetricName::CommitCount, self.commits),
            (MetricName::RollbackCount, self.rollbacks),
            (MetricName::ReadSkipCount, self.read_skips),
            (MetricName::ProcessSkipCount, self.process_skips),
            (MetricName::WriteSkipCount, self.write_skips),
        ]
        .map(|(name, value)| Metric { name, value })
        .into()
    }
}
