//! The checked model of a job: plain data, every value with its place in the text.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::dialect::Dialect;
pub use crate::pattern::{Pattern, Specificity};
pub use crate::span::{Source, Span, Spanned};

/// A concrete job, substituted and checked.
// Spec: JSL-JOB-01, JSL-JOB-09
#[derive(Clone, Debug)]
pub struct Job {
    /// The dialect of the document that the job was read from.
    pub dialect: Dialect,
    /// The name of the job, at most 100 characters.
    pub id: Spanned<String>,
    /// True if executions of the job may be restarted. Default true.
    // Spec: JSL-JOB-03
    pub restartable: bool,
    /// The properties of the job with their effective values, as exposed by JobContext.
    // Spec: JSL-JOBPROP-03
    pub properties: Vec<Property>,
    /// The listeners of the job, in the order of the text.
    // Spec: JSL-JOBLIS-08
    pub listeners: Vec<ArtifactRef>,
    /// The execution elements in the order of the text, without abstract ones; execution starts with the first that
    /// is not a decision.
    // Spec: SEQ-01, D-44
    pub elements: Vec<ExecutionElement>,
    /// Every name used in a `${..}` anywhere in the document.
    pub symbols: BTreeSet<String>,
    /// The names of all properties of the job and of its elements.
    pub property_names: BTreeSet<String>,
    /// The text the job was read from.
    pub source: Arc<Source>,
}

impl Job {
    /// Returns the element that is executed first.
    // Spec: SEQ-01
    pub fn first(&self) -> Option<&ExecutionElement> {
        first_of(&self.elements)
    }

    /// Returns the names of job parameters that have an effect on the document's values: of symbols and, if the dialect lets parameters
    /// override them, of properties. A name may repeat.
    pub fn parameter_names(&self) -> impl Iterator<Item = &String> {
        let overridden = self.dialect.parameters_set_properties();
        let properties = self.property_names.iter().filter(move |_| overridden);
        self.symbols.iter().chain(properties)
    }
}

impl Flow {
    /// Returns the step that is executed first.
    // Spec: FLOW-11
    pub fn first(&self) -> Option<&ExecutionElement> {
        first_of(&self.elements)
    }
}

fn first_of(elements: &[ExecutionElement]) -> Option<&ExecutionElement> {
    elements
        .iter()
        .find(|element| !matches!(element, ExecutionElement::Decision(_)))
}

/// An element that jobs, flows and splits consist of.
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

/// The kind of an execution element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementKind {
    Step,
    Flow,
    Split,
    Decision,
}

impl ElementKind {
    /// Returns the name of the element.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ElementKind::Step => "step",
            ElementKind::Flow => "flow",
            ElementKind::Split => "split",
            ElementKind::Decision => "decision",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<ElementKind> {
        use ElementKind::{Decision, Flow, Split, Step};
        let mut all = [Step, Flow, Split, Decision].into_iter();
        all.find(|kind| kind.as_str() == name)
    }
}

impl ExecutionElement {
    pub(crate) fn kind(&self) -> ElementKind {
        match self {
            ExecutionElement::Step(_) => ElementKind::Step,
            ExecutionElement::Flow(_) => ElementKind::Flow,
            ExecutionElement::Split(_) => ElementKind::Split,
            ExecutionElement::Decision(_) => ElementKind::Decision,
        }
    }

    /// Returns the start tag.
    pub(crate) fn span(&self) -> &Span {
        match self {
            ExecutionElement::Step(step) => &step.span,
            ExecutionElement::Flow(flow) => &flow.span,
            ExecutionElement::Split(split) => &split.span,
            ExecutionElement::Decision(decision) => &decision.span,
        }
    }

    /// Returns the id, unique within the job.
    // Spec: JSL-DOC-14
    pub fn id(&self) -> &Spanned<String> {
        match self {
            ExecutionElement::Step(step) => &step.id,
            ExecutionElement::Flow(flow) => &flow.id,
            ExecutionElement::Split(split) => &split.id,
            ExecutionElement::Decision(decision) => &decision.id,
        }
    }

    /// Returns the attribute `next`: the sibling that follows unless a transition is taken.
    // Spec: SEQ-02, DEC-20
    pub fn next(&self) -> Option<&Spanned<String>> {
        match self {
            ExecutionElement::Step(step) => step.next.as_ref(),
            ExecutionElement::Flow(flow) => flow.next.as_ref(),
            ExecutionElement::Split(split) => split.next.as_ref(),
            ExecutionElement::Decision(_) => None,
        }
    }

