//! A program that operates its jobs itself: it launches one, watches it, stops it, and restarts it with other parameters.
//!
//! ```text
//! cargo run --example operator
//! ```
//!
//! By day the job makes a pause after each statement, so that it disturbs nobody. The program stops it when it has written
//! some, and restarts it without the pauses: it goes on where it was.

mod statements;

use std::error::Error;
use std::thread;
use std::time::Duration;

use batch_runtime::execution::JobExecution;
use batch_runtime::{BatchRuntime, BatchStatus, JobExecutionId, JobOperator};

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = BatchRuntime::builder()
        .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/operator"))
        .repository("sqlite://operator.db")
        // `stop` waits for so long at most; the request stays in force when it is over.
        .stop_timeout(Duration::from_secs(60))
        .build()?;
    let operator = runtime.job_operator();
    // Called on the job's thread, when the end is in the repository.
    operator.register_job_end_callback(|ended: &JobExecution| {
        println!("{} ended {}", ended.name(), ended.status);
    })?;

    // `start` makes a new instance each time this program runs; `launch` would go on with the one of these parameters.
    let by_day = operator.start("statements", [("pause.ms", "20")])?;
    watch(&operator, by_day)?;
    let stopped = operator.stop(by_day)?;
    println!("stopped: {stopped}");

    // The parameters of the first execution hold, with what is said here.
    let by_night = operator.restart(by_day, [("pause.ms", "0")])?;
    let ended = operator.wait(by_night)?;
    for execution in [by_day, by_night] {
        for step in operator.step_executions(execution)? {
            println!("{execution}: {step}");
        }
    }
    match ended.status {
        BatchStatus::Completed => Ok(()),
        other => Err(format!("the statements are {other}: {}", ended.exit_message).into()),
    }
}

/// Returns when some statements are written. A program with a display would draw these numbers.
fn watch(operator: &JobOperator, execution: JobExecutionId) -> Result<(), Box<dyn Error>> {
    loop {
        // `None`: it does not run in this runtime, or not any more.
        let Some(progress) = operator.progress(execution) else {
            return Err("the job has ended already".into());
        };
        for step in progress.steps.iter().filter(|step| step.step == "write") {
            if step.counters.writes >= 20 {
                println!("watched until 20 statements were written");
                return Ok(());
            }
        }
        thread::sleep(Duration::from_millis(20));
    }
}
