//! Repositories whose TIMESTAMP columns hold the local time of a zone.

use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "servers")]
use batch_runtime::operator::Purge;
use batch_runtime::prelude::*;
#[cfg(feature = "servers")]
use batch_runtime::repository::ExecutionFilter;
use batch_runtime::{
    BatchRuntime, BatchStatus, JobOperator, JobOperatorError, JobParameters, ParameterValue, Timestamp,
    time::Clock,
};
use batch_tests::database::{Database, Place};

/// Writes nothing, and fails at a larger number.
#[derive(BatchArtifact)]
struct UpToThree;

#[item_writer("UpToThree")]
impl UpToThree {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u32]) -> Result<(), BatchError> {
        match numbers.iter().find(|number| **number > 3) {
            Some(number) => Err(BatchError::msg(number)),
            None => Ok(()),
        }
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

struct Stopped(Timestamp);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        self.0
    }
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A runtime with a constant clock.
fn operator(place: &Place, folder: &Path, zone: &str, now: &str) -> JobOperator {
    let runtime = BatchRuntime::builder()
        .repository(place.url())
        .repository_time_zone(zone.parse().unwrap())
        .clock(Arc::new(Stopped(time(now))))
        .job_path(folder.display().to_string())
        .system_property("log", "")
        .build();
    runtime.unwrap_or_else(|error| panic!("{error}")).job_operator()
}

