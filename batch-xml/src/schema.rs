//! Checks a tree against the element table of its dialect.
//!
//! The table defines which elements and attributes are allowed where. Which attributes are required, and what
//! their values must be, depends on inheritance and substitution and is checked when the tree is lowered.

use crate::codes;
use crate::diagnostics::{Sink, quoted};
use crate::dialect::Dialect;
use crate::dialect::elements::{Rule, elements};
use crate::suggest;
use crate::tree::{Attribute, Element};

/// The elements of batch.xml, whose root may have any name and attributes.
// Spec: LOADER-10, LOADER-11, JAK-43, D-64
const BATCH_XML: &[Rule] = elements! {
    "the root element" [] once ["loader"] many ["artifact" "ref"];
    "loader" ["classname"];
    "artifact" ["id" "classname"];
    "ref" ["id" "class"];
};

/// The name of the root in its table; the blank prevents a clash with an XML element.
const BATCH_ROOT: &str = BATCH_XML[0].name;

fn find_in(rules: &'static [Rule], name: &str) -> Option<&'static Rule> {
    rules.iter().find(|rule| rule.name == name)
}

/// Checks `element` and everything in it, as far as the dialect defines it.
// Spec: JSL-DOC-06, JSL-DOC-07, JSL-DOC-16, JSL-DOC-17, D-78
pub(crate) fn check(dialect: Dialect, element: &Element, sink: &mut Sink) {
    let rules = dialect.rules().elements;
    if let Some(rule) = find_in(rules, &element.name) {
        check_attributes(rules, rule, element, sink);
        check_content(rules, rule, element, sink);
    }
}

/// Checks the root of a batch.xml and everything in it.
// Spec: LOADER-15
pub(crate) fn check_batch_xml(root: &Element, sink: &mut Sink) {
    if let Some(rule) = find_in(BATCH_XML, BATCH_ROOT) {
        check_content(BATCH_XML, rule, root, sink);
    }
}

fn check_content(rules: &'static [Rule], rule: &Rule, element: &Element, sink: &mut Sink) {
    if let Some(text) = &element.text {
        sink.error(codes::TEXT, text, |d| {
            d.message(format!("text is not allowed in {}", quoted(&element.name)))
                .help("write values as attributes, and remarks as XML comments")
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
            check_attributes(rules, below, child, sink);
            check_content(rules, below, child, sink);
        }
    }
}

/// Reports required parts that a parent lacks, unless it is abstract.
// Spec: INH-17
pub(crate) fn check_complete(dialect: Dialect, parent: &Element, sink: &mut Sink) {
    parent.walk(&mut |element| {
        let mut rows = dialect.rules().required.iter();
        let Some(row) = rows.find(|row| element.name.value == row.element) else {
            return;
        };
        let children = row.one_child_of;
        let mut attributes = row.attributes.iter();
        let missing = attributes.find(|attribute| element.attribute(attribute).is_none());
        let lacks_child =
            !children.is_empty() && !children.iter().any(|child| element.child(child).is_some());
        let what = match missing {
            Some(attribute) if !is_mistyped(dialect, element, attribute) => {
                format!("attribute `{attribute}`")
            }
            None if lacks_child && !has_unknown_child(dialect, element) => {
                format!("`{}`", children.join("` or `"))
            }
            _ => return,
        };
        sink.error(codes::INCOMPLETE_PARENT, &element.name.span, |d| {
            d.message(format!("{} has no {what}", quoted(row.element)))
                .label("only an abstract parent may be incomplete")
                .help(format!("add `abstract=\"true\"` to the {}", parent.name.value))
        });
    });
}

fn check_first(element: &Element, index: usize, sink: &mut Sink) {
    let child = &element.children[index];
    let mut earlier = element.children[..index].iter();
    if let Some(first) = earlier.find(|earlier| earlier.name == child.name) {
        sink.error(codes::REPEATED_ELEMENT, &child.name.span, |d| {
            d.message(format!(
                "{} is repeated in {}",
                quoted(&child.name),
                quoted(&element.name)
            ))
            .label("only one is allowed")
            .related(first.name.span.clone(), "the first one is here")
        });
    }
}

fn check_attributes(rules: &'static [Rule], rule: &Rule, element: &Element, sink: &mut Sink) {
    for attribute in unknown_attributes(rule, element) {
        let name = attribute.name.value.as_str();
        sink.error(codes::UNKNOWN_ATTRIBUTE, &attribute.name.span, |d| {
            let d = d
                .message(format!("{} has no attribute {}", quoted(rule.name), quoted(name)))
                .label("unknown attribute");
            if let Some(other) = dialect_with(rules, |other| {
                find_in(other, rule.name).is_some_and(|rule| rule.attributes.contains(&name))
            }) {
                return d.help(of_other(other));
            }
            match suggest::nearest(name, rule.attributes.iter().copied()) {
                Some(found) => d.suggestion(Some(found)),
                None => d.help(one_of("attribute", rule.attributes.to_vec())),
            }
        });
    }
}

fn unknown_attributes<'e>(rule: &'e Rule, element: &'e Element) -> impl Iterator<Item = &'e Attribute> {
    let attributes = element.attributes.iter();
    attributes.filter(|found| !rule.attributes.contains(&found.name.as_str()))
}

fn unknown_element(rules: &'static [Rule], rule: &Rule, parent: &Element, child: &Element, sink: &mut Sink) {
    let name = child.name.value.as_str();
    let allowing = rules.iter().filter(|rule| rule.allows(name));
    let parents: Vec<&str> = allowing.map(|rule| rule.name).collect();
    sink.error(codes::UNKNOWN_ELEMENT, &child.name.span, |d| {
        let d = d.message(format!(
            "{} is not allowed in {}",
            quoted(name),
            quoted(&parent.name)
        ));
        if let Some(other) = dialect_with(rules, |other| {
            find_in(other, &parent.name).is_some_and(|rule| rule.allows(name))
        }) {
            return d.label("not part of this dialect").help(of_other(other));
        }
        if !parents.is_empty() {
            let place = match parents.as_slice() {
                [BATCH_ROOT] => BATCH_ROOT.to_owned(),
                parents => format!("`{}`", parents.join("`, `")),
            };
            return d.label("not allowed here").help(format!("it belongs in {place}"));
        }
        let d = d.label("unknown element");
        match suggest::nearest(name, rule.children()) {
            Some(found) => d.suggestion(Some(found)),
            None => d.help(one_of("element", rule.children().collect())),
        }
    });
}

/// Returns another dialect whose element table has something.
fn dialect_with(rules: &'static [Rule], has: impl Fn(&'static [Rule]) -> bool) -> Option<Dialect> {
    let of_document = |dialect: &Dialect| std::ptr::eq(dialect.rules().elements, rules);
    // batch.xml has no dialects.
    Dialect::ALL.iter().find(|dialect| of_document(dialect))?;
    let mut others = Dialect::ALL.into_iter().filter(|dialect| !of_document(dialect));
    others.find(|dialect| has(dialect.rules().elements))
}

fn of_other(dialect: Dialect) -> String {
    format!(
        "it is part of the dialect `{dialect}`, {}",
        dialect.rules().is_chosen_by
    )
}

/// Lists the names allowed in a place, as help.
fn one_of(what: &str, names: Vec<&str>) -> String {
    match names.as_slice() {
        [] => format!("no {what} is allowed here"),
        names => format!("allowed here: `{}`", names.join("`, `")),
    }
}

/// Returns whether an unknown attribute of the element is probably a typo of `name`.
pub(crate) fn is_mistyped(dialect: Dialect, element: &Element, name: &str) -> bool {
    find(dialect, element).is_some_and(|rule| is_mistyped_in(rule, element, name))
}

/// As [`is_mistyped`], for an element of a batch.xml.
pub(crate) fn is_mistyped_in_batch_xml(element: &Element, name: &str) -> bool {
    find_in(BATCH_XML, &element.name).is_some_and(|rule| is_mistyped_in(rule, element, name))
}

fn is_mistyped_in(rule: &Rule, element: &Element, name: &str) -> bool {
    unknown_attributes(rule, element)
        .map(|attribute| suggest::nearest(&attribute.name, rule.attributes.iter().copied()))
        .any(|meant| meant == Some(name))
}

/// Returns whether the dialect allows `child` in `parent`.
pub(crate) fn allows(dialect: Dialect, parent: &Element, child: &Element) -> bool {
    find(dialect, parent).is_some_and(|rule| rule.allows(&child.name))
}

/// Returns whether the element has a child that the dialect does not allow there.
pub(crate) fn has_unknown_child(dialect: Dialect, element: &Element) -> bool {
    let unknown = |rule: &Rule| element.children.iter().any(|child| !rule.allows(&child.name));
    find(dialect, element).is_some_and(unknown)
}

fn find(dialect: Dialect, element: &Element) -> Option<&'static Rule> {
    find_in(dialect.rules().elements, &element.name)
}
