//! Builds jobs in Rust, with the elements, attributes and checks of the XML.

use crate::diagnostics::JobXmlErrors;
use crate::document::{Document, parse};
use crate::limits::Limits;
use crate::model::Target;
use crate::span::Source;
use crate::write::Node;

/// Builds a [`Document`] in Rust instead of XML. Values may hold symbols `${..}`; everything is checked by
/// [`document`](JobBuilder::document).
///
/// ```
/// use batch_xml::builder::{ArtifactBuilder, JobBuilder, StepBuilder};
/// use batch_xml::{Limits, Values, resolve};
/// use std::collections::BTreeMap;
///
/// let report = ArtifactBuilder::new("Report").property("title", "${month}");
/// let document = JobBuilder::new("payroll")
///     .property("month", "May")
///     .element(StepBuilder::batchlet("load", ArtifactBuilder::new("Load")).next("reprot"))
///     .element(StepBuilder::batchlet("report", report).fail("EMPTY", Some("NO DATA")))
///     .document(&Limits::default())?;
///
/// let none = BTreeMap::new();
/// let values = Values { parameters: &none, system: &none };
/// let errors = resolve(&document, &Vec::new(), &values, &Limits::default()).unwrap_err();
/// assert_eq!(errors.to_string(), "\
/// error[JSL0012]: `next` refers to an unknown element `reprot`
///  --> job `payroll`:6:25
///   |
/// 6 |   <step id=\"load\" next=\"reprot\">
///   |                         ^^^^^^ no step, flow, split or decision has this id
///   = help: did you mean `report`?");
/// # Ok::<(), batch_xml::JobXmlErrors>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct JobBuilder(Node);

/// Builds a step.
#[derive(Clone, Debug)]
#[must_use]
pub struct StepBuilder(Node);

/// Builds a chunk.
#[derive(Clone, Debug)]
#[must_use]
pub struct ChunkBuilder(Node);

/// Builds a flow.
#[derive(Clone, Debug)]
#[must_use]
pub struct FlowBuilder(Node);

/// Builds a split.
#[derive(Clone, Debug)]
#[must_use]
pub struct SplitBuilder(Node);

/// Builds a decision.
#[derive(Clone, Debug)]
#[must_use]
pub struct DecisionBuilder(Node);

/// Builds the reference to an artifact.
#[derive(Clone, Debug)]
#[must_use]
pub struct ArtifactBuilder(Node);

/// Builds the partition of a step or flow.
#[derive(Clone, Debug)]
#[must_use]
pub struct PartitionBuilder(Node);

/// A finished step, flow, split or decision.
#[derive(Clone, Debug)]
pub struct BuiltElement(Node);

