//! Spring Batch 5 and 6 alone: the other tests can rely on the JVM that runs them.

use batch_tests::database::{Database, Place};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::spring::{Spring, Version};

const ZONE: &str = "Europe/Berlin";

/// A repository with the tables of a version.
struct Repository {
    _folder: TempDir,
    place: Place,
    spring: Spring,
    version: Version,
    /// The last word of each verb, if there is one.
    contexts: Option<&'static str>,
}

impl Repository {
    fn new(version: Version, database: Database) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(database, folder.path());
        let mut spring = Spring::of(version, ZONE);
        spring.make(&place);
        Self {
            _folder: folder,
            place,
            spring,
            version,
            contexts: None,
        }
    }

    /// Creates a repository of each version in each database.
    fn all() -> impl Iterator<Item = Self> {
        let versions = [Version::V5, Version::V6];
        versions
            .into_iter()
            .flat_map(|version| Database::ALL.map(move |database| (version, database)))
            .map(|(version, database)| Self::new(version, database))
    }

    fn ask(&mut self, mut words: Value) -> Result<Value, String> {
        words
            .as_array_mut()
            .unwrap()
            .extend(self.contexts.map(Value::from));
        self.spring.ask(&self.place, words)
    }

    fn done(&mut self, words: Value) -> Value {
        let what = format!("{}: {words}", self.what());
        self.ask(words)
            .unwrap_or_else(|problem| panic!("{what}: {problem}"))
    }

    fn what(&self) -> String {
        format!(
            "{:?}, {:?}, {:?}",
            self.version,
            self.place.database(),
            self.contexts
        )
    }
}

/// Parameters of many types. All except `load` identify an instance.
fn parameters(run: &str, load: &str) -> Value {
    let id = "00000000-0000-0000-0000-000000000001";
    let all = [
        ("date", "DATE", json!(1_704_067_200_123_i64)),
        ("day", "java.time.LocalDate", json!("2024-01-01")),
        ("decimal", "java.math.BigDecimal", json!("1.50")),
        ("id", "java.util.UUID", json!(id)),
        ("load", "STRING", json!(load)),
        ("rate", "DOUBLE", json!(1e-7)),
        ("run", "STRING", json!(run)),
        ("size", "LONG", json!(i64::MIN)),
        ("time", "java.time.LocalDateTime", json!("2024-01-01T10:00:00.5")),
    ];
    all.into_iter()
        .map(|(name, kind, value)| parameter(name, kind, value))
        .collect()
}

fn parameter(name: &str, kind: &str, value: Value) -> Value {
    json!({ "name": name, "type": kind, "value": value, "identifying": name != "load" })
}

#[test]
fn a_failed_instance_is_resumed_and_read() {
    for contexts in [None, Some("opaque")] {
        for mut repository in Repository::all() {
            repository.contexts = contexts;
            let what = repository.what();
            let (fails, works) = (parameters("1", "fail"), parameters("1", ""));
            let ended =
                |execution, status: &str| json!({ "execution": execution, "instance": 1, "status": status });
            let run = repository.done(json!(["run", "prepared", fails]));
            assert_eq!(run, ended(1, "FAILED"), "{what}");
            assert_eq!(
                repository.done(json!(["restart", 1])),
                ended(2, "FAILED"),
                "{what}"
            );
            let run = repository.done(json!(["run", "prepared", works]));
            assert_eq!(run, ended(3, "COMPLETED"), "{what}");
            let last = repository.done(json!(["last", "prepared", works]));
            assert_eq!(last, ended(3, "COMPLETED"), "{what}");
            let rejected = repository.ask(json!(["run", "prepared", works])).unwrap_err();
            assert!(
                rejected.starts_with("JobInstanceAlreadyCompleteException"),
                "{what}: {rejected}"
            );
            let nothing = parameter("run", "STRING", Value::Null);
            let rejected = repository.ask(json!(["run", "prepared", [nothing]])).unwrap_err();
            assert!(rejected.contains("`run` is null"), "{what}: {rejected}");
            check_rows(&mut repository, &fails);
        }
    }
}

/// Checks the three executions of the test above.
fn check_rows(repository: &mut Repository, parameters: &Value) {
    let what = repository.what();
    let seen = repository.done(json!(["read"]));
    let steps: Vec<_> = seen.as_array().unwrap().iter().map(|one| &one["steps"]).collect();
    let names = |steps: &Value| -> Vec<String> {
        let steps = steps.as_array().unwrap().iter();
        steps
            .map(|step| format!("{} {}", step["step"], step["status"]).replace('"', ""))
            .collect()
    };
    assert_eq!(
        steps.into_iter().map(names).collect::<Vec<_>>(),
        [
            vec!["prepare COMPLETED", "load FAILED"],
            vec!["load FAILED"],
            vec!["load COMPLETED"]
        ],
        "{what}"
    );
    let first = &seen[0];
    assert_eq!(&first["parameters"], parameters, "{what}");
    assert_eq!(first["definition"], Value::Null, "{what}");
    let failed = &first["steps"][1];
    assert_eq!(failed["counters"]["commits"], 0, "{what}");
    assert_eq!(failed["counters"]["rollbacks"], 1, "{what}");
    assert_eq!(seen[2]["steps"][0]["counters"]["commits"], 1, "{what}");
    let times = [
        &first["created"],
        &first["started"],
        &failed["created"],
        &failed["started"],
        &failed["ended"],
        &first["ended"],
    ];
    let times = times.map(|time| time.as_i64().unwrap());
    assert!(times.is_sorted(), "{what}: {times:?}");
    let column = "SELECT START_TIME FROM BATCH_JOB_EXECUTION WHERE JOB_EXECUTION_ID = 1";
    let started = repository.done(json!(["time", column]));
    assert_eq!(first["started"], started, "{what}");
    for context in [&first["context"], &failed["context"]] {
        assert_eq!(context["text"], "größer 漢字 😀", "{what}");
        assert_eq!(context["long"], 5_000_000_000_i64, "{what}");
        assert_eq!(context["int"], 7, "{what}");
        assert_eq!(context["double"], 0.5, "{what}");
        assert_eq!(context["date"], 1_704_067_200_123_i64, "{what}");
        assert_eq!(context["list"], json!(["a", "b"]), "{what}");
        assert_eq!(context["map"], json!({ "key": 1 }), "{what}");
    }
    let keys = "SELECT JOB_KEY AS text FROM BATCH_JOB_INSTANCE";
    let key = &repository.place.connect().rows(keys)[0];
    assert_eq!(&first["key"], key, "{what}");
    assert_eq!(
        &repository.done(json!(["key", parameters])),
        key,
        "{what}: of the parameters"
    );
}

