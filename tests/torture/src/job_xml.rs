//! The Job XML of a case.

use std::fmt::Write;

use crate::case::{Batchlet, Case, Chunk, Element, PART};

/// Returns the Job XML of the job `job`.
pub(crate) fn of(case: &Case) -> String {
    let mut xml = String::from("<job id=\"job\">\n");
    sequence(&case.elements, false, &mut xml);
    xml.push_str("</job>\n");
    xml
}

/// Returns the id of an element, as a target of `next`.
fn id(element: &Element) -> &str {
    match element {
        Element::Chunk(Chunk { id, .. })
        | Element::Batchlet(Batchlet { id, .. })
        | Element::Split { id, .. }
        | Element::Flow { id, .. }
        | Element::Decision { id, .. } => id,
    }
}

fn sequence(elements: &[Element], in_part: bool, xml: &mut String) {
    let nexts = elements.iter().skip(1).map(|element| Some(id(element)));
    for (element, next) in elements.iter().zip(nexts.chain([None])) {
        write(element, next, in_part, xml);
    }
}

fn next_attribute(next: Option<&str>) -> String {
    next.map(|next| format!(" next=\"{next}\"")).unwrap_or_default()
}

fn write(element: &Element, next: Option<&str>, in_part: bool, xml: &mut String) {
    let to_next = next_attribute(next);
    match element {
        Element::Chunk(step) => chunk(step, next, in_part, xml),
        Element::Batchlet(step) => batchlet(step, &to_next, in_part, xml),
        Element::Split { id, flows } => {
            let _ = writeln!(xml, "<split id=\"{id}\"{to_next}>");
            for (number, flow) in flows.iter().enumerate() {
                let _ = writeln!(xml, "<flow id=\"{id}-{number}\">");
                sequence(flow, in_part, xml);
                xml.push_str("</flow>\n");
            }
            xml.push_str("</split>\n");
        }
        Element::Flow {
            id,
            parts,
            logical_tx,
            elements,
        } => {
            let _ = writeln!(xml, "<flow id=\"{id}\"{to_next}>");
            sequence(elements, true, xml);
            partition(&steps_of(elements), *parts, *logical_tx, xml);
            xml.push_str("</flow>\n");
        }
        Element::Decision {
            id,
            passes_over,
            step,
        } => {
            let answer = if *passes_over { "OVER" } else { "INTO" };
            let over = match (next, passes_over) {
                (Some(next), _) => format!("<next on=\"OVER\" to=\"{next}\"/>"),
                (None, true) => "<end on=\"OVER\" exit-status=\"COMPLETED\"/>".to_owned(),
                (None, false) => String::new(),
            };
            let _ = writeln!(
                xml,
                "<decision id=\"{id}\" ref=\"Answer\"><properties><property name=\"answer\" value=\"{answer}\"/></properties>\
                 {over}<next on=\"INTO\" to=\"{}\"/></decision>",
                step.id
            );
            chunk(step, next, in_part, xml);
        }
    }
}

/// Returns the ids of the chunk steps of a flow, for its logical transaction.
fn steps_of(elements: &[Element]) -> String {
    let ids = elements.iter().filter_map(|element| match element {
        Element::Chunk(step) | Element::Decision { step, .. } => Some(step.id.as_str()),
        _ => None,
    });
    ids.collect::<Vec<_>>().join(",")
}

/// Writes the partitions, with the bounds of the items of each.
fn partition(steps: &str, parts: u32, logical_tx: bool, xml: &mut String) {
    let _ = writeln!(xml, "<partition instances=\"{parts}\"><properties>");
    for part in 1..=parts {
        let _ = writeln!(xml, "<property name=\"from.{part}\" value=\"{}\"/>", part * PART);
    }
    xml.push_str("</properties>");
    if logical_tx {
        let _ = write!(
            xml,
            "<logicalTX ref=\"Undo\"><properties><property name=\"steps\" value=\"{steps}\"/></properties></logicalTX>"
        );
    }
    xml.push_str("</partition>\n");
}

fn batchlet(step: &Batchlet, to_next: &str, in_part: bool, xml: &mut String) {
    let Batchlet { id, parts, fails } = step;
    let from = if *parts > 0 || in_part { "${from}" } else { "0" };
    let _ = writeln!(
        xml,
        "<step id=\"{id}\"{to_next}><batchlet ref=\"Task\"><properties><property name=\"step\" value=\"{id}\"/>\
         <property name=\"from\" value=\"{from}\"/><property name=\"fails\" value=\"{fails}\"/></properties></batchlet>"
    );
    if *parts > 0 {
        partition("", *parts, false, xml);
    }
    xml.push_str("</step>\n");
}

fn chunk(step: &Chunk, next: Option<&str>, in_part: bool, xml: &mut String) {
    let list = |items: &[u32]| items.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let from = if step.parts > 0 || in_part { "${from}" } else { "0" };
    let mut properties = vec![
        ("step", step.id.clone()),
        ("from", from.to_owned()),
        ("items", step.items.to_string()),
        ("filter", step.filter.to_string()),
        ("bad.reads", list(&step.bad_reads)),
        ("bad.results", list(&step.bad_results)),
        ("bad.writes", list(&step.bad_writes)),
        ("transient", list(&step.transient)),
    ];
    if let Some(item) = step.fails_at {
        properties.push(("fails.at", item.to_string()));
    }
    let of_step = [
        ("batch.chunk.pipeline", step.pipeline.to_string()),
        ("batch.chunk.processors", step.processors.to_string()),
    ];
    // A part without `#[close]` ends with its last chunk.
    let is_unclosed = step.parts > 0 && step.items.is_multiple_of(2);
    let unclosed = if is_unclosed { "Unclosed" } else { "" };
    let to_xml = |properties: &[(&str, String)]| {
        let each = properties.iter().filter(|(_, value)| !value.is_empty());
        let each = each.map(|(name, value)| format!("<property name=\"{name}\" value=\"{value}\"/>"));
        each.collect::<String>()
    };
    let _ = writeln!(
        xml,
        "<step id=\"{}\"{}><properties>{}</properties>\
         <chunk reader=\"{unclosed}Numbers\" processor=\"Results\" writer=\"{unclosed}Rows\" commit-interval=\"{}\" chunk-size=\"{}\">\
         <properties>{}</properties>\
         <skippable-exception-classes><include class=\"torture.Bad\"/></skippable-exception-classes>\
         <retryable-exception-classes><include class=\"torture.Transient\"/></retryable-exception-classes></chunk>",
        step.id,
        next_attribute(next),
        to_xml(&of_step),
        step.interval,
        step.chunk_size,
        to_xml(&properties)
    );
    if step.parts > 0 {
        partition(&step.id, step.parts, step.logical_tx, xml);
    }
    xml.push_str("</step>\n");
}
