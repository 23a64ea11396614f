//! The checked model of a job: plain data, every value with the place it comes from.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::dialect::Dialect;
use crate::pattern::Pattern;
use crate::span::{Source, Span, Spanned};

/// A concrete job, substituted and checked.
///
/// Spec: JSL-JOB-01, JSL-JOB-09
#[derive(Clone, Debug)]
pub struct Job {
    /// The dialect of the document that the job was read from.
    pub dialect: Dialect,
    /// The name of the job, at most 100 characters.
    pub id: Spanned<String>,
    /// Whether an execution of the job may be restarted. Default true. Spec: JSL-JOB-03
    pub restartable: bool,
    /// The properties of the job with their effective values, as JobContext shows them. Spec: JSL-JOBPROP-03
    pub properties: Vec<Property>,
    /// The listeners of the job, in the order of the text. Spec: JSL-JOBLIS-08
    pub listeners: Vec<ArtifactRef>,
    /// The execution elements in the order of the text; the first that is no decision is executed first.
    /// Abstract ones serve inheritance and are left out. Spec: SEQ-01, D-44
    pub elements: Vec<ExecutionElement>,
    /// Every name used in a `${..}` anywhere in the document.
    pub symbols: BTreeSet<String>,
    /// The names of all properties of the job and of everything in it that runs.
    pub property_names: BTreeSet<String>,
    /// The text the job was read from.
    pub source: Arc<Source>,
}

impl Job {
    /// The element that is executed first. Spec: SEQ-01
    pub fn first(&self) -> Option<&ExecutionElement> {
        first_of(&self.elements)
    }
}

impl Flow {
    /// The step that is executed first. Spec: FLOW-11
    pub fn first(&self) -> Option<&ExecutionElement> {
        first_of(&self.elements)
    }
}

fn first_of(elements: &[ExecutionElement]) -> Option<&ExecutionElement> {
    elements
        .iter()
        .find(|element| !matches!(element, ExecutionElement::Decision(_)))
}

/// What a job, a flow and a split consist of.
#[derive(Clone, Debug)]
pub enum ExecutionElement {
    /// A step, of a job or a flow.
    Step(Box<Step>),
    /// A flow, of a job or a split.
    Flow(Box<Flow>),
    /// A split, of a job.
    Split(Box<Split>),
    /// A decision, of a job, a flow or a split.
    Decision(Box<Decision>),
}

impl ExecutionElement {
    /// The id, unique within the job. Spec: JSL-DOC-14
    pub fn id(&self) -> &Spanned<String> {
        match self {
            ExecutionElement::Step(step) => &step.id,
            ExecutionElement::Flow(flow) => &flow.id,
            ExecutionElement::Split(split) => &split.id,
            ExecutionElement::Decision(decision) => &decision.id,
        }
    }

    /// The attribute `next`: the sibling that follows unless a transition says otherwise. Spec: SEQ-02,
    /// DEC-20
    pub fn next(&self) -> Option<&Spanned<String>> {
        match self {
            ExecutionElement::Step(step) => step.next.as_ref(),
            ExecutionElement::Flow(flow) => flow.next.as_ref(),
            ExecutionElement::Split(split) => split.next.as_ref(),
            ExecutionElement::Decision(_) => None,
        }
    }

    /// The transition elements, in the order of the text; [`select`](crate::select) tells which one acts.
    pub fn transitions(&self) -> &[Transition] {
        match self {
            ExecutionElement::Step(step) => &step.transitions,
            ExecutionElement::Decision(decision) => &decision.transitions,
            ExecutionElement::Flow(_) | ExecutionElement::Split(_) => &[],
        }
    }

    /// What is within a flow or split, in the order of the text.
    pub fn elements(&self) -> &[ExecutionElement] {
        match self {
            ExecutionElement::Flow(flow) => &flow.elements,
            ExecutionElement::Split(split) => &split.elements,
            ExecutionElement::Step(_) | ExecutionElement::Decision(_) => &[],
        }
    }

