//! An explained job for programs.

use batch_xml::Span;
use serde_json::{Map, Value, json};

use super::{Element, Explained, Found, Origin, Part, Partition, Setting, Transition};

/// The whole job.
pub(super) fn job(explained: &Explained) -> Value {
    let mut value = element(&explained.job);
    value["unusedParameters"] = json!(explained.unused);
    value["unusedProperties"] = list(
        &explained.untaken,
        |(name, span)| json!({ "name": name, "place": place(span) }),
    );
    value
}

fn element(element: &Element) -> Value {
    let mut value = json!({
        "element": element.kind,
        "id": element.id,
        "place": place(&element.span),
        "attributes": attributes(&element.attributes),
        "properties": list(&element.properties, setting),
        "artifacts": list(&element.parts, part),
        "transitions": list(&element.transitions, transition),
        "elements": list(&element.elements, self::element),
    });
    if let Some(partition) = &element.partition {
        value["partition"] = self::partition(partition);
    }
    value
}

fn part(part: &Part) -> Value {
    let (types, problem) = match &part.found {
        Found::Types(types) => (types.as_slice(), None),
        Found::Problem(problem) => (&[][..], Some(problem.as_str())),
        Found::Later => (&[][..], Some("known only within a partition")),
    };
    json!({
        "as": part.place,
        "ref": part.name,
        "place": place(&part.span),
        "types": list(types, |one| json!({
            "role": one.role().attribute(),
            "type": one.class,
            "file": one.file,
            "line": one.line,
        })),
        "problem": problem,
        "properties": list(&part.settings, setting),
    })
}

fn setting(setting: &Setting) -> Value {
    let (from, span) = match &setting.origin {
        Origin::Parameter => ("job parameter", None),
        Origin::System => ("system property", None),
        Origin::Xml(span) => ("xml", Some(span)),
        Origin::Partition(span) => ("partition", Some(span)),
        Origin::Default => ("default", None),
        Origin::Nothing => ("nothing", None),
    };
    json!({
        "name": setting.name,
        "value": setting.value,
        "from": from,
        "place": span.map(place),
        "written": span.map(Span::text),
        "field": setting.field.as_ref().map(|field| field.field),
        "type": setting.field.as_ref().map(|field| field.type_name),
        "plannedBy": setting.planner,
        "optional": setting.field.as_ref().map(|field| field.optional),
    })
}

fn partition(partition: &Partition) -> Value {
    let properties = partition.properties.iter().map(|property| {
        json!({
            "partition": property.number,
            "name": property.name,
            "value": property.value,
            "from": if property.is_parameter { "parameter" } else { "xml" },
            "place": place(&property.span),
        })
    });
    json!({
        "attributes": attributes(&partition.attributes),
        "properties": properties.collect::<Vec<_>>(),
        "artifacts": list(&partition.parts, part),
    })
}

fn transition(transition: &Transition) -> Value {
    let mut value =
        json!({ "on": transition.on, "element": transition.kind, "place": place(&transition.span) });
    for (name, text) in &transition.attributes {
        value[*name] = json!(text);
    }
    value
}

fn attributes(attributes: &[(&'static str, Value)]) -> Value {
    let pairs = attributes
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// A place of the Job XML.
pub(in crate::cli) fn place(span: &Span) -> Value {
    let (line, column) = span.source().line_column(span.range().start);
    json!({ "file": span.source().name(), "line": line, "column": column })
}

fn list<T>(items: &[T], describe: impl Fn(&T) -> Value) -> Value {
    items.iter().map(describe).collect()
}
