//! Queues as the input and output of jobs, on real brokers: Kafka, which Maven fetches, and NATS from its package.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod access;
mod broker;
mod checkpoints;
mod ends;
mod interrupted;
mod kafka_only;
mod killed;
mod nats_only;
mod proxy;
mod stage;
mod writers;

use std::path::Path;
use std::{fs, thread};

use batch_items::queue::{BinaryMessages, TextMessages};
use batch_items::{LineItemWriter, TableItemWriter};
use batch_kafka::{KafkaItemReader, KafkaItemWriter};
use batch_nats::{NatsItemReader, NatsItemWriter};
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, JobParameters};
use serde::{Deserialize, Serialize};

/// A message, as JSON, and a row of the table `item`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    id: i64,
    text: String,
    /// Where it was, if the reader adds that: in Kafka the partition and the offset, in NATS the sequence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
}

#[item_reader("FromKafka")]
type FromKafka = KafkaItemReader<Item>;
#[item_reader("FromNats")]
type FromNats = NatsItemReader<Item>;
#[item_writer("ToTable")]
type ToTable = TableItemWriter<Item>;
#[item_writer("ToKafka")]
type ToKafka = KafkaItemWriter<Item>;
#[item_writer("ToNats")]
type ToNats = NatsItemWriter<Item>;
#[item_reader("TextFromKafka")]
type TextFromKafka = KafkaItemReader<String, TextMessages>;
#[item_writer("TextToFile")]
type TextToFile = LineItemWriter<String>;
#[item_writer("BytesToNats")]
type BytesToNats = NatsItemWriter<String, BinaryMessages>;

batch_items::function_processor!(ToLine("ToLine"): |line: &String| -> Option<String> { Some(String::clone(line)) });

/// Passes items on. Fails at the one of this number; at another one it makes the file `held`, and waits until that is removed.
#[derive(BatchArtifact)]
struct Pass {
    #[batch_property(name = "fail.at", value = "0")]
    fail_at: u64,
    #[batch_property(name = "hold.at", value = "0")]
    hold_at: u64,
    #[batch_property(name = "held")]
    held: String,
    items: u64,
}

#[item_processor("Pass")]
impl Pass {
    #[process_item]
    fn process(&mut self, item: Item) -> Result<Option<Item>, BatchError> {
        self.items += 1;
        if self.items == self.fail_at {
            return Err(BatchError::msg("stopped by the test"));
        }
        if self.items == self.hold_at {
            fs::write(&self.held, "")?;
            while Path::new(&self.held).exists() {
                thread::yield_now();
            }
        }
        Ok(Some(item))
    }
}

/// Fails before the commit of this number, when the items of its chunk are written.
#[derive(BatchArtifact)]
struct FailingCommit {
    #[batch_property(name = "fail.commit", value = "0")]
    fail_commit: u64,
    chunks: u64,
}

#[chunk_listener("FailingCommit")]
impl FailingCommit {
    #[after_chunk]
    fn after(&mut self) -> Result<(), BatchError> {
        self.chunks += 1;
        match self.chunks == self.fail_commit {
            true => Err(BatchError::msg("the commit fails")),
            false => Ok(()),
        }
    }
}

/// Makes the items 1 to `items`; one may be larger than a broker accepts.
#[derive(BatchArtifact)]
struct Items {
    #[batch_property(name = "items")]
    items: i64,
    #[batch_property(name = "large", value = "0")]
    large: i64,
    /// Follows the text of each item.
    #[batch_property(name = "suffix", value = "")]
    suffix: String,
    last: i64,
}

#[item_reader("Items")]
impl Items {
    #[open]
    fn open(&mut self, checkpoint: Option<i64>) {
        self.last = checkpoint.unwrap_or(0);
    }

    #[read_item]
    fn read(&mut self) -> Option<Item> {
        (self.last < self.items).then(|| {
            self.last += 1;
            let mut item = item(self.last);
            item.text += &self.suffix;
            if self.last == self.large {
                item.text = "x".repeat(2_000_000);
            }
            item
        })
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) -> i64 {
        self.last
    }
}

/// Returns the item of a number.
fn item(id: i64) -> Item {
    Item {
        id,
        text: format!("text {id}, \"quoted\" ä€😀"),
        part: None,
        place: None,
        source: None,
    }
}

/// Returns the items of numbers.
fn items(ids: impl IntoIterator<Item = i64>) -> Vec<Item> {
    ids.into_iter().map(item).collect()
}

/// Readers and writers of these crates are ready-made: a property that they do not have is an error.
///
/// Spec: ITEM-SETTING-02, BPROP-11
#[test]
fn a_misspelt_property_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let xml = r#"<job id="job"><step id="copy"><chunk reader="kafkaRecordReader" writer="recordNatsWriter"><properties>
        <property name="servers" value="localhost"/><property name="topic" value="t" target="reader"/>
        <property name="topc" value="t" target="reader"/><property name="subject" value="s" target="writer"/>
        <property name="subjct" value="s" target="writer"/></properties></chunk></step></job>"#;
    fs::write(folder.path().join("job.xml"), xml).unwrap();
    let report = BatchRuntime::builder()
        .job_path(folder.path().display().to_string())
        .check(JobParameters::new());
    assert!(!report.is_ok(), "{}", report.to_string());
    for message in [
        "`kafkaRecordReader` has no property `topc`",
        "`recordNatsWriter` has no property `subjct`",
    ] {
        assert!(report.to_string().contains(message), "{report}");
    }
}

/// The page of properties is that of the code.
#[test]
fn properties_are_listed() {
    batch_tests::properties::check_chapter("batch-kafka", &[]);
    batch_tests::properties::check_chapter("batch-nats", &[]);
}
