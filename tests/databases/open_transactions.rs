//! Processes that leave a transaction open: one is suspended, one calls `exit`.

use std::fs;
use std::path::Path;
use std::process::Command;

use batch_tests::database::{Database, Place};
#[cfg(feature = "servers")]
use batch_tests::operated::Operated;

const PROGRAM: &str = env!("CARGO_BIN_EXE_operated");

/// Something happens in the third chunk.
const JOB: &str = r#"<job id="job"><step id="one">
    <chunk reader="Gated" processor="Same" writer="RowsUntil" commit-interval="10">
        <properties><property name="count" value="40"/><property name="then" value="THEN"/></properties>
    </chunk>
</step></job>"#;

fn folder_for(then: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("job.xml", &JOB.replace("THEN", then));
    write("batch.toml", "lease-time = 1\n");
    folder
}

fn arguments(place: &Place) -> Vec<&str> {
    vec!["launch", "job", "--repository", place.url()]
}

fn launch(folder: &Path, place: &Place) -> (Option<i32>, String) {
    let launch = Command::new(PROGRAM)
        .args(arguments(place))
        .current_dir(folder)
        .output();
    let launch = launch.unwrap();
    (
        launch.status.code(),
        String::from_utf8_lossy(&launch.stderr).into_owned(),
    )
}

/// Launches until the job is complete; in between it may only be running.
fn launch_until_complete(folder: &Path, place: &Place) {
    fs::write(folder.join("go"), "").unwrap();
    loop {
        let (code, errors) = launch(folder, place);
        if code == Some(0) {
            return;
        }
        assert!(errors.contains("is running"), "{errors}");
    }
}

/// The locks of the suspended process are released with its lease: its sessions are ended. When it wakes up, it commits nothing.
///
/// Spec: OP-35, REPO-15, RESTART-08
#[cfg(feature = "servers")]
#[test]
fn a_suspended_process_is_taken_over_although_it_has_locked_rows() {
    for database in [Database::Postgres, Database::Mariadb] {
        let folder = folder_for("wait");
        let place = Place::new(database, folder.path());
        let mut outside = place.connect();
        outside
            .execute("CREATE TABLE written (n INTEGER PRIMARY KEY)")
            .unwrap();
        let mut suspended = Operated::run(PROGRAM, folder.path(), &arguments(&place));
        suspended.until("writing");
        suspended.signal("STOP");

        launch_until_complete(folder.path(), &place);
        assert_eq!(outside.number("SELECT COUNT(*) FROM written"), 40, "{database:?}");
        suspended.signal("CONT");
        assert_eq!(suspended.ends().code(), Some(1), "{database:?}");
        assert_eq!(outside.number("SELECT COUNT(*) FROM written"), 40, "{database:?}");
        let rows = "SELECT SUM(WRITE_COUNT) FROM BATCH_STEP_EXECUTION";
        assert_eq!(outside.number(rows), 40, "{database:?}");
    }
}

/// A scheduler must not take the 0 for success. The cause is recorded although the writer holds the lock of the database.
///
/// Spec: OP-35, RESTART-08
#[test]
fn an_artifact_that_calls_exit_fails_its_job() {
    for database in Database::ALL {
        let folder = folder_for("exit");
        let place = Place::new(database, folder.path());
        let mut outside = place.connect();
        outside.execute("CREATE TABLE written (n INTEGER)").unwrap();
        let (code, errors) = launch(folder.path(), &place);
        assert_eq!(code, Some(1), "{database:?}: {errors}");
        assert!(errors.contains("ended the process by `exit`"), "{errors}");

        launch_until_complete(folder.path(), &place);
        assert_eq!(outside.number("SELECT COUNT(*) FROM written"), 40, "{database:?}");
        let first = "SELECT EXIT_MESSAGE AS text FROM BATCH_JOB_EXECUTION WHERE JOB_EXECUTION_ID = 1";
        let message = outside.rows(first).remove(0);
        let cause = "): an artifact, or a library that it calls, ended the process by `exit`";
        assert!(message.ends_with(cause), "{database:?}: {message}");
    }
}
