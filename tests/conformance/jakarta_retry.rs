//! Retries in the dialect of Jakarta Batch, and the listeners of chunks and retries.

use std::sync::{Arc, Mutex};

use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use batch_testing::{JobRun, JobTest};

/// The calls of a test, one line each.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn add(&self, call: impl Into<String>) {
        self.0.lock().unwrap().push(call.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Finds the calls of a test by its folder, because artifacts are created by the runtime.
static CALLS: Mutex<Vec<(String, Calls)>> = Mutex::new(Vec::new());

fn calls(test: &str) -> Calls {
    let mut all = CALLS.lock().unwrap();
    if let Some((_, calls)) = all.iter().find(|(name, _)| name == test) {
        return calls.clone();
    }
    let calls = Calls::default();
    all.push((test.to_owned(), calls.clone()));
    calls
}

/// The error that is retried.
#[derive(Debug, BatchException)]
struct Passing;

impl std::fmt::Display for Passing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it passes")
    }
}

impl std::error::Error for Passing {}

/// The error of an input that cannot be read. It is skipped, not retried.
#[derive(Debug, BatchException)]
struct Damaged;

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("damaged")
    }
}

impl std::error::Error for Damaged {}

/// Notes a call, and fails as often as the call is listed in `fails`.
fn attempt(test: &str, fails: &str, call: String) -> Result<(), Passing> {
    let calls = calls(test);
    calls.add(call.clone());
    let attempts = calls.all().iter().filter(|other| **other == call).count();
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
    #[batch_property(name = "fails", value = "")]
    fails: String,
    #[batch_property(name = "test")]
    test: String,
    last: u64,
}

#[item_reader("Count")]
impl Count {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.last = checkpoint.unwrap_or(0);
        calls(&self.test).add(format!("open at {}", self.last));
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
        attempt(&self.test, &self.fails, format!("read {}", self.last + 1))?;
        self.last += 1;
        Ok(Some(self.last))
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.last
    }
}

#[derive(BatchArtifact)]
struct Pass {
    #[batch_property(name = "fails", value = "")]
    fails: String,
    #[batch_property(name = "test")]
    test: String,
}

#[item_processor("Pass")]
impl Pass {
    #[process_item]
    fn process(&mut self, item: u64) -> Result<Option<u64>, Passing> {
        attempt(&self.test, &self.fails, format!("process {item}"))?;
        Ok(Some(item))
    }
}

/// With `named` in its list of failures, it reports the second item as the reason.
#[derive(BatchArtifact)]
struct Write {
    #[batch_property(name = "fails", value = "")]
    fails: String,
    #[batch_property(name = "test")]
    test: String,
}

#[item_writer("Write")]
impl Write {
    #[open]
    fn open(&mut self, _: Option<()>) {}
    #[write_items]
    fn write(&mut self, items: &[u64], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let _ = tx;
        let written = attempt(&self.test, &self.fails, format!("write {items:?}"));
        written.map_err(|error| match self.fails.contains("named") {
            true => BatchError::at_item(1, error),
            false => error.into(),
        })
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

#[derive(BatchArtifact)]
struct Listener {
    #[batch_property(name = "test")]
    test: String,
}

#[chunk_listener("Listener")]
impl Listener {
    #[before_chunk]
    fn before(&mut self) {
        calls(&self.test).add("before chunk");
    }
    #[after_chunk]
    fn after(&mut self) {
        calls(&self.test).add("after chunk");
    }
    #[on_chunk_error]
    fn error(&mut self, ex: &BatchError) {
        calls(&self.test).add(format!("chunk error: {ex}"));
    }
}

#[retry_listener]
impl Listener {
    #[on_retry_read_exception]
    fn read(&mut self, ex: &BatchError) -> Result<(), BatchError> {
        calls(&self.test).add(format!("retry read: {ex}"));
        match self.test.starts_with("throwing") {
            true => Err(BatchError::msg("the listener throws")),
            false => Ok(()),
        }
    }
    #[on_retry_process_exception]
    fn process(&mut self, ex: &BatchError, item: &u64) {
        calls(&self.test).add(format!("retry process of {item}: {ex}"));
    }
    #[on_retry_write_exception]
    fn write(&mut self, ex: &BatchError, items: &[u64]) {
        calls(&self.test).add(format!("retry write of {items:?}: {ex}"));
    }
}

#[skip_listener]
impl Listener {
    #[on_skip_in_read]
    fn skip_read(&mut self, _: &BatchError) {
        calls(&self.test).add("skip read");
    }
    #[on_skip_in_process]
    fn skip_process(&mut self, _: &BatchError, item: &dyn std::any::Any) {
        let item = item.downcast_ref::<u64>();
        calls(&self.test).add(format!("skip process of {item:?}"));
    }
    #[on_skip_in_write]
    fn skip_write(&mut self, _: &BatchError, items: &[u64]) {
        calls(&self.test).add(format!("skip write of {items:?}"));
    }
}

/// A chunk of the numbers to 6 by 3. `classes` are the lists that contain the error.
struct Chunk<'t> {
    test: &'t str,
    fails: &'t str,
    classes: &'t [&'t str],
    listener: bool,
    properties: &'t str,
}

