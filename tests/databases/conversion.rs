//! `db upgrade`: conversions of the tables to the layout of another version of Spring Batch.

#[cfg(feature = "servers")]
use std::thread;

use batch_runtime::repository::{ExecutionFilter, LayoutConversion, RepositoryLayout, RepositoryUrl};
use batch_runtime::time::TimeZone;
use batch_runtime::{BatchStatus, JobInstanceId, JobOperator, JobParameters};
use batch_tests::database::{Database, Place};
use batch_tests::operated;
use serde_json::Value;

use super::jobs::SUM;
use super::layouts::{operator, parameters, place_in};

const ALL: [RepositoryLayout; 3] = RepositoryLayout::ALL;

/// A repository whose URL names no layout, with an instance that failed and one that is complete.
pub(super) struct Repository {
    pub(super) folder: tempfile::TempDir,
    pub(super) place: Place,
}

impl Repository {
    pub(super) fn new(database: Database, layout: RepositoryLayout) -> Self {
        let (folder, place) = place_in(database, layout);
        let first = Self::run(&operator(folder.path(), place.url()).unwrap(), "27");
        assert_eq!(first, BatchStatus::Failed);
        let other = operator(folder.path(), place.url()).unwrap();
        let complete = other.launch("job", JobParameters::from([("to", "1")])).unwrap();
        assert_eq!(other.wait(complete).unwrap().status, BatchStatus::Completed);
        Self {
            folder,
            place: place.without_options(),
        }
    }

    /// Launches the instance that fails.
    fn run(operator: &JobOperator, fails_at: &str) -> BatchStatus {
        let given = parameters(RepositoryLayout::V4_3).with_non_identifying("fails-at", fails_at);
        let execution = operator.launch("job", given).unwrap();
        operator.wait(execution).unwrap().status
    }

    pub(super) fn operator(&self) -> JobOperator {
        operator(self.folder.path(), self.place.url()).unwrap()
    }

    pub(super) fn url(&self) -> RepositoryUrl {
        self.place.url().parse().unwrap()
    }

    /// Returns all instances as they are exported, the oldest first.
    pub(super) fn exported(&self) -> Vec<String> {
        let operator = self.operator();
        let all = operator.find_executions(&ExecutionFilter::default()).unwrap();
        let mut ids: Vec<JobInstanceId> = all.iter().map(|execution| execution.instance_id).collect();
        ids.sort_by_key(|id| id.0);
        ids.dedup();
        let export = |id| operator.export(id).unwrap().unwrap();
        ids.into_iter().map(export).collect()
    }

    pub(super) fn plan(&self, to: RepositoryLayout) -> LayoutConversion {
        self.url().plan_conversion(to, &TimeZone::UTC).unwrap()
    }

    /// Converts the tables, and returns the backup.
    pub(super) fn convert(&self, to: RepositoryLayout) -> Result<(LayoutConversion, String), String> {
        let mut backup = Vec::new();
        let converted = self.url().convert(to, &TimeZone::UTC, &mut backup);
        let converted = converted.map_err(|error| error.to_string())?;
        Ok((converted, String::from_utf8(backup).unwrap()))
    }
}

