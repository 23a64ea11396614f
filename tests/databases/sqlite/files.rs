//! New databases, and databases shared with the program's own tables; parameters that resemble others.

use std::fs;
use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;

use batch_items::record::Record;
use batch_runtime::BuildError;
use batch_runtime::prelude::*;
use batch_runtime::{
    BatchRuntime, BatchStatus, JobOperatorError, JobParameters, ParameterValue, operator::StartError,
};
use batch_tests::stage::Stage;
use batch_tests::{own_process, sqlite};
use diesel::connection::SimpleConnection;

use super::{JOB, rows};

fn build(url: &str) -> Result<BatchRuntime, BuildError> {
    BatchRuntime::builder().repository(url).build()
}

/// Spec: REPO-12
#[test]
fn many_runtimes_open_a_new_database_at_once() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("batch.db").display());
        let together = Barrier::new(8);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    together.wait();
                    build(&url).map(drop).unwrap_or_else(|error| panic!("{error}"));
                });
            }
        });
    }
}

/// The program's own diesel migrations are in the same table; the first ones may be older than the runtime's, and the
/// migration of `diesel setup` has a version of zeros only.
///
/// Spec: REPO-06, REPO-07, REPO-12
#[test]
fn migrations_of_the_program_do_no_harm() {
    let table = "CREATE TABLE IF NOT EXISTS __diesel_schema_migrations (
        version VARCHAR(50) PRIMARY KEY NOT NULL, run_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);";
    for version in ["20260101000000", "00000000000000", "00000000000001", "2026"] {
        let folder = tempfile::tempdir().unwrap();
        let insert = format!("{table} INSERT INTO __diesel_schema_migrations (version) VALUES ('{version}')");
        let url = |file: &str| format!("sqlite://{}", folder.path().join(file).display());
        let meddle = |file: &str| {
            sqlite::open(&folder.path().join(file))
                .batch_execute(&insert)
                .unwrap();
        };
        meddle("before.db");
        drop(build(&url("after.db")).unwrap());
        meddle("after.db");
        for file in ["before.db", "after.db"] {
            for _ in 0..2 {
                let operator = build(&url(file))
                    .unwrap_or_else(|error| panic!("{version} in {file}: {error}"))
                    .job_operator();
                assert!(operator.running_executions("nobody").is_err());
            }
            let versions = "SELECT version AS text FROM __diesel_schema_migrations";
            let versions = rows(&mut sqlite::open(&folder.path().join(file)), versions);
            assert!(
                versions.len() == 8 && versions.contains(&version.to_owned()),
                "{versions:?}"
            );
        }
    }
}

fn counts(stage: &Stage) -> Vec<String> {
    let tables = [
        "INSTANCE",
        "EXECUTION",
        "EXECUTION_PARAMS",
        "EXECUTION_CONTEXT",
        "SEQ",
    ];
    let count = |table| {
        rows(
            &mut stage.connection(),
            &format!(
                "SELECT '' || COUNT(*) || ' ' || COALESCE(SUM(ROWID), 0) AS text FROM BATCH_JOB_{table}"
            ),
        )
    };
    tables.into_iter().flat_map(count).collect()
}

fn has_same_key(refused: Result<batch_runtime::JobExecutionId, JobOperatorError>) -> bool {
    matches!(
        refused,
        Err(JobOperatorError::JobStart {
            cause: StartError::SameKey { .. },
            ..
        })
    )
}

