//! A bound job: its elements and their transitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::bound::{Bound, BoundListener};
use super::chunk::FaultRules;
use super::limits::StepLimits;
use crate::Dialect;
use crate::deadline::Deadline;
use crate::observer::StepBody;
use crate::plan::PartitionPlan;
use crate::repository::{Concurrency, InnerSteps};
use crate::transition::Transitions;

/// A job that is ready to run.
pub(crate) struct BoundJob {
    pub(crate) id: String,
    pub(crate) restartable: bool,
    /// The number of executions of the job that may run at the same time. (ext)
    pub(crate) concurrency: Concurrency,
    /// When an instance is to be complete.
    pub(crate) deadline: Option<Deadline>,
    pub(crate) dialect: Dialect,
    /// The timeout of an execution. (ext)
    pub(crate) timeout: Option<Duration>,
    pub(crate) properties: BTreeMap<String, String>,
    pub(crate) listeners: Vec<Arc<BoundListener>>,
    pub(crate) elements: Elements,
    /// The names of the job's step executions without the numbers of partitions, such as `flow:/load`.
    pub(crate) step_names: BTreeSet<String>,
}

/// The elements of a job, flow or split, in the order of the text.
#[derive(Default)]
pub(crate) struct Elements {
    pub(crate) all: Vec<Element>,
}

impl Elements {
    /// Returns whether some element runs again although it completed. Completed partitions of a flow do not.
    pub(crate) fn run_again(&self) -> bool {
        self.all.iter().any(|element| match &element.body {
            ElementBody::Step(step) => step.allow_start_if_complete,
            ElementBody::Flow(flow) => flow.elements.run_again(),
            ElementBody::Split(split) => split.elements.run_again(),
            // Its result may change, and lead to an element that has never run.
            ElementBody::Decision(_) => true,
        })
    }
}

/// A step, flow, split or decision with its transitions.
pub(crate) struct Element {
    pub(crate) id: String,
    pub(crate) transitions: Transitions,
    pub(crate) body: ElementBody,
}

/// The body of an element.
pub(crate) enum ElementBody {
    Step(Box<BoundStep>),
    Flow(Box<BoundFlow>),
    Split(Box<BoundSplit>),
    Decision(Bound),
}

/// A flow that is ready to run.
pub(crate) struct BoundFlow {
    pub(crate) elements: Elements,
    pub(crate) partition: Option<BoundPartition>,
}

/// A split that is ready to run.
pub(crate) struct BoundSplit {
    pub(crate) elements: Elements,
    /// The maximum number of flows that run at a time.
    pub(crate) threads: Option<usize>,
    pub(crate) subjobs: BoundSubjobs,
}

/// The artifacts that accompany the subjobs of an element.
#[derive(Clone, Default)]
pub(crate) struct BoundSubjobs {
    pub(crate) logical_tx: Option<Bound>,
    /// The collector of a split. The collector of a partition is bound with the partition, because it receives the partition's properties.
    pub(crate) collector: Option<Bound>,
    pub(crate) analyzer: Option<Bound>,
}

/// The partition of a step or flow.
pub(crate) struct BoundPartition {
    /// The number of partitions, unless there is an algorithm.
    pub(crate) instances: u32,
    pub(crate) algorithm: Option<Bound>,
    /// The properties that the Job XML needs from the plan.
    pub(crate) required: BTreeSet<String>,
    pub(crate) subjobs: BoundSubjobs,
    /// The maximum number of concurrent partitions.
    pub(crate) threads: Option<usize>,
    pub(crate) replan: Replan,
    /// The dispatcher, and the queue of its tickets; `None`: the default.
    pub(crate) dispatcher: Option<String>,
    pub(crate) queue: Option<String>,
    /// True for a chunk step.
    pub(crate) is_chunk: bool,
    /// What becomes of the steps within when a worker has died.
    pub(crate) inner: InnerSteps,
    pub(crate) binder: Arc<dyn BindPartition>,
}

/// The plan of a restart, if partitions of an earlier execution are not complete.
// Spec: D-50, JAK-32
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replan {
    /// The plan of the earlier execution.
    No,
    /// The number of partitions of the earlier plan, with properties of a new one.
    Properties,
    /// The same, unless a partition that is complete or has a checkpoint gets other properties.
    // Spec: D-101
    SafeProperties,
    /// A new plan. All partitions start anew.
    All,
}

impl BoundPartition {
    /// Returns the plan of the Job XML, which applies without an algorithm.
    pub(crate) fn plan_of_xml(&self) -> PartitionPlan {
        PartitionPlan::new(i32::try_from(self.instances).unwrap_or(i32::MAX))
    }
}

impl Elements {
    /// Returns whether the step with this id, here or in a flow or split, is a partitioned chunk step.
    pub(crate) fn partitioned_chunk(&self, id: &str) -> bool {
        self.all.iter().any(|element| match &element.body {
            ElementBody::Step(step) => {
                let is_chunk = |partition: &BoundPartition| partition.is_chunk;
                matches!(&step.body, BoundBody::Partitioned(partition) if element.id == id && is_chunk(partition))
            }
            ElementBody::Flow(flow) => flow.elements.partitioned_chunk(id),
            ElementBody::Split(split) => split.elements.partitioned_chunk(id),
            ElementBody::Decision(_) => false,
        })
    }

