//! Data of a job that outlives its steps, an extension.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobExecutionId};
use batch_tests::stage::{Stage, say};
use serde::{Deserialize, Serialize};

use super::artifacts::{Gate, job, job_execution, refused, restart_with, started};

/// A step with these properties.
fn step(id: &str, properties: &str, body: &str) -> String {
    format!(r#"<step id="{id}"><properties>{properties}</properties>{body}</step>"#)
}

/// A step with a batchlet of this name.
fn batchlet(id: &str, name: &str) -> String {
    format!(r#"<step id="{id}"><batchlet ref="{name}"/></step>"#)
}

fn data(stage: &Stage, execution: JobExecutionId) -> Vec<String> {
    let data = stage.operator().persistent_data(execution).unwrap();
    data.iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

/// A value of several types.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Batch {
    id: u64,
    files: Vec<String>,
    rate: f64,
    note: Option<String>,
}

/// Stores data, unless it is there, and logs what it finds.
#[derive(BatchArtifact)]
struct DataKeeper {
    #[batch_property]
    log: String,
    #[batch_property(value = "")]
    fail: String,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
}

#[batchlet("DataKeeper")]
impl DataKeeper {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let batch: Option<Batch> = self.job.persistent_data("batch")?;
        let count: Option<i64> = self.job.persistent_data("count")?;
        let found = batch.as_ref().map(|batch| batch.files.join("+"));
        say(&self.log, format!("{} {found:?} {count:?}", self.step.id()));
        let batch = batch.unwrap_or(Batch {
            id: u64::MAX,
            files: vec!["é.csv".into(), "java.lang.Long".into()],
            rate: 0.5,
            note: None,
        });
        self.job.set_persistent_data("batch", &batch)?;
        self.job.set_persistent_data("count", &(count.unwrap_or(0) + 1))?;
        self.job.set_persistent_data("dropped", "x")?;
        self.job.remove_persistent_data("dropped")?;
        assert_eq!(self.job.persistent_data("batch")?, Some(batch));
        assert!(self.job.persistent_data::<String>("count").is_err());
        match self.fail == self.step.id() {
            true => Err(BatchError::msg("as requested")),
            false => Ok("DONE".into()),
        }
    }
}

/// Later steps, restarts and the operator see what a step has stored.
///
/// Spec: DATA-01, DATA-02
#[test]
fn data_outlives_the_step_and_the_execution() {
    let stage = Stage::new(&job(&format!(
        "{}{}",
        r#"<step id="one" next="two"><batchlet ref="DataKeeper"/></step>"#,
        batchlet("two", "DataKeeper")
    )));
    let first = stage.start("job", [("fail", "two")]);
    assert_eq!(
        stage.log(),
        ["one None None", r#"two Some("é.csv+java.lang.Long") Some(1)"#]
    );
    let expected = |count: u32| {
        [
            r#"batch={"files":["é.csv","java.lang.Long"],"id":18446744073709551615,"note":null,"rate":0.5}"#
                .to_owned(),
            format!("count={count}"),
        ]
    };
    assert_eq!(data(&stage, first), expected(2));
    let again = restart_with(&stage, first, [("fail", "")]);
    assert_eq!(stage.log(), [r#"two Some("é.csv+java.lang.Long") Some(2)"#]);
    assert_eq!(data(&stage, again), expected(3));
    assert_eq!(data(&stage, first), expected(2));
    let typed = stage.operator().persistent_data(again).unwrap();
    assert_eq!(typed.get::<i32>("count").unwrap(), Some(3));
    assert_eq!(typed.get::<Batch>("batch").unwrap().unwrap().id, u64::MAX);
    assert!(typed.get::<String>("count").is_err());
    assert_eq!(typed.get::<String>("other").unwrap(), None);
}

/// Counts by the number of an account.
#[derive(BatchArtifact)]
struct DataByAccount {
    #[batch_context]
    job: JobContext,
}

#[batchlet("DataByAccount")]
impl DataByAccount {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let mut counts: BTreeMap<u64, i64> = self.job.persistent_data("counts")?.unwrap_or_default();
        *counts.entry(4711).or_default() += 1;
        self.job.set_persistent_data("counts", &counts)?;
        assert_eq!(self.job.persistent_data("counts")?, Some(counts.clone()));
        match counts[&4711] {
            1 => Err(BatchError::msg("as requested")),
            _ => Ok("DONE".into()),
        }
    }
}

/// Spec: DATA-02, DATA-03
#[test]
fn maps_with_numbers_as_keys_outlive_the_execution() {
    let (stage, first) = started(&batchlet("one", "DataByAccount"), [("day", "1")]);
    let again = restart_with(&stage, first, [("day", "1")]);
    assert_eq!(data(&stage, again), [r#"counts={"4711":2}"#]);
}

/// Reads the numbers to `items`; each number is added to the datum `sum`, and logged with it.
#[derive(BatchArtifact)]
struct Summing {
    #[batch_property]
    log: String,
    #[batch_property(value = "6")]
    items: u64,
    next: u64,
    #[batch_context]
    job: JobContext,
}

#[item_reader("Summing")]
impl Summing {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.next = checkpoint.unwrap_or(1);
    }
    #[read_item]
    fn read(&mut self) -> Result<Option<u64>, BatchError> {
        let number = self.next;
        if number > self.items {
            return Ok(None);
        }
        self.next += 1;
        let sum = self.job.persistent_data::<u64>("sum")?.unwrap_or(0) + number;
        self.job.set_persistent_data("sum", &sum)?;
        say(&self.log, format!("{number}: {sum}"));
        Ok(Some(number))
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.next
    }
}

#[derive(BatchArtifact)]
struct SameNumber;

#[item_processor("SameNumber")]
impl SameNumber {
    #[process_item]
    fn process(&mut self, number: u64) -> Option<u64> {
        Some(number)
    }
}

/// Fails at the item `bad`, `times` times.
#[derive(BatchArtifact)]
struct FailingSums {
    #[batch_property(value = "0")]
    bad: u64,
    #[batch_property(value = "1")]
    times: usize,
    failed: AtomicUsize,
}

/// The error of [`FailingSums`].
#[derive(Debug, BatchException)]
struct BadSum;

impl std::fmt::Display for BadSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a bad sum")
    }
}

impl std::error::Error for BadSum {}

#[item_writer("FailingSums")]
impl FailingSums {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u64], _tx: &mut ChunkTransaction) -> Result<(), BadSum> {
        if numbers.contains(&self.bad) && self.failed.fetch_add(1, Ordering::Relaxed) < self.times {
            return Err(BadSum);
        }
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

fn sums(attributes: &str, rules: &str) -> Stage {
    let chunk = format!(
        r#"<step id="copy"><chunk reader="Summing" processor="SameNumber" writer="FailingSums" commit-interval="2" {attributes}>{rules}</chunk></step>"#
    );
    Stage::new(&job(&chunk))
}

const RETRIES: &str =
    r#"<retryable-exception-classes><include class="BadSum"/></retryable-exception-classes>"#;

/// Data is committed with the chunk: what a failed chunk has stored is undone, and its items are added again.
///
/// Spec: DATA-01
#[test]
fn data_is_committed_with_its_chunk() {
    let stage = sums("", "");
    let first = stage.start("job", [("bad", "4")]);
    assert_eq!(stage.log(), ["1: 1", "2: 3", "3: 6", "4: 10"]);
    assert_eq!(data(&stage, first), ["sum=3"]);
    let again = restart_with(&stage, first, [("bad", "0")]);
    assert_eq!(stage.log(), ["3: 6", "4: 10", "5: 15", "6: 21"]);
    assert_eq!(data(&stage, again), ["sum=21"]);
}

/// Data that a pipelined step stores while it reads the next chunk belongs to that one.
///
/// Spec: DATA-01, D-100
#[test]
fn data_of_a_pipeline_is_committed_with_its_chunk() {
    let stage = sums("", "");
    let pipeline = ("batch.chunk.pipeline", "true");
    let first = stage.start("job", [("bad", "4"), pipeline]);
    assert_eq!(data(&stage, first), ["sum=3"]);
    let again = restart_with(&stage, first, [("bad", "0"), pipeline]);
    assert_eq!(data(&stage, again), ["sum=21"]);
}

/// Items that are read again after a rollback are added once; items that are kept are not read again, and their data stays.
///
/// Spec: DATA-01
#[test]
fn data_of_retried_items_counts_once() {
    for (attributes, log) in [
        (
            r#"buffer-reads="false""#,
            ["1: 1", "2: 3", "3: 6", "4: 10", "3: 6", "4: 10"].as_slice(),
        ),
        ("", &["1: 1", "2: 3", "3: 6", "4: 10"]),
    ] {
        let stage = sums(attributes, RETRIES);
        let execution = stage.start("job", [("bad", "4"), ("items", "4")]);
        assert_eq!(stage.log(), log, "{attributes}");
        assert_eq!(data(&stage, execution), ["sum=10"], "{attributes}");
    }
}

/// Reads numbers, and adds them to the persistent user data of the step.
#[derive(BatchArtifact)]
struct SummingStep {
    #[batch_property]
    log: String,
    #[batch_property(value = "4")]
    items: u64,
    next: u64,
    #[batch_context]
    step: StepContext,
}

#[item_reader("SummingStep")]
impl SummingStep {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.next = checkpoint.unwrap_or(1);
    }
    #[read_item]
    fn read(&mut self) -> Result<Option<u64>, BatchError> {
        let number = self.next;
        if number > self.items {
            return Ok(None);
        }
        self.next += 1;
        let sum = self.step.persistent_user_data::<u64>()?.unwrap_or(0) + number;
        self.step.set_persistent_user_data(&sum)?;
        say(&self.log, format!("{number}: {sum}"));
        Ok(Some(number))
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.next
    }
}

/// The persistent user data of a step, too: also before its first commit.
///
/// Spec: CTX-25
#[test]
fn user_data_of_items_that_are_read_again_counts_once() {
    for (bad, expected) in [
        ("2", ["1: 1", "2: 3", "1: 1", "2: 3", "3: 6", "4: 10"]),
        ("4", ["1: 1", "2: 3", "3: 6", "4: 10", "3: 6", "4: 10"]),
    ] {
        let chunk = format!(
            r#"<step id="copy"><chunk reader="SummingStep" processor="SameNumber" writer="FailingSums" commit-interval="2"
               buffer-reads="false">{RETRIES}</chunk></step>"#
        );
        let stage = Stage::new(&job(&chunk));
        stage.start("job", [("bad", bad)]);
        assert_eq!(stage.log(), expected, "{bad}");
    }
}

/// Stores the result of the decision, and the count of decisions.
#[derive(BatchArtifact)]
struct DataDecider {
    #[batch_context]
    job: JobContext,
}

#[decider("DataDecider")]
impl DataDecider {
    #[decide]
    fn decide(&mut self) -> Result<String, BatchError> {
        let sum: Option<u64> = self.job.persistent_data("sum")?;
        let decision = if sum > Some(20) { "LARGE" } else { "SMALL" };
        self.job.set_persistent_data("decision", decision)?;
        Ok(decision.into())
    }
}

/// Stores data before the first step and after the last.
#[derive(BatchArtifact)]
struct DataListener {
    #[batch_context]
    job: JobContext,
}

#[job_listener("DataListener")]
impl DataListener {
    #[before_job]
    fn before(&self) -> Result<(), BatchError> {
        self.job.set_persistent_data("before", &true)
    }
    #[after_job]
    fn after(&self) -> Result<(), BatchError> {
        let decision: Option<String> = self.job.persistent_data("decision")?;
        self.job.set_persistent_data("after", &decision)
    }
}

/// Spec: DATA-01
#[test]
fn deciders_and_listeners_of_the_job_see_and_store_data() {
    let stage = Stage::new(&job(r#"<listeners><listener ref="DataListener"/></listeners>
        <step id="copy" next="decide"><chunk reader="Summing" processor="SameNumber" writer="FailingSums" commit-interval="2"/></step>
        <decision id="decide" ref="DataDecider"><end on="*"/></decision>"#));
    let execution = stage.start("job", [("items", "6")]);
    assert_eq!(
        data(&stage, execution),
        [r#"after="LARGE""#, "before=true", r#"decision="LARGE""#, "sum=21"]
    );
}

/// Stores a datum under the name of its step, after it has met the others at a gate.
#[derive(BatchArtifact)]
struct Parallel {
    #[batch_property]
    folder: String,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
}

#[batchlet("Parallel")]
impl Parallel {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let gate = Gate::of(&self.folder);
        gate.open(self.step.id());
        for other in ["a", "b", "c"] {
            gate.pass(other);
        }
        self.job.set_persistent_data(self.step.id(), &1)?;
        Ok("DONE".into())
    }
}

/// Flows of a split store data at the same time, and none is lost.
///
/// Spec: DATA-01
#[test]
fn flows_of_a_split_store_data_at_the_same_time() {
    let flows: String = ["a", "b", "c"]
        .map(|id| format!(r#"<flow id="f{id}">{}</flow>"#, batchlet(id, "Parallel")))
        .concat();
    let split = format!(r#"<split id="all">{flows}</split>"#);
    let (stage, execution) = started(&split, [("day", "1")]);
    assert_eq!(data(&stage, execution), ["a=1", "b=1", "c=1"]);
}

/// Stores data when it is called for a partitioned flow, after all steps.
#[derive(BatchArtifact)]
struct DataCollector {
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: Option<StepContext>,
}

#[sub_job_collector("DataCollector")]
impl DataCollector {
    #[collect_sub_job_data]
    fn collect(&mut self) -> Result<Option<String>, BatchError> {
        assert!(self.step.is_none(), "a step commits its data");
        self.job.set_persistent_data("collected", &true)?;
        Ok(None)
    }
}

/// Data of a flow of a split that no step of it commits is committed when the flow ends.
///
/// Spec: DATA-01
#[test]
fn data_after_the_last_step_of_a_flow_is_kept() {
    let flow = format!(
        r#"<flow id="f">{}<partition instances="2"/></flow>"#,
        batchlet("a", "DataReader")
    );
    let collector = r#"<concurrency><collector ref="DataCollector"/></concurrency>"#;
    let stage = Stage::new(&job(&format!(r#"<split id="all">{flow}{collector}</split>"#)));
    let execution = stage.start("job", [("day", "1")]);
    assert_eq!(data(&stage, execution), ["collected=true"]);
}

/// Logs what the decider and the listener of the job have stored.
#[derive(BatchArtifact)]
struct DataReader {
    #[batch_property]
    log: String,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
}

#[batchlet("DataReader")]
impl DataReader {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let before: Option<bool> = self.job.persistent_data("before")?;
        let decision: Option<String> = self.job.persistent_data("decision")?;
        say(&self.log, format!("{} {before:?} {decision:?}", self.step.id()));
        Ok("DONE".into())
    }
}

/// Data of deciders and job listeners is committed when they have returned: flows and partitions that follow see it.
///
/// Spec: DATA-01
#[test]
fn threads_see_the_data_of_deciders_and_job_listeners() {
    let stage = Stage::new(&job(r#"<listeners><listener ref="DataListener"/></listeners>
        <split id="split" next="decide"><flow id="f"><step id="a"><batchlet ref="DataReader"/></step></flow></split>
        <decision id="decide" ref="DataDecider"><next on="*" to="b"/></decision>
        <step id="b" next="second"><batchlet ref="DataReader"/><partition instances="1"/></step>
        <split id="second"><flow id="g"><step id="c"><batchlet ref="DataReader"/></step></flow></split>"#));
    stage.start("job", [("day", "1")]);
    assert_eq!(
        stage.log(),
        [
            "a Some(true) None",
            r#"b Some(true) Some("SMALL")"#,
            r#"c Some(true) Some("SMALL")"#
        ]
    );
}

/// Between two flows of a split, too.
///
/// Spec: DATA-01
#[test]
fn a_flow_sees_the_data_of_the_decider_before_it() {
    let stage = Stage::new(&job(r#"<split id="split">
        <flow id="f" next="decide"><step id="a"><batchlet ref="DataReader"/></step></flow>
        <decision id="decide" ref="DataDecider"><next on="*" to="g"/></decision>
        <flow id="g"><step id="b"><batchlet ref="DataReader"/></step></flow>
        </split>"#));
    stage.start("job", [("day", "1")]);
    assert_eq!(stage.log(), ["a None None", r#"b None Some("SMALL")"#]);
}

/// Logs the datum `count`, and what happens if it changes data.
#[derive(BatchArtifact)]
struct DataPartition {
    #[batch_property]
    log: String,
    #[batch_context]
    job: JobContext,
}

#[batchlet("DataPartition")]
impl DataPartition {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let count: Option<i64> = self.job.persistent_data("count")?;
        let set = self.job.set_persistent_data("count", &7).unwrap_err();
        let removed = self.job.remove_persistent_data("count").unwrap_err();
        assert_eq!(set.to_string(), removed.to_string());
        say(&self.log, format!("{count:?} {set}"));
        Ok("DONE".into())
    }
}

/// Spec: DATA-01
#[test]
fn partitions_read_data_and_cannot_change_it() {
    let stage = Stage::new(&job(
        r#"<step id="one" next="two"><batchlet ref="DataKeeper"/></step>
        <step id="two"><batchlet ref="DataPartition"/><partition instances="2"/></step>"#,
    ));
    let execution = stage.start("job", [("fail", "")]);
    let expected = "Some(1) cannot change the data `count`: a partition cannot change the data of the job; report to an analyzer, which can";
    assert_eq!(stage.log()[1..], [expected, expected]);
    assert!(data(&stage, execution).contains(&"count=1".to_owned()));
}

/// Tries names and values that are not possible.
#[derive(BatchArtifact)]
struct Misnamed {
    #[batch_property]
    log: String,
    #[batch_context]
    job: JobContext,
}

#[batchlet("Misnamed")]
impl Misnamed {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        for name in ["", "@class", "batch.x"] {
            say(
                &self.log,
                self.job.set_persistent_data(name, &1).unwrap_err().to_string(),
            );
        }
        let large = "x".repeat(1_048_575);
        say(
            &self.log,
            self.job
                .set_persistent_data("large", &large)
                .unwrap_err()
                .to_string(),
        );
        let keys = BTreeMap::from([((1, 2), 3)]);
        say(
            &self.log,
            self.job
                .set_persistent_data("keys", &keys)
                .unwrap_err()
                .to_string(),
        );
        Ok("DONE".into())
    }
}

/// Spec: DATA-01
#[test]
fn wrong_names_and_values_are_errors() {
    let stage = Stage::new(&job(&batchlet("one", "Misnamed")));
    stage.start("job", [("day", "1")]);
    assert_eq!(
        stage.log(),
        [
            "cannot change the data ``: its name is empty",
            "cannot change the data `@class`: the name is reserved",
            "cannot change the data `batch.x`: names that begin with `batch.` are reserved",
            "cannot store the data `large`: it has 1048577 bytes of JSON, and at most 1048576 are allowed; store it in a table or file",
            "cannot store the data `keys`: key must be a string",
        ]
    );
}

/// Stores persistent user data of its step.
#[derive(BatchArtifact)]
struct WithUserData {
    #[batch_property(value = "")]
    fail: String,
    #[batch_context]
    step: StepContext,
}

#[batchlet("WithUserData")]
impl WithUserData {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let batch = Batch {
            id: 7,
            files: vec!["a".into()],
            rate: 1.0,
            note: None,
        };
        self.step.set_persistent_user_data(&batch)?;
        match self.fail.as_str() {
            "yes" => Err(BatchError::msg("as requested")),
            _ => Ok("DONE".into()),
        }
    }
}

/// When a step completes, `batch.step.promote` makes fields of its user data data of the job; fields that are missing are left out.
///
/// Spec: DATA-04
#[test]
fn fields_of_the_user_data_are_promoted() {
    let promoting = |value: &str| {
        let property = format!(r#"<property name="batch.step.promote" value="{value}"/>"#);
        Stage::new(&job(&step("one", &property, r#"<batchlet ref="WithUserData"/>"#)))
    };
    let stage = promoting("id, files,other");
    let failed = stage.start("job", [("fail", "yes")]);
    assert!(data(&stage, failed).is_empty());
    let again = restart_with(&stage, failed, [("fail", "")]);
    assert_eq!(data(&stage, again), [r#"files=["a"]"#, "id=7"]);
    for wrong in ["a,,b", "batch.a"] {
        let problem = refused(&promoting(wrong), "job", [("day", "1")]);
        assert!(
            problem.contains("expected names, separated by commas"),
            "{problem}"
        );
    }
}

/// Data of a failed batchlet is committed with the end of the step, as its user data is.
///
/// Spec: DATA-01
#[test]
fn data_of_a_failed_batchlet_is_kept() {
    let (stage, execution) = started(&batchlet("one", "DataKeeper"), [("fail", "one")]);
    let status = job_execution(&stage, execution).status;
    assert_eq!(status, BatchStatus::Failed);
    assert!(data(&stage, execution).contains(&"count=1".to_owned()));
}
