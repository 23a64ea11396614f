//! The errors of the job operator.

use std::error::Error;
use std::fmt;

use batch_xml::JobXmlErrors;

use crate::ids::{JobExecutionId, JobInstanceId};
use crate::parameters::ParameterError;
use crate::repository::RepositoryError;
use crate::secret::SecretError;

/// Why the operator did not do what it was asked for. Nothing was changed, unless a variant says so.
///
/// Spec: OP-31
#[non_exhaustive]
pub enum JobOperatorError {
    /// No job of that id is on the job path, nor in the repository.
    NoSuchJob {
        /// The id that was asked for.
        job: String,
        /// What may help: near names, broken files.
        help: String,
    },
    /// No such job instance.
    NoSuchJobInstance(JobInstanceId),
    /// No such job execution.
    NoSuchJobExecution(JobExecutionId),
    /// The job cannot be started.
    JobStart {
        /// The job.
        job: String,
        /// Why.
        cause: StartError,
    },
    /// The execution cannot be restarted.
    JobRestart {
        /// The execution.
        execution: JobExecutionId,
        /// Why.
        cause: StartError,
    },
    /// The instance has ended COMPLETED: there is nothing to continue.
    JobInstanceAlreadyComplete {
        /// The job.
        job: String,
        /// The execution that completed it.
        execution: JobExecutionId,
    },
    /// The instance has an execution that is running.
    JobExecutionAlreadyRunning {
        /// The job.
        job: String,
        /// That execution.
        execution: JobExecutionId,
        /// Who runs it.
        owner: String,
    },
    /// The instance was abandoned: nothing continues it.
    JobInstanceAbandoned {
        /// The job.
        job: String,
        /// The execution that was abandoned.
        execution: JobExecutionId,
    },
    /// The execution is running, so it cannot be abandoned.
    JobExecutionIsRunning {
        /// The execution.
        execution: JobExecutionId,
        /// Who runs it.
        owner: String,
    },
    /// The execution is not running, so it cannot be stopped.
    JobExecutionNotRunning(JobExecutionId),
    /// The execution's end is not recorded, and nobody runs it any more. The next launch or restart takes it over.
    JobExecutionLost {
        /// The execution.
        execution: JobExecutionId,
        /// What is known.
        reason: String,
    },
    /// A callback cannot be registered.
    CallbackRegistration(String),
    /// No such callback.
    CallbackDeregistration(u64),
    /// An instance cannot be archived, exported or imported.
    Archive(String),
    /// The repository failed.
    Repository(RepositoryError),
}

/// Why a job cannot be started or restarted.
#[non_exhaustive]
pub enum StartError {
    /// The Job XML is wrong, or does not fit the artifacts.
    Definition(JobXmlErrors),
    /// Several files of the job path define the id.
    DuplicateId(Vec<String>),
    /// A parameter that the repository cannot hold.
    Parameter(ParameterError),
    /// A secret that a parameter refers to cannot be had.
    Secret(SecretError),
    /// A parameter that the job does not know, much like one that it does.
    UnknownParameter {
        /// The name that was given.
        name: String,
        /// The name that was probably meant.
        nearest: String,
    },
    /// An instance with other parameters has the same JOB_KEY.
    SameKey {
        /// That instance.
        instance: JobInstanceId,
    },
    /// The job is not restartable, and the instance has an execution already.
    NotRestartable {
        /// That execution.
        execution: JobExecutionId,
    },
    /// The instance has an execution that is running.
    Running {
        /// That execution.
        execution: JobExecutionId,
        /// Who runs it.
        owner: String,
    },
    /// The process has died again and again without a new checkpoint, so starting it once more by itself would do so for
    /// ever. [`JobOperator::restart`](crate::JobOperator::restart) does it all the same.
    CrashLoop {
        /// The last execution.
        execution: JobExecutionId,
        /// How often in a row.
        crashes: i64,
        /// Where it was: the last step that had begun, with its counters.
        place: String,
    },
    /// Somebody else has taken the dead execution over, or stopped it.
    Overtaken,
    /// The operating system gives no thread.
    Thread(std::io::Error),
}

