//! The pages of the operations console beside a short history, and beside one of 100,000 executions.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::path::Path;
use std::time::{Duration, Instant};

use batch_bench::{head, report};
use batch_runtime::BatchRuntime;

const SHORT: u32 = 100;
const LONG: u32 = 100_000;
const REQUESTS: usize = 101;
/// What the page of a person on call may take.
const LIMIT: f64 = 50.0;

const PAGES: [&str; 8] = [
    "/",
    "/jobs",
    "/jobs/single",
    "/executions",
    "/executions?before=60",
    "/executions?job=single&status=FAILED",
    "/executions/50",
    "/repository",
];

/// Serves the console of a repository with a history, until the process ends.
fn serve(folder: &Path, executions: u32) -> String {
    let database = folder.join(format!("{executions}.db"));
    let runtime = BatchRuntime::builder()
        .repository(format!("sqlite://{}", database.display()))
        .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/jobs"))
        .build()
        .unwrap();
    // Opening it creates the tables.
    runtime.job_operator().job_names().unwrap();
    fill(&database, executions);
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        tokio.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(listener.local_addr().unwrap()).unwrap();
            let router = batch_console::router(&runtime);
            axum::serve(
                listener,
                router.into_make_service_with_connect_info::<std::net::SocketAddr>(),
            )
            .await
            .unwrap();
        });
    });
    format!("http://{}", receiver.recv().unwrap())
}

/// One run each minute until now, of twenty jobs; one in a hundred has failed. Each has a step and a parameter.
fn fill(database: &Path, executions: u32) {
    let minutes = "(strftime('%s', 'now') - (last - n) * 60) * 1000";
    let job = "CASE n % 20 WHEN 0 THEN 'single' ELSE 'job-' || n % 20 END";
    let status = "CASE n % 100 WHEN 40 THEN 'FAILED' ELSE 'COMPLETED' END";
    let all = format!(
        "BEGIN;
         CREATE TEMP TABLE n AS WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {executions})
             SELECT n, {executions} AS last FROM n;
         INSERT INTO BATCH_JOB_INSTANCE SELECT n, 0, {job}, printf('%032d', n) FROM n;
         INSERT INTO BATCH_JOB_EXECUTION
             SELECT n, 2, n, {minutes}, {minutes}, {minutes} + 9000, {status}, {status}, '', {minutes} + 9000, NULL FROM n;
         INSERT INTO BATCH_JOB_EXECUTION_PARAMS SELECT n, 'STRING', 'day', n, 0, 0, 0.0, 'Y' FROM n;
         INSERT INTO BATCH_JOB_EXECUTION_CONTEXT SELECT n, '{{}}', NULL FROM n;
         INSERT INTO BATCH_STEP_EXECUTION
             SELECT n, 2, 'step', n, {minutes}, {minutes} + 9000, {status}, 1, 1000, 0, 1000, 0, 0, 0, 0, 'DONE', '', {minutes} + 9000
             FROM n;
         INSERT INTO BATCH_STEP_EXECUTION_CONTEXT SELECT n, '{{}}', NULL FROM n;
         INSERT INTO BATCH_JOB_SEQ VALUES ({executions});
         INSERT INTO BATCH_JOB_EXECUTION_SEQ VALUES ({executions});
         INSERT INTO BATCH_STEP_EXECUTION_SEQ VALUES ({executions});
         COMMIT"
    );
    rusqlite::Connection::open(database)
        .unwrap()
        .execute_batch(&all)
        .unwrap();
}

/// Returns the time until the whole page has been received.
fn get(url: &str) -> Duration {
    let begin = Instant::now();
    let page = ureq::get(url)
        .call()
        .unwrap()
        .body_mut()
        .read_to_string()
        .unwrap();
    let time = begin.elapsed();
    assert!(page.contains("</html>"), "{page}");
    time
}

/// Returns the median, in milliseconds.
fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1_000.0
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let (short, long) = (serve(folder.path(), SHORT), serve(folder.path(), LONG));
    head("A page of the console beside 100,000 executions, median; and against 100 executions");
    for page in PAGES {
        let (mut times_short, mut times_long) = (Vec::new(), Vec::new());
        // The first opens the connection and prepares the statements.
        for _ in 0..=REQUESTS {
            times_short.push(get(&format!("{short}{page}")));
            times_long.push(get(&format!("{long}{page}")));
        }
        let (short, long) = (median(&mut times_short[1..]), median(&mut times_long[1..]));
        report(page, long, "ms", Some(LIMIT));
        report("  against 100", long / short, "x", None);
    }
}
