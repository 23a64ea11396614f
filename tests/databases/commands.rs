//! The command line with URLs of database servers.

use std::path::Path;

use batch_tests::database::{Database, Place};
use batch_tests::operated;

/// Runs the program `operated`; returns its exit code and everything that it printed.
fn operated(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = operated::command(env!("CARGO_BIN_EXE_operated"), folder, arguments);
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn export_schema_takes_the_database_from_the_repository() {
    let folder = tempfile::tempdir().unwrap();
    for (url, part) in [
        ("mysql://host/db", "ENGINE=InnoDB"),
        ("mariadb://host/db", "ENGINE=InnoDB"),
        ("postgres://host/db", "SEQUENCE IF NOT EXISTS BATCH_JOB_SEQ"),
    ] {
        let (code, text) = operated(folder.path(), &["db", "export-schema", "--repository", url]);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains(part), "{url}: {text}");
    }
}

#[test]
fn the_password_of_a_url_is_not_printed() {
    let folder = tempfile::tempdir().unwrap();
    let url = "postgres://me:secret@host/db";
    let (code, text) = operated(folder.path(), &["config", "show", "--repository", url]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("postgres://me:***@host/db") && !text.contains("secret"),
        "{text}"
    );
}

/// Spec: REPO-12
#[test]
fn the_tables_of_a_server_are_shown_and_migrated() {
    let folder = tempfile::tempdir().unwrap();
    for database in Database::ALL {
        let place = Place::new(database, folder.path());
        for (verb, code) in [("status", 1), ("migrate", 0), ("status", 0)] {
            let (ended, text) = operated(folder.path(), &["db", verb, "--repository", place.url()]);
            assert_eq!(ended, Some(code), "{database:?} {verb}: {text}");
        }
    }
}
