//! The coordinator and the workers of the tests of dispatchers; see `batch_tests::fleet`, which runs and kills them.
#![allow(missing_docs, reason = "a program for tests")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a program for tests")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs, process, thread};

use batch_runtime::execution::MetricName;
use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, PartitionPlan};
use batch_tests::database::execute;
use batch_tests::fleet::HOLD;

/// Plans partitions, each with as many items.
#[derive(BatchArtifact)]
struct PlanParts {
    #[batch_property(name = "parts")]
    parts: i32,
}

#[partition_algorithm("PlanParts")]
impl PlanParts {
    #[calculate_partitions]
    fn plan(&mut self) -> PartitionPlan {
        PartitionPlan::with_properties((0..self.parts).map(|part| [("part", part.to_string())]))
    }
}

/// Reads the numbers from 1 to `items`.
#[derive(BatchArtifact)]
struct Numbers {
    #[batch_property(name = "part", value = "0")]
    part: u64,
    #[batch_property(name = "items", value = "50")]
    items: u64,
    /// The time of an item, in milliseconds.
    #[batch_property(name = "pace", value = "0")]
    pace: u64,
    /// The partition that cannot read 25.
    #[batch_property(name = "fails")]
    fails: Option<u64>,
    /// The partition whose process dies when it comes to 25.
    #[batch_property(name = "dies")]
    dies: Option<u64>,
    /// The partition that waits at 25 until the test lets it go on.
    #[batch_property(name = "holds")]
    holds: Option<u64>,
    last: u64,
}

impl Numbers {
    /// Waits while the test holds the partition.
    fn wait(&self) {
        let held = PathBuf::from(env::var_os(HOLD).expect("the path that holds partitions"));
        fs::write(held.with_extension("reached"), process::id().to_string()).unwrap();
        while held.exists() {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[item_reader("Numbers")]
impl Numbers {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.last = checkpoint.unwrap_or(0);
    }
    #[read_item]
    fn read(&mut self) -> Result<Option<u64>, BatchError> {
        if self.last == self.items {
            return Ok(None);
        }
        self.last += 1;
        if self.last == 25 {
            if self.dies == Some(self.part) {
                process::abort();
            }
            if self.holds == Some(self.part) {
                self.wait();
            }
            if self.fails == Some(self.part) {
                return Err(BatchError::msg("25 is not readable"));
            }
        }
        thread::sleep(Duration::from_millis(self.pace));
        Ok(Some(self.last))
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.last
    }
}

#[derive(BatchArtifact)]
struct Same;

#[item_processor("Same")]
impl Same {
    #[process_item]
    fn same(&mut self, number: u64) -> Option<u64> {
        Some(number)
    }
}

/// Inserts a row for each number. The table has no key, so that a number that is processed twice is found.
#[derive(BatchArtifact)]
struct Rows {
    #[batch_property(name = "part", value = "0")]
    part: u64,
    #[batch_property(name = "run", value = "0")]
    run: u64,
    #[batch_context]
    job: JobContext,
}

#[item_writer("Rows")]
impl Rows {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {
        let status = self.job.batch_status();
        assert!(
            matches!(status, BatchStatus::Started | BatchStatus::Stopping),
            "a worker sees the job as {status}"
        );
    }
    #[write_items]
    fn write(&mut self, numbers: &[u64], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let values = numbers
            .iter()
            .map(|number| format!("({}, {}, {number})", self.run, self.part));
        let values: Vec<String> = values.collect();
        execute(tx, &format!("INSERT INTO processed VALUES {}", values.join(", ")))
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// Sends the number of items since the checkpoint before. The count before is committed with the checkpoint, so it survives the process.
#[derive(BatchArtifact)]
struct Progress {
    #[batch_property(name = "part", value = "0")]
    part: u64,
    /// The partition whose first process dies in the third call.
    #[batch_property(name = "dies-collecting")]
    dies: Option<u64>,
    #[batch_context]
    step: StepContext,
    calls: u32,
}

#[sub_job_collector("Progress")]
impl Progress {
    #[collect_sub_job_data]
    fn collect(&mut self) -> Result<Option<i64>, BatchError> {
        self.calls += 1;
        if self.dies == Some(self.part) && self.calls == 3 {
            let held = PathBuf::from(env::var_os(HOLD).expect("the path that holds partitions"));
            if fs::File::create_new(held.with_extension("died")).is_ok() {
                process::abort();
            }
        }
        let committed = self.step.metrics();
        let committed = committed
            .iter()
            .find(|metric| metric.name == MetricName::WriteCount);
        let committed = committed.map_or(0, |metric| metric.value);
        let sent: i64 = self.step.persistent_user_data()?.unwrap_or(0);
        self.step.set_persistent_user_data(&committed)?;
        Ok(Some(committed - sent))
    }
}

/// Sets the exit status of the step to the number of items and of partitions that have ended.
#[derive(BatchArtifact)]
struct Total {
    #[batch_context]
    step: StepContext,
    items: i64,
    ended: Vec<BatchStatus>,
}

#[sub_job_analyzer("Total")]
impl Total {
    #[analyze_collector_data]
    fn add(&mut self, items: i64) {
        self.items += items;
        self.show();
    }
    #[analyze_exit_status]
    fn ended(&mut self, status: BatchStatus, _exit_status: &str) {
        self.ended.push(status);
        self.show();
    }
}

impl Total {
    fn show(&self) {
        let (items, parts) = (self.items, self.ended.len());
        self.step
            .set_exit_status(Some(&format!("{items} items, {parts} parts")));
    }
}

/// Notes the transaction around all partitions.
#[derive(BatchArtifact)]
struct Transaction;

#[logical_tx("Transaction")]
impl Transaction {
    #[logical_tx_begin]
    fn begin(&mut self) {
        eprintln!("logical transaction: begin");
    }
    #[logical_tx_after_completion]
    fn after(&mut self, status: &str) {
        eprintln!("logical transaction: {status}");
    }
}

/// A partition of a batchlet.
#[derive(BatchArtifact)]
struct Tiny {
    #[batch_property(name = "part", value = "0")]
    part: String,
}

#[batchlet("Tiny")]
impl Tiny {
    #[process]
    fn process(&self) -> String {
        format!("PART {}", self.part)
    }
    #[cancel]
    fn cancel(&self) {}
}

fn main() -> ExitCode {
    batch_cli::main()
}
