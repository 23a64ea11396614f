//! The shared code of the benchmarks: programs run in turn, medians, a table of ratios and gates.
#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

mod commits;
pub mod person;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use batch_runtime::observer::JobObserver;
use batch_runtime::{BatchRuntime, BatchRuntimeBuilder, BatchStatus};

/// A program that does its work once and returns the time it took.
pub type Program<'a> = (&'static str, Box<dyn FnMut() -> Duration + 'a>);

/// Runs the programs in turn (A B C, A B C ...), `rounds` times after one warm-up, and returns the median of each.
pub fn in_turn(rounds: usize, programs: &mut [Program<'_>]) -> Vec<Duration> {
    let mut times = vec![Vec::new(); programs.len()];
    for round in 0..=rounds {
        for ((name, program), times) in programs.iter_mut().zip(&mut times) {
            let time = program();
            if round > 0 {
                eprintln!("  round {round} {name}: {time:.2?}");
                times.push(time);
            }
        }
    }
    times.into_iter().map(median).collect()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// A line of the result: a figure, and the gate, its maximum.
pub fn report(what: &str, figure: f64, unit: &str, gate: Option<f64>) {
    let (gate, verdict) = match gate {
        Some(gate) if figure <= gate => (format!("<= {gate} {unit}"), "holds"),
        Some(gate) => (format!("<= {gate} {unit}"), "BROKEN"),
        None => (String::new(), ""),
    };
    println!("| {what} | {figure:.2} {unit} | {gate} | {verdict} |");
}

/// Prints the head of the table.
pub fn head(title: &str) {
    println!("\n{title}\n\n| what | measured | gate | |\n|---|---|---|---|");
}

/// Returns `a` per `b`.
pub fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

/// The time when the reader of the running job was opened.
static OPENED: Mutex<Option<Instant>> = Mutex::new(None);
static WORKED: Mutex<Option<Duration>> = Mutex::new(None);

/// Called by the reader's `#[open]`.
pub fn opened() {
    *OPENED.lock().unwrap() = Some(Instant::now());
}

/// Called by the reader's `#[close]`: all items are written and committed.
pub fn closed() {
    *WORKED.lock().unwrap() = OPENED.lock().unwrap().map(|opened| opened.elapsed());
}

/// Runs the job `bench`.
pub fn run(repository: &str, parameters: &[(&str, &str)]) -> Duration {
    run_job("bench", repository, parameters)
}

/// Runs a job and returns the time from the reader's opening to its closing: the whole chunk step, without the
/// start of the job.
pub fn run_job(job: &str, repository: &str, parameters: &[(&str, &str)]) -> Duration {
    run_whole_job(job, repository, parameters);
    WORKED.lock().unwrap().take().unwrap()
}

/// As `run_job`, with an observer.
pub fn run_observed_job(
    job: &str,
    repository: &str,
    parameters: &[(&str, &str)],
    observer: impl JobObserver + 'static,
) -> Duration {
    run_by(
        BatchRuntime::builder().observer(observer),
        job,
        repository,
        parameters,
    );
    WORKED.lock().unwrap().take().unwrap()
}

/// Runs a job and returns the time from its start to its end.
pub fn run_whole_job(job: &str, repository: &str, parameters: &[(&str, &str)]) -> Duration {
    run_by(BatchRuntime::builder(), job, repository, parameters)
}

fn run_by(
    builder: BatchRuntimeBuilder,
    job: &str,
    repository: &str,
    parameters: &[(&str, &str)],
) -> Duration {
    let jobs = concat!(env!("CARGO_MANIFEST_DIR"), "/jobs");
    let runtime = builder.repository(repository).job_path(jobs).build().unwrap();
    let operator = runtime.job_operator();
    let begin = Instant::now();
    let execution = operator.start(
        job,
        parameters
            .iter()
            .copied()
            .collect::<batch_runtime::JobParameters>(),
    );
    let ended = operator
        .wait(execution.unwrap_or_else(|error| panic!("{error}")))
        .unwrap();
    let time = begin.elapsed();
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    time
}
