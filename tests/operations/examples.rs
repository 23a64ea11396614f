//! The examples that are stories, run as in their documentation: output, exit code, database, files.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use batch_tests::process::run_expecting;
use batch_tests::{flights, sqlite};
use diesel::prelude::*;
use diesel::sql_types::Text;
use serde_json::Value;

/// Returns the execution of a story as `show` prints it, and its steps by name.
struct Shown(Value);

impl Shown {
    fn of(example: &str, folder: &Path, execution: &str) -> Self {
        let (out, _) = run_expecting(0, example, folder, &["show", execution, "--json"]);
        Self(serde_json::from_str(&out).unwrap())
    }

    fn steps(&self) -> Vec<String> {
        let steps = self.0["steps"].as_array().unwrap();
        let mut lines: Vec<String> = steps
            .iter()
            .map(|step| {
                let text = |key: &str| step[key].as_str().unwrap().to_owned();
                format!("{} {} {}", text("step"), text("status"), text("exitStatus"))
            })
            .collect();
        lines.sort();
        lines
    }

    fn counter(&self, step: &str, counter: &str) -> i64 {
        let steps = self.0["steps"].as_array().unwrap();
        let step = steps.iter().find(|other| other["step"] == step).unwrap();
        step[counter].as_i64().unwrap()
    }
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    text: String,
}

fn lines(database: &Path, sql: &str) -> Vec<String> {
    let lines: Vec<Line> = diesel::sql_query(sql).load(&mut sqlite::open(database)).unwrap();
    lines.into_iter().map(|line| line.text).collect()
}

/// Returns the payments to book, computed from the file without the code of the example: number, line, cents, currency.
fn payments() -> Vec<String> {
    let text = fs::read_to_string(flights::data().join("payments.csv")).unwrap();
    let mut seen = Vec::new();
    let rows = text.lines().enumerate().skip(1);
    rows.filter_map(|(index, row)| {
        let fields: Vec<&str> = row.split(',').collect();
        let [number, _, amount, currency] = fields[..] else {
            return None;
        };
        let cents: i64 = amount.replace('.', "").parse().ok()?;
        let is_good = cents > 0 && ["EUR", "CHF"].contains(&currency) && !seen.contains(&number);
        seen.push(number);
        is_good.then(|| format!("{number} {} {cents} {currency}", index + 1))
    })
    .collect()
}

fn booked(folder: &Path) -> Vec<String> {
    let sql =
        "SELECT number || ' ' || line || ' ' || cents || ' ' || currency AS text FROM payment ORDER BY line";
    lines(&folder.join("batch.db"), sql)
}

/// Phase, line and row of each reject.
const REJECTS: [&str; 6] = [
    "read 5 P-1004,Old Mill Press,75.00",
    "process 8 P-1007,Rowan Dairy,-5.00,EUR",
    "read 17 P-1015,Linden Bakery,twelve,EUR",
    "process 20 P-1018,Old Mill Press,99.00,GBX",
    "write 13 P-1003,Northgate Cycles,349.90,EUR",
    "read 26 P-1024,Quay Optics,88.00,EUR,urgent",
];

fn rejects(folder: &Path) -> Vec<String> {
    let report = fs::File::open(folder.join("rejects.csv")).unwrap();
    let rows = csv::Reader::from_reader(report).into_deserialize();
    let rejects = rows.map(|row| {
        let row: HashMap<String, String> = row.unwrap();
        assert!(!row["error"].is_empty());
        format!("{} {} {}", row["phase"], row["line"], row["raw"])
    });
    rejects.collect()
}

/// Returns the file of rejected rows.
fn rejected_rows() -> String {
    let rows = REJECTS.map(|reject| reject.splitn(3, ' ').nth(2).unwrap().to_owned() + "\n");
    "payment,account,amount,currency\n".to_owned() + &rows.concat()
}

