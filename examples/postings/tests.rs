//! Tests of the job: what is posted, and that a crash changes nothing.

use std::fs;
use std::path::Path;

use batch_testing::{JobTest, crash_sweep};

fn job(folder: &Path) -> JobTest {
    JobTest::new("postings/postings.xml")
        .schema_sql(include_str!("schema.sql"))
        .parameter("files", "data/postings-*.csv.gz")
        .parameter("accounts.resource", "data/accounts.csv")
        .parameter("rejects.output", folder.join("rejects.csv").display())
        .parameter("output", folder.join("branches.csv").display())
}

#[test]
fn the_job_fits_its_artifacts() {
    batch_runtime::check_jobs!(deny_warnings, "postings");
}

/// Each line is a posting and part of the balance of its account, or a reject.
#[test]
fn balances_are_the_sums_of_the_postings() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = job(folder.path()).launch();
    run.assert_completed();
    run.step("post")
        .assert_reads(1797)
        .assert_writes(1794)
        .assert_skips(6);
    let mut database = run.database();
    assert_eq!(database.count("posting"), 1794);
    database.execute("CREATE TABLE sums AS SELECT account, branch, SUM(cents), COUNT(*) FROM posting GROUP BY account, branch");
    assert_eq!(database.rows("sums"), database.rows("balance"));
    let rejects = fs::read_to_string(folder.path().join("rejects.csv")).expect("the rejects");
    for part in [
        "expected a date such as `31.12.2026`, not `2026-11-30`",
        "expected an amount such as `1.234,56`, not `12.50`",
        "no row of `data/accounts.csv` has the key \"\"A-999\"\" in `account`",
        "UNIQUE constraint failed: posting.number: (P00005)",
    ] {
        assert!(rejects.contains(part), "{part}: {rejects}");
    }
    let branches = fs::read_to_string(folder.path().join("branches.csv")).expect("the summary");
    assert_eq!(branches.lines().count(), 6, "{branches}");
}

/// Wherever the process dies, tables, rejects and summary are those of an undisturbed run.
#[test]
fn a_crash_loses_or_duplicates_no_posting() {
    let folder = tempfile::tempdir().expect("a folder");
    crash_sweep(job(folder.path()))
        .parameter("commit.interval", 300)
        .output("rejects.output", "rejects.csv")
        .output("output", "branches.csv")
        .sample(20)
        .run();
}
