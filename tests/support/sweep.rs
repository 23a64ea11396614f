//! A small job that is struck by a fault at every event of its repository, one after the other, and the conditions that
//! hold after each of them and a plain launch.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use std::{env, fs, thread};

use diesel::connection::SimpleConnection;

use crate::database::Outside;
use crate::order::Order as Calls;
use crate::random::Random;
use crate::shapes::as_by_one_processor;
pub use crate::shapes::{BATCHLET, CHUNKS, DATA, FILES, NESTED, PARTITIONS, PIPELINE, PLAIN_PIPELINE, Shape};
use crate::{deadline, process, sqlite};

/// The program's message when the fault has struck.
pub const STRUCK: &str = "struck";
/// Statements do not fail any more.
pub const REARM_NEVER: &str = "UPDATE sweep_strike SET at = NULL";
/// Every writing statement fails.
pub const REARM_FOR_EVER: &str = "UPDATE sweep_strike SET at = 0";

/// The environment variable of an order.
const ORDER: &str = "SWEEP_ORDER";

/// The environment variable with the number that the reader waits at.
pub const WAITS_AT: &str = "SWEEP_WAITS_AT";

/// The file that the artifacts write their calls to.
pub const CALLS: &str = "calls";

/// A fault of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It exits at once, before or after a statement.
    Kill,
    /// A panic, before or after a statement, inside diesel.
    Panic,
    /// One statement, or one commit, fails.
    Once,
    /// Every write after that fails, too.
    ForEver,
}

const FAULTS: [(Fault, &str); 5] = [
    (Fault::None, "none"),
    (Fault::Kill, "kill"),
    (Fault::Panic, "panic"),
    (Fault::Once, "once"),
    (Fault::ForEver, "for-ever"),
];

/// A fault, and the number of the event of the diesel connections that it strikes at. Errors are raised by triggers,
/// whose number is in the database.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// The fault.
    pub fault: Fault,
    /// From 1.
    pub at: u64,
}

impl Order {
    /// Parses the environment variable.
    pub fn of_this_process() -> Self {
        let order = env::var(ORDER).unwrap_or_else(|_| "none 0".into());
        let (fault, at) = order.split_once(' ').expect("a fault and a number");
        let fault = FAULTS.iter().find(|(_, name)| *name == fault);
        Self {
            fault: fault.expect("a known fault").0,
            at: at.parse().expect("a number"),
        }
    }

    fn text(self) -> String {
        let name = FAULTS.iter().find(|(fault, _)| *fault == self.fault);
        format!("{} {}", name.expect("all are named").1, self.at)
    }
}

/// No fault.
pub const UNDISTURBED: Order = Order {
    fault: Fault::None,
    at: 0,
};

/// The place that raises an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raised {
    /// At the statement.
    InStatement,
    /// At the COMMIT of its transaction.
    InCommit,
}

/// Triggers that reject rows beyond `Outside::reject_wrong_rows`, and record every insert and update of an
/// execution.
const AUDIT: &str = "
    CREATE TABLE audit (kind TEXT, id INTEGER, version INTEGER);
    CREATE TRIGGER audit_1 AFTER INSERT ON BATCH_JOB_EXECUTION BEGIN
        INSERT INTO audit VALUES ('job', NEW.JOB_EXECUTION_ID, NEW.VERSION);
        SELECT RAISE(ABORT, 'two live executions') FROM BATCH_JOB_EXECUTION
            WHERE JOB_INSTANCE_ID = NEW.JOB_INSTANCE_ID AND END_TIME IS NULL AND NEW.END_TIME IS NULL
            AND JOB_EXECUTION_ID <> NEW.JOB_EXECUTION_ID;
    END;
    CREATE TRIGGER audit_2 AFTER INSERT ON BATCH_STEP_EXECUTION BEGIN
        INSERT INTO audit VALUES ('step', NEW.STEP_EXECUTION_ID, NEW.VERSION);
    END;
    CREATE TRIGGER audit_3 AFTER UPDATE ON BATCH_JOB_EXECUTION BEGIN
        INSERT INTO audit VALUES ('job', NEW.JOB_EXECUTION_ID, NEW.VERSION);
    END;
    CREATE TRIGGER audit_4 AFTER UPDATE ON BATCH_STEP_EXECUTION BEGIN
        INSERT INTO audit VALUES ('step', NEW.STEP_EXECUTION_ID, NEW.VERSION);
    END;
    CREATE TRIGGER audit_5 AFTER UPDATE ON BATCH_STEP_EXECUTION WHEN NEW.LAST_UPDATED < OLD.LAST_UPDATED BEGIN
        SELECT RAISE(ABORT, 'a time went back');
    END;";

