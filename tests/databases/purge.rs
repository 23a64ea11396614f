//! Removal from the repository, on each database: purge, archive, export and import.

use batch_runtime::operator::{Imported, Purge};
use batch_runtime::{
    BatchStatus, JobInstanceId, JobOperatorError, JobParameters, ParameterValue, Timestamp,
    repository::ExecutionFilter,
};
use batch_tests::database::Database;
use batch_tests::stage::Stage;

use super::jobs::{CHUNK, SUM};

const TABLES: [&str; 7] = [
    "BATCH_JOB_INSTANCE",
    "BATCH_JOB_EXECUTION",
    "BATCH_JOB_EXECUTION_PARAMS",
    "BATCH_JOB_EXECUTION_CONTEXT",
    "BATCH_STEP_EXECUTION",
    "BATCH_STEP_EXECUTION_CONTEXT",
    "BATCH_JOB_INSTANCE_LEASE",
];

/// The number of rows of each table.
fn rows(stage: &Stage) -> Vec<i64> {
    let mut outside = stage.outside();
    TABLES
        .iter()
        .map(|table| outside.number(&format!("SELECT COUNT(*) FROM {table}")))
        .collect()
}

fn stage(database: Database) -> Stage {
    let stage = Stage::on(database, CHUNK);
    stage
        .outside()
        .execute("CREATE TABLE written (n INTEGER)")
        .unwrap();
    stage
}

/// Runs an instance of this day, which fails at a number.
fn day(day: &str, fails_at: &str) -> JobParameters {
    JobParameters::from([("to", "25"), ("day", day)]).with_non_identifying("fails-at", fails_at)
}

fn ids(found: Vec<batch_runtime::execution::JobInstance>) -> Vec<i64> {
    found.into_iter().map(|instance| instance.id.0).collect()
}

/// Complete instances are purged with all their rows, resumable ones only with force; the newest are kept if requested.
///
/// Spec: REPO-01, OP-36
#[test]
fn finished_instances_are_purged() {
    for database in Database::ALL {
        let stage = stage(database);
        let operator = stage.operator();
        for (name, fails_at) in [("1", "0"), ("2", "13"), ("3", "0"), ("4", "0")] {
            stage.launch("job", day(name, fails_at));
        }
        let all = Purge::default();
        let purgeable = |what: &Purge| ids(operator.purgeable(what).unwrap());
        assert_eq!(purgeable(&all), [1, 3, 4], "{database:?}");
        assert_eq!(
            purgeable(&Purge {
                keep: 2,
                ..all.clone()
            }),
            [1],
            "{database:?}"
        );
        assert_eq!(
            purgeable(&Purge {
                keep: 9,
                ..all.clone()
            }),
            [0_i64; 0],
            "{database:?}"
        );
        let forced = Purge {
            force: true,
            ..all.clone()
        };
        assert_eq!(purgeable(&forced), [1, 2, 3, 4], "{database:?}");
        let of_other = Purge {
            job: Some("other".into()),
            ..all.clone()
        };
        assert_eq!(purgeable(&of_other), [0_i64; 0], "{database:?}");
        let before = |ended: Timestamp| {
            purgeable(&Purge {
                before: Some(ended),
                ..all.clone()
            })
        };
        let executions = operator.find_executions(&ExecutionFilter::default()).unwrap();
        let last = executions[0].ended.unwrap();
        assert!(!before(last).contains(&4), "{database:?}");
        assert_eq!(before(Timestamp(last.0 + 1)), [1, 3, 4], "{database:?}");

        let mut archive = Vec::new();
        assert_eq!(
            operator.purge(&all, Some(&mut archive)).unwrap(),
            3,
            "{database:?}"
        );
        let left = rows(&stage);
        assert_eq!(left[..2], [1, 1], "{database:?}");
        assert_eq!(left[3..], [1, 1, 1, 1], "{database:?}");
        // The remaining instance is resumed, and then purged, too.
        stage.launch("job", day("2", "0"));
        assert_eq!(operator.purge(&all, None).unwrap(), 1, "{database:?}");
        assert_eq!(rows(&stage), [0; 7], "{database:?}");
        // The archived instances are imported again.
        for line in String::from_utf8(archive).unwrap().lines() {
            operator.import(line).unwrap();
        }
        assert_eq!(purgeable(&all).len(), 3, "{database:?}");
        let complete = operator.launch("job", day("3", "0")).unwrap_err();
        assert!(
            matches!(complete, JobOperatorError::JobInstanceAlreadyComplete { .. }),
            "{database:?}: {complete}"
        );
    }
}

