//! Example programs, launched and killed again and again.

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

/// What is killed.
pub struct Target<'a> {
    /// The example program.
    pub program: &'a str,
    /// The launch, to which the number of the run is added.
    pub launch: &'a [&'a str],
    /// A kill comes before this part of the time that a whole run takes, in percent.
    pub percent: u64,
}

/// The example `flights`: few items per commit, so that a kill finds many places to strike at; and so early that it takes
/// several launches to the end.
pub const FLIGHTS: Target<'_> = Target {
    program: "flights",
    launch: &["launch", "flights", "commit.interval=50"],
    percent: 60,
};

/// The example `partitions` on the files of its folder. It starts from the beginning after each kill, so some come late enough for it to
/// have ended.
pub const PARTITIONS: Target<'_> = Target {
    program: "partitions",
    launch: &LAUNCH_PARTITIONS,
    percent: 80,
};

/// The same with a job that is in its folder.
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

/// A folder in which an example runs, with its repository.
pub struct Folder {
    folder: tempfile::TempDir,
}

#[expect(clippy::new_without_default, reason = "it makes files")]
impl Folder {
    /// A folder with a new repository that refuses wrong rows.
    pub fn new() -> Self {
        // On the disk of the build, wherever temporary files are: most kills are to strike while something is written, which
        // in memory takes no time.
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
            .get_result(&mut sqlite::open(&self.database()))
            .unwrap();
        row.n
    }

    /// Number of job instances.
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
    /// How long a run takes that is not disturbed.
    whole: Duration,
}

impl<'a> Killer<'a> {
    /// After a first run, which is not disturbed.
    pub fn new(folder: &'a Folder, target: Target<'a>, random: Random) -> Self {
        // Builds the program, which is not part of the time that a run takes.
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

    /// Switches a seeded fault on.
    #[must_use]
    pub fn with_fault(mut self, fault: &'a str) -> Self {
        self.fault = fault;
        self
    }

    /// Runs instances until it has killed so often. Returns how many they are, the first one included.
    pub fn kill(&mut self, kills: u32) -> i64 {
        let (mut killed, mut run) = (0, 0);
        while killed < kills {
            run += 1;
            killed += self.until_completed(run, kills - killed);
        }
        run + 1
    }

    /// Launches the same instance again and again, and kills it at random moments, until it is COMPLETED or the kills are
    /// used up. Returns how many kills it took.
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
            // Its standard error is closed when it ends.
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
                Some(2) if errors.contains("ended COMPLETED") => return killed,
                None => killed += 1,
                Some(code) => panic!("exit code {code}: {errors}"),
            }
        }
    }
}