/// Returns an exported instance without its key, which each layout computes in its own way, and with its contexts as 6 stores them.
fn without_key(line: &str) -> Value {
    let mut instance: Value = serde_json::from_str(line).unwrap();
    instance["jobKey"] = Value::Null;
    instance.as_object_mut().unwrap().remove("layout");
    let of_6 = |text: &str| {
        text.replace(r#""@class":"java.util.HashMap","#, "")
            .replace(r#""@class":"java.util.HashMap""#, "")
    };
    let strip = |context: &mut Value| {
        if let Some(short) = context["short"].as_str() {
            context["short"] = of_6(short).into();
        }
    };
    for execution in instance["executions"].as_array_mut().unwrap() {
        strip(&mut execution["context"]);
        execution["steps"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .for_each(|step| strip(&mut step["context"]));
    }
    instance
}

/// Nothing is lost on the way to each layout and back, the backup contains every instance, and the ids go on.
///
/// Spec: REPO-91
#[test]
fn tables_are_converted_there_and_back() {
    for database in Database::ALL {
        for from in ALL {
            let repository = Repository::new(database, from);
            let original = repository.exported();
            let values = |lines: &[String]| lines.iter().map(|line| without_key(line)).collect::<Vec<_>>();
            for to in ALL.into_iter().filter(|to| *to != from) {
                let what = format!("{database:?} {from} to {to}");
                let plan = repository.plan(to);
                assert_eq!((plan.from, plan.to), (from, to), "{what}");
                assert_eq!(
                    (plan.instances, plan.replaced_keys, plan.kept_keys),
                    (2, 2, 0),
                    "{what}"
                );
                assert_eq!(plan.obstacles, [""; 0], "{what}");
                assert_eq!(repository.exported(), original, "{what}: a plan changes nothing");
                let (converted, backup) = repository.convert(to).unwrap();
                assert_eq!(converted, plan, "{what}");
                assert_eq!(backup.lines().collect::<Vec<_>>(), original, "{what}");
                let there = repository.exported();
                assert_eq!(values(&there), values(&original), "{what}");
                assert_eq!(repository.plan(to).replaced_keys, 0, "{what}");
                repository.convert(from).unwrap();
                assert_eq!(repository.exported(), original, "{what} and back");
            }
        }
    }
}

/// An instance that failed is resumed, after a conversion, from its checkpoint; the one that is complete is not run again.
///
/// Spec: REPO-91
#[test]
fn an_instance_is_resumed_in_another_layout() {
    for database in Database::ALL {
        for from in ALL {
            let to = ALL[(from as usize + 1) % 3];
            let what = format!("{database:?} {from} to {to}");
            let repository = Repository::new(database, from);
            repository.convert(to).unwrap();
            let operator = repository.operator();
            let complete = operator
                .launch("job", JobParameters::from([("to", "1")]))
                .unwrap_err();
            assert!(complete.to_string().contains("complete"), "{what}: {complete}");
            assert_eq!(Repository::run(&operator, "0"), BatchStatus::Completed, "{what}");
            assert_eq!(repository.place.connect().number(SUM), 36_000_631, "{what}");
            let all = operator.find_executions(&ExecutionFilter::default()).unwrap();
            let last = all.iter().find(|execution| execution.id.0 == 3).unwrap();
            assert_eq!(last.instance_id.0, 1, "{what}");
            let new = operator
                .launch("job", JobParameters::from([("to", "2")]))
                .unwrap();
            assert_eq!(operator.wait(new).unwrap().instance_id.0, 3, "{what}");
        }
    }
}

/// Parameters are copied in pages; an execution without parameters does not end one.
///
/// Spec: REPO-91
#[test]
fn the_parameters_of_many_executions_are_copied() {
    for database in Database::ALL {
        let repository = Repository::new(database, RepositoryLayout::V4_3);
        let values = |column: &str| {
            let sum = format!(
                "SELECT COUNT(*) * 1000000 + SUM({column} * JOB_EXECUTION_ID) FROM BATCH_JOB_EXECUTION_PARAMS"
            );
            repository
                .place
                .connect()
                .number(&format!("{sum} WHERE JOB_EXECUTION_ID > 1000"))
        };
        let own = repository.plan(RepositoryLayout::V6).parameters;
        let digits =
            "(SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
            UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
        let mut connection = repository.place.connect();
        let executions = format!(
            "INSERT INTO BATCH_JOB_EXECUTION (JOB_EXECUTION_ID, JOB_INSTANCE_ID, CREATE_TIME, START_TIME, END_TIME, STATUS, VERSION)
            SELECT 1001 + a.n + 10 * b.n + 100 * c.n, e.JOB_INSTANCE_ID, e.CREATE_TIME, e.START_TIME, e.END_TIME, e.STATUS, 1
            FROM {digits} a, {digits} b, {digits} c, BATCH_JOB_EXECUTION e WHERE e.JOB_EXECUTION_ID = 2"
        );
        connection.execute(&executions).unwrap();
        let parameters = "INSERT INTO BATCH_JOB_EXECUTION_PARAMS
            (JOB_EXECUTION_ID, TYPE_CD, KEY_NAME, STRING_VAL, DATE_VAL, LONG_VAL, DOUBLE_VAL, IDENTIFYING)
            SELECT JOB_EXECUTION_ID, 'LONG', 'n', '', START_TIME, JOB_EXECUTION_ID * 7, 0.0, 'N' FROM BATCH_JOB_EXECUTION
            WHERE JOB_EXECUTION_ID > 1000 AND JOB_EXECUTION_ID <> 1500";
        connection.execute(parameters).unwrap();
        let before = values("LONG_VAL");
        let (plan, _) = repository.convert(RepositoryLayout::V6).unwrap();
        assert_eq!(plan.parameters, 999 + own, "{database:?}");
        assert_eq!(values("CAST(PARAMETER_VALUE AS DECIMAL)"), before, "{database:?}");
        repository.convert(RepositoryLayout::V4_3).unwrap();
        assert_eq!(values("LONG_VAL"), before, "{database:?}");
    }
}

/// A backup that cannot be written prevents the conversion.
///
/// Spec: REPO-91
#[test]
fn nothing_is_converted_without_its_backup() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Err(std::io::Error::other("the disk is full"))
        }
    }
    for database in Database::ALL {
        let repository = Repository::new(database, RepositoryLayout::V4_3);
        let original = repository.exported();
        let failed = repository
            .url()
            .convert(RepositoryLayout::V6, &TimeZone::UTC, &mut Full);
        let failed = failed.unwrap_err().to_string();
        assert!(failed.contains("the disk is full"), "{database:?}: {failed}");
        assert_eq!(repository.exported(), original, "{database:?}");
        assert_eq!(repository.plan(RepositoryLayout::V6).from, RepositoryLayout::V4_3);
    }
}

