//! The entry of a worker process: runs a partition whose element another process supervises.

use std::sync::Arc;

use super::next::PartitionEnd;
use super::payloads::{NoSink, RepositorySink};
use super::{PartitionedElement, Prepared};
use crate::artifact::ContextScope;
use crate::context::{FlowContext, JobContext, RuntimeRef, SplitContext};
use crate::engine::call::{Failure, discard};
use crate::engine::elements::{
    BoundBody, BoundJob, BoundPartition, Element, ElementBody, Elements, PartitionBody,
};
use crate::engine::listeners::JobListeners;
use crate::engine::spans::job_span;
use crate::engine::states::States;
use crate::engine::threads::{CollectorSink, Running};
use crate::engine::walk::{Shared, Walk};
use crate::execution::StepCounters;
use crate::job_data::JobData;
use crate::repository::{ClaimedPartition, EndOfStep, Ending, JobRepository, RepositoryError, SideWrites};
use crate::status::BatchStatus;

/// A partition that a worker process has claimed, with its job.
pub(crate) struct RemotePartition {
    pub(crate) job: Arc<BoundJob>,
    pub(crate) repository: Arc<dyn JobRepository>,
    pub(crate) running: Arc<Running>,
    pub(crate) claimed: ClaimedPartition,
    /// The states of the elements when the row of the partition existed, or later.
    pub(crate) states: Arc<States>,
    /// Whether the job execution is the first one of its instance: no partition has run before.
    pub(crate) is_first: bool,
    pub(crate) partition_threads: usize,
    pub(crate) runtime: RuntimeRef,
}

/// A partitioned element of a job, with the contexts of the enclosing elements.
struct Found<'j> {
    element: &'j Element,
    bound: &'j BoundPartition,
    contexts: ContextScope,
    /// The first job execution whose step executions count, because of an enclosing split.
    since: Option<i64>,
}

impl RemotePartition {
    /// Returns whether the partition can stop at a checkpoint and be resumed by another worker within the same job execution. Only
    /// partitions of chunk steps can.
    pub(crate) fn can_hand_back(&self) -> bool {
        let name = &self.claimed.row.step_name;
        let id = name.rsplit_once(':').map_or("", |(id, _)| id);
        self.job.elements.partitioned_chunk(id)
    }

    /// Runs the partition and records its end. Returns how it ended.
    ///
    /// # Errors
    /// If the repository rejects a write; the end is not recorded then.
    pub(crate) fn run(self) -> Result<BatchStatus, RepositoryError> {
        let lease = self.running.lease;
        let _span = job_span(&self.job.id, &lease).entered();
        let job = JobContext::new(
            &self.job.id,
            lease.instance_id,
            lease.execution_id,
            self.job.properties.clone(),
            self.repository.connector(),
            JobData::new(self.states.data.clone(), true),
            self.runtime.clone(),
        );
        job.set_batch_status(BatchStatus::Started);
        let contexts = ContextScope {
            job: Some(job),
            ..ContextScope::default()
        };
        let listeners = match JobListeners::make(&self.job.listeners, &contexts) {
            Ok(listeners) => listeners,
            Err(failure) => return self.fail(failure),
        };
        let shared = Shared {
            job: &self.job,
            repository: self.repository.as_ref(),
            running: &self.running,
            listeners: &listeners,
            outside: &contexts,
            states: &self.states,
            // A worker that has died may have started the partition.
            is_first: self.is_first && self.claimed.row.version <= 1,
            partition_threads: self.partition_threads,
            dispatch: None,
        };
        let worker = self.running.workers.begin();
        worker.runs_here();
        let walk = Walk::new(shared, &worker);
        let path = path_of(&self.claimed.row.step_name);
        let ended = self.run_at(&walk, &self.job.elements, &path);
        self.running.workers.end(&worker);
        discard(listeners);
        match ended? {
            Some(status) => Ok(status),
            None => {
                let name = &self.claimed.row.step_name;
                self.fail(Failure::new(format!(
                    "job `{}` has no partitioned element for the partition `{name}`",
                    self.job.id
                )))
            }
        }
    }

