//! The report as HTML.

use std::fmt::Write as _;

use batch_runtime::execution::StepExecution;
use batch_runtime::time::elapsed;

use super::escape::{Escaped, class};
use super::{EXECUTIONS, Run, Table};
use crate::tables::TOTALS;

const STYLE: &str = "
body { font: 15px/1.5 system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif; color: #1f2328; background: #fff; max-width: 960px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.badge { font-size: .9rem; font-weight: 600; padding: .15rem .6rem; border-radius: 1rem; vertical-align: middle; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; } dt { color: #57606a; } dd { margin: 0; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #d8dee4; vertical-align: top; }
th { color: #57606a; font-weight: 600; } .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
pre { background: #f6f8fa; border-left: 4px solid #d1434b; padding: .7rem 1rem; overflow-x: auto; white-space: pre-wrap; }
.bar { width: 70%; } .bar div { height: 1rem; min-width: 3px; border-radius: 3px; print-color-adjust: exact; } .inner { padding-left: 1.6rem; }
.completed { background: #2da44e; } .failed { background: #d1434b; } .stopped { background: #c4701c; } .running { background: #2f81d6; }
.badge.completed { background: #d9f5e0; } .badge.failed { background: #fde2e3; } .badge.stopped { background: #fdebd3; } .badge.running { background: #ddeeff; }
";

/// The most bars; more would be hard to read.
const MOST_BARS: usize = 200;

pub(super) fn write(run: &Run) -> String {
    let execution = &run.execution;
    let name = Escaped(&execution.job_name);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{name} {} {}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>{name} <span class=\"badge {}\">{}</span></h1>\n<dl>\n",
        execution.id,
        execution.status,
        class(execution.status),
        execution.status
    );
    for (fact, text) in run.facts() {
        let _ = writeln!(page, "<dt>{fact}</dt><dd>{}</dd>", Escaped(&text));
    }
    for (name, parameter) in run.parameters.iter() {
        let text = parameter.to_text(name);
        let _ = writeln!(page, "<dt>Parameter</dt><dd><code>{}</code></dd>", Escaped(&text));
    }
    page.push_str("</dl>\n");
    if !execution.exit_message.is_empty() {
        let _ = writeln!(page, "<pre>{}</pre>", Escaped(&execution.exit_message));
    }
    if !run.steps.is_empty() {
        page.push_str("<h2>Timeline</h2>\n");
        timeline(run, &mut page);
        page.push_str("<h2>Steps</h2>\n");
        table(&run.steps(), &mut page);
    }
    let totals = run.totals();
    if !totals.rows.is_empty() {
        let _ = writeln!(page, "<h2>{TOTALS}</h2>");
        table(&totals, &mut page);
    }
    let executions = run.executions();
    if !executions.rows.is_empty() {
        let _ = writeln!(page, "<h2>{EXECUTIONS}</h2>");
        table(&executions, &mut page);
    }
    for (name, message) in run.messages() {
        let (name, message) = (Escaped(name), Escaped(message));
        let _ = writeln!(page, "<h2>{name}</h2>\n<pre>{message}</pre>");
    }
    page.push_str("</body>\n</html>\n");
    page
}

/// Adds a bar for each step, from its start to its end.
fn timeline(run: &Run, page: &mut String) {
    let end = |step: &StepExecution| step.ended.unwrap_or(run.now);
    let last = run.steps.iter().map(end).fold(run.end(), Ord::max);
    let whole = last.millis_since(run.start()).max(1);
    let percent = |millis: u64| millis.min(whole) as f64 * 100.0 / whole as f64;
    page.push_str("<table>\n");
    for step in run.steps.iter().take(MOST_BARS) {
        let millis = end(step).millis_since(step.started);
        let _ = writeln!(
            page,
            "<tr><td{}>{}</td><td class=\"bar\"><div class=\"{}\" style=\"margin-left: {:.2}%; width: {:.2}%\"></div></td>\
             <td class=\"number\">{}</td></tr>",
            if step.is_of_partition() {
                " class=\"inner\""
            } else {
                ""
            },
            Escaped(&step.step_name),
            class(step.status),
            percent(step.started.millis_since(run.start())),
            percent(millis),
            elapsed(millis)
        );
    }
    page.push_str("</table>\n");
    let left_out = run.steps.len().saturating_sub(MOST_BARS);
    if left_out > 0 {
        let _ = writeln!(page, "<p>{left_out} more are not drawn.</p>");
    }
}

fn table(table: &Table, page: &mut String) {
    let of = |column: usize| {
        if column < table.first_number {
            ""
        } else {
            " class=\"number\""
        }
    };
    page.push_str("<table>\n<tr>");
    for (column, head) in table.head.iter().enumerate() {
        let _ = write!(page, "<th{}>{head}</th>", of(column));
    }
    page.push_str("</tr>\n");
    for row in &table.rows {
        page.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let _ = write!(page, "<td{}>{}</td>", of(column), Escaped(cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table>\n");
}