/// The tables that a conversion changes: each of its statements waits for one of them.
#[cfg(feature = "servers")]
const CHANGED: [&str; 9] = [
    "BATCH_JOB_EXECUTION",
    "BATCH_JOB_EXECUTION_PARAMS",
    "BATCH_STEP_EXECUTION",
    "BATCH_JOB_SEQ",
    "BATCH_JOB_EXECUTION_SEQ",
    "BATCH_STEP_EXECUTION_SEQ",
    "BATCH_JOB_INSTANCE",
    "BATCH_STEP_EXECUTION_CONTEXT",
    "BATCH_JOB_EXECUTION_CONTEXT",
];

/// A conversion whose session ends, at each statement that waits for a table, can be repeated. Until then no runtime opens a repository that is
/// between two layouts.
///
/// Spec: REPO-91
#[cfg(feature = "servers")]
#[test]
fn an_interrupted_conversion_is_completed() {
    for (from, to) in [
        (RepositoryLayout::V4_3, RepositoryLayout::V6),
        (RepositoryLayout::V6, RepositoryLayout::V4_3),
        (RepositoryLayout::V5, RepositoryLayout::V6),
    ] {
        let repository = Repository::new(Database::Mariadb, from);
        let original = repository.exported();
        repository.convert(to).unwrap();
        let expected = repository.exported();
        repository.convert(from).unwrap();
        let mut interrupted = 0;
        for table in CHANGED {
            let what = format!("{from} to {to}, at {table}");
            if repository
                .place
                .connect()
                .execute(&format!("SELECT 1 FROM {table} LIMIT 0"))
                .is_err()
            {
                continue;
            }
            let failed = interrupt(&repository, to, table);
            if failed {
                interrupted += 1;
                let opened = operator(repository.folder.path(), repository.place.url());
                match opened {
                    // Nothing was changed, or all of it.
                    Ok(_) => assert!([&original, &expected].contains(&&repository.exported()), "{what}"),
                    Err(problem) => assert!(problem.contains("run `db upgrade` again"), "{what}: {problem}"),
                }
                repository.convert(to).unwrap();
            }
            assert_eq!(repository.exported(), expected, "{what}");
            let left = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()
                AND (TABLE_NAME LIKE '%CONVER%' OR TABLE_NAME LIKE '%REPLACED%')";
            assert_eq!(repository.place.connect().number(left), 0, "{what}");
            repository.convert(from).unwrap();
            assert_eq!(repository.exported(), original, "{what}, and back");
        }
        assert!(interrupted >= 4, "{from} to {to}: {interrupted}");
    }
}

