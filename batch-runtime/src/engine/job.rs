//! A job execution: listeners, the sequence of steps, the end.
// Spec: Appendix B.1 of the catalogue

use std::collections::BTreeMap;
use std::sync::Arc;

use super::call::{Failure, discard};
use super::elements::BoundJob;
use super::ending;
use super::listeners::JobListeners;
use super::outcome::{Last, Outcome};
use super::spans::job_span;
use super::states::States;
use super::threads::{Running, Worker};
use super::turn;
use super::walk::{Dispatch, Shared, Walk, WalkEnd};
use crate::artifact::ContextScope;
use crate::context::{FlowContext, JobContext, RuntimeRef, SplitContext, StepContext};
use crate::execution::{JobExecution, StepCounters};
use crate::ids::StepExecutionId;
use crate::job_data::{CommittedData, JobData};
use crate::observer::JobEventKind;
use crate::repository::{
    ElementBefore, ElementKind, Ending, JobRepository, KeptState, RepositoryError, RestartPosition, rules,
};
use crate::status::BatchStatus;

/// Runs one job execution.
pub(crate) struct JobRunner {
    pub(crate) job: BoundJob,
    pub(crate) execution: JobExecution,
    pub(crate) repository: Arc<dyn JobRepository>,
    pub(crate) running: Arc<Running>,
    /// Whether the instance has no earlier execution.
    pub(crate) is_first: bool,
    /// The most partitions of an element that run at the same time, unless the job or step sets it.
    pub(crate) partition_threads: usize,
    /// Sends partitions to other processes.
    pub(crate) dispatch: Option<Dispatch>,
    pub(crate) runtime: RuntimeRef,
}

/// The end of a job's elements, and the start position of a restart.
struct ElementsEnd {
    outcome: Outcome,
    /// The element whose `fail`, `end` or `stop` element ended the job.
    terminated_at: Option<String>,
    restart: Option<RestartPosition>,
}

impl From<Outcome> for ElementsEnd {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            terminated_at: None,
            restart: None,
        }
    }
}

impl JobRunner {
    /// Runs the execution to its end, and returns it as recorded. After an error the end could not be recorded, and
    /// the next start finds the owner dead or its lease expired.
    pub(crate) fn run(self) -> Result<JobExecution, RepositoryError> {
        let _span = job_span(&self.execution.job_name, &self.running.lease).entered();
        let (repository, running) = (Arc::clone(&self.repository), Arc::clone(&self.running));
        running.events.emit(JobEventKind::JobStarted);
        let ended = self.run_observed()?;
        running.announce_no_stop();
        running.events.ended(&ended);
        // Reports that arrived late.
        if running.has_dispatched()
            && let Err(error) = repository
                .worker_store()
                .and_then(|store| store.forget_partitions(ended.id))
        {
            tracing::warn!(%error, "the reports of workers are left in the repository until the execution is purged");
        }
        Ok(ended)
    }

    fn run_observed(mut self) -> Result<JobExecution, RepositoryError> {
        self.running.runs_here();
        // The execution stays STARTING while it waits for its turn.
        let began = turn::wait(&*self.repository, &self.job, &self.running)?
            && self
                .repository
                .begin_job(&self.running.lease, &mut self.execution)?;
        let states = match began {
            true => self.repository.kept_state(&self.running.lease),
            false => Ok(KeptState::default()),
        };
        let layout = self.repository.format().layout;
        let states = states.map(|kept| States::new(kept, layout));
        let data = states.as_ref().map(|states| states.data.clone());
        // Without readable state no element runs. Only changes are written, so empty data replaces nothing.
        let data = data.unwrap_or_else(|_| CommittedData::new(BTreeMap::new(), layout));
        let context = JobContext::new(
            &self.job.id,
            self.execution.instance_id,
            self.execution.id,
            self.job.properties.clone(),
            self.repository.connector(),
            JobData::new(data, false),
            self.runtime.clone(),
        );
        if !began {
            // Stopped before it started, or its lease was lost while it waited for its turn. Spec: STATUS-10
            self.running.request_stop();
            let distrusted = self.running.distrusted();
            let outcome = distrusted.map_or(Outcome::Stopped, Outcome::Failed);
            return self.end(outcome.into(), &context, &JobListeners::default());
        }
        context.set_batch_status(BatchStatus::Started);
        if let Some(limit) = self.job.timeout {
            self.running.set_deadline(limit);
        }
        let worker = self.running.workers.begin();
        worker.enter(context.clone());
        let contexts = ContextScope {
            job: Some(context.clone()),
            ..Default::default()
        };
        let (listeners, made) = match JobListeners::make(&self.job.listeners, &contexts) {
            Ok(listeners) => (listeners, Ok(())),
            Err(failure) => (JobListeners::default(), Err(failure)),
        };
        let end = match made.and_then(|()| listeners.before_job()) {
            Ok(()) => match self.run_elements(&worker, &listeners, &contexts, states) {
                // Stored state that cannot be read fails the job, and each restart, until it is repaired.
                Err(error @ RepositoryError::Corrupt { .. }) => {
                    Outcome::Failed(Failure::of_repository(error)).into()
                }
                end => end?,
            },
            // No step is executed, but `after_job` is called. Spec: STATUS-24
            Err(failure) => Outcome::Failed(failure).into(),
        };
        let ended = self.end(end, &context, &listeners);
        discard(listeners);
        ended
    }

