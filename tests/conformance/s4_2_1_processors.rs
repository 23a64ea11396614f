//! Several processors of a chunk, each on a thread: an extension, the runtime property `batch.chunk.processors`.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use batch_runtime::prelude::*;
use batch_tests::stage::{Stage, say};

use super::artifacts::{assert_completed, assert_contains, chosen, refused, tree};
use super::faults::{RULES, faulty_job, faulty_stage, lines, listener};
use super::s4_2_1_pipeline::with_properties;

/// Adds the property to the step of a job.
fn parallel(xml: &str, processors: &str) -> String {
    let properties = [
        ("batch.chunk.processors", processors),
        ("batch.retry.input", "true"),
    ];
    with_properties(xml, &properties)
}

/// Runs the copy with these faults and returns its end and the rows. Read-ahead is not visible in them.
fn story(processors: &str, listeners: &str, attributes: &str, items: u32, fault: &str) -> String {
    let job = faulty_job(listeners, "TableOut", attributes, RULES);
    let stage = faulty_stage(&parallel(&job, processors));
    let execution = stage.start("job", [("faults", fault), ("items", &items.to_string())]);
    tree(&stage, execution) + &lines(&stage)
}

/// What the operator sees is the same as with one processor: status, counters, rows in the order of reading; for errors of
/// each artifact that are skipped, retried, limited or fatal, with small and large chunks.
///
/// Spec: D-99, CHUNK-SKIP-06, CHUNK-SKIP-09, CHUNK-SKIP-10, CHUNK-RETRY-04, CHUNK-RETRY-05
#[test]
fn several_processors_do_what_one_does() {
    for attributes in [
        "commit-interval=\"1\"",
        "commit-interval=\"3\" skip-limit=\"2\" retry-limit=\"5\"",
        "commit-interval=\"7\" chunk-size=\"2\" retry-limit=\"3\"",
        "commit-interval=\"100\" chunk-size=\"100\"",
        "commit-interval=\"5\" buffer-reads=\"false\"",
    ] {
        for fault in [
            "",
            "process 4: Skip; process 5: Skip; process 19: Skip",
            "process 3: Skip; read 4: Skip; has n6: @Skip",
            "process 6: Both; process 7: Both; read 9: Both",
            "process 4: Retry x2; process 12: Fatal",
            "process 8: Panic",
            "process 2: Fatal; read 3: Fatal",
            "read 8: Fatal",
        ] {
            for listeners in [String::new(), listener("", "on process error")] {
                let one = story("1", &listeners, attributes, 20, fault);
                let several = story("3", &listeners, attributes, 20, fault);
                assert_eq!(several, one, "{attributes}, {fault}, {listeners}");
            }
        }
    }
}

/// Listeners are called on the step's thread, each method in the order of reading.
///
/// Spec: D-99, LISTEN-PROC-02, LISTEN-PROC-03
#[test]
fn listeners_are_called_in_the_order_of_reading() {
    let calls = |processors: &str| {
        let listeners = listener("", "before process, after process");
        let xml = faulty_job(&listeners, "TableOut", "commit-interval=\"8\"", RULES);
        let stage = faulty_stage(&parallel(&xml, processors));
        stage.start("job", [("items", "20")]);
        let of = |method: &str| -> Vec<String> {
            let lines = stage.log().into_iter().filter(|line| line.contains(method));
            lines.collect()
        };
        (of("before process"), of("after process"))
    };
    let (one, several) = (calls("1"), calls("3"));
    assert_eq!(one.0.len(), 20);
    assert_eq!(several, one);
}

/// The number of processors that wait for another one.
static WAITING: Mutex<u32> = Mutex::new(0);
static MET: Condvar = Condvar::new();

/// Waits until another instance processes at the same time.
#[derive(BatchArtifact)]
struct Meets {
    #[batch_property(name = "log")]
    log: String,
    items: u32,
}

#[item_processor]
impl Meets {
    #[process_item]
    fn process(&mut self, item: u64) -> Result<Option<String>, BatchError> {
        let mut waiting = WAITING.lock().unwrap();
        *waiting += 1;
        MET.notify_all();
        let limit = Duration::from_secs(60);
        let met = MET.wait_timeout_while(waiting, limit, |waiting| *waiting < 2);
        let (mut waiting, alone) = met.unwrap();
        if alone.timed_out() {
            *waiting = 0;
            return Err(BatchError::msg("no other processor came"));
        }
        self.items += 1;
        Ok(Some(format!("n{item}")))
    }
}

impl Drop for Meets {
    fn drop(&mut self) {
        say(&self.log, format!("processor of {} items", self.items));
    }
}

/// Items are processed at the same time, by an instance for each thread.
///
/// Spec: D-99
#[test]
fn items_are_processed_at_the_same_time() {
    let xml = faulty_job("", "TableOut", "commit-interval=\"10\"", RULES).replace("\"Shape\"", "\"Meets\"");
    let stage = faulty_stage(&parallel(&xml, "2"));
    let execution = stage.start("job", [("items", "20")]);
    assert_completed(&stage, execution);
    assert_eq!(chosen(&stage, &["processor of"]).len(), 2);
}

/// The checkpoint policy `time` checks the clock after some items, and all of them arrive.
///
/// Spec: D-99, JSL-CHUNK-08
#[test]
fn the_policy_time_is_possible() {
    let attributes = "checkpoint-policy=\"time\" commit-interval=\"60\"";
    let one = story("1", "", attributes, 50, "process 30: Skip");
    assert_eq!(story("2", "", attributes, 50, "process 30: Skip"), one);
}

/// Spec: D-99, JSL-CHUNK-09
#[test]
fn a_checkpoint_algorithm_and_wrong_numbers_are_rejected() {
    let algorithm = "<checkpoint-algorithm ref=\"Counting\"/>";
    let custom = faulty_job("", "TableOut", "checkpoint-policy=\"custom\"", RULES)
        .replace("<skippable", &format!("{algorithm}<skippable"));
    let error = |xml: &str| refused(&Stage::new(xml), "job", ());
    let problem = "`batch.chunk.processors` cannot be combined with a checkpoint algorithm";
    assert_contains(&error(&parallel(&custom, "2")), problem);
    let plain = faulty_job("", "TableOut", "", RULES);
    for wrong in ["0", "many", "-1"] {
        let problem = "expected a number of threads, at least 1";
        assert_contains(&error(&parallel(&plain, wrong)), problem);
    }
}
