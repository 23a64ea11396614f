//! One step of a job execution: from its history to its end.
//!
//! Spec: Appendix B.2 and B.3 of the catalogue, steps 1, 2 and 6

use std::sync::Arc;

use super::batchlet::BatchletRunner;
use super::bound::{BoundBody, BoundStep};
use super::call::{Failure, Interrupt, discard};
use super::chunk::ChunkRunner;
use super::ending;
use super::listeners::{JobListeners, StepListeners};
use super::running::Running;
use crate::artifact::ContextScope;
use crate::context::{JobContext, StepContext};
use crate::execution::StepExecution;
use crate::repository::{Ending, JobRepository, RepositoryError, StepHistory, StepState};
use crate::status::BatchStatus;

/// How the body of a step ended, if nothing failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// Normally; a batchlet gives an exit status.
    Completed { exit_status: Option<String> },
    /// After a stop request.
    Stopped { exit_status: Option<String> },
}

impl BodyEnd {
    pub(crate) fn stopped() -> Self {
        Self::Stopped { exit_status: None }
    }
}

/// How a step left the job.
#[derive(Clone, Debug)]
pub(crate) enum StepEnd {
    /// The job goes on after it.
    Completed,
    /// The job ends FAILED.
    Failed(Failure),
    /// The job ends STOPPED.
    Stopped,
}

/// The runner of what the step does.
enum Body<'a> {
    Chunk(ChunkRunner<'a>),
    Batchlet(BatchletRunner<'a>),
}

/// Runs one step.
pub(crate) struct StepRunner<'a> {
    pub(crate) step: &'a BoundStep,
    pub(crate) job_id: &'a str,
    pub(crate) job_context: &'a JobContext,
    pub(crate) repository: &'a dyn JobRepository,
    pub(crate) running: &'a Running,
}