macro_rules! attributes {
    ($($(#[$doc:meta])* $method:ident: $kind:ty => $name:literal;)*) => {
        $($(#[$doc])* pub fn $method(mut self, value: $kind) -> Self {
            self.0.set($name, value);
            self
        })*
    };
}

macro_rules! inherits {
    ($kind:literal) => {
        attributes! {
            #[doc = concat!("Sets the ", $kind, " it inherits from.")]
            parent: &str => "parent";
            /// Sets whether it can only be used as a parent.
            is_abstract: bool => "abstract";
        }
    };
}

macro_rules! artifacts {
    ($($(#[$doc:meta])* $method:ident => $name:literal $(in $list:literal)?;)*) => {
        $($(#[$doc])* pub fn $method(mut self, artifact: ArtifactBuilder) -> Self {
            self.0$(.child($list))?.push(artifact.named($name));
            self
        })*
    };
}

macro_rules! properties {
    () => {
        /// Adds a property.
        pub fn property(mut self, name: &str, value: &str) -> Self {
            self.0.push_property(name, value, None);
            self
        }
    };
    (targeted) => {
        properties!();

        /// Adds a property for one artifact of the chunk.
        pub fn property_for(mut self, target: Target, name: &str, value: &str) -> Self {
            self.0.push_property(name, value, Some(target));
            self
        }
    };
}

macro_rules! elements {
    ($what:literal) => {
        #[doc = concat!("Adds ", $what, ".")]
        pub fn element(mut self, element: impl Into<BuiltElement>) -> Self {
            self.0.push(element.into().0);
            self
        }
    };
}

macro_rules! transitions {
    () => {
        /// Adds a transition to another element.
        pub fn next_on(mut self, on: &str, to: &str) -> Self {
            self.0.push(Node::new("next").with("on", on).with("to", to));
            self
        }

        /// Adds a transition that ends the job as FAILED.
        pub fn fail(self, on: &str, exit_status: Option<&str>) -> Self {
            self.terminating("fail", on, exit_status, None)
        }

        /// Adds a transition that ends the job as COMPLETED.
        pub fn end(self, on: &str, exit_status: Option<&str>) -> Self {
            self.terminating("end", on, exit_status, None)
        }

        /// Adds a transition that ends the job as STOPPED, and names the element that a restart starts with.
        pub fn stop(self, on: &str, exit_status: Option<&str>, restart: Option<&str>) -> Self {
            self.terminating("stop", on, exit_status, restart)
        }

        fn terminating(
            mut self,
            name: &str,
            on: &str,
            exit_status: Option<&str>,
            restart: Option<&str>,
        ) -> Self {
            let node = Node::new(name).with("on", on);
            let node = node.with_some("exit-status", exit_status);
            self.0.push(node.with_some("restart", restart));
            self
        }
    };
}

macro_rules! built {
    ($($builder:ident)*) => {
        $(impl From<$builder> for BuiltElement {
            fn from(builder: $builder) -> BuiltElement {
                BuiltElement(builder.0)
            }
        })*
    };
}

built!(StepBuilder FlowBuilder SplitBuilder DecisionBuilder);

impl JobBuilder {
    /// Creates a job without elements.
    pub fn new(id: &str) -> JobBuilder {
        JobBuilder(Node::new("job").with("id", id))
    }

    properties!();
    artifacts! {
        /// Adds a listener.
        listener => "listener" in "listeners";
    }
    elements!("a step, flow, split or decision; execution starts with the first that is not a decision");
    attributes! {
        /// Sets whether executions of the job may be restarted. Default true.
        restartable: bool => "restartable";
    }
    inherits!("job");

    /// Returns the job as XML.
    pub fn to_xml(&self) -> String {
        self.0.to_xml()
    }

    /// Parses the XML of the job. Diagnostics show that XML, under the name ``job `id` ``.
    ///
    /// # Errors
    ///
    /// A character that XML cannot hold, an invalid id, or an exceeded limit.
    pub fn document(&self, limits: &Limits) -> Result<Document, JobXmlErrors> {
        let id = self.0.attribute("id").unwrap_or_default();
        parse(&Source::new(format!("job `{id}`"), self.to_xml()), limits)
    }
}

impl StepBuilder {
    /// Creates a step without chunk and batchlet, to inherit one.
    pub fn new(id: &str) -> StepBuilder {
        StepBuilder(Node::new("step").with("id", id))
    }

    /// Creates a step that runs a batchlet.
    pub fn batchlet(id: &str, batchlet: ArtifactBuilder) -> StepBuilder {
        let mut step = StepBuilder::new(id);
        step.0.push(batchlet.named("batchlet"));
        step
    }

    /// Creates a step that processes items.
    pub fn chunk(id: &str, chunk: ChunkBuilder) -> StepBuilder {
        let mut step = StepBuilder::new(id);
        step.0.push(chunk.0);
        step
    }

    properties!(targeted);
    artifacts! {
        /// Adds a listener.
        listener => "listener" in "listeners";
    }
    transitions!();
    attributes! {
        /// Sets the element that follows.
        next: &str => "next";
        /// Sets the maximum number of restarts of the step; 0, the default, means unlimited.
        start_limit: u32 => "start-limit";
        /// Sets whether a restart runs the step again although it completed. Default false.
        allow_start_if_complete: bool => "allow-start-if-complete";
    }
    inherits!("step");

    /// Partitions the step.
    pub fn partition(mut self, partition: PartitionBuilder) -> StepBuilder {
        self.0.push(partition.0);
        self
    }
}

impl ChunkBuilder {
    /// Creates a chunk with these artifacts.
    pub fn new(reader: &str, processor: &str, writer: &str) -> ChunkBuilder {
        let node = Node::new("chunk").with("reader", reader);
        ChunkBuilder(node.with("processor", processor).with("writer", writer))
    }

    properties!(targeted);
    attributes! {
        /// Sets the checkpoint policy: `item`, the default, `time` or `custom`.
        checkpoint_policy: &str => "checkpoint-policy";
        /// Sets the items or seconds between checkpoints. Default 10.
        commit_interval: u32 => "commit-interval";
        /// Sets the items per call of the writer. Default: the commit interval of the policy `item`, else 10.
        chunk_size: u32 => "chunk-size";
        /// Sets whether items are kept to be written again after a rollback. Default true.
        buffer_reads: bool => "buffer-reads";
        /// Sets the maximum number of skipped exceptions. Default: unlimited.
        skip_limit: u32 => "skip-limit";
        /// Sets the maximum number of retries. Default: unlimited.
        retry_limit: u32 => "retry-limit";
        /// Sets the seconds until a checkpoint interval times out; 0, the default, means never.
        checkpoint_timeout: u32 => "checkpoint-timeout";
    }
    artifacts! {
        /// Sets the algorithm of the checkpoint policy `custom`.
        checkpoint_algorithm => "checkpoint-algorithm";
    }

    /// Skips these exceptions, except the excluded ones.
    pub fn skippable(self, include: &[&str], exclude: &[&str]) -> ChunkBuilder {
        self.classes("skippable-exception-classes", include, exclude)
    }

    /// Retries after these exceptions, except the excluded ones.
    pub fn retryable(self, include: &[&str], exclude: &[&str]) -> ChunkBuilder {
        self.classes("retryable-exception-classes", include, exclude)
    }

    /// Retries after these exceptions without a rollback, except the excluded ones.
    pub fn no_rollback(self, include: &[&str], exclude: &[&str]) -> ChunkBuilder {
        self.classes("no-rollback-exception-classes", include, exclude)
    }

    fn classes(mut self, name: &str, include: &[&str], exclude: &[&str]) -> ChunkBuilder {
        let list = self.0.child(name);
        for class in include {
            list.push(Node::new("include").with("class", class));
        }
        for class in exclude {
            list.push(Node::new("exclude").with("class", class));
        }
        self
    }
}

impl FlowBuilder {
    /// Creates a flow without elements.
    pub fn new(id: &str) -> FlowBuilder {
        FlowBuilder(Node::new("flow").with("id", id))
    }

    elements!("a step or decision; execution starts with the first step");
    attributes! {
        /// Sets the element that follows the whole flow.
        next: &str => "next";
    }
    inherits!("flow");

    /// Partitions the flow.
    pub fn partition(mut self, partition: PartitionBuilder) -> FlowBuilder {
        self.0.push(partition.0);
        self
    }
}

impl SplitBuilder {
    /// Creates a split without elements.
    pub fn new(id: &str) -> SplitBuilder {
        SplitBuilder(Node::new("split").with("id", id))
    }

    elements!("a flow or decision");
    attributes! {
        /// Sets the element that follows the whole split.
        next: &str => "next";
    }
    inherits!("split");

    artifacts! {
        /// Sets the observer of the logical transaction around all flows.
        logical_tx => "logicalTX" in "concurrency";
        /// Sets the collector, which runs on the thread of each flow.
        collector => "collector" in "concurrency";
        /// Sets the analyzer of the collectors' payloads.
        analyzer => "analyzer" in "concurrency";
    }
}

impl DecisionBuilder {
    /// Creates a decision without transitions.
    pub fn new(id: &str, decider: &str) -> DecisionBuilder {
        DecisionBuilder(Node::new("decision").with("id", id).with("decider", decider))
    }

    properties!();
    transitions!();
}

impl ArtifactBuilder {
    /// Creates a reference to the artifact with this name.
    pub fn new(name: &str) -> ArtifactBuilder {
        ArtifactBuilder(Node::new("artifact").with("ref", name))
    }

    properties!();

    fn named(mut self, element: &str) -> Node {
        self.0.rename(element);
        self.0
    }
}

impl PartitionBuilder {
    /// Creates a fixed number of partitions.
    pub fn new(instances: u32) -> PartitionBuilder {
        PartitionBuilder(Node::new("partition").with("instances", instances))
    }

    /// Creates partitions that an artifact computes.
    pub fn algorithm(algorithm: ArtifactBuilder) -> PartitionBuilder {
        let mut node = Node::new("partition");
        node.push(algorithm.named("algorithm"));
        PartitionBuilder(node)
    }

    artifacts! {
        /// Sets the observer of the logical transaction around all partitions.
        logical_tx => "logicalTX";
        /// Sets the collector, which runs on the thread of each partition.
        collector => "collector";
        /// Sets the analyzer of the collectors' payloads.
        analyzer => "analyzer";
    }

    /// Adds a property of one partition, counted from 1, optionally for one artifact of the chunk.
    pub fn property(
        mut self,
        number: u32,
        name: &str,
        value: &str,
        target: Option<Target>,
    ) -> PartitionBuilder {
        self.0.push_property(&format!("{name}.{number}"), value, target);
        self
    }
}
