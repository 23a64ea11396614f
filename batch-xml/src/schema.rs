//! THE table of elements and attributes (appendix A of the conformance catalogue), and the check of a tree
//! against it.
//!
//! The table says what may stand where. Which attributes are required, and what their values must be, depends
//! on inheritance and substitution and is checked when the tree is lowered.

use crate::codes;
use crate::diagnostics::{Sink, quoted};
use crate::suggest;
use crate::tree::Element;

/// One element: where it stands, its parents say.
struct Rule {
    name: &'static str,
    attributes: &'static [&'static str],
    /// Children that may stand at most once.
    once: &'static [&'static str],
    /// Children that may stand any number of times.
    many: &'static [&'static str],
}

const fn rule(
    name: &'static str,
    attributes: &'static [&'static str],
    once: &'static [&'static str],
    many: &'static [&'static str],
) -> Rule {
    Rule {
        name,
        attributes,
        once,
        many,
    }
}

/// An element that names an artifact and gives it properties.
const fn artifact(name: &'static str) -> Rule {
    rule(name, &["ref"], &["properties"], &[])
}

/// Spec: JSL-JOB-09, JSL-STEP-17, JSL-CHUNK-25, PART-05, FLOW-08, SPLIT-24, DEC-05, D-52, D-84
const RULES: &[Rule] = &[
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

/// batch.xml, whose root may have any name and any attributes. Spec: LOADER-10, LOADER-11, D-64
const BATCH_XML: &[Rule] = &[
    rule(BATCH_ROOT, &[], &["loader"], &["artifact"]),
    rule("loader", &["classname"], &[], &[]),
    rule("artifact", &["id", "classname"], &[], &[]),
];

/// The name of the root in its table. No name of an XML element holds a blank.
const BATCH_ROOT: &str = "the root element";

/// The elements that may have a parent. Spec: INH-01
pub(crate) const INHERITABLE: [&str; 4] = ["job", "step", "flow", "split"];

/// What a complete element has: attributes, and one of some children. Entries of lists are not combined, so
/// what they lack is missing wherever they come to stand. Spec: INH-17
const REQUIRED: &[(&str, &[&str], &[&str])] = &[
    ("step", &["id"], &["chunk", "batchlet"]),
    ("flow", &["id"], &["step"]),
    ("split", &["id"], &["flow"]),
    ("decision", &["id"], &[]),
    ("chunk", &["reader", "processor", "writer"], &[]),
    ("batchlet", &["ref"], &[]),
    ("checkpoint-algorithm", &["ref"], &[]),
    ("algorithm", &["ref"], &[]),
    ("logicalTX", &["ref"], &[]),
    ("collector", &["ref"], &[]),
    ("analyzer", &["ref"], &[]),
];

impl Rule {
    fn children(&self) -> impl Iterator<Item = &'static str> {
        self.once.iter().chain(self.many).copied()
    }

    fn allows(&self, child: &str) -> bool {
        self.children().any(|name| name == child)
    }
}

fn find(name: &str) -> Option<&'static Rule> {
    find_in(RULES, name)
}

