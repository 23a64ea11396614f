//! What a step does, in a sentence.

use batch_runtime::operator::{
    ArtifactExplanation, AttributeValue, ElementExplanation, PartitionExplanation, PropertyExplanation,
    ValueOrigin,
};

use crate::print::visible;

/// The longest value of a property in a sentence, in characters.
const LONGEST_VALUE: usize = 60;

/// Returns a sentence about a step: `reads with csvRecordReader (resource = "in.csv"), writes with recordTableWriter (table = "flight"), and
/// commits every 100 items`; `None` for another element.
pub(super) fn of_step(element: &ElementExplanation) -> Option<String> {
    let mut clauses: Vec<String> = element.artifacts.iter().filter_map(clause).collect();
    if element.kind != "step" || clauses.is_empty() {
        return None;
    }
    clauses.extend(commits(element));
    let subject = element.partition.as_ref().map_or_else(String::new, subject);
    let sentence = match clauses.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{}, and {last}", before.join(", ")),
        _ => clauses.concat(),
    };
    Some(subject + &sentence)
}

fn subject(partition: &PartitionExplanation) -> String {
    match number(&partition.attributes, &["instances", "partitions"]) {
        Some(count) => format!("each of {count} partitions "),
        None => "each partition ".to_owned(),
    }
}

fn clause(artifact: &ArtifactExplanation) -> Option<String> {
    let verb = match artifact.usage {
        "reader" => "reads with",
        "processor" => "processes with",
        "writer" => "writes with",
        "batchlet" => "runs",
        _ => return None,
    };
    let given: Vec<String> = artifact.properties.iter().filter_map(given).collect();
    let name = visible(&artifact.name);
    Some(match given.is_empty() {
        true => format!("{verb} {name}"),
        false => format!("{verb} {name} ({})", given.join(", ")),
    })
}

/// Returns a property whose value is not a default.
fn given(property: &PropertyExplanation) -> Option<String> {
    let is_default = matches!(property.origin, ValueOrigin::FieldDefault | ValueOrigin::Unset);
    if is_default || property.field.is_none() {
        return None;
    }
    let name = visible(&property.name);
    Some(match property.value.as_deref().map(str::trim) {
        Some(value) if value.chars().count() > LONGEST_VALUE => {
            let beginning: String = value.chars().take(LONGEST_VALUE).collect();
            format!("{name} = {:?}", beginning + "…")
        }
        Some(value) => format!("{name} = {value:?}"),
        None => format!("{name} of the partition"),
    })
}

fn commits(element: &ElementExplanation) -> Option<String> {
    let policy = element
        .attributes
        .iter()
        .find(|(name, _)| *name == "checkpoint-policy");
    let (_, AttributeValue::Text(policy)) = policy? else {
        return None;
    };
    let interval = number(&element.attributes, &["commit-interval", "item-count"]);
    Some(match (policy.as_str(), interval) {
        ("item", Some(1)) => "commits each item".to_owned(),
        ("item", Some(count)) => format!("commits every {count} items"),
        ("time", Some(1)) => "commits every second".to_owned(),
        ("time", Some(seconds)) => format!("commits every {seconds} seconds"),
        _ => "commits when its checkpoint algorithm says so".to_owned(),
    })
}

fn number(attributes: &[(&'static str, AttributeValue)], names: &[&str]) -> Option<u64> {
    attributes.iter().find_map(|(name, value)| match value {
        AttributeValue::Number(number) if names.contains(name) => Some(*number),
        _ => None,
    })
}
