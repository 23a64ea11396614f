//! Artifacts around partitions and splits, and helpers that write partitioned steps.

use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use batch_tests::stage::{Stage, said, say};

use crate::artifacts::{CallLog, Gate, listens, tree, wrapped};

/// A batchlet step in partitions.
pub(crate) fn partitioned(id: &str, attributes: &str, batchlet: &str, partition: &str) -> String {
    format!(
        "<step id=\"{id}\" {attributes}>\n  <batchlet ref=\"{batchlet}\"/>\n  {}\n</step>\n",
        partition_of(partition)
    )
}

/// Returns a partitioned element. `partition` holds its attributes, then `|`, then its content.
pub(crate) fn partition_of(partition: &str) -> String {
    let (attributes, content) = partition.split_once('|').unwrap_or((partition, ""));
    format!("<partition {attributes}>{content}</partition>")
}

/// Returns a list of properties, from text like `name.1=a; name.2=b`.
pub(crate) fn properties(all: &str) -> String {
    let all = all.split("; ").filter_map(|property| property.split_once('='));
    let all: String = all
        .map(|(name, value)| format!("<property name=\"{name}\" value=\"{value}\"/>"))
        .collect();
    format!("<properties>{all}</properties>")
}

/// Returns a step `all` of `Part` in these partitions, which run one after the other.
pub(crate) fn in_turn(partition: &str) -> String {
    ONE_THREAD.to_owned() + &partitioned("all", "", "Part", partition)
}

/// The partitions `a` and `b`.
pub(crate) const A_AND_B: &str = r#"instances="2"|<properties><property name="name.1" value="a"/><property name="name.2" value="b"/></properties>"#;

/// Returns the property that makes the partitions of a step or job run one after the other.
pub(crate) const ONE_THREAD: &str =
    r#"<properties><property name="batch.partition.threads" value="1"/></properties>"#;

/// Returns the log of the partition named `name`.
pub(crate) fn log_of(stage: &Stage, name: &str) -> String {
    wrapped(&said(&format!("{}/{name}", stage.log_name())))
}

/// Returns the log of several threads, sorted.
pub(crate) fn sorted(stage: &Stage) -> String {
    let mut log = stage.log();
    log.sort();
    wrapped(&log)
}

/// Returns the tree of an execution whose steps started in any order.
pub(crate) fn sorted_tree(stage: &Stage, execution: batch_runtime::JobExecutionId) -> String {
    let tree = tree(stage, execution);
    let mut parts = tree.split("  step ");
    let job = parts.next().unwrap_or_default().to_owned();
    let mut steps: Vec<&str> = parts.collect();
    steps.sort_unstable();
    steps
        .iter()
        .fold(job, |text, step| format!("{text}  step {step}"))
}

/// Records its calls, and the contexts of its partition.
#[derive(BatchArtifact)]
struct Part {
    #[batch_artifact]
    log: CallLog,
    #[batch_property(value = "nameless")]
    name: String,
    /// `contexts` to record and change the contexts.
    #[batch_property]
    look: String,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
}

#[batchlet]
impl Part {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        if self.look == "contexts" {
            let seen = self.job.transient_user_data::<String>()?.is_some();
            let kept = self.step.persistent_user_data::<String>()?;
            self.log.say(format!(
                "{} in job {} {}, step {} {}; transient {seen}, job exit {:?}, kept {kept:?}",
                self.name,
                self.job.id(),
                self.job.batch_status(),
                self.step.id(),
                self.step.batch_status(),
                self.job.exit_status(),
            ));
            self.job.set_transient_user_data(self.name.clone());
            self.job.set_exit_status(Some(&self.name));
            self.step.set_persistent_user_data(&format!("by {}", self.name))?;
        }
        self.log.record(format!("process {}", self.name))?;
        Ok(format!("{} DONE", self.name))
    }

    #[cancel]
    fn cancel(&self) {
        self.log.say(format!("cancel {}", self.name));
    }
}

/// Plans one partition for each name of `parts`.
#[partition_algorithm("Planner")]
fn planner(
    #[batch_artifact] log: &CallLog,
    #[batch_property] parts: &[String],
    // A number of partitions other than the number of parts.
    #[batch_property] count: Option<i32>,
    // True if the partitions get no properties.
    #[batch_property(value = "false")] bare: bool,
) -> Result<PartitionPlan, BatchError> {
    log.record("plan")?;
    let mut plan = PartitionPlan::with_properties(parts.iter().map(|part| [("name", part)]));
    if let Some(count) = count {
        plan.set_sub_job_count(count);
    }
    if bare {
        plan.set_sub_job_properties(None);
    }
    Ok(plan)
}

/// Records its calls, with all four methods.
#[derive(BatchArtifact)]
struct Unit {
    #[batch_artifact]
    log: CallLog,
    calls: usize,
    thread: Option<std::thread::ThreadId>,
}

impl Unit {
    /// Records an error unless there is one instance on one thread.
    fn record(&mut self, call: &str) -> Result<(), BatchError> {
        let here = std::thread::current().id();
        if *self.thread.get_or_insert(here) != here {
            self.log.say("on another thread");
        }
        self.calls += 1;
        self.log.record(format!("tx {call}"))
    }
}

#[logical_tx]
impl Unit {
    #[logical_tx_begin]
    fn begin(&mut self) -> Result<(), BatchError> {
        self.record("begin")
    }
    #[logical_tx_before_completion]
    fn before(&mut self) -> Result<(), BatchError> {
        self.record("before completion")
    }
    #[logical_tx_rollback]
    fn rollback(&mut self) -> Result<(), BatchError> {
        self.record("rollback")
    }
    #[logical_tx_after_completion]
    fn after(&mut self, status: &str) -> Result<(), BatchError> {
        let calls = self.calls;
        self.record(&format!("after {calls} calls {status}"))
    }
}

