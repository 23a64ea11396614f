//! The role traits of algorithms, listeners, parallel roles and deciders call the user's methods.
//!
//! Spec: CKALG-01, CKALG-02, CKALG-04, CKALG-05, CKALG-06, CKALG-07, LISTEN-CKPT-01, LISTEN-READ-01, LISTEN-PROC-01
//! Spec: LISTEN-WRITE-01, LISTEN-SKIP-01, LISTEN-RETRY-01, PALG-02, PALG-04, PALG-05, PALG-06, PALG-07, PALG-08, PALG-09
//! Spec: PALG-10, PALG-11, DECIDER-01, DECIDER-02, ART-06, ART-07, JAK-27, JAK-28, JAK-29
#![deny(warnings)]

use std::any::Any;
use std::sync::atomic::AtomicBool;

use batch_runtime::__private::{
    CheckpointAlgorithm, CheckpointListener, ChunkListener, CollectorData, Decider, Fill,
    ItemProcessListener, ItemReadListener, ItemType, ItemWriteListener, LogicalTX, PartitionAlgorithm,
    RetryListener, SkipListener, StepsBefore, SubJobAnalyzer, SubJobCollector, processor_sink,
};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct EveryThird {
    items: u32,
    calls: Vec<&'static str>,
}

#[checkpoint_algorithm]
impl EveryThird {
    #[get_checkpoint_timeout]
    fn timeout(&mut self, timeout: i32) -> i32 {
        timeout + 1
    }

    #[begin_checkpoint]
    fn begin_checkpoint(&mut self) {
        self.calls.push("begin");
    }

    #[is_ready_to_checkpoint]
    fn is_ready_to_checkpoint(&mut self) -> Result<bool, std::fmt::Error> {
        self.items += 1;
        match self.items {
            9 => Err(std::fmt::Error),
            items => Ok(items % 3 == 0),
        }
    }

    #[end_checkpoint]
    fn end(&mut self) -> Result<(), BatchError> {
        self.calls.push("end");
        Ok(())
    }
}

#[derive(BatchArtifact)]
struct Always;

#[checkpoint_algorithm]
impl Always {
    #[is_ready_to_checkpoint]
    fn ready(&self) -> bool {
        true
    }
}

/// Spec: CKALG-02, CKALG-04, CKALG-05, CKALG-06, CKALG-07
#[test]
fn checkpoint_algorithms() {
    let mut algorithm = EveryThird {
        items: 0,
        calls: vec![],
    };
    assert_eq!(algorithm.get_checkpoint_timeout(60).unwrap(), 61);
    CheckpointAlgorithm::begin_checkpoint(&mut algorithm).unwrap();
    let ready: Vec<bool> = (0..3)
        .map(|_| CheckpointAlgorithm::is_ready_to_checkpoint(&mut algorithm).unwrap())
        .collect();
    assert_eq!(ready, [false, false, true]);
    algorithm.items = 8;
    let error = CheckpointAlgorithm::is_ready_to_checkpoint(&mut algorithm).unwrap_err();
    assert!(error.downcast_ref::<std::fmt::Error>().is_some());
    CheckpointAlgorithm::end_checkpoint(&mut algorithm).unwrap();
    assert_eq!(algorithm.calls, ["begin", "end"]);
    // Defaults of missing methods: the timeout is unchanged, and nothing happens.
    assert_eq!(Always.get_checkpoint_timeout(60).unwrap(), 60);
    Always.begin_checkpoint().unwrap();
    Always.end_checkpoint().unwrap();
}

/// All listeners of a step in one; items are `u64`, results are `String`.
#[derive(BatchArtifact)]
struct Log {
    lines: Vec<String>,
}

#[checkpoint_listener]
impl Log {
    #[before_checkpoint]
    fn before_commit(&mut self) {
        self.lines.push("before commit".into());
    }

    #[after_checkpoint]
    fn after_commit(&mut self) -> Result<(), BatchError> {
        self.lines.push("after commit".into());
        Ok(())
    }
}

#[chunk_listener]
impl Log {
    #[before_chunk]
    fn chunk_begins(&mut self) {
        self.lines.push("before chunk".into());
    }

    #[after_chunk]
    fn chunk_ends(&mut self) {
        self.lines.push("after chunk".into());
    }

    #[on_chunk_error]
    fn chunk_failed(&mut self, ex: &BatchError) {
        self.lines.push(format!("chunk error {ex}"));
    }
}

#[item_read_listener]
impl Log {
    #[before_read]
    fn reading(&mut self) {
        self.lines.push("reading".into());
    }

    #[after_read]
    fn read(&mut self, item: &u64) {
        self.lines.push(format!("read {item}"));
    }

    #[on_read_error]
    fn read_error(&mut self, ex: &BatchError) {
        self.lines.push(format!("read error {ex}"));
    }
}

#[item_process_listener]
impl Log {
    #[before_process]
    fn processing(&mut self, item: &u64) {
        self.lines.push(format!("processing {item}"));
    }

    #[after_processor]
    fn processed(&mut self, item: &u64, result: Option<&String>) {
        self.lines.push(format!("processed {item} to {result:?}"));
    }