    /// The partition of a step or flow.
    pub fn partition(&self) -> Option<&Partition> {
        match self {
            ExecutionElement::Step(step) => step.partition.as_ref(),
            ExecutionElement::Flow(flow) => flow.partition.as_ref(),
            ExecutionElement::Split(_) | ExecutionElement::Decision(_) => None,
        }
    }
}

/// A flow: steps and decisions that lead to each other only.
///
/// Spec: FLOW-01, FLOW-07, FLOW-08, FLOW-17
#[derive(Clone, Debug)]
pub struct Flow {
    /// At most 100 characters, unique within the job.
    pub id: Spanned<String>,
    /// The id of the sibling that follows the whole flow. It exists. Spec: FLOW-03, FLOW-06
    pub next: Option<Spanned<String>>,
    /// Steps and decisions in the order of the text, without abstract ones. The first step is executed first.
    /// Spec: FLOW-11, FLOW-16
    pub elements: Vec<ExecutionElement>,
    /// Into how many threads the flow goes, and with what. Spec: FPART-01
    pub partition: Option<Partition>,
    /// The start tag.
    pub span: Span,
}

/// A split: flows that run at the same time, with decisions between flows that follow each other.
///
/// Spec: SPLIT-01, SPLIT-09, SPLIT-12, SPLIT-24
#[derive(Clone, Debug)]
pub struct Split {
    /// At most 100 characters, unique within the job.
    pub id: Spanned<String>,
    /// The id of the job-level element that follows the whole split. It exists. Spec: SPLIT-03, SPLIT-08
    pub next: Option<Spanned<String>>,
    /// Flows and decisions in the order of the text, without abstract ones. Every flow that no other element
    /// leads to starts at once; to each other flow exactly one element leads. Spec: SPLIT-06, SPLIT-10,
    /// SPLIT-11, D-29
    pub elements: Vec<ExecutionElement>,
    /// What accompanies the flows. Spec: SPLIT-15
    pub concurrency: Concurrency,
    /// The start tag.
    pub span: Span,
}

/// What accompanies the flows of a split.
///
/// Spec: SPLIT-15, LTX-04, SUBJOB-26
#[derive(Clone, Debug, Default)]
pub struct Concurrency {
    /// Told of the beginning and the end of the logical transaction around all flows.
    pub logical_tx: Option<ArtifactRef>,
    /// Collects data on the thread of each flow.
    pub collector: Option<ArtifactRef>,
    /// Analyzes what the collectors give, on the thread of the split.
    pub analyzer: Option<ArtifactRef>,
}

/// How a step or flow is partitioned.
///
/// A partition has values of its own. What the step or flow is for one of them gives
/// [`Effective::resolve_partition`](crate::Effective::resolve_partition); in the job they are what they are
/// outside of every partition, where some values may be [deferred](Partition::deferred).
///
/// Spec: PART-01, PART-05, FPART-01, SUBST-09
#[derive(Clone, Debug)]
pub struct Partition {
    /// How many partitions there are, unless there is an algorithm. Default 1. Spec: PART-03, PART-18
    pub instances: NonZeroU32,
    /// What the XML gives to single partitions; without meaning if there is an algorithm. Spec: PART-08,
    /// PART-18
    pub properties: Vec<PartitionProperty>,
    /// Computes the partitions, on the parent thread. Spec: PART-17, FPART-05
    pub algorithm: Option<ArtifactRef>,
    /// Told of the beginning and the end of the logical transaction around all partitions. Spec: LTX-04
    pub logical_tx: Option<ArtifactRef>,
    /// Collects data on the thread of each partition. Spec: SUBJOB-01
    pub collector: Option<ArtifactRef>,
    /// Analyzes what the collectors give, on the parent thread. Spec: SUBJOB-07
    pub analyzer: Option<ArtifactRef>,
    /// The symbols within the step or flow that only a partition has a value for. Spec: SUBST-09
    pub deferred: BTreeSet<String>,
    /// The start tag.
    pub span: Span,
}

