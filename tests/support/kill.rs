//! Example programs, launched and killed repeatedly.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use diesel::prelude::*;
use diesel::sql_types::BigInt;

use crate::random::Random;
use crate::{process, sqlite};

/// The program to kill.
pub struct Target<'a> {
    /// The example program.
    pub program: &'a str,
    /// The launch, without the number of the run, which is appended.
    pub launch: &'a [&'a str],
    /// The latest time of a kill, as a percentage of a whole run.
    pub percent: u64,
}

/// The example `flights`: few items per commit, so that a kill has many places to strike; and early kills, so that it
/// takes several launches to the end.
pub const FLIGHTS: Target<'_> = Target {
    program: "flights",
    launch: &["launch", "flights", "commit.interval=50"],
    percent: 60,
};

/// The example `partitions` on the files of its folder. It starts from the beginning after each kill, so some kills
/// come late enough for it to end.
pub const PARTITIONS: Target<'_> = Target {
    program: "partitions",
    launch: &LAUNCH_PARTITIONS,
    percent: 80,
};

/// The same with the job in its folder.
pub const PARTITIONS_WITHOUT_TRANSACTION: Target<'_> = Target {
    program: "partitions",
    launch: &{
        let [launch, job, flights, airports, interval] = LAUNCH_PARTITIONS;
        ["--job-path", ".", launch, job, flights, airports, interval]
    },
    percent: 60,
};

const LAUNCH_PARTITIONS: [&str; 5] = [
    "launch",
    "partitions",
    "flights.file=flights.csv",
    "airports.file=airports.csv",
    "commit.interval=10",
];

/// The folder of an example's run, with its repository.
pub struct Folder {
    folder: tempfile::TempDir,
}

#[expect(clippy::new_without_default, reason = "it makes files")]
impl Folder {
    /// Creates a folder with a new repository that rejects wrong rows.
    pub fn new() -> Self {
        // On the build's disk, wherever temporary files are: most kills should strike during a write, which in memory
        // takes no time.
        let folder = tempfile::tempdir_in(process::build_folder()).unwrap();
        let url = format!("sqlite://{}", folder.path().join("batch.db").display());
        batch_runtime::BatchRuntime::builder()
            .repository(url)
            .build()
            .unwrap();
        let this = Self { folder };
        sqlite::reject_wrong_rows(&this.database());
        this
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the repository's file.
    pub fn database(&self) -> PathBuf {
        self.path().join("batch.db")
    }

    /// Returns the one number `n` of a query.
    pub fn count(&self, query: &str) -> i64 {
        #[derive(QueryableByName)]
        struct Count {
            #[diesel(sql_type = BigInt)]
            n: i64,
        }
        let row: Count = diesel::sql_query(query)
            .get_result(&mut sqlite::open(&self.database()))
            .unwrap();
        row.n
    }

    /// Returns the number of job instances.
    pub fn instances(&self) -> i64 {
        self.count("SELECT COUNT(*) AS n FROM BATCH_JOB_INSTANCE")
    }
}

/// Launches and kills.
pub struct Killer<'a> {
    folder: &'a Folder,
    target: Target<'a>,
    random: Random,
    fault: &'a str,
    /// The duration of an undisturbed run.
    whole: Duration,
}

impl<'a> Killer<'a> {
    /// Starts with an undisturbed run.
    pub fn new(folder: &'a Folder, target: Target<'a>, random: Random) -> Self {
        // Builds the program first, so that a run's duration does not include the build.
        process::example(target.program);
        let begin = Instant::now();
        let arguments = [target.launch, &["run=0"]].concat();
        process::run_expecting(0, target.program, folder.path(), &arguments);
        Self {
            folder,
            target,
            random,
            fault: "",
            whole: begin.elapsed(),
        }
    }

    /// Enables a planted fault.
    #[must_use]
    pub fn with_fault(mut self, fault: &'a str) -> Self {
        self.fault = fault;
        self
    }

    /// Runs instances until this number of kills. Returns the number of instances, the first one included.
    pub fn kill(&mut self, kills: u32) -> i64 {
        let (mut killed, mut run) = (0, 0);
        while killed < kills {
            run += 1;
            killed += self.until_completed(run, kills - killed);
        }
        run + 1
    }

    /// Launches the same instance repeatedly, and kills it at random moments, until it is COMPLETED or the kills are
    /// used up. Returns the number of kills.
    pub fn until_completed(&mut self, run: i64, kills: u32) -> u32 {
        let (run, mut killed) = (format!("run={run}"), 0);
        loop {
            let arguments = [self.target.launch, &[&run]].concat();
            let mut command = process::command(self.target.program, self.folder.path(), &arguments);
            command
                .env("BATCH_FAILPOINTS", self.fault)
                .stdout(Stdio::null())
                .stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut errors = child.stderr.take().unwrap();
            let (send, ended) = mpsc::channel();
            // Its standard error closes when it ends.
            let errors = thread::spawn(move || {
                let mut text = Vec::new();
                errors.read_to_end(&mut text).unwrap();
                let _ = send.send(());
                process::text(&text)
            });
            if killed < kills {
                let latest = u64::try_from(self.whole.as_micros()).unwrap() * self.target.percent / 100;
                let _ = ended.recv_timeout(Duration::from_micros(self.random.below(latest)));
                child.kill().unwrap();
            }
            let (status, errors) = (child.wait().unwrap(), errors.join().unwrap());
            match status.code() {
                Some(0) => return killed,
                // The kill came after the last commit and before the end of the process.
                Some(10) if errors.contains("ended COMPLETED") => return killed,
                None => killed += 1,
                Some(code) => panic!("exit code {code}: {errors}"),
            }
        }
    }
}