    #[on_process_error]
    fn process_error(&mut self, ex: &BatchError, item: &u64) {
        self.lines.push(format!("process error {ex} of {item}"));
    }
}

#[item_write_listener]
impl Log {
    #[before_write]
    fn writing(&mut self, items: &[String]) {
        self.lines.push(format!("writing {items:?}"));
    }

    #[after_write]
    fn written(&mut self, items: &[String]) {
        self.lines.push(format!("written {items:?}"));
    }

    #[on_write_error]
    fn write_error(&mut self, ex: &BatchError, items: &[String]) {
        self.lines.push(format!("write error {ex} of {items:?}"));
    }
}

#[skip_listener]
impl Log {
    #[on_skip_in_read]
    fn skip_read(&mut self, ex: &BatchError) {
        self.lines.push(format!("skip read {ex}"));
    }

    #[on_skip_in_process]
    fn skip_process(&mut self, ex: &BatchError, item: &u64) {
        self.lines.push(format!("skip process {ex} of {item}"));
    }

    #[on_skip_in_write]
    fn skip_write(&mut self, ex: &BatchError, item: &String) -> Result<(), std::io::Error> {
        self.lines.push(format!("skip write {ex} of {item}"));
        Err(std::io::Error::other("full"))
    }
}

#[retry_listener]
impl Log {
    #[on_retry_read_exception]
    fn retry_read(&mut self, ex: &BatchError) {
        self.lines.push(format!("retry of reading {ex}"));
    }

    #[on_retry_process_exception]
    fn retry_process(&mut self, ex: &BatchError, item: &u64) {
        self.lines.push(format!("retry of processing {ex} of {item}"));
    }

    #[on_retry_exception]
    fn retry(&mut self, ex: &BatchError, item: &String) {
        self.lines.push(format!("retry {ex} of {item}"));
    }

    #[on_retry_item]
    fn again(&mut self, ex: &BatchError, item: &String) {
        self.lines.push(format!("again {ex} of {item}"));
    }
}

/// Takes every type.
#[derive(BatchArtifact)]
struct Count {
    items: usize,
}

#[item_process_listener]
impl Count {
    #[after_process]
    fn processed(&mut self, _item: &dyn Any, result: Option<&dyn Any>) {
        self.items += usize::from(result.is_some());
    }
}

#[item_write_listener]
impl Count {
    #[after_write]
    fn written(&mut self, items: ChunkItems<'_>) {
        self.items += 10 * items.len();
    }
}

#[skip_listener]
impl Count {
    #[on_skip_in_write]
    fn skipped(&mut self, _ex: &BatchError, item: &dyn Any) {
        self.items += 100 * usize::from(item.is::<String>());
    }
}

#[retry_listener]
impl Count {
    #[on_retry_write_exception]
    fn retried(&mut self, _ex: &BatchError, items: ChunkItems<'_>) {
        self.items += 1000 * items.len();
    }
}

#[test]
fn listeners() {
    let mut log = Log { lines: vec![] };
    let ex = BatchError::msg("oops");
    let result = String::from("one");
    let (item, result): (&dyn Any, &dyn Any) = (&1_u64, &result);
    let mut sink = processor_sink(
        Box::new(()),
        |_: &mut (), item: u64| Ok(Some(item.to_string())),
        |_: &mut (), item: &u64| Ok(Some(item.to_string())),
    );
    let stop = AtomicBool::new(false);
    Fill::new(&mut sink, &stop, 2, 2).run(|| Ok(Some(7_u64))).unwrap();
    let items = sink.items(0..2);

    log.before_checkpoint().unwrap();
    log.after_checkpoint().unwrap();
    log.before_read().unwrap();
    log.after_read(item).unwrap();
    log.on_read_error(&ex).unwrap();
    log.before_process(item).unwrap();
    log.after_process(item, Some(result)).unwrap();
    log.after_process(item, None).unwrap();
    log.on_process_error(&ex, item).unwrap();
    log.before_write(&items).unwrap();
    log.after_write(&items).unwrap();
    log.on_write_error(&ex, &items).unwrap();
    log.on_skip_in_read(&ex).unwrap();
    log.on_skip_in_process(&ex, item).unwrap();
    assert_eq!(log.on_skip_in_write(&ex, &items).unwrap_err().to_string(), "full");
    log.before_chunk().unwrap();
    log.after_chunk().unwrap();
    log.on_chunk_error(&ex).unwrap();
    log.on_retry_read_exception(&ex).unwrap();
    log.on_retry_process_exception(&ex, item).unwrap();
    log.on_retry_exception(&ex, &items).unwrap();
    log.on_retry_item(&ex, result).unwrap();
    assert_eq!(
        log.lines,
        [
            "before commit",
            "after commit",
            "reading",
            "read 1",
            "read error oops",
            "processing 1",
            "processed 1 to Some(\"one\")",
            "processed 1 to None",
            "process error oops of 1",
            "writing [\"7\", \"7\"]",
            "written [\"7\", \"7\"]",
            "write error oops of [\"7\", \"7\"]",
            "skip read oops",
            "skip process oops of 1",
            // An error ends the calls for the items of a list.
            "skip write oops of 7",
            "before chunk",
            "after chunk",
            "chunk error oops",
            "retry of reading oops",
            "retry of processing oops of 1",
            "retry oops of 7",
            "retry oops of 7",
            "again oops of one",
        ]
    );
    // Another type is an error, not a panic.
    assert!(log.after_read(&"text").unwrap_err().to_string().contains("u64"));

    let (notified, written) = (
        <Log as ItemProcessListener>::items(),
        <Log as ItemWriteListener>::items(),
    );
    assert_eq!(
        (notified.input, notified.output),
        (Some(ItemType::of::<u64>()), Some(ItemType::of::<String>()))
    );
    assert_eq!(
        (written.input, written.output),
        (None, Some(ItemType::of::<String>()))
    );
    assert_eq!(<Log as SkipListener>::items().input, Some(ItemType::of::<u64>()));
    assert_eq!(<Log as RetryListener>::items().input, Some(ItemType::of::<u64>()));
    assert_eq!(<Count as RetryListener>::items().output, None);
    assert_eq!(<Log as ItemReadListener>::items().output, None);

    let mut count = Count { items: 0 };
    count.after_process(item, Some(result)).unwrap();
    count.after_process(item, None).unwrap();
    count.after_write(&items).unwrap();
    assert_eq!(count.items, 21);
    // One item after the other, or the list.
    count.on_skip_in_write(&ex, &items).unwrap();
    assert_eq!(count.items, 221);
    count.on_retry_exception(&ex, &items).unwrap();
    assert_eq!(count.items, 2221);
    assert_eq!(<Count as ItemProcessListener>::items().input, None);
}

