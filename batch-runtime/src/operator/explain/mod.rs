//! Explains a job: the elements that would run with given parameters, and the origin of every value. Reads the
//! resolved Job XML and the registered artifacts, so it also explains a job whose artifacts are missing.

mod describe;
mod guarantee;

use std::collections::BTreeMap;

use batch_xml::Span;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::definitions::Wanted;
use super::{Definitions, Result};
use crate::artifact::{is_ready_made, short_type_name};
use crate::parameters::JobParameters;
use crate::url::redact;

pub use self::guarantee::Guarantee;

impl JobExplanation {
    /// Returns the steps, inner ones too, with their guarantees, in the order of the Job XML.
    // Spec: MARK-14
    pub fn guarantees(&self) -> Vec<(&str, &Guarantee)> {
        let mut found = Vec::new();
        let mut waiting = vec![&self.job];
        while let Some(element) = waiting.pop() {
            found.extend(
                element
                    .guarantee
                    .as_ref()
                    .map(|guarantee| (element.id.as_str(), guarantee)),
            );
            waiting.extend(element.elements.iter().rev());
        }
        found
    }
}

impl Definitions {
    /// Explains a job as it would run with these parameters. Nothing is started, and no artifact has to exist.
    ///
    /// # Errors
    /// `NoSuchJob`, or `JobStart` with everything that is wrong with the job's definition or parameters.
    pub fn explain(&self, job: &str, parameters: &JobParameters) -> Result<JobExplanation> {
        let (resolved, external) = self.resolve(Wanted::Id(job), parameters)?;
        Ok(describe::explain(
            &resolved.job,
            &self.artifacts,
            external,
            self.in_memory,
        ))
    }
}

/// A job as it would run, with the origin of every value. Serializes to the JSON that `explain --json` prints.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JobExplanation {
    /// The job and, nested, all its elements.
    #[serde(flatten)]
    pub job: ElementExplanation,
    /// Job parameters that only identify the instance: no artifact, symbol or context uses them.
    pub unused_parameters: Vec<String>,
    /// Properties of the Job XML that no artifact, symbol or context uses.
    pub unused_properties: Vec<UnusedProperty>,
}

/// A property of the Job XML that nothing uses.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct UnusedProperty {
    /// The property's name.
    pub name: String,
    /// Its place in the Job XML.
    #[serde(rename = "place", serialize_with = "place")]
    pub span: Span,
}

/// A job, step, flow, split or decision.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ElementExplanation {
    /// The element's name in Job XML, such as `step`.
    #[serde(rename = "element")]
    pub kind: &'static str,
    /// Its id.
    pub id: String,
    /// Its place in the Job XML.
    #[serde(rename = "place", serialize_with = "place")]
    pub span: Span,
    /// Attributes in the order of the draft, defaults included; attributes without a value are left out.
    #[serde(serialize_with = "map")]
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// The properties that a job or step context shows.
    pub properties: Vec<PropertyExplanation>,
    /// What a crash does to the items of a step; `None` of other elements, and if its reader or writer is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<Guarantee>,
    /// The artifacts, in the order of the Job XML.
    pub artifacts: Vec<ArtifactExplanation>,
    /// The partition of the element, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<PartitionExplanation>,
    /// The transition elements, in their order.
    pub transitions: Vec<TransitionExplanation>,
    /// The elements inside.
    pub elements: Vec<ElementExplanation>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum AttributeValue {
    /// `true` or `false`.
    Boolean(bool),
    /// A number.
    Number(u64),
    /// A text.
    Text(String),
    /// A filter of exception classes.
    Classes {
        /// The classes that are included.
        include: Vec<String>,
        /// The classes that are excluded.
        exclude: Vec<String>,
    },
}

/// An artifact where it is used.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ArtifactExplanation {
    /// Its use, in the words of the Job XML: `reader`, `listener`.
    #[serde(rename = "as")]
    pub usage: &'static str,
    /// The name in the `ref`.
    #[serde(rename = "ref")]
    pub name: String,
    /// The place of the `ref` in the Job XML.
    #[serde(rename = "place", serialize_with = "place")]
    pub span: Span,
    /// The registrations that the name resolves to: one, or for a listener one for each of its roles. Empty if the name
    /// does not resolve.
    pub types: Vec<ArtifactType>,
    /// The reason why the name does not resolve.
    pub problem: Option<String>,
    /// True if the name depends on the partition, so that it resolves only when the partition starts.
    #[serde(skip)]
    pub deferred: bool,
    /// The properties that its fields take, then the other properties of its element.
    pub properties: Vec<PropertyExplanation>,
}

/// A registered type in one of its roles.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ArtifactType {
    /// The attribute that registered it, such as `item_reader`.
    pub role: &'static str,
    /// Full path of the Rust type.
    #[serde(rename = "type")]
    pub class: &'static str,
    /// Source file of the attribute.
    pub file: &'static str,
    /// Source line of the attribute.
    pub line: u32,
}

