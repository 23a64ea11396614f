//! Each method of each role returns its value, or a `Result` of it with any error.
#![deny(warnings)]

use std::fmt::Error;
use std::sync::atomic::AtomicBool;

use batch_runtime::__private::{
    Batchlet, CheckpointAlgorithm, CheckpointListener, ChunkItems, ChunkListener, CollectorData, Decider,
    Fill, ItemProcessListener, ItemReadListener, ItemReader, ItemWriteListener, ItemWriter, JobListener,
    LogicalTX, PartitionAlgorithm, RetryListener, SkipListener, StepListener, StepsBefore, SubJobAnalyzer,
    SubJobCollector, processor_sink,
};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::BatchError;

/// Writes one artifact for each role. `$result!` turns the type of a value into the type of a method's result, `$value!` the value
/// into the result.
macro_rules! artifacts {
    ($result:ident, $value:ident, $($role:ident { $(
        $method:ident($($parameters:tt)*) -> ($($type:tt)*) { $ok:expr }
    )* })*) => {$(
        pub(super) mod $role {
            use batch_runtime::prelude::*;

            #[derive(BatchArtifact)]
            pub(crate) struct Artifact {}

            #[$role]
            impl Artifact {$(
                #[$method]
                fn $method(&self, $($parameters)*) -> $result!($($type)*) {
                    $value!($ok)
                }
            )*}
        }
    )*};
}