/// What `main` prints of an error that it returns: the text for people.
impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Definition(errors) => write!(f, "its definition is wrong\n{errors}"),
            Self::DuplicateId(files) => write!(f, "several files define it: {}", files.join(", ")),
            Self::Parameter(error) => error.fmt(f),
            Self::Secret(error) => error.fmt(f),
            Self::UnknownParameter { name, nearest } => write!(
                f,
                "it has no property `{}`; did you mean `{nearest}`?",
                name.escape_debug()
            ),
            Self::SameKey { instance } => write!(
                f,
                "its parameters have the same key in the repository as those of instance {instance}, which are others; \
                 change a value, for example one with `;` or `=` in it"
            ),
            Self::NotRestartable { execution } => {
                write!(
                    f,
                    "it is not restartable, and execution {execution} of the same instance exists"
                )
            }
            Self::Running { execution, owner } => {
                write!(f, "execution {execution} is running (owner {owner})")
            }
            Self::CrashLoop {
                execution,
                crashes,
                place,
            } => write!(
                f,
                "its process has died {crashes} times in a row without a new checkpoint, at last {place}: what it does there \
                 probably kills it. When the cause is mended, `restart {execution}` goes on from the last checkpoint"
            ),
            Self::Overtaken => f.write_str("somebody else has taken it over, or stopped it"),
            Self::Thread(error) => write!(f, "no thread can be started: {error}"),
        }
    }
}

/// What `main` prints of an error that it returns: the text for people.
impl fmt::Debug for JobOperatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for JobOperatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchJob { job, help } => write!(f, "no job is called `{}`{help}", job.escape_debug()),
            Self::NoSuchJobInstance(id) => write!(f, "there is no job instance {id}"),
            Self::NoSuchJobExecution(id) => write!(f, "there is no job execution {id}"),
            Self::JobStart { job, cause } => {
                write!(f, "job `{}` cannot be started: {cause}", job.escape_debug())
            }
            Self::JobRestart { execution, cause } => {
                write!(f, "job execution {execution} cannot be restarted: {cause}")
            }
            Self::JobInstanceAlreadyComplete { job, execution } => write!(
                f,
                "this instance of job `{job}` is complete: execution {execution} ended COMPLETED. Use other parameters \
                 for another instance, or `start`, which always makes a new one"
            ),
            Self::JobExecutionAlreadyRunning {
                job,
                execution,
                owner,
            } => {
                write!(
                    f,
                    "this instance of job `{job}` is running: execution {execution}, owner {owner}"
                )
            }
            Self::JobInstanceAbandoned { job, execution } => write!(
                f,
                "this instance of job `{job}` was given up: execution {execution} is ABANDONED. Use other parameters for \
                 another instance, or `start`, which always makes a new one"
            ),
            Self::JobExecutionIsRunning { execution, owner } => write!(
                f,
                "job execution {execution} is running (owner {owner}): stop it first"
            ),
            Self::JobExecutionNotRunning(id) => write!(f, "job execution {id} is not running"),
            Self::JobExecutionLost { execution, reason } => write!(
                f,
                "the end of job execution {execution} is not recorded: {reason}. The next launch or restart of its \
                 instance goes on from the last checkpoint"
            ),
            Self::CallbackRegistration(problem) => write!(f, "the callback cannot be registered: {problem}"),
            Self::CallbackDeregistration(id) => write!(f, "there is no callback {id}"),
            Self::Archive(problem) => f.write_str(problem),
            Self::Repository(error) => error.fmt(f),
        }
    }
}

impl Error for JobOperatorError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Repository(error) => error.source(),
            _ => None,
        }
    }
}

impl From<RepositoryError> for JobOperatorError {
    fn from(error: RepositoryError) -> Self {
        Self::Repository(error)
    }
}
