//! The repository on SQLite: its schema, its writers, its rejections.

mod files;
mod leases;
mod transactions;

use std::fs;
use std::path::{Path, PathBuf};

use batch_runtime::prelude::*;
use batch_runtime::{
    BatchRuntime, BatchStatus, JobExecutionId, JobOperatorError, JobParameters, ParameterValue, Timestamp,
    operator::StartError,
};
use batch_tests::sqlite;
use batch_tests::stage::{Stage, say};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::Text;

const JOB: &str = r#"<job id="job"><step id="one"><batchlet ref="Meddler"/></step></job>"#;

/// Runs a statement on the repository from outside while its step runs, then fails if its property is set.
#[derive(BatchArtifact)]
struct Meddler {
    #[batch_property(name = "folder")]
    folder: PathBuf,
    #[batch_property(name = "log")]
    log: String,
    #[batch_property(name = "statement")]
    statement: Option<String>,
    #[batch_property(name = "fail")]
    fail: Option<String>,
    #[batch_context]
    step: StepContext,
}

#[batchlet("Meddler")]
impl Meddler {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let kept: Option<u32> = self.step.persistent_user_data()?;
        say(&self.log, format!("process {kept:?}"));
        self.step.set_persistent_user_data(&(kept.unwrap_or(0) + 1))?;
        if let Some(statement) = &self.statement {
            sqlite::open(&self.folder.join("batch.db")).batch_execute(statement)?;
        }
        match &self.fail {
            Some(reason) => Err(BatchError::msg(reason)),
            None => Ok("DONE".into()),
        }
    }
    #[cancel]
    fn cancel(&self) {}
}

#[derive(QueryableByName, Debug, PartialEq)]
struct Row {
    #[diesel(sql_type = Text)]
    text: String,
}

fn rows(connection: &mut SqliteConnection, query: &str) -> Vec<String> {
    let rows: Vec<Row> = diesel::sql_query(query).load(connection).unwrap();
    rows.into_iter().map(|row| row.text).collect()
}

fn open_error(url: &str) -> String {
    match BatchRuntime::builder().repository(url).build() {
        Ok(_) => panic!("{url} was opened"),
        Err(error) => error.to_string(),
    }
}

