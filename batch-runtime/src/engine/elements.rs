//! A job ready to run: its elements, and what leads from one to the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::bound::{Bound, BoundListener};
use super::chunk::FaultRules;
use crate::Dialect;
use crate::transition::Transitions;

/// A job ready to run.
pub(crate) struct BoundJob {
    pub(crate) id: String,
    pub(crate) restartable: bool,
    pub(crate) dialect: Dialect,
    /// How long an execution may take. (ext)
    pub(crate) timeout: Option<Duration>,
    pub(crate) properties: BTreeMap<String, String>,
    pub(crate) listeners: Vec<Arc<BoundListener>>,
    pub(crate) elements: Elements,
}

/// The elements of a job, flow or split, in the order of the text.
#[derive(Default)]
pub(crate) struct Elements {
    pub(crate) all: Vec<Element>,
}

impl Elements {
    /// Whether something in here runs again although it was complete. Complete partitions of a flow do not.
    pub(crate) fn run_again(&self) -> bool {
        self.all.iter().any(|element| match &element.body {
            ElementBody::Step(step) => step.allow_start_if_complete,
            ElementBody::Flow(flow) => flow.elements.run_again(),
            ElementBody::Split(split) => split.elements.run_again(),
            // It may answer otherwise, and lead to what has never run.
            ElementBody::Decision(_) => true,
        })
    }
}

/// A step, flow, split or decision, and what it leads to.
pub(crate) struct Element {
    pub(crate) id: String,
    pub(crate) transitions: Transitions,
    pub(crate) body: ElementBody,
}

/// What an element is.
pub(crate) enum ElementBody {
    Step(Box<BoundStep>),
    Flow(Box<BoundFlow>),
    Split(Box<BoundSplit>),
    Decision(Bound),
}

/// A flow ready to run.
pub(crate) struct BoundFlow {
    pub(crate) elements: Elements,
    pub(crate) partition: Option<BoundPartition>,
}

/// A split ready to run.
pub(crate) struct BoundSplit {
    pub(crate) elements: Elements,
    pub(crate) subjobs: BoundSubjobs,
}

/// What accompanies the subjobs of an element.
#[derive(Clone, Default)]
pub(crate) struct BoundSubjobs {
    pub(crate) logical_tx: Option<Bound>,
    /// Of a split; of a partition it is bound with the partition, whose properties reach it.
    pub(crate) collector: Option<Bound>,
    pub(crate) analyzer: Option<Bound>,
}

/// How a step or flow is partitioned.
pub(crate) struct BoundPartition {
    /// How many partitions there are, unless an algorithm says it.
    pub(crate) instances: u32,
    pub(crate) algorithm: Option<Bound>,
    pub(crate) subjobs: BoundSubjobs,
    /// Most partitions that run at the same time.
    pub(crate) threads: Option<usize>,
    pub(crate) binder: Arc<dyn BindPartition>,
}

/// Binds what runs in one partition, when it begins: its properties are known then. Spec: SUBST-09
pub(crate) trait BindPartition: Send + Sync {
    /// `path` leads to the partition: of a partitioned step in a partitioned flow the flow's first.
    ///
    /// # Errors
    /// What is wrong with it, as text.
    fn bind(&self, path: &[PartitionKey]) -> Result<PartitionBody, String>;
}

/// A partition of an element.
#[derive(Clone, Debug)]
pub(crate) struct PartitionKey {
    /// Id of the partitioned step or flow.
    pub(crate) element: String,
    /// From 1. Spec: PART-09
    pub(crate) number: u32,
    /// What the plan gives to it. Spec: PART-21
    pub(crate) properties: Option<Arc<BTreeMap<String, String>>>,
}

/// What runs in a partition.
pub(crate) struct PartitionBody {
    /// The step or flow, not partitioned.
    pub(crate) element: Element,
    pub(crate) collector: Option<Bound>,
}

impl Elements {
    /// The element that is executed first: decisions are passed over. Spec: SEQ-01, FLOW-11
    pub(crate) fn first(&self) -> Option<usize> {
        self.all
            .iter()
            .position(|element| !matches!(element.body, ElementBody::Decision(_)))
    }

    /// The element with this id.
    pub(crate) fn position(&self, id: &str) -> Option<usize> {
        self.all.iter().position(|element| element.id == id)
    }

    /// The flows of a split that no other element leads to. Spec: SPLIT-06, D-29
    pub(crate) fn beginnings(&self) -> Vec<usize> {
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

/// A step ready to run.
pub(crate) struct BoundStep {
    /// Most starts within one instance; `None`: no limit.
    pub(crate) max_starts: Option<u32>,
    pub(crate) allow_start_if_complete: bool,
    /// How long it may take. (ext)
    pub(crate) timeout: Option<Duration>,
    pub(crate) properties: BTreeMap<String, String>,
    pub(crate) listeners: Vec<Arc<BoundListener>>,
    pub(crate) body: BoundBody,
}

/// What a step does.
pub(crate) enum BoundBody {
    Chunk(Box<BoundChunk>),
    Batchlet(Bound),
    Partitioned(Box<BoundPartition>),
}

/// A chunk ready to run.
pub(crate) struct BoundChunk {
    pub(crate) reader: Bound,
    pub(crate) processor: Bound,
    pub(crate) writer: Bound,
    pub(crate) interval: CheckpointInterval,
    /// Items per call of the writer. Spec: D-04
    pub(crate) write_batch: usize,
    /// Whether the writer writes through the chunk transaction.
    pub(crate) transactional: bool,
    /// Whether processed items are kept to be written again after a rollback. Spec: D-12
    pub(crate) buffer_reads: bool,
    pub(crate) faults: FaultRules,
}

/// When a checkpoint is due.
#[derive(Clone)]
pub(crate) enum CheckpointInterval {
    /// After so many items read. Spec: JSL-CHUNK-07, D-05
    Items(usize),
    /// After so much time, looked at after each item. Spec: JSL-CHUNK-08
    Time(Duration),
    /// When the algorithm says so, asked after each item. Spec: JSL-CHUNK-09
    Custom(Bound),
}
