//! The conversion of a document into another dialect: the same job as far as that dialect can express it, and a report of the rest.
//!
//! It works on the effective document: inheritance is resolved, and symbols are not substituted. The XML that it returns is always
//! well-formed; if errors are reported, it lacks what the dialect cannot express.

mod draft;
mod draft_transitions;
mod draft_values;
mod jakarta;
mod jakarta_chunk;
mod jakarta_lists;
mod jakarta_partition;
mod jakarta_transitions;
mod jakarta_values;

use std::collections::BTreeMap;

use crate::codes;
use crate::diagnostics::{JobXmlErrors, Sink, quoted};
use crate::dialect::Dialect;
use crate::symbols;
use crate::tree::Element;
use crate::values;
use crate::write::{self, Node};
use draft::ToDraft;
use jakarta::ToJakarta;

/// A document in another dialect.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Conversion {
    /// The document. If it is not complete, it lacks what the dialect cannot express.
    pub xml: String,
    /// Errors report what the dialect cannot express; warnings, what has a different meaning in it. In the order of the text.
    pub problems: JobXmlErrors,
    /// True if there are no errors.
    pub is_complete: bool,
}

/// The artifacts of a program, whose properties a conversion has to know.
pub trait KnownArtifacts {
    /// Returns the properties that the artifact of this name declares; `None` if the program has no such artifact.
    fn properties(&self, artifact: &str) -> Option<Vec<DeclaredProperty>>;
}

/// A property that an artifact declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredProperty {
    /// Its name.
    pub name: String,
    /// Its value if nothing sets it.
    pub default: Option<String>,
    /// True if it needs no value.
    pub is_optional: bool,
}

impl KnownArtifacts for BTreeMap<String, Vec<DeclaredProperty>> {
    fn properties(&self, artifact: &str) -> Option<Vec<DeclaredProperty>> {
        self.get(artifact).cloned()
    }
}

/// The built-in checkpoint algorithm of the draft, which counts items and time as a chunk of Jakarta Batch does.
const ITEM_TIME: &str = "item-time";

/// The largest number of items, which never ends a chunk.
const ALL_ITEMS: &str = "2147483647";

/// The start of the names of properties that belong to the runtime.
const RUNTIME_PREFIX: &str = "batch.";

/// Returns the document as XML in a dialect.
pub(crate) fn convert(
    root: &Element,
    from: Dialect,
    to: Dialect,
    artifacts: &dyn KnownArtifacts,
    sink: &mut Sink,
) -> String {
    if root.name.value != "job" || is_abstract(root) {
        sink.error(codes::NO_ELEMENT, &root.name.span, |d| {
            let kind = match root.name.value.as_str() {
                "job" => "abstract job".to_owned(),
                other => other.to_owned(),
            };
            d.message(format!(
                "a document with the root {} cannot be converted",
                quoted(&kind)
            ))
            .label("only serves as a parent")
            .help("convert the jobs that inherit from it: their conversions contain what they inherit")
        });
        return write::effective(root);
    }
    match (from.rules().parts_are_elements, to.rules().parts_are_elements) {
        (false, true) => ToJakarta::new(from, to, artifacts, sink).document(root),
        (true, false) => ToDraft::new(from, to, artifacts, sink).document(root),
        _ => return write::effective(root),
    }
    .to_well_formed_xml()
}

/// Returns whether the element literally is abstract: it serves as a parent and never runs.
fn is_abstract(element: &Element) -> bool {
    let attribute = element.attribute("abstract");
    attribute.and_then(|value| values::boolean(&value.value)) == Some(true)
}

/// Returns the execution elements of a job, flow or split that run.
fn executed(parent: &Element) -> impl Iterator<Item = &Element> {
    let is_executed = |child: &&Element| {
        matches!(child.name.value.as_str(), "step" | "flow" | "split" | "decision") && !is_abstract(child)
    };
    parent.children.iter().filter(is_executed)
}

/// Returns the entries of the list of properties of an element.
fn listed(element: &Element) -> impl Iterator<Item = &Element> {
    let list = element.child("properties");
    list.into_iter().flat_map(|list| list.children("property"))
}

/// Returns the value of an attribute, unless it is missing or contains symbols.
fn literal<'e>(dialect: Dialect, element: &'e Element, name: &str) -> Option<&'e str> {
    let value = element.attribute(name)?.value.value.as_str();
    (!symbols::has_symbols(dialect, value)).then_some(value)
}

/// Returns a list of properties, unless it is empty.
fn list_of(entries: impl IntoIterator<Item = (String, String)>) -> Option<Node> {
    let entries = entries.into_iter();
    let property =
        |(name, value): (String, String)| Node::new("property").with("name", name).with("value", value);
    let entries: Vec<Node> = entries.map(property).collect();
    (!entries.is_empty()).then(|| Node::new("properties").and(entries))
}

/// Returns the names for a message, at most ten of them.
fn names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    const MOST: usize = 10;
    let mut all: Vec<String> = names.map(quoted).collect();
    if all.len() > MOST {
        let more = all.len() - MOST;
        all.truncate(MOST);
        return format!("{} and {more} more", all.join(", "));
    }
    all.join(", ")
}
