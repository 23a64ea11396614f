//! Retries in the dialect of Jakarta Batch, and the listeners of chunks and retries.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use batch_testing::{JobRun, JobTest};

use crate::artifacts::error_types;

/// The calls of each run, by its number: artifacts are created by the runtime.
static CALLS: Mutex<Option<HashMap<u64, Vec<String>>>> = Mutex::new(None);

fn note(run: u64, call: impl Into<String>) {
    let mut all = CALLS.lock().unwrap();
    let calls = all.get_or_insert_default().entry(run).or_default();
    calls.push(call.into());
}

fn calls(run: u64) -> Vec<String> {
    let mut all = CALLS.lock().unwrap();
    all.get_or_insert_default().entry(run).or_default().clone()
}

error_types! {
    /// The error that is retried.
    Passing => "it passes";
    /// The error of an input that cannot be read. It is skipped, not retried.
    Damaged => "damaged";
}

/// Notes a call, and fails as often as the call is listed in `fails`.
fn attempt(run: u64, fails: &str, call: &str) -> Result<(), Passing> {
    note(run, call);
    let attempts = calls(run).iter().filter(|other| *other == call).count();
    let failures = fails.split("; ").filter(|listed| *listed == call).count();
    if attempts <= failures {
        Err(Passing)
    } else {
        Ok(())
    }
}

/// Reads the numbers to 6. Fails in the calls that its property lists, such as `read 5; process 3`, each of them once, and always at
/// `damaged 2`.
#[derive(BatchArtifact)]
struct Count {
    #[batch_property]
    fails: String,
    #[batch_property]
    run: u64,
    last: u64,
}

#[item_reader("Count")]
impl Count {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.last = checkpoint.unwrap_or(0);
        note(self.run, format!("open at {}", self.last));
    }
    #[read_item]
    fn read(&mut self) -> Result<Option<u64>, BatchError> {
        if self.last == 6 {
            return Ok(None);
        }
        if self.fails.contains(&format!("damaged {}", self.last + 1)) {
            self.last += 1;
            return Err(Damaged.into());
        }
        attempt(self.run, &self.fails, &format!("read {}", self.last + 1))?;
        self.last += 1;
        Ok(Some(self.last))
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.last
    }
}

#[item_processor("Pass")]
fn pass(
    item: u64,
    #[batch_property] fails: &str,
    #[batch_property] run: u64,
) -> Result<Option<u64>, Passing> {
    attempt(run, fails, &format!("process {item}"))?;
    Ok(Some(item))
}

/// With `named` in its list of failures, it reports the second item as the reason.
#[item_writer("Write")]
fn write(
    items: &[u64],
    _tx: &mut ChunkTransaction,
    #[batch_property] fails: &str,
    #[batch_property] run: u64,
) -> Result<(), BatchError> {
    let written = attempt(run, fails, &format!("write {items:?}"));
    written.map_err(|error| match fails.contains("named") {
        true => BatchError::at_item(1, error),
        false => error.into(),
    })
}

/// Notes its calls. With `retry listener` in the list of failures it throws for a read.
#[derive(BatchArtifact)]
struct Listener {
    #[batch_property]
    fails: String,
    #[batch_property]
    run: u64,
}

#[chunk_listener("Listener")]
impl Listener {
    #[before_chunk]
    fn before(&mut self) {
        note(self.run, "before chunk");
    }
    #[after_chunk]
    fn after(&mut self) {
        note(self.run, "after chunk");
    }
    #[on_chunk_error]
    fn error(&mut self, ex: &BatchError) {
        note(self.run, format!("chunk error: {ex}"));
    }
}

#[retry_listener]
impl Listener {
    #[on_retry_read_exception]
    fn read(&mut self, ex: &BatchError) -> Result<(), BatchError> {
        note(self.run, format!("retry read: {ex}"));
        match self.fails.contains("retry listener") {
            true => Err(BatchError::msg("the listener throws")),
            false => Ok(()),
        }
    }
    #[on_retry_process_exception]
    fn process(&mut self, ex: &BatchError, item: &u64) {
        note(self.run, format!("retry process of {item}: {ex}"));
    }
    #[on_retry_write_exception]
    fn write(&mut self, ex: &BatchError, items: &[u64]) {
        note(self.run, format!("retry write of {items:?}: {ex}"));
    }
}

#[skip_listener]
impl Listener {
    #[on_skip_in_read]
    fn skip_read(&mut self, _: &BatchError) {
        note(self.run, "skip read");
    }
    #[on_skip_in_process]
    fn skip_process(&mut self, _: &BatchError, item: &dyn std::any::Any) {
        let item = item.downcast_ref::<u64>();
        note(self.run, format!("skip process of {item:?}"));
    }
    #[on_skip_in_write]
    fn skip_write(&mut self, _: &BatchError, items: &[u64]) {
        note(self.run, format!("skip write of {items:?}"));
    }
}

