//! Tables with a prefix other than `BATCH_`.

use std::fs;

use batch_runtime::operator::Purge;
use batch_runtime::{BatchRuntime, BatchStatus, JobOperator, JobParameters, repository::ExecutionFilter};
use batch_tests::database::{Database, Place};

use super::jobs::{CHUNK, SUM};
#[cfg(feature = "servers")]
use super::layouts::operator;

/// Returns the database's URL, for tables with this prefix.
pub(super) fn with_prefix(place: &Place, prefix: &str) -> String {
    let url = place.url();
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}table_prefix={prefix}")
}

/// Two repositories in one database are independent: tables, sequences, migrations, rows and purges.
///
/// Spec: REPO-84, D-88
#[test]
fn repositories_with_different_prefixes_share_a_database() {
    for database in Database::ALL {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(database, folder.path());
        let outside = || place.connect();
        outside().execute("CREATE TABLE written (n INTEGER)").unwrap();
        fs::write(folder.path().join("job.xml"), CHUNK).unwrap();
        let open = |url: String| -> JobOperator {
            let builder = BatchRuntime::builder().repository(url);
            let builder = builder.job_path(folder.path().display().to_string());
            let builder = builder.system_property("log", format!("prefix {database:?}"));
            builder
                .build()
                .unwrap_or_else(|error| panic!("{error}"))
                .job_operator()
        };
        let orders = open(with_prefix(&place, "Orders_"));
        let plain = open(place.url().to_owned());

        let fails = JobParameters::from([("to", "35")]).with_non_identifying("fails-at", "27");
        let first = orders.launch("job", fails).unwrap();
        assert_eq!(orders.wait(first).unwrap().status, BatchStatus::Failed);
        assert!(plain.job_execution(first).unwrap().is_none(), "{database:?}");
        let again = JobParameters::from([("to", "35")]).with_non_identifying("fails-at", "0");
        let second = orders.launch("job", again).unwrap();
        let ended = orders.wait(second).unwrap();
        assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
        assert_eq!(outside().number(SUM), 35_000_630);

        let others = plain.launch("job", [("to", "5")]).unwrap();
        assert_eq!(plain.wait(others).unwrap().status, BatchStatus::Completed);
        // Each counts its own executions.
        assert_eq!((first.0, second.0, others.0), (1, 2, 1), "{database:?}");
        for (table, rows) in [
            ("JOB_INSTANCE", 1),
            ("JOB_EXECUTION", 2),
            ("STEP_EXECUTION", 2),
            ("JOB_INSTANCE_LEASE", 1),
        ] {
            let prefix = if database == Database::Postgres {
                "orders_"
            } else {
                "Orders_"
            };
            let count = |prefix: &str| outside().number(&format!("SELECT COUNT(*) FROM {prefix}{table}"));
            assert_eq!(count(prefix), rows, "{database:?} {table}");
            assert_eq!(count("BATCH_"), 1, "{database:?} {table}");
        }
        // MariaDB, as on Linux, distinguishes upper and lower case in names of tables, but not of constraints.
        let other_case = BatchRuntime::builder()
            .repository(with_prefix(&place, "ORDERS_"))
            .build();
        match other_case {
            Ok(other_case) => {
                let found = other_case
                    .job_operator()
                    .find_executions(&ExecutionFilter::default());
                assert_eq!(found.unwrap().len(), 2, "{database:?}");
            }
            Err(error) => {
                assert_eq!(database, Database::Mariadb, "{error}");
                assert!(error.to_string().contains("ORDERS_JOB_EXECUTION"), "{error}");
            }
        }
        assert_eq!(orders.purge(&Purge::default(), None).unwrap(), 1, "{database:?}");
        assert_eq!(
            plain.find_executions(&ExecutionFilter::default()).unwrap().len(),
            1
        );
        let applied = "SELECT COUNT(*) FROM __diesel_schema_migrations";
        assert_eq!(outside().number(applied), 14, "{database:?}");
    }
}

/// The repository in a schema is independent of the one where unqualified names are found.
///
/// Spec: REPO-84, D-88
#[cfg(feature = "servers")]
#[test]
fn a_prefix_with_a_schema_has_its_tables_there() {
    for database in [Database::Postgres, Database::Mariadb] {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(database, folder.path());
        let schema = place.new_schema();
        let outside = || place.connect();
        outside().execute("CREATE TABLE written (n INTEGER)").unwrap();
        fs::write(folder.path().join("job.xml"), CHUNK).unwrap();
        let open = |url: &str| operator(folder.path(), url).unwrap();
        for prefix in ["BATCH_", "LATE_"] {
            let url = with_prefix(&place, &format!("{schema}.{prefix}"));
            outside().execute("DELETE FROM written").unwrap();
            // The second program finds the tables.
            for (fails_at, expected) in [("27", BatchStatus::Failed), ("0", BatchStatus::Completed)] {
                let operator = open(&url);
                let given = JobParameters::from([("to", "35")]).with_non_identifying("fails-at", fails_at);
                let ended = operator.wait(operator.launch("job", given).unwrap()).unwrap();
                assert_eq!(ended.status, expected, "{database:?}: {}", ended.exit_message);
            }
            assert_eq!(outside().number(SUM), 35_000_630);
            let count =
                |table: &str| outside().number(&format!("SELECT COUNT(*) FROM {schema}.{prefix}{table}"));
            assert_eq!(
                (count("JOB_INSTANCE"), count("JOB_EXECUTION")),
                (1, 2),
                "{database:?}"
            );
        }
        let plain = open(place.url()).find_executions(&ExecutionFilter::default());
        assert!(plain.unwrap().is_empty(), "{database:?}");
        let missing = operator(folder.path(), &with_prefix(&place, "no_schema.BATCH_"))
            .err()
            .unwrap();
        assert!(missing.contains("no_schema"), "{missing}");
    }
}

/// Spec: REPO-84
#[test]
fn an_invalid_prefix_is_rejected() {
    for (prefix, problem) in [
        ("", "does not start with a letter"),
        ("1_", "does not start with a letter"),
        ("a;DROP TABLE x", "contains `;`"),
        (
            "main.BATCH_",
            "names a schema, `main`, and this database has no schemas",
        ),
        ("batch.1_", "does not start with a letter"),
        ("a.b.BATCH_", "contains `.`"),
        ("LONG_NAME_OF_A_SCHEMA.LONG_NAME_OF_TABLES_", "is too long"),
        ("\"", "does not start with a letter"),
        ("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDE", "is too long"),
    ] {
        let url = format!("sqlite://:memory:?table_prefix={prefix}");
        let error = BatchRuntime::builder()
            .repository(url)
            .build()
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains(problem) && (error.contains("as in `ORDERS_`") || prefix.starts_with("main")),
            "{error}"
        );
    }
    let longest = "ABCDEFGHIJKLMNOPQRSTUVWXYZABCD";
    for database in Database::ALL {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(database, folder.path());
        for _ in 0..2 {
            let built = BatchRuntime::builder()
                .repository(with_prefix(&place, longest))
                .build();
            built.unwrap_or_else(|error| panic!("{database:?}: {error}"));
        }
    }
}
