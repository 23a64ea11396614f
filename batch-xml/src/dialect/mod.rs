//! The dialects of Job XML, and every rule that differs between them.
//!
//! A document decides its dialect, and the job carries it from the reader to the engine. All other code asks the
//! dialect and never compares it with another. A new dialect is a file beside `draft.rs` that fills in [`Rules`], and
//! a variant of [`Dialect`].

mod draft;
pub(crate) mod elements;
mod jakarta;

use std::fmt;
use std::str::FromStr;

use crate::pattern::{self, Pattern};
use elements::{Required, Rule};

/// The rules that a job follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// The draft of 5 July 2012, as interpreted by the catalogue of requirements.
    #[default]
    Draft,
    /// Jakarta Batch 2.1, and the final JSR 352 1.0.
    Jakarta,
}

/// The namespaces of documents of the dialect [`Jakarta`](Dialect::Jakarta).
pub(crate) const JAKARTA_NAMESPACES: [&str; 2] = [
    "https://jakarta.ee/xml/ns/jakartaee",
    "http://xmlns.jcp.org/xml/ns/javaee",
];

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Draft => "draft",
            Self::Jakarta => "jakarta",
        })
    }
}

/// The name is not a dialect's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownDialect;

impl fmt::Display for UnknownDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected `draft` or `jakarta`")
    }
}

impl std::error::Error for UnknownDialect {}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        let named = Self::ALL.into_iter().find(|dialect| dialect.to_string() == name);
        named.ok_or(UnknownDialect)
    }
}

/// The syntax of substitution in attribute values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Substitution {
    /// `${name}`: the sources are searched in the order of the dialect.
    // Spec: SUBST-01
    Symbols,
    /// `#{jobParameters['name']}?:default;`: the expression names the source. Without a value it is empty.
    Expressions,
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
    /// The properties of the enclosing elements, the innermost first.
    InnermostProperty,
}

