//! Partitioned steps and flows, on the thread that waits for the partitions: the plan, whose turn it is, how they ended.
//!
//! Spec: PART-01 to PART-34, FPART-01 to FPART-11, PALG-01, PALG-03, PPLAN-04, D-34, D-48 to D-50, D-67, D-75

use std::collections::BTreeMap;
use std::io;

use super::call::{Failure, call, discard};
use super::dispatch::{LocalThreads, PartitionDispatcher, PartitionEvent, PartitionTicket, Thrown};
use super::elements::BoundPartition;
use super::ending;
use super::subjobs::{Analysis, Crew, Ends};
use super::walk::{Outcome, Walk};
use crate::artifact::ContextScope;
use crate::checkpoint::CheckpointInfo;
use crate::execution::StepExecution;
use crate::plan::PartitionPlan;
use crate::repository::{ElementState, RepositoryError, StepState};
use crate::status::BatchStatus;
use crate::transition::Termination;

/// The partitions of one element.
pub(super) struct Partitions<'p> {
    pub(super) walk: &'p Walk<'p>,
    /// The id of the element.
    pub(super) id: &'p str,
    /// The same as the repository knows it, with the partitions around. Spec: D-75
    pub(super) key: &'p str,
    pub(super) bound: &'p BoundPartition,
    pub(super) plan: &'p PartitionPlan,
    /// What came before this job execution does not count.
    pub(super) since: Option<i64>,
    /// The contexts of the element.
    pub(super) contexts: &'p ContextScope,
}

/// What is to be done for a partition.
enum Prepared {
    /// Nothing: an earlier execution completed it.
    Complete(StepExecution, StepState),
    /// Its row stands.
    Ready(PartitionTicket, StepExecution),
}

impl Walk<'_> {
    /// What is kept of the element.
    pub(super) fn state_of(&self, key: &str) -> ElementState {
        self.shared.states.get(key)
    }

    /// Changes what is kept of the element, and records it.
    pub(super) fn keep_state(
        &self,
        key: &str,
        change: impl FnOnce(&mut ElementState),
    ) -> Result<(), RepositoryError> {
        let shared = self.shared;
        shared.states.keep(key, change, |states| {
            shared
                .repository
                .save_element_states(&shared.running.lease, states)
        })
    }

    /// The step `id` runs again although it was complete: what its partitions left does not count. Before anything else
    /// of it is recorded.
    pub(super) fn begin_anew(&self, id: &str) -> Result<(), RepositoryError> {
        let this = self.shared.running.lease.execution_id.0;
        self.keep_state(&format!("{}{id}", self.prefix), |state| {
            *state = ElementState {
                since: Some(this),
                ..ElementState::default()
            };
        })
    }

    /// Runs the partitions of the step or flow `id`.
    pub(super) fn partitions(
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
        // A complete partition is passed over, whatever its steps say.
        self.in_logical_tx(&key, logical_tx, contexts, false, || {
            let plan = match self.plan(&key, partition, contexts)? {
                Ok(plan) => plan,
                Err(failure) => return Ok((Outcome::Failed(failure), BatchStatus::Failed)),
            };
            let mut ends = Ends::default();
            let partitions = Partitions {
                walk: self,
                id,
                key: &key,
                bound: partition,
                plan: &plan,
                since: self.state_of(&key).since.max(self.since),
                contexts,
            };
            let planned = u32::try_from(plan.sub_job_count()).unwrap_or(0);
            self.shared.running.publish_partitions(&key, |partitions| {
                partitions.planned = planned;
                partitions.ended = 0;
            });
            partitions.run(&mut analysis, &mut ends)?;
            if let Some(error) = ends.broken {
                return Err(error);
            }
            Ok(match analysis.failure.take() {
                // A callback that failed fails the element. Spec: LTX-21
                Some(failure) => (Outcome::Failed(failure), BatchStatus::Failed),
                None => (ends.outcome(), ends.worst()),
            })
        })
    }

    /// The plan that is kept, else that of the algorithm, else what the XML says; kept before anything runs.
    /// Spec: PART-18, PART-20 to PART-24, PART-30, D-49, D-50
    fn plan(
        &self,
        key: &str,
        partition: &BoundPartition,
        contexts: &ContextScope,
    ) -> Result<Result<PartitionPlan, Failure>, RepositoryError> {
        let kept = self.state_of(key);
        // What was planned within an element whose work was undone is planned anew. Spec: D-48
        let counts = self.since.is_none_or(|since| kept.planned >= since);
        let algorithm = partition.algorithm.as_ref().map(|bound| bound.name.as_str());
        if let Some(plan) = kept.plan.filter(|_| counts) {
            let change = if kept.algorithm.is_some() != algorithm.is_some() {
                "an algorithm has been added or removed since".to_owned()
            } else if algorithm.is_none() && i64::from(plan.sub_job_count()) != i64::from(partition.instances)
            {
                let (then, now) = (plan.sub_job_count(), partition.instances);
                format!("there were {then} partitions, and the Job XML has {now} now")
            } else {
                return Ok(Ok(plan));
            };
            return Ok(Err(Failure::new(format!(
                "the partitions were planned otherwise before: {change}, and what has been committed does not belong to other \
                 partitions; start a new instance, or restart with the Job XML as it was"
            ))));
        }
        let plan = match &partition.algorithm {
            None => Ok(PartitionPlan::new(
                i32::try_from(partition.instances).unwrap_or(i32::MAX),
            )),
            Some(bound) => bound
                .partition_algorithm(contexts)
                .map_err(|error| Failure::not_made(bound, &error))
                .and_then(|mut algorithm| {
                    let planned = call(|| algorithm.calculate_partitions());
                    discard(algorithm);
                    planned.map_err(|error| Failure::thrown(bound, "calculate_partitions", error))
                })
                .and_then(checked),
        };
        if let Ok(plan) = &plan {
            let planned = self.shared.running.lease.execution_id.0;
            self.keep_state(key, |state| {
                state.plan = Some(plan.clone());
                state.planned = planned;
                state.algorithm = algorithm.map(str::to_owned);
            })?;
        }
        Ok(plan)
    }
}

