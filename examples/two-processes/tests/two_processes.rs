//! Partitions in worker processes: collectors, stop, failure, death, fencing, restart.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use batch_runtime::execution::JobExecution;
use batch_runtime::{BatchRuntime, BatchStatus, JobExecutionId, JobOperator, JobParameters};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use two_processes::{PipeDispatcher, Workers, create_table};

struct Scene {
    folder: tempfile::TempDir,
    operator: JobOperator,
    workers: Workers,
    remarks: Arc<Mutex<Vec<String>>>,
}

impl Scene {
    fn new() -> Self {
        Self::made(true)
    }

    /// As with workers on another host: no lock shows whether a process is alive.
    fn on_two_hosts() -> Self {
        Self::made(false)
    }

    fn made(with_locks: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("batch.db").display().to_string();
        if !with_locks {
            // The locks would be in a directory of this name.
            std::fs::write(format!("{file}-owners"), "").unwrap();
        }
        create_table(&file).unwrap();
        let program = env!("CARGO_BIN_EXE_two-processes");
        let dispatcher = PipeDispatcher::new(program, &["worker", &file], 2);
        let (workers, remarks) = (dispatcher.workers(), dispatcher.remarks());
        let runtime = BatchRuntime::builder()
            .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/jobs"))
            .repository(format!("sqlite://{file}"))
            .lease_time(Duration::from_secs(2))
            .partition_dispatcher(dispatcher)
            .build()
            .unwrap();
        Self {
            folder,
            operator: runtime.job_operator(),
            workers,
            remarks,
        }
    }

    fn launch(&self, job: &str, parameters: &[(&str, &str)]) -> JobExecution {
        let execution = self
            .operator
            .launch(job, parameters.iter().copied().collect::<JobParameters>())
            .unwrap();
        self.operator.wait(execution).unwrap()
    }

    fn file(&self) -> String {
        self.folder.path().join("batch.db").display().to_string()
    }

    fn number(&self, query: &str) -> i64 {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = BigInt)]
            number: i64,
        }
        let mut connection = SqliteConnection::establish(&self.file()).unwrap();
        let rows: Vec<Row> = diesel::sql_query(format!("SELECT ({query}) AS number"))
            .load(&mut connection)
            .unwrap();
        rows[0].number
    }

    /// Each number from 0 to 199 was written once for each of these steps, and by no process but workers.
    fn check_rows(&self, steps: &[&str]) {
        for step in steps {
            let (count, distinct) = ("COUNT(*)", "COUNT(DISTINCT n)");
            for what in [count, distinct] {
                let query = format!("SELECT {what} FROM written WHERE step = '{step}'");
                assert_eq!(self.number(&query), 200, "{step} {what}");
            }
        }
        let own = format!("SELECT COUNT(*) FROM written WHERE pid = {}", std::process::id());
        assert_eq!(self.number(&own), 0, "written by the coordinator");
    }

    fn steps(&self, execution: JobExecutionId) -> Vec<String> {
        let steps = self.operator.step_executions(execution).unwrap();
        let shown = steps
            .iter()
            .map(|step| format!("{} {}", step.step_name, step.status));
        shown.collect()
    }

    fn trouble(&self) -> String {
        self.folder.path().join("trouble").display().to_string()
    }

    fn remarks(&self) -> Vec<String> {
        self.remarks.lock().unwrap().clone()
    }
}

/// A frozen worker would outlive a test that fails.
impl Drop for Scene {
    fn drop(&mut self) {
        for worker in self.workers.lock().unwrap().iter_mut() {
            let _ = worker.kill();
        }
    }
}

/// Spec: PART-06, PART-32, PART-33, PART-34, SUBJOB-02, SUBJOB-09, SUBJOB-11
#[test]
fn the_partitions_of_a_step_run_in_workers() {
    let scene = Scene::new();
    let ended = scene.launch("numbers", &[]);
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    // Each partition collects after each of its commits, and at its end.
    assert!(
        ended.exit_status.ends_with("of 2 processes, own: false"),
        "{}",
        ended.exit_status
    );
    scene.check_rows(&["load"]);
    assert_eq!(
        scene.number("SELECT COUNT(*) FROM BATCH_PARTITION_LEASE WHERE EXPIRES_AT <> -1"),
        0
    );
}

/// Spec: FPART-01, FPART-09, FPART-10, SUBJOB-23
#[test]
fn the_partitions_of_a_flow_run_in_workers() {
    let scene = Scene::new();
    let ended = scene.launch("flow", &[]);
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    assert!(
        ended.exit_status.ends_with("of 2 processes, own: false"),
        "{}",
        ended.exit_status
    );
    scene.check_rows(&["first", "second"]);
}

/// The failure of a partition stops its siblings and fails the job; a restart resumes each at its checkpoint.
///
/// Spec: PART-25, PART-26, PART-29
#[test]
fn a_failed_partition_is_restarted() {
    for (job, steps) in [("numbers", &["load"][..]), ("flow", &["first", "second"])] {
        let scene = Scene::new();
        let trouble = scene.trouble();
        let parameters = [("trouble.at", "137"), ("trouble.once", trouble.as_str())];
        let failed = scene.launch(job, &parameters);
        assert_eq!(failed.status, BatchStatus::Failed);
        assert!(
            failed.exit_message.contains("there is trouble at 137"),
            "{}",
            failed.exit_message
        );
        let ended = scene.launch(job, &parameters);
        assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
        scene.check_rows(steps);
    }
}