/// The rules of one dialect.
pub(crate) struct Rules {
    /// The end of a sentence about the dialect: how its documents are recognized.
    pub(crate) is_chosen_by: &'static str,
    /// The elements, their attributes and their children.
    pub(crate) elements: &'static [Rule],
    /// The requirements of a complete element.
    pub(crate) required: &'static [Required],
    /// The elements that may have a parent.
    // Spec: INH-01
    pub(crate) inheritable: &'static [&'static str],
    /// The syntax of substitution.
    pub(crate) substitution: Substitution,
    /// The sources of a name's value, in the order of lookup.
    // Spec: OVR-02, OVR-04, OVR-05, PART-12, D-34
    pub(crate) precedence: &'static [ValueSource],
    /// See [`Dialect::artifacts_see_outer_properties`].
    pub(crate) artifacts_see_outer_properties: bool,
    /// The least number of characters that `*` matches.
    // Spec: SEQ-14, D-20
    pub(crate) star_min_chars: usize,
    /// True if the most specific of several matching transition elements is taken, and not the first.
    // Spec: SEQ-18, D-19
    pub(crate) most_specific_transition_first: bool,
    /// True if the reader, processor and writer of a chunk, and the plan of a partition, are separate elements.
    pub(crate) parts_are_elements: bool,
    /// The values of `checkpoint-policy`.
    // Spec: JSL-CHUNK-05
    pub(crate) checkpoint_policies: &'static [&'static str],
    /// True if the first element of a job or flow may be a decision, which is passed over: execution starts with the first other
    /// element.
    pub(crate) leading_decision_is_passed_over: bool,
    /// True if a flow of a split may lead to another one.
    pub(crate) flows_of_split_lead_on: bool,
    /// True if a step may have transition elements beside its `next` attribute, which is taken if none matches.
    // Spec: SEQ-07
    pub(crate) next_beside_transitions: bool,
    /// See [`Dialect::retries_input`].
    pub(crate) retries_input: bool,
    /// See [`Dialect::retries_one_by_one`].
    pub(crate) retries_one_by_one: bool,
    /// See [`Dialect::failed_write_skips_its_list`].
    pub(crate) failed_write_skips_its_list: bool,
    /// See [`Dialect::keeps_user_data_of_failed_chunk`].
    pub(crate) keeps_user_data_of_failed_chunk: bool,
    /// See [`Dialect::replans_partitions`].
    pub(crate) replans_partitions: bool,
    /// See [`Dialect::compensation_resets_partitions`].
    pub(crate) compensation_resets_partitions: bool,
    /// See [`Dialect::collects_at_end_of_chunk_step`].
    pub(crate) collects_at_end_of_chunk_step: bool,
    /// See [`Dialect::collects_after_failed_batchlet`].
    pub(crate) collects_after_failed_batchlet: bool,
    /// See [`Dialect::analyzes_complete_partitions`].
    pub(crate) analyzes_complete_partitions: bool,
    /// See [`Dialect::restarts_latest_execution_only`].
    pub(crate) restarts_latest_execution_only: bool,
    /// See [`Dialect::unmatched_step_fails`].
    pub(crate) unmatched_step_fails: bool,
    /// See [`Dialect::termination_sets_step_status`].
    pub(crate) termination_sets_step_status: bool,
    /// See [`Dialect::ending_flow_stops_siblings`].
    pub(crate) ending_flow_stops_siblings: bool,
    /// See [`Dialect::restart_resumes_at_stopped_element`].
    pub(crate) restart_resumes_at_stopped_element: bool,
    /// See [`Dialect::job_listener_chooses_last`].
    pub(crate) job_listener_chooses_last: bool,
    /// True if `start-limit` counts the first start of a step, and not only its restarts.
    // Spec: JSL-STEP-04, D-59
    pub(crate) start_limit_counts_first_start: bool,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 2] = [Self::Draft, Self::Jakarta];

    /// Returns the dialect of documents whose root element is in this namespace.
    pub(crate) fn of_namespace(namespace: Option<&str>) -> Self {
        match namespace {
            Some(namespace) if JAKARTA_NAMESPACES.contains(&namespace) => Self::Jakarta,
            _ => Self::Draft,
        }
    }

    pub(crate) fn rules(self) -> &'static Rules {
        match self {
            Self::Draft => &draft::RULES,
            Self::Jakarta => &jakarta::RULES,
        }
    }

    /// Returns the value of a name from the first source that has one, in the order of the dialect. The only place that
    /// knows the precedence of job parameters, system properties and properties.
    // Spec: OVR-02 to OVR-05, PART-12, D-34
    pub fn first_value<T>(self, mut value: impl FnMut(ValueSource) -> Option<T>) -> Option<T> {
        let mut sources = self.rules().precedence.iter();
        sources.find_map(|source| value(*source))
    }

    /// Returns whether a job parameter sets the properties of its name. Else it has a value only in expressions.
    // Spec: OVR-02, JAK-12
    pub fn parameters_set_properties(self) -> bool {
        self.rules().precedence.contains(&ValueSource::JobParameter)
    }

    /// Returns whether an element has an attribute.
    pub fn has_attribute(self, element: &str, attribute: &str) -> bool {
        let mut elements = self.rules().elements.iter();
        let found = elements.find(|rule| rule.name == element);
        found.is_some_and(|rule| rule.attributes.contains(&attribute))
    }

    /// Returns whether an artifact receives the properties of all elements around it, and the job parameters, and not only those that
    /// are written on it.
    // Spec: OVR-05, OVR-13, D-36
    pub fn artifacts_see_outer_properties(self) -> bool {
        self.rules().artifacts_see_outer_properties
    }

    /// Returns the pattern of exit statuses that is written as `text`.
    // Spec: SEQ-13, SEQ-14, SEQ-15, SEQ-16, D-20
    pub fn pattern(self, text: impl Into<String>) -> Pattern {
        Pattern::with_star(text, self.rules().star_min_chars)
    }

    /// Returns the transition element to take for an exit status. `on` returns the pattern of an element.
    // Spec: SEQ-17, SEQ-18, SEQ-19, DEC-10, D-19
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

    /// Returns, for each transition that is never taken, its index and the index of one that always precedes it.
    pub(crate) fn shadowed(self, patterns: &[&Pattern]) -> Vec<(usize, usize)> {
        pattern::shadowed(patterns, self.rules().most_specific_transition_first)
    }

    /// Returns whether retryable errors of readers and processors are retried, and not only errors of writers.
    // Spec: CHUNK-RETRY-01, JAK-18
    pub fn retries_input(self) -> bool {
        self.rules().retries_input
    }

    /// Returns whether the items of a chunk that is rolled back for a retry are read and processed again, in chunks of one item, instead
    /// of being kept; and whether a retry without a rollback repeats the failed call of the reader or processor.
    // Spec: CHUNK-RETRY-07, JAK-30, JAK-31
    pub fn retries_one_by_one(self) -> bool {
        self.rules().retries_one_by_one
    }

    /// Returns whether the whole list is skipped that a writer fails at, and not the one item that is the reason.
    // Spec: CHUNK-SKIP-11, JAK-19
    pub fn failed_write_skips_its_list(self) -> bool {
        self.rules().failed_write_skips_its_list
    }

    /// Returns whether the persistent user data of a chunk step is stored at its end, too, so that a failed step keeps what it has set
    /// since the last checkpoint.
    // Spec: CTX-25, JAK-20
    pub fn keeps_user_data_of_failed_chunk(self) -> bool {
        self.rules().keeps_user_data_of_failed_chunk
    }

    /// Returns whether a restart makes a new plan for the partitions of an incomplete step: their number stays, their properties come from
    /// the new plan, unless that plan replaces all partitions. Otherwise the plan of the first execution is kept.
    // Spec: PART-30, D-50, JAK-32
    pub fn replans_partitions(self) -> bool {
        self.rules().replans_partitions
    }

    /// Returns whether all partitions run again after a logical transaction was rolled back by an artifact that has a method for it, and
    /// not only those that are not complete.
    // Spec: D-48, JAK-33
    pub fn compensation_resets_partitions(self) -> bool {
        self.rules().compensation_resets_partitions
    }

    /// Returns whether the collector of a chunk step is called once more at its end, after the last checkpoint.
    // Spec: SUBJOB-03, D-45, JAK-34
    pub fn collects_at_end_of_chunk_step(self) -> bool {
        self.rules().collects_at_end_of_chunk_step
    }

    /// Returns whether the collector of a batchlet step is called although the batchlet failed.
    // Spec: SUBJOB-16, JAK-34
    pub fn collects_after_failed_batchlet(self) -> bool {
        self.rules().collects_after_failed_batchlet
    }

    /// Returns whether the analyzer of a restart gets the exit statuses of partitions that earlier executions have completed, too.
    // Spec: SUBJOB-10, JAK-34
    pub fn analyzes_complete_partitions(self) -> bool {
        self.rules().analyzes_complete_partitions
    }

    /// Returns whether only the latest execution of an instance can be restarted, and not any of them.
    // Spec: OP-15, D-58, JAK-39
    pub fn restarts_latest_execution_only(self) -> bool {
        self.rules().restarts_latest_execution_only
    }

    /// Returns whether a step or decision fails the job if it has `next` elements and none matches, instead of completing it.
    // Spec: SEQ-21, DEC-15, D-21
    pub fn unmatched_step_fails(self) -> bool {
        self.rules().unmatched_step_fails
    }

    /// Returns whether a `fail`, `end` or `stop` element that ends the job also sets the batch status of its step.
    // Spec: TERM-08, D-23
    pub fn termination_sets_step_status(self) -> bool {
        self.rules().termination_sets_step_status
    }

    /// Returns whether a flow of a split that fails or ends the job stops the other flows.
    // Spec: SPLIT-18, D-32
    pub fn ending_flow_stops_siblings(self) -> bool {
        self.rules().ending_flow_stops_siblings
    }

    /// Returns whether a restart after a `stop` element without `restart` resumes at the element that stopped,
    /// instead of at the first element of the job.
    // Spec: TERM-09, TERM-11, DEC-16, D-24
    pub fn restart_resumes_at_stopped_element(self) -> bool {
        self.rules().restart_resumes_at_stopped_element
    }

    /// Returns whether the job context has the exit status of `stop`, `end` and `fail` when `after_job` is called, which may
    /// replace it; else it applies afterwards.
    // Spec: STATUS-20, JAK-44
    pub fn job_listener_chooses_last(self) -> bool {
        self.rules().job_listener_chooses_last
    }

    /// Returns the maximum number of starts of a step with this `start-limit` within one job instance; `None` is unlimited.
    // Spec: JSL-STEP-04, JSL-STEP-07, D-59
    pub fn max_starts(self, start_limit: u32) -> Option<u32> {
        let first = u32::from(!self.rules().start_limit_counts_first_start);
        (start_limit > 0).then(|| start_limit.saturating_add(first))
    }
}