    /// Returns the transition elements, in the order of the text. See [`Dialect::select`] for the one that is taken.
    pub fn transitions(&self) -> &[Transition] {
        match self {
            ExecutionElement::Step(step) => &step.transitions,
            ExecutionElement::Decision(decision) => &decision.transitions,
            ExecutionElement::Flow(_) | ExecutionElement::Split(_) => &[],
        }
    }

    /// Returns the elements of a flow or split, in the order of the text.
    pub fn elements(&self) -> &[ExecutionElement] {
        match self {
            ExecutionElement::Flow(flow) => &flow.elements,
            ExecutionElement::Split(split) => &split.elements,
            ExecutionElement::Step(_) | ExecutionElement::Decision(_) => &[],
        }
    }

    /// Returns the partition of a step or flow.
    pub fn partition(&self) -> Option<&Partition> {
        match self {
            ExecutionElement::Step(step) => step.partition.as_ref(),
            ExecutionElement::Flow(flow) => flow.partition.as_ref(),
            ExecutionElement::Split(_) | ExecutionElement::Decision(_) => None,
        }
    }
}

/// A flow: steps and decisions that lead only to each other.
// Spec: FLOW-01, FLOW-07, FLOW-08, FLOW-17
#[derive(Clone, Debug)]
pub struct Flow {
    /// At most 100 characters, unique within the job.
    pub id: Spanned<String>,
    /// The id of the sibling that follows the whole flow. It exists.
    // Spec: FLOW-03, FLOW-06
    pub next: Option<Spanned<String>>,
    /// Steps and decisions in the order of the text, without abstract ones. Execution starts with the first step.
    // Spec: FLOW-11, FLOW-16
    pub elements: Vec<ExecutionElement>,
    /// The partition of the flow, if it has one.
    // Spec: FPART-01
    pub partition: Option<Partition>,
    /// The start tag.
    pub span: Span,
}

/// A split: flows that run in parallel, with decisions between flows that follow each other.
// Spec: SPLIT-01, SPLIT-09, SPLIT-12, SPLIT-24
#[derive(Clone, Debug)]
pub struct Split {
    /// At most 100 characters, unique within the job.
    pub id: Spanned<String>,
    /// The id of the job-level element that follows the whole split. It exists.
    // Spec: SPLIT-03, SPLIT-08
    pub next: Option<Spanned<String>>,
    /// Flows and decisions in the order of the text, without abstract ones. Every flow that no other element leads to
    /// starts at once; exactly one element leads to each other flow.
    // Spec: SPLIT-06, SPLIT-10, SPLIT-11, D-29
    pub elements: Vec<ExecutionElement>,
    /// The artifacts that accompany the flows.
    // Spec: SPLIT-15
    pub concurrency: Concurrency,
    /// The start tag.
    pub span: Span,
}

/// The artifacts that accompany the flows of a split.
// Spec: SPLIT-15, LTX-04, SUBJOB-26
#[derive(Clone, Debug, Default)]
pub struct Concurrency {
    /// Observes the logical transaction around all flows.
    pub logical_tx: Option<ArtifactRef>,
    /// Collects data on the thread of each flow.
    pub collector: Option<ArtifactRef>,
    /// Analyzes the data of the collectors, on the thread of the split.
    pub analyzer: Option<ArtifactRef>,
}

/// The partition of a step or flow.
///
/// Values may differ from partition to partition: [`Effective::resolve_partition`](crate::Effective::resolve_partition)
/// resolves the step or flow for one of them. The job contains the values outside of all partitions; some may be
/// [deferred](Partition::deferred).
// Spec: PART-01, PART-05, FPART-01, SUBST-09
#[derive(Clone, Debug)]
pub struct Partition {
    /// The number of partitions, unless there is an algorithm. Default 1.
    // Spec: PART-03, PART-18
    pub instances: NonZeroU32,
    /// The number of threads, if the document sets it. Never in the draft.
    pub threads: Option<NonZeroU32>,
    /// The properties of single partitions; ignored if there is an algorithm.
    // Spec: PART-08, PART-18
    pub properties: Vec<PartitionProperty>,
    /// Computes the partitions, on the parent thread.
    // Spec: PART-17, FPART-05
    pub algorithm: Option<ArtifactRef>,
    /// Observes the logical transaction around all partitions.
    // Spec: LTX-04
    pub logical_tx: Option<ArtifactRef>,
    /// Collects data on the thread of each partition.
    // Spec: SUBJOB-01
    pub collector: Option<ArtifactRef>,
    /// Analyzes the data of the collectors, on the parent thread.
    // Spec: SUBJOB-07
    pub analyzer: Option<ArtifactRef>,
    /// The symbols in the step or flow that have a value only in a partition.
    // Spec: SUBST-09
    pub deferred: BTreeSet<String>,
    /// The deferred symbols without a default.
    pub required: BTreeSet<String>,
    /// The start tag.
    pub span: Span,
}

