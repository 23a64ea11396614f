//! One step of a job execution: from its history to its end.
// Spec: Appendix B.2 and B.3 of the catalogue, steps 1, 2 and 6

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::batchlet::BatchletRunner;
use super::body::{BodyEnd, PartitionRecorder, StepEnv};
use super::call::{Failure, Interrupt, discard};
use super::chunk::{ChunkListeners, ChunkRunner, Marked};
use super::elements::{BoundBody, BoundPartition, BoundStep, Element};
use super::ending;
use super::listeners::StepListeners;
use super::outcome::{ElementEnd, Last, Outcome};
use super::spans::step_span;
use super::threads::Collecting;
use super::walk::Walk;
use crate::artifact::ContextScope;
use crate::context::StepContext;
use crate::error::BatchError;
use crate::execution::{StepCounters, StepExecution};
use crate::observer::StepEvents;
use crate::repository::{
    ElementState, EndOfStep, Ending, NewStepExecution, OtherEntries, RepositoryError, SideWrites,
    StepHistory, StepState,
};
use crate::secret::Secrets;
use crate::status::BatchStatus;
use crate::transition::{Follow, Transitions};

/// The runner of a step's body.
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

    /// Makes the step FAILED. The first failure is recorded.
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

/// What becomes of a step, by its history.
enum Decision<'h> {
    /// It continues where the last execution has stopped, or begins.
    Start,
    /// It is complete, and runs from the beginning again.
    // Spec: JSL-STEP-10, JSL-CHUNK-28
    Repeat,
    /// It is complete.
    Skip(&'h StepExecution),
    /// It was started in this job execution.
    Continue(&'h StepExecution),
    Refuse(Failure),
}

/// Runs one step.
pub(super) struct StepRunner<'w> {
    pub(super) id: &'w str,
    pub(super) step: &'w BoundStep,
    pub(super) transitions: &'w Transitions,
    pub(super) walk: &'w Walk<'w>,
    /// Only for a partition, which has no step listeners and transitions.
    // Spec: PART-31, PART-32
    pub(super) partition: Option<&'w dyn PartitionRecorder>,
}

impl Walk<'_> {
    /// Runs a step that is no partition.
    pub(super) fn step(&self, element: &Element, step: &BoundStep) -> Result<ElementEnd, RepositoryError> {
        let runner = StepRunner {
            id: &element.id,
            step,
            transitions: &element.transitions,
            walk: self,
            partition: None,
        };
        runner.run()
    }
}