/// Every row is booked or rejected, with line and reason; the busy ledger caused one rollback.
///
/// Spec: CHUNK-SKIP-02, CHUNK-SKIP-09 to CHUNK-SKIP-11, CHUNK-RETRY-07, CHUNK-RETRY-12, LISTEN-SKIP-02 to LISTEN-SKIP-05
#[test]
fn skip_retry_books_or_rejects_every_row() {
    let folder = tempfile::tempdir().unwrap();
    let (out, _) = run_expecting(0, "skip-retry", folder.path(), &["launch", "skip-retry"]);
    assert!(
        out.starts_with("booked   3 payments,   2217.75 CHF\nbooked  17 payments,   3237.74 EUR\n"),
        "{out}"
    );
    assert_eq!(booked(folder.path()), payments());
    assert_eq!(rejects(folder.path()), REJECTS);
    let rows = fs::read_to_string(folder.path().join("rejected-payments.csv")).unwrap();
    assert_eq!(rows, rejected_rows());
    let shown = Shown::of("skip-retry", folder.path(), "1");
    let count = |counter: &str| shown.counter("book", counter);
    assert_eq!((count("reads"), count("readSkips")), (23, 3));
    assert_eq!((count("writes"), count("filters")), (20, 0));
    assert_eq!((count("processSkips"), count("writeSkips")), (2, 1));
    assert_eq!((count("commits"), count("rollbacks")), (3, 1));
    assert_eq!(
        count("reads"),
        count("writes") + count("filters") + count("processSkips") + count("writeSkips")
    );
}

/// The third bad row exceeds the limit. The next launch, with a higher limit, resumes after the last commit, and the
/// final result is the same as without the failure.
///
/// Spec: CHUNK-SKIP-06, CHUNK-SKIP-07, RESTART-07, OP-36
#[test]
fn skip_retry_fails_at_its_limit_and_resumes_with_a_higher_one() {
    let folder = tempfile::tempdir().unwrap();
    let launch = |limit: &str, code: i32| {
        let arguments = ["launch", "skip-retry", limit];
        run_expecting(code, "skip-retry", folder.path(), &arguments)
    };
    let (_, err) = launch("-skip.limit=2", 1);
    assert!(
        err.contains("payments.csv:17: field `amount` (number 3): invalid value \"twelve\": `twelve` is not a valid amount: expected one such as `12.50`\n")
            && err.contains("the skip-limit of 2 is used up"),
        "{err}"
    );
    assert_eq!(booked(folder.path()).len(), 9);
    let (out, _) = launch("-skip.limit=10", 0);
    assert!(out.contains("skip-retry:1:2 COMPLETED"), "{out}");
    assert_eq!(booked(folder.path()), payments());
    let (first, second) = (
        Shown::of("skip-retry", folder.path(), "1"),
        Shown::of("skip-retry", folder.path(), "2"),
    );
    assert_eq!(
        second.steps(),
        ["book COMPLETED COMPLETED", "report COMPLETED REPORTED"]
    );
    let sum = |counter: &str| first.counter("book", counter) + second.counter("book", counter);
    assert_eq!((sum("reads"), sum("readSkips"), sum("writes")), (23, 3, 20));
    // The row beyond the limit was not a skip; each other row is in the file once.
    assert_eq!(rejects(folder.path()), REJECTS);
    let rows = fs::read_to_string(folder.path().join("rejected-payments.csv")).unwrap();
    assert_eq!(rows, rejected_rows());
}

/// The rejected rows, corrected, are the input of another launch: every payment is booked, and none twice.
///
/// Spec: LISTEN-SKIP-02 to LISTEN-SKIP-04
#[test]
fn skip_retry_books_corrected_rows_alone() {
    let folder = tempfile::tempdir().unwrap();
    run_expecting(0, "skip-retry", folder.path(), &["launch", "skip-retry"]);
    let rows = folder.path().join("rejected-payments.csv");
    let corrected = fs::read_to_string(&rows)
        .unwrap()
        .replace("twelve", "12.00")
        .replace(",urgent", "");
    fs::write(&rows, corrected).unwrap();
    let again = [
        "launch",
        "skip-retry",
        "payments.file=rejected-payments.csv",
        "rejects.file=again.csv",
        "rejects.rows=again-payments.csv",
    ];
    run_expecting(0, "skip-retry", folder.path(), &again);
    let mut numbers = payments();
    numbers.extend(["P-1015 4 1200 EUR".to_owned(), "P-1024 7 8800 EUR".to_owned()]);
    let mut booked = booked(folder.path());
    numbers.sort();
    booked.sort();
    assert_eq!(booked, numbers);
    let rows = fs::read_to_string(folder.path().join("again-payments.csv")).unwrap();
    assert_eq!(rows.lines().count(), 5, "{rows}");
}

