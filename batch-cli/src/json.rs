//! JSON on the standard output, for programs.

use batch_runtime::execution::JobExecution;
use batch_runtime::operator::ExecutionState;
use batch_runtime::xml::is_unprintable;
use serde_json::{Value, json};

use crate::print::outln;

/// Prints JSON on the standard output.
pub(crate) fn print(value: &Value) {
    print_text(&format!("{value:#}"));
}

/// Prints JSON on one line.
pub(crate) fn print_line(value: &Value) {
    print_text(&value.to_string());
}

/// Prints a JSON text. Characters that `out` would replace are escaped; they occur in strings only.
pub(crate) fn print_text(json: &str) {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unprintable(c) && c != '\n' {
            let mut units = [0; 2];
            text.extend(
                c.encode_utf16(&mut units)
                    .iter()
                    .map(|unit| format!("\\u{unit:04x}")),
            );
        } else {
            text.push(c);
        }
    }
    outln!("{text}");
}

/// Adds `waitsFor`, the execution of the same job that has to end first, or null.
pub(crate) fn job_execution(execution: &JobExecution, state: &ExecutionState) -> Value {
    let mut shown = json!(execution);
    shown["waitsFor"] = json!(state.waits_for.map(|before| before.0));
    shown
}