/// Meanwhile no program creates an execution, whose parameters would not be copied.
///
/// Spec: REPO-91
#[cfg(feature = "servers")]
#[test]
fn no_execution_is_created_during_a_conversion() {
    /// Tries to create an execution when the backup is complete.
    struct Launching<'a>(&'a Repository, Option<String>);
    impl std::io::Write for Launching<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            let mut others = self.0.place.connect();
            let wait = "SET SESSION lock_wait_timeout = 1; SET SESSION innodb_lock_wait_timeout = 1";
            others.execute(wait).unwrap();
            let insert =
                "INSERT INTO BATCH_JOB_EXECUTION (JOB_EXECUTION_ID, JOB_INSTANCE_ID, CREATE_TIME, STATUS)
                VALUES (77, 1, NOW(), 'STARTING')";
            self.1 = others.execute(insert).err().map(|error| error.to_string());
            let opened = operator(self.0.folder.path(), self.0.place.url()).err();
            assert!(opened.unwrap().contains("run `db upgrade` again"));
            Ok(())
        }
    }
    let repository = Repository::new(Database::Mariadb, RepositoryLayout::V4_3);
    let mut backup = Launching(&repository, None);
    repository
        .url()
        .convert(RepositoryLayout::V5, &TimeZone::UTC, &mut backup)
        .unwrap();
    let problem = backup.1.expect("no execution is created");
    assert!(problem.contains("Lock wait timeout"), "{problem}");
}

/// Spec: REPO-84, REPO-91
#[test]
fn tables_with_a_prefix_are_converted() {
    for database in Database::ALL {
        let (folder, place) = place_in(database, RepositoryLayout::V4_3);
        let place = place.without_options();
        let prefixes = match database {
            #[cfg(feature = "servers")]
            Database::Postgres | Database::Mariadb => {
                let schema = place.new_schema();
                vec![
                    "BATCH_NIGHT_".to_owned(),
                    format!("{schema}.BATCH_"),
                    format!("{schema}.LATE_"),
                ]
            }
            _ => vec!["BATCH_NIGHT_".to_owned()],
        };
        let mut repository = Repository { folder, place };
        for prefix in prefixes {
            repository.place = repository
                .place
                .without_options()
                .with_option("table_prefix", &prefix);
            let operator = repository.operator();
            assert_eq!(Repository::run(&operator, "27"), BatchStatus::Failed);
            drop(operator);
            let original = repository.exported();
            for to in [RepositoryLayout::V6, RepositoryLayout::V4_3] {
                repository.convert(to).unwrap();
            }
            assert_eq!(repository.exported(), original, "{database:?} {prefix}");
            let operator = repository.operator();
            assert_eq!(Repository::run(&operator, "0"), BatchStatus::Completed);
        }
    }
}

/// A server that crashes while it renames tables may have renamed the first only.
///
/// Spec: REPO-91
#[cfg(feature = "servers")]
#[test]
fn half_of_a_replacement_is_undone() {
    let repository = Repository::new(Database::Mariadb, RepositoryLayout::V4_3);
    let original = repository.exported();
    assert!(interrupt(
        &repository,
        RepositoryLayout::V6,
        "BATCH_JOB_EXECUTION_PARAMS"
    ));
    let rename = "RENAME TABLE BATCH_JOB_EXECUTION_PARAMS TO BATCH_REPLACED_JOB_EXECUTION_PARAMS";
    repository.place.connect().execute(rename).unwrap();
    let rename = "RENAME TABLE BATCH_JOB_EXECUTION_SEQ TO BATCH_REPLACED_JOB_EXECUTION_SEQ";
    repository.place.connect().execute(rename).unwrap();
    let problem = operator(repository.folder.path(), repository.place.url())
        .err()
        .unwrap();
    assert!(problem.contains("run `db upgrade` again"), "{problem}");
    repository.convert(RepositoryLayout::V6).unwrap();
    repository.convert(RepositoryLayout::V4_3).unwrap();
    assert_eq!(repository.exported(), original);
}

