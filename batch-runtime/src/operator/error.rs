//! The errors of the job operator.

use batch_xml::JobXmlErrors;
use batch_xml::suggest::nearest;
use thiserror::Error;

use super::{ArchiveError, RemoteProblem};
use crate::dispatch::{choices, shown_name};
use crate::ids::{JobExecutionId, JobInstanceId, LaunchId};
use crate::parameters::ParameterError;
use crate::repository::RepositoryError;
use crate::secret::SecretError;

/// An error of the operator. Nothing was changed, unless the documentation of a variant mentions a change.
// Spec: OP-31
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JobOperatorError {
    /// No job of that id is on the job path, nor in the repository.
    #[error("unknown job `{}`{help}", .job.escape_debug())]
    NoSuchJob {
        /// The id that was given.
        job: String,
        /// A hint: near names, files that cannot be read.
        help: String,
    },
    /// No such job instance.
    #[error("unknown job instance {0}")]
    NoSuchJobInstance(JobInstanceId),
    /// No such job execution.
    #[error("unknown job execution {0}")]
    NoSuchJobExecution(JobExecutionId),
    /// The job cannot be started.
    #[error("cannot start job `{}`: {cause}", .job.escape_debug())]
    JobStart {
        /// The job.
        job: String,
        /// The reason.
        cause: StartError,
    },
    /// The execution cannot be restarted.
    #[error("cannot restart job execution {execution}: {cause}")]
    JobRestart {
        /// The execution.
        execution: JobExecutionId,
        /// The reason.
        cause: StartError,
    },
    /// The instance has ended COMPLETED, so there is nothing to resume.
    #[error(
        "this instance of job `{job}` is complete (execution {execution} ended COMPLETED); use other parameters for another \
         instance, or `start`, which always creates a new one"
    )]
    JobInstanceAlreadyComplete {
        /// The job.
        job: String,
        /// The execution that completed it.
        execution: JobExecutionId,
    },
    /// The instance has an execution that is running.
    #[error(
        "this instance of job `{job}` is running: execution {execution}, owner {owner}; stop it first, or wait"
    )]
    JobExecutionAlreadyRunning {
        /// The job.
        job: String,
        /// The execution.
        execution: JobExecutionId,
        /// The owner of its lease.
        owner: String,
    },
    /// The instance was abandoned, so it cannot be resumed.
    #[error(
        "this instance of job `{job}` was abandoned (execution {execution} is ABANDONED); use other parameters for another \
         instance, or `start`, which always creates a new one"
    )]
    JobInstanceAbandoned {
        /// The job.
        job: String,
        /// The execution that was abandoned.
        execution: JobExecutionId,
    },
    /// In the dialect of Jakarta Batch, only the latest execution of an instance can be restarted.
    #[error("job execution {execution} is not the latest of its instance; restart execution {latest}")]
    JobExecutionNotMostRecent {
        /// The execution to restart.
        execution: JobExecutionId,
        /// The latest execution of the instance.
        latest: JobExecutionId,
    },
    /// The execution is running, so it cannot be abandoned.
    #[error("job execution {execution} is running (owner {owner}): stop it first")]
    JobExecutionIsRunning {
        /// The execution.
        execution: JobExecutionId,
        /// The owner of its lease.
        owner: String,
    },
    /// The execution is not running, so it cannot be stopped.
    #[error("job execution {0} is not running")]
    JobExecutionNotRunning(JobExecutionId),
    /// The status of the execution and of its steps is known, so there is nothing to accept.
    #[error("job execution {0} is not UNKNOWN, and neither is one of its steps")]
    JobExecutionNotUnknown(JobExecutionId),
    /// No process runs the execution any more, and its end is not recorded. The next launch or restart takes it over.
    #[error(
        "the end of job execution {execution} is not recorded: {reason}; the next launch or restart of its instance resumes \
         from the last checkpoint"
    )]
    JobExecutionLost {
        /// The execution.
        execution: JobExecutionId,
        /// The known facts.
        reason: String,
    },
    /// No such launch.
    #[error("unknown launch {0}; `launches` lists them, ended ones for a week")]
    NoSuchLaunch(LaunchId),
    /// The launch has ended, so it cannot be stopped.
    #[error("cannot stop launch {0}: it has ended")]
    LaunchNotRunning(LaunchId),
    /// The runtime has no such notification target.
    #[error("unknown notification target `{}`; {}", .name.escape_debug(), targets(.name, .known))]
    NoSuchNotificationTarget {
        /// The name.
        name: String,
        /// The targets of the runtime.
        known: Vec<String>,
    },
    /// A notification could not be delivered.
    #[error("cannot notify `{target}`: {problem}")]
    NotificationFailed {
        /// The target.
        target: String,
        /// The error of its channel.
        problem: String,
    },
    /// A callback cannot be registered.
    #[error("cannot register the callback: {0}")]
    CallbackRegistration(String),
    /// No such callback.
    #[error("unknown callback {0}")]
    CallbackDeregistration(u64),
    /// An instance cannot be archived, exported or imported.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// No thread can be started for an asynchronous call.
    #[error("cannot start a thread for an asynchronous call: {0}")]
    Thread(std::io::Error),
    /// The repository failed.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