/// The first launch stops where an approval is missing, the second resumes there.
///
/// Spec: TERM-03, TERM-05, TERM-08, TERM-10, RESTART-04, SPLIT-06, SPLIT-08, DEC-14, OP-36
#[test]
fn flow_stops_for_an_approval_and_resumes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| fs::read_to_string(folder.path().join(name));
    let (out, err) = run_expecting(4, "flow", folder.path(), &["launch", "flow", "day=2026-11-20"]);
    assert!(
        out.starts_with("7 orders, 1298.25 EUR\nthe orders of 2026-11-20 need an approval"),
        "{out}"
    );
    assert!(
        out.contains("flow:1:1 STOPPED, exit status NEEDS APPROVAL"),
        "{out}"
    );
    assert!(
        err.contains("to resume from the last checkpoint, run the same `launch` again"),
        "{err}"
    );
    assert!(file("invoices.txt").is_err());
    // Without an approval the decision is repeated, but not the sum.
    let (out, _) = run_expecting(4, "flow", folder.path(), &["launch", "flow", "day=2026-11-20"]);
    assert!(
        out.starts_with("the orders of 2026-11-20 need an approval"),
        "{out}"
    );

    let approved = ["launch", "flow", "day=2026-11-20", "-approved.by=Ada"];
    let (out, _) = run_expecting(0, "flow", folder.path(), &approved);
    assert!(
        out.starts_with("2026-11-20 was approved by Ada\n7 invoices, 4 parcels\n"),
        "{out}"
    );
    let shown = Shown::of("flow", folder.path(), "3");
    assert_eq!(
        shown.steps(),
        [
            "approve COMPLETED APPROVED BY Ada",
            "invoices COMPLETED 7 INVOICES",
            "label COMPLETED 4 PARCELS",
            "pack COMPLETED PACKED",
            "ship COMPLETED SHIPPED"
        ]
    );
    assert!(
        file("invoices.txt")
            .unwrap()
            .starts_with("O-501 Ada           49.80 EUR\n")
    );
    assert!(
        file("packing-list.txt")
            .unwrap()
            .contains("O-503 4 x inner tube\n")
    );
    assert_eq!(file("labels.txt").unwrap(), "Ada\nDorothy\nGrace\nKatherine\n");
    let (_, err) = run_expecting(10, "flow", folder.path(), &approved);
    assert!(err.contains("is complete"), "{err}");
}

/// A value that is not an amount is rejected before the job starts, at its place in the Job XML.
///
/// Spec: BPROP-10, OP-11
#[test]
fn flow_rejects_a_limit_that_is_not_an_amount() {
    let folder = tempfile::tempdir().unwrap();
    let (out, err) = run_expecting(
        2,
        "flow",
        folder.path(),
        &["launch", "flow", "approval.limit=much"],
    );
    assert!(
        out.is_empty() && err.contains("`much` is not a valid amount"),
        "{out}{err}"
    );
}

/// A small day needs no approval. After a failure the decision is repeated, from the stored data of the step before it.
///
/// Spec: RESTART-12, CTX-23, DEC-19
#[test]
fn flow_decides_again_from_stored_data() {
    let folder = tempfile::tempdir().unwrap();
    let small = ["launch", "flow", "approval.limit=5000.00", "output=papers"];
    let (_, err) = run_expecting(1, "flow", folder.path(), &small);
    assert!(err.contains("thrown by #[process] of batchlet"), "{err}");
    fs::create_dir(folder.path().join("papers")).unwrap();
    let (out, _) = run_expecting(0, "flow", folder.path(), &small);
    assert!(out.starts_with("7 invoices, 4 parcels\n"), "{out}");
    assert!(out.contains("flow:1:2 COMPLETED, exit status SMALL"), "{out}");
    let steps = Shown::of("flow", folder.path(), "2").steps();
    assert!(
        !steps
            .iter()
            .any(|step| step.starts_with("approve") || step.starts_with("add-up")),
        "{steps:?}"
    );
}

