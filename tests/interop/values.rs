//! Values that are rare: repeated steps, parameters that are null, the limits of numbers and of the calendar.

use batch_runtime::parameters::ParameterType;
use batch_runtime::{BatchStatus, JobExecutionId, JobParameters, ParameterValue, Timestamp};
use batch_tests::database::Database;
use serde_json::{Value, json};

use super::shared::{On, Shared, TablesOf, assert_same, contexts, shown_parameters};
use super::spring::Version;

/// A step that a job of Spring Batch runs several times in one execution, before and after the migration.
///
/// Spec: REPO-12, REPO-43, REPO-82
#[test]
fn spring_batch_may_repeat_a_step() {
    for on in On::ALL {
        let parameters = |run: &str| shown_parameters(&JobParameters::from([("run", run)]));
        let mut shared = Shared::after(on, |spring, place| {
            let ended = spring.done(place, json!(["run", "repeats", parameters("1")]));
            assert_eq!(ended["status"], "COMPLETED", "{on:?}");
        });
        let again = json!(["run", "repeats", parameters("2")]);
        assert_eq!(
            shared.spring.done(&shared.place, again)["status"],
            "COMPLETED",
            "{on:?}"
        );
        let mut there = shared.seen_there();
        contexts(&mut there);
        let steps = |execution: &Value| execution["steps"].as_array().unwrap().len();
        assert_eq!(there.iter().map(steps).collect::<Vec<_>>(), [3, 3], "{on:?}");
        assert_same(&there.into(), &shared.seen_here().into(), on);
    }
}

/// An instance with parameters that are null is the same for both programs, which keep the nulls.
///
/// Spec: REPO-26, REPO-28 to REPO-36, REPO-38
#[test]
fn nulls_are_kept() {
    let parameters = [
        ("s", ParameterType::String),
        ("l", ParameterType::Long),
        ("d", ParameterType::Double),
        ("t", ParameterType::Date),
    ]
    .into_iter()
    .fold(JobParameters::from([("run", "1")]), |all, (name, kind)| {
        all.with_parameter(name, ParameterValue::Null(kind), name != "t")
    });
    let failing = parameters.clone().with_non_identifying("load", "fail");
    // Spring Batch 5 and 6 cannot read them.
    for on in Database::ALL.map(On::of_4_3) {
        for tables in [TablesOf::SpringBatch, TablesOf::Us] {
            let mut shared = Shared::new(on, tables);
            let first = shared.run("prepared", &failing).unwrap();
            assert_eq!(first["status"], "FAILED", "{on:?}");
            assert_eq!(
                shared.operator.parameters(JobExecutionId(1)).unwrap(),
                failing,
                "{on:?}"
            );

            let second = shared.launch("prepared", &failing);
            assert_eq!((second.id.0, second.instance_id.0), (2, 1), "{on:?}");
            let works = JobParameters::new().with_non_identifying("load", "");
            let third = shared.operator.restart(second.id, works).unwrap();
            let third = shared.operator.wait(third).unwrap();
            assert_eq!((third.id.0, third.instance_id.0), (3, 1), "{on:?}");
            assert_eq!(
                third.status,
                BatchStatus::Completed,
                "{on:?}: {}",
                third.exit_message
            );
            let known = json!(["last", "prepared", shown_parameters(&parameters)]);
            assert_eq!(shared.spring.done(&shared.place, known)["execution"], 3, "{on:?}");
            let mut there = shared.seen_there();
            contexts(&mut there);
            assert_same(&there.into(), &shared.seen_here().into(), on);
        }
    }
}

