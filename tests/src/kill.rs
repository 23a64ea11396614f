//! The example `flights`, launched and killed again and again.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use diesel::prelude::*;
use diesel::sql_types::BigInt;

use crate::random::Random;
use crate::{process, watch};

/// Few items per commit, so that a kill finds many places to strike at.
pub const INTERVAL: &str = "commit.interval=50";

/// A folder of the example `flights`, with its repository.
pub struct Folder {
    folder: tempfile::TempDir,
}

#[expect(clippy::new_without_default, reason = "it makes files")]
impl Folder {
    /// A folder with a new repository that refuses wrong rows.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("batch.db").display());
        batch_runtime::BatchRuntime::builder()
            .repository(url)
            .build()
            .unwrap();
        let this = Self { folder };
        watch::install(&this.database());
        this
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The repository's file.
    pub fn database(&self) -> PathBuf {
        self.path().join("batch.db")
    }

    /// The one number `n` that a query gives.
    pub fn count(&self, query: &str) -> i64 {
        #[derive(QueryableByName)]
        struct Count {
            #[diesel(sql_type = BigInt)]
            n: i64,
        }
        let row: Count = diesel::sql_query(query)
            .get_result(&mut watch::open(&self.database()))
            .unwrap();
        row.n
    }

    /// Number of job instances.
    pub fn instances(&self) -> i64 {
        self.count("SELECT COUNT(*) AS n FROM BATCH_JOB_INSTANCE")
    }
}

/// Launches the same instance again and again, and kills it at random moments, until it is COMPLETED or the kills are
/// used up. Returns how many kills it took.
pub fn kill_until_completed(
    folder: &Folder,
    random: &mut Random,
    run: i64,
    kills: u32,
    whole: Duration,
    fault: &str,
) -> u32 {
    let (run, mut killed) = (format!("run={run}"), 0);
    loop {
        let mut command = process::command("flights", folder.path(), &["launch", "flights", INTERVAL, &run]);
        command
            .env("BATCH_SABOTAGE", fault)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        if killed < kills {
            // Part of the time that the whole job takes, so that it takes several launches.
            let moment =
                Duration::from_micros(random.below(u64::try_from(whole.as_micros()).unwrap() * 6 / 10));
            let begin = Instant::now();
            while begin.elapsed() < moment && child.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            child.kill().unwrap();
        }
        let output = child.wait_with_output().unwrap();
        match output.status.code() {
            Some(0) => return killed,
            // The kill came after the last commit and before the end of the process.
            Some(2) if process::text(&output.stderr).contains("ended COMPLETED") => return killed,
            None => killed += 1,
            Some(code) => panic!("exit code {code}: {}", process::text(&output.stderr)),
        }
    }
}

/// Runs the whole job once, and says how long it takes.
pub fn undisturbed(folder: &Folder) -> Duration {
    let begin = Instant::now();
    process::run_expecting(
        0,
        "flights",
        folder.path(),
        &["launch", "flights", INTERVAL, "run=0"],
    );
    begin.elapsed()
}
