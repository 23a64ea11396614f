//! One partition of a step or flow, on its own thread: own contexts, own artifacts, a row of its own.
//!
//! Spec: PART-06, PART-33, FPART-01, FPART-10, SUBJOB-02, D-67, D-75

use std::collections::BTreeMap;
use std::sync::Arc;

use crossbeam::channel::Sender;

use super::call::Failure;
use super::dispatch::PartitionTicket;
use super::elements::{ElementBody, PartitionBody, PartitionKey};
use super::ending;
use super::partition::Partitions;
use super::step::StepRunner;
use super::subjobs::{Collecting, Report};
use super::walk::{ElementEnd, Last, Outcome, Walk};
use super::worker::Worker;
use crate::artifact::ContextScope;
use crate::checkpoint::CheckpointInfo;
use crate::context::{FlowContext, SplitContext};
use crate::execution::StepExecution;
use crate::repository::{RepositoryError, StepState};
use crate::status::BatchStatus;
use crate::transition::Follow;

impl Partitions<'_> {
    /// Claims the partition of the ticket, runs it and writes how it ended.
    ///
    /// # Errors
    /// When the repository does not take what has to be written; or another worker has claimed it.
    pub(super) fn work(
        &self,
        worker: &Arc<Worker>,
        sender: &Sender<Report>,
        ticket: &PartitionTicket,
    ) -> Result<ElementEnd, RepositoryError> {
        let (walk, number) = (self.walk, ticket.partition);
        let repository = walk.shared.repository;
        let Some((mut row, state)) = repository.claim_step(ticket.step_execution)? else {
            return Err(RepositoryError::Fenced {
                action: "claim the partition",
            });
        };
        let mut path = walk.path.clone();
        path.push(PartitionKey {
            element: ticket.element.clone(),
            number,
            properties: self.properties(number),
        });
        let PartitionBody { element, collector } = match self.bound.binder.bind(&path) {
            Ok(body) => body,
            Err(problem) => {
                let counters = row.counters;
                // What earlier executions kept stays.
                repository.end_step(&mut row, &ending::failed(problem.clone()), counters, None)?;
                return Ok(ElementEnd {
                    outcome: Outcome::Failed(Failure::new(problem)),
                    follow: Follow::Nothing,
                    last: None,
                });
            }
        };
        let prefix = match &element.body {
            ElementBody::Flow(_) => format!("{}:{number}/", self.key),
            _ => walk.prefix.clone(),
        };
        let walk = Walk {
            shared: walk.shared,
            worker: Arc::clone(worker),
            contexts: of_subjob(self.contexts, worker),
            prefix,
            path,
            since: self.since,
            collecting: collector.map(|bound| Collecting::new(bound, sender)),
        };
        match &element.body {
            ElementBody::Step(step) => StepRunner {
                id: &element.id,
                step,
                transitions: &element.transitions,
                walk: &walk,
                is_partition: true,
            }
            .run_claimed(row, state, ticket.earlier_items),
            ElementBody::Flow(flow) => {
                let ended = walk.flow_once(&element, &flow.elements)?;
                self.record(&mut row, ended)
            }
            ElementBody::Split(_) | ElementBody::Decision(_) => Err(RepositoryError::Fault),
        }
    }

    /// What the plan gives to a partition. Spec: PART-21
    fn properties(&self, number: u32) -> Option<Arc<BTreeMap<String, String>>> {
        let all = self.plan.sub_job_properties()?;
        let own = all.get(number as usize - 1)?;
        Some(Arc::new(own.clone()))
    }

    /// Writes how a partition ended that is no step.
    fn record(&self, row: &mut StepExecution, ended: ElementEnd) -> Result<ElementEnd, RepositoryError> {
        let (failure, termination) = match &ended.outcome {
            Outcome::Failed(failure) => (Some(failure.clone()), None),
            Outcome::Terminated(termination) => (None, Some(termination)),
            Outcome::Completed | Outcome::Stopped => (None, None),
        };
        let chosen = ended.last.as_ref().and_then(Last::exit_status);
        let (ending, failure) = ending::settle(
            &format!("`{}`", row.step_name),
            chosen,
            ended.outcome.status(),
            failure,
        );
        let termination = termination.map(CheckpointInfo::encode).transpose();
        let state = StepState {
            termination: termination.map_err(|_| RepositoryError::Fault)?,
            ..StepState::default()
        };
        let counters = row.counters;
        self.walk
            .shared
            .repository
            .end_step(row, &ending, counters, Some(&state))?;
        Ok(match failure {
            Some(failure) => ElementEnd {
                outcome: Outcome::Failed(failure),
                ..ended
            },
            None => ended,
        })
    }
}

/// The contexts of a subjob: copies, of which nothing goes back by itself. Spec: CTX-06 to CTX-09, D-67
pub(super) fn of_subjob(contexts: &ContextScope, worker: &Worker) -> ContextScope {
    let copy = ContextScope {
        job: contexts.job.as_ref().map(|job| job.for_subjob()),
        flow: contexts.flow.as_ref().map(|flow| FlowContext::new(flow.id())),
        split: contexts.split.as_ref().map(|split| SplitContext::new(split.id())),
        step: None,
    };
    if let Some(job) = &copy.job {
        worker.enter(job.clone());
    }
    if let Some(split) = &copy.split {
        split.set_batch_status(BatchStatus::Started);
        worker.enter(split.clone());
    }
    if let Some(flow) = &copy.flow {
        flow.set_batch_status(BatchStatus::Started);
        worker.enter(flow.clone());
    }
    copy
}