    fn run_elements(
        &self,
        worker: &Arc<Worker>,
        listeners: &JobListeners,
        contexts: &ContextScope,
        states: Result<States, RepositoryError>,
    ) -> Result<ElementsEnd, RepositoryError> {
        let states = states?;
        let shared = Shared {
            job: &self.job,
            repository: self.repository.as_ref(),
            running: &self.running,
            listeners,
            outside: contexts,
            states: &states,
            is_first: self.is_first,
            partition_threads: self.partition_threads,
            dispatch: self.dispatch.as_ref(),
        };
        self.walk(&Walk::new(shared, worker))
    }

    /// Walks from the first element, or from where the previous execution was stopped.
    // Spec: SEQ-01, RESTART-04
    fn walk(&self, walk: &Walk<'_>) -> Result<ElementsEnd, RepositoryError> {
        // The data that `before_job` has set.
        walk.save_data()?;
        if let Some(failure) = self.removed_step()? {
            return Ok(Outcome::Failed(failure).into());
        }
        let elements = &walk.shared.job.elements;
        let (begin, last) = match &walk.shared.states.restart {
            None => (elements.first().unwrap_or_default(), None),
            Some(position) => match elements.position(&position.element) {
                Some(begin) => {
                    let before = position.after.as_ref().map(|before| last_before(before, walk));
                    (begin, before.transpose()?)
                }
                None => {
                    let failure = Failure::new(format!(
                        "the restart has to start at `{}`, which is no longer an element of job `{}`",
                        position.element, self.job.id
                    ));
                    return Ok(Outcome::Failed(failure).into());
                }
            },
        };
        let ended = walk.run(elements, begin, last)?;
        let restart = self.restart_position(&ended);
        let terminated_at = matches!(ended.outcome, Outcome::Terminated(_))
            .then(|| elements.all.get(ended.at).map(|element| element.id.clone()))
            .flatten();
        // A stop during the last item still stops the job. Spec: D-86
        let outcome = match ended.outcome {
            Outcome::Completed if self.running.workers.stop_requested() => Outcome::Stopped,
            other => other,
        };
        let outcome = match (outcome, self.job.timeout) {
            (Outcome::Stopped, Some(limit)) if self.running.is_overdue() => Outcome::Failed(Failure::new(
                format!("job `{}` exceeded its timeout of {limit:?}", self.job.id),
            )),
            (Outcome::Stopped, _) => self
                .running
                .distrusted()
                .map_or(Outcome::Stopped, Outcome::Failed),
            (outcome, _) => outcome,
        };
        Ok(ElementsEnd {
            outcome,
            terminated_at,
            restart,
        })
    }

    /// Returns the failure of a restart that would repeat the work of a step, because the step was renamed or removed.
    // Spec: LOSS-02
    fn removed_step(&self) -> Result<Option<Failure>, RepositoryError> {
        if self.is_first {
            return Ok(None);
        }
        let mut executions = self.repository.job_executions(self.execution.instance_id)?;
        executions.sort_by_key(|execution| execution.id);
        let mut steps = Vec::new();
        for execution in &executions {
            steps.extend(self.repository.step_executions(execution.id)?);
        }
        let removed = rules::removed_step(&steps, &self.job.step_names);
        Ok(removed.map(|(step, items)| {
            Failure::new(format!(
                "step `{step}` has committed items ({items}) and is not complete, and job `{}` no longer has this step: under another id it \
                 would write them again; give the step its id again, or `abandon {}`, remove what the step has written, and launch the job with \
                 another parameter",
                self.job.id, self.execution.id
            ))
        }))
    }

    // Spec: TERM-09, TERM-11, DEC-16, D-24
    fn restart_position(&self, ended: &WalkEnd) -> Option<RestartPosition> {
        let Outcome::Terminated(termination) = &ended.outcome else {
            return None;
        };
        let stopped_at = &self.job.elements.all.get(ended.at)?.id;
        let element = match &termination.restart {
            Some(element) => element.as_str(),
            None if self.job.dialect.restart_resumes_at_stopped_element() => stopped_at,
            None => return None,
        };
        // Only the decision that stopped needs the element executed before it.
        let after = (element == stopped_at).then_some(ended.last.as_ref()).flatten();
        Some(RestartPosition {
            element: element.to_owned(),
            after: after.map(before),
        })
    }