impl Chunk<'_> {
    fn launch(&self) -> JobRun {
        let Self { test, fails, .. } = self;
        let own = format!(
            "<properties><property name='test' value='{test}'/><property name='fails' value='{fails}'/></properties>"
        );
        let listeners = format!(
            "<listeners><listener ref='Listener'><properties><property name='test' value='{test}'/></properties></listener></listeners>"
        );
        let classes: String = self
            .classes
            .iter()
            .map(|list| {
                format!("<{list}-exception-classes><include class='Passing'/></{list}-exception-classes>")
            })
            .collect();
        let damaged = match fails.contains("damaged") {
            true => "<skippable-exception-classes><include class='Damaged'/></skippable-exception-classes>",
            false => "",
        };
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "<job id='j' version='2.0' xmlns='https://jakarta.ee/xml/ns/jakartaee'><step id='s'>
               <properties>{}</properties>{}
               <chunk item-count='3' retry-limit='2' skip-limit='5'>
                 <reader ref='Count'>{own}</reader><processor ref='Pass'>{own}</processor><writer ref='Write'>{own}</writer>
                 {damaged}{classes}
               </chunk>
             </step></job>",
            self.properties,
            if self.listener { listeners } else { String::new() },
        );
        let file = folder.path().join("job.xml");
        std::fs::write(&file, text).unwrap();
        JobTest::new(file).launch()
    }

    /// The calls of one run, which completes.
    fn calls(&self) -> Vec<String> {
        self.launch().assert_completed();
        calls(self.test).all()
    }
}

const RETRYABLE: &[&str] = &["retryable"];
const NO_ROLLBACK: &[&str] = &["retryable", "no-rollback"];

/// The chunk is rolled back, and what it has touched is read again in chunks of one item.
///
/// Spec: JAK-18, JAK-30
#[test]
fn a_retry_reads_the_chunk_again_one_by_one() {
    for (number, fails) in ["read 5", "process 5", "write [4, 5, 6]"].into_iter().enumerate() {
        let chunk = Chunk {
            test: &format!("one by one {number}"),
            fails,
            classes: RETRYABLE,
            listener: false,
            properties: "",
        };
        let all = chunk.calls();
        let again = all.iter().rposition(|call| call.starts_with("open")).unwrap();
        assert_eq!(all[again], "open at 3", "{fails}: {all:?}");
        let singly = [
            "read 4",
            "process 4",
            "write [4]",
            "read 5",
            "process 5",
            "write [5]",
        ];
        assert_eq!(all[again + 1..][..6], singly, "{fails}: {all:?}");
        assert_eq!(
            all[again + 7..],
            ["read 6", "process 6", "write [6]"],
            "{fails}: {all:?}"
        );
    }
}

