//! The world of one case: a folder, a repository, and processes that launch its job.

use std::cell::RefCell;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use batch_runtime::BatchRuntime;
use batch_test_servers::{Kind, Server};
use batch_tests::database::{Database, Outside, Place};

use crate::artifacts::{CALLS, GO, HELD, HOLD};
use crate::case::Case;
use crate::job_xml;
use crate::plant::{PLANT, Plant};
use crate::violation::{Checked, Invariant, Violation};

/// The environment variable of a process that runs a command of the operator.
pub(crate) const CHILD: &str = "TORTURE_CHILD";
/// The time until a dead owner on another host is noticed.
pub(crate) const LEASE: Duration = Duration::from_secs(1);
/// A process that runs longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// A process that takes longer beside one that waits for its fault waits for the database file.
const LOCKED: Duration = Duration::from_secs(2);

/// The database of a run, for all its cases.
pub(crate) struct Databases {
    pub(crate) kind: Database,
    pub(crate) server: Option<RefCell<Server>>,
}

impl Databases {
    pub(crate) fn start(kind: Database) -> Self {
        let server = match kind {
            Database::Sqlite => None,
            Database::Postgres => Some(Kind::Postgres),
            Database::Mariadb => Some(Kind::Mariadb),
        };
        Self {
            kind,
            server: server.map(|kind| RefCell::new(Server::start(kind))),
        }
    }

    fn place(&self, folder: &Path) -> Place {
        match &self.server {
            Some(server) => Place::existing(self.kind, server.borrow().new_database()),
            None => Place::new(self.kind, folder),
        }
    }
}

pub(crate) struct World<'d> {
    pub(crate) databases: &'d Databases,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) place: Place,
    pub(crate) plant: Option<Plant>,
    pub(crate) patience: Duration,
}

/// A process of the suite's program.
pub(crate) struct Process {
    pub(crate) child: Child,
    output: Vec<JoinHandle<String>>,
    patience: Duration,
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) calls: Vec<String>,
}

impl Ended {
    /// Returns whether the exit code is one that a command without a signal has.
    pub(crate) fn has_documented_code(&self) -> bool {
        matches!(self.code, Some(0..=3 | 10 | 11 | 75))
    }

    /// Returns whether the command was rejected because the job is running. `abandon` reports that as a mistake.
    pub(crate) fn is_rejected_as_running(&self) -> bool {
        matches!(self.code, Some(2 | 11)) && self.output.contains("is running")
    }
}

