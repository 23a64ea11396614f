//! Draws a job as SVG, for Graphviz, or for Mermaid.
//!
//! The drawing shows the resolved job: with inherited elements, without abstract ones. The same job gives the same
//! text, byte for byte.
// Spec: SEQ-01, SEQ-02, FLOW-03, FLOW-11, SPLIT-03, SPLIT-06, DEC-06

mod build;
mod dot;
mod layers;
mod mermaid;
mod place;
mod rank;
mod svg;

use std::fmt::{self, Write as _};

use crate::model::{ElementKind, Job};

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
    /// Builds the drawing of a job.
    pub fn new(job: &Job) -> JobGraph {
        JobGraph {
            title: job.id.value.clone(),
            root: build::group(&job.elements, None),
        }
    }

    /// Marks elements, for a drawing that shows a run of the job: `mark` is called with the id of each element.
    ///
    /// ```
    /// # use std::collections::BTreeMap;
    /// # use batch_xml::graph::{ElementMark, JobGraph};
    /// # use batch_xml::{Limits, Source, Values, parse, resolve};
    /// # let text = r#"<job id="payroll"><step id="load"><batchlet ref="Load"/></step></job>"#;
    /// # let (limits, none) = (Limits::default(), BTreeMap::new());
    /// # let values = Values { parameters: &none, system: &none };
    /// # let document = parse(&Source::new("payroll.xml", text), &limits)?;
    /// # let job = resolve(&document, &Vec::new(), &values, &limits)?.job;
    /// let graph = JobGraph::new(&job).marked(|id| {
    ///     Some(ElementMark { class: "running".into(), link: Some(format!("#{id}")) })
    /// });
    /// assert!(graph.to_svg_element().contains(r##"<a href="#load">"##));
    /// # Ok::<(), batch_xml::JobXmlErrors>(())
    /// ```
    #[must_use]
    pub fn marked(mut self, mut mark: impl FnMut(&str) -> Option<ElementMark>) -> JobGraph {
        self.root.mark(&mut mark);
        self
    }

    /// Returns the drawing as a picture without background, readable on light and dark pages.
    pub fn to_svg(&self) -> String {
        svg::write(&self.title, &place::place(&self.root), svg::Style::Included)
    }

    /// Returns the drawing as an element of an HTML page that has a style sheet for it. The element has the class `job-graph`, each element
    /// of the job the classes `element`, `of-step` (`of-flow`, `of-split`, `of-decision`) and the class of its mark; the shapes in it are
    /// named in [`to_svg`](Self::to_svg)'s own style sheet.
    pub fn to_svg_element(&self) -> String {
        svg::write(&self.title, &place::place(&self.root), svg::Style::OfThePage)
    }

    /// Returns the drawing as text for Graphviz.
    pub fn to_dot(&self) -> String {
        dot::write(&self.title, &self.root)
    }

    /// Returns the drawing as text for Mermaid, for example in Markdown.
    pub fn to_mermaid(&self) -> String {
        mermaid::write(&self.root)
    }
}

/// A mark of an element in a drawing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElementMark {
    /// A class of the page's style sheet.
    pub class: String,
    /// The page that a click on the element opens.
    pub link: Option<String>,
}

/// The elements of a job, flow or split, which lead only to each other.
#[derive(Clone, Debug)]
struct Group {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    /// The first element; in a split, every flow that no other element leads to.
    starts: Vec<usize>,
    /// The elements without successor.
    ends: Vec<usize>,
    is_split: bool,
}

impl Group {
    fn mark(&mut self, mark: &mut dyn FnMut(&str) -> Option<ElementMark>) {
        for node in &mut self.nodes {
            node.mark = mark(&node.id);
            if let Some(group) = &mut node.group {
                group.mark(mark);
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Node {
    kind: ElementKind,
    id: String,
    /// A short description of its work.
    detail: String,
    /// The number of its partitions: a number, or `n`.
    partitions: Option<String>,
    /// Transitions that end the job, or lead back to the element itself.
    exits: Vec<Exit>,
    /// The contents of a flow or split.
    group: Option<Group>,
    /// `file:line:column`
    place: String,
    mark: Option<ElementMark>,
}

impl Node {
    /// Returns the id, with the number of partitions.
    fn title(&self) -> String {
        match &self.partitions {
            Some(count) => format!("{} × {count}", self.id),
            None => self.id.clone(),
        }
    }
}

/// An edge between siblings.
#[derive(Clone, Debug)]
struct Edge {
    from: usize,
    to: usize,
    /// The patterns of the transitions; none for the attribute `next`.
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
    /// Further details: exit status, start of a restart.
    detail: String,
    /// The id that a restart starts with.
    restart: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExitKind {
    End,
    Fail,
    Stop,
    /// Leads back to the same element.
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

/// The lines of a drawing as text, indented by depth.
#[derive(Default)]
struct Lines {
    text: String,
    depth: usize,
    /// The number of names given.
    names: usize,
    /// The edges from an exit to the id that a restart starts with, which are written once all nodes have names.
    restarts: Vec<(String, String)>,
}

impl Lines {
    /// Lets `writeln!` append a line.
    fn write_fmt(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a `String` cannot fail.
        let _ = write!(self.text, "{:1$}{line}", "", 2 * self.depth);
    }

    /// Returns a new name of a node.
    fn name(&mut self) -> String {
        self.names += 1;
        format!("n{}", self.names)
    }
}
