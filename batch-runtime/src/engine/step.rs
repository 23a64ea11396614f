//! One step of a job execution: from its history to its end.
//!
//! Spec: Appendix B.2 and B.3 of the catalogue, steps 1, 2 and 6

use std::sync::Arc;

use super::batchlet::BatchletRunner;
use super::call::{Failure, Interrupt, discard};
use super::chunk::{ChunkListeners, ChunkRunner, StepEnv};
use super::elements::{BoundBody, BoundPartition, BoundStep};
use super::ending;
use super::listeners::StepListeners;
use super::observe::ObservedStep;
use super::threads::StepPlace;
use super::walk::{ElementEnd, Last, Outcome, Walk};
use crate::artifact::ContextScope;
use crate::context::StepContext;
use crate::execution::StepExecution;
use crate::repository::{Ending, Foreign, RepositoryError, StepHistory, StepState};
use crate::status::BatchStatus;
use crate::transition::{Follow, Transitions};

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

/// The runner of what the step does.
enum Body<'a> {
    Chunk(Box<ChunkRunner<'a>>),
    Batchlet(BatchletRunner<'a>),
    Partitioned(&'a BoundPartition),
}

/// The result of a step until it is recorded: after-listeners and the collector may still fail it.
struct StepResult<'c> {
    status: BatchStatus,
    exit_status: Option<String>,
    failure: Option<Failure>,
    context: &'c StepContext,
}

impl<'c> StepResult<'c> {
    fn of(ran: Result<BodyEnd, Failure>, context: &'c StepContext) -> Self {
        let (status, exit_status, failure) = match ran {
            Ok(BodyEnd::Completed { exit_status }) => (BatchStatus::Completed, exit_status, None),
            Ok(BodyEnd::Stopped { exit_status }) => (BatchStatus::Stopped, exit_status, None),
            Err(failure) => (BatchStatus::Failed, None, Some(failure)),
        };
        note_exception(context, failure.as_ref());
        context.set_batch_status(status);
        Self {
            status,
            exit_status,
            failure,
            context,
        }
    }

    /// Makes the step FAILED. The first failure is the one that is recorded.
    fn fail(&mut self, thrown: Failure) {
        note_exception(self.context, Some(&thrown));
        if self.failure.is_some() {
            tracing::error!(message = thrown.message, "another artifact failed");
        }
        self.failure.get_or_insert(thrown);
        self.status = BatchStatus::Failed;
        self.context.set_batch_status(self.status);
    }
}

/// Runs one step.
pub(super) struct StepRunner<'w> {
    pub(super) id: &'w str,
    pub(super) step: &'w BoundStep,
    pub(super) transitions: &'w Transitions,
    pub(super) walk: &'w Walk<'w>,
    /// Whether it is a partition: without step listeners and transitions of its own. Spec: PART-31, PART-32
    pub(super) is_partition: bool,
}