/// What a process gets beside its command.
#[derive(Default)]
pub(crate) struct Extras {
    /// The call of an artifact that waits.
    pub(crate) hold: Option<u32>,
    pub(crate) variables: Vec<(&'static str, String)>,
    /// A command that runs the program.
    pub(crate) wrapper: Vec<&'static str>,
}

impl<'d> World<'d> {
    pub(crate) fn new(databases: &'d Databases, case: &Case, plant: Option<Plant>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("job.xml"), job_xml::of(case)).unwrap();
        let place = databases.place(folder.path());
        let place = place.with_option("layout", &case.layout.to_string());
        BatchRuntime::builder()
            .repository(place.url())
            .build()
            .unwrap_or_else(|error| panic!("{error}"));
        let mut outside = place.connect();
        for table in [
            "CREATE TABLE written (step VARCHAR(40), n BIGINT, execution BIGINT, undone INT)",
            "CREATE TABLE ran (step VARCHAR(40), part BIGINT, execution BIGINT)",
        ] {
            outside.execute(table).unwrap();
        }
        outside.reject_wrong_rows();
        outside.reject_regressions();
        outside.reject_second_live_execution();
        Self {
            databases,
            folder,
            place,
            plant,
            patience: match plant {
                Some(Plant::Hang) => Duration::from_secs(3),
                _ => PATIENCE,
            },
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn outside(&self) -> Outside {
        self.place.connect()
    }

    /// Starts a process with a command of the operator.
    pub(crate) fn start(&self, arguments: &[&str], extras: &Extras) -> Process {
        for file in [HELD, GO] {
            let _ = fs::remove_file(self.path().join(file));
        }
        self.start_beside(arguments, extras)
    }

    /// Starts a process beside one that waits for a fault.
    pub(crate) fn start_beside(&self, arguments: &[&str], extras: &Extras) -> Process {
        let program = std::env::current_exe().unwrap();
        let mut words: Vec<PathBuf> = extras.wrapper.iter().map(PathBuf::from).collect();
        if let Some(Plant::Script(script)) = self.plant {
            words.extend(["sh", "-c", script].map(PathBuf::from));
        }
        words.push(program);
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .args(["--repository", self.place.url(), "--job-path", "."])
            .args(arguments)
            .current_dir(self.path())
            .env(CHILD, "1")
            .env("BATCH_LEASE_TIME", LEASE.as_secs().to_string())
            .env("BATCH_CRASH_LIMIT", "0")
            .env("RUST_BACKTRACE", "0")
            .env_remove("BATCH_FAILPOINTS")
            .envs(extras.variables.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(hold) = extras.hold {
            command.env(HOLD, hold.to_string());
        }
        if let Some(name) = self.plant.and_then(Plant::name) {
            command.env(PLANT, name);
        }
        let mut child = command.spawn().unwrap();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Process {
            output: vec![read(out), read(err)],
            child,
            patience: self.patience,
        }
    }

    /// Launches the job, undisturbed, and waits for the end.
    pub(crate) fn launch(&self) -> Checked<Ended> {
        self.operate(&["launch", "job"])
    }

    /// Runs a command of the operator, undisturbed, and waits for its end.
    pub(crate) fn operate(&self, arguments: &[&str]) -> Checked<Ended> {
        self.start(arguments, &Extras::default()).ends(self)
    }

    /// Removes the database, if it is one of a server.
    pub(crate) fn drop_database(&self) {
        let url = self.place.url();
        let name = url
            .rsplit('/')
            .find_map(|part| part.split('?').next().filter(|name| name.starts_with("test_")));
        if let (Some(server), Some(name)) = (&self.databases.server, name) {
            let force = if self.databases.kind == Database::Postgres {
                " WITH (FORCE)"
            } else {
                ""
            };
            server
                .borrow()
                .execute("", &format!("DROP DATABASE {name}{force}"));
        }
    }

    /// Returns the newest job execution.
    pub(crate) fn newest(&self) -> Option<String> {
        let query = "SELECT CAST(JOB_EXECUTION_ID AS CHAR(20)) AS text FROM BATCH_JOB_EXECUTION
            ORDER BY JOB_EXECUTION_ID DESC LIMIT 1";
        self.outside().rows(query).pop().map(|id| id.trim().to_owned())
    }

    pub(crate) fn is_complete(&self) -> bool {
        let query = "SELECT 'yes' AS text FROM BATCH_JOB_EXECUTION WHERE STATUS = 'COMPLETED'";
        !self.outside().rows(query).is_empty()
    }

    /// Removes and returns the calls of a process.
    fn calls_of(&self, process: u32) -> Vec<String> {
        let file = self.path().join(format!("{CALLS}{process}"));
        let calls = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(file);
        calls.lines().map(str::to_owned).collect()
    }
}

fn read(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Process {
    /// Returns whether it still runs.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until an artifact waits for the fault. Returns `false` if the process has ended before.
    pub(crate) fn is_held(&mut self, world: &World<'_>) -> bool {
        let begin = Instant::now();
        while self.runs() && begin.elapsed() < self.patience {
            if world.path().join(HELD).exists() {
                return true;
            }
            thread::sleep(Duration::from_millis(1));
        }
        false
    }

    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let _ = Command::new("sh")
            .args(["-c", &kill])
            .stderr(Stdio::null())
            .status();
    }

    /// Waits for its end beside a process that may hold the lock of the database file; `None` if it waits for that lock.
    pub(crate) fn ends_beside(mut self, world: &World<'_>) -> Checked<Option<Ended>> {
        let begin = Instant::now();
        while self.runs() && begin.elapsed() < LOCKED {
            thread::sleep(Duration::from_millis(2));
        }
        let waits = world.databases.kind == Database::Sqlite && self.runs();
        if waits {
            self.signal("KILL");
        }
        let ended = self.ends(world)?;
        Ok((!waits).then_some(ended))
    }

    /// Waits for its end.
    pub(crate) fn ends(mut self, world: &World<'_>) -> Checked<Ended> {
        let begin = Instant::now();
        let mut hangs = false;
        while self.runs() {
            if begin.elapsed() > self.patience && !hangs {
                hangs = true;
                self.signal("KILL");
            }
            thread::sleep(Duration::from_millis(2));
        }
        let code = self.child.wait().unwrap().code();
        let output: String = self
            .output
            .drain(..)
            .map(|output| output.join().unwrap())
            .collect();
        match hangs {
            true => Err(Violation::new(
                Invariant::I14,
                format!("a process hangs: {output}"),
            )),
            false => Ok(Ended {
                code,
                output,
                calls: world.calls_of(self.child.id()),
            }),
        }
    }
}
