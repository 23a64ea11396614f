//! The effect of a long history: the start and end of a small job in an empty repository, and in one with 100,000
//! instances.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::path::Path;
use std::time::{Duration, Instant};

use batch_bench::{head, report};
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus, JobOperator, JobParameters};

const HISTORY: u32 = 100_000;
const LAUNCHES: usize = 500;

#[derive(BatchArtifact)]
struct Tiny;

#[batchlet]
impl Tiny {
    #[process]
    fn process(&self) -> String {
        String::from("DONE")
    }
    #[cancel]
    fn cancel(&self) {}
}

fn operator(database: &Path) -> JobOperator {
    let runtime = BatchRuntime::builder()
        .repository(format!("sqlite://{}?synchronous=normal", database.display()))
        .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/jobs"))
        .build()
        .unwrap();
    runtime.job_operator()
}

/// The rows of 100,000 runs of the job, each with a step, a parameter and the contexts.
fn fill(database: &Path) {
    let all = format!(
        "BEGIN;
         CREATE TEMP TABLE n AS WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {HISTORY}) SELECT n FROM n;
         INSERT INTO BATCH_JOB_INSTANCE SELECT n, 0, 'single', printf('%032d', n) FROM n;
         INSERT INTO BATCH_JOB_EXECUTION
             SELECT n, 2, n, n, n, n, 'COMPLETED', 'COMPLETED', '', n, 'single.xml' FROM n;
         INSERT INTO BATCH_JOB_EXECUTION_PARAMS SELECT n, 'STRING', 'day', n, 0, 0, 0.0, 'Y' FROM n;
         INSERT INTO BATCH_JOB_EXECUTION_CONTEXT SELECT n, '{{}}', NULL FROM n;
         INSERT INTO BATCH_STEP_EXECUTION
             SELECT n, 2, 'step', n, n, n, 'COMPLETED', 0, 0, 0, 0, 0, 0, 0, 0, 'DONE', '', n FROM n;
         INSERT INTO BATCH_STEP_EXECUTION_CONTEXT SELECT n, '{{}}', NULL FROM n;
         INSERT INTO BATCH_JOB_INSTANCE_LEASE SELECT n, n, '', 1, 0, 0, 0 FROM n;
         INSERT INTO BATCH_JOB_SEQ VALUES ({HISTORY});
         INSERT INTO BATCH_JOB_EXECUTION_SEQ VALUES ({HISTORY});
         INSERT INTO BATCH_STEP_EXECUTION_SEQ VALUES ({HISTORY});
         COMMIT"
    );
    rusqlite::Connection::open(database)
        .unwrap()
        .execute_batch(&all)
        .unwrap();
}

fn launch(operator: &JobOperator, number: usize) -> Duration {
    let parameters = JobParameters::from([("launch", number.to_string())]);
    let begin = Instant::now();
    let execution = operator.launch("single", parameters).unwrap();
    let ended = operator.wait(execution).unwrap();
    let time = begin.elapsed();
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    time
}

/// Returns the 99th percentile, in milliseconds.
fn p99(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() * 99 / 100].as_secs_f64() * 1_000.0
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let (empty, full) = (folder.path().join("empty.db"), folder.path().join("full.db"));
    let (without, with) = (operator(&empty), operator(&full));
    fill(&full);
    let (mut times_without, mut times_with) = (Vec::new(), Vec::new());
    for number in 0..LAUNCHES {
        times_without.push(launch(&without, number));
        times_with.push(launch(&with, number));
    }
    let (without, with) = (p99(&mut times_without), p99(&mut times_with));
    head("A launch to its end beside a history of 100,000 instances, p99");
    report("empty repository", without, "ms", None);
    report("with the history", with, "ms", None);
    report("with / without", with / without, "x", Some(2.0));
}