/// Runs a chunk of the numbers to 6 by 3, with or without the listener and with this property; `classes` are the lists that contain
/// the error. Returns its calls, too.
fn run(fails: &str, classes: &[&str], listener: bool, property: &str) -> (JobRun, Vec<String>) {
    static RUNS: AtomicU64 = AtomicU64::new(1);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let own = format!(
        "<properties><property name='run' value='{run}'/><property name='fails' value='{fails}'/></properties>"
    );
    let listeners = match listener {
        true => format!("<listeners><listener ref='Listener'>{own}</listener></listeners>"),
        false => String::new(),
    };
    let mut rules = String::new();
    if fails.contains("damaged") {
        rules += "<skippable-exception-classes><include class='Damaged'/></skippable-exception-classes>";
    }
    for list in classes {
        rules += &format!("<{list}-exception-classes><include class='Passing'/></{list}-exception-classes>");
    }
    let text = format!(
        "<job id='j' version='2.0' xmlns='https://jakarta.ee/xml/ns/jakartaee'><step id='s'>
           <properties>{property}</properties>{listeners}
           <chunk item-count='3' retry-limit='2' skip-limit='5'>
             <reader ref='Count'>{own}</reader><processor ref='Pass'>{own}</processor><writer ref='Write'>{own}</writer>
             {rules}
           </chunk>
         </step></job>"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("job.xml");
    std::fs::write(&file, text).unwrap();
    (JobTest::new(file).launch(), calls(run))
}

/// Runs the chunk without the listener. It completes.
fn completed(fails: &str) -> Vec<String> {
    let (run, calls) = run(fails, RETRYABLE, false, "");
    run.assert_completed();
    calls
}

/// Returns the calls that begin with a word.
fn chosen<'c>(calls: &'c [String], word: &str) -> Vec<&'c str> {
    let calls = calls.iter().map(String::as_str);
    calls.filter(|call| call.starts_with(word)).collect()
}

const RETRYABLE: &[&str] = &["retryable"];
const NO_ROLLBACK: &[&str] = &["retryable", "no-rollback"];

/// The chunk is rolled back, and what it has touched is read again in chunks of one item.
///
/// Spec: JAK-18, JAK-30
#[test]
fn a_retry_reads_the_chunk_again_one_by_one() {
    for fails in ["read 5", "process 5", "write [4, 5, 6]"] {
        let all = completed(fails);
        let again = all.iter().rposition(|call| call.starts_with("open")).unwrap();
        assert_eq!(all[again], "open at 3", "{fails}: {all:?}");
        let mut expected = Vec::new();
        for item in [4, 5, 6] {
            expected.extend([
                format!("read {item}"),
                format!("process {item}"),
                format!("write [{item}]"),
            ]);
        }
        assert_eq!(all[again + 1..], expected, "{fails}");
    }
}

/// A read that need not roll back is only called again, unless a retry listener throws.
///
/// Spec: LISTEN-RETRY-04, JAK-18
#[test]
fn a_retry_listener_that_throws_rolls_back() {
    for (fails, opened) in [("read 2", 1), ("read 2; retry listener", 2)] {
        let (run, all) = run(fails, NO_ROLLBACK, true, "");
        run.assert_completed();
        assert_eq!(chosen(&all, "open at 0").len(), opened, "{fails}: {all:?}");
    }
}

/// After the items of the failed chunk, the rest is read in whole chunks again. The retry goes item by item over all inputs, including
/// those that were skipped.
///
/// Spec: JAK-18, JAK-30
#[test]
fn chunks_have_their_size_again_after_the_items_of_the_failed_one() {
    for (fails, writes) in [
        (
            "process 2",
            &["write [1]", "write [2]", "write [3, 4, 5]", "write [6]"][..],
        ),
        (
            "damaged 2; process 3",
            &["write [1]", "write [3]", "write [4, 5, 6]"],
        ),
    ] {
        assert_eq!(chosen(&completed(fails), "write"), writes, "{fails}");
    }
}

/// Spec: JAK-29, JAK-31
#[test]
fn without_a_rollback_only_the_failed_call_is_repeated() {
    for processors in ["", "<property name='batch.chunk.processors' value='3'/>"] {
        for listener in [false, true] {
            let (run, all) = run("read 2; process 5", NO_ROLLBACK, listener, processors);
            run.assert_completed();
            run.step("s").assert_reads(6).assert_writes(6).assert_rollbacks(0);
            let counts = ["open", "read", "process", "write"].map(|word| chosen(&all, word).len());
            assert_eq!(counts, [1, 7, 7, 2], "{all:?}");
            assert_eq!(chosen(&all, "write"), ["write [1, 2, 3]", "write [4, 5, 6]"]);
            let notified = ["retry read: it passes", "retry process of 5: it passes"];
            let notified = notified.map(|call| chosen(&all, call).len());
            assert_eq!(notified, [usize::from(listener); 2], "{all:?}");
        }
    }
}