impl JobOperatorError {
    /// Returns whether the same call may succeed later without a change: the instance is running, another execution of its job has to end
    /// first, or the repository cannot be reached.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::JobExecutionAlreadyRunning { .. } => true,
            Self::JobStart { cause, .. } | Self::JobRestart { cause, .. } => cause.is_temporary(),
            Self::Repository(error) => error.is_temporary(),
            _ => false,
        }
    }
}

impl StartError {
    fn is_temporary(&self) -> bool {
        match self {
            Self::Running { .. } | Self::OneAtATime { .. } | Self::TakenOver | Self::Thread(_) => true,
            Self::Schema(error) | Self::Remote(RemoteProblem::Repository(error)) => error.is_temporary(),
            _ => false,
        }
    }
}

/// Returns the nearest target, or all.
fn targets(name: &str, known: &[String]) -> String {
    match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "this runtime has none".to_owned(),
        None => format!("this runtime has {}", known.join(", ")),
    }
}

/// The reason why a job cannot be started or restarted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The Job XML is not valid, or does not fit the artifacts.
    #[error("its definition is invalid\n{0}")]
    Definition(JobXmlErrors),
    /// Several files of the job path define the id.
    #[error("several files define it: {}", .0.join(", "))]
    DuplicateId(Vec<String>),
    /// Several files of the job path have the name.
    #[error("several files have this name: {}", .0.join(", "))]
    DuplicateFile(Vec<String>),
    /// `batch.dispatch` names a dispatcher that the runtime does not have.
    #[error("`batch.dispatch` names the dispatcher `{}`; {}", shown_name(.name), choices(.name, .known))]
    UnknownDispatcher {
        /// The name.
        name: String,
        /// The dispatchers of the runtime.
        known: Vec<String>,
    },
    /// A writer takes the chunk transaction, but the repository has no database.
    // Spec: MEM-03
    #[error(
        "its writer `{}` writes in the transaction of the checkpoint, but the repository `memory:` has no database; use \
         `sqlite://:memory:`, or a writer without `tx: &mut ChunkTransaction`", .writer.escape_debug()
    )]
    NoChunkTransaction {
        /// The name of the writer.
        writer: String,
    },
    /// The tables of the program cannot be created.
    // Spec: SCHEMA-01
    #[error("its tables cannot be created: {0}")]
    Schema(RepositoryError),
    /// Its partitions, or the job itself, cannot be given to workers.
    #[error(transparent)]
    Remote(RemoteProblem),
    /// A parameter that the repository cannot hold.
    #[error(transparent)]
    Parameter(ParameterError),
    /// The value of a secret parameter cannot be read.
    #[error(transparent)]
    Secret(SecretError),
    /// A parameter that nearly matches a name that the job uses, but none exactly.
    #[error("it uses no parameter `{}`; did you mean `{nearest}`?", .name.escape_debug())]
    UnknownParameter {
        /// The name that was given.
        name: String,
        /// The name that was probably meant.
        nearest: String,
    },
    /// An instance with other parameters has the same JOB_KEY.
    #[error(
        "it has the same JOB_KEY as instance {instance}, whose parameters differ; change a value, for example one with `;` or \
         `=` in it"
    )]
    SameKey {
        /// The instance.
        instance: JobInstanceId,
    },
    /// The job is not restartable, and the instance has an execution already.
    #[error("it is not restartable, and its instance already has execution {execution}")]
    NotRestartable {
        /// The execution.
        execution: JobExecutionId,
    },
    /// It is not known how an execution of the instance ended: Spring Batch could not record it, so it may have written what no checkpoint
    /// shows.
    #[error(
        "the status of execution {execution} is UNKNOWN: its end could not be recorded, and it may have written what no checkpoint shows; \
         check what it has written, then accept it with `recover --accept-unknown {execution} --reason TEXT`, or give the instance up with \
         `abandon {execution}`"
    )]
    UnknownStatus {
        /// The execution.
        execution: JobExecutionId,
    },
    /// The instance has an execution that is running.
    #[error("execution {execution} is running (owner {owner}); stop it first, or wait")]
    Running {
        /// The execution.
        execution: JobExecutionId,
        /// The owner of its lease.
        owner: String,
    },
    /// Another execution of the job runs, and the job has the property `batch.job.concurrency` = `one`.
    // Spec: TURN-01
    #[error(
        "its executions run one at a time (`batch.job.concurrency`), and execution {execution} has not ended; stop it first, or wait"
    )]
    OneAtATime {
        /// The execution that has not ended.
        execution: JobExecutionId,
    },
    /// The process died several times without a new checkpoint, so starting it automatically would repeat that without end.
    /// [`JobOperator::restart`](crate::JobOperator::restart) starts it anyway.
    #[error(
        "its process died {crashes} times in a row without a new checkpoint, most recently {place}, which probably kills it; \
         fix the cause, then run `restart {execution}` to resume from the last checkpoint, or raise the setting `crash-limit`"
    )]
    CrashLoop {
        /// The last execution.
        execution: JobExecutionId,
        /// The number of crashes in a row.
        crashes: i64,
        /// The place where the process died: the last step that started, with its counters.
        place: String,
    },
    /// Another runtime has taken the dead execution over, or stopped it.
    #[error("another process has taken it over, or stopped it")]
    TakenOver,
    /// The operating system cannot create a thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}