/// A decision may end the job, which is then complete.
///
/// Spec: DEC-07, DEC-14, TERM-05
#[test]
fn flow_has_nothing_to_do_on_an_empty_day() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("none.csv"),
        "order,customer,item,quantity,price\n",
    )
    .unwrap();
    let arguments = ["launch", "flow", "orders.file=none.csv"];
    let (out, _) = run_expecting(5, "flow", folder.path(), &arguments);
    assert!(
        out.contains("flow:1:1 COMPLETED, exit status NOTHING TO DO"),
        "{out}"
    );
    assert_eq!(
        Shown::of("flow", folder.path(), "1").steps(),
        ["add-up COMPLETED 0 ORDERS"]
    );
}

/// The program observes its job, stops and restarts it; every statement is written once.
///
/// Spec: OP-12, OP-13, OP-17, OP-20, OP-27, OP-28, RESTART-07
#[test]
fn operator_stops_and_restarts_its_job() {
    let folder = tempfile::tempdir().unwrap();
    let (out, _) = run_expecting(0, "operator", folder.path(), &[]);
    let said: Vec<&str> = out.lines().collect();
    assert_eq!(
        said[..4],
        [
            "watched until 20 statements were written",
            "statements:1:1 ended STOPPED",
            "stopped: true",
            "statements:1:2 ended COMPLETED"
        ],
        "{out}"
    );
    assert!(
        said[4].starts_with("1: prepare COMPLETED")
            && said[5].starts_with("1: write STOPPED")
            && said[6].starts_with("2: write COMPLETED"),
        "{out}"
    );
    let accounts = lines(
        &folder.path().join("operator.db"),
        "SELECT CAST(account AS TEXT) AS text FROM statement ORDER BY account",
    );
    let expected: Vec<String> = (1..=3000).map(|account| account.to_string()).collect();
    assert_eq!(accounts, expected);
}

/// The loader in batch.xml gives two artifacts of two steps the same client.
///
/// Spec: LOADER-03 to LOADER-06, LOADER-10, LOADER-11, LOADER-14
#[test]
fn custom_loader_shares_a_client() {
    let folder = tempfile::tempdir().unwrap();
    let (out, _) = run_expecting(0, "custom-loader", folder.path(), &["launch", "custom-loader"]);
    let asked: Vec<&str> = out.lines().filter(|line| line.starts_with("asking")).collect();
    assert_eq!(asked.len(), 4, "{out}");
    assert!(
        out.contains("R-1 Harbour Books     110.40 EUR\n")
            && out.contains("R-9 Harbour Books      33.12 EUR\n"),
        "{out}"
    );
    assert!(out.contains("the rate service was asked 4 times\n"), "{out}");
    assert!(
        Shown::of("custom-loader", folder.path(), "1")
            .steps()
            .contains(&"usage COMPLETED 4 REQUESTS".to_owned())
    );
    let (out, err) = run_expecting(0, "custom-loader", folder.path(), &["check"]);
    assert!(
        out.contains("custom-loader: ok") && err.contains("ART0009"),
        "{out}{err}"
    );
}

/// A file format of the program is read, and a damaged record is rejected.
///
/// Spec: INPUT-26
#[test]
fn ebcdic_loads_bookings() {
    let folder = tempfile::tempdir().unwrap();
    run_expecting(0, "ebcdic", folder.path(), &["launch", "bookings"]);
    assert_eq!(
        lines(
            &folder.path().join("batch.db"),
            "SELECT account || ' ' || amount AS text FROM booking ORDER BY account"
        ),
        [
            "4711 12.5",
            "4712 -0.99",
            "4713 1234567.89",
            "4714 0",
            "4716 0.05"
        ]
    );
    assert!(folder.path().join("rejects.csv").exists());
}

/// A file that is missing is named.
#[test]
fn a_missing_input_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = ["launch", "partitions", "flights.file=missing.csv"];
    let (_, err) = run_expecting(1, "partitions", folder.path(), &missing);
    assert!(err.contains("cannot read `missing.csv`: "), "{err}");
}

/// The command line hands its builder to the program, which adds a batch.xml: without it, no artifact of the job is found.
///
/// Spec: CLI-11
#[test]
fn a_program_configures_the_runtime_of_its_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let (out, _) = run_expecting(0, "custom-loader", folder.path(), &["launch", "custom-loader"]);
    assert!(out.contains("COMPLETED"), "{out}");
}