impl Partitions<'_> {
    /// Runs those that are not complete, on threads of this process.
    fn run(&self, analysis: &mut Analysis<'_>, ends: &mut Ends) -> Result<(), RepositoryError> {
        let work = |worker: &_, sender: &_, ticket: &_| self.work(worker, sender, ticket);
        let handed_out = crossbeam::thread::scope(|scope| {
            let crew = Crew::new(scope, self.walk.shared.running, &self.walk.worker);
            self.hand_out(&mut LocalThreads::new(crew, &work), analysis, ends);
        });
        // The threads catch what panics in them.
        handed_out.map_err(|_| RepositoryError::Fault)
    }

    /// Spec: PART-04, PART-25, PART-28, PART-29, PART-34, FPART-08, D-32
    fn hand_out(
        &self,
        dispatcher: &mut dyn PartitionDispatcher,
        analysis: &mut Analysis<'_>,
        ends: &mut Ends,
    ) {
        let most = self.bound.threads.unwrap_or(self.walk.shared.partition_threads);
        let mut complete = Vec::new();
        let mut pending = 1..=u32::try_from(self.plan.sub_job_count()).unwrap_or(0);
        loop {
            while dispatcher.outstanding() < most
                && analysis.failure.is_none()
                && !ends.are_ending()
                && !self.walk.worker.stop_requested()
            {
                let Some(number) = pending.next() else { break };
                match self.prepare(number) {
                    Ok(Prepared::Complete(row, state)) => match self.ended(number, &row, &state, None) {
                        // What it led to counts when the others are complete, too.
                        Ok((outcome, exit_status)) => {
                            self.one_has_ended();
                            analysis.ended(&exit_status);
                            complete.push((outcome, exit_status));
                        }
                        Err(error) => ends.broken = Some(error),
                    },
                    Ok(Prepared::Ready(ticket, row)) => {
                        if let Err(error) = dispatcher.submit(ticket) {
                            note(self.not_begun(number, row, &error), analysis, ends);
                        }
                    }
                    Err(error) => ends.broken = Some(error),
                }
            }
            if analysis.failure.is_some() || ends.end_siblings(self.walk.shared.job.dialect) {
                dispatcher.stop();
            }
            let Some(event) = dispatcher.next() else { break };
            match event {
                PartitionEvent::Collected(data) => analysis.data(data),
                PartitionEvent::Ended(ticket, thrown) => {
                    self.one_has_ended();
                    note(self.result(&ticket, thrown), analysis, ends);
                }
            }
        }
        if !pending.is_empty() && analysis.failure.is_none() && !ends.are_ending() {
            // A stop request came before they could begin.
            ends.push(Outcome::Stopped, None);
        }
        for (outcome, exit_status) in complete {
            ends.push(outcome, Some(exit_status));
        }
    }

    fn one_has_ended(&self) {
        let running = self.walk.shared.running;
        running.publish_partitions(self.key, |partitions| partitions.ended += 1);
    }

    /// Looks for what an earlier execution left of the partition; if it is not complete its row is written.
    /// Spec: PART-29, PART-32, FPART-11
    fn prepare(&self, number: u32) -> Result<Prepared, RepositoryError> {
        let shared = self.walk.shared;
        let (repository, lease) = (shared.repository, &shared.running.lease);
        let name = format!("{}:{number}", self.key);
        let history = repository.step_history(lease.instance_id, &name, self.since)?;
        if let Some(last) = history.last.filter(|last| last.status == BatchStatus::Completed) {
            return Ok(Prepared::Complete(last, history.state));
        }
        let row = repository.create_step(lease, &name, &history.state)?;
        let ticket = PartitionTicket {
            step_execution: row.id,
            element: self.id.to_owned(),
            partition: number,
            earlier_items: history.items,
        };
        Ok(Prepared::Ready(ticket, row))
    }

    /// A partition that nobody can run has failed.
    fn not_begun(
        &self,
        number: u32,
        mut row: StepExecution,
        error: &io::Error,
    ) -> Result<(Outcome, String), RepositoryError> {
        let ending = ending::failed(format!("there is no thread for it: {error}"));
        let counters = row.counters;
        let repository = self.walk.shared.repository;
        repository.end_step(&mut row, &ending, counters, None)?;
        self.ended(number, &row, &StepState::default(), None)
    }

    /// How a partition ended is what the repository says. Spec: PART-26, FPART-09
    fn result(
        &self,
        ticket: &PartitionTicket,
        thrown: Result<Thrown, RepositoryError>,
    ) -> Result<(Outcome, String), RepositoryError> {
        let thrown = thrown?;
        match self.walk.shared.repository.step(ticket.step_execution)? {
            Some((row, state)) if row.status.is_final() => self.ended(ticket.partition, &row, &state, thrown),
            _ => Err(RepositoryError::Fault),
        }
    }

    fn ended(
        &self,
        number: u32,
        row: &StepExecution,
        state: &StepState,
        thrown: Thrown,
    ) -> Result<(Outcome, String), RepositoryError> {
        let termination = state
            .termination
            .as_ref()
            .map(CheckpointInfo::decode::<Termination>);
        let termination = termination.transpose().map_err(|error| RepositoryError::Corrupt {
            row: format!("the context of step execution {}", row.id),
            problem: error.to_string(),
        });
        let outcome = match (termination?, row.status) {
            (Some(termination), _) => Outcome::Terminated(termination),
            (None, BatchStatus::Completed) => Outcome::Completed,
            (None, BatchStatus::Stopped) => Outcome::Stopped,
            (None, _) => {
                let failure = thrown.unwrap_or_else(|| Failure::new(row.exit_message.clone()));
                let place = format_args!("in partition {number} of `{}`", self.id);
                Outcome::Failed(failure.because(place))
            }
        };
        Ok((outcome, row.exit_status.clone()))
    }
}

/// Spec: SUBJOB-10
fn note(ended: Result<(Outcome, String), RepositoryError>, analysis: &mut Analysis<'_>, ends: &mut Ends) {
    match ended {
        Ok((outcome, exit_status)) => {
            analysis.ended(&exit_status);
            ends.push(outcome, Some(exit_status));
        }
        Err(error) => {
            ends.broken.get_or_insert(error);
        }
    }
}

/// Spec: PART-23, PART-24, D-49
fn checked(plan: PartitionPlan) -> Result<PartitionPlan, Failure> {
    let count = plan.sub_job_count();
    let problem = match (
        usize::try_from(count),
        plan.sub_job_properties().map(<[BTreeMap<_, _>]>::len),
    ) {
        (Err(_), _) => format!("{count} partitions"),
        (Ok(count), Some(properties)) if properties != count => {
            format!("{count} partitions, and the properties of {properties}")
        }
        _ => return Ok(plan),
    };
    Err(Failure::new(format!(
        "the partition algorithm has planned {problem}"
    )))
}
