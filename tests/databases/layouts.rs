//! Repositories in the layouts of Spring Batch 4.3, 5 and 6.

use std::fs;
use std::path::Path;

use batch_runtime::parameters::JavaValue;
use batch_runtime::repository::{ExecutionFilter, MigrationStatus, RepositoryLayout, RepositoryUrl};
use batch_runtime::{
    BatchRuntime, BatchStatus, JobInstanceId, JobOperator, JobParameters, ParameterValue, Timestamp,
};
use batch_tests::database::{Database, Place};
use tempfile::TempDir;

use super::jobs::{CHUNK, SUM};

/// Returns a new database whose URL names a layout, for jobs in a folder.
pub(super) fn place_in(database: Database, layout: RepositoryLayout) -> (TempDir, Place) {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(database, folder.path()).with_option("layout", &layout.to_string());
    fs::write(folder.path().join("job.xml"), CHUNK).unwrap();
    place
        .connect()
        .execute("CREATE TABLE written (n INTEGER)")
        .unwrap();
    (folder, place)
}

pub(super) fn operator(folder: &Path, url: &str) -> Result<JobOperator, String> {
    let runtime = BatchRuntime::builder()
        .repository(url)
        .job_path(folder.display().to_string())
        .system_property("log", url)
        .build();
    Ok(runtime.map_err(|error| error.to_string())?.job_operator())
}

/// Parameters of all types that a layout has.
pub(super) fn parameters(layout: RepositoryLayout) -> JobParameters {
    let all = JobParameters::from([("to", "35"), ("text", "größer 漢字")])
        .with_parameter("number", ParameterValue::Long(i64::MIN), true)
        .with_parameter("rate", ParameterValue::Double(1e-7), true)
        .with_parameter("day", ParameterValue::Date(Timestamp(1_704_067_200_123)), true)
        .with_non_identifying("fails-at", "27");
    if layout == RepositoryLayout::V4_3 {
        return all;
    }
    let java = |class: &str, text: &str| {
        ParameterValue::Java(JavaValue {
            class: class.into(),
            text: text.into(),
        })
    };
    all.with_parameter("date", java("java.time.LocalDate", "2026-11-20"), true)
        .with_parameter("locale", java("java.util.Locale", "de"), false)
        .with("long", "x".repeat(2_500))
}

/// Returns the texts of a query's column `text`.
fn rows(place: &Place, query: &str) -> Vec<String> {
    place.connect().rows(query)
}

/// A job fails and resumes; parameters of all types come back; the layout stays, also without the option in the URL.
///
/// Spec: REPO-05, REPO-12, REPO-20 to REPO-22, REPO-87 to REPO-89
#[test]
fn a_job_resumes_in_each_layout() {
    for database in Database::ALL {
        for layout in RepositoryLayout::ALL {
            let (folder, place) = place_in(database, layout);
            let what = format!("{database:?} {layout}");
            let operator = self::operator(folder.path(), place.url()).unwrap();
            let given = parameters(layout);
            let first = operator.launch("job", given.clone()).unwrap();
            assert_eq!(
                operator.wait(first).unwrap().status,
                BatchStatus::Failed,
                "{what}"
            );
            assert_eq!(operator.parameters(first).unwrap(), given, "{what}");

            let again = given.with_non_identifying("fails-at", "0");
            let second = operator.launch("job", again.clone()).unwrap();
            let ended = operator.wait(second).unwrap();
            assert_eq!(
                ended.status,
                BatchStatus::Completed,
                "{what}: {}",
                ended.exit_message
            );
            assert_eq!((second.0, ended.instance_id.0), (2, 1), "{what}");
            assert_eq!(place.connect().number(SUM), 35_000_630, "{what}");
            assert_eq!(operator.parameters(second).unwrap(), again, "{what}");
            assert!(
                operator
                    .launch("job", again)
                    .unwrap_err()
                    .to_string()
                    .contains("complete")
            );
            // Its number is from the sequence of instances too.
            let third = operator.start("job", [("to", "1")]).unwrap();
            assert_eq!(operator.wait(third).unwrap().instance_id.0, 2, "{what}");

            drop(operator);
            is_as_spring_batch_makes_it(&place, layout);
            let url: RepositoryUrl = place.url().parse().unwrap();
            assert_eq!(
                url.migration_status().unwrap(),
                MigrationStatus::UpToDate,
                "{what}"
            );
            let without = place
                .url()
                .replace(&format!("layout={layout}"), "max_varchar_length=2500");
            let operator = self::operator(folder.path(), &without).unwrap();
            let all = operator.find_executions(&ExecutionFilter::default()).unwrap();
            assert_eq!(all.len(), 3, "{what}");
        }
    }
}

