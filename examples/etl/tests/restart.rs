//! The file and the table have each row once, also after failures.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::process::{Command, Output};

fn launch(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_etl"))
        .args(["launch", "etl"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// The job fails in the export, in the import, and completes: the tables are the same.
///
/// Spec: RESTART-07, RESTART-08
#[test]
fn a_failed_run_is_resumed_in_the_file_and_in_the_table() {
    let folder = tempfile::tempdir().unwrap();
    for (fails_at, step) in [("30000", "export"), ("17000", "import")] {
        let failed = launch(folder.path(), &["rows=50000", &format!("-fails.at={fails_at}")]);
        assert_eq!(failed.status.code(), Some(1), "{failed:?}");
        let text = String::from_utf8_lossy(&failed.stdout).into_owned();
        assert!(
            text.lines()
                .any(|line| line.starts_with(step) && line.contains("FAILED")),
            "{text}"
        );
    }
    let completed = launch(folder.path(), &["rows=50000", "-fails.at=0"]);
    assert!(completed.status.success(), "{completed:?}");
    let text = String::from_utf8_lossy(&completed.stdout).into_owned();
    let totals = text.split("Totals of the instance").nth(1).unwrap();
    let row = |step: &str| {
        let row = totals.lines().find(|line| line.starts_with(step)).unwrap();
        row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    // STEP EXECUTIONS READ FILTERED WRITTEN
    assert_eq!(row("import")[1..5], ["2", "50000", "0", "50000"]);
    assert!(!folder.path().join("differences.csv").exists());
}
