//! The checked model of a job: plain data, every value with the place it comes from.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::span::{Source, Span, Spanned};

/// A concrete job, substituted and checked.
///
/// Spec: JSL-JOB-01, JSL-JOB-09
#[derive(Clone, Debug)]
pub struct Job {
    /// The name of the job, at most 100 characters.
    pub id: Spanned<String>,
    /// Whether an execution of the job may be restarted. Default true. Spec: JSL-JOB-03
    pub restartable: bool,
    /// The properties of the job with their effective values, as JobContext shows them. Spec: JSL-JOBPROP-03
    pub properties: Vec<Property>,
    /// The listeners of the job, in the order of the text. Spec: JSL-JOBLIS-08
    pub listeners: Vec<ArtifactRef>,
    /// The execution elements in the order of the text; the first is executed first. Abstract ones serve
    /// inheritance and are left out. Spec: SEQ-01, D-44
    pub elements: Vec<ExecutionElement>,
    /// Every name used in a `${..}` anywhere in the document.
    pub symbols: BTreeSet<String>,
    /// The names of all properties of the job and of everything in it that runs.
    pub property_names: BTreeSet<String>,
    /// The text the job was read from.
    pub source: Arc<Source>,
}

/// What a job consists of.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ExecutionElement {
    /// A step.
    Step(Step),
}

impl ExecutionElement {
    /// The id, unique within the job. Spec: JSL-DOC-14
    pub fn id(&self) -> &Spanned<String> {
        match self {
            ExecutionElement::Step(step) => &step.id,
        }
    }
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
    /// The name the artifact loader knows it by.
    pub name: Spanned<String>,
    /// Every property that reaches the artifact from the XML, outermost first, each name once: of several
    /// properties of one name the outermost reaches it. Spec: OVR-05, OVR-13, D-36
    pub properties: Vec<Property>,
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
    /// XML. The span is always that of the XML.
    pub value: Spanned<String>,
}

/// A transition element of a step.
///
/// Spec: SEQ-04, TERM-01, TERM-02, TERM-03
#[derive(Clone, Debug)]
pub struct Transition {
    /// What happens.
    pub kind: TransitionKind,
    /// The pattern that the exit status of the step has to match. Never empty. Spec: SEQ-13, SEQ-14, SEQ-15
    pub on: Spanned<String>,
    /// The start tag.
    pub span: Span,
}

/// What a transition element does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransitionKind {
    /// Another element follows.
    Next {
        /// The id of that element. It exists.
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
        /// The id of the job-level element a restart begins with; `None`: this step. It exists. Spec: TERM-09
        restart: Option<Spanned<String>>,
    },
}
