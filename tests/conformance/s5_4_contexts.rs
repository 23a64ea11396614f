//! 5.4 and 6.8: the contexts of job and step.

use std::sync::{Arc, Barrier, Mutex, Weak};

use batch_runtime::prelude::*;
use batch_tests::stage::{Stage, say};
use insta::assert_snapshot;

use super::artifacts::{
    assert_contains, calls, first_step_execution, job, job_execution, listens, refused, restart_with,
    started, wrapped,
};
use super::parallel::partitioned;
use super::sequence::{flow, split};

/// Shows the available contexts and their values.
#[derive(BatchArtifact)]
struct Reporter {
    #[batch_property(name = "log")]
    log: String,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: Option<StepContext>,
    #[batch_context]
    flow: Option<FlowContext>,
    #[batch_context]
    split: Option<SplitContext>,
}

impl Reporter {
    fn show(&self, who: &str) -> Result<(), BatchError> {
        let step = self.step.as_ref().map(|step| {
            let properties = step.properties().clone();
            (
                step.id().to_owned(),
                step.batch_status(),
                step.exit_status(),
                properties,
            )
        });
        let job = &self.job;
        let of_job = (job.id(), job.batch_status(), job.exit_status(), job.properties());
        assert!(
            self.flow.is_none() && self.split.is_none(),
            "there is no flow and no split"
        );
        say(&self.log, format!("{who}: {of_job:?} {step:?}"));
        let name = format!("{}:{}:{}", job.id(), job.instance_id(), job.execution_id());
        assert_eq!(job.execution_name(), name);
        Ok(())
    }
}

listens!(job_listener Reporter.show:
    before_job "before job", before_step "before each step", after_step "after each step", after_job "after job");

#[step_listener]
impl Reporter {
    #[before_step]
    fn before(&mut self) -> Result<(), BatchError> {
        self.show("before step")
    }
    #[after_step]
    fn after(&mut self) -> Result<(), BatchError> {
        self.show("after step")
    }
}

#[batchlet]
impl Reporter {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        self.job.set_exit_status(Some("JOB"));
        if let Some(step) = &self.step {
            step.set_exit_status(Some("STEP"));
        }
        self.show("process")?;
        Ok("DONE".into())
    }
}

/// The step's context exists while the step does; statuses change during the run; properties have their effective
/// values.
///
/// Spec: CTX-01, CTX-02, CTX-03, CTX-05, CTX-06, CTX-07, CTX-12, CTX-13, CTX-14, CTX-16, CTX-17, CTX-20, CTX-21, CTX-26,
/// Spec: CTX-27, JSL-JOBPROP-03, JSL-STEPPROP-03, STATUS-04, ID-01, LISTEN-JOB-06
#[test]
fn contexts_describe_the_running_job_and_step() {
    let stage = Stage::new(&job(
        r#"<properties><property name="who" value="${user}"/><property name="user" value="xml"/></properties>
           <listener ref="Reporter"/>
           <step id="one"><properties><property name="user" value="inner"/><property name="file" value="${who}.txt"/></properties>
             <listener ref="Reporter"/><batchlet ref="Reporter"/></step>"#,
    ));
    stage.start("job", [("user", "ada")]);
    assert_snapshot!(wrapped(&stage.log()), @r#"
    before job: ("job", Started, None, {"user": "ada", "who": "ada"}) None
    before each step: ("job", Started, None, {"user": "ada", "who": "ada"}) Some(("one", Started, None, {"file": "ada.txt", "user": "ada"}))
    before step: ("job", Started, None, {"user": "ada", "who": "ada"}) Some(("one", Started, None, {"file": "ada.txt", "user": "ada"}))
    process: ("job", Started, Some("JOB"), {"user": "ada", "who": "ada"}) Some(("one", Started, Some("STEP"), {"file": "ada.txt", "user": "ada"}))
    after step: ("job", Started, Some("JOB"), {"user": "ada", "who": "ada"}) Some(("one", Completed, Some("STEP"), {"file": "ada.txt", "user": "ada"}))
    after each step: ("job", Started, Some("JOB"), {"user": "ada", "who": "ada"}) Some(("one", Completed, Some("STEP"), {"file": "ada.txt", "user": "ada"}))
    after job: ("job", Completed, Some("JOB"), {"user": "ada", "who": "ada"}) None
    "#);
}

/// Stores a note for the other artifacts.
#[derive(BatchArtifact)]
struct Notes {
    #[batch_property(name = "log")]
    log: String,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
}

impl Notes {
    fn note(&self, who: &str) -> Result<(), BatchError> {
        let at = format!("{who} in {}", self.step.id());
        let job = self.job.transient_user_data::<String>()?;
        let step = self.step.transient_user_data::<Arc<str>>()?;
        say(&self.log, format!("{at}: job {job:?}, step {step:?}"));
        self.job.set_transient_user_data(at);
        self.step.set_transient_user_data::<Arc<str>>(who.into());
        Ok(())
    }
}

listens!(step_listener Notes.note: before_step "listener");

#[batchlet]
impl Notes {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        self.note("batchlet")?;
        let other = self.job.transient_user_data::<u8>().unwrap_err();
        assert_contains(&other, "alloc::string::String");
        Ok("DONE".into())
    }
}

