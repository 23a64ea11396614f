//! A job execution: listeners, the sequence of steps, the end.
//!
//! Spec: Appendix B.1 of the catalogue

use std::sync::Arc;

use super::bound::BoundJob;
use super::call::{Failure, discard};
use super::ending;
use super::listeners::JobListeners;
use super::running::Running;
use super::step::{StepEnd, StepRunner};
use crate::artifact::ContextScope;
use crate::context::JobContext;
use crate::execution::JobExecution;
use crate::repository::{Ending, JobRepository, RepositoryError};
use crate::status::BatchStatus;

/// Runs one job execution.
pub(crate) struct JobRunner {
    pub(crate) job: BoundJob,
    pub(crate) execution: JobExecution,
    pub(crate) repository: Arc<dyn JobRepository>,
    pub(crate) running: Arc<Running>,
}

/// How the steps of a job ended.
enum Outcome {
    Completed,
    Failed(Failure),
    Stopped,
}

impl Outcome {
    fn status(&self) -> BatchStatus {
        match self {
            Self::Completed => BatchStatus::Completed,
            Self::Failed(_) => BatchStatus::Failed,
            Self::Stopped => BatchStatus::Stopped,
        }
    }
}

impl JobRunner {
    /// Runs the execution to its end. Returns it as it was recorded; an error means that its end could not be recorded,
    /// and that the next start finds its owner dead or its lease expired.
    pub(crate) fn run(mut self) -> Result<JobExecution, RepositoryError> {
        self.running.runs_here();
        let began = self
            .repository
            .begin_job(&self.running.lease, &mut self.execution)?;
        let context = JobContext::new(
            &self.job.id,
            self.execution.instance_id,
            self.execution.id,
            self.job.properties.clone(),
            self.repository.connector(),
        );
        if !began {
            // Stopped before it began. Spec: STATUS-10
            self.running.request_stop();
            return self.end(Outcome::Stopped, &context, &mut JobListeners::none());
        }
        context.set_batch_status(BatchStatus::Started);
        self.running.show_stop_in_job(&context);
        let bound = std::mem::take(&mut self.job.listeners);
        let contexts = ContextScope {
            job: Some(context.clone()),
            ..Default::default()
        };
        let (mut listeners, made) = match JobListeners::make(&bound, &contexts) {
            Ok(listeners) => (listeners, Ok(())),
            Err(failure) => (JobListeners::none(), Err(failure)),
        };
        let outcome = match made.and_then(|()| listeners.before_job()) {
            Ok(()) => self.run_steps(&context, &mut listeners)?,
            // No step is executed, `after_job` is still called. Spec: STATUS-24
            Err(failure) => Outcome::Failed(failure),
        };
        let ended = self.end(outcome, &context, &mut listeners);
        discard(listeners);
        ended
    }

    /// Walks from the first step along `next`. Spec: SEQ-01, SEQ-02, STATUS-14, STATUS-15
    fn run_steps(
        &self,
        context: &JobContext,
        listeners: &mut JobListeners<'_>,
    ) -> Result<Outcome, RepositoryError> {
        let mut position = Some(0);
        while let Some(step) = position.and_then(|position| self.job.steps.get(position)) {
            if self.running.stop_requested() {
                return Ok(Outcome::Stopped);
            }
            let runner = StepRunner {
                step,
                job_id: &self.job.id,
                job_context: context,
                repository: self.repository.as_ref(),
                running: &self.running,
            };
            match runner.run(listeners)? {
                StepEnd::Completed => position = step.next,
                StepEnd::Failed(failure) => return Ok(Outcome::Failed(failure)),
                StepEnd::Stopped => return Ok(Outcome::Stopped),
            }
        }
        // A stop that came with the last item still is a stop. Spec: D-86
        if self.running.stop_requested() {
            Ok(Outcome::Stopped)
        } else {
            Ok(Outcome::Completed)
        }
    }

    fn end(
        mut self,
        mut outcome: Outcome,
        context: &JobContext,
        listeners: &mut JobListeners<'_>,
    ) -> Result<JobExecution, RepositoryError> {
        context.set_batch_status(outcome.status());
        if let Err(failure) = listeners.after_job() {
            outcome = match outcome {
                Outcome::Failed(first) => Outcome::Failed(first),
                _ => Outcome::Failed(failure),
            };
            context.set_batch_status(outcome.status());
        }
        loop {
            let ending = self.ending(&outcome, context);
            if self
                .repository
                .end_job(&self.running.lease, &mut self.execution, &ending)?
            {
                return Ok(self.execution);
            }
            // A stop was accepted just now: the job no longer ends COMPLETED. Spec: STATUS-26
            self.running.request_stop();
            if matches!(outcome, Outcome::Completed) {
                outcome = Outcome::Stopped;
                context.set_batch_status(BatchStatus::Stopped);
            }
        }
    }

    /// Spec: STATUS-20, D-25
    fn ending(&self, outcome: &Outcome, context: &JobContext) -> Ending {
        let failure = match outcome {
            Outcome::Failed(failure) => Some(failure.clone()),
            _ => None,
        };
        let (ending, _) = ending::settle(
            &format!("job `{}`", self.job.id),
            context.exit_status(),
            outcome.status(),
            failure,
        );
        ending
    }
}
