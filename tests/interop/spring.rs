//! Spring Batch, in a JVM that reads commands.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use batch_tests::database::{Database, Place};
use serde_json::{Value, json};

/// A version of Spring Batch: 4.3, 5.2 or 6.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V4,
    V5,
    V6,
}

impl Version {
    pub(super) const ALL: [Self; 3] = [Self::V4, Self::V5, Self::V6];

    /// Returns the layout of its tables, as a URL names it.
    pub(super) fn layout(self) -> &'static str {
        match self {
            Self::V4 => "4.3",
            Self::V5 => "5",
            Self::V6 => "6",
        }
    }
}

/// A JVM that waits for its next verb. It exits when its input is closed.
pub(super) struct Spring {
    version: Version,
    jvm: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Spring {
    /// Starts a version of Spring Batch in a time zone.
    pub(super) fn of(version: Version, zone: &str) -> Self {
        let built = built(version).display();
        let mut jvm = Command::new("java")
            // A short start-up matters more than speed.
            .args(["-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp"])
            .arg(format!("{built}/spring-batch-interop.jar:{built}/lib/*"))
            .arg(format!("-Duser.timezone={zone}"))
            .arg("interop.Main")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("java: {error}; {MISSING}"));
        let input = jvm.stdin.take();
        let output = BufReader::new(jvm.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || output.lines().try_for_each(|line| sender.send(line.unwrap())));
        Self {
            version,
            jvm,
            input,
            lines,
        }
    }

    /// Creates the tables in an empty database.
    pub(super) fn make(&mut self, place: &Place) {
        if place.database() == Database::Mariadb {
            // Tables that a server has even if no test started it.
            let name = place.url().split(['/', '?']).nth(3).unwrap();
            let alter = format!("ALTER DATABASE {name} CHARACTER SET utf8mb4");
            place.connect().execute(&alter).unwrap();
        }
        self.done(place, json!(["make"]));
    }

    /// Migrates the tables of the version before, as a user has to: by Spring Batch's script and, on MariaDB, by statements
    /// that it lacks.
    pub(super) fn migrate(&mut self, place: &Place) {
        let is_mariadb = place.database() == Database::Mariadb;
        if is_mariadb && self.version == Version::V6 {
            // The script has an error of syntax.
            let rename = "RENAME TABLE BATCH_JOB_SEQ TO BATCH_JOB_INSTANCE_SEQ";
            return place.connect().execute(rename).unwrap();
        }
        self.done(place, json!(["migrate"]));
        if is_mariadb {
            // The script leaves the tables that emulate sequences.
            for name in [
                "BATCH_STEP_EXECUTION_SEQ",
                "BATCH_JOB_EXECUTION_SEQ",
                "BATCH_JOB_SEQ",
            ] {
                let mut connection = place.connect();
                let last = connection.number(&format!("SELECT ID FROM {name}"));
                let replace = format!(
                    "DROP TABLE {name}; CREATE SEQUENCE {name} START WITH {} NOCACHE",
                    last + 1
                );
                connection.execute(&replace).unwrap();
            }
        }
    }

    /// Sends a verb, and waits for the answer: the result, or the exception.
    pub(super) fn ask(&mut self, place: &Place, words: Value) -> Result<Value, String> {
        self.send(place, words);
        self.answer()
    }

    /// Returns the answer, which must not be an exception.
    pub(super) fn done(&mut self, place: &Place, words: Value) -> Value {
        let what = words.to_string();
        self.ask(place, words)
            .unwrap_or_else(|problem| panic!("{what}: {problem}"))
    }

    /// Sends a verb whose answer comes later.
    pub(super) fn send(&mut self, place: &Place, mut words: Value) {
        words.as_array_mut().unwrap().insert(1, json!(jdbc(place)));
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{words}").unwrap();
    }

    /// Reads until its job prints something.
    pub(super) fn said(&mut self) -> String {
        let line = self.line();
        let said = line.strip_prefix('*');
        said.unwrap_or_else(|| panic!("{line}")).to_owned()
    }

    pub(super) fn answer(&mut self) -> Result<Value, String> {
        let line = self.line();
        match line.split_at_checked(1) {
            Some(("=", answer)) => Ok(serde_json::from_str(answer).unwrap()),
            Some(("!", problem)) => Err(problem.to_owned()),
            _ => panic!("{line}"),
        }
    }

    /// Kills the JVM, and starts another of the same version.
    pub(super) fn dies(&mut self, zone: &str) {
        self.jvm.kill().unwrap();
        *self = Self::of(self.version, zone);
    }

    fn line(&mut self) -> String {
        let line = self.lines.recv_timeout(LIMIT);
        line.unwrap_or_else(|error| panic!("the JVM says nothing: {error}"))
    }
}

/// Longer than any operation takes.
const LIMIT: Duration = Duration::from_secs(120);

impl Drop for Spring {
    fn drop(&mut self) {
        drop(self.input.take());
        if std::thread::panicking() {
            let _ = self.jvm.kill();
        }
        let _ = self.jvm.wait();
    }
}

const MISSING: &str = "these tests want Java and Maven: apt-get install default-jdk-headless maven";

/// Returns the folder of the program and its libraries, built by Maven.
fn built(version: Version) -> &'static Path {
    static BUILT: [OnceLock<PathBuf>; 3] = [const { OnceLock::new() }; 3];
    // Two builds would download the same libraries to the same files.
    static BUILDING: Mutex<()> = Mutex::new(());
    let (profile, folder) = match version {
        Version::V4 => ("4", "interop"),
        Version::V5 => ("5", "interop-5"),
        Version::V6 => ("6", "interop-6"),
    };
    BUILT[version as usize].get_or_init(|| {
        let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
        let test = std::env::current_exe().unwrap();
        let target = test.ancestors().nth(3).unwrap();
        let built = target.join(folder);
        let maven = Command::new("mvn")
            .args(["-q", "-B", "package", "-P", profile])
            .arg(format!("-Dbuilt={}", built.display()))
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/interop"))
            .output()
            .unwrap_or_else(|error| panic!("mvn: {error}; {MISSING}"));
        let said = String::from_utf8_lossy(&maven.stdout);
        assert!(maven.status.success(), "mvn package: {said}\n{MISSING}");
        built
    })
}

/// Returns the place as its JDBC driver names it.
fn jdbc(place: &Place) -> String {
    let url = place.url();
    let path = url.split(['?']).next().unwrap();
    let option = |name: &str| {
        let options = url.split(['?', '&']);
        let value = options.filter_map(|option| option.strip_prefix(name)).next();
        value.unwrap_or_else(|| panic!("{url} without {name}")).to_owned()
    };
    let database = path.rsplit('/').next().unwrap();
    match place.database() {
        Database::Sqlite => {
            let file = path.trim_start_matches("sqlite://");
            format!("jdbc:sqlite:{file}?transaction_mode=IMMEDIATE&busy_timeout=30000")
        }
        Database::Postgres => {
            let folder = option("host=");
            let factory = "org.newsclub.net.unix.AFUNIXSocketFactory$FactoryArg";
            format!(
                "jdbc:postgresql://localhost/{database}?user=postgres&sslmode=disable&socketFactory={factory}\
                 &socketFactoryArg={folder}/.s.PGSQL.5432"
            )
        }
        Database::Mariadb => {
            let socket = option("unix_socket=");
            format!("jdbc:mariadb://localhost/{database}?user=root&localSocket={socket}")
        }
    }
}