/// A failed instance is exported from one database and imported into another, and resumes there with its parameters of
/// all types, checkpoints, counters and times.
///
/// Spec: REPO-01, RESTART-08
#[test]
fn an_instance_moves_to_another_database() {
    for (number, from) in Database::ALL.into_iter().enumerate() {
        let to = Database::ALL[(number + 1) % Database::ALL.len()];
        let (old, new) = (stage(from), stage(to));
        let parameters = day("1", "23")
            .with_parameter("number", ParameterValue::Long(-7), true)
            .with_parameter("rate", ParameterValue::Double(0.25), false)
            .with_parameter("date", ParameterValue::Date(Timestamp(951_782_400_123)), true);
        let failed = old.launch("job", parameters.clone());
        let line = old.operator().export(JobInstanceId(1)).unwrap().unwrap();
        // Ids in that database differ.
        new.launch("job", day("2", "0"));
        let instance = new.operator().import(&line).unwrap().id();
        let imported = new.executions(instance);
        assert_eq!(new.tree(imported[0]), old.tree(failed), "{from:?} {to:?}");
        let parameters_of = |stage: &Stage, id| stage.operator().parameters(id).unwrap();
        assert_eq!(parameters_of(&new, imported[0]), parameters_of(&old, failed));
        let times = |stage: &Stage, id| {
            let execution = stage.operator().job_execution(id).unwrap().unwrap();
            (execution.created, execution.started, execution.ended)
        };
        assert_eq!(times(&new, imported[0]), times(&old, failed), "{from:?} {to:?}");

        new.outside().execute("DELETE FROM written").unwrap();
        new.log();
        let second = new.launch("job", parameters.with_non_identifying("fails-at", "0"));
        let ended = new.operator().job_execution(second).unwrap().unwrap();
        assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
        assert_eq!(ended.instance_id, instance);
        assert_eq!(new.log(), ["open Some(20)"], "{from:?} {to:?}");
        assert_eq!(new.outside().number(SUM), 5_000_115, "{from:?} {to:?}");
        // It has run since, so a second import is rejected.
        let twice = new.operator().import(&line).unwrap_err().to_string();
        assert!(
            twice.contains("job `job` already has another instance with the key"),
            "{twice}"
        );
    }
}

/// An imported instance may have the key that the next start would give to a new one.
///
/// Spec: OP-36, D-56
#[test]
fn a_start_passes_over_the_keys_of_imported_instances() {
    for database in Database::ALL {
        let (old, new) = (stage(database), stage(database));
        old.start("job", day("1", "0"));
        old.start("job", day("1", "0"));
        let line = old.operator().export(JobInstanceId(2)).unwrap().unwrap();
        assert_eq!(new.operator().import(&line).unwrap().id(), JobInstanceId(1));
        let started = new.start("job", day("1", "0"));
        let ended = new.operator().job_execution(started).unwrap().unwrap();
        assert_eq!(
            ended.status,
            BatchStatus::Completed,
            "{database:?}: {}",
            ended.exit_message
        );
        assert_eq!(ended.instance_id, JobInstanceId(3), "{database:?}");
    }
}

/// Lines that are not exported instances, and instances that have not ended, are rejected.
#[test]
fn invalid_imports_are_rejected() {
    let stage = stage(Database::Sqlite);
    let operator = stage.operator();
    stage.launch("job", day("1", "0"));
    let line = operator.export(JobInstanceId(1)).unwrap().unwrap();
    assert_eq!(operator.export(JobInstanceId(77)).unwrap(), None);
    for (wrong, problem) in [
        (String::new(), "not an exported instance: "),
        (
            line.replace("batch-instance/1", "batch-instance/2"),
            "unknown format `batch-instance/2`",
        ),
        (
            line.replace("COMPLETED", "STARTED"),
            "execution 1 was STARTED when it was exported",
        ),
        (
            line.replace("jobKey", "key"),
            "not an exported instance: unknown field `key`",
        ),
        (
            line.replace(r#""job":"job""#, r#""job":"j\u001b[31mob""#),
            r#"invalid instance: job "j\u{1b}[31mob": the id contains the control character '\u{1b}'"#,
        ),
        (
            line.replace(r#""step":"one""#, r#""step":"a\u0000b""#),
            r#"step "a\0b": the id contains the control character '\0'"#,
        ),
        (
            line.replace(r#""job":"job""#, &format!(r#""job":"{}""#, "x".repeat(200))),
            "the id is longer than 100 characters",
        ),
        (
            line.replace(r#""name":"day""#, r#""name":"d\u0000""#),
            "the name contains a NUL character",
        ),
        (
            line.replace(r#""exitMessage":"""#, r#""exitMessage":"\u0000""#),
            "the exit message contains a NUL character",
        ),
        (
            line.replace("\"version\":2", "\"version\":3"),
            "job `job` already has another instance with the key",
        ),
    ] {
        let error = operator.import(&wrong).unwrap_err().to_string();
        assert!(error.contains(problem), "{problem}: {error}\n{line}");
    }
    assert_eq!(rows(&stage)[0], 1);
}

/// The state of partitions refers to ids of executions: an incomplete instance with such state cannot be moved.
///
/// Spec: PART-30
#[test]
fn state_that_refers_to_ids_is_not_imported() {
    let partition = r#"<partition instances="2"><properties>
        <property name="to.1" value="25"/><property name="to.2" value="25"/>
    </properties></partition></step>"#;
    let stage = Stage::on(Database::Sqlite, &CHUNK.replace("</step>", partition));
    stage
        .outside()
        .execute("CREATE TABLE written (n INTEGER)")
        .unwrap();
    let operator = stage.operator();
    let failing = |fails_at: &str| JobParameters::new().with_non_identifying("fails-at", fails_at);
    stage.launch("job", failing("13"));
    let line = operator.export(JobInstanceId(1)).unwrap().unwrap();
    // It is here, as it was exported.
    assert_eq!(
        operator.import(&line).unwrap(),
        Imported::Unchanged(JobInstanceId(1))
    );
    operator
        .purge(
            &Purge {
                force: true,
                ..Purge::default()
            },
            None,
        )
        .unwrap();
    let refused = operator.import(&line).unwrap_err().to_string();
    assert!(
        refused.contains("it can be resumed only where it was exported"),
        "{refused}"
    );
    stage.launch("job", failing("13"));
    // Once the instance is complete, that state is not needed.
    let complete = stage.launch("job", failing("0"));
    let complete = operator.job_execution(complete).unwrap().unwrap();
    let line = operator.export(complete.instance_id).unwrap().unwrap();
    operator.purge(&Purge::default(), None).unwrap();
    operator.import(&line).unwrap();
}