/// A property for one partition, written `name.number`.
///
/// Spec: PART-08, PART-09, PART-15, D-33
#[derive(Clone, Debug)]
pub struct PartitionProperty {
    /// The number of the partition, from 1 to the number of instances.
    pub number: NonZeroU32,
    /// The name without the number.
    pub name: Spanned<String>,
    /// The one artifact it is for.
    pub target: Option<Target>,
    /// The value as written: its symbols mean what they mean within the partition.
    pub value: Spanned<String>,
}

/// The artifact of a chunk that a property is for.
///
/// Spec: JSL-CHPROP-03
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The item reader.
    Reader,
    /// The item processor.
    Processor,
    /// The item writer.
    Writer,
}

/// A decision: an artifact says where to go on.
///
/// Spec: DEC-01, DEC-05
#[derive(Clone, Debug)]
pub struct Decision {
    /// At most 100 characters, unique within the job.
    pub id: Spanned<String>,
    /// The artifact whose result selects the transition. Spec: DEC-03, DEC-11
    pub decider: ArtifactRef,
    /// The transition elements in the order of the text, which is not the order they are tried in. Spec:
    /// DEC-10
    pub transitions: Vec<Transition>,
    /// The start tag.
    pub span: Span,
}

/// A step.
///
/// Spec: JSL-STEP-01, JSL-STEP-17
#[derive(Clone, Debug)]
pub struct Step {
    /// At most 100 characters, unique within the job.
    pub id: Spanned<String>,
    /// How often the step may be restarted within one job instance; 0, the default, means without limit.
    /// Spec: JSL-STEP-03
    pub start_limit: u32,
    /// Whether the step runs again on restart although it completed. Default false. Spec: JSL-STEP-08
    pub allow_start_if_complete: bool,
    /// The id of the element that follows unless a transition says otherwise; `None`: nothing follows. It
    /// exists.
    /// Spec: JSL-STEP-11, JSL-STEP-12
    pub next: Option<Spanned<String>>,
    /// The properties of the step with their effective values, as StepContext shows them. Those with a target
    /// are not among them. Spec: JSL-STEPPROP-03
    pub properties: Vec<Property>,
    /// The listeners of the step, in the order of the text. Spec: JSL-STEPLIS-05
    pub listeners: Vec<ArtifactRef>,
    /// What the step does. Spec: JSL-STEP-16
    pub body: StepBody,
    /// The transition elements in the order of the text, which is not the order they are tried in: SEQ-18.
    pub transitions: Vec<Transition>,
    /// Into how many threads the step goes, and with what. Spec: PART-01
    pub partition: Option<Partition>,
    /// The start tag.
    pub span: Span,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum StepBody {
    /// Reads, processes and writes items. Spec: JSL-CHUNK-01
    Chunk(Box<Chunk>),
    /// Calls a batchlet. Spec: JSL-BATCHLET-01
    Batchlet(ArtifactRef),
}

/// A chunk.
///
/// Spec: JSL-CHUNK-01, JSL-CHUNK-25
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The start tag.
    pub span: Span,
    /// The item reader.
    pub reader: ArtifactRef,
    /// The item processor; required in the draft. Spec: D-03
    pub processor: ArtifactRef,
    /// The item writer.
    pub writer: ArtifactRef,
    /// When checkpoints are taken. Default `item`.
    pub checkpoint_policy: Spanned<CheckpointPolicy>,
    /// Items (policy `item`) or seconds (policy `time`) between checkpoints. Default 10; without meaning for
    /// `custom`.
    pub commit_interval: NonZeroU32,
    /// Items per call of the writer. Default: the commit interval for policy `item`, else 10; always 1 if
    /// reads are not buffered. Spec: JSL-CHUNK-18, JSL-CHUNK-19, JSL-CHUNK-20, JSL-CHUNK-21, D-04
    pub chunk_size: NonZeroU32,
    /// Whether items are kept to be written again after a rollback. Default true.
    pub buffer_reads: bool,
    /// Exceptions the step may skip; `None`: without limit; 0: none. Spec: JSL-CHUNK-22, D-07
    pub skip_limit: Option<u32>,
    /// Retries the step may make; `None`: without limit; 0: none. Spec: JSL-CHUNK-23, D-07
    pub retry_limit: Option<u32>,
    /// Seconds until a checkpoint interval times out; 0, the default, means never. Spec: JSL-CHUNK-24
    pub checkpoint_timeout: u32,
    /// The checkpoint algorithm; present exactly if the policy is `custom`. Spec: JSL-CHUNK-10, JSL-CHUNK-11
    pub checkpoint_algorithm: Option<ArtifactRef>,
    /// Exceptions that are skipped. Spec: CHUNK-SKIP-01
    pub skippable: ExceptionClasses,
    /// Exceptions after which the write is tried again. Spec: CHUNK-RETRY-01
    pub retryable: ExceptionClasses,
    /// Exceptions that are retried without a rollback. Spec: CHUNK-NORB-01
    pub no_rollback: ExceptionClasses,
}

