//! The turns of jobs whose executions run one at a time.
// Spec: TURN-01 to TURN-03

use std::collections::BTreeMap;
use std::convert::Infallible;

use super::MemoryRepository;
use super::tables::{Tables, TurnRow};
use crate::clock::Timestamp;
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::repository::rules::{self, Turn};
use crate::repository::{ClaimError, ClaimRequest, Concurrency, TurnOutcome};

/// Rejects an execution if an execution of another instance has the turn of its job. Open executions of the same instance are closed first.
pub(super) fn check_turn(
    tables: &Tables,
    request: &ClaimRequest<'_>,
    own: Option<JobInstanceId>,
) -> Result<(), ClaimError> {
    let turns = || tables.turns_of(request.job_name);
    match request.concurrency {
        Concurrency::Any | Concurrency::Queue => Ok(()),
        Concurrency::One => match rules::turn_of_other(&turns(), own) {
            Some(execution) => Err(ClaimError::NotItsTurn { execution }),
            None => Ok(()),
        },
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
    tables.turns.insert(execution, TurnRow { job, is_taken });
}

impl MemoryRepository {
    /// Implements `JobStore::take_turn`.
    pub(super) fn take_turn_of_job(&self, own: JobExecutionId, job: &str) -> TurnOutcome {
        let mut tables = self.alone();
        let turns = tables.turns_of(job);
        let before = tables.turn_before(&turns, own);
        if before.is_some() {
            return TurnOutcome::waits_for(before);
        }
        let dead = turns.iter().filter(|turn| turn.is_taken && turn.execution != own);
        let closed = dead.flat_map(|dead| tables.pass_turn(dead.execution, self.now()));
        let closed: Vec<_> = closed.collect();
        self.notify_of_closed(&mut tables, &closed);
        tables.forget_ended(job);
        let (job, is_taken) = (job.to_owned(), true);
        tables.turns.insert(own, TurnRow { job, is_taken });
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
    /// Returns the turns of a job, in the order of their executions.
    fn turns_of(&self, job: &str) -> Vec<Turn> {
        let of_job = self.turns.iter().filter(|(_, turn)| turn.job == job);
        let turn = |(id, turn): (&JobExecutionId, &TurnRow)| Turn {
            execution: *id,
            is_taken: turn.is_taken,
            open_instance: self.open_instance(*id),
        };
        of_job.map(turn).collect()
    }

    /// Returns the living execution that this one waits for.
    pub(super) fn waits_for(&self, execution: JobExecutionId) -> Option<JobExecutionId> {
        let turn = self.turns.get(&execution);
        let turn = turn.filter(|_| self.open_instance(execution).is_some())?;
        self.turn_before(&self.turns_of(&turn.job), execution)
    }

    /// Returns the executions that wait, each with the one that has the turn of its job, else the first that waits.
    pub(super) fn waiting(&self) -> BTreeMap<JobExecutionId, JobExecutionId> {
        let open = self
            .turns
            .iter()
            .filter(|(id, _)| self.open_instance(**id).is_some());
        let open: Vec<_> = open
            .map(|(id, turn)| (turn.job.clone(), *id, turn.is_taken))
            .collect();
        rules::waiting(&open)
    }

    fn turn_before(&self, turns: &[Turn], own: JobExecutionId) -> Option<JobExecutionId> {
        let Ok(before) = rules::turn_before(turns, own, |turn| {
            Ok::<_, Infallible>(self.is_alive(turn.execution))
        });
        before
    }

    /// Removes the turn of an execution that is not alive, and closes the execution. Returns what is closed.
    fn pass_turn(&mut self, dead: JobExecutionId, now: Timestamp) -> Vec<JobExecutionId> {
        let turn = self.turns.remove(&dead);
        let instance = turn.and_then(|_| self.open_instance(dead));
        let is_its = |id: &JobInstanceId| self.lease_of(*id).is_some_and(|lease| lease.execution == dead);
        let Some(instance) = instance.filter(is_its) else {
            return Vec::new();
        };
        self.close_open_executions(instance, now, None)
    }

    /// Removes the turns of executions that have ended.
    fn forget_ended(&mut self, job: &str) {
        let turns = self.turns_of(job);
        for ended in turns.iter().filter(|turn| turn.open_instance.is_none()) {
            self.turns.remove(&ended.execution);
        }
    }

    /// Returns the instance of an execution that has not ended.
    fn open_instance(&self, execution: JobExecutionId) -> Option<JobInstanceId> {
        let found = self.executions.get(&execution);
        let open = found.filter(|found| !found.row.status.is_final());
        open.map(|open| open.row.instance_id)
    }

    /// Returns whether an execution has not ended and its lease is held.
    fn is_alive(&self, execution: JobExecutionId) -> bool {
        let instance = self.open_instance(execution);
        instance.is_some_and(|instance| self.held_for(instance) == Some(execution))
    }
}