/// Columns that Spring Batch reads.
fn is_as_spring_batch_makes_it(place: &Place, layout: RepositoryLayout) {
    if layout == RepositoryLayout::V4_3 {
        let types = "SELECT DISTINCT TYPE_CD AS text FROM BATCH_JOB_EXECUTION_PARAMS ORDER BY 1";
        assert_eq!(rows(place, types), ["DATE", "DOUBLE", "LONG", "STRING"]);
        return;
    }
    let stored = "SELECT PARAMETER_TYPE || '=' || PARAMETER_VALUE AS text FROM BATCH_JOB_EXECUTION_PARAMS
        WHERE JOB_EXECUTION_ID = 1 AND PARAMETER_NAME IN ('date', 'day', 'number', 'rate') ORDER BY PARAMETER_NAME";
    let stored = match place.database() {
        Database::Mariadb => stored.replace(
            "PARAMETER_TYPE || '=' || PARAMETER_VALUE",
            "CONCAT(PARAMETER_TYPE, '=', PARAMETER_VALUE)",
        ),
        _ => stored.to_owned(),
    };
    assert_eq!(
        rows(place, &stored),
        [
            "java.time.LocalDate=2026-11-20",
            "java.util.Date=2024-01-01T00:00:00.123Z",
            "java.lang.Long=-9223372036854775808",
            "java.lang.Double=1.0E-7",
        ]
    );
    let created = "SELECT COUNT(*) FROM BATCH_STEP_EXECUTION WHERE CREATE_TIME <= START_TIME";
    let steps = "SELECT COUNT(*) FROM BATCH_STEP_EXECUTION";
    let mut outside = place.connect();
    assert_eq!(outside.number(created), outside.number(steps));
    let sequence = match layout {
        RepositoryLayout::V6 => "BATCH_JOB_INSTANCE_SEQ",
        _ => "BATCH_JOB_SEQ",
    };
    let next = match place.database() {
        Database::Sqlite => format!("SELECT MAX(ID) + 1 FROM {sequence}"),
        Database::Postgres => format!("SELECT nextval('{sequence}')"),
        Database::Mariadb => format!("SELECT NEXT VALUE FOR {sequence}"),
    };
    assert_eq!(outside.number(&next), 3, "{layout}");
}

/// A URL with another layout than the tables have is rejected, and nothing is changed.
///
/// Spec: REPO-12, REPO-87
#[test]
fn another_layout_than_that_of_the_tables_is_rejected() {
    for database in Database::ALL {
        let (folder, place) = place_in(database, RepositoryLayout::V4_3);
        drop(operator(folder.path(), place.url()).unwrap());
        let other = place.url().replace("layout=4.3", "layout=5");
        let error = operator(folder.path(), &other).err().unwrap();
        assert!(error.contains("the layout of Spring Batch 4.3"), "{error}");
        assert!(error.contains("`db upgrade --to 5`"), "{error}");
        assert!(operator(folder.path(), place.url()).is_ok());
    }
    let unknown = "sqlite://batch.db?layout=7".parse::<RepositoryUrl>().unwrap_err();
    assert!(
        unknown
            .to_string()
            .contains("unknown layout `7`: expected 4.3, 5 or 6")
    );
}