    /// Finds the element that `path` leads to and runs the partition. Returns `None` if the job has no such element.
    fn run_at(
        &self,
        walk: &Walk<'_>,
        elements: &Elements,
        path: &[(&str, u32)],
    ) -> Result<Option<BatchStatus>, RepositoryError> {
        let Some(((id, number), inner)) = path.split_first() else {
            return Ok(None);
        };
        let Some(found) = find(walk, elements, id, &walk.contexts) else {
            return Ok(None);
        };
        let key = format!("{}{id}", walk.prefix);
        let state = walk.state_of(&key);
        let of_xml;
        let plan = match &state.plan {
            Some(stored) => stored,
            None => {
                of_xml = found.bound.plan_of_xml();
                &of_xml
            }
        };
        let around = Walk {
            since: walk.since.max(found.since),
            ..walk.clone()
        };
        let element = PartitionedElement::new(
            &around,
            &found.element.id,
            &key,
            found.bound,
            plan,
            &found.contexts,
        );
        if inner.is_empty() {
            return self.run_claimed(&element, *number).map(Some);
        }
        let path = element.path_to(*number);
        let Ok(PartitionBody { element: body, .. }) = element.bound.binder.bind(&path) else {
            return Ok(None);
        };
        let ElementBody::Flow(flow) = &body.body else {
            return Ok(None);
        };
        let inside = Walk {
            contexts: found.contexts.clone(),
            prefix: format!("{key}:{number}/"),
            path,
            since: element.since,
            ..walk.clone()
        };
        self.run_at(&inside, &flow.elements, inner)
    }

    fn run_claimed(
        &self,
        element: &PartitionedElement<'_>,
        number: u32,
    ) -> Result<BatchStatus, RepositoryError> {
        let row = self.claimed.row.clone();
        let instance = self.claimed.lease.instance_id;
        let earlier = match self.is_first {
            true => StepCounters::default(),
            // The latest row is the one of this partition.
            false => {
                self.repository
                    .step_history(instance, &row.step_name, element.since)?
                    .before
            }
        };
        let end = PartitionEnd::new(element, None);
        let mut prepared = Prepared {
            number,
            row,
            state: self.claimed.state.clone(),
            earlier,
        };
        let sink: Arc<dyn CollectorSink> = match element.bound.subjobs.analyzer.is_some() {
            true => Arc::new(RepositorySink::new(&self.claimed)),
            false => Arc::new(NoSink),
        };
        let ended = element.run_claimed(&element.walk.worker, &sink, &end, &mut prepared)?;
        Ok(ended.outcome.status())
    }

    fn fail(&self, failure: Failure) -> Result<BatchStatus, RepositoryError> {
        let mut row = self.claimed.row.clone();
        let ending = Ending::of(BatchStatus::Failed, failure.message);
        let end = EndOfStep {
            ending: &ending,
            next: None,
        };
        let lease = &self.running.lease;
        self.repository
            .end_step(lease, &mut row, end, None, &SideWrites::default())?;
        Ok(BatchStatus::Failed)
    }
}

/// Splits the name of a partition's row: ids and numbers of the partitioned elements, the outermost first.
// Spec: D-75
fn path_of(step_name: &str) -> Vec<(&str, u32)> {
    let keys = step_name.split('/').filter_map(|key| key.rsplit_once(':'));
    keys.filter_map(|(id, number)| Some((id, number.parse().ok()?)))
        .collect()
}

/// Finds the partitioned element `id` in the elements of a job or flow, and in the flows and splits within.
fn find<'j>(walk: &Walk<'_>, elements: &'j Elements, id: &str, contexts: &ContextScope) -> Option<Found<'j>> {
    elements.all.iter().find_map(|element| match &element.body {
        ElementBody::Step(step) => match &step.body {
            BoundBody::Partitioned(bound) if element.id == id => Some(Found {
                element,
                bound: bound.as_ref(),
                contexts: contexts.clone(),
                since: None,
            }),
            _ => None,
        },
        ElementBody::Flow(flow) => {
            let contexts = ContextScope {
                flow: Some(FlowContext::new(&element.id)),
                ..contexts.clone()
            };
            match &flow.partition {
                Some(bound) if element.id == id => Some(Found {
                    element,
                    bound,
                    contexts,
                    since: None,
                }),
                _ => find(walk, &flow.elements, id, &contexts),
            }
        }
        ElementBody::Split(split) => {
            let contexts = ContextScope {
                split: Some(SplitContext::new(&element.id)),
                ..contexts.clone()
            };
            let found = find(walk, &split.elements, id, &contexts)?;
            Some(Found {
                since: found.since.max(walk.state_of(&element.id).since),
                ..found
            })
        }
        ElementBody::Decision(_) => None,
    })
}
