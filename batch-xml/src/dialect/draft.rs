//! The draft of 5 July 2012: its elements, and its rules where dialects differ.

use super::{Rules, ValueSource};
use crate::schema::{Required, Rule, artifact, rule};

pub(super) const RULES: Rules = Rules {
    elements: ELEMENTS,
    required: REQUIRED,
    inheritable: &["job", "step", "flow", "split"],
    symbol_start: "${",
    symbol_end: "}",
    precedence: &[
        ValueSource::Partition,
        ValueSource::JobParameter,
        ValueSource::SystemProperty,
        ValueSource::OutermostProperty,
    ],
    star_min_chars: 1,
    most_specific_transition_first: true,
    unmatched_step_fails: true,
    termination_sets_step_status: true,
    ending_flow_stops_siblings: true,
    restart_resumes_at_stopped_element: true,
    start_limit_counts_first_start: false,
};

/// The elements of appendix A of the catalogue.
///
/// Spec: JSL-JOB-09, JSL-STEP-17, JSL-CHUNK-25, PART-05, FLOW-08, SPLIT-24, DEC-05, D-52, D-84
const ELEMENTS: &[Rule] = &[
    rule(
        "job",
        &["id", "restartable", "abstract", "parent"],
        &["properties", "listeners"],
        &["listener", "step", "flow", "split", "decision"],
    ),
    rule(
        "step",
        &[
            "id",
            "start-limit",
            "allow-start-if-complete",
            "next",
            "abstract",
            "parent",
        ],
        &["properties", "listeners", "chunk", "batchlet", "partition"],
        &["listener", "next", "fail", "end", "stop"],
    ),
    rule(
        "flow",
        &["id", "next", "abstract", "parent"],
        &["partition"],
        &["step", "decision"],
    ),
    rule(
        "split",
        &["id", "next", "abstract", "parent"],
        &["concurrency"],
        &["flow", "decision"],
    ),
    rule(
        "decision",
        &["id", "decider", "ref"],
        &["properties"],
        &["next", "fail", "end", "stop"],
    ),
    rule("listeners", &["merge"], &[], &["listener"]),
    artifact("listener"),
    rule("properties", &["merge"], &[], &["property"]),
    rule("property", &["name", "value", "target"], &[], &[]),
    rule(
        "chunk",
        &[
            "reader",
            "processor",
            "writer",
            "checkpoint-policy",
            "commit-interval",
            "buffer-reads",
            "chunk-size",
            "skip-limit",
            "retry-limit",
            "checkpoint-timeout",
        ],
        &[
            "properties",
            "checkpoint-algorithm",
            "skippable-exception-classes",
            "retryable-exception-classes",
            "no-rollback-exception-classes",
        ],
        &["property"],
    ),
    rule(
        "skippable-exception-classes",
        &["merge"],
        &[],
        &["include", "exclude"],
    ),
    rule(
        "retryable-exception-classes",
        &["merge"],
        &[],
        &["include", "exclude"],
    ),
    rule(
        "no-rollback-exception-classes",
        &["merge"],
        &[],
        &["include", "exclude"],
    ),
    rule("include", &["class"], &[], &[]),
    rule("exclude", &["class"], &[], &[]),
    artifact("checkpoint-algorithm"),
    artifact("batchlet"),
    rule(
        "partition",
        &["instances"],
        &["properties", "algorithm", "logicalTX", "collector", "analyzer"],
        &[],
    ),
    rule("concurrency", &[], &["logicalTX", "collector", "analyzer"], &[]),
    artifact("algorithm"),
    artifact("logicalTX"),
    artifact("collector"),
    artifact("analyzer"),
    rule("next", &["on", "to"], &[], &[]),
    rule("fail", &["on", "exit-status"], &[], &[]),
    rule("end", &["on", "exit-status"], &[], &[]),
    rule("stop", &["on", "exit-status", "restart"], &[], &[]),
];

const fn required(
    element: &'static str,
    attributes: &'static [&'static str],
    one_child_of: &'static [&'static str],
) -> Required {
    Required {
        element,
        attributes,
        one_child_of,
    }
}

/// List entries are not combined with those of a parent, so missing parts of them cannot be inherited.
///
/// Spec: INH-17
const REQUIRED: &[Required] = &[
    required("step", &["id"], &["chunk", "batchlet"]),
    required("flow", &["id"], &["step"]),
    required("split", &["id"], &["flow"]),
    required("decision", &["id"], &[]),
    required("chunk", &["reader", "processor", "writer"], &[]),
    required("batchlet", &["ref"], &[]),
    required("checkpoint-algorithm", &["ref"], &[]),
    required("algorithm", &["ref"], &[]),
    required("logicalTX", &["ref"], &[]),
    required("collector", &["ref"], &[]),
    required("analyzer", &["ref"], &[]),
];

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
            assert!(has_parent || rule.name == "job", "`{}` stands nowhere", rule.name);
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
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/job-xml.md");
        let page = std::fs::read_to_string(page).unwrap_or_default();
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
