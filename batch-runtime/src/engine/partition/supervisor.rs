//! Supervises the partitions of one element, on the thread that waits for them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::deaths::Deaths;
use super::local::LocalThreads;
use super::payloads::Payloads;
use super::placement::{PartitionAction, Placement, Received, Submitted, TOGETHER, Workers};
use super::prepare::Preparation;
use super::{Ended, EndedHere, PartitionedElement};
use crate::artifact::ContextScope;
use crate::checkpoint::CheckpointInfo;
use crate::dispatch::{DEFAULT_QUEUE, PartitionEvent, PartitionTicket};
use crate::engine::call::Failure;
use crate::engine::elements::BoundPartition;
use crate::engine::outcome::Outcome;
use crate::engine::threads::{Analysis, SubjobOutcomes, SubjobThreads, lock};
use crate::engine::walk::Walk;
use crate::error::error_chain;
use crate::execution::StepExecution;
use crate::ids::StepExecutionId;
use crate::observer::JobEventKind;
use crate::repository::{
    ElementState, EndOfStep, Ending, InnerSteps, RepositoryError, SideWrites, StepState,
};
use crate::status::BatchStatus;
use crate::thread;
use crate::transition::Termination;

/// The longest wait for an event between two checks for stop requests and expired leases.
const WAIT: Duration = Duration::from_millis(200);

impl Walk<'_> {
    /// Returns the stored state of an element.
    pub(in crate::engine) fn state_of(&self, key: &str) -> Arc<ElementState> {
        self.shared.states.get(key)
    }

    /// Changes the state of an element and stores it.
    pub(in crate::engine) fn save_state(
        &self,
        key: &str,
        change: impl FnOnce(&mut ElementState),
    ) -> Result<(), RepositoryError> {
        let shared = self.shared;
        shared.states.keep(key, change, |state| {
            shared
                .repository
                .save_element_state(&shared.running.lease, key, state)
        })
    }

    /// Resets the partitions of a step that was complete and runs again. Called before anything else of it is recorded.
    pub(in crate::engine) fn reset(&self, id: &str) -> Result<(), RepositoryError> {
        let this = self.shared.running.lease.execution_id.0;
        self.save_state(&format!("{}{id}", self.prefix), |state| {
            *state = ElementState {
                since: Some(this),
                ..ElementState::default()
            };
        })
    }

    /// Runs the partitions of the step or flow `id`.
    pub(in crate::engine) fn partitions(
        &self,
        id: &str,
        partition: &BoundPartition,
        contexts: &ContextScope,
    ) -> Result<Outcome, RepositoryError> {
        let key = format!("{}{id}", self.prefix);
        let mut analysis = match Analysis::make(partition.subjobs.analyzer.as_ref(), contexts) {
            Ok(analysis) => analysis,
            Err(failure) => return Ok(Outcome::Failed(failure)),
        };
        let logical_tx = partition.subjobs.logical_tx.as_ref();
        // A complete partition is skipped, regardless of its steps.
        self.in_logical_tx(&key, logical_tx, contexts, false, || {
            let plan = match self.plan(&key, partition, contexts)? {
                Ok(plan) => plan,
                Err(failure) => return Ok((Outcome::Failed(failure), BatchStatus::Failed)),
            };
            let element = PartitionedElement::new(self, id, &key, partition, &plan, contexts);
            let planned = element.planned();
            if let Some(failure) = element.shared_data() {
                return Ok((Outcome::Failed(failure), BatchStatus::Failed));
            }
            self.shared.running.events.emit(JobEventKind::PartitionsPlanned {
                element: key.clone(),
                planned,
            });
            let outcomes = element.run(&mut analysis)?;
            Ok(match analysis.failure.take() {
                // A failed callback fails the element. Spec: LTX-21
                Some(failure) => (Outcome::Failed(failure), BatchStatus::Failed),
                None => (self.explained(&key, outcomes.outcome()), outcomes.worst()),
            })
        })
    }
}