/// The messages of the triggers that reject a wrong row.
pub const REFUSALS: [&str; 9] = [
    "the item balance is broken",
    "VERSION did not grow by one",
    "an ended execution was changed",
    "no edge of the status graph",
    "END_TIME does not fit STATUS",
    "two live executions",
    "the fence went back",
    "a count went back",
    "a time went back",
];

/// Tables that the triggers of a strike write to. The counter is rolled back with its transaction; the struck process
/// then records what follows.
const STRIKE: &str = "
    CREATE TABLE sweep_events (n INTEGER PRIMARY KEY AUTOINCREMENT);
    CREATE TABLE sweep_strike (at INTEGER, in_commit INTEGER NOT NULL);
    INSERT INTO sweep_strike VALUES (NULL, 0);
    CREATE TABLE sweep_nothing (id INTEGER PRIMARY KEY);
    CREATE TABLE sweep_orphan (parent INTEGER REFERENCES sweep_nothing (id) DEFERRABLE INITIALLY DEFERRED);";

/// The folder of a run of a shape's instance.
pub struct Sweep {
    program: &'static str,
    shape: Shape,
    /// The database before the first launch.
    fresh: PathBuf,
    folder: tempfile::TempDir,
    environment: Vec<(&'static str, &'static str)>,
    /// The first event that is struck, from 1.
    first: u64,
    /// The distance to the next one.
    stride: usize,
}

/// How a process ended.
struct Ended {
    code: Option<i32>,
    errors: String,
    /// Checks whether the artifacts were called in an allowed order.
    in_order: Result<(), String>,
}

impl Ended {
    fn is_complete(&self) -> bool {
        self.code == Some(0) || self.errors.contains("ended COMPLETED")
    }
}

impl Sweep {
    /// Creates a folder with the job and an empty repository. `program` is the path of `sweeping`.
    pub fn new(program: &'static str, shape: Shape) -> Self {
        let folder = crate::folder::new();
        fs::write(folder.path().join("job.xml"), shape.xml).unwrap();
        if !shape.child.is_empty() {
            fs::write(folder.path().join("child.xml"), shape.child).unwrap();
        }
        let fresh = folder.path().join("fresh.db");
        batch_runtime::BatchRuntime::builder()
            .repository(format!("sqlite://{}", fresh.display()))
            .build()
            .unwrap();
        let mut connection = sqlite::open(&fresh);
        let written = "CREATE TABLE written (n INTEGER, execution INTEGER)";
        for tables in [written, AUDIT, STRIKE] {
            connection.batch_execute(tables).unwrap();
        }
        let mut outside = Outside::Sqlite(connection);
        let tables = outside.rows(
            "SELECT name AS text FROM sqlite_master WHERE type = 'table' AND (name LIKE 'BATCH_%' OR name = 'written')",
        );
        for table in tables {
            for operation in ["INSERT", "UPDATE", "DELETE"] {
                outside
                    .execute(&format!(
                        "CREATE TRIGGER sweep_{operation}_{table} BEFORE {operation} ON {table} BEGIN
                            INSERT INTO sweep_events VALUES (NULL);
                            SELECT RAISE(ABORT, '{STRUCK} in {operation} {table}') FROM sweep_strike
                                WHERE in_commit = 0 AND at <= (SELECT MAX(n) FROM sweep_events);
                            INSERT INTO sweep_orphan SELECT 0 FROM sweep_strike
                                WHERE in_commit = 1 AND at <= (SELECT MAX(n) FROM sweep_events);
                         END"
                    ))
                    .unwrap();
            }
        }
        outside.reject_wrong_rows();
        outside.reject_regressions();
        Self {
            program,
            shape,
            fresh,
            folder,
            environment: Vec::new(),
            first: 1,
            stride: 1,
        }
    }

    /// Strikes at every `stride`-th event, starting at a random one of the first `stride`.
    #[must_use]
    pub fn with_stride(mut self, stride: u32) -> Self {
        self.first = 1 + Random::new("the first event").below(stride.into());
        self.stride = stride as usize;
        self
    }