/// Spring Batch creates executions in serializable transactions; the servers roll back some of them.
#[test]
fn instances_are_launched_at_the_same_time() {
    for mut repository in Repository::all() {
        let what = repository.what();
        let ended = repository.done(json!(["launches", "prepared", 50, 4, "run "]));
        let problems = ended["problems"].as_array().unwrap();
        let completed = ended["completed"].as_u64().unwrap();
        assert_eq!(
            completed + problems.len() as u64,
            50,
            "{what}: {completed} {problems:?}"
        );
        for problem in problems {
            let problem = problem.as_str().unwrap();
            let is_rolled_back = problem.contains("could not serialize") || problem.contains("Deadlock");
            assert!(
                is_rolled_back && repository.place.database() != Database::Sqlite,
                "{what}: {problem}"
            );
        }
        let count = "SELECT COUNT(*) FROM BATCH_JOB_EXECUTION WHERE STATUS = 'COMPLETED'";
        let count = repository.place.connect().number(count);
        assert_eq!(u64::try_from(count), Ok(completed), "{what}");
    }
}

#[test]
fn an_instance_of_a_killed_jvm_is_resumed() {
    for mut repository in Repository::all() {
        let what = repository.what();
        let waits = json!({ "name": "wait", "type": "STRING", "value": "yes", "identifying": false });
        let run = json!(["run", "crashes", [waits]]);
        repository.spring.send(&repository.place, run);
        assert_eq!(repository.spring.said(), "second 1", "{what}");
        repository.spring.dies(ZONE);
        let rejected = repository.ask(json!(["run", "crashes", []])).unwrap_err();
        assert!(rejected.contains("is already running"), "{what}: {rejected}");
        for table in ["BATCH_JOB_EXECUTION", "BATCH_STEP_EXECUTION"] {
            let close = format!(
                "UPDATE {table} SET STATUS = 'FAILED', END_TIME = START_TIME WHERE STATUS = 'STARTED'"
            );
            repository.place.connect().execute(&close).unwrap();
        }
        repository
            .spring
            .send(&repository.place, json!(["run", "crashes", []]));
        assert_eq!(repository.spring.said(), "second 2", "{what}");
        assert_eq!(
            repository.spring.answer().unwrap()["status"],
            "COMPLETED",
            "{what}"
        );
        let seen = repository.done(json!(["read"]));
        let steps = seen[1]["steps"].as_array().unwrap();
        assert_eq!(steps.len(), 1, "{what}: {steps:?}");
    }
}

/// Spring Batch 6 ends the rows of an execution that another JVM still runs, and either JVM may then fail to update them.
#[test]
fn a_job_is_stopped_by_another_jvm() {
    for version in [Version::V5, Version::V6] {
        for database in [Database::Postgres, Database::Mariadb] {
            let mut repository = Repository::new(version, database);
            let what = repository.what();
            let mut other = Spring::of(version, ZONE);
            let run = json!(["run", "waits", []]);
            repository.spring.send(&repository.place, run);
            assert_eq!(repository.spring.said(), "waiting 1", "{what}");
            let stopped = other.ask(&repository.place, json!(["stop", 1]));
            let (problems, ends): (&[&str], &[&str]) = match version {
                Version::V6 => (
                    &["OptimisticLockingFailureException"],
                    &["STOPPED", "FAILED", "UNKNOWN"],
                ),
                _ => (&[], &["STOPPED"]),
            };
            match stopped {
                Ok(stopped) => assert_eq!(stopped, true, "{what}"),
                Err(problem) => assert!(
                    problems.iter().any(|one| problem.starts_with(one)),
                    "{what}: {problem}"
                ),
            }
            let ended = repository.spring.answer().unwrap();
            assert!(ends.iter().any(|end| ended["status"] == *end), "{what}: {ended}");
        }
    }
}

/// The sequences continue, and the executions of the version before can be read.
#[test]
fn tables_are_migrated_from_version_to_version() {
    for database in [Database::Postgres, Database::Mariadb] {
        let mut repository = Repository::new(Version::V4, database);
        let place = repository.place.clone();
        repository.done(json!(["run", "repeats", []]));
        for (version, execution) in [(Version::V5, 2), (Version::V6, 3)] {
            let mut spring = Spring::of(version, ZONE);
            spring.migrate(&place);
            let seen = spring.done(&place, json!(["read"]));
            assert_eq!(
                seen.as_array().unwrap().len(),
                execution - 1,
                "{version:?}, {database:?}"
            );
            let run = parameters(&format!("{version:?}"), "");
            let ended = spring.done(&place, json!(["run", "repeats", run]));
            assert_eq!(
                ended,
                json!({ "execution": execution, "instance": execution, "status": "COMPLETED" }),
                "{version:?}, {database:?}"
            );
        }
    }
}