/// Its backup is written by the next run, because nothing was changed yet.
///
/// Spec: REPO-91
#[cfg(feature = "servers")]
#[test]
fn a_conversion_that_was_interrupted_in_its_backup_starts_again() {
    let repository = Repository::new(Database::Mariadb, RepositoryLayout::V4_3);
    let original = repository.exported();
    let mark = "CREATE TABLE BATCH_CONVERSION (LAYOUTS VARCHAR(20) NOT NULL)";
    repository.place.connect().execute(mark).unwrap();
    assert!(operator(repository.folder.path(), repository.place.url()).is_err());
    let (_, backup) = repository.convert(RepositoryLayout::V6).unwrap();
    assert_eq!(backup.lines().collect::<Vec<_>>(), original);
    assert_eq!(repository.plan(RepositoryLayout::V6).from, RepositoryLayout::V6);
}

/// Ends the session of a conversion that waits for `table`. Returns whether it waited.
#[cfg(feature = "servers")]
fn interrupt(repository: &Repository, to: RepositoryLayout, table: &str) -> bool {
    let mut locks = repository.place.connect();
    locks.execute(&format!("LOCK TABLES {table} READ")).unwrap();
    thread::scope(|scope| {
        let conversion = scope.spawn(|| repository.convert(to));
        let waiting = "SELECT CAST(ID AS CHAR) AS text FROM information_schema.PROCESSLIST
            WHERE STATE LIKE 'Waiting for table%lock' AND DB = DATABASE()";
        let mut others = repository.place.connect();
        loop {
            if let Some(id) = others.rows(waiting).first() {
                others.execute(&format!("KILL {id}")).unwrap();
                let ended = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {id}");
                while others.number(&ended) > 0 {
                    thread::yield_now();
                }
                break;
            }
            if conversion.is_finished() {
                break;
            }
            thread::yield_now();
        }
        locks.execute("UNLOCK TABLES").unwrap();
        conversion.join().unwrap().is_err()
    })
}

/// Runs `db upgrade`; returns its exit code and everything that it printed.
fn upgrade(repository: &Repository, words: &[&str]) -> (Option<i32>, String) {
    let arguments = [&["db", "upgrade", "--repository", repository.place.url()], words].concat();
    let program = env!("CARGO_BIN_EXE_operated");
    let output = operated::command(program, repository.folder.path(), &arguments)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// Spec: REPO-91
#[test]
fn the_command_converts_with_a_plan_and_a_backup() {
    let repository = Repository::new(Database::Sqlite, RepositoryLayout::V4_3);
    let original = repository.exported();
    let backup = repository.folder.path().join("backup.jsonl");
    let upgrade = |words: &[&str]| upgrade(&repository, words);
    let (code, out) = upgrade(&["--to", "6", "--dry-run"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(
        out.contains("would be converted from the layout of Spring Batch 4.3 to that of 6"),
        "{out}"
    );
    assert!(out.contains("keys replaced: 2 of 2"), "{out}");
    let (code, problem) = upgrade(&["--to", "6"]);
    assert_eq!(code, Some(2), "{problem}");
    assert!(problem.contains("--backup <FILE>"), "{problem}");
    let path = backup.display().to_string();
    let (code, out) = upgrade(&["--to", "6", "--backup", &path]);
    assert_eq!(code, Some(0), "{out}");
    let written = std::fs::read_to_string(&backup).unwrap();
    assert_eq!(written.lines().collect::<Vec<_>>(), original);
    let (code, problem) = upgrade(&["--to", "5", "--backup", &path]);
    assert_eq!(code, Some(2), "{problem}");
    assert!(problem.contains("cannot write the backup"), "{problem}");
    assert_eq!(repository.plan(RepositoryLayout::V6).from, RepositoryLayout::V6);
    let (code, out) = upgrade(&["--to", "6", "--dry-run"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("has the layout of Spring Batch 6"), "{out}");
    // Its lines are imported into any layout.
    let other = place_in(Database::Sqlite, RepositoryLayout::V5);
    let operator = operator(other.0.path(), other.1.url()).unwrap();
    for line in &original {
        operator.import(line).unwrap();
    }
}