/// When a chunk takes checkpoints.
///
/// Spec: JSL-CHUNK-05
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckpointPolicy {
    /// After a number of items.
    Item,
    /// After a number of seconds.
    Time,
    /// When a checkpoint algorithm says so.
    Custom,
}

/// A set of exceptions by class name, both lists in the order of the text.
///
/// Spec: CHUNK-SKIP-03, CHUNK-SKIP-04
#[derive(Clone, Debug, Default)]
pub struct ExceptionClasses {
    /// Classes that belong to the set.
    pub include: Vec<Spanned<String>>,
    /// Classes that do not, although a more general one is included.
    pub exclude: Vec<Spanned<String>>,
    /// The start tag of the element; `None` if there is none.
    pub span: Option<Span>,
}

/// An artifact named in the XML.
#[derive(Clone, Debug)]
pub struct ArtifactRef {
    /// The name the artifact loader knows it by. Deferred: as written.
    pub name: Spanned<String>,
    /// Every property that reaches the artifact from the XML, outermost first, each name once: of several
    /// properties of one name the outermost reaches it; before all others those of the partition. Their
    /// values have taken job parameters and system properties into account, so within a partition they go
    /// before both. Spec: OVR-05, OVR-13, PART-12, D-34, D-36
    pub properties: Vec<Property>,
    /// Whether the name is known only within a partition. Spec: SUBST-09
    pub deferred: bool,
}

impl ArtifactRef {
    /// The effective value of a property, if the XML gives one.
    pub fn property(&self, name: &str) -> Option<&Spanned<String>> {
        self.properties
            .iter()
            .find(|property| property.name.value == name)
            .map(|property| &property.value)
    }
}

/// A property with its effective value.
///
/// Spec: OVR-07
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// The name, never empty.
    pub name: Spanned<String>,
    /// The value of the job parameter of that name, else of the system property, else the one written in the
    /// XML. The span is always that of the XML. Deferred: as written.
    pub value: Spanned<String>,
    /// Whether the value is known only within a partition. Spec: SUBST-09
    pub deferred: bool,
}

/// A transition element of a step or decision.
///
/// Spec: SEQ-04, TERM-01, TERM-02, TERM-03, DEC-06, DEC-07, DEC-08, DEC-09
#[derive(Clone, Debug)]
pub struct Transition {
    /// What happens.
    pub kind: TransitionKind,
    /// The pattern that the exit status of the step, or the result of the decider, has to match. Never empty.
    pub on: Spanned<Pattern>,
    /// The start tag.
    pub span: Span,
}

/// What a transition element does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransitionKind {
    /// Another element follows.
    Next {
        /// The id of that element, a sibling. It exists.
        to: Spanned<String>,
    },
    /// The job ends FAILED.
    Fail {
        /// The exit status of the job, if given.
        exit_status: Option<Spanned<String>>,
    },
    /// The job ends COMPLETED.
    End {
        /// The exit status of the job, if given.
        exit_status: Option<Spanned<String>>,
    },
    /// The job ends STOPPED.
    Stop {
        /// The exit status of the job, if given.
        exit_status: Option<Spanned<String>>,
        /// The id of the job-level element a restart begins with; `None`: this step or decision. It
        /// exists. Spec: TERM-09
        restart: Option<Spanned<String>>,
    },
}
