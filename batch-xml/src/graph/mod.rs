//! A job as a drawing: what leads where, as SVG, for Graphviz, or for Mermaid.
//!
//! The drawing is made of the resolved job, so it shows what would run: inherited elements are there, abstract
//! ones are not. The same job gives the same text, byte for byte.
//!
//! Spec: SEQ-01, SEQ-02, FLOW-03, FLOW-11, SPLIT-03, SPLIT-06, DEC-06

mod build;
mod dot;
mod layers;
mod mermaid;
mod place;
mod rank;
mod svg;

use crate::model::Job;

/// The drawing of one job.
///
/// ```
/// use std::collections::BTreeMap;
/// use batch_xml::graph::JobGraph;
/// use batch_xml::{Limits, Source, Values, parse, resolve};
///
/// let text = r#"<job id="payroll">
///   <step id="load" next="pay"><batchlet ref="Load"/></step>
///   <step id="pay"><batchlet ref="Pay"/><fail on="BROKE"/></step>
/// </job>"#;
/// let (limits, none) = (Limits::default(), BTreeMap::new());
/// let values = Values { parameters: &none, system: &none };
/// let document = parse(&Source::new("payroll.xml", text), &limits)?;
/// let job = resolve(&document, &Vec::new(), &values, &limits)?.job;
///
/// let text = JobGraph::new(&job).to_mermaid();
/// assert!(text.contains("n1 --> n2"), "{text}");
/// assert!(text.contains(r#"n2 -->|"BROKE"| n3["fail"]"#), "{text}");
/// # Ok::<(), batch_xml::JobXmlErrors>(())
/// ```
#[derive(Clone, Debug)]
pub struct JobGraph {
    title: String,
    root: Group,
}

impl JobGraph {
    /// What there is to draw of a job.
    pub fn new(job: &Job) -> JobGraph {
        JobGraph {
            title: job.id.value.clone(),
            root: build::group(&job.elements, None),
        }
    }

    /// The drawing as a picture. It has no background and needs none: it can be read on a light page and on a
    /// dark one.
    pub fn to_svg(&self) -> String {
        svg::write(&self.title, &place::place(&self.root))
    }

    /// The drawing as text for Graphviz.
    pub fn to_dot(&self) -> String {
        dot::write(&self.title, &self.root)
    }

    /// The drawing as text for Mermaid, for example in Markdown.
    pub fn to_mermaid(&self) -> String {
        mermaid::write(&self.root)
    }
}

/// The elements of a job, flow or split, which lead to each other only.
#[derive(Clone, Debug)]
struct Group {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    /// Where it begins: one element, but in a split every flow that no other leads to.
    starts: Vec<usize>,
    /// After which elements it ends because nothing follows.
    ends: Vec<usize>,
    is_split: bool,
}

#[derive(Clone, Debug)]
struct Node {
    kind: NodeKind,
    id: String,
    /// What it does, in a few words.
    detail: String,
    /// How often it runs at the same time, if it is partitioned: a number, or `n`.
    partitions: Option<String>,
    /// Transitions that lead out of everything, and back to the element itself.
    exits: Vec<Exit>,
    /// What is in a flow or split.
    group: Option<Group>,
    /// `file:line:column`
    place: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeKind {
    Step,
    Decision,
    Flow,
    Split,
}

impl NodeKind {
    fn word(self) -> &'static str {
        match self {
            NodeKind::Step => "step",
            NodeKind::Decision => "decision",
            NodeKind::Flow => "flow",
            NodeKind::Split => "split",
        }
    }
}

/// From an element to a sibling of it.
#[derive(Clone, Debug)]
struct Edge {
    from: usize,
    to: usize,
    /// The patterns that lead there; none: it is the attribute `next`.
    on: Vec<String>,
}

impl Edge {
    fn label(&self) -> Option<String> {
        (!self.on.is_empty()).then(|| self.on.join(", "))
    }
}

/// A transition that leads to no sibling.
#[derive(Clone, Debug)]
struct Exit {
    kind: ExitKind,
    on: String,
    /// What is known beyond the kind: exit status, where a restart begins.
    detail: String,
    /// The id a restart begins with.
    restart: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExitKind {
    End,
    Fail,
    Stop,
    /// The element once more.
    Again,
}

impl ExitKind {
    fn word(self) -> &'static str {
        match self {
            ExitKind::End => "end",
            ExitKind::Fail => "fail",
            ExitKind::Stop => "stop",
            ExitKind::Again => "again",
        }
    }
}

impl Exit {
    fn text(&self) -> String {
        if self.detail.is_empty() {
            self.kind.word().to_owned()
        } else {
            format!("{} {}", self.kind.word(), self.detail)
        }
    }
}