/// What a layout cannot store, or what would not identify the same instance in Spring Batch, is rejected before anything is written.
///
/// Spec: REPO-88, REPO-89
#[test]
fn parameters_that_a_layout_lacks_are_rejected() {
    for (layout, class, text, problem) in [
        (
            RepositoryLayout::V4_3,
            "java.time.LocalDate",
            "2026-11-20",
            "has no parameters of type `java.time.LocalDate`",
        ),
        (
            RepositoryLayout::V5,
            "java.util.Locale",
            "de",
            "this value of `java.util.Locale`, which is not certain",
        ),
        (
            RepositoryLayout::V6,
            "java.time.LocalDate",
            "tomorrow",
            "invalid value `tomorrow`: Spring Batch cannot convert it to `java.time.LocalDate`",
        ),
    ] {
        let (folder, place) = place_in(Database::Sqlite, layout);
        let operator = operator(folder.path(), place.url()).unwrap();
        let java = ParameterValue::Java(JavaValue {
            class: class.into(),
            text: text.into(),
        });
        let parameters = JobParameters::from([("to", "1")]).with_parameter("java", java, text != "tomorrow");
        let error = operator.launch("job", parameters).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
        assert!(
            operator
                .find_executions(&ExecutionFilter::default())
                .unwrap()
                .is_empty()
        );
    }
}

/// A program that opens the tables of Spring Batch may find times as text, which its driver writes with `date_class=TEXT`.
///
/// Spec: REPO-13, REPO-87
#[test]
fn times_that_are_texts_are_rejected() {
    let (folder, place) = place_in(Database::Sqlite, RepositoryLayout::V5);
    let operator = operator(folder.path(), place.url()).unwrap();
    let launched = operator
        .launch("job", JobParameters::from([("to", "1")]))
        .unwrap();
    operator.wait(launched).unwrap();
    let text = "UPDATE BATCH_JOB_EXECUTION SET CREATE_TIME = '2026-11-25 09:00:00.123'";
    place.connect().execute(text).unwrap();
    let error = operator.job_execution(launched).unwrap_err().to_string();
    assert!(
        error.contains("the time `2026-11-25 09:00:00.123` is stored as text"),
        "{error}"
    );
}

/// An exported instance of Spring Batch is imported, with any serializer; it is not resumed.
///
/// Spec: REPO-69, REPO-90
#[test]
fn an_instance_with_contexts_of_java_is_imported() {
    let (folder, place) = place_in(Database::Sqlite, RepositoryLayout::V5);
    let operator = operator(folder.path(), place.url()).unwrap();
    let given = JobParameters::from([("to", "9")]).with_non_identifying("fails-at", "5");
    let failed = operator.launch("job", given.clone()).unwrap();
    assert_eq!(operator.wait(failed).unwrap().status, BatchStatus::Failed);
    for table in ["JOB", "STEP"] {
        let java = format!(
            "UPDATE BATCH_{table}_EXECUTION_CONTEXT SET SHORT_CONTEXT = 'rO0ABXNyABFqYXZhLnV0aWwuSGFzaE1hcA=='"
        );
        place.connect().execute(&java).unwrap();
    }
    let line = operator.export(JobInstanceId(1)).unwrap().unwrap();
    let (elsewhere, other) = place_in(Database::Sqlite, RepositoryLayout::V6);
    let operator = self::operator(elsewhere.path(), other.url()).unwrap();
    operator.import(&line).unwrap();
    let error = operator.launch("job", given).unwrap_err().to_string();
    assert!(error.contains("was serialized by Java"), "{error}");
}

/// Spring Batch 6 inserts a step with its creation only, and may die before it writes another time.
///
/// Spec: REPO-54, REPO-90
#[test]
fn a_step_may_have_only_a_time_of_creation() {
    for database in Database::ALL {
        for layout in [RepositoryLayout::V5, RepositoryLayout::V6] {
            let (folder, place) = place_in(database, layout);
            let operator = operator(folder.path(), place.url()).unwrap();
            let launched = operator
                .launch("job", JobParameters::from([("to", "1")]))
                .unwrap();
            operator.wait(launched).unwrap();
            let before = operator.step_executions(launched).unwrap();
            let remove = "UPDATE BATCH_STEP_EXECUTION SET START_TIME = NULL, LAST_UPDATED = NULL";
            place.connect().execute(remove).unwrap();
            let step = &operator.step_executions(launched).unwrap()[0];
            assert!(step.started <= before[0].started, "{database:?} {layout}");
            assert_eq!(step.last_updated, step.started, "{database:?} {layout}");
        }
    }
}