    /// Returns the partitions of the elements, and of those within.
    pub(crate) fn partitions(&self) -> Vec<&BoundPartition> {
        let mut found = Vec::new();
        for element in &self.all {
            match &element.body {
                ElementBody::Step(step) => match &step.body {
                    BoundBody::Partitioned(partition) => found.push(&**partition),
                    BoundBody::Chunk(_) | BoundBody::Batchlet(_) => {}
                },
                ElementBody::Flow(flow) => {
                    found.extend(&flow.partition);
                    found.extend(flow.elements.partitions());
                }
                ElementBody::Split(split) => found.extend(split.elements.partitions()),
                ElementBody::Decision(_) => {}
            }
        }
        found
    }
}

/// Binds the body of a partition when it starts, because its properties are known then.
// Spec: SUBST-09
pub(crate) trait BindPartition: Send + Sync {
    /// `path` leads to the partition: for a partitioned step in a partitioned flow, the flow comes first.
    ///
    /// # Errors
    /// The mistakes, as text.
    fn bind(&self, path: &[PartitionKey]) -> Result<PartitionBody, String>;
}

/// A partition of an element.
#[derive(Clone, Debug)]
pub(crate) struct PartitionKey {
    /// Id of the partitioned step or flow.
    pub(crate) element: String,
    /// The number, from 1.
    // Spec: PART-09
    pub(crate) number: u32,
    /// The properties from the plan.
    // Spec: PART-21
    pub(crate) properties: Option<Arc<BTreeMap<String, String>>>,
}

/// The body of a partition.
pub(crate) struct PartitionBody {
    /// The step or flow, without its partition element.
    pub(crate) element: Element,
    pub(crate) collector: Option<Bound>,
}

impl Elements {
    /// Returns the element that is executed first, which is not a decision.
    // Spec: SEQ-01, FLOW-11
    pub(crate) fn first(&self) -> Option<usize> {
        self.all
            .iter()
            .position(|element| !matches!(element.body, ElementBody::Decision(_)))
    }

    /// Returns the position of the element with this id.
    pub(crate) fn position(&self, id: &str) -> Option<usize> {
        self.all.iter().position(|element| element.id == id)
    }

    /// Returns the flows of a split that no other element leads to.
    // Spec: SPLIT-06, D-29
    pub(crate) fn initial_flows(&self) -> Vec<usize> {
        let targets: Vec<usize> = self
            .all
            .iter()
            .flat_map(|element| element.transitions.targets())
            .collect();
        let is_beginning = |position: &usize| {
            matches!(self.all[*position].body, ElementBody::Flow(_)) && !targets.contains(position)
        };
        (0..self.all.len()).filter(is_beginning).collect()
    }
}

/// A step that is ready to run.
pub(crate) struct BoundStep {
    /// The maximum number of starts within one instance; `None` is unlimited.
    pub(crate) max_starts: Option<u32>,
    pub(crate) allow_start_if_complete: bool,
    pub(crate) limits: StepLimits,
    /// The fields of its persistent user data that become data of the job. (ext)
    pub(crate) promoted: Vec<String>,
    pub(crate) properties: BTreeMap<String, String>,
    pub(crate) listeners: Vec<Arc<BoundListener>>,
    pub(crate) body: BoundBody,
}

/// The body of a step.
pub(crate) enum BoundBody {
    Chunk(Box<BoundChunk>),
    Batchlet(Bound),
    Partitioned(Box<BoundPartition>),
}

impl BoundBody {
    /// Returns how observers see it.
    pub(crate) fn observed(&self) -> StepBody {
        match self {
            Self::Chunk(_) => StepBody::Chunk,
            Self::Batchlet(_) => StepBody::Batchlet,
            Self::Partitioned(_) => StepBody::Partitions,
        }
    }
}

impl BoundChunk {
    /// Returns the artifact whose results are written: the processor, or without one the reader.
    pub(crate) fn last_input(&self) -> &Bound {
        self.processor.as_ref().unwrap_or(&self.reader)
    }
}

/// A chunk that is ready to run.
pub(crate) struct BoundChunk {
    pub(crate) reader: Bound,
    /// Without one, the items are written as they are read.
    pub(crate) processor: Option<Bound>,
    /// The number of instances of the processor: the first runs on the thread that reads, each other one on a separate thread.
    // Spec: D-99
    pub(crate) processors: usize,
    /// True if the first list of the next interval is read while one is written.
    // Spec: D-100
    pub(crate) pipelined: bool,
    pub(crate) writer: Bound,
    pub(crate) interval: CheckpointInterval,
    /// Items per call of the writer.
    // Spec: D-04
    pub(crate) write_batch: usize,
    /// True if the writer uses the chunk transaction.
    pub(crate) transactional: bool,
    /// True if the writer's checkpoint is not `()`.
    pub(crate) writer_keeps_position: bool,
    /// True if the step can resume exactly at any of its checkpoints, not only at the last one.
    // Spec: D-103
    pub(crate) rewindable: bool,
    /// True if the reader can read items again and return their origin.
    pub(crate) reader_has_origin: bool,
    /// True if all that the writer writes is in the commits, and no method of an artifact of the chunk and no checkpoint listener follows
    /// the last one.
    // Spec: D-107
    pub(crate) ends_with_commit: bool,
    /// True if processed items are kept to write them again after a rollback.
    // Spec: D-12
    pub(crate) buffer_reads: bool,
    pub(crate) faults: FaultRules,
    pub(crate) skip_policy: Option<Bound>,
}

/// The condition for a checkpoint.
#[derive(Clone)]
pub(crate) enum CheckpointInterval {
    /// After this number of items read, or already after a time.
    // Spec: JSL-CHUNK-07, D-05
    Items { count: usize, time: Option<Duration> },
    /// After this time, checked after each item.
    // Spec: JSL-CHUNK-08
    Time(Duration),
    /// By decision of the algorithm, called after each item.
    // Spec: JSL-CHUNK-09
    Custom(Bound),
}
