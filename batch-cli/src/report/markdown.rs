//! The report as Markdown, with the timeline as a Gantt chart of Mermaid.

use std::fmt::Write as _;

use batch_runtime::BatchStatus;
use batch_runtime::xml::is_unprintable;

use super::{EXECUTIONS, Run, Table};
use crate::print::printable;
use crate::tables::TOTALS;

pub(super) fn write(run: &Run) -> String {
    let execution = &run.execution;
    let mut text = format!(
        "# {} {} {}\n\n| | |\n|---|---|\n",
        plain(&execution.job_name),
        execution.id,
        execution.status
    );
    for (fact, value) in run.facts() {
        let _ = writeln!(text, "| {fact} | {} |", plain(&value));
    }
    for (name, parameter) in run.parameters.iter() {
        let _ = writeln!(text, "| Parameter | {} |", plain(&parameter.to_text(name)));
    }
    if !execution.exit_message.is_empty() {
        let _ = writeln!(text, "\n{}", quoted(&execution.exit_message));
    }
    if run.steps.is_empty() {
        return text;
    }
    text.push_str("\n## Timeline\n\n```mermaid\ngantt\n    dateFormat x\n    axisFormat %H:%M:%S\n");
    for step in &run.steps {
        let mark = match step.status {
            BatchStatus::Completed => "done",
            BatchStatus::Failed => "crit",
            _ => "active",
        };
        // These characters have a meaning in the chart.
        let name = printable(&step.step_name).replace([':', ';', '#', '\n', '`'], " ");
        let (from, to) = (step.started.0, step.ended.unwrap_or(run.now).0);
        let _ = writeln!(text, "    {name} :{mark}, {from}, {}", to.max(from + 1));
    }
    text.push_str("```\n\n## Steps\n\n");
    table(&run.steps(), &mut text);
    let totals = run.totals();
    if !totals.rows.is_empty() {
        let _ = writeln!(text, "\n## {TOTALS}\n");
        table(&totals, &mut text);
    }
    let executions = run.executions();
    if !executions.rows.is_empty() {
        let _ = writeln!(text, "\n## {EXECUTIONS}\n");
        table(&executions, &mut text);
    }
    for (name, message) in run.messages() {
        let _ = writeln!(text, "\n## {}\n\n{}", plain(name), quoted(message));
    }
    text
}

fn table(table: &Table, text: &mut String) {
    let _ = write!(text, "| {} |\n|", table.head.join(" | "));
    for column in 0..table.head.len() {
        text.push_str(if column < table.first_number {
            "---|"
        } else {
            "---:|"
        });
    }
    text.push('\n');
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|cell| plain(cell)).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
}

/// Formats text on one line, with the characters escaped that Markdown interprets.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' => plain.extend(['\\', character]),
            '<' => plain.push_str("&lt;"),
            '&' => plain.push_str("&amp;"),
            character if is_unprintable(character) => plain.push(' '),
            character => plain.push(character),
        }
    }
    plain
}

/// Formats text as a code block, which keeps its lines.
fn quoted(text: &str) -> String {
    let text = printable(&text.replace("\r\n", "\n"));
    let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}
