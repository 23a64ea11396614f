//! Data of a job that outlives its steps, an extension.

use std::collections::BTreeMap;

use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobExecutionId};
use batch_tests::stage::{Stage, say};
use serde::{Deserialize, Serialize};

use super::artifacts::{
    Gate, assert_contains, error_types, job, job_execution, refused, restart_with, started,
};

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

/// A value of several types. Its fields are in the order that a map without the order of insertion has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Batch {
    files: Vec<String>,
    id: u64,
    note: Option<String>,
    rate: f64,
}

/// Stores data, unless it is there, and logs what it finds.
#[batchlet("DataKeeper")]
fn data_keeper(
    #[batch_property] log: &str,
    #[batch_property(value = "")] fail: &str,
    #[batch_context] job: &JobContext,
    #[batch_context] step: &StepContext,
) -> Result<String, BatchError> {
    let batch: Option<Batch> = job.persistent_data("batch")?;
    let count: Option<i64> = job.persistent_data("count")?;
    let found = batch.as_ref().map(|batch| batch.files.join("+"));
    say(log, format!("{} {found:?} {count:?}", step.id()));
    let batch = batch.unwrap_or(Batch {
        files: vec!["é.csv".into(), "java.lang.Long".into()],
        id: u64::MAX,
        note: None,
        rate: 0.5,
    });
    job.set_persistent_data("batch", &batch)?;
    job.set_persistent_data("count", &(count.unwrap_or(0) + 1))?;
    job.set_persistent_data("dropped", "x")?;
    job.remove_persistent_data("dropped")?;
    assert_eq!(job.persistent_data("batch")?, Some(batch));
    assert!(job.persistent_data::<String>("count").is_err());
    match fail == step.id() {
        true => Err(BatchError::msg("as requested")),
        false => Ok("DONE".into()),
    }
}