/// Spec: REPO-26, REPO-27, OP-36
#[test]
fn other_parameters_with_the_same_key_are_rejected() {
    let collisions: [(JobParameters, JobParameters); 2] = [
        (
            JobParameters::from([("a", "1;b=2")]),
            JobParameters::from([("a", "1"), ("b", "2")]),
        ),
        (
            JobParameters::from([("a", "1"), ("b", "2")]),
            JobParameters::from([("a", "1;b=2")]),
        ),
    ];
    for (first, second) in collisions {
        assert_eq!(first.job_key(), second.job_key());
        for fail in [None, Some("x")] {
            let stage = Stage::new(JOB);
            let also = |parameters: &JobParameters| match fail {
                Some(reason) => parameters.clone().with_non_identifying("fail", reason),
                None => parameters.clone(),
            };
            stage.launch("job", also(&first));
            let before = counts(&stage);
            let refused = stage.operator().launch("job", also(&second));
            assert!(has_same_key(refused));
            assert_eq!(counts(&stage), before, "something was written");
            // A `start` does not look for an instance.
            stage.start("job", also(&second));
        }
    }
}

/// An instance with typed parameters is resumed from the command line, which has texts only; an instance whose
/// executions were deleted starts from the beginning.
///
/// Spec: REPO-26, REPO-33, REPO-70, OP-36
#[test]
fn the_same_parameters_find_the_same_instance() {
    let stage = Stage::new(JOB);
    let typed = JobParameters::new()
        .with_parameter("day", ParameterValue::Long(1), true)
        .with_non_identifying("fail", "x");
    let first = stage.launch("job", typed);
    let second = stage.launch("job", [("day", "1")]);
    let job = |id| stage.operator().job_execution(id).unwrap().unwrap();
    assert_eq!(job(first).instance_id, job(second).instance_id);

    stage
        .connection()
        .batch_execute(
            "DELETE FROM BATCH_STEP_EXECUTION_CONTEXT; DELETE FROM BATCH_JOB_EXECUTION_CONTEXT;
             DELETE FROM BATCH_STEP_EXECUTION; DELETE FROM BATCH_JOB_EXECUTION_PARAMS; DELETE FROM BATCH_JOB_EXECUTION;",
        )
        .unwrap();
    let third = stage.launch("job", [("day", "1")]);
    assert_eq!(job(third).status, BatchStatus::Completed);
}

/// Spec: REPO-34, D-69
#[test]
fn invalid_numbers_are_rejected() {
    let stage = Stage::new(JOB);
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let parameters = |identifying| {
            JobParameters::new().with_parameter("rate", ParameterValue::Double(number), identifying)
        };
        for identifying in [true, false] {
            let operator = stage.operator();
            for refused in [
                operator.start("job", parameters(identifying)),
                operator.launch("job", parameters(identifying)),
            ] {
                assert!(
                    matches!(
                        &refused,
                        Err(JobOperatorError::JobStart {
                            cause: StartError::Parameter(_),
                            ..
                        })
                    ),
                    "{refused:?}"
                );
            }
        }
    }
    assert_eq!(stage.operator().job_instance_count("job").unwrap(), 0);
    let most = JobParameters::new().with_parameter("rate", ParameterValue::Double(f64::MAX), true);
    stage.launch("job", most);
}

/// Does something to the file of the repository.
#[derive(BatchArtifact)]
struct MovesRepository {
    #[batch_property(name = "do")]
    action: String,
    #[batch_property]
    file: PathBuf,
}