impl ArtifactType {
    /// Returns whether the type is ready-made: of `batch-items` or another crate of this project.
    #[must_use]
    pub fn is_ready_made(&self) -> bool {
        is_ready_made(self.class)
    }
}

/// A property with its value. Serializes flat: `from` names the origin, `place` and `written` quote the Job XML.
#[derive(Clone, Debug)]
pub struct PropertyExplanation {
    /// The property's name.
    pub name: String,
    /// The value; `None` if there is none, or if each partition has its own.
    pub value: Option<String>,
    /// The origin of the value.
    pub origin: ValueOrigin,
    /// The enclosing partition algorithm, whose plan may set the property.
    pub planned_by: Option<String>,
    /// The Rust field that takes the property; `None` if no field does.
    pub field: Option<FieldExplanation>,
}

/// The origin of the value of a property.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ValueOrigin {
    /// A job parameter.
    JobParameter,
    /// A system property.
    SystemProperty,
    /// The Job XML, at this place.
    Xml(Span),
    /// The partition, by what is written at this place of the Job XML.
    Partition(Span),
    /// The default of the field.
    FieldDefault,
    /// Nothing sets it.
    Unset,
}

/// A `#[batch_property]` field.
#[derive(Clone, Debug)]
pub struct FieldExplanation {
    /// The field's name. In a nested artifact it follows the names of the enclosing fields: `accepted.resource`.
    pub name: String,
    /// Full path of its type.
    pub type_name: &'static str,
    /// True if the field accepts a missing value.
    pub optional: bool,
}

impl FieldExplanation {
    /// Returns the type's name without the paths of the standard library.
    pub fn short_type_name(&self) -> String {
        short_type_name(self.type_name)
    }
}

/// The partition of a step or flow.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PartitionExplanation {
    /// Attributes, in the form of [`ElementExplanation`].
    #[serde(serialize_with = "map")]
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// The properties of each partition.
    pub properties: Vec<PartitionProperty>,
    /// Algorithm, logical transaction, analyzer and collector.
    pub artifacts: Vec<ArtifactExplanation>,
}

/// A property of one partition.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PartitionProperty {
    /// The partition's number, from 1.
    pub partition: u32,
    /// The property's name, with its target in parentheses if it has one.
    pub name: String,
    /// The value.
    pub value: String,
    /// True if a job parameter sets the value, instead of the Job XML.
    #[serde(rename = "from", serialize_with = "parameter_or_xml")]
    pub is_parameter: bool,
    /// The place of the value in the Job XML.
    #[serde(rename = "place", serialize_with = "place")]
    pub span: Span,
}

/// A transition element.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TransitionExplanation {
    /// The pattern of exit statuses.
    pub on: String,
    /// `next`, `fail`, `end` or `stop`.
    #[serde(rename = "element")]
    pub kind: &'static str,
    /// `to`, `exit-status` and `restart`, as far as they are given.
    #[serde(flatten)]
    pub attributes: BTreeMap<&'static str, String>,
    /// Its place in the Job XML.
    #[serde(rename = "place", serialize_with = "place")]
    pub span: Span,
}

impl Serialize for PropertyExplanation {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let (from, span) = match &self.origin {
            ValueOrigin::JobParameter => ("job parameter", None),
            ValueOrigin::SystemProperty => ("system property", None),
            ValueOrigin::Xml(span) => ("xml", Some(span)),
            ValueOrigin::Partition(span) => ("partition", Some(span)),
            ValueOrigin::FieldDefault => ("default", None),
            ValueOrigin::Unset => ("nothing", None),
        };
        let field = self.field.as_ref();
        let value = json!({
            "name": self.name,
            "value": self.value,
            "from": from,
            "place": span.map(Place::of),
            "written": span.map(|span| redact(span.text())),
            "field": field.map(|field| &field.name),
            "type": field.map(|field| field.type_name),
            "plannedBy": self.planned_by,
            "optional": field.map(|field| field.optional),
        });
        value.serialize(serializer)
    }
}

/// A place of the Job XML, line and column counted from 1.
#[derive(Serialize)]
struct Place<'a> {
    file: &'a str,
    line: usize,
    column: usize,
}

impl<'a> Place<'a> {
    fn of(span: &'a Span) -> Self {
        let (line, column) = span.source().line_column(span.range().start);
        let file = span.source().name();
        Self { file, line, column }
    }
}

fn place<S: Serializer>(span: &Span, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    Place::of(span).serialize(serializer)
}

fn parameter_or_xml<S: Serializer>(
    is_parameter: &bool,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(if *is_parameter { "parameter" } else { "xml" })
}

fn map<S: Serializer>(
    attributes: &[(&'static str, AttributeValue)],
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_map(attributes.iter().map(|(name, value)| (name, value)))
}