/// A property for one partition, written `name.number`.
// Spec: PART-08, PART-09, PART-15, D-33
#[derive(Clone, Debug)]
pub struct PartitionProperty {
    /// The number of the partition, from 1 to the number of instances.
    pub number: NonZeroU32,
    /// The name without the number.
    pub name: Spanned<String>,
    /// The artifact that it is for, if only one.
    pub target: Option<Target>,
    /// The value as written: its symbols are resolved in the partition.
    pub value: Spanned<String>,
}

/// The artifact of a chunk that a property is for.
// Spec: JSL-CHPROP-03
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The item reader.
    Reader,
    /// The item processor.
    Processor,
    /// The item writer.
    Writer,
}

impl Target {
    pub(crate) const ALL: [Target; 3] = [Target::Reader, Target::Processor, Target::Writer];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Target::Reader => "reader",
            Target::Processor => "processor",
            Target::Writer => "writer",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|target| target.as_str() == name)
    }
}

/// A decision: an artifact selects the transition.
// Spec: DEC-01, DEC-05
#[derive(Clone, Debug)]
pub struct Decision {
    /// At most 100 characters, unique within the job.
    pub id: Spanned<String>,
    /// The artifact whose result selects the transition.
    // Spec: DEC-03, DEC-11
    pub decider: ArtifactRef,
    /// The transition elements in the order of the text, which is not the order of precedence.
    // Spec: DEC-10
    pub transitions: Vec<Transition>,
    /// The start tag.
    pub span: Span,
}

/// A step.
// Spec: JSL-STEP-01, JSL-STEP-17
#[derive(Clone, Debug)]
pub struct Step {
    /// At most 100 characters, unique within the job.
    pub id: Spanned<String>,
    /// Maximum number of restarts of the step within one job instance; 0, the default, means unlimited.
    // Spec: JSL-STEP-03
    pub start_limit: u32,
    /// True if a restart runs the step again although it completed. Default false.
    // Spec: JSL-STEP-08
    pub allow_start_if_complete: bool,
    /// The id of the sibling that follows unless a transition is taken. It exists.
    // Spec: JSL-STEP-11, JSL-STEP-12
    pub next: Option<Spanned<String>>,
    /// The properties of the step with their effective values, as exposed by StepContext, without those that have a
    /// target.
    // Spec: JSL-STEPPROP-03
    pub properties: Vec<Property>,
    /// The listeners of the step, in the order of the text.
    // Spec: JSL-STEPLIS-05
    pub listeners: Vec<ArtifactRef>,
    /// The chunk or batchlet.
    // Spec: JSL-STEP-16
    pub body: StepBody,
    /// The transition elements in the order of the text, which is not the order of precedence: SEQ-18.
    pub transitions: Vec<Transition>,
    /// The partition of the step, if it has one.
    // Spec: PART-01
    pub partition: Option<Partition>,
    /// The start tag.
    pub span: Span,
}

/// The work of a step.
#[derive(Clone, Debug)]
pub enum StepBody {
    /// Reads, processes and writes items.
    // Spec: JSL-CHUNK-01
    Chunk(Box<Chunk>),
    /// Calls a batchlet.
    // Spec: JSL-BATCHLET-01
    Batchlet(ArtifactRef),
}

