//! Job and step executions as JSON, for programs.

use batch_runtime::execution::{JobExecution, StepCounters, StepExecution, StepTotal};
use batch_runtime::xml::is_unprintable;
use batch_runtime::{JobOperator, JobOperatorError};
use serde_json::{Value, json};

use crate::print::outln;
use crate::tables::{nested_job, waits_for};

/// Prints JSON on the standard output.
pub(crate) fn print(value: &Value) {
    print_text(&format!("{value:#}"));
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

/// `waitsFor` is the execution of the same job that has to end first, or null.
pub(crate) fn job_execution(
    operator: &JobOperator,
    execution: &JobExecution,
) -> Result<Value, JobOperatorError> {
    let before = waits_for(operator, execution)?;
    Ok(json!({
        "execution": execution.id.0,
        "instance": execution.instance_id.0,
        "job": execution.job_name,
        "name": execution.name(),
        "status": execution.status.as_str(),
        "exitStatus": execution.exit_status,
        "exitMessage": execution.exit_message,
        "created": execution.created.to_string(),
        "started": execution.started.map(|time| time.to_string()),
        "ended": execution.ended.map(|time| time.to_string()),
        "definition": execution.configuration_location,
        "waitsFor": before.map(|before| before.0),
    }))
}

pub(crate) fn step_execution(step: &StepExecution) -> Value {
    let about = json!({
        "step": step.step_name,
        "stepExecution": step.id.0,
        "status": step.status.as_str(),
        "exitStatus": step.exit_status,
        "exitMessage": step.exit_message,
        "started": step.started.to_string(),
        "ended": step.ended.map(|time| time.to_string()),
    });
    let mut shown = with_counters(about, step.counters);
    if let Some(nested) = nested_job(step) {
        shown["nestedJob"] = json!({ "job": nested.nested_job, "execution": nested.execution.0 });
    }
    shown
}

/// The counters of a step in all executions of its instance.
pub(crate) fn step_total(total: &StepTotal) -> Value {
    let about = json!({ "step": total.step_name, "executions": total.executions });
    with_counters(about, total.counters)
}

fn with_counters(mut about: Value, counters: StepCounters) -> Value {
    for (name, count) in [
        ("reads", counters.reads),
        ("writes", counters.writes),
        ("filters", counters.filters),
        ("commits", counters.commits),
        ("rollbacks", counters.rollbacks),
        ("readSkips", counters.read_skips),
        ("processSkips", counters.process_skips),
        ("writeSkips", counters.write_skips),
    ] {
        about[name] = count.into();
    }
    about
}
