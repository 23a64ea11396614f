//! Runs a job whose partitions run in worker processes, or, as `two-processes worker`, one of those.
//!
//! ```text
//! cargo run -p two-processes -- launch numbers.db
//! ```

use std::process::ExitCode;

use batch_runtime::{BatchRuntime, JobParameters, embed_jobs};
use two_processes::{PipeDispatcher, create_table, serve};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let builder = |file: &str| {
        BatchRuntime::builder()
            .jobs(embed_jobs!("jobs"))
            .lease_time(std::time::Duration::from_secs(2))
            .repository(format!("sqlite://{file}"))
    };
    match arguments.as_slice() {
        ["worker", file] => {
            serve(&builder(file).build()?)?;
            Ok(ExitCode::SUCCESS)
        }
        ["launch", file, rest @ ..] => {
            create_table(file)?;
            let dispatcher = PipeDispatcher::new(std::env::current_exe()?, &["worker", file], 2);
            let runtime = builder(file).partition_dispatcher(dispatcher).build()?;
            let parameters: JobParameters = rest.iter().filter_map(|rest| rest.split_once('=')).collect();
            let operator = runtime.job_operator();
            let execution = operator.launch("numbers", parameters)?;
            let ended = operator.wait(execution)?;
            println!("{} {}", ended.status, ended.exit_status);
            for step in operator.step_executions(execution)? {
                println!(
                    "  {:<12} {:<10} {} written",
                    step.step_name, step.status, step.counters.writes
                );
            }
            if !ended.exit_message.is_empty() {
                eprintln!("{}", ended.exit_message);
            }
            Ok(ExitCode::from(ended.status.exit_code()))
        }
        _ => Err("usage: two-processes launch FILE [name=value ...], or two-processes worker FILE".into()),
    }
}
