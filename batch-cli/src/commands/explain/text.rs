//! An explanation for people: the job on the left, the origin of each value on the right.

use batch_runtime::operator::{
    ArtifactExplanation, AttributeValue, ElementExplanation, JobExplanation, PartitionExplanation,
    PropertyExplanation, TransitionExplanation, ValueOrigin,
};
use batch_runtime::url::redact;
use batch_runtime::xml::Span;

use super::sentence;
use crate::print::{out, visible};

/// Prints the whole job.
pub(super) fn print(explanation: &JobExplanation, identifies: impl Fn(&str) -> bool) {
    let mut rows = Rows::default();
    rows.element(0, &explanation.job);
    for property in &explanation.unused_properties {
        let right = format!("{}: unused", place(&property.span));
        rows.add(0, format!("property {}", visible(&property.name)), right);
    }
    for name in &explanation.unused_parameters {
        let right = match identifies(name) {
            true => "unused: it only identifies the instance",
            false => "unused: it has no effect",
        };
        let right = right.to_owned();
        rows.add(0, format!("parameter {}", visible(name)), right);
    }
    rows.print();
}

/// Maximum width of a text that moves the right column.
const WIDEST: usize = 64;

#[derive(Default)]
struct Rows(Vec<(String, String)>);

impl Rows {
    fn add(&mut self, depth: usize, left: String, right: String) {
        self.0.push((format!("{}{left}", "  ".repeat(depth)), right));
    }

    fn print(&self) {
        let widths = self.0.iter().map(|(left, _)| left.chars().count());
        let width = widths.filter(|width| *width <= WIDEST).max().unwrap_or_default();
        for (left, right) in &self.0 {
            out(format!("{left:<width$}  {right}").trim_end());
        }
    }

    fn element(&mut self, depth: usize, element: &ElementExplanation) {
        let title = format!("{} {}", element.kind, visible(&element.id));
        self.add(depth, title, place(&element.span));
        let depth = depth + 1;
        if let Some(sentence) = sentence::of_step(element) {
            self.add(depth, sentence, String::new());
        }
        self.attributes(depth, &element.attributes);
        self.properties(depth, &element.properties);
        if let Some(guarantee) = &element.guarantee {
            self.add(
                depth,
                format!("guarantee: {}", guarantee.word),
                guarantee.why.clone(),
            );
        }
        self.artifacts(depth, &element.artifacts);
        if let Some(partition) = &element.partition {
            self.partition(depth, partition);
        }
        for transition in &element.transitions {
            self.add(depth, transition_text(transition), place(&transition.span));
        }
        for element in &element.elements {
            self.element(depth, element);
        }
    }

    fn partition(&mut self, depth: usize, partition: &PartitionExplanation) {
        self.add(depth, "partition".into(), String::new());
        self.attributes(depth + 1, &partition.attributes);
        for property in &partition.properties {
            let name = visible(&property.name);
            let left = format!("{name}.{} = {:?}", property.partition, property.value);
            let place = place(&property.span);
            let right = if property.is_parameter {
                format!(
                    "job parameter, written {:?} {place}",
                    redact(property.span.text())
                )
            } else {
                place
            };
            self.add(depth + 1, left, right);
        }
        self.artifacts(depth + 1, &partition.artifacts);
    }

