//! The dialects of Job XML, and every rule on which they differ.
//!
//! A document decides its dialect, and the job carries it from the reader to the engine. All other code asks the
//! dialect and never compares it with another. A new dialect is a file beside `draft.rs` that fills in [`Rules`], and
//! a variant of [`Dialect`].

mod draft;
pub(crate) mod elements;

use crate::pattern::{self, Pattern};
use elements::{Required, Rule};

/// The rules that a job follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// The draft of 5 July 2012, as interpreted by the catalogue of requirements.
    #[default]
    Draft,
}

/// A source of the value of a symbol or property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValueSource {
    /// The plan of the partition that the place is in.
    Partition,
    /// The job parameters.
    JobParameter,
    /// The system properties.
    SystemProperty,
    /// The properties of the enclosing elements, the outermost first.
    OutermostProperty,
}

/// The rules of one dialect.
pub(crate) struct Rules {
    /// The elements, their attributes and their children.
    pub(crate) elements: &'static [Rule],
    /// The requirements of a complete element.
    pub(crate) required: &'static [Required],
    /// The elements that may have a parent. Spec: INH-01
    pub(crate) inheritable: &'static [&'static str],
    /// The text before the name in a symbol. Spec: SUBST-01
    pub(crate) symbol_start: &'static str,
    /// The text after it.
    pub(crate) symbol_end: &'static str,
    /// The order in which the value of a name is looked up. Spec: OVR-02, OVR-04, OVR-05, PART-12, D-34
    pub(crate) precedence: &'static [ValueSource],
    /// The least number of characters that `*` matches. Spec: SEQ-14, D-20
    pub(crate) star_min_chars: usize,
    /// True if the most specific of several matching transition elements is taken, and not the first. Spec: SEQ-18, D-19
    pub(crate) most_specific_transition_first: bool,
    /// See [`Dialect::unmatched_step_fails`].
    pub(crate) unmatched_step_fails: bool,
    /// See [`Dialect::termination_sets_step_status`].
    pub(crate) termination_sets_step_status: bool,
    /// See [`Dialect::ending_flow_stops_siblings`].
    pub(crate) ending_flow_stops_siblings: bool,
    /// See [`Dialect::restart_resumes_at_stopped_element`].
    pub(crate) restart_resumes_at_stopped_element: bool,
    /// True if `start-limit` counts the first start of a step, and not only its restarts. Spec: JSL-STEP-04, D-59
    pub(crate) start_limit_counts_first_start: bool,
}

impl Dialect {
    pub(crate) fn rules(self) -> &'static Rules {
        match self {
            Self::Draft => &draft::RULES,
        }
    }

    /// Returns the value of a name from the first source that has one, in the order of the dialect. The only place that
    /// knows the precedence of job parameters, system properties and properties.
    ///
    /// Spec: OVR-02 to OVR-05, PART-12, D-34
    pub fn first_value<T>(self, mut value: impl FnMut(ValueSource) -> Option<T>) -> Option<T> {
        let mut sources = self.rules().precedence.iter();
        sources.find_map(|source| value(*source))
    }

    /// Returns the pattern of exit statuses that is written as `text`.
    ///
    /// Spec: SEQ-13, SEQ-14, SEQ-15, SEQ-16, D-20
    pub fn pattern(self, text: impl Into<String>) -> Pattern {
        Pattern::with_star(text, self.rules().star_min_chars)
    }

    /// Returns the transition element to take for an exit status. `on` returns the pattern of an element.
    ///
    /// Spec: SEQ-17, SEQ-18, SEQ-19, DEC-10, D-19
    pub fn select<'t, T>(
        self,
        transitions: &'t [T],
        on: impl Fn(&T) -> &Pattern,
        exit_status: &str,
    ) -> Option<&'t T> {
        let mut matching = transitions
            .iter()
            .filter(|transition| on(transition).matches(exit_status));
        if self.rules().most_specific_transition_first {
            matching.min_by_key(|transition| on(transition).specificity())
        } else {
            matching.next()
        }
    }

    /// Returns, for each transition that is never taken, its index and that of one which always precedes it.
    pub(crate) fn shadowed(self, patterns: &[&Pattern]) -> Vec<(usize, usize)> {
        pattern::shadowed(patterns, self.rules().most_specific_transition_first)
    }

    /// Returns whether a step fails the job if it has `next` elements and none matches, instead of completing it.
    ///
    /// Spec: SEQ-21, D-21
    pub fn unmatched_step_fails(self) -> bool {
        self.rules().unmatched_step_fails
    }

    /// Returns whether a `fail`, `end` or `stop` element that ends the job also sets the batch status of its step.
    ///
    /// Spec: TERM-08, D-23
    pub fn termination_sets_step_status(self) -> bool {
        self.rules().termination_sets_step_status
    }

    /// Returns whether a flow of a split that fails or ends the job stops the other flows.
    ///
    /// Spec: SPLIT-18, D-32
    pub fn ending_flow_stops_siblings(self) -> bool {
        self.rules().ending_flow_stops_siblings
    }

    /// Returns whether a restart after a `stop` element without `restart` resumes at the element that stopped,
    /// instead of at the first element of the job.
    ///
    /// Spec: TERM-09, TERM-11, DEC-16, D-24
    pub fn restart_resumes_at_stopped_element(self) -> bool {
        self.rules().restart_resumes_at_stopped_element
    }

    /// Returns the maximum number of starts of a step with this `start-limit` within one job instance; `None` is unlimited.
    ///
    /// Spec: JSL-STEP-04, JSL-STEP-07, D-59
    pub fn max_starts(self, start_limit: u32) -> Option<u32> {
        let first = u32::from(!self.rules().start_limit_counts_first_start);
        (start_limit > 0).then(|| start_limit.saturating_add(first))
    }
}