/// Rolls back nothing.
#[derive(BatchArtifact)]
struct Notice {
    #[batch_property]
    log: String,
}

#[logical_tx]
impl Notice {
    #[logical_tx_after_completion]
    fn after(&mut self, status: &str) {
        say(&self.log, format!("notice {status}"));
    }
}

/// Sends its name, and the number of calls of this instance.
#[derive(BatchArtifact)]
struct Send {
    #[batch_artifact]
    log: CallLog,
    #[batch_property(value = "nameless")]
    name: String,
    /// `nothing` to send nothing.
    #[batch_property]
    sends: String,
    #[batch_context]
    step: Option<StepContext>,
    times: u32,
}

#[sub_job_collector]
impl Send {
    #[collect_sub_job_data]
    fn collect(&mut self) -> Result<Option<String>, BatchError> {
        self.times += 1;
        let step = self.step.as_ref().map_or("no step", StepContext::id);
        let commits = self.step.as_ref().map_or(0, |step| step.metrics().len());
        assert!(
            self.step.is_none() || commits > 0,
            "the contexts are those of the step"
        );
        let call = format!("collect {} {} at {step}", self.name, self.times);
        self.log.record(&call)?;
        let data = format!("{} {} at {step}", self.name, self.times);
        Ok((self.sends != "nothing").then_some(data))
    }
}

/// Records its input, and sets the exit status of the enclosing element to all payloads received.
#[derive(BatchArtifact)]
struct Receive {
    #[batch_artifact]
    log: CallLog,
    #[batch_property(value = "false")]
    sets: bool,
    #[batch_context]
    step: Option<StepContext>,
    #[batch_context]
    flow: Option<FlowContext>,
    #[batch_context]
    split: Option<SplitContext>,
    received: u32,
    thread: Option<std::thread::ThreadId>,
}

impl Receive {
    fn record(&mut self, call: &str) -> Result<(), BatchError> {
        let here = std::thread::current().id();
        if *self.thread.get_or_insert(here) != here {
            self.log.say("analyzed on another thread");
        }
        self.received += 1;
        if self.sets {
            let status = format!("RECEIVED {}", self.received);
            let element = match (&self.step, &self.flow, &self.split) {
                (Some(step), ..) => {
                    step.set_exit_status(Some(&status));
                    step.batch_status()
                }
                (None, Some(flow), _) => {
                    flow.set_exit_status(Some(&status));
                    flow.batch_status()
                }
                (None, None, Some(split)) => {
                    split.set_exit_status(Some(&status));
                    split.batch_status()
                }
                (None, None, None) => BatchStatus::Unknown,
            };
            if element != BatchStatus::Started {
                self.log.say(format!("analyzed while {element}"));
            }
        }
        self.log.record(call)
    }
}

#[sub_job_analyzer]
impl Receive {
    #[analyze_collector_data]
    fn data(&mut self, data: String) -> Result<(), BatchError> {
        self.record(&format!("data {data}"))
    }
    #[analyze_exit_status]
    fn status(&mut self, exit_status: &str) -> Result<(), BatchError> {
        self.record(&format!("status {exit_status}"))
    }
}

/// Listens to the step, and to the reader.
#[derive(BatchArtifact)]
struct NamedListener {
    #[batch_property]
    log: String,
    #[batch_property(value = "nameless")]
    name: String,
    #[batch_context]
    step: Option<StepContext>,
}

impl NamedListener {
    fn say(&self, call: &str) -> Result<(), BatchError> {
        let step = self.step.as_ref().map_or("no step", StepContext::id);
        say(&self.log, format!("{} {call} {step}", self.name));
        Ok(())
    }
}

listens!(step_listener NamedListener.say: before_step "before", after_step "after");

#[item_read_listener]
impl NamedListener {
    #[after_read]
    fn read(&mut self, item: &u64) -> Result<(), BatchError> {
        self.say(&format!("read {item}"))
    }
}

/// Records each new maximum of concurrent threads; three threads wait for each other to reach it.
#[batchlet("Crowd")]
fn crowd(
    #[batch_property] log: &str,
    #[batch_property] folder: &str,
    #[batch_property] name: &str,
) -> String {
    let (now, most) = Gate::of(folder).crowd(1);
    if most {
        say(log, format!("{now} at the same time"));
    }
    let gate = Gate::of(folder);
    if now == 3 {
        gate.open("three");
        // A fourth thread would have time to arrive.
        for _ in 0..20_000 {
            std::thread::yield_now();
        }
    }
    gate.pass("three");
    assert!(!name.is_empty());
    gate.crowd(-1);
    String::from("DONE")
}

/// Receives numbers.
#[derive(BatchArtifact)]
struct Count;

#[sub_job_analyzer]
impl Count {
    #[analyze_collector_data]
    fn data(&mut self, _: u64) {}
}

/// Records its name before each call.
#[derive(BatchArtifact)]
struct Named {
    #[batch_property]
    log: String,
    #[batch_property]
    name: String,
}

impl Named {
    fn say(&self, call: &str) -> Result<(), BatchError> {
        say(&self.log, format!("{} {call}", self.name));
        Ok(())
    }
}

listens!(logical_tx Named.say: logical_tx_begin "begin", logical_tx_rollback "rollback");

/// Receives nothing, and panics when it is dropped.
#[derive(BatchArtifact)]
struct DropsBadly;

impl Drop for DropsBadly {
    fn drop(&mut self) {
        panic!("dropped badly");
    }
}

#[sub_job_analyzer]
impl DropsBadly {
    #[analyze_exit_status]
    fn status(&mut self, _: &str) {}
}
