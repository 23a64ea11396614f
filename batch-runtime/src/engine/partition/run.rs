//! One partition: with its own contexts, artifacts and row.
// Spec: PART-06, PART-33, FPART-01, FPART-10, SUBJOB-02, D-67, D-75

use std::collections::BTreeMap;
use std::sync::Arc;

use super::next::PartitionEnd;
use super::{EndedHere, PartitionedElement, Prepared};
use crate::artifact::ContextScope;
use crate::checkpoint::CheckpointInfo;
use crate::context::{FlowContext, SplitContext};
use crate::engine::call::Failure;
use crate::engine::elements::{ElementBody, PartitionBody, PartitionKey};
use crate::engine::ending;
use crate::engine::outcome::{ElementEnd, Last, Outcome};
use crate::engine::step::StepRunner;
use crate::engine::threads::{Collecting, CollectorSink, Worker, lock};
use crate::engine::walk::{Walk, data_of};

use crate::execution::{StepCounters, StepExecution};
use crate::observer::{StepBody, StepEvents};
use crate::repository::{Ending, InnerSteps, RepositoryError, SideWrites, StepState};
use crate::status::BatchStatus;

impl PartitionedElement<'_> {
    /// Runs a prepared partition on a thread of this process. Returns the next partition, if one has started with its end.
    ///
    /// # Errors
    /// If the repository rejects a write.
    pub(super) fn run_here(
        &self,
        worker: &Arc<Worker>,
        sink: &Arc<dyn CollectorSink>,
        prepared: Prepared,
    ) -> Result<(ElementEnd, Option<Prepared>), RepositoryError> {
        let mut prepared = prepared;
        // Otherwise the transaction that ended the partition before it has made it STARTED.
        if prepared.row.status == BatchStatus::Starting {
            self.walk.shared.repository.begin_step(&mut prepared.row)?;
        }
        let end = PartitionEnd::new(self, Some(worker));
        let ended = self.run_claimed(worker, sink, &end, &mut prepared)?;
        let Prepared { number, row, .. } = prepared;
        let outcome = match ended.outcome.clone() {
            Outcome::Failed(failure) => self.failed(number, failure),
            outcome => outcome,
        };
        let (ticket, next) = end.into_next().map(|next| (next.ticket, next.prepared)).unzip();
        let ended_here = EndedHere {
            ended: Ok((outcome, row.exit_status)),
            next: ticket,
        };
        // Before the thread reports the end, because the supervisor then looks here.
        lock(&self.ended_here).insert(row.id, ended_here);
        Ok((ended, next))
    }

    /// Runs a claimed partition and records its end.
    ///
    /// # Errors
    /// If the repository rejects a write.
    pub(super) fn run_claimed(
        &self,
        worker: &Arc<Worker>,
        sink: &Arc<dyn CollectorSink>,
        end: &PartitionEnd<'_>,
        prepared: &mut Prepared,
    ) -> Result<ElementEnd, RepositoryError> {
        let (number, earlier) = (prepared.number, prepared.earlier);
        let (row, state) = (&mut prepared.row, std::mem::take(&mut prepared.state));
        let path = self.path_to(number);
        let PartitionBody { element, collector } = match self.bound.binder.bind(&path) {
            Ok(body) => body,
            Err(problem) => return self.cannot_bind(row, end, problem),
        };
        let prefix = match &element.body {
            ElementBody::Flow(_) => format!("{}:{number}/", self.key),
            _ => self.walk.prefix.clone(),
        };
        let contexts = contexts_of_subjob(self.contexts, worker, true);
        let walk = Walk {
            shared: self.walk.shared,
            worker: Arc::clone(worker),
            data: data_of(&contexts),
            contexts,
            prefix,
            path,
            lanes: self.walk.lanes_with(self.id, format!("partition {number}")),
            since: self.since,
            collecting: collector.map(|bound| Collecting::new(bound, sink)),
        };
        match &element.body {
            ElementBody::Step(step) => StepRunner {
                id: &element.id,
                step,
                transitions: &element.transitions,
                walk: &walk,
                partition: Some(end),
            }
            .run_claimed(row, state, earlier),
            ElementBody::Flow(flow) => {
                let running = self.walk.shared.running;
                let events = running
                    .events
                    .step_started(&element.id, row, true, StepBody::Flow, earlier);
                let ended = walk.flow_once(&element, &flow.elements)?;
                self.record(row, end, ended, &events, walk.collecting.as_deref())
            }
            ElementBody::Split(_) | ElementBody::Decision(_) => Err(RepositoryError::Fault),
        }
    }

    /// Returns the path to a partition, with the properties of its plan.
    // Spec: PART-21
    pub(super) fn path_to(&self, number: u32) -> Vec<PartitionKey> {
        let all = self.plan.sub_job_properties();
        let own: Option<&BTreeMap<_, _>> = all.and_then(|all| all.get(number as usize - 1));
        let mut path = self.walk.path.clone();
        path.push(PartitionKey {
            element: self.id.to_owned(),
            number,
            properties: own.map(|own| Arc::new(own.clone())),
        });
        path
    }

    /// Ends a partition whose artifacts cannot be bound. Its stored state stays.
    fn cannot_bind(
        &self,
        row: &mut StepExecution,
        end: &PartitionEnd<'_>,
        problem: String,
    ) -> Result<ElementEnd, RepositoryError> {
        let shared = self.walk.shared;
        let ending = Ending::of(BatchStatus::Failed, problem.clone());
        let body = match (self.bound.inner, self.bound.is_chunk) {
            (InnerSteps::None, true) => StepBody::Chunk,
            (InnerSteps::None, false) => StepBody::Batchlet,
            _ => StepBody::Flow,
        };
        let events = shared
            .running
            .events
            .step_started(self.id, row, true, body, StepCounters::default());
        end.record_row(row, &ending, None, &SideWrites::default())?;
        events.ended(&ending, row.counters);
        Ok(ElementEnd::failed(Failure::new(problem)))
    }

    /// Records the end of a partition of a flow.
    fn record(
        &self,
        row: &mut StepExecution,
        end: &PartitionEnd<'_>,
        ended: ElementEnd,
        events: &StepEvents<'_>,
        collecting: Option<&Collecting>,
    ) -> Result<ElementEnd, RepositoryError> {
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
        let side_writes = SideWrites {
            payloads: collecting.map(Collecting::reports).unwrap_or_default(),
            ..SideWrites::default()
        };
        end.record_row(row, &ending, Some(&state), &side_writes)?;
        events.ended(&ending, row.counters);
        Ok(match failure {
            Some(failure) => ElementEnd {
                outcome: Outcome::Failed(failure),
                ..ended
            },
            None => ended,
        })
    }
}

/// Returns the contexts of a subjob: copies, so that changes stay in the subjob.
// Spec: CTX-06 to CTX-09, D-67
pub(in crate::engine) fn contexts_of_subjob(
    contexts: &ContextScope,
    worker: &Worker,
    is_partition: bool,
) -> ContextScope {
    let copy = ContextScope {
        job: contexts.job.as_ref().map(|job| job.for_subjob(is_partition)),
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
