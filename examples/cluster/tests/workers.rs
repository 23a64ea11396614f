//! The example with real workers, one of which is killed.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![cfg(unix)]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use diesel::prelude::*;
use diesel::sql_types::BigInt;

struct Worker(Child);

impl Worker {
    fn start(folder: &Path) -> Self {
        let log = folder.join(format!("worker-{}.log", fs::read_dir(folder).unwrap().count()));
        let child = command(folder, &["worker", "--slots", "2"])
            .stdout(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        wait_for("the worker", || {
            fs::read_to_string(&log).unwrap().contains("waiting")
        });
        Self(child)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cluster"));
    command
        .args(arguments)
        .env("BATCH_LEASE_TIME", "2")
        .current_dir(folder)
        .stdin(Stdio::null());
    command
}

fn wait_for(what: &str, mut happened: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !happened() {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "has not happened: {what}"
        );
        thread::sleep(Duration::from_millis(5));
    }
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

/// Returns the number of rows; an error before the table exists, or while it is locked.
fn rows(database: &Path) -> Result<i64, Box<dyn std::error::Error>> {
    let mut connection = SqliteConnection::establish(&database.display().to_string())?;
    let query = diesel::sql_query("SELECT COUNT(*) AS n FROM interest");
    Ok(query.get_result::<Count>(&mut connection)?.n)
}

/// Spec: DISP-01, DISP-02
#[test]
fn each_account_has_its_interest_once_although_a_worker_dies() {
    let folder = tempfile::tempdir().unwrap();
    assert!(
        command(folder.path(), &["db", "migrate"])
            .status()
            .unwrap()
            .success()
    );
    let doomed = Worker::start(folder.path());
    let arguments = [
        "launch",
        "interest",
        "accounts=3000",
        "commit.interval=10",
        "-pace=1",
    ];
    let mut launch = command(folder.path(), &arguments).spawn().unwrap();
    let rows = || rows(&folder.path().join("batch.db")).unwrap_or(0);
    wait_for("the first interest", || rows() > 100);
    drop(doomed);
    let _second = Worker::start(folder.path());
    assert!(launch.wait().unwrap().success());
    assert_eq!(rows(), 3_000);
}
