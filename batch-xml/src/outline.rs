//! The execution elements of a job as a graph: who is named what, and who leads where.

use crate::span::Spanned;

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

/// The container that is the job itself.
pub(crate) const JOB: usize = 0;

/// An execution element.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) id: Spanned<String>,
    pub(crate) kind: Kind,
    /// Where it stands: [`JOB`], or the number of its flow or split. Only siblings lead to each other.
    pub(crate) container: usize,
    pub(crate) is_abstract: bool,
    pub(crate) is_partitioned: bool,
    /// The `next` attribute.
    pub(crate) next: Option<Spanned<String>>,
    /// What its transition elements name.
    pub(crate) targets: Vec<Reference>,
    /// Whether it has a `stop` element that does not say where a restart begins: it does so here.
    pub(crate) restarts_here: bool,
}

/// An id named by an attribute of a transition element.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    /// `to` or `restart`.
    pub(crate) attribute: &'static str,
    pub(crate) id: Spanned<String>,
}

/// All execution elements of a job, in the order of the text.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    pub(crate) nodes: Vec<Node>,
    /// The flows and splits that hold something that runs: the kind of container 1, of container 2, and so
    /// on.
    containers: Vec<Kind>,
    /// Whether there is a step, flow or split that is not abstract at job level, even one too wrong to
    /// be a node.
    pub(crate) has_concrete_element: bool,
}

impl Outline {
    /// A new place for siblings.
    pub(crate) fn add_container(&mut self, kind: Kind) -> usize {
        self.containers.push(kind);
        self.containers.len()
    }

    /// All places, each with its kind; `None` is the job.
    pub(crate) fn containers(&self) -> impl Iterator<Item = (usize, Option<Kind>)> {
        let within = self.containers.iter().enumerate();
        std::iter::once((JOB, None)).chain(within.map(|(index, kind)| (index + 1, Some(*kind))))
    }
}