#[batchlet]
impl MovesRepository {
    #[process]
    fn process(&self) -> Result<(), BatchError> {
        let aside = self.file.with_extension("aside");
        match self.action.as_str() {
            "remove" => fs::remove_file(&self.file)?,
            "remove log" => fs::remove_file(self.file.with_extension("db-wal"))?,
            "move" => fs::rename(&self.file, aside)?,
            "replace" => {
                fs::copy(&self.file, &aside)?;
                fs::rename(aside, &self.file)?;
            }
            "empty" => fs::File::options().write(true).open(&self.file)?.set_len(0)?,
            "new directory" => {
                let directory = self.file.parent().ok_or("no directory")?;
                fs::rename(directory, directory.with_extension("aside"))?;
                fs::create_dir(directory)?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// A job whose repository is not at its path any more does not complete in a file that nobody sees again. When the file is back, the same
/// launch completes.
///
/// Spec: LOSS-01
#[test]
fn a_repository_that_is_moved_fails_its_jobs() {
    for action in [
        "remove",
        "remove log",
        "move",
        "replace",
        "empty",
        "new directory",
        "nothing",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("repository");
        fs::create_dir(&directory).unwrap();
        let file = directory.join("batch.db");
        let xml = format!(
            r#"<job id="moved"><step id="move"><batchlet ref="MovesRepository"><properties>
                 <property name="file" value="{}"/></properties></batchlet></step></job>"#,
            file.display()
        );
        fs::write(folder.path().join("moved.xml"), xml).unwrap();
        let launch = |parameter: &str| {
            let runtime = BatchRuntime::builder()
                .job_path(folder.path().display().to_string())
                .repository(format!("sqlite://{}", file.display()))
                .build()
                .unwrap();
            let operator = runtime.job_operator();
            let parameters = JobParameters::new().with_non_identifying("do", parameter);
            operator.wait(operator.launch("moved", parameters).unwrap())
        };
        match (action, launch(action)) {
            ("nothing", Ok(ended)) => assert_eq!(ended.status, BatchStatus::Completed),
            (_, Ok(ended)) => panic!("{action}: {}", ended.status),
            (_, Err(error)) => {
                let shown = format!("{error:?} {error}");
                assert!(shown.contains("while this program uses it"), "{action}: {shown}");
            }
        }
        match action {
            "move" => fs::rename(file.with_extension("aside"), &file).unwrap(),
            "new directory" => {
                fs::remove_dir_all(&directory).unwrap();
                fs::rename(directory.with_extension("aside"), &directory).unwrap();
            }
            _ => continue,
        }
        assert_eq!(
            launch("nothing").unwrap().status,
            BatchStatus::Completed,
            "{action}"
        );
    }
}

/// Spec: LOSS-01
#[cfg(unix)]
#[test]
fn a_repository_with_two_names_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("batch.db");
    drop(build(&format!("sqlite://{}", file.display())).unwrap());
    fs::hard_link(&file, folder.path().join("other.db")).unwrap();
    for name in ["batch.db", "other.db"] {
        let url = format!("sqlite://{}", folder.path().join(name).display());
        let error = build(&url).map(drop).unwrap_err().to_string();
        assert!(error.contains("the file has 2 names (hard links)"), "{error}");
    }
}

/// Changes the working directory of the process when the first record has passed.
#[derive(BatchArtifact)]
struct Wanders;

#[item_processor]
impl Wanders {
    #[process_item]
    fn process(&self, record: &Record) -> Result<Option<Record>, BatchError> {
        std::env::set_current_dir("/")?;
        Ok(Some(record.clone()))
    }
}

/// Relative paths of the repository and of outputs belong to the directory where the step was started.
///
/// Spec: LOSS-01
#[test]
fn a_change_of_the_working_directory_moves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let xml = r#"<job id="wandering"><step id="one">
        <chunk reader="csvRecordReader" processor="Wanders" writer="recordCsvWriter" commit-interval="1"><properties>
          <property name="resource" value="in.csv" target="reader"/><property name="output" value="out/o.csv" target="writer"/>
        </properties></chunk></step></job>"#;
    fs::write(here.join("wandering.xml"), xml).unwrap();
    fs::write(here.join("in.csv"), "id\n1\n2\n3\n").unwrap();
    own_process::run(
        "sqlite::files::a_change_of_the_working_directory_moves_nothing",
        here,
        || {
            let start = std::env::current_dir().unwrap();
            let runtime = BatchRuntime::builder()
                .job_path(".")
                .repository("sqlite://batch.db")
                .build()
                .unwrap();
            let operator = runtime.job_operator();
            let ended = operator.wait(operator.start("wandering", ()).unwrap()).unwrap();
            assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
            let output = fs::read_to_string(start.join("out/o.csv")).unwrap();
            assert_eq!(output, "id\n1\n2\n3\n");
            assert!(start.join("batch.db").exists());
        },
    );
}