/// Keys contain numbers and dates as Java shows them, and columns contain dates as Java's drivers store them.
///
/// Spec: REPO-26, REPO-33, REPO-34
#[test]
fn limits_of_numbers_and_dates_are_those_of_java() {
    let doubles = [
        f64::MIN_POSITIVE,
        f64::MAX,
        -0.0,
        1e-3,
        9.999e-4,
        1e7,
        123_456_789.125,
        -1.0 / 3.0,
    ];
    let doubles = doubles.map(ParameterValue::Double);
    // 1582-10-15, the day before it, 1500-02-28 of the Julian calendar, and a day in the year 1001.
    let dates = [
        -12_219_292_800_000,
        -12_219_292_800_001,
        -14_825_937_600_000,
        -30_560_000_000_000,
    ];
    let date = |millis| ParameterValue::Date(Timestamp(millis));
    let dates = dates.map(date);
    // Since Spring Batch 5 a key contains how a JVM shows a date, which is certain for these.
    let dates_since_5 = [1_704_067_200_123, 1_709_251_199_999, 4_102_444_800_000].map(date);
    for on in On::ALL {
        let mut shared = Shared::new(on, TablesOf::Us);
        // In columns of 4.3 the others lose the sign of zero, also between two programs of Spring Batch.
        let keeps_sign = on.version != Version::V4 || on.database == Database::Postgres;
        let is_stored = |value: &&ParameterValue| {
            keeps_sign || !matches!(value, ParameterValue::Double(zero) if *zero == 0.0)
        };
        let dates: &[ParameterValue] = match on.version {
            Version::V4 => &dates,
            _ => &dates_since_5,
        };
        let values = doubles.iter().chain(dates).filter(is_stored);
        for (number, value) in values.enumerate() {
            let run =
                |run: &str| JobParameters::from([("run", run)]).with_parameter("value", value.clone(), true);
            // This runtime's instance, found by Spring Batch from the same parameters and from its own rows.
            let here = shared.launch("prepared", &run("here"));
            let known = json!(["last", "prepared", shown_parameters(&run("here"))]);
            let known = shared.spring.done(&shared.place, known);
            assert_eq!(known["execution"], here.id.0, "{on:?} {value:?}");
            // And the other way round.
            let there = shared.run("prepared", &run("there")).unwrap();
            let again = shared.operator.launch("prepared", run("there")).unwrap_err();
            assert!(
                again.to_string().contains("complete"),
                "{on:?} {value:?}: {again}"
            );
            assert_eq!(there["instance"], i64::try_from(2 * number + 2).unwrap());
        }
        let mut there = shared.seen_there();
        contexts(&mut there);
        assert_same(&there.into(), &shared.seen_here().into(), on);
    }
}

/// Contexts that this runtime cannot read: an instance with them is rejected before anything is written, and Spring Batch resumes
/// it.
///
/// Spec: REPO-69, RESTART-08
#[test]
fn opaque_contexts_are_left_alone() {
    for on in On::ALL {
        let mut shared = Shared::new(on, TablesOf::SpringBatch);
        let parameters = JobParameters::from([("run", "1")]);
        let failing = parameters.clone().with_non_identifying("load", "fail");
        let run =
            |parameters: &JobParameters| json!(["run", "prepared", shown_parameters(parameters), "opaque"]);
        let first = shared.spring.done(&shared.place, run(&failing));
        assert_eq!(first["status"], "FAILED", "{on:?}");
        let contexts = || {
            let tables = ["BATCH_STEP_EXECUTION_CONTEXT", "BATCH_JOB_EXECUTION_CONTEXT"];
            tables.map(|table| {
                let query = format!("SELECT SHORT_CONTEXT AS text FROM {table} ORDER BY 1");
                shared.place.connect().rows(&query)
            })
        };
        let before = contexts();
        for _ in 0..2 {
            let refused = shared
                .operator
                .launch("prepared", failing.clone())
                .unwrap_err()
                .to_string();
            assert!(
                refused.contains("the context of job execution 1 of the repository"),
                "{on:?}: {refused}"
            );
        }
        assert_eq!(contexts(), before, "{on:?}");
        assert_eq!(
            shared
                .operator
                .job_executions(batch_runtime::JobInstanceId(1))
                .unwrap()
                .len(),
            1
        );
        // A job of this runtime runs in the same repository.
        let other = shared.launch("prepared", &JobParameters::from([("run", "2")]));
        assert_eq!(other.status, BatchStatus::Completed, "{}", other.exit_message);
        let resumed = shared.spring.done(&shared.place, run(&parameters));
        assert_eq!(
            (&resumed["instance"], &resumed["status"]),
            (&json!(1), &json!("COMPLETED")),
            "{on:?}"
        );
    }
}