impl PartitionedElement<'_> {
    /// Runs the partitions that are not complete.
    fn run(&self, analysis: &mut Analysis<'_>) -> Result<SubjobOutcomes, RepositoryError> {
        let shared = &self.walk.shared;
        let mut outcomes = SubjobOutcomes::default();
        let dispatch = shared.dispatch.and_then(|dispatch| {
            let name = dispatch.dispatchers.name(self.bound.dispatcher.as_deref());
            dispatch.dispatchers.get(name)
        });
        match dispatch {
            None => {
                let supervised = thread::scoped(|scope| {
                    let threads = SubjobThreads::new(scope, shared.running, &self.walk.worker);
                    let mut threads = LocalThreads::new(self, threads);
                    Supervisor::new(self, &mut threads, analysis, &mut outcomes).run();
                });
                // The threads catch panics.
                supervised.map_err(|_| RepositoryError::Fault)?;
            }
            Some(dispatcher) => match dispatcher.open(shared.running.lease.execution_id, self.queue()) {
                Ok(channel) => {
                    shared.running.dispatches();
                    let mut workers = Workers::new(self, self.queue(), channel);
                    Supervisor::new(self, &mut workers, analysis, &mut outcomes).run();
                }
                Err(error) => {
                    let failure = Failure::new(format!(
                        "the partitions of `{}` cannot be dispatched: {}",
                        self.id,
                        error_chain(&error)
                    ));
                    outcomes.insert(0, Outcome::Failed(failure), None);
                }
            },
        }
        match outcomes.broken.take() {
            Some(error) => Err(error),
            None => Ok(outcomes),
        }
    }

    fn queue(&self) -> &str {
        self.bound.queue.as_deref().unwrap_or(DEFAULT_QUEUE)
    }

    /// Ends a partition that no worker runs.
    pub(super) fn end(&self, row: StepExecutionId, ending: &Ending) -> Ended {
        let repository = self.walk.shared.repository;
        let (mut row, state) = repository.step(row)?.ok_or(RepositoryError::Fault)?;
        // Its worker may have recorded an end meanwhile, which counts.
        if !row.status.is_final() {
            if self.bound.inner != InnerSteps::None
                && let Ok(store) = repository.worker_store()
            {
                store.close_inner_steps(&self.walk.shared.running.lease, &row)?;
            }
            let end = EndOfStep { ending, next: None };
            let lease = &self.walk.shared.running.lease;
            repository.end_step(lease, &mut row, end, None, &SideWrites::default())?;
        }
        self.ended(&row, &state)
    }

    /// Claims a partition so that no worker can. Returns `false` if a worker has claimed it.
    fn claim_from_workers(&self, row: StepExecutionId) -> bool {
        let store = self.walk.shared.repository.worker_store();
        // After an error a worker may have claimed it, so the caller must not end it.
        matches!(store.and_then(|store| store.withhold_partition(row)), Ok(true))
    }

    /// Returns the end of a partition according to its row.
    // Spec: PART-26, FPART-09
    pub(super) fn ended(&self, row: &StepExecution, state: &StepState) -> Ended {
        let termination = state
            .termination
            .as_ref()
            .map(CheckpointInfo::decode::<Termination>);
        let termination = termination.transpose().map_err(|error| RepositoryError::Corrupt {
            row: format!("the context of step execution {}", row.id),
            problem: error.into(),
        });
        let outcome = match (termination?, row.status) {
            (Some(termination), _) => Outcome::Terminated(termination),
            (None, BatchStatus::Completed) => Outcome::Completed,
            (None, BatchStatus::Stopped) => Outcome::Stopped,
            (None, _) => {
                let number = row.step_name.rsplit(':').next().unwrap_or_default();
                self.failed(number, Failure::new(row.exit_message.clone()))
            }
        };
        Ok((outcome, row.exit_status.clone()))
    }
}

/// Submits the partitions of an element to a [`Placement`] and waits for them.
pub(super) struct Supervisor<'s, 'a> {
    pub(super) element: &'s PartitionedElement<'s>,
    placement: &'s mut dyn Placement,
    analysis: &'s mut Analysis<'a>,
    pub(super) outcomes: &'s mut SubjobOutcomes,
    /// The partitions that are not prepared yet.
    pending: RangeInclusive<u32>,
    /// The submitted partitions that have not ended.
    pub(super) submitted: Submitted,
    /// The submitted partitions whose worker may be dead, and when to check next.
    pub(super) lost: BTreeMap<StepExecutionId, Instant>,
    /// The deaths of the workers of submitted partitions.
    pub(super) deaths: BTreeMap<StepExecutionId, Deaths>,
    payloads: Payloads,
    /// The outcomes of partitions that do not run; they count once the others have ended.
    settled: Vec<(usize, Outcome, String)>,
    /// True once the partitions were requested to stop.
    is_stopping: bool,
    /// False once a prepared partition was ended instead of submitted.
    all_began: bool,
}

