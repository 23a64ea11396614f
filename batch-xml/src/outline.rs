//! The execution elements of a job as a graph of ids.

use crate::model::ElementKind;
use crate::span::Spanned;

/// The container that is the job itself.
pub(crate) const JOB: usize = 0;

/// An execution element.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) id: Spanned<String>,
    pub(crate) kind: ElementKind,
    /// [`JOB`], or the number of its flow or split. Only siblings lead to each other.
    pub(crate) container: usize,
    pub(crate) is_abstract: bool,
    pub(crate) is_partitioned: bool,
    /// The `next` attribute.
    pub(crate) next: Option<Spanned<String>>,
    /// The ids in its transition elements.
    pub(crate) targets: Vec<Reference>,
    /// True if it has a `stop` element without `restart`, so that a restart starts here.
    pub(crate) restarts_here: bool,
}

/// An id in an attribute of a transition element.
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
    /// The kinds of the flows and splits that contain something that runs, from container 1 on.
    containers: Vec<ElementKind>,
    /// True if the job level has a step, flow or split that is not abstract, even if it is too wrong to be a node.
    pub(crate) has_concrete_element: bool,
}

impl Outline {
    /// Adds a container of siblings.
    pub(crate) fn add_container(&mut self, kind: ElementKind) -> usize {
        self.containers.push(kind);
        self.containers.len()
    }

    /// Returns all containers with their kinds; `None` is the job.
    pub(crate) fn containers(&self) -> impl Iterator<Item = (usize, Option<ElementKind>)> {
        let within = self.containers.iter().enumerate();
        std::iter::once((JOB, None)).chain(within.map(|(index, kind)| (index + 1, Some(*kind))))
    }
}
