//! Tables for people: columns as wide as their widest cell, numbers to the right.

use std::slice;

use batch_runtime::execution::{JobExecution, StepExecution, StepTotal};
use batch_runtime::operator::ExecutionState;
use batch_runtime::time::elapsed;
use batch_runtime::{JobOperator, JobOperatorError, Timestamp};
use comfy_table::{Cell, CellAlignment, ContentArrangement, presets};

use crate::print::{cut, out, outln, printable};

/// Maximum length of an exit status in a table.
const EXIT_STATUS_WIDTH: usize = 30;

pub(crate) struct Table(comfy_table::Table);

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        let left = |title: &&str| Cell::new(title).set_alignment(CellAlignment::Left);
        table.set_header(head.iter().map(left));
        Self(table)
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.add_row(cells);
    }

    /// Prints the table, unless it has no rows, with lines of at most this many characters.
    pub(crate) fn print_within(mut self, width: u16) {
        self.0
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width);
        self.print();
    }

    /// Prints the table, unless it has no rows.
    pub(crate) fn print(mut self) {
        if self.0.row_count() == 0 {
            return;
        }
        let is_number = |cell: &str| !cell.is_empty() && cell.bytes().all(|digit| digit.is_ascii_digit());
        for index in 0..self.0.column_count() {
            let cells: Vec<String> = self
                .0
                .column_cells_iter(index)
                .flatten()
                .map(Cell::content)
                .collect();
            let has_numbers = cells.iter().any(|cell| is_number(cell))
                && cells.iter().all(|cell| cell == "-" || is_number(cell));
            if let Some(column) = self.0.column_mut(index) {
                column.set_padding((0, 2));
                if has_numbers {
                    column.set_cell_alignment(CellAlignment::Right);
                }
            }
        }
        out(self.0.trim_fmt());
    }
}

/// Prints the steps of an execution and their messages. A message of several steps is printed once; `printed` is left out, because the caller
/// prints it. The table has a column of skipped items only if there are any.
pub(crate) fn print_steps(steps: &[StepExecution], printed: &str) {
    let has_skips = steps.iter().any(|step| step.counters.skips() > 0);
    let mut head = vec!["STEP", "STATUS", "EXIT STATUS", "READ", "FILTERED", "WRITTEN"];
    head.extend(has_skips.then_some("SKIPPED"));
    head.extend(["COMMITS", "ROLLBACKS", "TIME"]);
    let mut table = Table::new(&head);
    for step in steps {
        let counters = step.counters;
        let time = step.ended.map(|end| elapsed(end.millis_since(step.started)));
        let mut row = vec![
            step.step_name.clone(),
            step.status.to_string(),
            shortened(&step.exit_status),
        ];
        row.extend([counters.reads, counters.filters, counters.writes].map(|count| count.to_string()));
        row.extend(has_skips.then(|| counters.skips().to_string()));
        row.extend([counters.commits, counters.rollbacks].map(|count| count.to_string()));
        row.push(time.unwrap_or_else(|| "-".into()));
        table.row(row);
    }
    table.print();
    for step in steps {
        if let Some(nested) = step.nested_job() {
            let job = printable(&nested.nested_job);
            outln!(
                "step {} ran job {job}: execution {}",
                step.step_name,
                nested.execution
            );
        }
    }
    let mut printed = vec!["", printed];
    for (index, step) in steps.iter().enumerate() {
        let message = step.exit_message.as_str();
        let is_cut = shortened(&step.exit_status) != step.exit_status;
        let has_message = !printed.contains(&message);
        if has_message {
            printed.push(message);
        }
        if is_cut {
            outln!(
                "\nstep {}\nexit status  {}",
                step.step_name,
                printable(&step.exit_status)
            );
        }
        if has_message {
            let same = steps[index + 1..]
                .iter()
                .filter(|later| later.exit_message == message);
            let same: Vec<&str> = same.map(|later| later.step_name.as_str()).collect();
            if !is_cut || !same.is_empty() {
                outln!("\n{}", message_heading(&step.step_name, &same));
            }
            print_message(message);
        }
    }
}