impl StepRunner<'_> {
    /// Returns the name of the step in the repository.
    // Spec: D-75
    fn row(&self) -> String {
        format!("{}{}", self.walk.prefix, self.id)
    }

    /// Runs the step, or skips it if it completed in an earlier execution.
    ///
    /// # Errors
    /// When the repository cannot record the step.
    pub(super) fn run(&self) -> Result<ElementEnd, RepositoryError> {
        let shared = self.walk.shared;
        let row = self.row();
        let new = NewStepExecution {
            name: &row,
            status: BatchStatus::Started,
            since: self.walk.since,
            is_first: shared.is_first,
        };
        let (repository, lease) = (shared.repository, &shared.running.lease);
        let kept = self.walk.state_of(&row);
        let (history, inserted) =
            repository.insert_step(lease, &new, &|history| match self.decide(history, &kept) {
                Decision::Start => Some(self.state_of_start(history.state.clone())),
                _ => None,
            })?;
        if let Some((execution, state)) = inserted {
            return self.execute(&mut execution.clone(), state, history.counters());
        }
        match self.decide(&history, &kept) {
            Decision::Skip(last) => Ok(self.skip_completed(last, &history)),
            Decision::Continue(here) => self.resume_here(here.clone(), history),
            Decision::Refuse(failure) => Ok(ElementEnd::failed(failure)),
            // It was inserted.
            Decision::Start => Err(RepositoryError::Fault),
            Decision::Repeat => {
                // The partitions of its earlier runs do not count. Before the row: if the process dies in between, nothing has run.
                if self.is_partitioned() {
                    self.walk.reset(self.id)?;
                }
                let from_start = |_: &StepHistory| Some(self.state_of_start(StepState::default()));
                let (_, inserted) = repository.insert_step(lease, &new, &from_start)?;
                let (mut execution, state) = inserted.ok_or(RepositoryError::Fault)?;
                self.execute(&mut execution, state, StepCounters::default())
            }
        }
    }

    /// Decides by the history whether the step runs. `kept` is the stored state of the element.
    fn decide<'h>(&self, history: &'h StepHistory, kept: &ElementState) -> Decision<'h> {
        let last = history.last.as_ref();
        if let Some(here) = last.filter(|last| self.is_of_this_execution(last)) {
            return Decision::Continue(here);
        }
        // Spring Batch abandons a step whose failure a transition has passed: like it, the flow continues by the exit status. Spec: REPO-92
        if let Some(last) = last.filter(|last| last.status == BatchStatus::Abandoned) {
            return Decision::Skip(last);
        }
        let completed = last.filter(|last| last.status == BatchStatus::Completed);
        if let Some(last) = completed.filter(|_| !self.step.allow_start_if_complete) {
            return Decision::Skip(last);
        }
        let refusal = history
            .unknown_end()
            .map(Failure::new)
            .or_else(|| self.start_limit_reached(history))
            .or_else(|| self.partitioned_differently(history, kept))
            .or_else(|| self.started_by_other_program(history))
            .or_else(|| self.lost_checkpoint(history));
        match refusal {
            Some(failure) => Decision::Refuse(failure),
            None if completed.is_some() => Decision::Repeat,
            None => Decision::Start,
        }
    }

    /// Returns the state that an execution begins with, after one that has left `state`.
    fn state_of_start(&self, mut state: StepState) -> StepState {
        if !matches!(self.step.body, BoundBody::Batchlet(_)) {
            // Entries of another program about its items are outdated once items are processed here.
            state.other_entries.clear();
        }
        state
    }

    fn is_of_this_execution(&self, last: &StepExecution) -> bool {
        last.job_execution_id == self.walk.shared.running.lease.execution_id
    }

    /// Continues a step that an earlier worker of the enclosing partition has started in this job execution: it runs on from its last
    /// checkpoint, or ends as it did there.
    // Spec: DISP-17
    fn resume_here(&self, here: StepExecution, history: StepHistory) -> Result<ElementEnd, RepositoryError> {
        match here.status {
            BatchStatus::Completed => Ok(self.skip_completed(&here, &history)),
            BatchStatus::Starting => match self.lost_checkpoint(&history) {
                Some(refusal) => Ok(ElementEnd::failed(refusal)),
                None => self.execute(&mut here.clone(), history.state, history.before),
            },
            status if status.is_final() => Ok(ElementEnd {
                outcome: match status {
                    BatchStatus::Stopped => Outcome::Stopped,
                    _ => Outcome::Failed(Failure::new(here.exit_message.clone())),
                },
                ..self.skip_completed(&here, &history)
            }),
            _ => Err(RepositoryError::Fenced {
                action: "resume the step",
            }),
        }
    }

    /// Runs a partition that this thread has claimed, after the executions with the counters `earlier`.
    ///
    /// # Errors
    /// See `run`.
    pub(super) fn run_claimed(
        &self,
        execution: &mut StepExecution,
        state: StepState,
        earlier: StepCounters,
    ) -> Result<ElementEnd, RepositoryError> {
        self.execute(execution, state, earlier)
    }

    /// Skips the step, which has ended: continues by its recorded exit status, and the transitions of the current Job XML.
    // Spec: RESTART-05, RESTART-06, JSL-STEP-09
    fn skip_completed(&self, last: &StepExecution, history: &StepHistory) -> ElementEnd {
        let properties = self.step.properties.clone();
        let context = StepContext::new(self.id, last.id, properties, history.state.user_data.clone())
            .after(history.before)
            .ended(last.status, &last.exit_status);
        context.set_counters(last.counters);
        let dialect = self.walk.shared.job.dialect;
        ElementEnd {
            outcome: Outcome::Completed,
            follow: self.transitions.after(dialect, last.status, &last.exit_status),
            last: Some(Last::Step(context)),
        }
    }

    pub(super) fn is_partitioned(&self) -> bool {
        matches!(self.step.body, BoundBody::Partitioned(_))
    }

    /// Runs the step execution from its row to its end: prepare, before, body, after, settle, record.
    fn execute(
        &self,
        execution: &mut StepExecution,
        state: StepState,
        earlier: StepCounters,
    ) -> Result<ElementEnd, RepositoryError> {
        let shared = self.walk.shared;
        let _span = step_span(execution).entered();
        let events = shared.running.events.step_started(
            self.id,
            execution,
            self.partition.is_some(),
            self.step.body.observed(),
            earlier,
        );
        let context = StepContext::new(
            self.id,
            execution.id,
            self.step.properties.clone(),
            state.user_data.clone(),
        )
        .of_execution(&execution.step_name, self.step.limits.checkpoint_bytes)
        .after(earlier)
        .reporting(events.datasets(|| self.secrets()));
        let contexts = ContextScope {
            step: Some(context.clone()),
            ..self.walk.contexts.clone()
        };
        let other_entries = state.other_entries.clone();
        let (mut listeners, body) = self.prepare(execution, &contexts, &context, &events)?;
        let body = body.and_then(|body| self.before(&mut listeners, &contexts, body));
        // A panic outside of the artifacts ends the step, not the thread, so that the end is recorded.
        let mut marked = None;
        let ran = body.map_err(Interrupt::from).and_then(|body| {
            let run = || self.run_body(body, execution, state, &mut listeners, &contexts, &mut marked);
            catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| Err(self.panicked(payload)))
        });
        // A fenced step returns here: another process may run it, so nothing more is called or recorded.
        let ran = self.end_of_body(ran, execution, &context)?;
        context.set_counters(execution.counters);
        let mut result = StepResult::of(ran, &context);
        self.after(listeners, &contexts, &mut result);
        // Listeners after the step may set its exit status or fail it; the transition depends on both.
        let (ending, follow, failure) = self.settle(result, &context);
        // A partition that was handed back has not ended.
        if self.record(execution, &ending, &context, other_entries)? {
            events.ended(&ending, execution.counters);
            // Not earlier: without its marker, a step that is not recorded as complete could not continue.
            Marked::remove_after(marked, ending.status);
        }
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

    /// Returns the end of the body after a panic outside of the artifacts.
    fn panicked(&self, payload: Box<dyn Any + Send>) -> Interrupt {
        let panic = BatchError::from_panic(payload);
        // Of the chunk whose transaction the panic has rolled back.
        if let (BoundBody::Chunk(_), Some(collecting)) = (&self.step.body, &self.walk.collecting) {
            collecting.roll_back();
        }
        Failure::panicked_outside(self.id, &self.secrets(), panic).into()
    }

    /// Creates the artifacts before the step's context counts as started.
    // Spec: D-102
    fn prepare<'b>(
        &'b self,
        execution: &mut StepExecution,
        contexts: &'b ContextScope,
        context: &'b StepContext,
        events: &'b StepEvents<'_>,
    ) -> Result<(StepListeners, Result<Body<'b>, Failure>), RepositoryError> {
        let (shared, worker) = (self.walk.shared, &self.walk.worker);
        let collecting = self.walk.collecting.as_deref();
        let env = StepEnv {
            repository: shared.repository,
            running: shared.running,
            worker,
            context,
            data: &self.walk.data,
            events,
            collecting: collecting.map(|collecting| (collecting, contexts)),
            partition: self.partition,
        };
        // The outputs are claimed before an artifact can open one of them.
        let made = shared
            .running
            .outputs
            .claim(self.step, &self.walk.lanes)
            .and_then(|()| StepListeners::make(&self.step.listeners, contexts))
            .and_then(|listeners| Ok((listeners, self.make_body(contexts, env)?)));
        // One that a dead worker of the enclosing partition has started.
        if execution.status == BatchStatus::Starting {
            shared.repository.begin_step(execution)?;
        }
        context.set_batch_status(BatchStatus::Started);
        // After STARTED is set, because a pending stop request makes it STOPPING.
        worker.enter(context.clone());
        self.step
            .limits
            .watch(self.id, context, self.step.body.observed(), worker);
        Ok(match made {
            Ok((listeners, body)) => (listeners, Ok(body)),
            Err(failure) => (StepListeners::default(), Err(failure)),
        })
    }

    /// Calls the listeners before the step. The failure of one ends the step without running its body.
    fn before<'b>(
        &self,
        listeners: &mut StepListeners,
        contexts: &ContextScope,
        body: Body<'b>,
    ) -> Result<Body<'b>, Failure> {
        if self.partition.is_some() {
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

    /// Returns the secrets that the artifacts of the body know.
    fn secrets(&self) -> Secrets {
        match &self.step.body {
            BoundBody::Chunk(chunk) => chunk.reader.properties.secrets.clone(),
            BoundBody::Batchlet(batchlet) => batchlet.properties.secrets.clone(),
            BoundBody::Partitioned(_) => Secrets::default(),
        }
    }

    fn run_body(
        &self,
        body: Body<'_>,
        execution: &mut StepExecution,
        state: StepState,
        listeners: &mut StepListeners,
        contexts: &ContextScope,
        marked: &mut Option<Marked>,
    ) -> Result<BodyEnd, Interrupt> {
        let shared = self.walk.shared;
        match body {
            Body::Chunk(mut chunk) => {
                let mut listeners = ChunkListeners::new(
                    listeners,
                    &self.step.listeners,
                    shared.listeners,
                    &shared.job.listeners,
                    contexts,
                    shared.outside,
                );
                let end = chunk.run(execution, state, &mut listeners);
                *marked = chunk.take_marked();
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
                    // A step contains no terminating elements.
                    Outcome::Stopped | Outcome::Terminated(_) => Ok(BodyEnd::stopped()),
                }
            }
        }
    }

    /// Returns how the body has ended. If the last chunk of a partition has recorded the end, nothing that fails later, when artifacts are
    /// dropped, changes it.
    ///
    /// # Errors
    /// If the step is fenced.
    // Spec: D-107
    fn end_of_body(
        &self,
        ran: Result<BodyEnd, Interrupt>,
        execution: &StepExecution,
        context: &StepContext,
    ) -> Result<Result<BodyEnd, Failure>, RepositoryError> {
        if !has_recorded_end(execution) {
            return self.within_limits(ran);
        }
        // The thread may run another partition, which must not inherit the limits or a stop that they caused.
        self.walk.worker.clear_limits();
        if let Err(Interrupt::Failed(failure)) = ran {
            let message = failure.message;
            tracing::error!(step = self.id, message, "a failure after the end was recorded");
        }
        context.set_exit_status(Some(&execution.exit_status));
        Ok(Ok(BodyEnd::Completed { exit_status: None }))
    }

    /// Turns a stop because of an exceeded limit or a lease that may be lost into a failure, unless the step has ended by itself.
    ///
    /// # Errors
    /// If the step is fenced.
    fn within_limits(
        &self,
        ran: Result<BodyEnd, Interrupt>,
    ) -> Result<Result<BodyEnd, Failure>, RepositoryError> {
        let overdue = self.walk.worker.clear_limits();
        let cause = || {
            overdue
                .map(Failure::new)
                .or_else(|| self.walk.shared.running.distrusted())
        };
        match ran {
            Err(Interrupt::Fenced(error)) => Err(error),
            Err(Interrupt::Failed(failure)) => Ok(Err(failure)),
            Ok(end @ BodyEnd::Stopped { .. }) => Ok(cause().map_or(Ok(end), Err)),
            Ok(end) => Ok(Ok(end)),
        }
    }

    /// Calls the listeners after the step, which see the final batch status, and the collector of a partition.
    // Spec: D-82, CTX-29
    fn after(&self, mut listeners: StepListeners, contexts: &ContextScope, result: &mut StepResult<'_>) {
        let shared = self.walk.shared;
        if self.partition.is_none() {
            let mut failed = |thrown: Failure| result.fail(thrown);
            listeners.after_step(&mut failed);
            shared.listeners.after_step(contexts, shared.outside, &mut failed);
        }
        discard(listeners);
        if self.is_collected_at_end(result)
            && let Err(thrown) = self.walk.collect(contexts)
        {
            result.fail(thrown);
        }
    }

    /// Returns whether the collector is called after the step.
    // Spec: SUBJOB-03, SUBJOB-04, SUBJOB-16, D-45, JAK-34
    fn is_collected_at_end(&self, result: &StepResult<'_>) -> bool {
        let dialect = self.walk.shared.job.dialect;
        match self.step.body {
            BoundBody::Batchlet(_) => result.failure.is_none() || dialect.collects_after_failed_batchlet(),
            BoundBody::Chunk(_) => result.failure.is_none() && dialect.collects_at_end_of_chunk_step(),
            BoundBody::Partitioned(_) => result.failure.is_none(),
        }
    }

    /// Determines exit status, successor and batch status.
    // Spec: SEQ-26, LISTEN-STEP-04
    fn settle(&self, result: StepResult<'_>, context: &StepContext) -> (Ending, Follow, Option<Failure>) {
        let chosen = context.exit_status().or(result.exit_status);
        let element = format!("step `{}`", self.id);
        let (ending, failure) = ending::settle(&element, chosen, result.status, result.failure);
        let mut ending = ending.described(context.exit_description(&self.secrets()));
        let dialect = self.walk.shared.job.dialect;
        let follow = match self.partition {
            Some(_) => Follow::Nothing,
            None => self
                .transitions
                .after(dialect, ending.status, &ending.exit_status),
        };
        if let Follow::Terminate(termination) = &follow
            && dialect.termination_sets_step_status()
        {
            // A restart would pass over a complete step, and its transition would end the job again.
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

    /// Copies fields of the step's persistent user data to the data of the job.
    // Spec: DATA-04
    fn promote(&self, context: &StepContext) {
        let names = &self.step.promoted;
        let Some(stored) = context.persistent_info().filter(|_| !names.is_empty()) else {
            return;
        };
        for problem in self.walk.data.promote(names, stored.as_json()) {
            tracing::warn!(step = self.id, "`batch.step.promote`: {problem}");
        }
    }

    /// Records the end of the step, unless its last chunk has. Returns `false` if the partition was handed back instead.
    fn record(
        &self,
        execution: &mut StepExecution,
        ending: &Ending,
        context: &StepContext,
        other_entries: OtherEntries,
    ) -> Result<bool, RepositoryError> {
        if has_recorded_end(execution) {
            return Ok(true);
        }
        let shared = self.walk.shared;
        let is_stopped = ending.status == BatchStatus::Stopped;
        // A partition that has completed or failed is not handed back: it would run again.
        if self.partition.is_some() && is_stopped && shared.running.is_handing_back() {
            shared.repository.worker_store()?.hand_back_partition(execution)?;
            return Ok(false);
        }
        let state = match self.step.body {
            BoundBody::Chunk(_) if shared.job.dialect.keeps_user_data_of_failed_chunk() => {
                // The checkpoints in memory may belong to an interval that was rolled back.
                let kept = shared.repository.step(execution.id)?;
                kept.map(|(_, kept)| StepState {
                    user_data: context.persistent_info(),
                    ..kept
                })
            }
            // The data of a chunk was stored with its last checkpoint; later data was rolled back. Spec: CTX-25, BLET-12
            BoundBody::Chunk(_) => None,
            BoundBody::Batchlet(_) | BoundBody::Partitioned(_) => Some(StepState {
                user_data: context.persistent_info(),
                other_entries,
                ..StepState::default()
            }),
        };
        // Before the data is read, so that it is committed with the end of the step.
        if ending.status == BatchStatus::Completed && self.partition.is_none() {
            self.promote(context);
        }
        let collecting = self.walk.collecting.as_deref();
        let side_writes = SideWrites {
            data: self.walk.data.pending(),
            payloads: collecting.map(Collecting::reports).unwrap_or_default(),
        };
        let mut write = |next: Option<&mut StepExecution>| {
            let lease = &shared.running.lease;
            let end = EndOfStep { ending, next };
            shared
                .repository
                .end_step(lease, execution, end, state.as_ref(), &side_writes)
        };
        let recorded = match self.partition {
            Some(partition) => partition.record(ending.status, &mut write),
            None => write(None),
        };
        if recorded.is_ok() {
            self.walk.data.committed(side_writes.data);
            if let Some(collecting) = collecting {
                collecting.committed();
            }
        }
        recorded.map(|()| true).inspect_err(|_| {
            // Logs the true cause, which could not be recorded.
            tracing::error!(step = self.id, status = %ending.status, message = ending.message, "cannot record the end of the step");
        })
    }
}

/// Returns whether the last chunk of a partition has recorded its end.
// Spec: D-107
fn has_recorded_end(execution: &StepExecution) -> bool {
    execution.status == BatchStatus::Completed
}

fn note_exception(context: &StepContext, failure: Option<&Failure>) {
    if let Some(exception) = failure.and_then(|failure| failure.exception.as_ref()) {
        context.set_exception(Arc::clone(exception));
    }
}
