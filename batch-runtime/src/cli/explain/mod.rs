//! `explain`: a job as it would run, with where everything in it comes from. Works on the resolved Job XML and the
//! artifacts in the program, so it also explains a job whose artifacts are missing.

mod describe;
mod json;
mod text;

use batch_xml::Span;
use batch_xml::model::{ArtifactRef, Property};
use serde_json::Value;

use super::output::print_json;
use crate::artifact::{ArtifactRegistration, PropertyInfo};
use crate::operator::{Definitions, JobOperatorError};
use crate::parameters::JobParameters;

/// Explains one job.
pub(super) fn run(
    definitions: &Definitions,
    job: &str,
    parameters: &JobParameters,
    json: bool,
) -> Result<(), JobOperatorError> {
    let (resolved, outside) = definitions.resolve(job, parameters)?;
    let explained = describe::explain(&resolved.job, &definitions.artifacts, outside);
    if json {
        print_json(&json::job(&explained));
    } else {
        text::print(&explained);
    }
    Ok(())
}

/// A job and what nothing in it uses.
struct Explained {
    job: Element,
    /// Job parameters that only identify the instance.
    unused: Vec<String>,
    /// Properties of the Job XML that no field, symbol or context takes, with their places.
    untaken: Vec<(String, Span)>,
}

/// A job, step, flow, split or decision.
struct Element {
    kind: &'static str,
    id: String,
    span: Span,
    /// Attributes with their values, in the order of the draft; what is neither given nor has a default is left out.
    attributes: Vec<(&'static str, Value)>,
    /// The properties that a context shows.
    properties: Vec<Setting>,
    parts: Vec<Part>,
    partition: Option<Partition>,
    transitions: Vec<Transition>,
    elements: Vec<Element>,
}

/// An artifact at its place.
struct Part {
    /// What it is there, in the words of the Job XML: `reader`, `listener`.
    place: &'static str,
    name: String,
    span: Span,
    found: Found,
    settings: Vec<Setting>,
}

/// Whom the name of an artifact means.
enum Found {
    /// One type, with a registration for each of its roles at this place.
    Types(Vec<&'static ArtifactRegistration>),
    /// No type, or several; what is said about it.
    Problem(String),
    /// The name is known only within a partition.
    Later,
}

/// A property and its value.
struct Setting {
    name: String,
    /// `None` if nothing gives a value, or each partition has its own.
    value: Option<String>,
    origin: Origin,
    /// The partition algorithm around, which may plan it.
    planner: Option<String>,
    /// The Rust field that takes it; `None` for a property that no field takes.
    field: Option<PropertyInfo>,
}

/// Where a value comes from.
enum Origin {
    Parameter,
    System,
    /// The Job XML, as written there.
    Xml(Span),
    /// Each partition has a value of its own, written so.
    Partition(Span),
    /// The default of the field.
    Default,
    /// Nothing gives one: the field is empty, or nothing works.
    Nothing,
}

/// A property of one partition.
struct OfPartition {
    number: u32,
    name: String,
    value: String,
    /// Whether a job parameter gives the value, instead of what is written.
    is_parameter: bool,
    span: Span,
}

struct Partition {
    attributes: Vec<(&'static str, Value)>,
    properties: Vec<OfPartition>,
    parts: Vec<Part>,
}

/// A transition element.
struct Transition {
    on: String,
    kind: &'static str,
    /// `to`, `exit-status`, `restart`, as far as they are given.
    attributes: Vec<(&'static str, String)>,
    span: Span,
}

/// The value that the Job XML gives a property, if it does.
fn written<'a>(artifact: &'a ArtifactRef, name: &str) -> Option<&'a Property> {
    artifact
        .properties
        .iter()
        .find(|property| property.name.value == name)
}
