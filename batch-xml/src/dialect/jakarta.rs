//! Jakarta Batch 2.1, and the final JSR 352: its elements, and its rules where dialects differ.

use super::elements::{Required, Rule, elements, required};
use super::{Rules, Substitution, ValueSource};

pub(super) const RULES: Rules = Rules {
    is_chosen_by: "in which documents have the namespace `https://jakarta.ee/xml/ns/jakartaee`",
    elements: ELEMENTS,
    required: REQUIRED,
    inheritable: &[],
    substitution: Substitution::Expressions,
    // Each expression names its source, and an artifact has only its own properties.
    precedence: &[ValueSource::InnermostProperty],
    artifacts_see_outer_properties: false,
    star_min_chars: 0,
    most_specific_transition_first: false,
    parts_are_elements: true,
    checkpoint_policies: &["item", "custom"],
    leading_decision_is_passed_over: false,
    flows_of_split_lead_on: false,
    next_beside_transitions: true,
    retries_input: true,
    retries_one_by_one: true,
    failed_write_skips_its_list: true,
    keeps_user_data_of_failed_chunk: true,
    replans_partitions: true,
    compensation_resets_partitions: false,
    collects_at_end_of_chunk_step: false,
    collects_after_failed_batchlet: true,
    analyzes_complete_partitions: false,
    restarts_latest_execution_only: true,
    unmatched_step_fails: false,
    termination_sets_step_status: false,
    ending_flow_stops_siblings: false,
    restart_resumes_at_stopped_element: false,
    job_listener_chooses_last: true,
    start_limit_counts_first_start: true,
};

/// The elements of the XML schema `jobXML_2_0.xsd`.
const ELEMENTS: &[Rule] = elements! {
    "job" ["id" "restartable" "version"]
        once ["properties" "listeners"] many ["step" "flow" "split" "decision"];
    "step" ["id" "start-limit" "allow-start-if-complete" "next"]
        once ["properties" "listeners" "chunk" "batchlet" "partition"] many ["next" "fail" "end" "stop"];
    "flow" ["id" "next"] many ["step" "flow" "split" "decision"];
    "split" ["id" "next"] many ["flow"];
    "decision" ["id" "ref"] once ["properties"] many ["next" "fail" "end" "stop"];
    "listeners" [] many ["listener"];
    "listener" ["ref"] once ["properties"];
    "properties" ["partition"] many ["property"];
    "property" ["name" "value"];
    "chunk" ["checkpoint-policy" "item-count" "time-limit" "skip-limit" "retry-limit"]
        once [
            "reader" "processor" "writer" "checkpoint-algorithm" "skippable-exception-classes"
            "retryable-exception-classes" "no-rollback-exception-classes"
        ];
    "reader" ["ref"] once ["properties"];
    "processor" ["ref"] once ["properties"];
    "writer" ["ref"] once ["properties"];
    "skippable-exception-classes" [] many ["include" "exclude"];
    "retryable-exception-classes" [] many ["include" "exclude"];
    "no-rollback-exception-classes" [] many ["include" "exclude"];
    "include" ["class"];
    "exclude" ["class"];
    "checkpoint-algorithm" ["ref"] once ["properties"];
    "batchlet" ["ref"] once ["properties"];
    "partition" [] once ["plan" "mapper" "collector" "analyzer" "reducer"];
    "plan" ["partitions" "threads"] many ["properties"];
    "mapper" ["ref"] once ["properties"];
    "collector" ["ref"] once ["properties"];
    "analyzer" ["ref"] once ["properties"];
    "reducer" ["ref"] once ["properties"];
    "next" ["on" "to"];
    "fail" ["on" "exit-status"];
    "end" ["on" "exit-status"];
    "stop" ["on" "exit-status" "restart"];
};

/// Without inheritance, nothing is completed by another element.
const REQUIRED: &[Required] = required! {};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_child_has_a_rule_and_every_rule_a_parent() {
        for rule in ELEMENTS {
            for child in rule.children() {
                let rules = ELEMENTS.iter().filter(|other| other.name == child);
                assert_eq!(rules.count(), 1, "`{child}` in `{}`", rule.name);
            }
            let has_parent = ELEMENTS.iter().any(|parent| parent.allows(rule.name));
            assert!(has_parent || rule.name == "job", "`{}` has no parent", rule.name);
        }
    }
}