/// The writer is called again with the same list, even if it names the item that is the reason.
///
/// Spec: JAK-29, JAK-31
#[test]
fn without_a_rollback_a_write_is_repeated_with_its_list() {
    for fails in ["write [4, 5, 6]", "write [4, 5, 6]; named"] {
        let (run, all) = run(fails, NO_ROLLBACK, true, "");
        run.assert_completed();
        run.step("s").assert_rollbacks(0).assert_writes(6);
        let failed = all.iter().position(|call| call == "write [4, 5, 6]").unwrap();
        let again = ["retry write of [4, 5, 6]: it passes", "write [4, 5, 6]"];
        assert_eq!(all[failed + 1..failed + 3], again, "{fails}");
    }
}

/// A list is one skip, so the step reports how many items it has dropped.
///
/// Spec: JAK-19, LOSS-07
#[test]
fn the_items_of_a_skipped_list_are_counted() {
    let (run, _) = run("write [4, 5, 6]", &["skippable"], false, "");
    let step = run.assert_completed().step("s");
    let step = step.assert_writes(3).assert_write_skips(1);
    let message = "3 items were in skipped lists; each list counts as one skip";
    assert_eq!(step.execution().exit_message, message);
}

/// A call that fails again while it is repeated, or while its chunk is retried item by item, is skipped if it may be.
///
/// Spec: JAK-28, JAK-30, JAK-31
#[test]
fn a_repeated_call_that_fails_again_is_skipped() {
    const SKIPPED_AFTER_ROLLBACK: &[&str] = &["retryable", "skippable"];
    const SKIPPED_IN_PLACE: &[&str] = &["retryable", "skippable", "no-rollback"];
    for (classes, fails, skip) in [
        (SKIPPED_IN_PLACE, "read 5; read 5", "skip read"),
        (
            SKIPPED_IN_PLACE,
            "process 5; process 5",
            "skip process of Some(5)",
        ),
        (
            SKIPPED_IN_PLACE,
            "write [4, 5, 6]; write [4, 5, 6]",
            "skip write of [4, 5, 6]",
        ),
        (SKIPPED_AFTER_ROLLBACK, "read 5; read 5", "skip read"),
        (
            SKIPPED_AFTER_ROLLBACK,
            "process 5; process 5",
            "skip process of Some(5)",
        ),
        (
            SKIPPED_AFTER_ROLLBACK,
            "write [4, 5, 6]; write [5]",
            "skip write of [5]",
        ),
    ] {
        let (run, all) = run(fails, classes, true, "");
        let rollbacks = i64::from(classes == SKIPPED_AFTER_ROLLBACK);
        run.assert_completed().step("s").assert_rollbacks(rollbacks);
        assert_eq!(chosen(&all, "retry").len(), 1, "{fails}: {all:?}");
        assert_eq!(chosen(&all, "skip"), [skip], "{fails}: {all:?}");
    }
}

/// The chunk that is retried begins again.
///
/// Spec: JAK-27, JAK-29
#[test]
fn listeners_see_a_chunk_that_is_retried() {
    let (run, mut events) = run("write [1, 2, 3]", RETRYABLE, true, "");
    run.assert_completed();
    events.retain(|call| !call.starts_with("read") && !call.starts_with("process"));
    let mut expected = vec![
        "open at 0",
        "before chunk",
        "write [1, 2, 3]",
        "retry write of [1, 2, 3]: it passes",
        "chunk error: it passes",
        "open at 0",
    ];
    for write in ["write [1]", "write [2]", "write [3]", "write [4, 5, 6]"] {
        expected.extend(["before chunk", write, "after chunk"]);
    }
    expected.extend(["before chunk", "after chunk"]);
    assert_eq!(events, expected);
}

/// An error that no rule handles fails the step.
///
/// Spec: JAK-27
#[test]
fn a_chunk_listener_sees_the_error_that_fails_the_step() {
    let (run, all) = run("process 2", &[], true, "");
    run.assert_status(BatchStatus::Failed);
    assert_eq!(all.last().unwrap(), "chunk error: it passes");
}

/// Spec: CHUNK-RETRY-04, JAK-18
#[test]
fn the_retry_limit_counts_all_retries_of_the_step() {
    let (run, _) = run("read 1; process 2; write [3, 4, 5]", RETRYABLE, false, "");
    run.assert_failed("the retry-limit of 2 is used up");
}