    fn end(
        mut self,
        end: ElementsEnd,
        context: &JobContext,
        listeners: &JobListeners,
    ) -> Result<JobExecution, RepositoryError> {
        let ElementsEnd {
            mut outcome,
            terminated_at,
            restart,
        } = end;
        context.set_batch_status(outcome.status());
        let is_set_before_listeners = self.job.dialect.job_listener_chooses_last();
        if let Some(of_element) = outcome.exit_status().filter(|_| is_set_before_listeners) {
            context.set_exit_status(Some(of_element));
        }
        if let Err(failure) = listeners.after_job() {
            outcome = match outcome {
                Outcome::Failed(first) => Outcome::Failed(first),
                _ => Outcome::Failed(failure),
            };
            context.set_batch_status(outcome.status());
        }
        let lease = &self.running.lease;
        // After the listeners, which may change the data, and before the end, which releases the lease.
        context
            .data()
            .save(|changes| self.repository.save_job_data(lease, changes))?;
        loop {
            let ending = self.ending(&outcome, terminated_at.as_deref(), context);
            let ending = Ending {
                // If `after_job` has failed, the job is FAILED, and a restart begins at the first element.
                restart: restart.clone().filter(|_| ending.status == BatchStatus::Stopped),
                ..ending
            };
            if self
                .repository
                .end_job(self.running.release(), &mut self.execution, &ending)?
            {
                return Ok(self.execution);
            }
            // A stop was just accepted, so the job no longer ends COMPLETED. Spec: STATUS-26
            self.running.request_stop();
            if outcome.status() == BatchStatus::Completed {
                outcome = Outcome::Stopped;
                context.set_batch_status(BatchStatus::Stopped);
            }
        }
    }

    // Spec: STATUS-20, TERM-05, TERM-06, JAK-44, D-25
    fn ending(&self, outcome: &Outcome, terminated_at: Option<&str>, context: &JobContext) -> Ending {
        let (of_element, failure) = match outcome {
            Outcome::Failed(failure) => (None, Some(failure.clone())),
            Outcome::Terminated(termination) => {
                let failure = terminated_at
                    .filter(|_| termination.status == BatchStatus::Failed)
                    .map(|element| Failure::new(format!("a `fail` element ended the job at `{element}`")));
                let of_element = termination.exit_status.clone();
                let is_set = self.job.dialect.job_listener_chooses_last();
                (of_element.filter(|_| !is_set), failure)
            }
            Outcome::Completed | Outcome::Stopped => (None, None),
        };
        let chosen = of_element.or_else(|| context.exit_status());
        let element = format!("job `{}`", self.job.id);
        ending::settle(&element, chosen, outcome.status(), failure).0
    }
}

/// Converts the element for the repository.
// Spec: DEC-16, DEC-19
fn before(last: &Last) -> ElementBefore {
    let (id, kind, status) = match last {
        Last::Step(context) => (context.id(), ElementKind::Step, context.batch_status()),
        Last::Flow(context) => (context.id(), ElementKind::Flow, context.batch_status()),
        Last::Split(context) => (context.id(), ElementKind::Split, context.batch_status()),
    };
    ElementBefore {
        id: id.to_owned(),
        kind,
        batch_status: status.to_string(),
        exit_status: last.exit_status().unwrap_or_default(),
    }
}

/// Restores the recorded element for a decider. A step has its counters and its user data, as when it ended.
fn last_before(before: &ElementBefore, walk: &Walk<'_>) -> Result<Last, RepositoryError> {
    let status = BatchStatus::from_repository(&before.batch_status).unwrap_or(BatchStatus::Unknown);
    let (id, exit_status) = (&before.id, &before.exit_status);
    Ok(match before.kind {
        ElementKind::Step => {
            let history = walk.step_history(id)?;
            let last = history.last.as_ref();
            let (execution, counters) = last.map_or((StepExecutionId(0), StepCounters::default()), |last| {
                (last.id, last.counters)
            });
            let context =
                StepContext::new(id, execution, Default::default(), history.state.user_data.clone())
                    .after(history.before)
                    .ended(status, exit_status);
            context.set_counters(counters);
            Last::Step(context)
        }
        ElementKind::Flow => Last::Flow(FlowContext::new(id).ended(status, exit_status)),
        ElementKind::Split => Last::Split(SplitContext::new(id).ended(status, exit_status)),
    })
}
