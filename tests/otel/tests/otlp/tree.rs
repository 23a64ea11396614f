//! Spans as a text: the tree of a trace, whole.

use std::collections::BTreeMap;
use std::fmt::Write;

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;

pub(crate) fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns an attribute as a text.
pub(crate) fn attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    found.value.as_ref().map(text)
}

fn text(value: &AnyValue) -> String {
    match &value.value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// The attributes of a step that its job has, too.
const OF_JOB: [&str; 2] = ["batch.job.execution.id", "batch.job.name"];

/// Returns all attributes, by names without `batch.` and these prefixes. Without counts that are 0, and without the job's attributes at a
/// step, which are compared with the job's own.
fn attributes(all: &[KeyValue], prefixes: &[&str]) -> String {
    let mut texts = Vec::new();
    let is_step = prefixes.contains(&"step.");
    let is_shown = |attribute: &&KeyValue| !(is_step && OF_JOB.contains(&&*attribute.key));
    for attribute in all.iter().filter(is_shown) {
        let value = attribute.value.as_ref().map(text).unwrap_or_default();
        let mut name = attribute.key.strip_prefix("batch.").unwrap_or(&attribute.key);
        for prefix in prefixes {
            name = name.strip_prefix(prefix).unwrap_or(name);
        }
        if !(name.starts_with("items.") && value == "0") {
            texts.push(format!("{name}={value}"));
        }
    }
    texts.sort_unstable();
    texts.join(" ")
}

/// Returns all traces, in the order of their first spans. A span below one that has not arrived is below `?`.
pub(crate) fn traces(spans: &[Span]) -> String {
    let mut by_trace: BTreeMap<String, Vec<&Span>> = BTreeMap::new();
    for span in spans {
        by_trace.entry(hex(&span.trace_id)).or_default().push(span);
    }
    let mut traces: Vec<_> = by_trace.into_values().collect();
    traces.sort_by_key(|trace| trace.iter().map(|span| span.start_time_unix_nano).min());
    let texts: Vec<_> = traces.iter().map(|trace| tree(trace)).collect();
    texts.join("---\n")
}

/// Returns one trace.
fn tree(spans: &[&Span]) -> String {
    let mut text = String::new();
    let mut roots: Vec<_> = spans
        .iter()
        .filter(|span| !spans.iter().any(|parent| parent.span_id == span.parent_span_id))
        .collect();
    roots.sort_by_key(|span| order(span));
    for root in roots {
        let depth = usize::from(!root.parent_span_id.is_empty());
        if depth == 1 && !text.starts_with('?') {
            text.push_str("?\n");
        }
        write_span(&mut text, root, spans, depth);
    }
    text
}

/// Partitions by their names, chunks by their numbers, steps by their starts.
fn order(span: &Span) -> (String, i64, u64) {
    let partition = attribute(&span.attributes, "batch.partition.name").unwrap_or_default();
    let chunk = attribute(&span.attributes, "batch.chunk.number");
    let chunk = chunk.map_or(i64::MAX, |number| number.parse().unwrap());
    (partition, chunk, span.start_time_unix_nano)
}

fn write_span(text: &mut String, span: &Span, all: &[&Span], depth: usize) {
    let indent = "  ".repeat(depth);
    let own = match span.name.split(' ').next() {
        Some("job") => "job.",
        Some("chunk") => "chunk.",
        _ => "step.",
    };
    let _ = writeln!(
        text,
        "{indent}{} [{}]",
        span.name,
        attributes(&span.attributes, &[own])
    );
    if let Some(status) = span.status.as_ref().filter(|status| status.code != 0) {
        // The other lines show where it was thrown.
        let message = status.message.lines().next().unwrap_or_default();
        let _ = writeln!(text, "{indent}  ! {} {message}", status.code);
    }
    for event in &span.events {
        let _ = writeln!(
            text,
            "{indent}  * {} [{}]",
            event.name,
            attributes(&event.attributes, &[])
        );
        assert!(
            event.time_unix_nano >= span.start_time_unix_nano,
            "{}",
            event.name
        );
        assert!(event.time_unix_nano <= span.end_time_unix_nano, "{}", event.name);
    }
    for link in &span.links {
        let _ = writeln!(
            text,
            "{indent}  -> another trace [{}]",
            attributes(&link.attributes, &[])
        );
    }
    assert!(
        span.start_time_unix_nano <= span.end_time_unix_nano,
        "{}",
        span.name
    );
    let mut children: Vec<_> = all
        .iter()
        .filter(|child| child.parent_span_id == span.span_id)
        .collect();
    children.sort_by_key(|child| order(child));
    // A chunk begins where the one before ended.
    let mut begin = span.start_time_unix_nano;
    for chunk in children.iter().filter(|child| child.name.starts_with("chunk ")) {
        assert_eq!(chunk.start_time_unix_nano, begin, "{}", chunk.name);
        begin = chunk.end_time_unix_nano;
    }
    for child in children {
        assert!(
            child.start_time_unix_nano >= span.start_time_unix_nano,
            "{}",
            child.name
        );
        assert!(
            child.end_time_unix_nano <= span.end_time_unix_nano,
            "{}",
            child.name
        );
        for key in OF_JOB {
            let of_child = attribute(&child.attributes, key);
            assert!(
                of_child.is_none() || of_child == attribute(&span.attributes, key),
                "{key}"
            );
        }
        write_span(text, child, all, depth + 1);
    }
}
