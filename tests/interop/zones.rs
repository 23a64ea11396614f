//! A JVM that is not in UTC.

use batch_runtime::{BatchStatus, JobExecutionId, JobOperatorError};
use batch_tests::database::Database;
use serde_json::{Value, json};

use super::shared::{On, Shared, TablesOf, assert_same, contexts, parameters, seen_by};

const BERLIN: &str = "Europe/Berlin";

/// With the zone of the JVM all times are the same in both programs, and a date identifies the same instance; without
/// it they differ by hours, except on SQLite, which stores points in time.
///
/// Spec: REPO-26, REPO-33, REPO-43, REPO-47, REPO-54
#[test]
fn times_are_those_of_the_other_time_zone() {
    for database in Database::ALL {
        let mut shared = Shared::in_zone(On::of_4_3(database), TablesOf::Us, BERLIN);
        let failing = parameters(1).with_non_identifying("load", "fail");
        shared.run("prepared", &failing).unwrap();
        let here = shared.launch("prepared", &failing);
        assert_eq!(here.instance_id.0, 1, "{database:?}");
        shared.launch("skips", &parameters(2));
        let there = shared.run("prepared", &parameters(1)).unwrap();
        assert_eq!(
            there,
            json!({"execution": 4, "instance": 1, "status": "COMPLETED"}),
            "{database:?}"
        );
        // A date has the same key after it is read back.
        let refused = shared.operator.launch("prepared", parameters(1)).unwrap_err();
        assert!(
            matches!(refused, JobOperatorError::JobInstanceAlreadyComplete { .. }),
            "{database:?}: {refused}"
        );
        let again = shared.operator.restart(JobExecutionId(3), parameters(2)).unwrap();
        assert_eq!(shared.operator.wait(again).unwrap().status, BatchStatus::Failed);

        let mut there = shared.seen_there();
        contexts(&mut there);
        let there = Value::from(there);
        assert_same(&there, &shared.seen_here().into(), database);
        let unaware = Value::from(seen_by(&shared.operator_in("UTC")));
        assert_eq!(unaware == there, database == Database::Sqlite, "{database:?}");
        if database != Database::Sqlite {
            let off = |name: &str| unaware[0][name].as_i64().unwrap() - there[0][name].as_i64().unwrap();
            assert!([3_600_000, 7_200_000].contains(&off("created")), "{database:?}");
            assert_eq!(off("ended"), off("created"), "{database:?}");
        }
    }
}

/// Times that the clocks show twice or skip are read as the drivers read them.
#[test]
fn ambiguous_local_times_are_read_as_the_drivers_do() {
    for database in [Database::Postgres, Database::Mariadb] {
        for (zone, walls) in [
            (
                BERLIN,
                [
                    "2024-03-31 01:59:59.999",
                    "2024-03-31 02:00:00",
                    "2024-03-31 02:30:00",
                    "2024-03-31 03:30:00",
                    "2024-10-27 01:59:59.999",
                    "2024-10-27 02:00:00",
                    "2024-10-27 02:30:00.5",
                    "2024-10-27 03:00:00",
                ],
            ),
            (
                "America/New_York",
                [
                    "2024-03-10 02:30:00",
                    "2024-11-03 01:30:00",
                    "2024-11-03 02:00:00",
                    "2038-07-01 12:00:00",
                    "2100-01-01 00:00:00",
                    "1960-07-01 12:00:00",
                    "1970-01-01 00:00:00",
                    "1969-12-31 23:59:59.999",
                ],
            ),
        ] {
            let mut shared = Shared::in_zone(On::of_4_3(database), TablesOf::Us, zone);
            shared.launch("prepared", &parameters(1));
            for wall in walls {
                let change = format!("UPDATE BATCH_JOB_EXECUTION SET START_TIME = '{wall}'");
                shared.place.connect().execute(&change).unwrap();
                let there = json!(["time", "SELECT START_TIME FROM BATCH_JOB_EXECUTION"]);
                let there = shared.spring.done(&shared.place, there);
                assert_eq!(
                    shared.seen_here()[0]["started"],
                    there,
                    "{database:?}, {zone}, {wall}"
                );
                assert_eq!(
                    shared.seen_there()[0]["started"],
                    there,
                    "{database:?}, {zone}, {wall}"
                );
            }
        }
    }
}