    /// Sets an environment variable of the processes.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.environment.push((name, value));
        self
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the repository's file.
    pub fn database(&self) -> PathBuf {
        self.path().join("batch.db")
    }

    /// Replaces the repository by the empty one.
    pub fn reset(&self) {
        self.remove();
        fs::copy(&self.fresh, self.database()).unwrap();
    }

    fn remove(&self) {
        for name in ["batch.db", "batch.db-wal", "batch.db-shm"] {
            let _ = fs::remove_file(self.path().join(name));
        }
        self.outputs()
            .iter()
            .for_each(|name| fs::remove_file(self.path().join(name)).unwrap());
        let owners = self.path().join("batch.db-owners");
        let _ = fs::remove_dir_all(&owners).or_else(|_| fs::remove_file(&owners));
    }

    /// Returns the names of the files that steps have written.
    fn outputs(&self) -> Vec<String> {
        let names = fs::read_dir(self.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names
            .map(|name| name.into_string().unwrap())
            .filter(|name| name.starts_with("out"))
            .collect();
        names.sort();
        names
    }

    /// Returns a launch of the job.
    pub fn launch(&self, order: Order) -> Command {
        let waited_for = format!("a launch with {order:?} in {}", self.path().display());
        deadline::waits_for(move || waited_for.clone());
        let mut command = Command::new(self.program);
        command
            .args(["launch", "job"])
            .current_dir(self.path())
            .env(ORDER, order.text())
            .env_remove("BATCH_FAILPOINTS")
            // Backtraces of many panics take long.
            .env("RUST_BACKTRACE", "0")
            .envs(self.environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    fn run(&self, order: Order) -> Ended {
        let output = finish(self.launch(order));
        let calls = self.path().join(CALLS);
        let log = fs::read_to_string(&calls).unwrap_or_default();
        // Before the first call the file does not exist.
        let _ = fs::remove_file(calls);
        let mut log: Vec<String> = log.lines().map(str::to_owned).collect();
        if self.shape.xml.contains("batch.chunk.processors") {
            log = as_by_one_processor(&log);
        }
        let code = output.status.code();
        let in_order = match order.fault {
            // The calls of the reader are between calls of the writer.
            _ if self.shape.xml.contains("batch.chunk.pipeline") => Ok(()),
            Fault::None => Calls::default().check(&log),
            // A panic within the runtime may leave the step open.
            _ if code.is_none() || order.fault == Fault::Panic => Calls::disturbed().check_until_death(&log),
            _ => Calls::disturbed().check(&log),
        };
        Ended {
            code,
            errors: process::text(&output.stdout) + &process::text(&output.stderr),
            in_order: in_order.map_err(|problem| format!("{problem}\n{}", log.join("\n"))),
        }
    }

    /// Strikes at event 1, 2, and so on, each time in a new instance, until the job ends before the event. After each strike a plain
    /// launch must complete the instance, and all conditions must hold. Returns the number of the last event that was struck.
    ///
    /// # Errors
    /// The violated condition, and the strike before it.
    pub fn strike_everywhere(&self, fault: Fault, raised: Raised) -> Result<u64, String> {
        self.strike_and_recover(fault, raised, false)
    }

    /// Kills the process at each event, and the recovering process at its event of the same number.
    ///
    /// # Errors
    /// As `strike_everywhere`.
    pub fn kill_twice_everywhere(&self) -> Result<u64, String> {
        self.strike_and_recover(Fault::Kill, Raised::InStatement, true)
    }

    fn strike_and_recover(&self, fault: Fault, raised: Raised, again: bool) -> Result<u64, String> {
        let mut last = 0;
        for at in (self.first..).step_by(self.stride) {
            self.reset();
            let by_trigger = matches!(fault, Fault::Once | Fault::ForEver);
            if by_trigger {
                let in_commit = i32::from(raised == Raised::InCommit);
                let strike = format!("UPDATE sweep_strike SET at = {at}, in_commit = {in_commit}");
                self.execute(&strike);
            }
            let order = Order { fault, at };
            let struck = self.run(order);
            let was_struck = struck.errors.contains(STRUCK);
            if by_trigger {
                self.execute(REARM_NEVER);
            }
            let failure = |problem: String, second: &str| {
                Err(format!(
                    "{order:?} {raised:?}: {problem}\n-- exit code {:?}\n{}\n-- then\n{second}",
                    struck.code, struck.errors
                ))
            };
            if fault == Fault::Kill && was_struck && struck.code.is_some() {
                return failure("the process lives".into(), "");
            }
            if !was_struck && struck.code != Some(0) {
                return failure("fails without having been struck".into(), "");
            }
            let mut in_order = struck.in_order.clone();
            let mut errors = struck.errors.clone();
            let mut is_complete = struck.is_complete();
            if again && was_struck {
                let recovering = self.run(order);
                is_complete = recovering.is_complete();
                in_order = in_order.and(recovering.in_order);
                errors += &recovering.errors;
            }
            if !is_complete {
                let second = self.run(UNDISTURBED);
                if !second.is_complete() {
                    return failure("a launch does not complete it".into(), &second.errors);
                }
                in_order = in_order.and(second.in_order);
                errors += &second.errors;
            }
            if let Err(problem) = in_order {
                return failure(format!("the calls of the artifacts: {problem}"), &errors);
            }
            if let Some(refusal) = REFUSALS.iter().find(|refusal| errors.contains(*refusal)) {
                return failure(format!("refused: {refusal}"), &errors);
            }
            if let Err(problem) = self.check().and_then(|()| self.check_locks()) {
                return failure(problem, &errors);
            }
            if !was_struck {
                let writes =
                    Outside::Sqlite(sqlite::open(&self.database())).number("SELECT MAX(n) FROM sweep_events");
                let unstruck = last..at;
                if by_trigger && !u64::try_from(writes).is_ok_and(|writes| unstruck.contains(&writes)) {
                    return failure(format!("there are {writes} writes"), "");
                }
                return Ok(last);
            }
            last = at;
        }
        unreachable!("there is no last number")
    }

    /// Kills the process at each event of a launch that creates its database; a plain launch must complete the job, in
    /// the same tables. The stride is not used. Returns the number of events.
    ///
    /// # Errors
    /// The difference, and the kill before it.
    pub fn kill_while_it_makes_the_tables(&self) -> Result<u64, String> {
        let tables = "SELECT name || ' ' || sql AS text FROM sqlite_master
            WHERE sql IS NOT NULL AND type <> 'trigger' AND tbl_name NOT LIKE 'sweep%'
            AND tbl_name NOT IN ('audit', 'written') ORDER BY name";
        let expected = Outside::Sqlite(sqlite::open(&self.fresh)).rows(tables);
        for at in 1.. {
            self.remove();
            let order = Order {
                fault: Fault::Kill,
                at,
            };
            let struck = self.run(order);
            let last = match struck.is_complete() {
                true => &struck,
                false => &self.run(UNDISTURBED),
            };
            let found = self.rows(tables);
            if !last.is_complete() || found != expected {
                let errors = format!("{} {}", struck.errors, last.errors);
                return Err(format!("{order:?}: {errors}\n{found:#?}"));
            }
            if !struck.errors.contains(STRUCK) {
                return Ok(at - 1);
            }
        }
        unreachable!("there is no last number")
    }

    /// Returns the texts in the column `text` of a query.
    pub fn rows(&self, query: &str) -> Vec<String> {
        Outside::Sqlite(sqlite::open(&self.database())).rows(query)
    }

    /// Runs a statement that the triggers would reject.
    pub fn without_triggers(&self, statement: &str) {
        for name in self.rows("SELECT name AS text FROM sqlite_master WHERE type = 'trigger'") {
            self.execute(&format!("DROP TRIGGER {name}"));
        }
        self.execute(statement);
    }

    fn execute(&self, statement: &str) {
        sqlite::open(&self.database()).batch_execute(statement).unwrap();
    }

    /// Checks all conditions of the one instance, which must be complete.
    ///
    /// # Errors
    /// The violated condition.
    pub fn check(&self) -> Result<(), String> {
        let mut outside = Outside::Sqlite(sqlite::open(&self.database()));
        let mut expect = |what: &str, query: &str, expected: Vec<String>| {
            let found = outside.rows(query);
            match found == expected {
                true => Ok(()),
                false => Err(format!("{what}: {found:?} instead of {expected:?}")),
            }
        };
        let rows = (self.shape.rows)().iter().map(i64::to_string).collect();
        expect(
            "the rows",
            "SELECT CAST(n AS TEXT) AS text FROM written ORDER BY n",
            rows,
        )?;
        let steps = self.shape.steps.iter().map(|step| (*step).to_owned()).collect();
        let sums = "SELECT STEP_NAME || ' ' || SUM(READ_COUNT) || ' ' || SUM(WRITE_COUNT) || ' ' || SUM(FILTER_COUNT)
                || ' ' || SUM(PROCESS_SKIP_COUNT + WRITE_SKIP_COUNT + READ_SKIP_COUNT) AS text
            FROM BATCH_STEP_EXECUTION GROUP BY STEP_NAME ORDER BY STEP_NAME";
        expect("the sums of the counters", sums, steps)?;
        for (what, query) in NEVER {
            expect(what, query, Vec::new())?;
        }
        let data = "SELECT SHORT_CONTEXT AS text FROM BATCH_JOB_EXECUTION_CONTEXT ORDER BY JOB_EXECUTION_ID DESC LIMIT 1";
        let context = Outside::Sqlite(sqlite::open(&self.database())).rows(data);
        if !context.iter().any(|context| context.contains(self.shape.data)) {
            return Err(format!("the data: {context:?} without {}", self.shape.data));
        }
        let files = self.outputs().into_iter().map(|name| {
            let text = fs::read_to_string(self.path().join(&name)).unwrap();
            (name, text)
        });
        let files: Vec<_> = files.collect();
        if !files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .eq(self.shape.files.iter().copied())
        {
            return Err(format!("the files: {files:?} instead of {:?}", self.shape.files));
        }
        expect(
            "the last execution and the lease",
            "SELECT STATUS || ' ' || (SELECT GROUP_CONCAT(DISTINCT EXPIRES_AT || ';') FROM BATCH_JOB_INSTANCE_LEASE) AS text
             FROM BATCH_JOB_EXECUTION ORDER BY JOB_EXECUTION_ID DESC LIMIT 1",
            vec!["COMPLETED -1;".into()],
        )?;
        Ok(())
    }

    /// Checks that no owner's lock is held.
    ///
    /// # Errors
    /// The held lock.
    pub fn check_locks(&self) -> Result<(), String> {
        // A process may end before the last of its threads has removed its file; the kernel has freed the lock.
        for file in fs::read_dir(self.path().join("batch.db-owners"))
            .into_iter()
            .flatten()
        {
            let file = file.unwrap().path();
            let is_free = File::open(&file).is_ok_and(|file| file.try_lock().is_ok());
            if !is_free {
                return Err(format!("{} is locked", file.display()));
            }
        }
        Ok(())
    }
}

/// Queries that must be empty, each with the meaning of its rows.
const NEVER: [(&str, &str); 11] = [
    (
        "the item balance is broken",
        "SELECT STEP_NAME AS text FROM BATCH_STEP_EXECUTION
         WHERE READ_COUNT <> WRITE_COUNT + FILTER_COUNT + PROCESS_SKIP_COUNT + WRITE_SKIP_COUNT",
    ),
    (
        "a WRITE_COUNT that is not the number of rows",
        "SELECT STEP_NAME AS text FROM BATCH_STEP_EXECUTION S
            WHERE WRITE_COUNT <> (SELECT COUNT(*) FROM written W WHERE W.execution = S.STEP_EXECUTION_ID)",
    ),
    (
        // Each interval has four items, and the end of the input is found in one more.
        "a COMMIT_COUNT that is not one for each interval",
        "SELECT STEP_NAME AS text FROM BATCH_STEP_EXECUTION
            WHERE READ_COUNT % 4 <> 0 OR COMMIT_COUNT - READ_COUNT / 4 NOT IN (0, 1)
            OR STATUS = 'COMPLETED' AND READ_COUNT > 0 AND COMMIT_COUNT = READ_COUNT / 4",
    ),
    (
        "an execution that has not ended",
        "SELECT STATUS AS text FROM BATCH_JOB_EXECUTION
            WHERE END_TIME IS NULL OR STATUS NOT IN ('COMPLETED', 'FAILED', 'STOPPED')
         UNION ALL SELECT STATUS FROM BATCH_STEP_EXECUTION
            WHERE END_TIME IS NULL OR STATUS NOT IN ('COMPLETED', 'FAILED', 'STOPPED')",
    ),
    (
        "times out of order",
        "SELECT 'job' AS text FROM BATCH_JOB_EXECUTION
            WHERE CREATE_TIME > START_TIME OR START_TIME > END_TIME OR LAST_UPDATED < CREATE_TIME
         UNION ALL SELECT STEP_NAME FROM BATCH_STEP_EXECUTION WHERE START_TIME > END_TIME",
    ),
    (
        "failed without its cause",
        "SELECT EXIT_MESSAGE AS text FROM BATCH_STEP_EXECUTION WHERE STATUS = 'FAILED' AND EXIT_CODE <> 'CRASHED'
            AND EXIT_MESSAGE NOT LIKE '%struck%' AND EXIT_MESSAGE NOT LIKE '%FOREIGN KEY%'
            AND EXIT_MESSAGE NOT LIKE '%the runtime itself failed%'",
    ),
    (
        "not completed exactly once",
        "SELECT JOB_NAME AS text FROM BATCH_JOB_INSTANCE I
            JOIN BATCH_JOB_EXECUTION E ON E.JOB_INSTANCE_ID = I.JOB_INSTANCE_ID GROUP BY JOB_NAME
            HAVING 1 <> SUM(CASE STATUS WHEN 'COMPLETED' THEN 1 ELSE 0 END)
         UNION ALL SELECT STEP_NAME FROM BATCH_STEP_EXECUTION GROUP BY STEP_NAME
            HAVING 1 <> SUM(CASE STATUS WHEN 'COMPLETED' THEN 1 ELSE 0 END)",
    ),
    (
        "more than one instance of a job",
        "SELECT JOB_NAME AS text FROM BATCH_JOB_INSTANCE GROUP BY JOB_NAME HAVING COUNT(*) > 1",
    ),
    (
        "a VERSION that is not the number of updates",
        "SELECT 'job' AS text FROM BATCH_JOB_EXECUTION E WHERE VERSION + 1 <>
            (SELECT COUNT(*) FROM audit A WHERE A.kind = 'job' AND A.id = E.JOB_EXECUTION_ID)
         UNION ALL SELECT STEP_NAME FROM BATCH_STEP_EXECUTION S WHERE VERSION <>
            (SELECT COUNT(*) - 1 + MIN(version) FROM audit A WHERE A.kind = 'step' AND A.id = S.STEP_EXECUTION_ID)",
    ),
    (
        "a row that was refused",
        "SELECT EXIT_MESSAGE AS text FROM BATCH_STEP_EXECUTION WHERE EXIT_MESSAGE LIKE '%went back%'
            OR EXIT_MESSAGE LIKE '%two live%' OR EXIT_MESSAGE LIKE '%balance%' OR EXIT_MESSAGE LIKE '%did not grow%'
            OR EXIT_MESSAGE LIKE '%was changed%' OR EXIT_MESSAGE LIKE '%no edge%' OR EXIT_MESSAGE LIKE '%not fit%'",
    ),
    (
        "a context is missing or alone",
        "SELECT STEP_NAME AS text FROM BATCH_STEP_EXECUTION S
            WHERE 1 <> (SELECT COUNT(*) FROM BATCH_STEP_EXECUTION_CONTEXT C WHERE C.STEP_EXECUTION_ID = S.STEP_EXECUTION_ID)
         UNION ALL SELECT 'job' FROM BATCH_JOB_EXECUTION E
            WHERE 1 <> (SELECT COUNT(*) FROM BATCH_JOB_EXECUTION_CONTEXT C WHERE C.JOB_EXECUTION_ID = E.JOB_EXECUTION_ID)",
    ),
];

/// Waits for the end of a process, which must not hang.
fn finish(mut command: Command) -> Output {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id();
    let (ends, ended) = mpsc::channel();
    thread::spawn(move || ends.send(child.wait_with_output()));
    let output = ended.recv_timeout(Duration::from_secs(60));
    output.map(Result::unwrap).unwrap_or_else(|_| {
        let _ = Command::new("sh").args(["-c", &format!("kill -9 {id}")]).status();
        let output = ended.recv().unwrap().unwrap();
        panic!("the process hangs: {}", process::text(&output.stderr));
    })
}
