//! The public TCK of Jakarta Batch 2.1 (<https://github.com/jakartaee/batch-tck>): its jobs, unchanged, with artifacts and
//! assertions rewritten in Rust.
//!
//! The job XMLs are not part of this repository. The test reads them from the folder in the environment variable
//! `BATCH_TCK`, else from `../shared/tck/jobs` beside the workspace; without them it prints so and passes. It does
//! not make this runtime compatible in the sense of the TCK's licence.
//!
//! - `cases` is the table: each row is a test method with its job, parameters, actions and asserted results.
//! - `case` has the words of the rows, `run` executes one.
//! - `artifacts` has what the jobs name.
//! - `expected.tsv` has the expected result of every method, and the reason if it does not pass. A result that differs from it, in either
//!   direction, fails the test.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod artifacts;
mod case;
mod cases;
mod expected;
mod queue;
mod run;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use expected::{Expected, Kind, Outcome};

/// Returns the folder of the job XMLs, if it exists.
fn jobs() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("BATCH_TCK") {
        let folder = PathBuf::from(named);
        assert!(folder.is_dir(), "BATCH_TCK is not a folder: {}", folder.display());
        return Some(folder);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/tck/jobs");
    folder.is_dir().then_some(folder)
}

/// Spec: JAK-01 to JAK-37
#[test]
fn the_tck_has_the_expected_results() {
    let Some(folder) = jobs() else {
        println!(
            "not run: there are no job XMLs; set BATCH_TCK to the folder META-INF/batch-jobs of the TCK"
        );
        return;
    };
    let expected = expected::all();
    let results: BTreeMap<&str, Result<(), String>> = queue::run_all(cases::all(), &folder);
    let mut differences = Vec::new();
    for row in &expected {
        let found = match results.get(row.method) {
            Some(Ok(())) => Outcome::Pass,
            Some(Err(_)) => Outcome::Diff,
            None => Outcome::NotApplicable,
        };
        if found != row.outcome {
            let failure = results.get(row.method).and_then(|result| result.as_ref().err());
            let failure = failure.map(|failure| format!(": {failure}")).unwrap_or_default();
            differences.push(format!(
                "{}: {found}, expected {}{failure}",
                row.method, row.outcome
            ));
        }
    }
    println!("{}", summary(&expected, &results));
    assert!(
        differences.is_empty(),
        "{} methods differ from expected.tsv:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

/// Returns the number of methods that passed.
fn summary(expected: &[Expected], results: &BTreeMap<&str, Result<(), String>>) -> String {
    let of = |kind: Kind| expected.iter().filter(move |row| row.kind == kind);
    let passed = |kind: Kind| {
        of(kind)
            .filter(|row| matches!(results.get(row.method), Some(Ok(()))))
            .count()
    };
    let need_cdi = of(Kind::Enabled).filter(|row| row.outcome == Outcome::NotApplicable);
    format!(
        "passed {} of {} enabled methods ({} need CDI), {} of {} disabled ones, {} of {} of the older TCK",
        passed(Kind::Enabled),
        of(Kind::Enabled).count(),
        need_cdi.count(),
        passed(Kind::Disabled),
        of(Kind::Disabled).count(),
        passed(Kind::Older),
        of(Kind::Older).count(),
    )
}

/// Every row of the table has an expected result, and every method of the TCK is listed.
#[test]
fn every_case_is_expected() {
    let expected = expected::all();
    let listed: Vec<&str> = expected.iter().map(|row| row.method).collect();
    for case in cases::all() {
        let count = listed.iter().filter(|method| **method == case.method).count();
        assert_eq!(count, 1, "{} in expected.tsv", case.method);
    }
    let of_the_tck = expected.iter().filter(|row| row.kind != Kind::Older).count();
    assert_eq!(of_the_tck, 179);
    for row in expected.iter().filter(|row| row.outcome != Outcome::Pass) {
        assert!(!row.reason.is_empty(), "{} has no reason", row.method);
    }
}