/// The schema file equals the result of the migrations.
///
/// Spec: REPO-01, REPO-05, REPO-08, REPO-12
#[test]
fn the_schema_file_equals_the_migrations() {
    let folder = tempfile::tempdir().unwrap();
    let (migrated, whole) = (folder.path().join("migrated.db"), folder.path().join("whole.db"));
    for _ in 0..2 {
        BatchRuntime::builder()
            .repository(format!("sqlite://{}", migrated.display()))
            .build()
            .unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations/schema-sqlite.sql");
    sqlite::open(&whole)
        .batch_execute(&fs::read_to_string(script).unwrap())
        .unwrap();
    let shape = "SELECT sql AS text FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE '__diesel%' \
                 AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let shape = |file: &Path| rows(&mut sqlite::open(file), shape);
    assert_eq!(shape(&migrated), shape(&whole));
    assert_eq!(
        shape(&whole)
            .iter()
            .filter(|sql| sql.starts_with("CREATE TABLE"))
            .count(),
        17
    );
}

/// Spec: REPO-23, REPO-24, REPO-25, REPO-26, REPO-27, REPO-40, REPO-41, REPO-42, REPO-43, REPO-44, REPO-45, REPO-46, REPO-47, REPO-50, REPO-51, REPO-52, REPO-53, REPO-54, REPO-55, REPO-56, REPO-57, REPO-58, REPO-59, REPO-60, REPO-61, REPO-64, REPO-67, REPO-14, REPO-18, REPO-19,
/// Spec: REPO-20, REPO-21, REPO-39, REPO-49, REPO-54, REPO-65, REPO-68, REPO-86, ID-05
#[test]
fn a_run_leaves_the_rows_of_spring_batch_4_3() {
    let stage = Stage::new(JOB);
    stage.start("job", JobParameters::new());
    let connection = &mut stage.connection();
    let check = |connection: &mut SqliteConnection, query: &str, expected: &[&str]| {
        assert_eq!(rows(connection, query), expected, "{query}");
    };
    check(
        connection,
        "SELECT JOB_INSTANCE_ID || ' ' || VERSION || ' ' || JOB_NAME || ' ' || JOB_KEY AS text FROM BATCH_JOB_INSTANCE",
        &["1 0 job cbef88237020a799f353b7458263026a"],
    );
    check(
        connection,
        "SELECT JOB_EXECUTION_ID || ' ' || VERSION || ' ' || JOB_INSTANCE_ID || ' ' || STATUS || ' ' || EXIT_CODE || \
         '[' || EXIT_MESSAGE || '] ' || typeof(CREATE_TIME) || ' ' || (CREATE_TIME <= START_TIME AND START_TIME <= END_TIME \
         AND END_TIME <= LAST_UPDATED) || ' ' || (JOB_CONFIGURATION_LOCATION LIKE '%job.xml') AS text FROM BATCH_JOB_EXECUTION",
        &["1 2 1 COMPLETED COMPLETED[] integer 1 1"],
    );
    check(
        connection,
        "SELECT STEP_EXECUTION_ID || ' ' || VERSION || ' ' || STEP_NAME || ' ' || STATUS || ' ' || EXIT_CODE || ' ' || \
         (COMMIT_COUNT + READ_COUNT + FILTER_COUNT + WRITE_COUNT + READ_SKIP_COUNT + WRITE_SKIP_COUNT + \
         PROCESS_SKIP_COUNT + ROLLBACK_COUNT) || ' ' || (START_TIME <= END_TIME) AS text FROM BATCH_STEP_EXECUTION",
        &["1 2 one COMPLETED DONE 0 1"],
    );
    check(
        connection,
        "SELECT KEY_NAME || ' ' || TYPE_CD || ' [' || STRING_VAL || '] ' || DATE_VAL || ' ' || LONG_VAL || ' ' || DOUBLE_VAL \
         || ' ' || IDENTIFYING AS text FROM BATCH_JOB_EXECUTION_PARAMS",
        &["jsr_batch_run_id LONG [] 0 1 0.0 Y"],
    );
    let context = "SELECT SHORT_CONTEXT || ' ' || ifnull(SERIALIZED_CONTEXT, 'NULL') AS text FROM ";
    check(
        connection,
        &format!("{context} BATCH_JOB_EXECUTION_CONTEXT"),
        &[r#"{"@class":"java.util.HashMap"} NULL"#],
    );
    check(
        connection,
        &format!("{context} BATCH_STEP_EXECUTION_CONTEXT"),
        &[r#"{"@class":"java.util.HashMap","batch.persistent.user.data":"1"} NULL"#],
    );
    for sequence in [
        "BATCH_JOB_SEQ",
        "BATCH_JOB_EXECUTION_SEQ",
        "BATCH_STEP_EXECUTION_SEQ",
    ] {
        check(
            connection,
            &format!("SELECT '' || ID AS text FROM {sequence}"),
            &["1"],
        );
    }
    check(
        connection,
        "SELECT EXPIRES_AT || ' ' || FENCE AS text FROM BATCH_JOB_INSTANCE_LEASE",
        &["-1 1"],
    );
}

/// Spec: REPO-02, REPO-03, REPO-28, REPO-30, REPO-32, REPO-33, REPO-34, REPO-35, REPO-36, REPO-38, REPO-75, OP-06
#[test]
fn parameters_of_every_type_are_restored() {
    let stage = Stage::new(JOB);
    let parameters = JobParameters::from([("text", "é漢😀 \"'")])
        .with_non_identifying("note", "")
        .with_parameter("long", ParameterValue::Long(i64::MIN), true)
        .with_parameter("double", ParameterValue::Double(1.5), false)
        .with_parameter("date", ParameterValue::Date(Timestamp(1_704_067_200_123)), true);
    let execution = stage.launch("job", parameters.clone());
    assert_eq!(stage.operator().parameters(execution).unwrap(), parameters);
    // Values that Spring Batch may leave: NULL instead of fillers, a lower-case flag.
    stage
        .connection()
        .batch_execute(
            "UPDATE BATCH_JOB_EXECUTION_PARAMS SET STRING_VAL = NULL, DOUBLE_VAL = NULL WHERE TYPE_CD = 'LONG';
             UPDATE BATCH_JOB_EXECUTION_PARAMS SET IDENTIFYING = 'y' WHERE IDENTIFYING = 'Y';",
        )
        .unwrap();
    assert_eq!(stage.operator().parameters(execution).unwrap(), parameters);
    stage
        .connection()
        .batch_execute("UPDATE BATCH_JOB_EXECUTION_PARAMS SET TYPE_CD = 'BLOB'")
        .unwrap();
    let error = stage.operator().parameters(execution).unwrap_err().to_string();
    assert!(error.contains("has TYPE_CD \"BLOB\""), "{error}");
}

/// Spec: REPO-31, REPO-32, D-69
#[test]
fn parameters_wider_than_their_columns_are_rejected_before_anything_is_written() {
    let stage = Stage::new(JOB);
    for (name, value) in [
        ("n".repeat(101), "v".into()),
        ("text".into(), "é".repeat(251)),
        ("text".into(), "\0".into()),
    ] {
        let error = stage.operator().start("job", [(name, value)]).unwrap_err();
        assert!(
            matches!(
                &error,
                JobOperatorError::JobStart {
                    cause: StartError::Parameter(_),
                    ..
                }
            ),
            "{error}"
        );
    }
    assert_eq!(stage.operator().job_instance_count("job").unwrap(), 0);
    stage.launch("job", [("text", "é".repeat(250))]);
}

/// Another program follows other rules.
const WITHOUT_CHECKS: &str =
    "DROP TRIGGER final_BATCH_JOB_EXECUTION; DROP TRIGGER final_BATCH_STEP_EXECUTION;
     DROP TRIGGER edge_BATCH_JOB_EXECUTION; DROP TRIGGER edge_BATCH_STEP_EXECUTION;";

/// Leaves an execution as a runtime does that died in the middle of its step.
pub(super) fn die(stage: &Stage, execution: JobExecutionId, owner: &str, expires_at: &str) {
    stage
        .connection()
        .batch_execute(&format!(
            "{WITHOUT_CHECKS}
             UPDATE BATCH_JOB_EXECUTION SET STATUS = 'STARTED', END_TIME = NULL, EXIT_MESSAGE = '', VERSION = VERSION + 1
                WHERE JOB_EXECUTION_ID = {execution};
             UPDATE BATCH_STEP_EXECUTION SET STATUS = 'STARTED', END_TIME = NULL, VERSION = VERSION + 1
                WHERE JOB_EXECUTION_ID = {execution};
             UPDATE BATCH_JOB_INSTANCE_LEASE SET OWNER = '{owner}', EXPIRES_AT = {expires_at};"
        ))
        .unwrap();
}

const IN_AN_HOUR: &str = "CAST(unixepoch('subsec') * 1000 AS INTEGER) + 3600000";

/// An owner on another host is considered alive until its lease expires; then its execution is closed and resumed.
///
/// Spec: OP-34, OP-35, REPO-44, RESTART-01, RESTART-08, RESTART-14
#[test]
fn an_expired_lease_is_taken_over_and_a_valid_one_is_not() {
    let stage = Stage::configured(JOB, leases::short_lease);
    let first = stage.launch("job", [("fail", "no disk")]);
    die(&stage, first, "elsewhere/1/00ff/locked", IN_AN_HOUR);
    let refused = stage.operator().launch("job", [("fail", "no disk")]).unwrap_err();
    assert!(
        matches!(&refused, JobOperatorError::JobExecutionAlreadyRunning { execution, owner, .. }
            if *execution == first && owner.starts_with("elsewhere")),
        "{refused}"
    );
    let refused = stage.operator().restart(first, JobParameters::new()).unwrap_err();
    assert!(
        matches!(
            refused,
            JobOperatorError::JobRestart {
                cause: StartError::Running { .. },
                ..
            }
        ),
        "{refused}"
    );

    die_again(&stage);
    // Its lease was valid a moment ago, so it has to be observed.
    let operator = stage.operator();
    let second = loop {
        match operator.restart(first, JobParameters::new()) {
            Err(JobOperatorError::JobRestart {
                cause: StartError::Running { .. },
                ..
            }) => std::thread::yield_now(),
            restarted => break restarted.unwrap(),
        }
    };
    operator.wait(second).unwrap();
    assert_eq!(stage.log(), ["process None", "process Some(1)"]);
    let closed = stage.operator().job_execution(first).unwrap().unwrap();
    assert_eq!(
        (closed.status, closed.exit_status.as_str()),
        (BatchStatus::Failed, "CRASHED")
    );
    assert!(
        closed.exit_message.contains("elsewhere/1/00ff") && closed.ended.is_some(),
        "{}",
        closed.exit_message
    );
    let step = &stage.operator().step_executions(first).unwrap()[0];
    assert_eq!(
        (step.status, step.exit_status.as_str()),
        (BatchStatus::Failed, "CRASHED")
    );
    assert!(
        stage
            .operator()
            .job_execution(second)
            .unwrap()
            .unwrap()
            .exit_message
            .contains("no disk")
    );
    // A manual restart does not count as a consecutive crash.
    let fence = "SELECT FENCE || ' ' || TAKEOVERS AS text FROM BATCH_JOB_INSTANCE_LEASE";
    assert_eq!(rows(&mut stage.connection(), fence), ["2 0"]);
}

fn die_again(stage: &Stage) {
    stage
        .connection()
        .batch_execute("UPDATE BATCH_JOB_INSTANCE_LEASE SET EXPIRES_AT = 0")
        .unwrap();
}

/// An execution of Spring Batch has no lease; it is considered dead only if the operator declares it.
///
/// Spec: OP-34, OP-35
#[test]
fn an_open_execution_without_a_lease_runs_in_another_program() {
    let stage = Stage::new(JOB);
    let first = stage.launch("job", [("fail", "x")]);
    die(&stage, first, "", "0");
    stage
        .connection()
        .batch_execute("DELETE FROM BATCH_JOB_INSTANCE_LEASE")
        .unwrap();
    let refused = stage
        .operator()
        .launch("job", [("fail", "x")])
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("another program that keeps no lease"),
        "{refused}"
    );
    // The operator overrides it.
    stage.operator().declare_dead(first).unwrap();
    let expected = "job job FAILED CRASHED\n  | the process that ran it died or lost its lease\n\
                    \x20 step one FAILED CRASHED";
    let tree = stage.tree(first);
    assert!(tree.starts_with(expected), "{tree}");
    let again = stage.operator().declare_dead(first).unwrap_err();
    assert!(
        matches!(again, JobOperatorError::JobExecutionNotRunning(_)),
        "{again}"
    );
    let second = stage.launch("job", [("fail", "x")]);
    assert_eq!(
        stage
            .operator()
            .job_execution(second)
            .unwrap()
            .unwrap()
            .instance_id
            .0,
        1
    );
}

/// A runtime that was taken over writes nothing more: the VERSION of every row differs from the one it expects.
///
/// Spec: REPO-15, REPO-16, OP-35
#[test]
fn a_runtime_that_was_taken_over_is_fenced() {
    for statement in [
        "UPDATE BATCH_STEP_EXECUTION SET VERSION = VERSION + 1, STATUS = 'FAILED', END_TIME = 9999999999999",
        "UPDATE BATCH_JOB_EXECUTION SET VERSION = VERSION + 1, STATUS = 'FAILED', END_TIME = 9999999999999",
        "UPDATE BATCH_JOB_INSTANCE_LEASE SET FENCE = FENCE + 1",
    ] {
        let stage = Stage::new(JOB);
        let execution = stage.operator().start("job", [("statement", statement)]).unwrap();
        let lost = stage.operator().wait(execution).unwrap_err();
        assert!(
            lost.to_string()
                .contains("another runtime has taken this execution over"),
            "{lost}"
        );
        let job = stage.operator().job_execution(execution).unwrap().unwrap();
        assert_ne!(job.status, BatchStatus::Completed, "{statement}");
        if statement.contains("BATCH_STEP") {
            let step = &stage.operator().step_executions(execution).unwrap()[0];
            assert_eq!(
                (step.status, step.exit_status.as_str()),
                (BatchStatus::Failed, "EXECUTING")
            );
        }
    }
}

/// A stop request of another program in the job row is adopted, and not taken for a fence.
///
/// Spec: REPO-17, STATUS-26, OP-17
#[test]
fn a_stop_request_from_outside_is_adopted() {
    let stage = Stage::new(JOB);
    let stop = "UPDATE BATCH_JOB_EXECUTION SET VERSION = VERSION + 1, STATUS = 'STOPPING'";
    let execution = stage.start("job", [("statement", stop)]);
    let job = stage.operator().job_execution(execution).unwrap().unwrap();
    assert_eq!(
        (job.status, job.exit_status.as_str(), job.version),
        (BatchStatus::Stopped, "STOPPED", 3)
    );
}

/// Spec: REPO-26, REPO-27, REPO-70, REPO-72
#[test]
fn a_deleted_instance_is_forgotten() {
    let stage = Stage::new(JOB);
    let execution = stage.launch("job", [("fail", "x")]);
    stage
        .connection()
        .batch_execute(
            "DELETE FROM BATCH_STEP_EXECUTION_CONTEXT; DELETE FROM BATCH_JOB_EXECUTION_CONTEXT;
             DELETE FROM BATCH_STEP_EXECUTION; DELETE FROM BATCH_JOB_EXECUTION_PARAMS; DELETE FROM BATCH_JOB_EXECUTION;
             DELETE FROM BATCH_JOB_INSTANCE;",
        )
        .unwrap();
    let gone = stage
        .operator()
        .restart(execution, JobParameters::new())
        .unwrap_err();
    assert!(
        matches!(gone, JobOperatorError::NoSuchJobExecution(id) if id == execution),
        "{gone}"
    );
    stage.log();
    stage.launch("job", [("fail", "x")]);
    assert_eq!(stage.log(), ["process None"], "the job begins anew");
}

/// Spec: REPO-73, RESTART-17
#[test]
fn a_deleted_context_means_no_checkpoint() {
    let stage = Stage::new(JOB);
    let execution = stage.launch("job", [("fail", "x")]);
    stage
        .connection()
        .batch_execute("DELETE FROM BATCH_STEP_EXECUTION_CONTEXT")
        .unwrap();
    stage.restart(execution);
    assert_eq!(stage.log(), ["process None", "process None"]);
}

/// Spec: REPO-06, REPO-07
#[test]
fn other_databases_are_rejected_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let url = |name: &str| format!("sqlite://{}", folder.path().join(name).display());
    let check = |name: &str, reason: &str| {
        let error = open_error(&url(name));
        assert!(error.contains(name) && error.contains(reason), "{error}");
    };
    check("no/such/folder.db", "unable to open database file");
    check("", "unable to open database file");
    fs::write(
        folder.path().join("text.db"),
        "this is no database, but long enough to be taken for one".repeat(100),
    )
    .unwrap();
    check("text.db", "file is not a database");

    let spring5 =
        "CREATE TABLE BATCH_JOB_EXECUTION_PARAMS (JOB_EXECUTION_ID BIGINT, PARAMETER_TYPE VARCHAR(100))";
    sqlite::open(&folder.path().join("spring5.db"))
        .batch_execute(spring5)
        .unwrap();
    check("spring5.db", "layout of Spring Batch 5 except for");
    let foreign = "CREATE TABLE BATCH_JOB_INSTANCE (JOB_INSTANCE_ID BIGINT)";
    sqlite::open(&folder.path().join("foreign.db"))
        .batch_execute(foreign)
        .unwrap();
    check("foreign.db", "created by another program");
    BatchRuntime::builder()
        .repository(url("newer.db"))
        .build()
        .unwrap();
    let newer = "INSERT INTO __diesel_schema_migrations (version) VALUES ('0000000000999')";
    sqlite::open(&folder.path().join("newer.db"))
        .batch_execute(newer)
        .unwrap();
    check("newer.db", "schema has version 0000000000999");
    // An additional index and an additional column are accepted.
    BatchRuntime::builder()
        .repository(url("more.db"))
        .build()
        .unwrap();
    let more = "ALTER TABLE BATCH_JOB_EXECUTION ADD COLUMN NOTE TEXT; CREATE INDEX MINE ON BATCH_JOB_EXECUTION (STATUS)";
    sqlite::open(&folder.path().join("more.db"))
        .batch_execute(more)
        .unwrap();
    let runtime = BatchRuntime::builder()
        .repository(url("more.db"))
        .job_path(folder.path().display().to_string());
    assert!(
        runtime
            .build()
            .unwrap()
            .job_operator()
            .job_names()
            .unwrap()
            .is_empty()
    );
}

/// Ids and launches under contention: every start gets its own instance; of many launches one gets the instance.
///
/// Spec: REPO-22, OP-34, OP-36, DOM-09, ID-03, ID-04, ID-07
#[test]
fn many_threads_start_and_launch_at_once() {
    let stage = Stage::new(JOB);
    let runtimes: Vec<BatchRuntime> = (0..8).map(|_| stage.another_runtime()).collect();
    let started: Vec<JobExecutionId> = std::thread::scope(|scope| {
        let threads: Vec<_> = runtimes
            .iter()
            .map(|runtime| scope.spawn(|| runtime.job_operator().start("job", JobParameters::new()).unwrap()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for execution in &started {
        assert_eq!(
            stage.operator().wait(*execution).unwrap().status,
            BatchStatus::Completed
        );
    }
    assert_eq!(stage.operator().job_instance_count("job").unwrap(), 8);

    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = runtimes
            .iter()
            .map(|runtime| scope.spawn(|| runtime.job_operator().launch("job", [("day", "1")])))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let winners: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| outcome.as_ref().ok())
        .collect();
    assert_eq!(winners.len(), 1, "{outcomes:?}");
    for refused in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert!(
            matches!(
                refused,
                JobOperatorError::JobExecutionAlreadyRunning { .. }
                    | JobOperatorError::JobInstanceAlreadyComplete { .. }
            ),
            "{refused}"
        );
    }
}

/// Every column with its type and nullability, as Spring Batch 4.3 creates them for SQLite.
///
/// Spec: REPO-02, REPO-13, REPO-23, REPO-24, REPO-25, REPO-26, REPO-29, REPO-30, REPO-31, REPO-32, REPO-33, REPO-34, REPO-35
/// Spec: REPO-36, REPO-37, REPO-40, REPO-41, REPO-42, REPO-43, REPO-45, REPO-46, REPO-47, REPO-50, REPO-51, REPO-52, REPO-54
/// Spec: REPO-55, REPO-56, REPO-57, REPO-58, REPO-59, REPO-60, REPO-61, REPO-64, REPO-67
#[test]
fn the_columns_are_those_of_spring_batch() {
    let stage = Stage::new(JOB);
    let columns = "SELECT m.name || '.' || c.name || ' ' || c.type || CASE WHEN c.\"notnull\" THEN ' NOT NULL' ELSE '' END
            || CASE WHEN c.pk THEN ' PRIMARY KEY' ELSE '' END AS text
         FROM sqlite_master m, pragma_table_info(m.name) c
         WHERE m.type = 'table' AND m.name LIKE 'BATCH_%' AND m.name NOT LIKE '%_LEASE' ORDER BY m.name, c.cid";
    insta::assert_snapshot!(rows(&mut stage.connection(), columns).join("\n"));
    let keys = "SELECT m.name || ' -> ' || k.\"table\" || '.' || k.\"to\" AS text FROM sqlite_master m,
         pragma_foreign_key_list(m.name) k WHERE m.name LIKE 'BATCH_%' ORDER BY 1";
    let expected = [
        "BATCH_JOB_EXECUTION -> BATCH_JOB_INSTANCE.JOB_INSTANCE_ID",
        "BATCH_JOB_EXECUTION_CONTEXT -> BATCH_JOB_EXECUTION.JOB_EXECUTION_ID",
        "BATCH_JOB_EXECUTION_PARAMS -> BATCH_JOB_EXECUTION.JOB_EXECUTION_ID",
        "BATCH_STEP_EXECUTION -> BATCH_JOB_EXECUTION.JOB_EXECUTION_ID",
        "BATCH_STEP_EXECUTION_CONTEXT -> BATCH_STEP_EXECUTION.STEP_EXECUTION_ID",
    ];
    assert_eq!(rows(&mut stage.connection(), keys), expected);
}

/// The database itself rejects two instances with one key.
///
/// Spec: REPO-27, REPO-78
#[test]
fn the_database_rejects_two_instances_with_one_key() {
    let stage = Stage::new(JOB);
    stage.launch("job", [("day", "1")]);
    let again = "INSERT INTO BATCH_JOB_INSTANCE (JOB_INSTANCE_ID, JOB_NAME, JOB_KEY) SELECT 99, JOB_NAME, JOB_KEY FROM BATCH_JOB_INSTANCE";
    let refused = stage.connection().batch_execute(again).unwrap_err().to_string();
    assert!(refused.contains("UNIQUE constraint failed"), "{refused}");
}

/// The counters of a new execution start at 0, and a job that is not restartable gets no second execution.
///
/// Spec: REPO-63, REPO-71, RESTART-02, JSL-JOB-04, D-83
#[test]
fn a_job_that_is_not_restartable_has_one_execution() {
    let stage = Stage::new(&JOB.replace("id=\"job\"", "id=\"job\" restartable=\"false\""));
    let execution = stage.launch("job", [("fail", "x")]);
    let refused = stage.operator().launch("job", [("fail", "x")]).unwrap_err();
    assert!(
        matches!(
            refused,
            JobOperatorError::JobStart {
                cause: StartError::NotRestartable { .. },
                ..
            }
        ),
        "{refused}"
    );
    let refused = stage
        .operator()
        .restart(execution, JobParameters::new())
        .unwrap_err();
    assert!(
        matches!(
            refused,
            JobOperatorError::JobRestart {
                cause: StartError::NotRestartable { .. },
                ..
            }
        ),
        "{refused}"
    );
    assert_eq!(stage.executions(batch_runtime::JobInstanceId(1)), [execution]);
    stage.start("job", [("fail", "x")]);
}

/// Spring Batch writes UNKNOWN if it could not record how an execution, or a step, has ended: what it has written is not known.
///
/// Spec: REPO-92
#[test]
fn an_unknown_end_is_resumed_once_it_is_accepted() {
    for table in ["BATCH_JOB_EXECUTION", "BATCH_STEP_EXECUTION"] {
        let stage = Stage::new(JOB);
        let first = stage.launch("job", [("fail", "x")]);
        let unknown = format!(
            "{WITHOUT_CHECKS} UPDATE {table} SET STATUS = 'UNKNOWN', VERSION = VERSION + 1, EXIT_MESSAGE = 'no connection'"
        );
        stage.connection().batch_execute(&unknown).unwrap();
        let refused = match stage.operator().launch("job", [("fail", "x")]) {
            Err(refused) => refused.to_string(),
            Ok(started) => stage.operator().wait(started).unwrap().exit_message,
        };
        assert!(
            refused.contains("recover --accept-unknown 1 --reason TEXT"),
            "{refused}"
        );
        assert_eq!(stage.log().len(), 1, "it does not run");

        stage
            .operator()
            .accept_unknown(first, "the rows are right")
            .unwrap();
        let accepted = format!("SELECT STATUS || ': ' || EXIT_MESSAGE AS text FROM {table} LIMIT 1");
        let expected =
            "FAILED: its status was UNKNOWN, and is accepted as FAILED: the rows are right\nno connection";
        assert_eq!(rows(&mut stage.connection(), &accepted), [expected]);
        let again = stage.operator().accept_unknown(first, "").unwrap_err();
        assert!(
            matches!(again, JobOperatorError::JobExecutionNotUnknown(_)),
            "{again}"
        );
        stage.launch("job", [("fail", "x")]);
        assert_eq!(stage.log().len(), 1, "{table}: it runs again");
    }
}

/// Spring Batch abandons a step whose failure a transition has passed.
///
/// Spec: REPO-92
#[test]
fn a_step_that_spring_batch_has_abandoned_does_not_run_again() {
    let stage = Stage::new(
        r#"<job id="job"><properties><property name="fail" value="x"/></properties>
             <step id="one"><batchlet ref="Meddler"/><next on="FAILED" to="two"/></step>
             <step id="two"><batchlet ref="Meddler"/></step></job>"#,
    );
    let first = stage.launch("job", [("day", "1")]);
    let abandoned =
        "UPDATE BATCH_STEP_EXECUTION SET STATUS = 'ABANDONED', VERSION = VERSION + 1 WHERE STEP_NAME = 'one'";
    let abandoned = format!("{WITHOUT_CHECKS} {abandoned}");
    stage.connection().batch_execute(&abandoned).unwrap();
    let second = stage.restart(first);
    let steps = stage.operator().step_executions(second).unwrap();
    let names: Vec<&str> = steps.iter().map(|step| &*step.step_name).collect();
    assert_eq!(names, ["two"]);
}