impl StepRunner<'_> {
    /// The name of the step in the repository. Spec: D-75
    fn row(&self) -> String {
        format!("{}{}", self.walk.prefix, self.id)
    }

    /// Runs the step, or passes it over when it completed in an earlier execution.
    ///
    /// # Errors
    /// When the repository does not take what has to be written; nothing can then be said of the step.
    pub(super) fn run(&self) -> Result<ElementEnd, RepositoryError> {
        let shared = self.walk.shared;
        let history =
            shared
                .repository
                .step_history(shared.running.lease.instance_id, &self.row(), self.walk.since)?;
        let completed = history
            .last
            .as_ref()
            .filter(|last| last.status == BatchStatus::Completed);
        if let Some(last) = completed.filter(|_| !self.step.allow_start_if_complete) {
            return Ok(self.pass_over(last, &history.state));
        }
        if let Some(refusal) = self.start_limit_reached(&history) {
            return Ok(ElementEnd {
                outcome: Outcome::Failed(refusal),
                follow: Follow::Nothing,
                last: None,
            });
        }
        let refusal = self
            .partitioned_differently(&history)
            .or_else(|| self.started_by_other_program(&history));
        if let Some(refusal) = refusal {
            return Ok(ElementEnd {
                outcome: Outcome::Failed(refusal),
                follow: Follow::Nothing,
                last: None,
            });
        }
        // A completed step that may run again runs from the beginning. Spec: JSL-STEP-10, JSL-CHUNK-28
        let anew = completed.is_some();
        if anew && self.is_partitioned() {
            self.walk.reset(self.id)?;
        }
        let (mut state, earlier_items) = match anew {
            true => (StepState::default(), 0),
            false => (history.state, history.items),
        };
        if !matches!(self.step.body, BoundBody::Batchlet(_)) {
            // What another program has kept of items does not hold any more once items are done here.
            state.foreign.clear();
        }
        let execution = shared
            .repository
            .create_step(&shared.running.lease, &self.row(), &state)?;
        self.execute(execution, state, earlier_items)
    }

    /// Runs a partition that this thread has claimed, after `earlier_items` of its input.
    ///
    /// # Errors
    /// As `run`.
    pub(super) fn run_claimed(
        &self,
        execution: StepExecution,
        state: StepState,
        earlier_items: u64,
    ) -> Result<ElementEnd, RepositoryError> {
        self.execute(execution, state, earlier_items)
    }

    /// The step leads on by its recorded exit status, and by the transitions of today's Job XML.
    /// Spec: RESTART-05, RESTART-06, JSL-STEP-09
    fn pass_over(&self, last: &StepExecution, state: &StepState) -> ElementEnd {
        let properties = self.step.properties.clone();
        let context = StepContext::new(self.id, last.id, properties, state.user_data.clone());
        context.set_batch_status(last.status);
        context.set_exit_status(Some(&last.exit_status));
        context.set_counters(last.counters);
        let dialect = self.walk.shared.job.dialect;
        ElementEnd {
            outcome: Outcome::Completed,
            follow: self.transitions.after(dialect, last.status, &last.exit_status),
            last: Some(Last::Step(context)),
        }
    }

    /// Spec: JSL-STEP-04, JSL-STEP-05, D-59
    fn start_limit_reached(&self, history: &StepHistory) -> Option<Failure> {
        let most = self.step.max_starts?;
        (history.starts >= most).then(|| {
            let (step, job, starts) = (self.id, &self.walk.shared.job.id, history.starts);
            Failure::new(format!(
                "step `{step}` of job `{job}` has been started {starts} times in this job instance; its start-limit of \
                 {} restarts allows no more; a larger one in the Job XML would",
                most - 1
            ))
        })
    }

    fn is_partitioned(&self) -> bool {
        matches!(self.step.body, BoundBody::Partitioned(_))
    }

    /// What a step has committed whose Job XML had a partition then and has none now, or the other way round, stands under
    /// other names: it would be done again.
    fn partitioned_differently(&self, history: &StepHistory) -> Option<Failure> {
        let kept = self.walk.state_of(&self.row());
        let was_partitioned =
            kept.plan.is_some() && self.walk.since.is_none_or(|since| kept.planned >= since);
        let was_whole = history.state.reader.is_some() || history.state.writer.is_some();
        let (then, now) = match self.is_partitioned() {
            false if was_partitioned => ("had partitions", "none"),
            true if was_whole && !was_partitioned => ("had no partitions", "some"),
            _ => return None,
        };
        Some(Failure::new(format!(
            "step `{}` {then} when it ran before in this job instance, and has {now} now; what it has committed would be done \
             again: start a new instance, or restart with the Job XML as it was",
            self.id
        )))
    }

    /// What Spring Batch has committed of a chunk step, its readers' checkpoints tell only to those readers: from the
    /// beginning, it would be written again. A context without entries is one that somebody has deleted for that.
    /// Spec: RESTART-17
    fn started_by_other_program(&self, history: &StepHistory) -> Option<Failure> {
        // Of a partitioned step, only the rows of its partitions tell what they have committed.
        let may_have_committed = match self.step.body {
            BoundBody::Chunk(_) => history.committed_by_other_program,
            BoundBody::Partitioned(_) => history.state.is_of_another,
            BoundBody::Batchlet(_) => false,
        };
        let last = history.last.as_ref()?;
        if !may_have_committed || last.status == BatchStatus::Completed {
            return None;
        }
        // A checkpoint of ours is older than what the other has committed.
        let of_ours = history.state.reader.is_some().then_some("batch.stepType");
        let key = history
            .state
            .foreign
            .keys()
            .next()
            .map(String::as_str)
            .or(of_ours)?;
        Some(Failure::new(format!(
            "step `{}` was begun by another program, such as Spring Batch, which has committed some of it; where it was \
             stands in the context under keys of its own (`{key}`), so all of it would be written again: let that program \
             end it, or start a new instance for what is left",
            self.id
        )))
    }

    /// Runs the step execution from its row to its end: prepare, before, body, after, settle, record.
    fn execute(
        &self,
        mut execution: StepExecution,
        state: StepState,
        earlier_items: u64,
    ) -> Result<ElementEnd, RepositoryError> {
        let shared = self.walk.shared;
        let _span = ObservedStep::span(&execution).entered();
        let observed = ObservedStep::begin(&shared.job.id, self.id);
        let place = shared.running.publish_step(&execution.step_name, earlier_items);
        let context = StepContext::new(
            self.id,
            execution.id,
            self.step.properties.clone(),
            state.user_data.clone(),
        );
        let contexts = ContextScope {
            step: Some(context.clone()),
            ..self.walk.contexts.clone()
        };
        let foreign = state.foreign.clone();
        let (mut listeners, body) = self.prepare(&mut execution, &contexts, &context, place)?;
        let body = body.and_then(|body| self.before(&mut listeners, &contexts, body));
        let ran = body
            .map_err(Interrupt::from)
            .and_then(|body| self.run_body(body, &mut execution, state, &mut listeners, &contexts));
        let ran = self.within_time(ran)?;
        context.set_counters(execution.counters);
        let mut result = StepResult::of(ran, &context);
        self.after(listeners, &contexts, &mut result);
        let (ending, follow, failure) = self.settle(result, &context);
        self.record(&mut execution, &ending, &context, foreign)?;
        shared.running.publish_end(place, execution.counters);
        observed.end(ending.status, &ending.exit_status, execution.counters);
        context.set_batch_status(ending.status);
        context.set_exit_status(Some(&ending.exit_status));
        self.walk.worker.leave();
        let outcome = match failure {
            Some(failure) => Outcome::Failed(failure),
            None if ending.status == BatchStatus::Stopped => Outcome::Stopped,
            None => Outcome::Completed,
        };
        Ok(ElementEnd {
            outcome,
            follow,
            last: Some(Last::Step(context)),
        })
    }

    /// Makes the artifacts, before the step counts as started, and starts it.
    fn prepare<'b>(
        &'b self,
        execution: &mut StepExecution,
        contexts: &'b ContextScope,
        context: &'b StepContext,
        place: StepPlace,
    ) -> Result<(StepListeners, Result<Body<'b>, Failure>), RepositoryError> {
        let (shared, worker) = (self.walk.shared, self.walk.worker.as_ref());
        let collecting = self.walk.collecting.as_deref();
        let env = StepEnv {
            repository: shared.repository,
            running: shared.running,
            worker,
            context,
            place,
            collecting: collecting.map(|collecting| (collecting, contexts)),
        };
        let made = StepListeners::make(&self.step.listeners, contexts)
            .and_then(|listeners| Ok((listeners, self.make_body(contexts, env)?)));
        if !self.is_partition {
            shared.repository.begin_step(execution)?;
        }
        context.set_batch_status(BatchStatus::Started);
        worker.enter(context.clone());
        if let Some(limit) = self.step.timeout {
            let message = format!("step `{}` took longer than its time-out of {limit:?}", self.id);
            worker.set_deadline(limit, message);
        }
        Ok(match made {
            Ok((listeners, body)) => (listeners, Ok(body)),
            Err(failure) => (StepListeners::default(), Err(failure)),
        })
    }

    /// Calls the listeners before the step. A failure of one ends the step without running its body.
    fn before<'b>(
        &self,
        listeners: &mut StepListeners,
        contexts: &ContextScope,
        body: Body<'b>,
    ) -> Result<Body<'b>, Failure> {
        if self.is_partition {
            return Ok(body);
        }
        let shared = self.walk.shared;
        let before = shared.listeners.before_step(contexts, shared.outside);
        match before.and_then(|()| listeners.before_step()) {
            Ok(()) => Ok(body),
            Err(failure) => {
                discard(body);
                Err(failure)
            }
        }
    }

    fn run_body(
        &self,
        body: Body<'_>,
        execution: &mut StepExecution,
        state: StepState,
        listeners: &mut StepListeners,
        contexts: &ContextScope,
    ) -> Result<BodyEnd, Interrupt> {
        let shared = self.walk.shared;
        match body {
            Body::Chunk(mut chunk) => {
                let mut listeners = ChunkListeners::new(
                    (listeners, &self.step.listeners),
                    (shared.listeners, &shared.job.listeners),
                    (contexts, shared.outside),
                );
                let end = chunk.run(execution, state, &mut listeners);
                discard(chunk);
                end
            }
            Body::Batchlet(batchlet) => {
                let end = batchlet.run();
                discard(batchlet);
                Ok(end?)
            }
            Body::Partitioned(partition) => {
                let outcome = self.walk.partitions(self.id, partition, contexts);
                match outcome? {
                    Outcome::Completed => Ok(BodyEnd::Completed { exit_status: None }),
                    Outcome::Failed(failure) => Err(Interrupt::Failed(failure)),
                    // A step has no terminating elements inside.
                    Outcome::Stopped | Outcome::Terminated(_) => Ok(BodyEnd::stopped()),
                }
            }
        }
    }

    /// Makes a stop because of the time-out a failure. A step that has ended by itself has ended.
    ///
    /// # Errors
    /// If the step is fenced.
    fn within_time(
        &self,
        ran: Result<BodyEnd, Interrupt>,
    ) -> Result<Result<BodyEnd, Failure>, RepositoryError> {
        let overdue = self.walk.worker.clear_deadline();
        match (overdue, ran) {
            (_, Err(Interrupt::Fenced(error))) => Err(error),
            (_, Err(Interrupt::Failed(failure))) => Ok(Err(failure)),
            (Some(message), Ok(BodyEnd::Stopped { .. })) => Ok(Err(Failure::new(message))),
            (_, Ok(end)) => Ok(Ok(end)),
        }
    }

    /// Calls the listeners after the step, which see the final batch status, and the collector of a partition.
    /// Spec: D-82, CTX-29
    fn after(&self, mut listeners: StepListeners, contexts: &ContextScope, result: &mut StepResult<'_>) {
        let shared = self.walk.shared;
        if !self.is_partition {
            let mut failed = |thrown: Failure| result.fail(thrown);
            listeners.after_step(&mut failed);
            shared.listeners.after_step(contexts, shared.outside, &mut failed);
        }
        discard(listeners);
        // Not after an unresolved exception. Spec: SUBJOB-16
        if result.failure.is_none()
            && let Err(thrown) = self.walk.collect(contexts)
        {
            result.fail(thrown);
        }
    }

    /// Decides the exit status, what follows, and the batch status that goes with it. Spec: SEQ-26, LISTEN-STEP-04
    fn settle(&self, result: StepResult<'_>, context: &StepContext) -> (Ending, Follow, Option<Failure>) {
        let chosen = context.exit_status().or(result.exit_status);
        let element = format!("step `{}`", self.id);
        let (mut ending, failure) = ending::settle(&element, chosen, result.status, result.failure);
        let dialect = self.walk.shared.job.dialect;
        let follow = match self.is_partition {
            true => Follow::Nothing,
            false => self
                .transitions
                .after(dialect, ending.status, &ending.exit_status),
        };
        if let Follow::Terminate(termination) = &follow
            && dialect.termination_sets_step_status()
        {
            ending.status = termination.status;
        }
        (ending, follow, failure)
    }

    fn make_body<'b>(&'b self, contexts: &ContextScope, env: StepEnv<'b>) -> Result<Body<'b>, Failure> {
        Ok(match &self.step.body {
            BoundBody::Chunk(chunk) => Body::Chunk(Box::new(ChunkRunner::make(chunk, contexts, env)?)),
            BoundBody::Batchlet(batchlet) => {
                Body::Batchlet(BatchletRunner::make(batchlet, contexts, env.worker)?)
            }
            BoundBody::Partitioned(partition) => Body::Partitioned(partition),
        })
    }

    /// Writes the end of the step.
    fn record(
        &self,
        execution: &mut StepExecution,
        ending: &Ending,
        context: &StepContext,
        foreign: Foreign,
    ) -> Result<(), RepositoryError> {
        // A chunk's data was saved with its last checkpoint; what came after was rolled back. Spec: CTX-25, BLET-12
        let state = match self.step.body {
            BoundBody::Chunk(_) => None,
            BoundBody::Batchlet(_) | BoundBody::Partitioned(_) => Some(StepState {
                user_data: context.persistent_info(),
                foreign,
                ..StepState::default()
            }),
        };
        let counters = execution.counters;
        let shared = self.walk.shared;
        let recorded = shared
            .repository
            .end_step(execution, ending, counters, state.as_ref());
        recorded.inspect_err(|_| {
            // What is not in the repository is at least in the log: this is the true cause.
            tracing::error!(step = self.id, status = %ending.status, message = ending.message, "not recorded");
        })
    }
}

fn note_exception(context: &StepContext, failure: Option<&Failure>) {
    if let Some(exception) = failure.and_then(|failure| failure.exception.as_ref()) {
        context.set_exception(Arc::clone(exception));
    }
}