/// Transient data is shared by the artifacts of one context and ends with it; a restart starts without it.
///
/// Spec: CTX-06, CTX-07, CTX-15, CTX-22, RESTART-15
#[test]
fn transient_data_lives_as_long_as_its_context() {
    let elements = r#"<step id="one" next="two" allow-start-if-complete="true"><listener ref="Notes"/><batchlet ref="Notes"/></step>
           <step id="two" next="three"><batchlet ref="Notes"/></step><step id="three"><batchlet ref="Task"/></step>"#;
    let (stage, execution) = started(elements, [("fail", "process three"), ("job.exit", "HALF")]);
    let again = restart_with(&stage, execution, [("fail", ""), ("job.exit", "WHOLE")]);
    assert_snapshot!(calls(&stage, &["listener", "batchlet"]), @r#"
    listener in one: job None, step None
    batchlet in one: job Some("listener in one"), step Some("listener")
    batchlet in two: job Some("batchlet in one"), step None · listener in one: job None, step None
    batchlet in one: job Some("listener in one"), step Some("listener")
    "#);
    assert_eq!(job_execution(&stage, again).exit_status, "WHOLE");
}

/// The values that [`Keeps`] has stored in contexts.
static STORED: Mutex<Vec<Weak<str>>> = Mutex::new(Vec::new());

/// Logs the stored values that still exist, and stores one in each of its contexts.
#[batchlet("Keeps")]
fn keeps(
    #[batch_property] log: &str,
    #[batch_context] step: &StepContext,
    #[batch_context] flow: Option<FlowContext>,
) -> String {
    let mut stored = STORED.lock().unwrap();
    let exist: Vec<_> = stored.iter().filter_map(Weak::upgrade).collect();
    say(log, format!("at {}: {}", step.id(), exist.join(", ")).trim_end());
    let mut value = |text: String| -> Arc<str> {
        let value = text.into();
        stored.push(Arc::downgrade(&value));
        value
    };
    let of_step = value(format!("step {}", step.id()));
    step.set_transient_user_data(of_step);
    if let Some(flow) = &flow {
        flow.set_transient_user_data(value(format!("flow {}", flow.id())));
    }
    "DONE".into()
}

/// A value in the context of a step or flow is dropped when the next element ends; until then a decision may read it.
///
/// Spec: CTX-07, CTX-22
#[test]
fn transient_data_is_dropped_with_its_context() {
    let stage = Stage::new(&job(r#"<step id="one" next="all"><batchlet ref="Keeps"/></step>
           <flow id="all" next="three"><step id="two"><batchlet ref="Keeps"/></step></flow>
           <step id="three" next="four"><batchlet ref="Keeps"/></step>
           <step id="four"><batchlet ref="Keeps"/></step>"#));
    stage.start("job", ());
    assert_snapshot!(calls(&stage, &["at"]), @"at one: · at two: step one · at three: flow all · at four: step three");
}

/// The exit status of an earlier execution is not carried over.
///
/// Spec: RESTART-15, CTX-18
#[test]
fn a_restart_starts_without_an_exit_status() {
    let elements = r#"<step id="one" next="two"><batchlet ref="Reporter"/></step><step id="two"><batchlet ref="Task"/></step>"#;
    let (stage, execution) = started(elements, [("fail", "process two")]);
    let status = |execution| job_execution(&stage, execution).exit_status;
    assert_eq!(status(execution), "JOB");
    let again = restart_with(&stage, execution, [("fail", "")]);
    assert_eq!(status(again), "COMPLETED");
}

/// Keeps a diary in the persistent user data while it reads.
#[derive(BatchArtifact)]
struct Diary {
    #[batch_property(name = "log")]
    log: String,
    #[batch_property(name = "fail.at", value = "0")]
    fail_at: u64,
    #[batch_context]
    step: StepContext,
    last: u64,
}

#[item_reader]
impl Diary {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) -> Result<(), BatchError> {
        self.last = checkpoint.unwrap_or(0);
        let diary: Option<Vec<u64>> = self.step.persistent_user_data()?;
        say(&self.log, format!("open at {checkpoint:?} with {diary:?}"));
        Ok(())
    }
    #[read_item]
    fn read(&mut self) -> Result<Option<u64>, BatchError> {
        self.last += 1;
        let mut diary: Vec<u64> = self.step.persistent_user_data()?.unwrap_or_default();
        diary.push(self.last);
        self.step.set_persistent_user_data(&diary)?;
        if self.last == self.fail_at {
            return Err(BatchError::msg("the pen broke"));
        }
        Ok((self.last <= 5).then_some(self.last))
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.last
    }
}

/// Shows the persistent user data from the first callback on.
#[derive(BatchArtifact)]
struct ReadsDiary {
    #[batch_property(name = "log")]
    log: String,
    #[batch_context]
    step: StepContext,
}

#[step_listener]
impl ReadsDiary {
    #[before_step]
    fn before(&mut self) -> Result<(), BatchError> {
        let diary: Option<Vec<u64>> = self.step.persistent_user_data()?;
        say(&self.log, format!("before step with {diary:?}"));
        let wrong = self.step.persistent_user_data::<String>();
        if diary.is_some() {
            say(&self.log, wrong.unwrap_err().to_string());
        }
        Ok(())
    }
}

/// Persistent user data is saved with each checkpoint and rolled back with its interval; a restart has it from the
/// first callback on.
///
/// Spec: CHUNK-LOOP-11, CTX-23, CTX-24, CTX-25, RESTART-14, DOM-19, DOM-08, READ-09
#[test]
fn persistent_data_is_saved_with_each_checkpoint() {
    let elements = r#"<step id="one"><listener ref="ReadsDiary"/>
             <chunk reader="Diary" processor="Labels" writer="Lines" commit-interval="2"/></step>"#;
    let (stage, execution) = started(elements, [("fail.at", "4")]);
    let again = restart_with(&stage, execution, [("fail.at", "3")]);
    restart_with(&stage, again, [("fail.at", "0")]);
    assert_snapshot!(calls(&stage, &["before", "the user", "open at"]), @r"
    before step with None · open at None with None · before step with Some([1, 2])
    the user data is `[1,2]`, not the requested `alloc::string::String`
    open at Some(2) with Some([1, 2]) · before step with Some([1, 2])
    the user data is `[1,2]`, not the requested `alloc::string::String`
    open at Some(2) with Some([1, 2])
    ");
}

/// Shows exception and metrics before and after its step.
#[derive(BatchArtifact)]
struct Inspects {
    #[batch_property(name = "log")]
    log: String,
    #[batch_property(name = "fail.after")]
    fail_after: String,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
}

impl Inspects {
    fn show(&self, when: &str) -> Result<(), BatchError> {
        let metrics = self.step.metrics();
        let metrics = metrics
            .iter()
            .map(|metric| format!("{:?} {}", metric.name, metric.value));
        say(&self.log, format!("exception {:?}", self.step.exception()));
        say(&self.log, metrics.collect::<Vec<_>>().join(", "));
        let elapsed = self.job.metrics();
        assert!(elapsed.len() == 1 && elapsed[0].value >= 0, "{elapsed:?}");
        assert_eq!(format!("{:?}", elapsed[0].name), "ElapsedMillis");
        match when == "after" && !self.fail_after.is_empty() {
            true => Err(BatchError::msg(&self.fail_after)),
            false => Ok(()),
        }
    }
}

listens!(step_listener Inspects.show: before_step "before", after_step "after");

/// The metrics of the step are the counters of the repository, the rollback of the failure included.
///
/// Spec: CTX-19, CTX-29, CTX-30, CTX-40
#[test]
fn the_step_shows_its_exception_and_metrics() {
    let stage = Stage::new(&job(
        r#"<step id="one"><listener ref="Inspects"/><listener ref="Inspects"/>
             <chunk reader="Numbers" processor="Labels" writer="Lines" commit-interval="2"/></step>"#,
    ));
    let words = ["exception", "ReadCount"];
    let parameters = [("fail", "process 4"), ("items", "6"), ("filter.every", "2")];
    let execution = stage.start("job", parameters);
    assert_snapshot!(calls(&stage, &words), @r"
    exception None
    ReadCount 0, WriteCount 0, FilterCount 0, CommitCount 0, RollbackCount 0, ReadSkipCount 0, ProcessSkipCount 0, WriteSkipCount 0
    exception None
    ReadCount 0, WriteCount 0, FilterCount 0, CommitCount 0, RollbackCount 0, ReadSkipCount 0, ProcessSkipCount 0, WriteSkipCount 0
    exception Some(cannot process 4)
    ReadCount 2, WriteCount 1, FilterCount 1, CommitCount 1, RollbackCount 1, ReadSkipCount 0, ProcessSkipCount 0, WriteSkipCount 0
    exception Some(cannot process 4)
    ReadCount 2, WriteCount 1, FilterCount 1, CommitCount 1, RollbackCount 1, ReadSkipCount 0, ProcessSkipCount 0, WriteSkipCount 0
    ");
    let counters = first_step_execution(&stage, execution).counters;
    assert_eq!(
        (counters.reads, counters.rollbacks),
        (2, 1),
        "as the last line says"
    );
    // The second listener sees the error of the first.
    stage.start("job", [("fail.after", "too late")]);
    assert_snapshot!(calls(&stage, &words), @r"
    exception None
    ReadCount 0, WriteCount 0, FilterCount 0, CommitCount 0, RollbackCount 0, ReadSkipCount 0, ProcessSkipCount 0, WriteSkipCount 0
    exception None
    ReadCount 0, WriteCount 0, FilterCount 0, CommitCount 0, RollbackCount 0, ReadSkipCount 0, ProcessSkipCount 0, WriteSkipCount 0
    exception None
    ReadCount 5, WriteCount 5, FilterCount 0, CommitCount 3, RollbackCount 0, ReadSkipCount 0, ProcessSkipCount 0, WriteSkipCount 0
    exception Some(too late)
    ReadCount 5, WriteCount 5, FilterCount 0, CommitCount 3, RollbackCount 0, ReadSkipCount 0, ProcessSkipCount 0, WriteSkipCount 0
    ");
}

/// Requires a step context outside of steps.
#[derive(BatchArtifact)]
struct NeedsStep {
    #[batch_context]
    step: StepContext,
}

#[job_listener]
impl NeedsStep {
    #[before_job]
    fn before(&mut self) {
        assert_eq!(self.step.id(), "", "never called");
    }
}

/// Requires a flow context outside of flows.
#[batchlet("NeedsFlow")]
fn needs_flow(#[batch_context] flow: &FlowContext) -> String {
    flow.id().into()
}

/// A context field that can never be in scope is reported before the job starts.
///
/// Spec: CTX-05, CTX-12
#[test]
fn a_context_that_is_never_in_scope_is_rejected() {
    let stage = Stage::new(&job(
        r#"<listener ref="NeedsStep"/><step id="one"><batchlet ref="NeedsFlow"/></step>"#,
    ));
    assert_snapshot!(refused(&stage, "job", ()), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0007]: no `StepContext` is in scope when `NeedsStep` is created
     --> jobs/job.xml:2:16
      |
    2 | <listener ref="NeedsStep"/><step id="one"><batchlet ref="NeedsFlow"/></step>
      |                ^^^^^^^^^ field `step` requires one
      = help: name it in a step, or make the field an `Option<StepContext>` (tests/conformance/s5_4_contexts.rs)

    error[ART0007]: no `FlowContext` is in scope when `NeedsFlow` is created
     --> jobs/job.xml:2:58
      |
    2 | <listener ref="NeedsStep"/><step id="one"><batchlet ref="NeedsFlow"/></step>
      |                                                          ^^^^^^^^^ field `flow` requires one
      = help: name it in a flow, or make the field an `Option<FlowContext>` (tests/conformance/s5_4_contexts.rs)
    "#);
}

/// Waits for its own job, and stops it.
#[batchlet("Impatient")]
fn impatient(#[batch_context] job: &JobContext) -> Result<String, BatchError> {
    let operator = job.job_operator().unwrap();
    let own = operator.wait(job.execution_id())?;
    let has_stopped = operator.stop(own.id)?;
    Ok(format!("{} {has_stopped}", own.status))
}

/// An artifact that waits for its own job, or stops it, gets an answer at once, on every thread of the job.
///
/// Spec: OP-37, D-60
#[test]
fn an_artifact_does_not_wait_for_its_own_job() {
    let alone = r#"<step id="one"><batchlet ref="Impatient"/></step>"#;
    let parts = partitioned("one", "", "Impatient", "instances=\"1\"");
    let silent = r#"<step id="two"><batchlet ref="Silent"/></step>"#;
    let both = split(
        "both",
        "",
        &(flow("left", "", alone) + &flow("right", "", silent)),
    );
    for (elements, step) in [(alone, "one"), (&parts, "one:1"), (&both, "one")] {
        let (stage, execution) = started(elements, ());
        assert_contains(
            &stage.tree(execution),
            &format!("step {step} STOPPED STARTED false"),
        );
    }
}

/// Describes its end, and may fail.
#[batchlet("Described")]
fn described(#[batch_property] fails: bool, #[batch_context] step: &StepContext) -> Result<(), BatchError> {
    for (topic, line) in [("z", "last"), ("a", "not yet"), ("a", "first")] {
        step.set_exit_description(topic, line);
    }
    match fails {
        true => Err(BatchError::msg("out of paper")),
        false => Ok(()),
    }
}

/// The exit description has the lines of each topic, or the error of a step that fails.
///
/// Spec: LOSS-07
#[test]
fn a_step_describes_its_end() {
    for (fails, message) in [(false, "first\nlast"), (true, "out of paper")] {
        let elements = format!(
            r#"<step id="one"><batchlet ref="Described"><properties><property name="fails" value="{fails}"/></properties></batchlet></step>"#
        );
        let (stage, execution) = started(&elements, ());
        let step = first_step_execution(&stage, execution);
        assert_eq!(step.exit_message.split("\nthrown by").next(), Some(message));
    }
}

static APART: Barrier = Barrier::new(3);

/// Sets its contexts, waits for the other threads, which set theirs, and shows its own.
#[batchlet("Apart")]
fn apart(
    #[batch_property(name = "log")] log: &str,
    #[batch_context] step: &StepContext,
    #[batch_context] flow: &FlowContext,
) -> Result<String, BatchError> {
    let name = step.id().to_owned();
    step.set_transient_user_data(name.clone());
    step.set_exit_status(Some(&*format!("exit of {name}")));
    flow.set_transient_user_data(format!("flow of {name}"));
    APART.wait();
    let of_step = step.transient_user_data::<String>()?;
    let of_flow = flow.transient_user_data::<String>()?;
    say(
        log,
        format!(
            "{name}: {of_step:?}, {:?}, {} {of_flow:?}",
            step.exit_status(),
            flow.id()
        ),
    );
    APART.wait();
    Ok(name)
}

/// At the same time on three threads: each artifact sees the contexts of its own thread, and changes no other.
///
/// Spec: CTX-04
#[test]
fn a_context_is_visible_on_its_thread_only() {
    let flows = ["a", "b", "c"].map(|name| {
        let step = format!(r#"<step id="{name}"><batchlet ref="Apart"/></step>"#);
        flow(&format!("flow-{name}"), "", &step)
    });
    let (stage, execution) = started(&split("all", "", &flows.concat()), ());
    let mut log = stage.log();
    log.sort();
    assert_snapshot!(log.join("\n"), @r#"
    a: Some("a"), Some("exit of a"), flow-a Some("flow of a")
    b: Some("b"), Some("exit of b"), flow-b Some("flow of b")
    c: Some("c"), Some("exit of c"), flow-c Some("flow of c")
    "#);
    for step in ["a", "b", "c"] {
        let recorded = stage.tree(execution);
        assert_contains(&recorded, &format!("step {step} COMPLETED exit of {step}"));
    }
}
