//! Gates G1, G1b, G1c: the engine's cost per item, in a job that only passes items through.
//!
//! 10 million items in memory, half of them filtered, a writer that does nothing, everything behind black boxes. The
//! engine's own row commits once, to exclude the repository, which the compared programs do not have; the last row is
//! the whole job with a commit per 1000 items.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use batch_bench::{Program, closed, head, in_turn, opened, ratio, report, run};
use batch_runtime::prelude::*;
use spring_batch_rs::BatchError as RivalError;
use spring_batch_rs::core::item;
use spring_batch_rs::core::job::{Job, JobBuilder};
use spring_batch_rs::core::step::StepBuilder;

const ITEMS: u64 = 10_000_000;
const ROUNDS: usize = 7;

/// About as large as a row of six fields.
#[derive(Clone, Copy)]
struct Row([u64; 13]);

trait Item: Copy + Send + 'static {
    fn make(number: u64) -> Self;
    fn is_even(&self) -> bool;
}

impl Item for u64 {
    fn make(number: u64) -> Self {
        number
    }
    fn is_even(&self) -> bool {
        self.is_multiple_of(2)
    }
}

impl Item for Row {
    fn make(number: u64) -> Self {
        Self([number; 13])
    }
    fn is_even(&self) -> bool {
        self.0[12].is_multiple_of(2)
    }
}

macro_rules! artifacts {
    ($item:ty, $reader:ident, $processor:ident, $writer:ident) => {
        #[derive(BatchArtifact)]
        struct $reader {
            next: u64,
        }
        #[item_reader]
        impl $reader {
            #[open]
            fn open(&mut self, checkpoint: Option<u64>) {
                self.next = checkpoint.unwrap_or(0);
                opened();
            }
            #[read_item]
            fn read(&mut self) -> Result<Option<$item>, BatchError> {
                if self.next == ITEMS {
                    return Ok(None);
                }
                self.next = black_box(self.next + 1);
                Ok(Some(<$item>::make(self.next)))
            }
            #[get_checkpoint_info]
            fn checkpoint(&mut self) -> u64 {
                self.next
            }
            #[close]
            fn close(&mut self) {
                closed();
            }
        }
        #[derive(BatchArtifact)]
        struct $processor {}
        #[item_processor]
        impl $processor {
            #[process_item]
            fn process(&mut self, item: $item) -> Result<Option<$item>, BatchError> {
                Ok(black_box(&item).is_even().then_some(item))
            }
        }
        #[derive(BatchArtifact)]
        struct $writer {}
        #[item_writer]
        impl $writer {
            #[open]
            fn open(&mut self, _checkpoint: Option<()>) {}
            #[write_items]
            fn write(&mut self, items: &[$item]) -> Result<(), BatchError> {
                black_box(items);
                Ok(())
            }
            #[get_checkpoint_info]
            fn checkpoint(&mut self) {}
        }
    };
}

artifacts!(u64, NumberReader, NumberProcessor, NumberWriter);
artifacts!(Row, RowReader, RowProcessor, RowWriter);

/// The equivalent hand-written loop.
fn by_hand<I: Item>(chunk: usize) -> Duration {
    let begin = Instant::now();
    let (mut next, mut buffer): (u64, Vec<I>) = (0, Vec::with_capacity(chunk));
    while next < ITEMS {
        let mut reads = 0;
        while reads < 2 * chunk && next < ITEMS {
            next = black_box(next + 1);
            reads += 1;
            let item = I::make(next);
            if black_box(&item).is_even() {
                buffer.push(item);
            }
        }
        black_box(buffer.as_slice());
        buffer.clear();
    }
    begin.elapsed()
}

