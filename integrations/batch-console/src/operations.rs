//! The operations of users. Each is recorded in the audit log, by pages and the API alike.

use batch_runtime::operator::{ExecutionAction, Imported, Purge, Recovery};
use batch_runtime::{JobExecutionId, JobOperator, JobOperatorError, JobParameters, LaunchId};

use crate::app::RequestContext;
use crate::problem::Problem;

/// An action on one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Stop,
    Restart,
    Abandon,
    DeclareDead,
}

impl Action {
    const ALL: [Self; 4] = [Self::Stop, Self::Restart, Self::Abandon, Self::DeclareDead];

    /// Returns the action with a name in URLs.
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        let found = Self::ALL.into_iter().find(|action| action.path() == text);
        found.ok_or_else(|| {
            let all = Self::ALL.map(Self::path).join(", ");
            Problem::not_found(format!("unknown action `{text}`: expected one of {all}"))
        })
    }

    /// Returns its name in URLs.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Abandon => "abandon",
            Self::DeclareDead => "declare-dead",
        }
    }

    /// Checks whether the state of an execution permits it.
    pub(crate) fn check(self, operator: &JobOperator, id: JobExecutionId) -> Result<(), JobOperatorError> {
        let action = match self {
            Self::Stop => ExecutionAction::Stop,
            Self::Restart => ExecutionAction::Restart,
            Self::Abandon => ExecutionAction::Abandon,
            Self::DeclareDead => ExecutionAction::DeclareDead,
        };
        operator.check_action(id, action)
    }

    /// Performs the action, a restart with parameters that override the instance's. Returns its outcome, and the execution to look
    /// at next.
    fn perform(
        self,
        operator: &JobOperator,
        id: JobExecutionId,
        parameters: JobParameters,
    ) -> Result<(String, JobExecutionId), JobOperatorError> {
        match self {
            Self::Stop => match operator.stop(id)? {
                true => Ok(("stopped".into(), id)),
                false => Ok(("stop requested".into(), id)),
            },
            Self::Restart => {
                let new = operator.restart(id, parameters)?;
                Ok((format!("execution {new}"), new))
            }
            Self::Abandon => operator.abandon(id).map(|()| ("abandoned".into(), id)),
            Self::DeclareDead => operator.declare_dead(id).map(|()| ("closed".into(), id)),
        }
    }
}

/// The number of a line, and the instance that was imported, or the reason why it cannot be.
pub(crate) type ImportedLine = (usize, Result<Imported, String>);

/// A job that was launched.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Launched {
    /// This process runs it.
    Here(JobExecutionId),
    /// It waits for a worker.
    Queued(LaunchId),
}

impl RequestContext {
    /// Performs an action on an execution, a restart with parameters that override the instance's. Returns the execution to look at
    /// next.
    pub(crate) async fn perform(
        &self,
        action: Action,
        id: JobExecutionId,
        parameters: JobParameters,
    ) -> Result<JobExecutionId, Problem> {
        let name = named(action.path(), &format!("execution {id}"), &parameters);
        self.operate(name, move |operator| {
            let (outcome, next) = action.perform(operator, id, parameters)?;
            Ok((next, outcome))
        })
        .await
    }

    /// Launches a job in this process, or on the workers of a queue.
    pub(crate) async fn launch(
        &self,
        job: String,
        parameters: JobParameters,
        queue: Option<String>,
    ) -> Result<Launched, Problem> {
        self.operate(named("launch", &job, &parameters), move |operator| match queue {
            Some(queue) => {
                let launch = operator.launch_remote(&job, parameters, &queue)?;
                Ok((Launched::Queued(launch), format!("queued as launch {launch}")))
            }
            None => {
                let execution = operator.launch(&job, parameters)?;
                Ok((Launched::Here(execution), format!("execution {execution}")))
            }
        })
        .await
    }

    /// Runs a new instance of a job in this process, with any parameters.
    pub(crate) async fn start(
        &self,
        job: String,
        parameters: JobParameters,
    ) -> Result<JobExecutionId, Problem> {
        self.operate(named("start", &job, &parameters), move |operator| {
            let execution = operator.start(&job, parameters)?;
            Ok((execution, format!("execution {execution}")))
        })
        .await
    }