impl StepRunner<'_> {
    /// Runs the step, or passes it over when it completed in an earlier execution.
    ///
    /// # Errors
    /// When the repository does not take what has to be written; nothing can then be said of the step.
    pub(crate) fn run(&self, job_listeners: &mut JobListeners<'_>) -> Result<StepEnd, RepositoryError> {
        let history = self
            .repository
            .step_history(self.running.lease.instance_id, &self.step.id)?;
        let completed = history
            .last
            .as_ref()
            .is_some_and(|last| last.status == BatchStatus::Completed);
        if completed && !self.step.allow_start_if_complete {
            // Spec: RESTART-05, JSL-STEP-09
            return Ok(StepEnd::Completed);
        }
        if let Some(refusal) = self.start_limit_reached(&history) {
            return Ok(StepEnd::Failed(refusal));
        }
        // A completed step that may run again runs from the beginning. Spec: JSL-STEP-10, JSL-CHUNK-28
        let state = if completed {
            StepState::default()
        } else {
            history.state
        };
        self.execute(state, job_listeners)
    }

    /// Spec: JSL-STEP-04, JSL-STEP-05, D-59
    fn start_limit_reached(&self, history: &StepHistory) -> Option<Failure> {
        let most = self.step.max_starts?;
        (history.starts >= most).then(|| {
            let (step, job, starts) = (&self.step.id, self.job_id, history.starts);
            Failure::new(format!(
                "step `{step}` of job `{job}` has been started {starts} times in this job instance; its start-limit of \
                 {} restarts allows no more",
                most - 1
            ))
        })
    }

    fn execute(
        &self,
        state: StepState,
        job_listeners: &mut JobListeners<'_>,
    ) -> Result<StepEnd, RepositoryError> {
        let mut execution = self
            .repository
            .create_step(&self.running.lease, &self.step.id, &state)?;
        self.running.publish_step(&self.step.id);
        let context = StepContext::new(
            &self.step.id,
            execution.id,
            self.step.properties.clone(),
            state.user_data.clone(),
        );
        let contexts = ContextScope {
            job: Some(self.job_context.clone()),
            step: Some(context.clone()),
            ..Default::default()
        };
        let after = ContextScope {
            step: None,
            ..contexts.clone()
        };

        // Everything is made before the step counts as begun.
        let made = StepListeners::make(&self.step.listeners, &contexts)
            .and_then(|listeners| Ok((listeners, self.make_body(&contexts, &context)?)));
        self.repository.begin_step(&mut execution)?;
        context.set_batch_status(BatchStatus::Started);
        self.running.show_stop_in_step(&context);
        let (mut listeners, body) = match made {
            Ok((listeners, body)) => (listeners, Ok(body)),
            Err(failure) => (StepListeners::none(), Err(failure)),
        };
        let result = body
            .and_then(|body| {
                let before = job_listeners.before_step(&contexts);
                match before.and_then(|()| listeners.before_step()) {
                    Ok(()) => Ok(body),
                    Err(failure) => {
                        discard(body);
                        Err(failure)
                    }
                }
            })
            .map_err(Interrupt::from)
            .and_then(|body| match body {
                Body::Chunk(mut chunk) => {
                    let end = chunk.run(&mut execution, state);
                    discard(chunk);
                    end
                }
                Body::Batchlet(batchlet) => {
                    let end = batchlet.run();
                    discard(batchlet);
                    Ok(end?)
                }
            });
        let result = match result {
            Err(Interrupt::Fenced(error)) => return Err(error),
            Err(Interrupt::Failed(failure)) => Err(failure),
            Ok(end) => Ok(end),
        };

        let (mut status, exit_status) = match &result {
            Ok(BodyEnd::Completed { exit_status }) => (BatchStatus::Completed, exit_status.clone()),
            Ok(BodyEnd::Stopped { exit_status }) => (BatchStatus::Stopped, exit_status.clone()),
            Err(_) => (BatchStatus::Failed, None),
        };
        let mut failure = result.err();
        note_exception(&context, failure.as_ref());
        context.set_counters(execution.counters);
        context.set_batch_status(status);
        // After-listeners see the final batch status; one that fails changes it for those after it. Spec: D-82, CTX-29
        let mut failed = |thrown: Failure| {
            note_exception(&context, Some(&thrown));
            if failure.is_some() {
                tracing::error!(message = thrown.message, "another artifact failed");
            }
            failure.get_or_insert(thrown);
            status = BatchStatus::Failed;
            context.set_batch_status(status);
        };
        listeners.after_step(&mut failed);
        job_listeners.after_step(&contexts, &after, &mut failed);
        discard(listeners);
        let chosen = context.exit_status().or(exit_status);
        let (ending, failure) = ending::settle(&format!("step `{}`", self.step.id), chosen, status, failure);
        self.end(&mut execution, &ending, &context)?;
        self.running.forget_step();
        Ok(match (ending.status, failure) {
            (_, Some(failure)) => StepEnd::Failed(failure),
            (BatchStatus::Stopped, None) => StepEnd::Stopped,
            (_, None) => StepEnd::Completed,
        })
    }

    fn make_body<'a>(
        &'a self,
        contexts: &ContextScope,
        context: &'a StepContext,
    ) -> Result<Body<'a>, Failure> {
        Ok(match &self.step.body {
            BoundBody::Chunk(chunk) => Body::Chunk(ChunkRunner::make(
                chunk,
                contexts,
                context,
                self.repository,
                self.running,
            )?),
            BoundBody::Batchlet(batchlet) => {
                Body::Batchlet(BatchletRunner::make(batchlet, contexts, self.running)?)
            }
        })
    }

    fn end(
        &self,
        execution: &mut StepExecution,
        ending: &Ending,
        context: &StepContext,
    ) -> Result<(), RepositoryError> {
        // A chunk's data was saved with its last checkpoint; what came after was rolled back. Spec: CTX-25, BLET-12
        let state = match self.step.body {
            BoundBody::Chunk(_) => None,
            BoundBody::Batchlet(_) => Some(StepState {
                user_data: context.persistent_info(),
                ..StepState::default()
            }),
        };
        let counters = execution.counters;
        let recorded = self
            .repository
            .end_step(execution, ending, counters, state.as_ref());
        recorded.inspect_err(|_| {
            // What is not in the repository is at least in the log: this is the true cause.
            tracing::error!(step = self.step.id, status = %ending.status, message = ending.message, "not recorded");
        })?;
        self.running.publish_counters(counters);
        Ok(())
    }
}

fn note_exception(context: &StepContext, failure: Option<&Failure>) {
    if let Some(exception) = failure.and_then(|failure| failure.exception.as_ref()) {
        context.set_exception(Arc::clone(exception));
    }
}