/// A read that need not roll back is only called again, unless a retry listener throws.
///
/// Spec: LISTEN-RETRY-04, JAK-18
#[test]
fn a_retry_listener_that_throws_rolls_back() {
    for (test, opened) in [("calm listener", 1), ("throwing listener", 2)] {
        let chunk = Chunk {
            test,
            fails: "read 2",
            classes: NO_ROLLBACK,
            listener: true,
            properties: "",
        };
        let all = chunk.calls();
        let is_open = |call: &&String| call.starts_with("open at 0");
        assert_eq!(all.iter().filter(is_open).count(), opened, "{test}: {all:?}");
    }
}

/// The rest of the items is read in whole chunks again.
///
/// Spec: JAK-30
#[test]
fn chunks_have_their_size_again_after_the_items_of_the_failed_one() {
    let chunk = Chunk {
        test: "size again",
        fails: "process 2",
        classes: RETRYABLE,
        listener: false,
        properties: "",
    };
    let all = chunk.calls();
    let writes: Vec<&String> = all.iter().filter(|call| call.starts_with("write")).collect();
    assert_eq!(writes, ["write [1]", "write [2]", "write [3, 4, 5]", "write [6]"]);
}

/// Spec: JAK-29, JAK-31
#[test]
fn without_a_rollback_only_the_failed_call_is_repeated() {
    for (number, processors) in ["", "<property name='batch.chunk.processors' value='3'/>"]
        .into_iter()
        .enumerate()
    {
        for listener in [false, true] {
            let chunk = Chunk {
                test: &format!("no rollback {number} {listener}"),
                fails: "read 2; process 5",
                classes: NO_ROLLBACK,
                listener,
                properties: processors,
            };
            let run = chunk.launch();
            run.assert_completed();
            run.step("s").assert_reads(6).assert_writes(6).assert_rollbacks(0);
            let all = calls(chunk.test).all();
            let of = |prefix: &str| all.iter().filter(|call| call.starts_with(prefix)).count();
            assert_eq!(
                (of("open"), of("read"), of("process"), of("write")),
                (1, 7, 7, 2),
                "{all:?}"
            );
            assert_eq!(of("write [1, 2, 3]") + of("write [4, 5, 6]"), 2, "{all:?}");
            let listened = [of("retry read: it passes"), of("retry process of 5: it passes")];
            assert_eq!(listened, [usize::from(listener); 2], "{all:?}");
        }
    }
}

/// The writer is called again with the same list, even if it names the item that is the reason.
///
/// Spec: JAK-29, JAK-31
#[test]
fn without_a_rollback_a_write_is_repeated_with_its_list() {
    for fails in ["write [4, 5, 6]", "write [4, 5, 6]; named"] {
        let chunk = Chunk {
            test: &format!("again {fails}"),
            fails,
            classes: NO_ROLLBACK,
            listener: true,
            properties: "",
        };
        let run = chunk.launch();
        run.assert_completed()
            .step("s")
            .assert_rollbacks(0)
            .assert_writes(6);
        let all = calls(chunk.test).all();
        let failed = all.iter().position(|call| call == "write [4, 5, 6]").unwrap();
        assert_eq!(
            all[failed + 1..failed + 3],
            ["retry write of [4, 5, 6]: it passes", "write [4, 5, 6]"],
            "{fails}"
        );
    }
}

/// A list is one skip, so the step reports how many items it has dropped.
///
/// Spec: JAK-19, LOSS-07
#[test]
fn the_items_of_a_skipped_list_are_counted() {
    let chunk = Chunk {
        test: "skipped list",
        fails: "write [4, 5, 6]",
        classes: &["skippable"],
        listener: false,
        properties: "",
    };
    let run = chunk.launch();
    let step = run.assert_completed().step("s");
    step.assert_writes(3);
    let ended = step.execution();
    assert_eq!(ended.counters.write_skips, 1);
    assert_eq!(
        ended.exit_message,
        "3 items were in skipped lists; each list counts as one skip"
    );
}