/// A chunk.
// Spec: JSL-CHUNK-01, JSL-CHUNK-25
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The start tag.
    pub span: Span,
    /// The item reader.
    pub reader: ArtifactRef,
    /// The item processor; required in the draft, optional here. Without one, the items are written as they are read.
    // Spec: D-03
    pub processor: Option<ArtifactRef>,
    /// The item writer.
    pub writer: ArtifactRef,
    /// The checkpoint policy. Default `item`.
    pub checkpoint_policy: Spanned<CheckpointPolicy>,
    /// Items (policy `item`) or seconds (policy `time`) between checkpoints. Default 10; ignored by `custom`.
    pub commit_interval: NonZeroU32,
    /// Seconds until a checkpoint is taken even if the interval does not have all its items; only of policy `item`, and never in the draft.
    pub time_limit: Option<NonZeroU32>,
    /// Items per call of the writer. Default: the commit interval for policy `item`, else 10; always 1 if
    /// reads are not buffered.
    // Spec: JSL-CHUNK-18, JSL-CHUNK-19, JSL-CHUNK-20, JSL-CHUNK-21, D-04
    pub chunk_size: NonZeroU32,
    /// True if items are kept to write them again after a rollback. Default true.
    pub buffer_reads: bool,
    /// Maximum number of skipped exceptions; `None` is unlimited.
    // Spec: JSL-CHUNK-22, D-07
    pub skip_limit: Option<u32>,
    /// Maximum number of retries; `None` is unlimited.
    // Spec: JSL-CHUNK-23, D-07
    pub retry_limit: Option<u32>,
    /// Seconds until a checkpoint interval times out; 0, the default, is never.
    // Spec: JSL-CHUNK-24
    pub checkpoint_timeout: u32,
    /// The checkpoint algorithm; present only for the policy `custom`.
    // Spec: JSL-CHUNK-10, JSL-CHUNK-11
    pub checkpoint_algorithm: Option<ArtifactRef>,
    /// Exceptions that are skipped.
    // Spec: CHUNK-SKIP-01
    pub skippable: ExceptionClasses,
    /// Exceptions that cause a retry of the write.
    // Spec: CHUNK-RETRY-01
    pub retryable: ExceptionClasses,
    /// Exceptions that are retried without a rollback.
    // Spec: CHUNK-NORB-01
    pub no_rollback: ExceptionClasses,
}

/// The checkpoint policy of a chunk.
// Spec: JSL-CHUNK-05
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckpointPolicy {
    /// After a number of items.
    Item,
    /// After a number of seconds.
    Time,
    /// By decision of a checkpoint algorithm.
    Custom,
}

/// A set of exceptions by class name, both lists in the order of the text.
// Spec: CHUNK-SKIP-03, CHUNK-SKIP-04
#[derive(Clone, Debug, Default)]
pub struct ExceptionClasses {
    /// Classes that belong to the set.
    pub include: Vec<Spanned<String>>,
    /// Classes that are excluded although a more general one is included.
    pub exclude: Vec<Spanned<String>>,
    /// The start tag of the element; `None` if there is none.
    pub span: Option<Span>,
}

/// An artifact named in the XML.
#[derive(Clone, Debug)]
pub struct ArtifactRef {
    /// The name that the loader finds it by. Deferred: as written.
    pub name: Spanned<String>,
    /// The properties that reach the artifact from the XML, outermost first, each name once: a property of the
    /// partition wins, then the outermost one. Job parameters and system properties are included in the values, so
    /// within a partition these take precedence over both.
    // Spec: OVR-05, OVR-13, PART-12, D-34, D-36
    pub properties: Vec<Property>,
    /// True if the name is known only in a partition.
    // Spec: SUBST-09
    pub deferred: bool,
}

impl ArtifactRef {
    /// Returns the effective value of a property, if the XML has it.
    pub fn property(&self, name: &str) -> Option<&Spanned<String>> {
        let mut properties = self.properties.iter();
        let found = properties.find(|property| property.name.value == name)?;
        Some(&found.value)
    }
}

/// A property with its effective value.
// Spec: OVR-07
#[derive(Clone, PartialEq, Eq)]
pub struct Property {
    /// The name, never empty.
    pub name: Spanned<String>,
    /// The value of the job parameter of that name, else of the system property, else from the XML. The span is
    /// always in the XML. Deferred: as written.
    pub value: Spanned<String>,
    /// True if the value is known only in a partition.
    // Spec: SUBST-09
    pub deferred: bool,
    /// True if the property is meant for one artifact: it has a target, or is in the element of the artifact.
    pub is_addressed: bool,
}

impl fmt::Debug for Property {
    /// Shows what the property is, not how the document gives it, as for spans.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Property")
            .field("name", &self.name)
            .field("value", &self.value)
            .field("deferred", &self.deferred)
            .finish()
    }
}

/// A transition element of a step or decision.
// Spec: SEQ-04, TERM-01, TERM-02, TERM-03, DEC-06, DEC-07, DEC-08, DEC-09
#[derive(Clone, Debug)]
pub struct Transition {
    /// The action of the transition.
    pub kind: TransitionKind,
    /// The pattern that the exit status of the step, or the result of the decider, has to match. Never empty.
    pub on: Spanned<Pattern>,
    /// The start tag.
    pub span: Span,
}

/// The action of a transition element.
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
        /// The id of the job-level element that a restart starts with, which exists; `None` is this step or decision.
        // Spec: TERM-09
        restart: Option<Spanned<String>>,
    },
}
