//! What has been found while a job is bound, and where in the job its elements are.

use std::collections::BTreeSet;
use std::sync::Arc;

use batch_xml::model::{Step, StepBody};
use batch_xml::{Diagnostic, Span};

use super::NestedJobRef;
use super::runtime_names::Defaults;
use super::source::Source;
use super::unused::PropertyUses;
use crate::engine::{BoundListener, PartitionKey};
use crate::role::{Place, Role};

/// Two properties of a step, flows of a split or partitions name the same output, or two partitions read the same input.
pub(super) const SHARED_OUTPUT: &str = "ART0029";

/// Binds a job.
pub(super) struct Binder<'a> {
    pub(super) source: &'a Arc<Source>,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) warnings: Vec<Diagnostic>,
    pub(super) parameter_names: BTreeSet<String>,
    pub(super) transactional_writer: Option<String>,
    pub(super) nested: Vec<NestedJobRef>,
    pub(super) uses: PropertyUses,
    /// True if the partitions in the XML are checked one by one, as before the start of a job.
    pub(super) checks_partitions: bool,
    /// The enclosing partitions, outermost first.
    pub(super) path: Vec<PartitionKey>,
    /// True if properties may be unknown: a partitioned element is checked from outside because the number of its
    /// partitions is unknown, or the job lacks parts that are wrong.
    pub(super) is_incomplete: bool,
    /// The number of partitions checked so far.
    pub(super) checked_partitions: u32,
    /// The runtime properties that the job sets for all its elements.
    pub(super) defaults: Defaults,
    /// The listeners of the job that could be bound, with their places: some listen to the items of each chunk.
    pub(super) job_listeners: Vec<ListenerAt>,
}

/// A listener and the place of its `ref`.
pub(super) type ListenerAt = (Arc<BoundListener>, Span);

impl<'a> Binder<'a> {
    pub(super) fn new(source: &'a Arc<Source>) -> Self {
        Self {
            source,
            diagnostics: Vec::new(),
            warnings: Vec::new(),
            parameter_names: BTreeSet::new(),
            transactional_writer: None,
            nested: Vec::new(),
            uses: PropertyUses::default(),
            checks_partitions: false,
            path: Vec::new(),
            is_incomplete: false,
            checked_partitions: 0,
            defaults: Defaults::default(),
            job_listeners: Vec::new(),
        }
    }
}

/// The roles of listeners that are bound at a place.
// Spec: PART-31
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    All,
    /// Roles that run on the parent thread of a partitioned step.
    Step,
    /// Roles that run in its partitions.
    Partitions,
}

impl Wanted {
    pub(super) fn contains(self, role: Role) -> bool {
        match self {
            Self::All => true,
            Self::Step => role == Role::StepListener,
            Self::Partitions => role != Role::StepListener,
        }
    }
}

/// Returns the place of the step's listeners.
pub(super) fn listener_place(step: &Step) -> Place {
    match &step.body {
        StepBody::Chunk(_) => Place::Chunk,
        StepBody::Batchlet(_) => Place::Batchlet,
    }
}

pub(super) fn without_place(listeners: Vec<ListenerAt>) -> Vec<Arc<BoundListener>> {
    listeners.into_iter().map(|(listener, _)| listener).collect()
}

/// Returns `None` if some part could not be bound.
pub(super) fn all<T>(bound: Option<Option<T>>) -> Option<Option<T>> {
    bound.map_or(Some(None), |bound| bound.map(Some))
}

/// The enclosing elements of an artifact, whose contexts are in scope.
// Spec: CTX-10 to CTX-12
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scope {
    pub(super) step: bool,
    pub(super) flow: bool,
    pub(super) split: bool,
}

impl Scope {
    /// Returns the scope of a decider, which depends on the decision's predecessor.
    pub(super) fn all() -> Self {
        Self {
            step: true,
            flow: true,
            split: true,
        }
    }
}