macro_rules! every_method {
    ($result:ident, $value:ident) => {
        artifacts! { $result, $value,
            item_reader {
                open(_: Option<u32>) -> (()) { () }
                read_item() -> (Option<u32>) { None }
                get_checkpoint_info() -> (u32) { 1 }
                get_item_count() -> (Option<u64>) { None }
                get_item_origin() -> (Option<String>) { None }
                close() -> (()) { () }
            }
            item_processor {
                process_item(_: &u32) -> (Option<u32>) { None }
            }
            item_writer {
                open(_: Option<u32>) -> (()) { () }
                write_items(_: &[u32]) -> (()) { () }
                get_checkpoint_info() -> (u32) { 1 }
                finish() -> (()) { () }
                close() -> (()) { () }
            }
            checkpoint_algorithm {
                get_checkpoint_timeout(_: i32) -> (i32) { 1 }
                begin_checkpoint() -> (()) { () }
                is_ready_to_checkpoint() -> (bool) { true }
                end_checkpoint() -> (()) { () }
            }
            skip_policy {
                should_skip(_: &batch_runtime::FailedItem<'_>) -> (bool) { true }
            }
            batchlet {
                begin_step() -> (()) { () }
                process() -> (String) { String::new() }
                cancel() -> (()) { () }
                end_step() -> (()) { () }
            }
            job_listener {
                before_job() -> (()) { () }
                after_job() -> (()) { () }
                before_step() -> (()) { () }
                after_step() -> (()) { () }
            }
            step_listener {
                before_step() -> (()) { () }
                after_step() -> (()) { () }
            }
            checkpoint_listener {
                before_checkpoint() -> (()) { () }
                after_checkpoint() -> (()) { () }
            }
            chunk_listener {
                before_chunk() -> (()) { () }
                after_chunk() -> (()) { () }
                on_chunk_error(_: &BatchError) -> (()) { () }
            }
            item_read_listener {
                before_read() -> (()) { () }
                after_read(_: &u32) -> (()) { () }
                on_read_error(_: &BatchError) -> (()) { () }
            }
            item_process_listener {
                before_process(_: &u32) -> (()) { () }
                after_process(_: &u32, _: Option<&u32>) -> (()) { () }
                on_process_error(_: &BatchError, _: &u32) -> (()) { () }
            }
            item_write_listener {
                before_write(_: &[u32]) -> (()) { () }
                after_write(_: &[u32]) -> (()) { () }
                on_write_error(_: &BatchError, _: &[u32]) -> (()) { () }
            }
            skip_listener {
                on_skip_in_read(_: &BatchError) -> (()) { () }
                on_skip_in_process(_: &BatchError, _: &u32) -> (()) { () }
                on_skip_in_write(_: &BatchError, _: &u32) -> (()) { () }
            }
            retry_listener {
                on_retry_read_exception(_: &BatchError) -> (()) { () }
                on_retry_process_exception(_: &BatchError, _: &u32) -> (()) { () }
                on_retry_exception(_: &BatchError, _: &u32) -> (()) { () }
                on_retry_item(_: &BatchError, _: &u32) -> (()) { () }
            }
            partition_algorithm {
                calculate_partitions() -> (PartitionPlan) { PartitionPlan::new(1) }
            }
            logical_tx {
                logical_tx_begin() -> (()) { () }
                logical_tx_before_completion() -> (()) { () }
                logical_tx_rollback() -> (()) { () }
                logical_tx_after_completion(_: &str) -> (()) { () }
            }
            sub_job_collector {
                collect_sub_job_data() -> (Option<u32>) { None }
            }
            sub_job_analyzer {
                analyze_collector_data(_: u32) -> (()) { () }
                analyze_exit_status(_: &str) -> (()) { () }
            }
            decider {
                decide() -> (String) { String::new() }
            }
        }
    };
}

mod plain {
    macro_rules! result {
        ($($type:tt)*) => { $($type)* };
    }
    macro_rules! value {
        ($ok:expr) => {
            $ok
        };
    }
    every_method!(result, value);
}

mod failing {
    macro_rules! result {
        ($($type:tt)*) => { Result<$($type)*, std::fmt::Error> };
    }
    macro_rules! value {
        ($ok:expr) => {
            Err(std::fmt::Error)
        };
    }
    every_method!(result, value);
}

type Outcome = Result<(), BatchError>;

fn of_reader(reader: &mut dyn ItemReader) -> Vec<Outcome> {
    vec![
        reader.open(None),
        reader.checkpoint_info().map(drop),
        reader.get_item_count().map(drop),
        reader.get_item_origin().map(drop),
        reader.close(),
    ]
}

fn of_writer(writer: &mut dyn ItemWriter) -> Vec<Outcome> {
    vec![
        writer.open(None),
        writer.checkpoint_info().map(drop),
        writer.finish(),
        writer.close(),
    ]
}

fn of_algorithms(
    checkpoints: &mut dyn CheckpointAlgorithm,
    partitions: &mut dyn PartitionAlgorithm,
    decider: &mut dyn Decider,
) -> Vec<Outcome> {
    vec![
        checkpoints.get_checkpoint_timeout(1).map(drop),
        checkpoints.begin_checkpoint(),
        checkpoints.is_ready_to_checkpoint().map(drop),
        checkpoints.end_checkpoint(),
        partitions.calculate_partitions().map(drop),
        decider.decide(&StepsBefore::none()).map(drop),
    ]
}

fn of_batchlet(batchlet: &dyn Batchlet) -> Vec<Outcome> {
    vec![
        batchlet.begin_step(),
        batchlet.process().map(drop),
        batchlet.cancel(),
        batchlet.end_step(),
    ]
}

fn of_listeners(
    job: &mut dyn JobListener,
    step: &mut dyn StepListener,
    checkpoint: &mut dyn CheckpointListener,
    chunk: &mut dyn ChunkListener,
) -> Vec<Outcome> {
    vec![
        job.before_job(),
        job.after_job(),
        job.before_step(),
        job.after_step(),
        step.before_step(),
        step.after_step(),
        checkpoint.before_checkpoint(),
        checkpoint.after_checkpoint(),
        chunk.before_chunk(),
        chunk.after_chunk(),
        chunk.on_chunk_error(&BatchError::msg("oops")),
    ]
}

fn of_item_listeners(
    read: &mut dyn ItemReadListener,
    process: &mut dyn ItemProcessListener,
    write: &mut dyn ItemWriteListener,
    items: &ChunkItems<'_>,
) -> Vec<Outcome> {
    let ex = BatchError::msg("oops");
    vec![
        read.before_read(),
        read.after_read(&1_u32),
        read.on_read_error(&ex),
        process.before_process(&1_u32),
        process.after_process(&1_u32, Some(&1_u32)),
        process.on_process_error(&ex, &1_u32),
        write.before_write(items),
        write.after_write(items),
        write.on_write_error(&ex, items),
    ]
}

fn of_error_listeners(
    skip: &mut dyn SkipListener,
    retry: &mut dyn RetryListener,
    items: &ChunkItems<'_>,
) -> Vec<Outcome> {
    let ex = BatchError::msg("oops");
    vec![
        skip.on_skip_in_read(&ex),
        skip.on_skip_in_process(&ex, &1_u32),
        skip.on_skip_in_write(&ex, items),
        retry.on_retry_read_exception(&ex),
        retry.on_retry_process_exception(&ex, &1_u32),
        retry.on_retry_exception(&ex, items),
        retry.on_retry_item(&ex, &1_u32),
    ]
}

fn of_subjobs(
    tx: &mut dyn LogicalTX,
    collector: &mut dyn SubJobCollector,
    analyzer: &mut dyn SubJobAnalyzer,
) -> Vec<Outcome> {
    vec![
        tx.logical_tx_begin(),
        tx.logical_tx_before_completion(),
        tx.logical_tx_rollback(),
        tx.logical_tx_after_completion("COMMIT"),
        collector.collect_sub_job_data().map(drop),
        analyzer.analyze_collector_data(CollectorData::new(&1_u32).unwrap()),
        analyzer.analyze_exit_status(BatchStatus::Completed, "COMPLETED"),
    ]
}

macro_rules! outcomes {
    ($form:ident, $items:expr) => {{
        use $form::*;
        [
            of_reader(&mut item_reader::Artifact {}),
            of_writer(&mut item_writer::Artifact {}),
            of_algorithms(
                &mut checkpoint_algorithm::Artifact {},
                &mut partition_algorithm::Artifact {},
                &mut decider::Artifact {},
            ),
            of_batchlet(&batchlet::Artifact {}),
            of_listeners(
                &mut job_listener::Artifact {},
                &mut step_listener::Artifact {},
                &mut checkpoint_listener::Artifact {},
                &mut chunk_listener::Artifact {},
            ),
            of_item_listeners(
                &mut item_read_listener::Artifact {},
                &mut item_process_listener::Artifact {},
                &mut item_write_listener::Artifact {},
                $items,
            ),
            of_error_listeners(
                &mut skip_listener::Artifact {},
                &mut retry_listener::Artifact {},
                $items,
            ),
            of_subjobs(
                &mut logical_tx::Artifact {},
                &mut sub_job_collector::Artifact {},
                &mut sub_job_analyzer::Artifact {},
            ),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<Outcome>>()
    }};
}

/// All but the methods of items, which `item_reader`, `item_processor` and `item_writer` call.
///
/// Spec: ART-06
#[test]
fn each_method_may_fail() {
    let mut sink = processor_sink(
        Box::new(()),
        |_: &mut (), item: u32| Ok(Some(item)),
        |_: &mut (), item: &u32| Ok(Some(*item)),
    );
    let stop = AtomicBool::new(false);
    Fill::new(&mut sink, &stop, 1, 1).run(|| Ok(Some(7_u32))).unwrap();
    let items = sink.items(0..1);
    for (number, outcome) in outcomes!(plain, &items).into_iter().enumerate() {
        outcome.unwrap_or_else(|error| panic!("call {number}: {error}"));
    }
    for (number, outcome) in outcomes!(failing, &items).into_iter().enumerate() {
        let error = outcome.expect_err(&format!("call {number}"));
        assert!(error.downcast_ref::<Error>().is_some(), "call {number}: {error}");
    }
}

mod texts {
    use batch_runtime::prelude::*;

    #[derive(BatchArtifact)]
    pub(super) struct Fetch;

    #[batchlet]
    impl Fetch {
        #[process]
        fn process(&self) -> &'static str {
            "FETCHED"
        }
    }

    #[derive(BatchArtifact)]
    pub(super) struct Choice(pub(super) bool);

    #[decider]
    impl Choice {
        #[decide]
        fn decide(&mut self) -> Result<&'static str, BatchError> {
            if self.0 {
                Ok("LEFT")
            } else {
                Err("no choice".into())
            }
        }
    }

    #[derive(BatchArtifact)]
    pub(super) struct Fixed;

    #[decider]
    impl Fixed {
        #[decide]
        fn decide(&mut self) -> &'static str {
            "RIGHT"
        }
    }
}

/// An exit status may be a text of the program.
///
/// Spec: BLET-13, DECIDER-02
#[test]
fn an_exit_status_may_be_a_literal() {
    let decided = |decider: &mut dyn Decider| decider.decide(&StepsBefore::none());
    assert_eq!(Batchlet::process(&texts::Fetch).unwrap(), "FETCHED");
    assert_eq!(decided(&mut texts::Choice(true)).unwrap(), "LEFT");
    assert_eq!(
        decided(&mut texts::Choice(false)).unwrap_err().to_string(),
        "no choice"
    );
    assert_eq!(decided(&mut texts::Fixed).unwrap(), "RIGHT");
}