/// Returns the heading of a message: the step and the later steps that have the same one.
fn message_heading(step: &str, same: &[&str]) -> String {
    const MAX_NAMED: usize = 8;
    match same {
        [] => format!("step {step}"),
        few if few.len() < MAX_NAMED => format!("steps {step}, {}", few.join(", ")),
        many => {
            let (shown, rest) = many.split_at(MAX_NAMED - 2);
            format!("steps {step}, {} and {} others", shown.join(", "), rest.len())
        }
    }
}

/// The heading of the totals.
pub(crate) const TOTALS: &str = "Totals of the instance";

/// The columns of the totals; the first holds text.
pub(crate) const TOTAL_COLUMNS: [&str; 8] = [
    "Step",
    "Executions",
    "Read",
    "Filtered",
    "Written",
    "Skipped",
    "Commits",
    "Rollbacks",
];

/// Returns the cells of the totals, in the order of [`TOTAL_COLUMNS`]; none if every step has run once.
pub(crate) fn total_cells(totals: &[StepTotal]) -> Vec<Vec<String>> {
    if totals.iter().all(|total| total.executions < 2) {
        return Vec::new();
    }
    let cells = |total: &StepTotal| {
        let counters = total.counters;
        let numbers = [
            counters.reads,
            counters.filters,
            counters.writes,
            counters.skips(),
            counters.commits,
            counters.rollbacks,
        ];
        let mut cells = vec![total.step_name.clone(), total.executions.to_string()];
        cells.extend(numbers.map(|number| number.to_string()));
        cells
    };
    totals.iter().map(cells).collect()
}

/// Prints the totals of steps that have run in several executions of the instance.
pub(crate) fn print_totals(totals: &[StepTotal]) {
    let rows = total_cells(totals);
    if rows.is_empty() {
        return;
    }
    outln!("\n{TOTALS}:");
    let head = TOTAL_COLUMNS.map(str::to_uppercase);
    let mut table = Table::new(&head.each_ref().map(String::as_str));
    rows.into_iter().for_each(|row| table.row(row));
    table.print();
}

pub(crate) fn print_message(message: &str) {
    if !message.is_empty() {
        let message = printable(message).replace('\n', "\n             ");
        outln!("message      {message}");
    }
}

/// Returns the state of an execution.
pub(crate) fn state_of(
    operator: &JobOperator,
    execution: &JobExecution,
) -> Result<ExecutionState, JobOperatorError> {
    let states = operator.execution_states(slice::from_ref(execution))?;
    states
        .into_values()
        .next()
        .ok_or(JobOperatorError::NoSuchJobExecution(execution.id))
}

/// Returns the status, marked if the execution waits or its process is dead.
pub(crate) fn live_status(execution: &JobExecution, state: &ExecutionState) -> String {
    let mark = match state.waits_for {
        Some(before) => format!(" (waits for {before})"),
        None if state.is_dead(execution.status) => " (dead)".to_owned(),
        None => String::new(),
    };
    format!("{}{mark}", execution.status)
}

/// Returns an exit status as a cell of a table.
pub(crate) fn shortened(exit_status: &str) -> String {
    cut(&printable(exit_status).replace('\n', " "), EXIT_STATUS_WIDTH)
}

pub(crate) fn or_dash(time: Option<Timestamp>) -> String {
    time.map_or_else(|| "-".into(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::message_heading;

    #[test]
    fn a_message_names_its_steps() {
        let heading = |later: usize| {
            let names: Vec<String> = (2..).take(later).map(|number| format!("s:{number}")).collect();
            message_heading("s:1", &names.iter().map(String::as_str).collect::<Vec<_>>())
        };
        assert_eq!(heading(0), "step s:1");
        assert_eq!(heading(1), "steps s:1, s:2");
        assert_eq!(heading(7), "steps s:1, s:2, s:3, s:4, s:5, s:6, s:7, s:8");
        assert_eq!(heading(8), "steps s:1, s:2, s:3, s:4, s:5, s:6, s:7 and 2 others");
        assert_eq!(
            heading(999),
            "steps s:1, s:2, s:3, s:4, s:5, s:6, s:7 and 993 others"
        );
    }
}