/// Every operation of the repository converts points in time to wall-clock times, and back; keys are made of points in
/// time. Two runtimes of one process may have different zones.
///
/// Spec: REPO-26, REPO-33, REPO-43, REPO-47, REPO-54
#[cfg(feature = "servers")]
#[test]
fn times_are_kept_in_the_time_of_a_zone() {
    for database in [Database::Postgres, Database::Mariadb] {
        let folder = tempfile::tempdir().unwrap();
        let job = r#"<job id="job"><step id="one"><chunk reader="Numbers" processor="Unchanged" writer="UpToThree" commit-interval="2">
            <properties><property name="to" value="4"/></properties></chunk></step></job>"#;
        std::fs::write(folder.path().join("job.xml"), job).unwrap();
        let place = Place::new(database, folder.path());
        let now = "2026-07-01T12:00:00.123";
        let berlin = operator(&place, folder.path(), "Europe/Berlin", now);
        let day = ParameterValue::Date(time("2026-01-01T23:30:00.007"));
        let parameters = JobParameters::new().with_parameter("day", day, true);
        let first = berlin.launch("job", parameters.clone()).unwrap();
        let ended = berlin.wait(first).unwrap();
        let steps = berlin.step_executions(first).unwrap();
        assert_eq!(
            [
                Some(ended.created),
                ended.started,
                ended.ended,
                Some(ended.last_updated)
            ],
            [Some(time(now)); 4]
        );
        assert_eq!(
            [
                Some(steps[0].started),
                steps[0].ended,
                Some(steps[0].last_updated)
            ],
            [Some(time(now)); 3]
        );
        assert_eq!(berlin.parameters(first).unwrap(), parameters);

        let mut outside = place.connect();
        let shown =
            |column: &str, table: &str| format!("SELECT CAST({column} AS CHAR(23)) AS text FROM {table}");
        for (columns, table) in [
            (
                &["CREATE_TIME", "START_TIME", "END_TIME", "LAST_UPDATED"][..],
                "BATCH_JOB_EXECUTION",
            ),
            (
                &["START_TIME", "END_TIME", "LAST_UPDATED"],
                "BATCH_STEP_EXECUTION",
            ),
        ] {
            for column in columns {
                let rows = outside.rows(&shown(column, table));
                assert_eq!(rows, ["2026-07-01 14:00:00.123"], "{database:?} {table}.{column}");
            }
        }
        let date = outside.rows(&shown("DATE_VAL", "BATCH_JOB_EXECUTION_PARAMS"));
        assert_eq!(date, ["2026-01-02 00:30:00.007"], "{database:?}");

        // The same instance, found by the same key from another zone, which shows other times.
        let key = |operator: &JobOperator| operator.job_instances("job", 0, 9).unwrap()[0].job_key.clone();
        assert_eq!(key(&berlin), parameters.job_key());
        let again = berlin.launch("job", parameters.clone()).unwrap();
        let again = berlin.wait(again).unwrap();
        assert_eq!(again.instance_id, ended.instance_id, "{database:?}");
        let new_york = operator(&place, folder.path(), "America/New_York", now);
        let seen = new_york.job_execution(first).unwrap().unwrap();
        assert_eq!(seen.created, time("2026-07-01T18:00:00.123"), "{database:?}");

        let found = |since: &str, until: &str| {
            let filter = ExecutionFilter {
                since: Some(time(since)),
                until: Some(time(until)),
                ..ExecutionFilter::default()
            };
            berlin.find_executions(&filter).unwrap().len()
        };
        assert_eq!(
            found("2026-07-01T12:00:00", "2026-07-01T12:00:01"),
            2,
            "{database:?}"
        );
        assert_eq!(found("2026-07-01T12:00:01", "2026-07-02"), 0, "{database:?}");
        assert_eq!(found("2026-07-01", "2026-07-01T12:00:00"), 0, "{database:?}");

        // Archives contain points in time, valid in any zone.
        let line = berlin.export(ended.instance_id).unwrap().unwrap();
        assert!(line.contains(r#""created":"2026-07-01T12:00:00.123Z""#), "{line}");
        let elsewhere = Place::new(database, folder.path());
        let utc = operator(&elsewhere, folder.path(), "UTC", now);
        utc.import(&line).unwrap();
        let all = utc.find_executions(&ExecutionFilter::default()).unwrap();
        assert_eq!(all[0].ended, Some(time(now)), "{database:?}");
        assert_eq!(utc.parameters(all[0].id).unwrap(), parameters, "{database:?}");

        // An end at a time that the clocks skipped does not prevent a purge.
        outside
            .execute("UPDATE BATCH_JOB_EXECUTION SET END_TIME = '2026-03-29 02:30:00'")
            .unwrap();
        let purge = |before: &str| {
            let purge = Purge {
                before: Some(time(before)),
                force: true,
                ..Purge::default()
            };
            berlin.purge(&purge, None).unwrap()
        };
        assert_eq!(purge("2026-03-29T01:30"), 0, "{database:?}");
        assert_eq!(purge("2026-03-29T01:30:00.001"), 1, "{database:?}");
    }
}

/// SQLite stores points in time: the zone has no effect.
///
/// Spec: REPO-43
#[test]
fn sqlite_knows_no_zone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("job.xml"),
        r#"<job id="job"><step id="one"><batchlet ref="Patient"/></step></job>"#,
    )
    .unwrap();
    let place = Place::new(Database::Sqlite, folder.path());
    let berlin = operator(&place, folder.path(), "Europe/Berlin", "2026-07-01T12:00");
    let day = JobParameters::new().with_parameter("day", ParameterValue::Date(Timestamp(7)), true);
    let execution = berlin.launch("job", day.clone()).unwrap();
    berlin.stop(execution).unwrap();
    assert_eq!(berlin.wait(execution).unwrap().status, BatchStatus::Stopped);
    let utc = operator(&place, folder.path(), "UTC", "2026-07-01T12:00");
    let seen = utc.job_execution(execution).unwrap().unwrap();
    assert_eq!(seen.created, time("2026-07-01T12:00"));
    assert_eq!(utc.parameters(execution).unwrap(), day);
    berlin.abandon(execution).unwrap();
    let refused = utc.launch("job", day).unwrap_err();
    assert!(
        matches!(refused, JobOperatorError::JobInstanceAbandoned { .. }),
        "{refused}"
    );
}