#[derive(BatchArtifact)]
struct Months {
    status: String,
}

#[partition_algorithm]
impl Months {
    #[calculate_partitions]
    fn calculate(&mut self) -> Result<PartitionPlan, std::num::ParseIntError> {
        "12".parse().map(PartitionPlan::new)
    }
}

#[logical_tx]
impl Months {
    #[logical_tx_begin]
    fn begin(&mut self) {
        self.status = "begun".into();
    }

    #[logical_tx_before_completion]
    fn before(&mut self) -> Result<(), BatchError> {
        Err(BatchError::msg(&self.status))
    }

    #[logical_tx_rollback]
    fn undo(&mut self) {
        self.status.clear();
    }

    #[logical_tx_after_completion]
    fn after(&mut self, status: &str) {
        self.status = status.to_owned();
    }
}

#[derive(BatchArtifact)]
struct OnlyAfter;

#[logical_tx]
impl OnlyAfter {
    #[logical_tx_after_completion]
    fn after(&self, _status: &str) {}
}

#[derive(BatchArtifact)]
struct Delays {
    sum: u64,
}

#[sub_job_collector]
impl Delays {
    #[collect_sub_job_data]
    fn delays(&mut self) -> Result<Option<u64>, BatchError> {
        Ok((self.sum > 0).then_some(self.sum))
    }
}

#[sub_job_analyzer]
impl Delays {
    #[analyze_collector_data]
    fn add(&mut self, data: u64) {
        self.sum += data;
    }

    #[analyze_exit_status]
    fn ended(&mut self, exit_status: &str) {
        self.sum += exit_status.len() as u64;
    }
}

#[derive(BatchArtifact)]
struct LateOrNot;

#[decider]
impl LateOrNot {
    #[decide]
    fn decide(&mut self) -> String {
        "LATE".into()
    }
}

#[test]
fn parallel_and_decider() {
    let mut months = Months {
        status: String::new(),
    };
    assert_eq!(months.calculate_partitions().unwrap(), PartitionPlan::new(12));
    months.logical_tx_begin().unwrap();
    assert_eq!(
        months.logical_tx_before_completion().unwrap_err().to_string(),
        "begun"
    );
    months.logical_tx_rollback().unwrap();
    months.logical_tx_after_completion("ROLLBACK").unwrap();
    assert_eq!(months.status, "ROLLBACK");
    assert!(Months::compensates() && !OnlyAfter::compensates());
    OnlyAfter.logical_tx_rollback().unwrap();

    let mut delays = Delays { sum: 0 };
    assert!(delays.collect_sub_job_data().unwrap().is_none());
    delays
        .analyze_collector_data(CollectorData::new(&7_u64).unwrap())
        .unwrap();
    delays
        .analyze_exit_status(BatchStatus::Completed, "DONE")
        .unwrap();
    let data = delays.collect_sub_job_data().unwrap().expect("a payload");
    assert_eq!(data.take::<u64>().unwrap(), 11);
    assert!(
        delays
            .analyze_collector_data(CollectorData::new(&"text".to_owned()).unwrap())
            .is_err()
    );
    assert_eq!(<Delays as SubJobCollector>::payload_type(), ItemType::of::<u64>());
    assert_eq!(
        <Delays as SubJobAnalyzer>::payload_type(),
        Some(ItemType::of::<u64>())
    );

    assert_eq!(
        Decider::decide(&mut LateOrNot, &StepsBefore::none()).unwrap(),
        "LATE"
    );
}
