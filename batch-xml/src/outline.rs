//! The execution elements of a job as a graph: who is named what, and who leads where.

use crate::span::Spanned;
use crate::symbols;
use crate::tree::Element;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Step,
    Flow,
    Split,
    Decision,
}

impl Kind {
    pub(crate) fn from_name(name: &str) -> Option<Kind> {
        match name {
            "step" => Some(Kind::Step),
            "flow" => Some(Kind::Flow),
            "split" => Some(Kind::Split),
            "decision" => Some(Kind::Decision),
            _ => None,
        }
    }
}

/// An execution element.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: Spanned<String>,
    pub(crate) kind: Kind,
    /// Whether it is a child of the job. Nested ones share the ids of the job, but are no targets of it.
    pub(crate) at_job_level: bool,
    pub(crate) is_abstract: bool,
    /// The `next` attribute.
    pub(crate) next: Option<Spanned<String>>,
    /// What its transition elements name.
    pub(crate) targets: Vec<Reference>,
}

/// An id named by an attribute of a transition element.
#[derive(Debug)]
pub(crate) struct Reference {
    /// `to` or `restart`.
    pub(crate) attribute: &'static str,
    pub(crate) id: Spanned<String>,
}

/// All execution elements of a job, in the order of the text.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    pub(crate) nodes: Vec<Node>,
    /// Whether there is a step, flow or split that is not abstract, even one too wrong to be a node.
    pub(crate) has_concrete_element: bool,
}

impl Outline {
    /// The element a job begins with.
    ///
    /// Spec: SEQ-01
    pub(crate) fn first(&self) -> Option<&Node> {
        self.nodes
            .iter()
            .find(|node| node.at_job_level && !node.is_abstract && node.kind != Kind::Decision)
    }

    /// Adds what stands within a flow or split. Its contents are not lowered, so ids that hold symbols are
    /// left out.
    pub(crate) fn add_nested(&mut self, element: &Element) {
        for child in &element.children {
            child.walk(&mut |inner| {
                let id = inner
                    .attribute("id")
                    .filter(|id| !symbols::has_symbols(&id.value));
                if let (Some(kind), Some(id)) = (Kind::from_name(&inner.name), id) {
                    let id = id.value.clone();
                    let node = Node {
                        id,
                        kind,
                        at_job_level: false,
                        is_abstract: false,
                        next: None,
                        targets: Vec::new(),
                    };
                    self.nodes.push(node);
                }
            });
        }
    }
}
