//! A program that operates its jobs itself: it launches one, watches it, stops it, and restarts it with other parameters.
//!
//! ```text
//! cargo run --example operator
//! ```
//!
//! The job pauses after each statement, to spare the database. The program stops it after some statements and restarts it
//! without pauses; it resumes from its checkpoint.

mod statements;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::thread;
use std::time::Duration;

use batch_runtime::execution::JobExecution;
use batch_runtime::{BatchRuntime, BatchStatus, JobExecutionId, JobOperator, embed_jobs};

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = BatchRuntime::builder()
        .jobs(embed_jobs!("operator"))
        .repository("sqlite://operator.db")
        // `stop` waits at most this long; the request stays in force afterwards.
        .stop_timeout(Duration::from_secs(60))
        .build()?;
    let operator = runtime.job_operator();
    // Called on the job's thread, after the end is in the repository.
    operator.register_job_end_callback(|ended: &JobExecution| {
        println!("{} ended {}", ended.name(), ended.status);
    })?;

    // `start` creates a new instance at each run of this program; `launch` would resume the one of these parameters.
    let by_day = operator.start("statements", [("pause.ms", "20")])?;
    watch(&operator, by_day)?;
    let stopped = operator.stop(by_day)?;
    println!("stopped: {stopped}");

    // These parameters are added to the parameters of the first execution.
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

/// Returns when some statements are written. A program with a display would show these numbers.
fn watch(operator: &JobOperator, execution: JobExecutionId) -> Result<(), Box<dyn Error>> {
    loop {
        // `None`: it is not running in this runtime.
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
