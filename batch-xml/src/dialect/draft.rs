//! The draft of 5 July 2012: its elements, and its rules where dialects differ.

use super::elements::{Required, Rule, elements, required};
use super::{Rules, Substitution, ValueSource};

pub(super) const RULES: Rules = Rules {
    is_chosen_by: "in which documents have no namespace",
    elements: ELEMENTS,
    required: REQUIRED,
    inheritable: &["job", "step", "flow", "split"],
    substitution: Substitution::Symbols,
    precedence: &[
        ValueSource::Partition,
        ValueSource::JobParameter,
        ValueSource::SystemProperty,
        ValueSource::OutermostProperty,
    ],
    artifacts_see_outer_properties: true,
    star_min_chars: 1,
    most_specific_transition_first: true,
    parts_are_elements: false,
    checkpoint_policies: &["item", "time", "custom"],
    leading_decision_is_passed_over: true,
    flows_of_split_lead_on: true,
    next_beside_transitions: false,
    retries_input: false,
    retries_one_by_one: false,
    failed_write_skips_its_list: false,
    keeps_user_data_of_failed_chunk: false,
    replans_partitions: false,
    compensation_resets_partitions: true,
    collects_at_end_of_chunk_step: true,
    collects_after_failed_batchlet: false,
    analyzes_complete_partitions: true,
    restarts_latest_execution_only: false,
    unmatched_step_fails: true,
    termination_sets_step_status: true,
    ending_flow_stops_siblings: true,
    restart_resumes_at_stopped_element: true,
    job_listener_chooses_last: false,
    start_limit_counts_first_start: false,
};

/// The elements of appendix A of the catalogue.
// Spec: JSL-JOB-09, JSL-STEP-17, JSL-CHUNK-25, PART-05, FLOW-08, SPLIT-24, DEC-05, D-52, D-84
const ELEMENTS: &[Rule] = elements! {
    "job" ["id" "restartable" "abstract" "parent"]
        once ["properties" "listeners"] many ["listener" "step" "flow" "split" "decision"];
    "step" ["id" "start-limit" "allow-start-if-complete" "next" "abstract" "parent"]
        once ["properties" "listeners" "chunk" "batchlet" "partition"] many ["listener" "next" "fail" "end" "stop"];
    "flow" ["id" "next" "abstract" "parent"] once ["partition"] many ["step" "decision"];
    "split" ["id" "next" "abstract" "parent"] once ["concurrency"] many ["flow" "decision"];
    "decision" ["id" "decider" "ref"] once ["properties"] many ["next" "fail" "end" "stop"];
    "listeners" ["merge"] many ["listener"];
    "listener" ["ref"] once ["properties"];
    "properties" ["merge"] many ["property"];
    "property" ["name" "value" "target"];
    "chunk" [
        "reader" "processor" "writer" "checkpoint-policy" "commit-interval" "buffer-reads" "chunk-size" "skip-limit"
        "retry-limit" "checkpoint-timeout"
    ]
        once [
            "properties" "checkpoint-algorithm" "skippable-exception-classes" "retryable-exception-classes"
            "no-rollback-exception-classes"
        ] many ["property"];
    "skippable-exception-classes" ["merge"] many ["include" "exclude"];
    "retryable-exception-classes" ["merge"] many ["include" "exclude"];
    "no-rollback-exception-classes" ["merge"] many ["include" "exclude"];
    "include" ["class"];
    "exclude" ["class"];
    "checkpoint-algorithm" ["ref"] once ["properties"];
    "batchlet" ["ref"] once ["properties"];
    "partition" ["instances"] once ["properties" "algorithm" "logicalTX" "collector" "analyzer"];
    "concurrency" [] once ["logicalTX" "collector" "analyzer"];
    "algorithm" ["ref"] once ["properties"];
    "logicalTX" ["ref"] once ["properties"];
    "collector" ["ref"] once ["properties"];
    "analyzer" ["ref"] once ["properties"];
    "next" ["on" "to"];
    "fail" ["on" "exit-status"];
    "end" ["on" "exit-status"];
    "stop" ["on" "exit-status" "restart"];
};

/// List entries are not combined with entries of a parent, so missing parts of them cannot be inherited.
// Spec: INH-17
const REQUIRED: &[Required] = required! {
    "step" ["id"] one of ["chunk" "batchlet"];
    "flow" ["id"] one of ["step"];
    "split" ["id"] one of ["flow"];
    "decision" ["id"];
    "chunk" ["reader" "writer"];
    "batchlet" ["ref"];
    "checkpoint-algorithm" ["ref"];
    "algorithm" ["ref"];
    "logicalTX" ["ref"];
    "collector" ["ref"];
    "analyzer" ["ref"];
};

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str) -> Option<&'static Rule> {
        ELEMENTS.iter().find(|rule| rule.name == name)
    }

    #[test]
    fn every_child_has_a_rule_and_every_rule_a_parent() {
        for rule in ELEMENTS {
            for child in rule.children() {
                assert!(find(child).is_some(), "`{child}` in `{}` has no rule", rule.name);
            }
            let has_parent = ELEMENTS.iter().any(|parent| parent.allows(rule.name));
            assert!(has_parent || rule.name == "job", "`{}` has no parent", rule.name);
            assert_eq!(ELEMENTS.iter().filter(|other| other.name == rule.name).count(), 1);
        }
    }

    #[test]
    fn the_schema_has_no_cycles_so_checks_cannot_recurse_deeply() {
        fn depth(name: &str) -> usize {
            let below = find(name).into_iter().flat_map(Rule::children).map(depth).max();
            1 + below.unwrap_or(0)
        }
        assert_eq!(depth("job"), 8);
    }

    /// Each element has a section in `docs/job-xml.md` that lists exactly its attributes and its children.
    #[test]
    fn the_guide_describes_every_element() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        if !docs.is_dir() {
            return println!("NOT CHECKED: the guide, which is in the repository");
        }
        let page = std::fs::read_to_string(docs.join("job-xml.md")).expect("the guide is there");
        let sections: Vec<&str> = page.split("\n### ").skip(1).collect();
        for rule in ELEMENTS {
            let heading = format!("`<{}>`", rule.name);
            let is_its = |section: &&&str| section.lines().next().unwrap_or_default().contains(&heading);
            let found: Vec<&&str> = sections.iter().filter(is_its).collect();
            let [section] = found.as_slice() else {
                panic!("{heading} has {} sections", found.len());
            };
            let section = section.split("\n## ").next().unwrap_or_default();
            let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
            let mut listed: Vec<&str> = rows.filter_map(|row| Some(row.split_once('`')?.0)).collect();
            let mut attributes = rule.attributes.to_vec();
            listed.sort_unstable();
            attributes.sort_unstable();
            assert_eq!(listed, attributes, "{heading}");
            for child in rule.children() {
                assert!(
                    section.contains(&format!("`{child}`")),
                    "{heading} does not mention `{child}`"
                );
            }
        }
    }
}