/// Later steps, restarts and the operator see what a step has stored.
///
/// Spec: DATA-01, DATA-02
#[test]
fn data_outlives_the_step_and_the_execution() {
    let elements = format!(
        "{}{}",
        r#"<step id="one" next="two"><batchlet ref="DataKeeper"/></step>"#,
        batchlet("two", "DataKeeper")
    );
    let (stage, first) = started(&elements, [("fail", "two")]);
    let expected = ["one None None", r#"two Some("é.csv+java.lang.Long") Some(1)"#];
    assert_eq!(stage.log(), expected);
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
#[batchlet("DataByAccount")]
fn data_by_account(#[batch_context] job: &JobContext) -> Result<String, BatchError> {
    let mut counts: BTreeMap<u64, i64> = job.persistent_data("counts")?.unwrap_or_default();
    *counts.entry(4711).or_default() += 1;
    job.set_persistent_data("counts", &counts)?;
    assert_eq!(job.persistent_data("counts")?, Some(counts.clone()));
    match counts[&4711] {
        1 => Err(BatchError::msg("as requested")),
        _ => Ok("DONE".into()),
    }
}

/// Spec: DATA-02, DATA-03
#[test]
fn maps_with_numbers_as_keys_outlive_the_execution() {
    let (stage, first) = started(&batchlet("one", "DataByAccount"), [("day", "1")]);
    let again = restart_with(&stage, first, [("day", "1")]);
    assert_eq!(data(&stage, again), [r#"counts={"4711":2}"#]);
}

/// Reads the numbers to `items`; each number is added to the job's datum `sum`, or to the user data of the step, and logged with it.
#[derive(BatchArtifact)]
struct Summing {
    #[batch_property]
    log: String,
    #[batch_property(value = "6")]
    items: u64,
    #[batch_property(value = "false")]
    user_data: bool,
    next: u64,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
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
        let sum: Option<u64> = match self.user_data {
            true => self.step.persistent_user_data()?,
            false => self.job.persistent_data("sum")?,
        };
        let sum = sum.unwrap_or(0) + number;
        match self.user_data {
            true => self.step.set_persistent_user_data(&sum)?,
            false => self.job.set_persistent_data("sum", &sum)?,
        }
        say(&self.log, format!("{number}: {sum}"));
        Ok(Some(number))
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.next
    }
}

#[item_processor("SameNumber")]
fn same_number(number: u64) -> Option<u64> {
    Some(number)
}

error_types! {
    /// The error of [`FailingSums`].
    BadSum => "a bad sum";
}

/// Fails once, at the item `bad`.
#[derive(BatchArtifact)]
struct FailingSums {
    #[batch_property(value = "0")]
    bad: u64,
    has_failed: bool,
}

#[item_writer("FailingSums")]
impl FailingSums {
    #[write_items]
    fn write(&mut self, numbers: &[u64], _tx: &mut ChunkTransaction) -> Result<(), BadSum> {
        let fails = numbers.contains(&self.bad) && !self.has_failed;
        self.has_failed |= fails;
        if fails { Err(BadSum) } else { Ok(()) }
    }
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

/// Items that are read again after a rollback are added once, to the data of the job and to the user data of the step, also before the
/// first commit; items that are kept are not read again, and their data stays.
///
/// Spec: CTX-25, DATA-01
#[test]
fn data_of_retried_items_counts_once() {
    let again = r#"buffer-reads="false""#;
    for (attributes, user_data, bad, log) in [
        (
            again,
            "false",
            "4",
            &["1: 1", "2: 3", "3: 6", "4: 10", "3: 6", "4: 10"][..],
        ),
        (
            again,
            "true",
            "4",
            &["1: 1", "2: 3", "3: 6", "4: 10", "3: 6", "4: 10"],
        ),
        (
            again,
            "true",
            "2",
            &["1: 1", "2: 3", "1: 1", "2: 3", "3: 6", "4: 10"],
        ),
        ("", "false", "4", &["1: 1", "2: 3", "3: 6", "4: 10"]),
    ] {
        let stage = sums(attributes, RETRIES);
        let execution = stage.start("job", [("bad", bad), ("items", "4"), ("user_data", user_data)]);
        assert_eq!(stage.log(), log, "{attributes} {user_data}");
        let expected: &[&str] = if user_data == "true" { &[] } else { &["sum=10"] };
        assert_eq!(data(&stage, execution), expected, "{attributes} {user_data}");
    }
}

/// Stores the result of the decision, and the count of decisions.
#[decider("DataDecider")]
fn data_decider(#[batch_context] job: &JobContext) -> Result<String, BatchError> {
    let sum: Option<u64> = job.persistent_data("sum")?;
    let decision = if sum > Some(20) { "LARGE" } else { "SMALL" };
    job.set_persistent_data("decision", decision)?;
    Ok(decision.into())
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
    let elements = r#"<listeners><listener ref="DataListener"/></listeners>
        <step id="copy" next="decide"><chunk reader="Summing" processor="SameNumber" writer="FailingSums" commit-interval="2"/></step>
        <decision id="decide" ref="DataDecider"><end on="*"/></decision>"#;
    let (stage, execution) = started(elements, [("items", "6")]);
    let expected = [r#"after="LARGE""#, "before=true", r#"decision="LARGE""#, "sum=21"];
    assert_eq!(data(&stage, execution), expected);
}

/// Stores a datum under the name of its step, after it has met the others at a gate.
#[batchlet("Parallel")]
fn parallel(
    #[batch_property] folder: &str,
    #[batch_context] job: &JobContext,
    #[batch_context] step: &StepContext,
) -> Result<String, BatchError> {
    let gate = Gate::of(folder);
    gate.open(step.id());
    for other in ["a", "b", "c"] {
        gate.pass(other);
    }
    job.set_persistent_data(step.id(), &1)?;
    Ok("DONE".into())
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
#[sub_job_collector("DataCollector")]
fn data_collector(
    #[batch_context] job: &JobContext,
    #[batch_context] step: Option<StepContext>,
) -> Result<Option<String>, BatchError> {
    assert!(step.is_none(), "a step commits its data");
    job.set_persistent_data("collected", &true)?;
    Ok(None)
}

/// Data of a flow of a split that no step of it commits is committed when the flow ends.
///
/// Spec: DATA-01
#[test]
fn data_after_the_last_step_of_a_flow_is_kept() {
    let reader = batchlet("a", "DataReader");
    let elements = format!(
        r#"<split id="all"><flow id="f">{reader}<partition instances="2"/></flow>
           <concurrency><collector ref="DataCollector"/></concurrency></split>"#
    );
    let (stage, execution) = started(&elements, [("day", "1")]);
    assert_eq!(data(&stage, execution), ["collected=true"]);
}

/// Logs what the decider and the listener of the job have stored.
#[batchlet("DataReader")]
fn data_reader(
    #[batch_property] log: &str,
    #[batch_context] job: &JobContext,
    #[batch_context] step: &StepContext,
) -> Result<String, BatchError> {
    let before: Option<bool> = job.persistent_data("before")?;
    let decision: Option<String> = job.persistent_data("decision")?;
    say(log, format!("{} {before:?} {decision:?}", step.id()));
    Ok("DONE".into())
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
    let small = r#"Some(true) Some("SMALL")"#;
    let expected = [
        "a Some(true) None".to_owned(),
        format!("b {small}"),
        format!("c {small}"),
    ];
    assert_eq!(stage.log(), expected);
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
#[batchlet("DataPartition")]
fn data_partition(
    #[batch_property] log: &str,
    #[batch_context] job: &JobContext,
) -> Result<String, BatchError> {
    let count: Option<i64> = job.persistent_data("count")?;
    let set = job.set_persistent_data("count", &7).unwrap_err();
    let removed = job.remove_persistent_data("count").unwrap_err();
    assert_eq!(set.to_string(), removed.to_string());
    say(log, format!("{count:?} {set}"));
    Ok("DONE".into())
}

/// Spec: DATA-01
#[test]
fn partitions_read_data_and_cannot_change_it() {
    let elements = r#"<step id="one" next="two"><batchlet ref="DataKeeper"/></step>
        <step id="two"><batchlet ref="DataPartition"/><partition instances="2"/></step>"#;
    let (stage, execution) = started(elements, [("fail", "")]);
    let expected = "Some(1) cannot change the data `count`: a partition cannot change the data of the job; report to an analyzer, which can";
    assert_eq!(stage.log()[1..], [expected, expected]);
    assert!(data(&stage, execution).contains(&"count=1".to_owned()));
}

/// Tries names and values that are not possible.
#[batchlet("Misnamed")]
fn misnamed(#[batch_property] log: &str, #[batch_context] job: &JobContext) -> Result<String, BatchError> {
    for name in ["", "@class", "batch.x"] {
        say(log, job.set_persistent_data(name, &1).unwrap_err().to_string());
    }
    let (large, keys) = ("x".repeat(1_048_575), BTreeMap::from([((1, 2), 3)]));
    let large = job.set_persistent_data("large", &large).unwrap_err();
    let keys = job.set_persistent_data("keys", &keys).unwrap_err();
    say(log, large.to_string());
    say(log, keys.to_string());
    Ok("DONE".into())
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
#[batchlet("WithUserData")]
fn with_user_data(
    #[batch_property(value = "")] fail: &str,
    #[batch_context] step: &StepContext,
) -> Result<String, BatchError> {
    let batch = Batch {
        id: 7,
        files: vec!["a".into()],
        rate: 1.0,
        note: None,
    };
    step.set_persistent_user_data(&batch)?;
    match fail {
        "yes" => Err(BatchError::msg("as requested")),
        _ => Ok("DONE".into()),
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
        assert_contains(&problem, "expected names, separated by commas");
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