    /// Resumes all dead executions. Returns the outcome of each.
    pub(crate) async fn recover(&self) -> Result<Vec<(JobExecutionId, String)>, Problem> {
        let (audit, user) = (self.app.audit.clone(), self.identity.user.name().to_owned());
        let recover = move |operator: &JobOperator| {
            let recovered = operator.recover()?;
            let outcomes = recovered.into_iter().map(|one| {
                let outcome = match &one.recovery {
                    Recovery::Restarted(id) => format!("execution {id}"),
                    Recovery::Stopped => "stopped".into(),
                    Recovery::TakenOver => "another process has taken it over".into(),
                    Recovery::Failed(error) => error.to_string(),
                    other => format!("{other:?}"),
                };
                audit.record(
                    &user,
                    &format!("recover execution {}", one.execution.id),
                    &outcome,
                );
                (one.execution.id, outcome)
            });
            Ok::<_, JobOperatorError>(outcomes.collect())
        };
        self.app.operator.act(recover).await
    }

    /// Deletes instances. Returns how many there were.
    pub(crate) async fn purge(&self, purge: Purge) -> Result<u64, Problem> {
        let job = purge.job.as_deref().unwrap_or("*");
        let before = purge
            .before
            .map_or_else(String::new, |time| format!(" before {time}"));
        let force = match purge.force {
            true => ", failed and stopped ones too",
            false => "",
        };
        let action = format!("purge {job}{before}, keep {}{force}", purge.keep);
        self.operate(action, move |operator| {
            let deleted = operator.purge(&purge, None)?;
            Ok((deleted, format!("{deleted} instances")))
        })
        .await
    }

    /// Imports instances, one on each line. Returns the outcome of each line that is not empty, with its number.
    pub(crate) async fn import(&self, text: String) -> Result<Vec<ImportedLine>, Problem> {
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        self.operate(format!("import {lines} instances"), move |operator| {
            let lines = (1..)
                .zip(text.lines())
                .filter(|(_, line)| !line.trim().is_empty());
            let mut imported: Vec<ImportedLine> = Vec::new();
            for (number, line) in lines {
                imported.push(match operator.import(line) {
                    Ok(one) => (number, Ok(one)),
                    // The same import can be repeated: what is there already is left alone.
                    Err(error @ JobOperatorError::Repository(_)) => return Err(error),
                    Err(error) => (number, Err(error.to_string())),
                });
            }
            let ids = imported.iter().filter_map(|(_, imported)| imported.as_ref().ok());
            let ids: Vec<String> = ids.map(|imported| imported.id().to_string()).collect();
            let failed = imported.len() - ids.len();
            let outcome = format!("instances {}; {failed} lines cannot be imported", ids.join(", "));
            Ok((imported, outcome))
        })
        .await
    }

    /// Sends the notifications that wait for their delivery.
    pub(crate) async fn send_notifications(&self) -> Result<(), Problem> {
        self.operate("send notifications".into(), |operator| {
            operator.send_notifications()?;
            let waiting = operator.pending_notifications()?.len();
            Ok(((), format!("{waiting} wait for their delivery")))
        })
        .await
    }

    /// Sends a test to a notification target.
    pub(crate) async fn test_notification(&self, target: String) -> Result<(), Problem> {
        self.operate(format!("test notification target {target}"), move |operator| {
            operator.test_notification(&target)?;
            Ok(((), "delivered".into()))
        })
        .await
    }

    /// Withdraws a launch that waits for a worker, or stops its execution.
    pub(crate) async fn stop_launch(&self, launch: LaunchId) -> Result<bool, Problem> {
        self.operate(format!("stop launch {launch}"), move |operator| {
            let has_stopped = operator.stop_launch(launch)?;
            let outcome = if has_stopped { "stopped" } else { "stop requested" };
            Ok((has_stopped, outcome.into()))
        })
        .await
    }

    /// Runs an operation on another thread, and records it there with its outcome: also if the client does not wait for the response.
    async fn operate<T: Send + 'static>(
        &self,
        action: String,
        operation: impl FnOnce(&JobOperator) -> Result<(T, String), JobOperatorError> + Send + 'static,
    ) -> Result<T, Problem> {
        let (audit, user) = (self.app.audit.clone(), self.identity.user.name().to_owned());
        let operation = move |operator: &JobOperator| {
            let done = operation(operator);
            let outcome = match &done {
                Ok((_, outcome)) => outcome.clone(),
                Err(error) => error.to_string(),
            };
            audit.record(&user, &action, &outcome);
            done.map(|(value, _)| value)
        };
        self.app.operator.act(operation).await
    }
}

/// Returns a start of a job with its parameters, as the audit log has it.
fn named(verb: &str, job: &str, parameters: &JobParameters) -> String {
    let shown: Vec<String> = parameters.iter().map(|(name, one)| one.to_text(name)).collect();
    format!("{verb} {job} {}", shown.join(" ")).trim_end().to_owned()
}
