//! The example with a real PostgreSQL, killed at random.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::process::{Command, Stdio};

use batch_test_servers::{Kind, shared};
use sqlx::{AssertSqlSafe, PgPool};

const INVOICES: i64 = 30_000;

/// Each kill comes soon after a commit in PostgreSQL, so some of them before the commit of the repository.
const KILLS: u32 = 20;

/// Spec: ASYNC-04, MARK-04, MARK-06
#[tokio::test]
async fn each_reminder_is_there_once_after_kills() {
    let url = shared(Kind::Postgres).new_database();
    let pool = PgPool::connect(&url).await.unwrap();
    for statement in [
        "CREATE TABLE invoice (id bigint PRIMARY KEY, customer text, cents bigint, paid boolean)".to_owned(),
        // Without a key, so that a reminder that is inserted twice is there twice.
        "CREATE TABLE reminder (invoice bigint, text text)".to_owned(),
        format!(
            "INSERT INTO invoice SELECT n, 'customer ' || n, n * 7, n % 10 = 0 FROM generate_series(1, {INVOICES}) n"
        ),
    ] {
        sqlx::query(AssertSqlSafe(statement))
            .execute(&pool)
            .await
            .unwrap();
    }
    let count = || async {
        let counted = sqlx::query_scalar::<_, i64>("SELECT COUNT(*) FROM reminder")
            .fetch_one(&pool)
            .await;
        counted.unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_async-jobs"));
        let command = command.arg(&url).current_dir(folder.path()).stdout(Stdio::null());
        command.spawn().unwrap()
    };
    for kill in 1..=KILLS {
        let before = count().await;
        let mut program = start();
        while count().await < before + 1_000 {
            assert!(
                program.try_wait().unwrap().is_none(),
                "the job ended before kill {kill}"
            );
            tokio::task::yield_now().await;
        }
        program.kill().unwrap();
        program.wait().unwrap();
    }
    assert!(start().wait().unwrap().success());
    let exact = "SELECT COUNT(*) FROM invoice FULL JOIN reminder ON invoice = id AND text LIKE customer || ': please pay %' \
                 WHERE (paid IS FALSE) <> (text IS NOT NULL)";
    assert_eq!(
        sqlx::query_scalar::<_, i64>(exact)
            .fetch_one(&pool)
            .await
            .unwrap(),
        0
    );
    assert_eq!(count().await, INVOICES - INVOICES / 10);
}