struct RivalReader(Cell<u64>);
impl item::ItemReader<u64> for RivalReader {
    fn read(&self) -> Result<Option<u64>, RivalError> {
        let next = self.0.get();
        if next == ITEMS {
            return Ok(None);
        }
        self.0.set(black_box(next + 1));
        Ok(Some(next))
    }
}
struct RivalProcessor;
impl item::ItemProcessor<u64, u64> for RivalProcessor {
    fn process(&self, item: u64) -> Result<Option<u64>, RivalError> {
        Ok(black_box(&item).is_multiple_of(2).then_some(item))
    }
}
struct RivalWriter;
impl item::ItemWriter<u64> for RivalWriter {
    fn write(&self, items: &[u64]) -> Result<(), RivalError> {
        black_box(items);
        Ok(())
    }
}

fn rival(chunk: u16) -> Duration {
    let (reader, processor, writer) = (RivalReader(Cell::new(0)), RivalProcessor, RivalWriter);
    let step = StepBuilder::new("step")
        .chunk(chunk)
        .reader(&reader)
        .processor(&processor)
        .writer(&writer)
        .build();
    let job = JobBuilder::new().start(&step).build();
    let begin = Instant::now();
    job.run().unwrap();
    begin.elapsed()
}

fn engine(kind: &str, commit_interval: &str, chunk_size: &str) -> Duration {
    let (reader, processor, writer) = (
        format!("{kind}Reader"),
        format!("{kind}Processor"),
        format!("{kind}Writer"),
    );
    run(
        "sqlite://:memory:",
        &[
            ("reader", &reader),
            ("processor", &processor),
            ("writer", &writer),
            ("commit.interval", commit_interval),
            ("chunk.size", chunk_size),
        ],
    )
}

fn per_item(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9 / ITEMS as f64
}

fn main() {
    let once = ITEMS.to_string();
    let mut programs: Vec<Program<'_>> = vec![
        ("u64 by hand", Box::new(|| by_hand::<u64>(1000))),
        ("u64 engine", Box::new(|| engine("Number", &once, "1000"))),
        ("u64 spring-batch-rs", Box::new(|| rival(1000))),
        ("104 B by hand", Box::new(|| by_hand::<Row>(1000))),
        ("104 B engine", Box::new(|| engine("Row", &once, "1000"))),
        ("u64 engine, chunk 10", Box::new(|| engine("Number", &once, "10"))),
        ("u64 spring-batch-rs, chunk 10", Box::new(|| rival(10))),
        ("u64 whole job", Box::new(|| engine("Number", "1000", "1000"))),
    ];
    let times = in_turn(ROUNDS, &mut programs);
    let [hand, ours, theirs, hand_row, ours_row, ours_10, theirs_10, whole] = times.try_into().unwrap();

    head("Cost per item, 10 million items in memory, half of them filtered");
    report("u64, loop by hand", per_item(hand), "ns", None);
    report("u64, engine, chunk 1000", per_item(ours), "ns", None);
    report(
        "u64, overhead of the engine (G1)",
        per_item(ours) - per_item(hand),
        "ns",
        Some(3.0),
    );
    report("u64, engine, chunk 10", per_item(ours_10), "ns", None);
    report(
        "u64, overhead of the engine, chunk 10 (G1b)",
        per_item(ours_10) - per_item(hand),
        "ns",
        Some(15.0),
    );
    report("104 bytes, loop by hand", per_item(hand_row), "ns", None);
    report("104 bytes, engine, chunk 1000", per_item(ours_row), "ns", None);
    report(
        "104 bytes, overhead of the engine (G1)",
        per_item(ours_row) - per_item(hand_row),
        "ns",
        Some(9.0),
    );
    report("u64, spring-batch-rs, chunk 1000", per_item(theirs), "ns", None);
    report("u64, spring-batch-rs, chunk 10", per_item(theirs_10), "ns", None);
    report(
        "engine / spring-batch-rs, chunk 1000 (G1c)",
        ratio(ours, theirs),
        "x",
        Some(1.0),
    );
    report(
        "engine / spring-batch-rs, chunk 10",
        ratio(ours_10, theirs_10),
        "x",
        None,
    );
    report(
        "u64, whole job with a repository commit per 1000 items",
        per_item(whole),
        "ns",
        None,
    );
}
