//! An explained job for people: what is there on the left, where it comes from on the right.

use batch_xml::Span;
use serde_json::{Map, Value};

use super::{Element, Explained, Found, Origin, Part, Setting, Transition};
use crate::artifact::short_type_name;
use crate::cli::print::out;

/// Prints the whole job.
pub(super) fn print(explained: &Explained) {
    let mut rows = Rows::default();
    rows.element(0, &explained.job);
    for (name, span) in &explained.untaken {
        let right = format!("{}: nothing takes it", place(span));
        rows.add(0, format!("property {}", visible(name)), right);
    }
    for name in &explained.unused {
        rows.add(
            0,
            format!("parameter {}", visible(name)),
            "nothing uses it: it only identifies the instance".into(),
        );
    }
    rows.print();
}

/// Texts that are longer do not push the right column to the right.
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

    fn element(&mut self, depth: usize, element: &Element) {
        let title = format!("{} {}", element.kind, visible(&element.id));
        self.add(depth, title, place(&element.span));
        let depth = depth + 1;
        self.attributes(depth, &element.attributes);
        self.settings(depth, &element.properties);
        self.parts(depth, &element.parts);
        if let Some(partition) = &element.partition {
            self.add(depth, "partition".into(), String::new());
            self.attributes(depth + 1, &partition.attributes);
            for property in &partition.properties {
                let left = format!(
                    "{}.{} = {:?}",
                    visible(&property.name),
                    property.number,
                    property.value
                );
                let right = if property.is_parameter {
                    format!(
                        "job parameter, written {:?} {}",
                        property.span.text(),
                        place(&property.span)
                    )
                } else {
                    place(&property.span)
                };
                self.add(depth + 1, left, right);
            }
            self.parts(depth + 1, &partition.parts);
        }
        for transition in &element.transitions {
            self.add(depth, transition_text(transition), place(&transition.span));
        }
        for element in &element.elements {
            self.element(depth, element);
        }
    }

    fn attributes(&mut self, depth: usize, attributes: &[(&'static str, Value)]) {
        let mut line = String::new();
        for (name, value) in attributes {
            let value = match value {
                Value::String(text) => visible(text),
                Value::Object(lists) => classes(lists),
                other => other.to_string(),
            };
            let attribute = format!("{name}: {value}");
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

    fn parts(&mut self, depth: usize, parts: &[Part]) {
        for part in parts {
            let found = match &part.found {
                Found::Types(types) => types.first().map_or_else(String::new, |one| {
                    format!("{} at {}:{}", one.class, one.file, one.line)
                }),
                Found::Problem(problem) => {
                    format!("NOT FOUND: {} ({})", visible(problem), place(&part.span))
                }
                Found::Later => format!("known only within a partition ({})", place(&part.span)),
            };
            self.add(depth, format!("{} {}", part.place, visible(&part.name)), found);
            // What a known type does not take is none of its business, and often meant for the next one.
            let is_known = matches!(part.found, Found::Types(_));
            let shown = part
                .settings
                .iter()
                .filter(|setting| setting.field.is_some() || !is_known);
            self.settings(depth + 1, shown);
        }
    }

    fn settings<'a>(&mut self, depth: usize, settings: impl IntoIterator<Item = &'a Setting>) {
        for setting in settings {
            let value = match (&setting.value, &setting.origin) {
                (Some(value), _) => format!("{value:?}"),
                (None, Origin::Nothing) => "-".into(),
                (None, _) => "one for each partition".into(),
            };
            self.add(
                depth,
                format!("{} = {value}", visible(&setting.name)),
                origin(setting),
            );
        }
    }
}

/// Lists of exception classes: `include A, B; exclude C`.
fn classes(lists: &Map<String, Value>) -> String {
    // As in the Job XML.
    let lists = ["include", "exclude"].map(|name| {
        let classes = lists.get(name).and_then(Value::as_array).into_iter().flatten();
        let classes: Vec<String> = classes.filter_map(Value::as_str).map(visible).collect();
        (!classes.is_empty()).then(|| format!("{name} {}", classes.join(", ")))
    });
    let lists: Vec<String> = lists.into_iter().flatten().collect();
    if lists.is_empty() {
        "none".into()
    } else {
        lists.join("; ")
    }
}

fn origin(setting: &Setting) -> String {
    let planned = match &setting.planner {
        Some(algorithm) => format!(", unless `{}` plans it", visible(algorithm)),
        None => String::new(),
    };
    match &setting.origin {
        Origin::Parameter => "job parameter".into(),
        Origin::System => "system property".into(),
        Origin::Xml(span) | Origin::Partition(span) => {
            let written = span.text();
            let as_written = if setting.value.as_deref() == Some(written) {
                String::new()
            } else {
                format!(", written {written:?}")
            };
            format!("{}{as_written}", place(span))
        }
        Origin::Default => format!("default of the field{planned}"),
        Origin::Nothing => match &setting.field {
            Some(field) => {
                let type_name = short_type_name(field.type_name);
                let optional = if field.optional { ", which is optional" } else { "" };
                format!(
                    "nothing gives `{}: {type_name}` a value{planned}{optional}",
                    field.field
                )
            }
            None => String::new(),
        },
    }
}

fn transition_text(transition: &Transition) -> String {
    let mut text = format!("on {:?}: {}", transition.on, transition.kind);
    for (name, value) in &transition.attributes {
        // `next to x` needs no more words.
        let value = if *name == "to" {
            format!(" {}", visible(value))
        } else {
            format!(" {name} {value:?}")
        };
        text.push_str(&value);
    }
    text
}

fn place(span: &Span) -> String {
    visible(&span.to_string())
}

/// User text without control characters, which a terminal would obey.
fn visible(text: &str) -> String {
    text.escape_debug()
        .to_string()
        .replace("\\'", "'")
        .replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::PropertyInfo;

    #[test]
    fn what_nothing_gives_a_value_may_be_optional() {
        let check = |field: PropertyInfo, expect: &str| {
            let setting = Setting {
                name: field.name.to_owned(),
                value: None,
                origin: Origin::Nothing,
                planner: None,
                field: Some(field),
            };
            assert_eq!(origin(&setting), expect);
        };
        check(
            PropertyInfo::of::<u64>("limit", "limit", None),
            "nothing gives `limit: u64` a value",
        );
        check(
            PropertyInfo::optional::<u64>("cut.at", "cut_at", None),
            "nothing gives `cut_at: u64` a value, which is optional",
        );
        check(
            PropertyInfo::of::<String>("note", "note", None),
            "nothing gives `note: String` a value, which is optional",
        );
    }
}
