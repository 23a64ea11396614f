//! The crash sweep finds a planted defect of each kind, and none in a correct job.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use batch_runtime::prelude::*;
use batch_testing::{CrashSweep, JobTest, crash_sweep};
use diesel::connection::SimpleConnection;

use super::panics::panic_of;

fn insert(numbers: &[u64]) -> String {
    let rows: Vec<_> = numbers.iter().map(|number| format!("({number})")).collect();
    format!("INSERT INTO number VALUES {}", rows.join(", "))
}

/// Writes in the transaction of the chunk.
#[derive(BatchArtifact)]
struct Inside;

#[item_writer("Inside")]
impl Inside {
    #[open]
    fn open(&mut self, _: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u64], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        Ok(tx.sqlite()?.batch_execute(&insert(numbers))?)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// Writes on another connection, when the chunk's transaction has not locked the database yet.
#[derive(BatchArtifact)]
struct Outside {
    #[batch_context]
    job: JobContext,
}

#[item_writer("Outside")]
impl Outside {
    #[open]
    fn open(&mut self, _: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u64]) -> Result<(), BatchError> {
        let mut connection = self.job.connect()?;
        Ok(connection.sqlite()?.batch_execute(&insert(numbers))?)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// Writes each chunk one chunk later: what is kept in memory is lost in a crash.
#[derive(BatchArtifact)]
struct Late {
    kept: Vec<u64>,
}

#[item_writer("Late")]
impl Late {
    #[open]
    fn open(&mut self, _: Option<()>) {
        self.kept.clear();
    }
    #[write_items]
    fn write(&mut self, numbers: &[u64], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let kept = std::mem::replace(&mut self.kept, numbers.to_vec());
        if numbers.contains(&7) {
            let all = [kept, std::mem::take(&mut self.kept)].concat();
            tx.sqlite()?.batch_execute(&insert(&all))?;
        } else if !kept.is_empty() {
            tx.sqlite()?.batch_execute(&insert(&kept))?;
        }
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// Appends lines to a file, and truncates it at the checkpoint if `truncates`.
#[derive(BatchArtifact)]
struct Lines {
    #[batch_property(name = "output")]
    output: PathBuf,
    #[batch_property(name = "truncates", value = "true")]
    truncates: bool,
}

#[item_writer("Lines")]
impl Lines {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) -> Result<(), std::io::Error> {
        let file = OpenOptions::new().create(true).append(true).open(&self.output)?;
        match self.truncates {
            true => file.set_len(checkpoint.unwrap_or(0)),
            false => Ok(()),
        }
    }
    #[write_items]
    fn write(&mut self, numbers: &[u64]) -> Result<(), std::io::Error> {
        let lines: String = numbers.iter().map(|number| format!("{number}\n")).collect();
        let mut file = OpenOptions::new().append(true).open(&self.output)?;
        file.write_all(lines.as_bytes())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Result<u64, std::io::Error> {
        Ok(fs::metadata(&self.output)?.len())
    }
}

/// Adds a line to a file for each written chunk.
#[derive(BatchArtifact)]
struct Audit {
    #[batch_property(name = "audit")]
    audit: Option<PathBuf>,
}

#[item_write_listener("Audit")]
impl Audit {
    #[after_write]
    fn after(&mut self, numbers: &[u64]) -> Result<(), std::io::Error> {
        let Some(audit) = &self.audit else { return Ok(()) };
        let mut file = OpenOptions::new().create(true).append(true).open(audit)?;
        writeln!(file, "{} numbers", numbers.len())
    }
}

const JOB: &str = r#"<job id="numbers"><step id="load">
  <listeners><listener ref="Audit"/></listeners>
  <chunk reader="Counter" writer="${writer}" processor="Same" commit-interval="3"/>
</step></job>"#;

/// Returns the numbers.
#[derive(BatchArtifact)]
struct Same;

#[item_processor("Same")]
impl Same {
    #[process_item]
    fn process(&mut self, number: u64) -> Option<u64> {
        Some(number)
    }
}

/// Returns a sweep of a job that writes the numbers to 7. `shift` is added to each checkpoint of the reader.
fn sweep(shift: i64, writer: &str) -> (tempfile::TempDir, CrashSweep) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.xml");
    fs::write(&file, JOB).unwrap();
    let sweep = crash_sweep(file)
        .parameter("limit", 7)
        .parameter("shift", shift)
        .parameter("writer", writer)
        .prepare(|database| database.execute("CREATE TABLE number (number INTEGER)"));
    (folder, sweep)
}

#[test]
fn a_correct_writer_passes() {
    let (_folder, sweep) = sweep(0, "Inside");
    sweep.run();
}

#[test]
fn a_correct_file_passes() {
    let (_folder, sweep) = sweep(0, "Lines");
    sweep.output("output", "numbers.txt").sample(40).run();
}

#[test]
fn a_check_compares_its_own_result() {
    let (_folder, sweep) = sweep(0, "Inside");
    sweep.sample(20).check(|database| database.count("number"));
}

/// The tables of the program are those that its command line creates.
#[test]
fn schema_sql_creates_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.xml");
    fs::write(&file, JOB).unwrap();
    let test = JobTest::new(file).schema_sql("CREATE TABLE IF NOT EXISTS number (number INTEGER)");
    let sweep = crash_sweep(test).parameter("limit", 7).parameter("shift", 0);
    sweep.parameter("writer", "Inside").sample(20).run();
}

/// A sample has the given number of faults, unless `BATCH_SWEEP=all` is set.
#[test]
fn a_sample_injects_some_faults() {
    let (_folder, sweep) = sweep(0, "Inside");
    let runs = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&runs);
    let sweep = sweep.prepare(move |database| {
        count.fetch_add(1, Ordering::Relaxed);
        database.execute("CREATE TABLE number (number INTEGER)");
    });
    sweep.sample(9).run();
    // Two runs are undisturbed.
    let faults = runs.load(Ordering::Relaxed) - 2;
    match std::env::var("BATCH_SWEEP").as_deref() {
        Ok("all") => assert!(faults > 100, "{faults}"),
        _ => assert_eq!(faults, 9),
    }
}

#[test]
fn a_file_that_is_not_truncated_is_found() {
    let (_folder, sweep) = sweep(0, "Lines");
    let message = panic_of(|| {
        sweep
            .parameter("truncates", false)
            .output("output", "numbers.txt")
            .run();
    });
    assert!(
        message.contains("file `numbers.txt`: 10 lines, expected 7"),
        "{message}"
    );
}

#[test]
fn a_listener_with_an_effect_of_its_own_is_found() {
    let (_folder, sweep) = sweep(0, "Inside");
    let message = panic_of(|| {
        sweep.output("audit", "audit.txt").run();
    });
    assert!(
        message.contains("file `audit.txt`: 4 lines, expected 3"),
        "{message}"
    );
}

#[test]
fn an_early_checkpoint_is_found() {
    let (_folder, sweep) = sweep(-1, "Inside");
    let message = panic_of(|| {
        sweep.run();
    });
    assert!(
        message.contains("table `number`: 8 rows, expected 7\n  1 extra row"),
        "{message}"
    );
    assert!(
        message.contains("a checkpoint does not match the items"),
        "{message}"
    );
}

#[test]
fn a_writer_outside_of_the_transaction_is_found() {
    let (_folder, sweep) = sweep(0, "Outside");
    let message = panic_of(|| {
        sweep.run();
    });
    assert!(
        message.contains("table `number`: 10 rows, expected 7\n  3 extra rows"),
        "{message}"
    );
    assert!(message.contains("writer `Outside`"), "{message}");
    assert!(
        message.contains("`number` is written outside of the transaction"),
        "{message}"
    );
}

#[test]
fn items_that_are_kept_over_a_commit_are_found() {
    let (_folder, sweep) = sweep(0, "Late");
    let message = panic_of(|| {
        sweep.run();
    });
    assert!(
        message.contains("table `number`: 4 rows, expected 7\n  3 missing rows"),
        "{message}"
    );
}

/// Sweeps at the same place in the source are different sweeps.
#[test]
fn a_test_may_have_several_sweeps() {
    for shift in [0, -1] {
        let (_folder, sweep) = sweep(shift, "Inside");
        if shift == 0 {
            sweep.sample(20).run();
        } else {
            assert!(panic_of(|| sweep.run()).contains("1 extra row"));
        }
    }
}

#[test]
fn a_wrong_test_name_is_reported() {
    let (_folder, sweep) = sweep(0, "Inside");
    let message = panic_of(|| sweep.test_name("sweeps::another").run());
    assert!(
        message.starts_with("the test program ran no sweep as test `sweeps::another`; set the full name"),
        "{message}"
    );
}

#[test]
fn a_check_that_panics_is_reported_with_its_event() {
    let (_folder, sweep) = sweep(0, "Inside");
    let calls = AtomicU32::new(0);
    let message = panic_of(|| {
        sweep.check(|_| {
            // The undisturbed runs make the first two calls.
            assert!(calls.fetch_add(1, Ordering::Relaxed) < 2, "a wrong check");
        });
    });
    assert!(
        message.starts_with("a function of the test panicked in the run for event "),
        "{message}"
    );
    assert!(message.ends_with(": a wrong check"), "{message}");
}

#[test]
fn a_job_that_fails_undisturbed_is_reported() {
    let (_folder, sweep) = sweep(0, "Inside");
    let message = panic_of(|| sweep.prepare(|_| {}).run());
    assert!(
        message.starts_with("the undisturbed run did not complete\n"),
        "{message}"
    );
    assert!(message.contains("no such table: number"), "{message}");
}

/// Columns that differ in each run can be ignored.
#[test]
fn a_column_is_ignored() {
    let (_folder, sweep) = sweep(0, "Inside");
    let prepared = |sweep: CrashSweep| {
        sweep.prepare(|database| {
            database.execute("CREATE TABLE number (number INTEGER)");
            // Not deterministic, as a time is.
            database.execute("CREATE TABLE start (at INTEGER DEFAULT (RANDOM()), name TEXT)");
            database.execute("INSERT INTO start (name) VALUES ('a')");
        })
    };
    prepared(sweep).ignore_column("start.at").sample(20).run();
    let (_folder, sweep) = self::sweep(0, "Inside");
    let message = panic_of(|| prepared(sweep).run());
    assert!(
        message.starts_with("two undisturbed runs differ:\ntable `start`: 1 row, expected 1"),
        "{message}"
    );
}

/// A sweep that has nothing to compare proves nothing.
#[test]
fn a_job_without_a_result_is_reported() {
    let (folder, sweep) = sweep(0, "Lines");
    // A parameter, where `output` would name a file in the folder of each run.
    let elsewhere = folder.path().join("numbers.txt");
    let sweep = sweep.prepare(|_| {}).parameter("output", elsewhere.display());
    let message = panic_of(|| sweep.run());
    assert!(
        message.contains("so there is nothing to compare; set the path"),
        "{message}"
    );
}

#[test]
fn a_column_that_does_not_exist_is_reported() {
    let (_folder, sweep) = sweep(0, "Inside");
    let message = panic_of(|| sweep.ignore_column("number.nmber").run());
    assert!(
        message.contains("there is no column `number.nmber` to ignore"),
        "{message}"
    );
}

/// A table that a step creates is not written outside of a transaction by that.
#[test]
fn a_step_that_creates_a_table_does_not_mislead() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.xml");
    let create = r#"<job id="numbers"><step id="create" next="load"><batchlet ref="CreateNumber"/></step><step id="load">"#;
    let step = r#"<job id="numbers"><step id="load">"#;
    fs::write(&file, JOB.replace(step, create)).unwrap();
    let sweep = crash_sweep(file)
        .parameter("limit", 7)
        .parameter("shift", -1)
        .parameter("writer", "Inside");
    let message = panic_of(|| sweep.run());
    assert!(message.contains("1 extra row"), "{message}");
    assert!(
        message.contains("a checkpoint does not match the items"),
        "{message}"
    );
}