    fn attributes(&mut self, depth: usize, attributes: &[(&'static str, AttributeValue)]) {
        let mut line = String::new();
        for (name, value) in attributes {
            let attribute = format!("{name}: {}", attribute_text(value));
            if !line.is_empty() && line.chars().count() + attribute.chars().count() > WIDEST {
                self.add(depth, std::mem::take(&mut line), String::new());
            }
            line += if line.is_empty() { "" } else { ", " };
            line += &attribute;
        }
        if !line.is_empty() {
            self.add(depth, line, String::new());
        }
    }

    fn artifacts(&mut self, depth: usize, artifacts: &[ArtifactExplanation]) {
        for artifact in artifacts {
            let place = place(&artifact.span);
            let right = match (artifact.types.first(), &artifact.problem) {
                (Some(one), _) => format!("{} at {}:{}", one.class, one.file, one.line),
                (None, Some(problem)) if artifact.deferred => format!("{problem} ({place})"),
                (None, problem) => {
                    let problem = problem.as_deref().map(visible).unwrap_or_default();
                    format!("NOT FOUND: {problem} ({place})")
                }
            };
            let left = format!("{} {}", artifact.usage, visible(&artifact.name));
            self.add(depth, left, right);
            // A property that a known type does not take is often meant for the next artifact.
            let is_known = !artifact.types.is_empty();
            let shown = artifact
                .properties
                .iter()
                .filter(|property| property.field.is_some() || !is_known);
            self.properties(depth + 1, shown);
        }
    }

    fn properties<'a>(
        &mut self,
        depth: usize,
        properties: impl IntoIterator<Item = &'a PropertyExplanation>,
    ) {
        for property in properties {
            let value = match (&property.value, &property.origin) {
                (Some(value), _) => format!("{value:?}"),
                (None, ValueOrigin::Unset) => "-".into(),
                (None, _) => "one for each partition".into(),
            };
            let left = format!("{} = {value}", visible(&property.name));
            self.add(depth, left, origin(property));
        }
    }
}

fn attribute_text(value: &AttributeValue) -> String {
    match value {
        AttributeValue::Boolean(value) => value.to_string(),
        AttributeValue::Number(number) => number.to_string(),
        AttributeValue::Text(text) => visible(text),
        AttributeValue::Classes { include, exclude } => {
            let lists = [("include", include), ("exclude", exclude)];
            let lists = lists.into_iter().filter(|(_, classes)| !classes.is_empty());
            let lists: Vec<String> = lists
                .map(|(name, classes)| {
                    let classes: Vec<String> = classes.iter().map(|class| visible(class)).collect();
                    format!("{name} {}", classes.join(", "))
                })
                .collect();
            if lists.is_empty() {
                "none".into()
            } else {
                lists.join("; ")
            }
        }
        other => format!("{other:?}"),
    }
}

fn origin(property: &PropertyExplanation) -> String {
    let planned = match &property.planned_by {
        Some(algorithm) => format!(", unless `{}` plans it", visible(algorithm)),
        None => String::new(),
    };
    match &property.origin {
        ValueOrigin::JobParameter => "job parameter".into(),
        ValueOrigin::SystemProperty => "system property".into(),
        ValueOrigin::Xml(span) | ValueOrigin::Partition(span) => {
            let written = redact(span.text());
            let as_written = if property.value.as_deref() == Some(&*written) {
                String::new()
            } else {
                format!(", written {written:?}")
            };
            format!("{}{as_written}", place(span))
        }
        ValueOrigin::FieldDefault => format!("default of the field{planned}"),
        _ => property.field.as_ref().map_or_else(String::new, |field| {
            let optional = if field.optional { " (optional)" } else { "" };
            format!(
                "`{}: {}` is not set{planned}{optional}",
                field.name,
                field.short_type_name()
            )
        }),
    }
}

fn transition_text(transition: &TransitionExplanation) -> String {
    let mut text = format!("on {:?}: {}", transition.on, transition.kind);
    for (name, value) in &transition.attributes {
        text += &if *name == "to" {
            format!(" {}", visible(value))
        } else {
            format!(" {name} {value:?}")
        };
    }
    text
}

fn place(span: &Span) -> String {
    visible(&span.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use batch_runtime::operator::FieldExplanation;

    #[test]
    fn an_unset_field_may_be_optional() {
        let check = |name: &str, type_name: &'static str, optional: bool, expect: &str| {
            let property = PropertyExplanation {
                name: name.to_owned(),
                value: None,
                origin: ValueOrigin::Unset,
                planned_by: None,
                field: Some(FieldExplanation {
                    name: name.to_owned(),
                    type_name,
                    optional,
                }),
            };
            assert_eq!(origin(&property), expect);
        };
        check("limit", "u64", false, "`limit: u64` is not set");
        check(
            "note",
            "alloc::string::String",
            true,
            "`note: String` is not set (optional)",
        );
    }
}