fn find_in(rules: &'static [Rule], name: &str) -> Option<&'static Rule> {
    rules.iter().find(|rule| rule.name == name)
}

/// Checks `element` and everything below it, as far as the draft defines it.
///
/// Spec: JSL-DOC-06, JSL-DOC-07, JSL-DOC-16, JSL-DOC-17, D-78
pub(crate) fn check(element: &Element, sink: &mut Sink) {
    if let Some(rule) = find(&element.name) {
        check_attributes(rule, element, sink);
        check_content(RULES, rule, element, sink);
    }
}

/// Checks the root of a batch.xml and everything below it.
///
/// Spec: LOADER-15
pub(crate) fn check_batch_xml(root: &Element, sink: &mut Sink) {
    if let Some(rule) = find_in(BATCH_XML, BATCH_ROOT) {
        check_content(BATCH_XML, rule, root, sink);
    }
}

fn check_content(rules: &'static [Rule], rule: &Rule, element: &Element, sink: &mut Sink) {
    if let Some(text) = &element.text {
        sink.error(codes::TEXT, text, |d| {
            d.message(format!("text is not allowed in {}", quoted(&element.name)))
                .help("values stand in attributes; what should not be read goes into a comment")
        });
    }
    for (index, child) in element.children.iter().enumerate() {
        if !rule.allows(&child.name) {
            unknown_element(rules, rule, element, child, sink);
            continue;
        }
        if rule.once.contains(&child.name.as_str()) {
            check_first(element, index, sink);
        }
        if let Some(below) = find_in(rules, &child.name) {
            check_attributes(below, child, sink);
            check_content(rules, below, child, sink);
        }
    }
}

/// Reports what a parent lacks that does not say it is abstract.
///
/// Spec: INH-17
pub(crate) fn check_complete(parent: &Element, sink: &mut Sink) {
    parent.walk(&mut |element| {
        let Some((name, attributes, children)) =
            REQUIRED.iter().find(|(name, ..)| element.name.value == *name)
        else {
            return;
        };
        let missing = attributes
            .iter()
            .find(|attribute| element.attribute(attribute).is_none());
        let lacks_child =
            !children.is_empty() && !children.iter().any(|child| element.child(child).is_some());
        let what = match missing {
            Some(attribute) if !is_mistyped(element, attribute) => format!("attribute `{attribute}`"),
            None if lacks_child && !has_unknown_child(element) => format!("`{}`", children.join("` or `")),
            _ => return,
        };
        sink.error(codes::INCOMPLETE_PARENT, &element.name.span, |d| {
            d.message(format!("{} has no {what}", quoted(name)))
                .label("only an abstract parent may be incomplete")
                .help(format!("add `abstract=\"true\"` to the {}", parent.name.value))
        });
    });
}

fn check_first(element: &Element, index: usize, sink: &mut Sink) {
    let child = &element.children[index];
    if let Some(first) = element.children[..index]
        .iter()
        .find(|earlier| earlier.name == child.name)
    {
        sink.error(codes::REPEATED_ELEMENT, &child.name.span, |d| {
            d.message(format!(
                "{} stands more than once in {}",
                quoted(&child.name),
                quoted(&element.name)
            ))
            .label("only one is allowed")
            .related(first.name.span.clone(), "the first one is here")
        });
    }
}

fn check_attributes(rule: &Rule, element: &Element, sink: &mut Sink) {
    for attribute in element
        .attributes
        .iter()
        .filter(|found| !rule.attributes.contains(&found.name.as_str()))
    {
        let name = attribute.name.value.as_str();
        sink.error(codes::UNKNOWN_ATTRIBUTE, &attribute.name.span, |d| {
            let d = d
                .message(format!("{} has no attribute {}", quoted(rule.name), quoted(name)))
                .label("unknown attribute");
            match suggest::nearest(name, rule.attributes.iter().copied()) {
                Some(found) => d.suggestion(Some(found)),
                None => d.help(one_of("attribute", rule.attributes.to_vec())),
            }
        });
    }
}

fn unknown_element(rules: &'static [Rule], rule: &Rule, parent: &Element, child: &Element, sink: &mut Sink) {
    let name = child.name.value.as_str();
    let parents: Vec<&str> = rules
        .iter()
        .filter(|rule| rule.allows(name))
        .map(|rule| rule.name)
        .collect();
    sink.error(codes::UNKNOWN_ELEMENT, &child.name.span, |d| {
        let d = d.message(format!(
            "{} may not stand in {}",
            quoted(name),
            quoted(&parent.name)
        ));
        match parents.as_slice() {
            [] => {}
            [BATCH_ROOT] => {
                return d
                    .label("not allowed here")
                    .help(format!("it belongs in {BATCH_ROOT}"));
            }
            parents => {
                return d
                    .label("not allowed here")
                    .help(format!("it belongs in `{}`", parents.join("`, `")));
            }
        }
        let d = d.label("unknown element");
        match suggest::nearest(name, rule.children()) {
            Some(found) => d.suggestion(Some(found)),
            None => d.help(one_of("element", rule.children().collect())),
        }
    });
}

/// What may stand in a place, as help.
fn one_of(what: &str, names: Vec<&str>) -> String {
    match names.as_slice() {
        [] => format!("no {what} is allowed here"),
        names => format!("allowed here: `{}`", names.join("`, `")),
    }
}

/// Whether an attribute of the element seems to be `name` mistyped.
pub(crate) fn is_mistyped(element: &Element, name: &str) -> bool {
    find(&element.name).is_some_and(|rule| is_mistyped_in(rule, element, name))
}

/// The same for an element of a batch.xml.
pub(crate) fn is_mistyped_in_batch_xml(element: &Element, name: &str) -> bool {
    find_in(BATCH_XML, &element.name).is_some_and(|rule| is_mistyped_in(rule, element, name))
}

fn is_mistyped_in(rule: &Rule, element: &Element, name: &str) -> bool {
    let unknown = element
        .attributes
        .iter()
        .filter(|attribute| !rule.attributes.contains(&attribute.name.as_str()));
    unknown
        .map(|attribute| suggest::nearest(&attribute.name, rule.attributes.iter().copied()))
        .any(|meant| meant == Some(name))
}

/// Whether the draft defines `child` in `parent`.
pub(crate) fn allows(parent: &Element, child: &Element) -> bool {
    find(&parent.name).is_some_and(|rule| rule.allows(&child.name))
}

/// Whether the element holds one that the draft does not define at that place.
pub(crate) fn has_unknown_child(element: &Element) -> bool {
    find(&element.name).is_some_and(|rule| element.children.iter().any(|child| !rule.allows(&child.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_child_has_a_rule_and_every_rule_a_parent() {
        for rule in RULES {
            for child in rule.children() {
                assert!(find(child).is_some(), "`{child}` in `{}` has no rule", rule.name);
            }
            let has_parent = RULES.iter().any(|parent| parent.allows(rule.name));
            assert!(has_parent || rule.name == "job", "`{}` stands nowhere", rule.name);
            assert_eq!(RULES.iter().filter(|other| other.name == rule.name).count(), 1);
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

    /// Every element has its section in the user's guide, which tells all its attributes, no others, and what may
    /// stand in it.
    #[test]
    fn the_guide_tells_everything() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/job-xml.md");
        let page = std::fs::read_to_string(page).unwrap_or_default();
        let sections: Vec<&str> = page.split("\n### ").skip(1).collect();
        for rule in RULES {
            let heading = format!("`<{}>`", rule.name);
            let is_its = |section: &&&str| section.lines().next().unwrap_or_default().contains(&heading);
            let found: Vec<&&str> = sections.iter().filter(is_its).collect();
            let [section] = found.as_slice() else {
                panic!("{heading} has {} sections", found.len());
            };
            let section = section.split("\n## ").next().unwrap_or_default();
            let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
            let mut told: Vec<&str> = rows.filter_map(|row| Some(row.split_once('`')?.0)).collect();
            let mut attributes = rule.attributes.to_vec();
            told.sort_unstable();
            attributes.sort_unstable();
            assert_eq!(told, attributes, "{heading}");
            for child in rule.children() {
                assert!(
                    section.contains(&format!("`{child}`")),
                    "{heading} does not tell `{child}`"
                );
            }
        }
    }
}