/// Creates the table on another connection.
#[derive(BatchArtifact)]
struct CreateNumber {
    #[batch_context]
    job: JobContext,
}

#[batchlet("CreateNumber")]
impl CreateNumber {
    #[process]
    fn create(&self) -> Result<String, BatchError> {
        let create = "CREATE TABLE IF NOT EXISTS number (number INTEGER)";
        self.job.connect()?.sqlite()?.batch_execute(create)?;
        Ok("CREATED".into())
    }
    #[cancel]
    fn cancel(&self) {}
}

/// What differs in each run is changed before the comparison.
#[test]
fn files_are_normalized() {
    let (_folder, sweep) = sweep(0, "Inside");
    // The listener adds a line for each chunk, also for one that is repeated.
    sweep
        .output("audit", "audit.txt")
        .normalize_files(|name, text| {
            assert_eq!(name, "audit.txt");
            text.lines().last().unwrap_or_default().to_owned()
        })
        .sample(20)
        .run();
}

#[test]
fn a_table_is_ignored() {
    let (_folder, sweep) = sweep(-1, "Inside");
    let create =
        "CREATE TABLE number (number INTEGER); CREATE TABLE other (a TEXT); INSERT INTO other VALUES ('a')";
    sweep
        .prepare(move |database| database.execute(create))
        .ignore_table("number")
        .sample(20)
        .run();
}
