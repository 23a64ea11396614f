//! A process that is suspended in the middle of a transaction, with rows of its own and of the repository locked.

use std::fs;
use std::path::Path;
use std::process::Command;

use batch_tests::database::{Database, Place};
use batch_tests::operated::Operated;

const PROGRAM: &str = env!("CARGO_BIN_EXE_operated");

/// The writer waits in the third chunk.
const JOB: &str = r#"<job id="job"><step id="one">
    <chunk reader="Gated" processor="Same" writer="RowsOnServer" commit-interval="10">
        <properties><property name="count" value="40"/></properties>
    </chunk>
</step></job>"#;

fn arguments(place: &Place) -> Vec<&str> {
    vec!["launch", "job", "--repository", place.url()]
}

/// Launches until the job is complete; in between it may only be running.
fn launch_until_complete(folder: &Path, place: &Place) {
    loop {
        let launch = Command::new(PROGRAM)
            .args(arguments(place))
            .current_dir(folder)
            .output();
        let launch = launch.unwrap();
        if launch.status.success() {
            return;
        }
        let errors = String::from_utf8_lossy(&launch.stderr);
        assert!(errors.contains("is running"), "{errors}");
    }
}

/// The locks of the suspended process are released with its lease: its sessions are ended. When it wakes up, it commits nothing.
///
/// Spec: OP-35, REPO-15, RESTART-08
#[test]
fn a_suspended_process_is_taken_over_although_it_has_locked_rows() {
    for database in [Database::Postgres, Database::Mariadb] {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(database, folder.path());
        let mut outside = place.connect();
        outside
            .execute("CREATE TABLE written (n INTEGER PRIMARY KEY)")
            .unwrap();
        fs::write(folder.path().join("job.xml"), JOB).unwrap();
        fs::write(folder.path().join("batch.toml"), "lease-time = 1\n").unwrap();
        let mut suspended = Operated::run(PROGRAM, folder.path(), &arguments(&place));
        suspended.until("writing");
        suspended.signal("STOP");

        fs::write(folder.path().join("go"), "").unwrap();
        launch_until_complete(folder.path(), &place);
        assert_eq!(outside.number("SELECT COUNT(*) FROM written"), 40, "{database:?}");
        suspended.signal("CONT");
        assert_eq!(suspended.ends().code(), Some(1), "{database:?}");
        assert_eq!(outside.number("SELECT COUNT(*) FROM written"), 40, "{database:?}");
        let rows = "SELECT SUM(WRITE_COUNT) FROM BATCH_STEP_EXECUTION";
        assert_eq!(outside.number(rows), 40, "{database:?}");
    }
}
