//! The turns of jobs whose executions run one at a time.
// Spec: TURN-01 to TURN-03

use std::collections::BTreeMap;

use super::MemoryRepository;
use super::tables::Tables;
use crate::clock::Timestamp;
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::repository::{ClaimError, ClaimRequest, Concurrency, TurnOutcome};

/// An execution that has the turn of its job, or waits for it.
pub(super) struct Turn {
    job: String,
    is_taken: bool,
}

/// Rejects an execution if an execution of another instance has the turn of its job. Open executions of the same instance are closed first.
pub(super) fn check_turn(
    tables: &Tables,
    request: &ClaimRequest<'_>,
    own: Option<JobInstanceId>,
) -> Result<(), ClaimError> {
    let is_taken = |(_, turn): &(&JobExecutionId, &Turn)| turn.is_taken && turn.job == request.job_name;
    let mut taken = tables.turns.iter().filter(is_taken).map(|(id, _)| *id);
    let is_of_other = |id: JobExecutionId| {
        let execution = tables.executions.get(&id);
        execution.is_some_and(|execution| Some(execution.row.instance_id) != own)
    };
    match taken.find(|id| tables.is_open(*id) && is_of_other(*id)) {
        Some(execution) if request.concurrency == Concurrency::One => {
            Err(ClaimError::NotItsTurn { execution })
        }
        _ => Ok(()),
    }
}

/// Gives a new execution the turn of its job, or queues it.
pub(super) fn enter_turn(tables: &mut Tables, request: &ClaimRequest<'_>, execution: JobExecutionId) {
    let job = request.job_name.to_owned();
    let is_taken = match request.concurrency {
        Concurrency::Any => return,
        Concurrency::One => {
            tables.forget_ended(&job);
            true
        }
        Concurrency::Queue => false,
    };
    tables.turns.insert(execution, Turn { job, is_taken });
}

impl MemoryRepository {
    /// Implements `JobStore::take_turn`.
    pub(super) fn take_turn_of_job(&self, own: JobExecutionId, job: &str) -> TurnOutcome {
        let mut tables = self.alone();
        let before = tables.turn_before(job, own);
        if before.is_some() {
            return TurnOutcome::waits_for(before);
        }
        let is_dead = |(id, turn): &(&JobExecutionId, &Turn)| turn.job == job && turn.is_taken && **id != own;
        let dead: Vec<_> = tables.turns.iter().filter(is_dead).map(|(id, _)| *id).collect();
        let closed = dead
            .into_iter()
            .flat_map(|dead| tables.pass_turn(dead, self.now()));
        let closed: Vec<_> = closed.collect();
        self.notify_of_closed(&mut tables, &closed);
        tables.forget_ended(job);
        let (job, is_taken) = (job.to_owned(), true);
        tables.turns.insert(own, Turn { job, is_taken });
        TurnOutcome {
            waits_for: None,
            closed,
        }
    }

    /// Implements `JobStore::pass_turn`.
    pub(super) fn pass_turn_of(&self, execution: JobExecutionId) -> Option<Vec<JobExecutionId>> {
        let mut tables = self.alone();
        match tables.is_alive(execution) {
            true => None,
            false => {
                let closed = tables.pass_turn(execution, self.now());
                self.notify_of_closed(&mut tables, &closed);
                Some(closed)
            }
        }
    }
}

impl Tables {
    /// Returns the living execution that this one waits for.
    pub(super) fn waits_for(&self, execution: JobExecutionId) -> Option<JobExecutionId> {
        let turn = self.turns.get(&execution).filter(|_| self.is_open(execution));
        turn.and_then(|turn| self.turn_before(&turn.job, execution))
    }

    /// Returns the executions that wait, each with the one that has the turn of its job, else the first that waits.
    pub(super) fn waiting(&self) -> BTreeMap<JobExecutionId, JobExecutionId> {
        let open = || self.turns.iter().filter(|(id, _)| self.is_open(**id));
        let mut first: BTreeMap<&str, JobExecutionId> = BTreeMap::new();
        for (id, turn) in open().filter(|(_, turn)| turn.is_taken) {
            first.insert(&turn.job, *id);
        }
        let mut waiting = BTreeMap::new();
        for (id, turn) in open() {
            let before = *first.entry(&turn.job).or_insert(*id);
            if before != *id {
                waiting.insert(*id, before);
            }
        }
        waiting
    }

    /// Returns the living execution that has the turn of a job, else the first that waits before `own`; `None` if `own` has the turn.
    fn turn_before(&self, job: &str, own: JobExecutionId) -> Option<JobExecutionId> {
        let of_job = || self.turns.iter().filter(|(_, turn)| turn.job == job);
        let taken = of_job().filter(|(_, turn)| turn.is_taken).map(|(id, _)| *id);
        let waiting = of_job().filter(|(_, turn)| !turn.is_taken).map(|(id, _)| *id);
        if taken.clone().any(|id| id == own) {
            return None;
        }
        let mut first = taken.chain(waiting.take_while(|id| *id < own));
        first.find(|id| self.is_alive(*id))
    }

    /// Removes the turn of an execution that is not alive, and closes the execution. Returns what is closed.
    fn pass_turn(&mut self, dead: JobExecutionId, now: Timestamp) -> Vec<JobExecutionId> {
        if self.turns.remove(&dead).is_none() || !self.is_open(dead) {
            return Vec::new();
        }
        let instance = self.executions.get(&dead).map(|dead| dead.row.instance_id);
        let Some(instance) = instance.filter(|id| self.lease_of(*id).is_some_and(|of| of.execution == dead))
        else {
            return Vec::new();
        };
        self.close_open_executions(instance, now, None)
    }

    /// Removes the turns of executions that have ended.
    fn forget_ended(&mut self, job: &str) {
        let of_job = self.turns.iter().filter(|(_, turn)| turn.job == job);
        let ended = of_job.map(|(id, _)| *id).filter(|id| !self.is_open(*id));
        for ended in ended.collect::<Vec<_>>() {
            self.turns.remove(&ended);
        }
    }

    fn is_open(&self, execution: JobExecutionId) -> bool {
        let found = self.executions.get(&execution);
        found.is_some_and(|found| !found.row.status.is_final())
    }

    /// Returns whether an execution has not ended and its lease is held.
    fn is_alive(&self, execution: JobExecutionId) -> bool {
        let found = self.executions.get(&execution).map(|found| found.row.instance_id);
        self.is_open(execution) && found.is_some_and(|instance| self.held_for(instance) == Some(execution))
    }
}