/// Spec: OP-13, PART-28
#[test]
fn a_stop_reaches_the_workers() {
    let scene = Scene::new();
    let execution = scene.operator.launch("patient", ()).unwrap();
    // Both partitions have been claimed.
    while scene.number("SELECT COUNT(*) FROM BATCH_PARTITION_LEASE WHERE EXPIRES_AT <> -1") < 2 {
        std::thread::yield_now();
    }
    scene.operator.stop(execution).unwrap();
    let ended = scene.operator.wait(execution).unwrap();
    assert_eq!(ended.status, BatchStatus::Stopped, "{}", ended.exit_message);
    let steps = scene.steps(execution);
    assert!(steps.iter().all(|step| step.ends_with("STOPPED")), "{steps:?}");
}

/// The partition of a worker that dies runs in another one, from its last checkpoint, within the same execution.
///
/// Spec: PART-32
#[test]
fn a_partition_of_a_dead_worker_runs_in_another_one() {
    let scene = Scene::new();
    let trouble = scene.trouble();
    let ended = scene.launch(
        "numbers",
        &[
            ("trouble", "die"),
            ("trouble.at", "137"),
            ("trouble.once", trouble.as_str()),
        ],
    );
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    assert!(Path::new(&trouble).exists());
    scene.check_rows(&["load"]);
    let claims = "SELECT MAX(CLAIMS) FROM BATCH_PARTITION_LEASE";
    assert_eq!(scene.number(claims), 2);
}

/// A partition of a flow whose worker dies is resumed by another one, within the same execution.
///
/// Spec: DISP-17, FPART-11
#[test]
fn a_flow_of_a_dead_worker_runs_in_another_one() {
    let scene = Scene::new();
    let trouble = scene.trouble();
    let parameters = [
        ("trouble", "die"),
        ("trouble.at", "137"),
        ("trouble.once", trouble.as_str()),
    ];
    let ended = scene.launch("flow", &parameters);
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    assert!(Path::new(&trouble).exists());
    assert_eq!(scene.number("SELECT COUNT(*) FROM BATCH_JOB_EXECUTION"), 1);
    scene.check_rows(&["first", "second"]);
}

/// A partition that kills every worker fails.
#[test]
fn a_partition_that_kills_its_workers_fails() {
    let scene = Scene::new();
    let ended = scene.launch("numbers", &[("trouble", "die"), ("trouble.at", "137")]);
    assert_eq!(ended.status, BatchStatus::Failed);
    let message = &ended.exit_message;
    assert!(message.contains("every worker is gone"), "{message}");
}

/// A worker that wakes up after its lease has expired writes nothing more.
///
/// Spec: REPO-15, OP-35
#[test]
fn a_worker_that_lost_its_lease_is_fenced() {
    let scene = Scene::on_two_hosts();
    let trouble = scene.trouble();
    // One partition for each worker: no other thread of the frozen process may hold the lock of SQLite.
    let ended = scene.launch(
        "numbers",
        &[
            ("partitions", "2"),
            ("size", "100"),
            ("trouble", "freeze"),
            ("trouble.at", "137"),
            ("trouble.once", trouble.as_str()),
        ],
    );
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    scene.check_rows(&["load"]);
    let before = scene.number("SELECT SUM(VERSION) FROM BATCH_STEP_EXECUTION");
    let mut workers = std::mem::take(&mut *scene.workers.lock().unwrap());
    for worker in &mut workers {
        let pid = worker.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-CONT", &pid])
                .status()
                .unwrap()
                .success()
        );
    }
    // Their input is closed, so they end when their partitions have.
    for worker in &mut workers {
        worker.wait().unwrap();
    }
    scene.check_rows(&["load"]);
    assert_eq!(
        scene.number("SELECT SUM(VERSION) FROM BATCH_STEP_EXECUTION"),
        before
    );
}

/// A worker with another version of the job does not run it.
#[test]
fn a_worker_with_another_job_refuses_the_ticket() {
    let scene = Scene::new();
    let ended = scene.launch("numbers", &[]);
    // A ticket of an execution that has ended is dropped, whatever its fingerprint.
    let mut connection = scene.operator.connect().unwrap();
    let runs = "UPDATE BATCH_JOB_EXECUTION SET STATUS = 'STARTED'";
    connection.sqlite().unwrap().batch_execute(runs).unwrap();
    let ticket = format!(
        r#"{{"job_execution":{},"step_execution":{},"attempt":1,"fingerprint":"another"}}"#,
        ended.id,
        scene.operator.step_executions(ended.id).unwrap()[1].id
    );
    let ticket = serde_json::from_str(&ticket).unwrap();
    let worker = BatchRuntime::builder()
        .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/jobs"))
        .repository(format!("sqlite://{}", scene.file()))
        .build()
        .unwrap();
    let error = worker.claim_partition(&ticket).unwrap_err().to_string();
    assert!(error.contains("the coordinator's has another"), "{error}");
    assert!(scene.remarks().is_empty());
}