impl<'s, 'a> Supervisor<'s, 'a> {
    fn new(
        element: &'s PartitionedElement<'s>,
        placement: &'s mut dyn Placement,
        analysis: &'s mut Analysis<'a>,
        outcomes: &'s mut SubjobOutcomes,
    ) -> Self {
        Self {
            pending: 1..=element.planned(),
            element,
            placement,
            analysis,
            outcomes,
            submitted: BTreeMap::new(),
            lost: BTreeMap::new(),
            deaths: BTreeMap::new(),
            payloads: Payloads::new(),
            settled: Vec::new(),
            is_stopping: false,
            all_began: true,
        }
    }

    // Spec: PART-04, PART-25, PART-28, PART-29, PART-34, FPART-08, D-32
    fn run(mut self) {
        let walk = self.element.walk;
        loop {
            self.submit_pending();
            if self.has_to_stop() {
                self.stop();
                self.end_ready();
            }
            if self.submitted.is_empty() {
                break;
            }
            match self.placement.receive(WAIT) {
                Ok(Some(event)) => self.handle_arrived(event),
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(
                        error = error_chain(&error),
                        element = self.element.id,
                        "the channel to the workers of the partitions is broken"
                    );
                    self.outcomes.broken.get_or_insert(RepositoryError::Fault);
                    // Their reports may never arrive: the repository shows which of them still run.
                    let now = Instant::now();
                    self.lost.extend(self.submitted.keys().map(|id| (*id, now)));
                    // `receive` may have failed without waiting.
                    walk.worker.pause(WAIT);
                }
            }
            self.attend();
            self.reopen_lost();
        }
        self.end_ready();
        let stopped_before_all_began = !self.pending.is_empty() || !self.all_began;
        if stopped_before_all_began && self.analysis.failure.is_none() && !self.outcomes.are_ending() {
            // The partitions that began may all be complete, but the element is not.
            self.outcomes.insert(usize::MAX, Outcome::Stopped, None);
        }
        for (number, outcome, exit_status) in self.settled {
            self.outcomes.insert(number, outcome, Some(exit_status));
        }
    }

    /// Returns whether no other partition may start, and those that run must stop.
    pub(super) fn has_to_stop(&self) -> bool {
        let walk = self.element.walk;
        self.analysis.failure.is_some()
            || self.outcomes.stop_siblings(walk.shared.job.dialect)
            || walk.worker.stop_requested()
    }

    /// Submits ready partitions up to the limit, and prepares the next ones, many together. For threads it prepares ahead, so that a free
    /// thread finds a row.
    fn submit_pending(&mut self) {
        let limit = self.limit();
        let is_here = self.placement.is_here();
        while !self.has_to_stop() {
            let free = limit.saturating_sub(self.submitted.len());
            let next = {
                let mut ready = lock(&self.element.ready);
                let count = free.min(ready.len());
                ready.drain(..count).collect()
            };
            self.submit(next);
            let free = limit.saturating_sub(self.submitted.len());
            let ready = lock(&self.element.ready).len();
            let count = self.placement.prepare_now(ready, free, limit);
            let numbers: Vec<u32> = self.pending.by_ref().take(count).collect();
            if numbers.is_empty() {
                return;
            }
            let mut prepared = Vec::new();
            let all = self.element.prepare_all(&numbers, is_here, &mut prepared);
            // Also after an error: the rows that exist have to be ended.
            prepared.sort_by_key(|(number, _)| *number);
            self.add_prepared(prepared);
            if let Err(error) = all {
                self.outcomes.broken.get_or_insert(error);
                return;
            }
        }
    }

    /// Returns the most partitions that are submitted and have not ended.
    fn limit(&self) -> usize {
        let element = self.element;
        // With no thread no partition would start, and the element would end STOPPED.
        let planned = element.plan.threads().map(|threads| threads.max(1) as usize);
        let stated = element.bound.threads.or(planned);
        stated.unwrap_or_else(|| self.placement.at_a_time())
    }

    /// Adds partitions to those that are ready, and notes those that do not run.
    fn add_prepared(&mut self, prepared: Vec<(u32, Preparation)>) {
        let dialect = self.element.walk.shared.job.dialect;
        let running = self.element.walk.shared.running;
        for (number, preparation) in prepared {
            match preparation {
                Preparation::Settled(outcome, exit_status) => {
                    self.count_ended(number, Some(outcome.status()));
                    let is_complete = matches!(outcome, Outcome::Completed);
                    if !is_complete || dialect.analyzes_complete_partitions() {
                        self.analysis.ended(outcome.status(), &exit_status);
                    }
                    self.settled.push((number as usize, outcome, exit_status));
                }
                Preparation::Ready(row) => {
                    let dispatch = self.element.walk.shared.dispatch;
                    lock(&self.element.ready).push_back(PartitionTicket {
                        job_execution: row.job_execution_id,
                        step_execution: row.id,
                        attempt: 1,
                        fingerprint: dispatch
                            .map_or_else(String::new, |dispatch| dispatch.fingerprint.clone()),
                        traceparent: running.events.traceparent().map(str::to_owned),
                    });
                }
            }
        }
    }

    /// Ends the prepared partitions that were not submitted.
    fn end_ready(&mut self) {
        let ending = Ending::of(BatchStatus::Stopped, String::new());
        // Taken under the lock, so that no thread starts a partition that is ended here.
        let ready = std::mem::take(&mut *lock(&self.element.ready));
        self.all_began &= ready.is_empty();
        for ticket in ready {
            if let Err(error) = self.element.end(ticket.step_execution, &ending) {
                let is_row = matches!(error, RepositoryError::Corrupt { .. });
                self.outcomes.broken.get_or_insert(error);
                // Without a database each of the others would wait for it, too. The next claim ends them.
                if !is_row {
                    return;
                }
            }
        }
    }

    pub(super) fn submit(&mut self, tickets: Vec<PartitionTicket>) {
        if tickets.is_empty() {
            return;
        }
        let submitted = self.placement.submit(&tickets);
        for ticket in tickets {
            let id = ticket.step_execution;
            match &submitted {
                // Some may have arrived before the error: only a partition that no worker can claim is ended.
                Err(error) if self.element.claim_from_workers(id) => {
                    self.fail(
                        id,
                        format!("the partition cannot be dispatched: {}", error_chain(error)),
                    );
                }
                // Submitted, if a worker was faster.
                _ => drop(self.submitted.insert(id, ticket)),
            }
        }
    }

    fn handle(&mut self, event: PartitionEvent) {
        match event {
            PartitionEvent::Declined(id, reason) => {
                if self.submitted.contains_key(&id) {
                    self.placement.declined(reason);
                }
            }
            PartitionEvent::Ended(id) => self.ended(&[id]),
            PartitionEvent::Lost(id) => {
                if self.submitted.contains_key(&id) {
                    self.is_lost(id);
                }
            }
        }
    }

    /// Handles an event and those that have arrived with it.
    fn handle_arrived(&mut self, event: Received) {
        let mut next = Some(event);
        let (mut ended, mut handled) = (Vec::new(), 0);
        while let Some(event) = next.take() {
            match event {
                Received::Event(PartitionEvent::Ended(id)) if !self.placement.is_here() => ended.push(id),
                // In the order the threads have reported.
                Received::Event(other) => self.handle(other),
                Received::Collected(id, data) if self.submitted.contains_key(&id) => self.analysis.data(data),
                // Its partition has ended.
                Received::Collected(..) => {}
            }
            handled += 1;
            if handled < TOGETHER {
                next = self.placement.receive(Duration::ZERO).ok().flatten();
            }
        }
        self.ended(&ended);
    }

    /// Notes the ends of partitions, from their rows or from this process.
    fn ended(&mut self, ids: &[StepExecutionId]) {
        let mut ids = ids.to_vec();
        // A report may arrive twice, or after a poll has found the end.
        ids.retain(|id| self.submitted.contains_key(id) && !self.note_end_here(*id));
        if ids.is_empty() {
            return;
        }
        let rows = match self.element.walk.shared.repository.steps(&ids) {
            Ok(rows) => rows,
            Err(error) => {
                self.outcomes.broken.get_or_insert(error);
                Vec::new()
            }
        };
        let final_rows = rows.iter().filter(|(row, _)| row.status.is_final());
        let final_ids: Vec<StepExecutionId> = final_rows.map(|(row, _)| row.id).collect();
        // After the rows: a worker records the end when it has stored the last payload.
        self.pass_payloads(&final_ids, true);
        let mut unknown: BTreeSet<StepExecutionId> = ids.into_iter().collect();
        for (row, state) in rows {
            let id = row.id;
            unknown.remove(&id);
            // A worker that returns without an end could not record it: it is fenced, or its database is out of reach.
            if !row.status.is_final() {
                self.is_lost(id);
            } else if self.submitted.remove(&id).is_some() {
                self.lost.remove(&id);
                self.note(id, self.element.ended(&row, &state));
            }
        }
        for id in unknown {
            self.submitted.remove(&id);
            self.note(id, Err(RepositoryError::Fault));
        }
    }

    /// Notes the end of a partition that ran in this process. Returns `false` if it ran elsewhere.
    fn note_end_here(&mut self, id: StepExecutionId) -> bool {
        let ended = lock(&self.element.ended_here).remove(&id);
        let Some(EndedHere { ended, next }) = ended else {
            return false;
        };
        self.submitted.remove(&id);
        // The thread runs the next partition already, so the element waits for it, too.
        self.submitted
            .extend(next.map(|next| (next.step_execution, next)));
        self.note(id, ended);
        true
    }

    /// Passes the stored payloads of partitions in workers to the analyzer.
    // Spec: SUBJOB-09, SUBJOB-11
    fn pass_payloads(&mut self, partitions: &[StepExecutionId], have_ended: bool) {
        if self.placement.is_here() || !self.analysis.is_present() || partitions.is_empty() {
            return;
        }
        let repository = self.element.walk.shared.repository;
        match self.payloads.take(repository, partitions) {
            Ok(payloads) => payloads
                .into_iter()
                .for_each(|payload| self.analysis.data(payload)),
            Err(error) if have_ended || matches!(error, RepositoryError::Corrupt { .. }) => {
                self.outcomes.broken.get_or_insert(error);
            }
            // They are read at the end, too.
            Err(error) => tracing::debug!(%error, "cannot read the payloads of collectors"),
        }
    }

    /// Requests the partitions to stop.
    // Spec: PART-25, PART-28
    fn stop(&mut self) {
        // The next round of the loop repeats a request that has failed.
        self.is_stopping = self.is_stopping || self.placement.stop(&self.submitted);
    }

    /// Handles the submitted partitions whose end, worker or ticket was lost.
    fn attend(&mut self) {
        if self.payloads.are_due() {
            let running: Vec<StepExecutionId> = self.submitted.keys().copied().collect();
            self.pass_payloads(&running, false);
        }
        for action in self.placement.attend(&self.submitted, self.is_stopping) {
            match action {
                PartitionAction::NoteEnd(id) => self.ended(&[id]),
                PartitionAction::Reopen(id) => self.is_lost(id),
                PartitionAction::EndUnclaimed(id) => self.end_unclaimed(id),
                PartitionAction::SubmitAgain(id) => self.submit_same(id),
            }
        }
    }

    /// Ends a partition that was stopped before a worker has claimed it.
    fn end_unclaimed(&mut self, id: StepExecutionId) {
        // A worker may be about to claim it, and only one of the two can.
        if self.element.claim_from_workers(id) && self.submitted.remove(&id).is_some() {
            self.end(id, &Ending::of(BatchStatus::Stopped, String::new()));
        }
    }

    /// Ends a partition that no worker runs. An earlier worker may have committed payloads.
    pub(super) fn end(&mut self, id: StepExecutionId, ending: &Ending) {
        let ended = self.element.end(id, ending);
        self.pass_payloads(&[id], true);
        self.note(id, ended);
    }

    /// Submits a partition whose ticket may be lost.
    fn submit_same(&mut self, id: StepExecutionId) {
        if let Some(ticket) = self.submitted.get(&id)
            && let Err(error) = self.placement.submit(std::slice::from_ref(ticket))
        {
            tracing::warn!(step_execution = %id, error = error_chain(&error), "cannot submit the partition again");
        }
    }

    /// Ends a partition as FAILED.
    pub(super) fn fail(&mut self, id: StepExecutionId, problem: String) {
        self.end(id, &Ending::of(BatchStatus::Failed, problem));
    }

    /// Counts the end of a partition.
    // Spec: SUBJOB-10
    pub(super) fn note(&mut self, id: StepExecutionId, ended: Ended) {
        let status = ended.as_ref().ok().map(|(outcome, _)| outcome.status());
        self.count_ended(self.element.number_of(id), status);
        match ended {
            Ok((outcome, exit_status)) => {
                self.analysis.ended(outcome.status(), &exit_status);
                let number = self.element.number_of(id);
                self.outcomes.insert(number as usize, outcome, Some(exit_status));
            }
            Err(error) => {
                self.outcomes.broken.get_or_insert(error);
            }
        }
    }

    fn count_ended(&self, partition: u32, status: Option<BatchStatus>) {
        let running = self.element.walk.shared.running;
        running.events.emit(JobEventKind::PartitionEnded {
            element: self.element.key.to_owned(),
            partition,
            status,
        });
    }
}