/// A call that fails again while it is repeated is skipped if it may be.
///
/// Spec: JAK-28, JAK-31
#[test]
fn a_repeated_call_that_fails_again_is_skipped() {
    let skips = [
        ("read 5; read 5", "skip read"),
        ("process 5; process 5", "skip process of Some(5)"),
        ("write [4, 5, 6]; write [4, 5, 6]", "skip write of [4, 5, 6]"),
    ];
    for (fails, skip) in skips {
        let chunk = Chunk {
            test: &format!("repeated {fails}"),
            fails,
            classes: &["retryable", "skippable", "no-rollback"],
            listener: true,
            properties: "",
        };
        let run = chunk.launch();
        run.assert_completed().step("s").assert_rollbacks(0);
        let all = calls(chunk.test).all();
        let retries = all.iter().filter(|call| call.starts_with("retry")).count();
        let skips = all.iter().filter(|call| *call == skip).count();
        assert_eq!((retries, skips), (1, 1), "{all:?}");
    }
}

/// The retry of a chunk goes item by item over all its inputs, including those that were skipped.
///
/// Spec: JAK-18, JAK-30
#[test]
fn a_retry_counts_skipped_inputs() {
    let chunk = Chunk {
        test: "skipped inputs",
        fails: "damaged 2; process 3",
        classes: RETRYABLE,
        listener: false,
        properties: "",
    };
    let all = chunk.calls();
    let writes: Vec<&String> = all.iter().filter(|call| call.starts_with("write")).collect();
    assert_eq!(writes, ["write [1]", "write [3]", "write [4, 5, 6]"]);
}

/// An error that is both retryable and skippable is retried, and skipped if it happens again during the retry.
///
/// Spec: JAK-28, JAK-30
#[test]
fn a_retry_that_fails_again_is_skipped() {
    let skips = [
        ("read 5; read 5", "skip read"),
        ("process 5; process 5", "skip process of Some(5)"),
        ("write [4, 5, 6]; write [5]", "skip write of [5]"),
    ];
    for (fails, skip) in skips {
        let chunk = Chunk {
            test: fails,
            fails,
            classes: &["retryable", "skippable"],
            listener: true,
            properties: "",
        };
        let run = chunk.launch();
        run.assert_completed();
        let all = calls(fails).all();
        assert!(all.iter().any(|call| call == skip), "{all:?}");
        assert_eq!(
            all.iter().filter(|call| call.starts_with("retry")).count(),
            1,
            "{all:?}"
        );
        assert_eq!(run.step("s").execution().counters.rollbacks, 1, "{all:?}");
    }
}

/// The chunk that is retried begins again.
///
/// Spec: JAK-27, JAK-29
#[test]
fn listeners_see_a_chunk_that_is_retried() {
    let chunk = Chunk {
        test: "listeners",
        fails: "write [1, 2, 3]",
        classes: RETRYABLE,
        listener: true,
        properties: "",
    };
    let all = chunk.calls();
    let is_event = |call: &&String| !call.starts_with("read") && !call.starts_with("process");
    let events: Vec<&String> = all.iter().filter(is_event).collect();
    let chunk_of = |write: &'static str| ["before chunk", write, "after chunk"];
    let mut expected = vec![
        "open at 0",
        "before chunk",
        "write [1, 2, 3]",
        "retry write of [1, 2, 3]: it passes",
        "chunk error: it passes",
        "open at 0",
    ];
    for write in ["write [1]", "write [2]", "write [3]"] {
        expected.extend(chunk_of(write));
    }
    expected.extend(chunk_of("write [4, 5, 6]"));
    expected.extend(["before chunk", "after chunk"]);
    assert_eq!(events, expected);
}

/// An error that no rule handles fails the step.
///
/// Spec: JAK-27
#[test]
fn a_chunk_listener_sees_the_error_that_fails_the_step() {
    let chunk = Chunk {
        test: "fails",
        fails: "process 2",
        classes: &[],
        listener: true,
        properties: "",
    };
    chunk.launch().assert_status(BatchStatus::Failed);
    assert_eq!(calls("fails").all().last().unwrap(), "chunk error: it passes");
}

/// Spec: CHUNK-RETRY-04, JAK-18
#[test]
fn the_retry_limit_counts_all_retries_of_the_step() {
    let chunk = Chunk {
        test: "limit",
        fails: "read 1; process 2; write [3, 4, 5]",
        classes: RETRYABLE,
        listener: false,
        properties: "",
    };
    chunk.launch().assert_failed("the retry-limit of 2 is used up");
}
