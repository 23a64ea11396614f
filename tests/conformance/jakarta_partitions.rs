//! Partitions in the dialect of Jakarta Batch: the plan of a restart, collectors and reducers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobExecutionId, JobOperator, JobParameters, PartitionPlan};
use batch_testing::{JobRun, JobTest, WrittenItems};

use crate::artifacts::assert_contains;

/// Plans the number of partitions in its property. The one with the number `fails`, from 0, gets a wrong property.
#[partition_algorithm("PlanParts")]
fn plan_parts(
    #[batch_property] parts: u32,
    #[batch_property(value = "99")] fails: u32,
    #[batch_property(name = "override", value = "false")] replaces: bool,
    #[batch_property] threads: Option<u32>,
) -> PartitionPlan {
    let properties = (0..parts).map(|part| {
        let file = if part == fails { "wrong" } else { "right" };
        [("file", file.to_owned()), ("of", parts.to_string())]
    });
    let mut plan = PartitionPlan::with_properties(properties);
    plan.set_partitions_override(replaces);
    plan.set_threads(threads);
    plan
}

/// Fails for a wrong file.
#[batchlet("LoadFile")]
fn load_file(
    #[batch_property(value = "right")] file: &str,
    #[batch_property(value = "?")] of: &str,
) -> Result<String, BatchError> {
    match file {
        "right" => Ok(format!("ONE OF {of}")),
        file => Err(BatchError::msg(format!("no file `{file}`"))),
    }
}

#[sub_job_collector("CollectOne")]
fn collect_one() -> Option<u32> {
    Some(1)
}

/// Sets the exit status of the step to the number of payloads.
#[derive(BatchArtifact)]
struct CountPayloads {
    #[batch_context]
    step: StepContext,
    payloads: u32,
}

#[sub_job_analyzer("CountPayloads")]
impl CountPayloads {
    #[analyze_collector_data]
    fn add(&mut self, data: u32) {
        self.payloads += data;
        let payloads = format!("{} PAYLOADS", self.payloads);
        self.step.set_exit_status(Some(&payloads));
    }
}

/// Sets the exit status of the step to the statuses of its partitions.
#[derive(BatchArtifact)]
struct ListStatuses {
    #[batch_context]
    step: StepContext,
    statuses: Vec<String>,
}

#[sub_job_analyzer("ListStatuses")]
impl ListStatuses {
    #[analyze_exit_status]
    fn ended(&mut self, batch_status: BatchStatus, exit_status: &str) {
        self.statuses.push(format!("{batch_status} {exit_status}"));
        self.statuses.sort();
        self.step.set_exit_status(Some(&self.statuses.join(", ")));
    }
}

/// A reducer that has a method for the rollback.
#[derive(BatchArtifact)]
struct Reducer;

#[logical_tx("Reducer")]
impl Reducer {
    #[logical_tx_rollback]
    fn rollback(&mut self) {}
}

fn job(step: &str) -> (tempfile::TempDir, JobTest) {
    in_namespace("xmlns='https://jakarta.ee/xml/ns/jakartaee'", step)
}

fn in_namespace(namespace: &str, step: &str) -> (tempfile::TempDir, JobTest) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("job.xml");
    let text = format!("<job id='j' {namespace}><step id='s'>{step}</step></job>");
    std::fs::write(&file, text).unwrap();
    (folder, JobTest::new(file))
}

/// Returns the partitions that have run, in order, with their exit statuses.
fn partitions(run: &JobRun) -> Vec<String> {
    let parts = run.steps().iter().filter(|step| step.step_name.contains(':'));
    let mut parts: Vec<_> = parts
        .map(|step| format!("{} {}", step.step_name, step.exit_status))
        .collect();
    parts.sort();
    parts
}

fn property(name: &str, expression: &str) -> String {
    format!("<property name='{name}' value=\"{expression}\"/>")
}

/// A batchlet whose partitions the mapper plans.
fn mapped(more: &str) -> (tempfile::TempDir, JobTest) {
    let own: String = ["file", "of"]
        .map(|name| property(name, &format!("#{{partitionPlan['{name}']}}")))
        .concat();
    let of_mapper: String = [
        property("parts", "#{jobParameters['parts']}"),
        property("fails", "#{jobParameters['fails']}?:99;"),
        property("override", "#{jobParameters['override']}?:false;"),
    ]
    .concat();
    job(&format!(
        "<batchlet ref='LoadFile'><properties>{own}</properties></batchlet>
         <partition><mapper ref='PlanParts'><properties>{of_mapper}</properties></mapper>{more}</partition>"
    ))
}

/// A job of three partitions whose second one has failed, and its last execution.
struct Restarts {
    _folder: tempfile::TempDir,
    job: JobTest,
    last: JobRun,
}

impl Restarts {
    /// Runs the job, with more elements in its partition.
    fn of(more: &str) -> Self {
        let (_folder, job) = mapped(more);
        let job = job.parameter("parts", 3).parameter("fails", 1);
        let last = job.launch();
        last.assert_failed("no file `wrong`");
        Self { _folder, job, last }
    }

    /// Restarts the last execution with parameters such as `parts=7 fails=5`.
    fn restart(&mut self, parameters: &str) -> &JobRun {
        let parameters = parameters.split(' ').filter_map(|one| one.split_once('='));
        let parameters: JobParameters = parameters.collect();
        self.last = self.job.restart(&self.last, parameters);
        &self.last
    }

    /// A restart that fails with this message.
    #[track_caller]
    fn fails(mut self, parameters: &str, message: &str) -> Self {
        self.restart(parameters).assert_failed(message);
        self
    }

    /// A restart that completes, with these partitions.
    #[track_caller]
    fn completes(mut self, parameters: &str, partitions: &str) -> Self {
        self.restart(parameters).assert_completed();
        self.ran(partitions)
    }

    /// The last execution has run these partitions.
    #[track_caller]
    fn ran(self, expected: &str) -> Self {
        assert_eq!(partitions(&self.last).join(", "), expected, "{}", self.last);
        self
    }
}

/// The number of partitions is remembered; their properties come from the new plan. With `all` the whole plan is new; another value is
/// rejected. Complete partitions do not run again, also after a rollback.
///
/// Spec: D-50, JAK-32, JAK-33
#[test]
fn a_restart_plans_the_properties_again() {
    let replan = "parts=7 fails=5 batch.partition.replan=properties";
    Restarts::of("").completes(replan, "s:2 ONE OF 7");
    let all = "s:1 ONE OF 3, s:2 ONE OF 3, s:3 ONE OF 3";
    Restarts::of("").completes("fails=99 batch.partition.replan=all", all);
    // Also after a rollback, complete partitions do not run again.
    Restarts::of("<reducer ref='Reducer'/>").completes("fails=99", "s:2 ONE OF 3");
    let (_folder, job) = mapped("");
    let job = job
        .parameter("parts", 3)
        .parameter("batch.partition.replan", "maybe");
    assert_contains(&job.launch_fails(), "expected `no`, `properties` or `all`");
}

/// A complete partition is passed over, so its new properties would never be processed: of a mapper that lists a folder, one file would be
/// loaded twice, and another one never.
///
/// Spec: D-101, JAK-32
#[test]
fn a_complete_partition_does_not_get_other_properties() {
    Restarts::of("")
        .fails(
            "parts=7 fails=5",
            "partition 1 of `s` is complete, but the new plan",
        )
        .fails("parts=7 fails=5", "(`of` was \"3\", and is \"7\" now)")
        .completes(
            "batch.partition.replan=all fails=5",
            "s:1 ONE OF 3, s:2 ONE OF 3, s:3 ONE OF 3",
        );
}

/// A plan with too few properties for the existing partitions is an error with a remedy. All partitions of a plan that replaces them start
/// anew, also those that were complete; the restart of a restart knows the new ones.
///
/// Spec: JAK-32
#[test]
fn a_plan_may_replace_the_partitions() {
    Restarts::of("")
        .fails(
            "parts=2 fails=99",
            "call `set_partitions_override(true)` to discard their work",
        )
        .completes("parts=2 fails=99 override=true", "s:1 ONE OF 2, s:2 ONE OF 2");
    Restarts::of("")
        .fails("override=true fails=2", "no file `wrong`")
        .ran("s:1 ONE OF 3, s:2 ONE OF 3, s:3 FAILED")
        .completes("override=false fails=99", "s:3 ONE OF 3");
}

/// The number of partitions in the document is remembered, too.
///
/// Spec: JAK-32
#[test]
fn the_number_of_a_plan_is_remembered() {
    let (_folder, job) = job(
        "<batchlet ref='LoadFile'><properties><property name='file' value=\"#{partitionPlan['file']}?:right;\"/></properties></batchlet>
         <partition><plan partitions=\"#{jobParameters['parts']}\">
           <properties partition='0'><property name='file' value=\"#{jobParameters['file']}?:right;\"/></properties>
         </plan></partition>",
    );
    let job = job.parameter("parts", 2).parameter("file", "wrong");
    let first = job.launch();
    first.assert_failed("no file `wrong`");
    let again = job.restart(&first, [("parts", "5"), ("file", "right")]);
    again.assert_completed();
    assert_eq!(partitions(&again), ["s:1 ONE OF ?"]);
}

/// A failed partition stops no other one, even if it has not started.
///
/// Spec: JAK-25, JAK-32
#[test]
fn the_other_partitions_run_to_their_end() {
    let (_folder, job) = mapped("");
    let job = job.parameter("batch.partition.threads", 1);
    let run = job.parameter("parts", 3).parameter("fails", 0).launch();
    run.assert_failed("no file `wrong`");
    assert_eq!(partitions(&run), ["s:1 FAILED", "s:2 ONE OF 3", "s:3 ONE OF 3"]);
}

/// The collector of a batchlet is called even if the batchlet fails.
///
/// Spec: SUBJOB-16, JAK-34
#[test]
fn the_collector_is_called_for_a_failed_batchlet() {
    let (_folder, job) = mapped("<collector ref='CollectOne'/><analyzer ref='CountPayloads'/>");
    let run = job.parameter("parts", 3).parameter("fails", 1).launch();
    run.step("s")
        .assert_status(BatchStatus::Failed)
        .assert_exit_status("3 PAYLOADS");
}

/// After each checkpoint: in the draft once more at the end of the step.
///
/// Spec: SUBJOB-03, D-45, JAK-34
#[test]
fn the_collector_is_called_after_each_checkpoint() {
    let subjobs = "<collector ref='CollectOne'/><analyzer ref='CountPayloads'/>";
    let (jakarta, job) = job(&format!(
        "<chunk><reader ref='Thirty'/><writer ref='Table'/></chunk><partition><plan/>{subjobs}</partition>"
    ));
    let (draft, of_draft) = in_namespace(
        "",
        &format!("<chunk reader='Thirty' processor='Same' writer='Table'/><partition>{subjobs}</partition>"),
    );
    let of_draft = of_draft.processor("Same", |item: &u64| Ok::<_, BatchError>(Some(*item)));
    for (_folder, job, payloads) in [(jakarta, job, "4 PAYLOADS"), (draft, of_draft, "5 PAYLOADS")] {
        let job = job.writer("Table", &WrittenItems::<u64>::new());
        let run = job.reader("Thirty", 0..30_u64).launch();
        run.assert_completed().step("s").assert_exit_status(payloads);
    }
}

/// The draft keeps the plan; its failure names the property that makes a new one.
///
/// Spec: D-50
#[test]
fn the_draft_makes_a_new_plan_on_request() {
    let (_folder, job) = in_namespace(
        "",
        "<properties><property name='fails' value='${fails}'/><property name='parts' value='3'/></properties>
         <batchlet ref='LoadFile'/><partition><algorithm ref='PlanParts'/></partition>",
    );
    let job = job.parameter("fails", 1);
    let first = job.launch();
    first.assert_failed("no file `wrong`");
    let again = job.restart(&first, [("fails", "99")]);
    again.assert_failed(
        "if these are the cause, restart with `batch.partition.replan=properties` to plan them again",
    );
    let last = job.restart(
        &again,
        [("fails", "99"), ("batch.partition.replan", "properties")],
    );
    last.assert_completed();
    // The third one was stopped, unless it was complete before that.
    assert!(
        partitions(&last).iter().any(|part| part.starts_with("s:2 ")),
        "{last}"
    );
}

/// Whichever flow ends first.
///
/// Spec: SPLIT-19, D-31
#[test]
fn the_last_flow_of_the_document_sets_the_exit_status_of_a_split() {
    let flow = |id: &str| format!("<flow id='{id}'><step id='in-{id}'><batchlet ref='{id}'/></step></flow>");
    let text = format!(
        "<job id='j'><split id='both' next='seen'>{}{}</split>
           <decision id='seen' decider='ExitOfSplit'><end on='*'/></decision></job>",
        flow("one"),
        flow("two")
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("job.xml");
    std::fs::write(&file, text).unwrap();
    for last in ["one", "two"] {
        let operator: Arc<OnceLock<JobOperator>> = Arc::default();
        let task = |name: &'static str| {
            let operator = Arc::clone(&operator);
            move || {
                let is_complete = |operator: &JobOperator| {
                    let steps = operator.step_executions(JobExecutionId(1)).unwrap();
                    steps.iter().any(|step| step.status == BatchStatus::Completed)
                };
                while name == last && !operator.get().is_some_and(is_complete) {
                    std::thread::yield_now();
                }
                Ok::<_, BatchError>(format!("EXIT {name}"))
            }
        };
        let job = JobTest::new(&file).batchlet("one", task("one"));
        let job = job.batchlet("two", task("two"));
        operator.set(job.operator()).ok().unwrap();
        job.launch().assert_completed().assert_exit_status("EXIT two");
    }
}

#[decider("ExitOfSplit")]
fn exit_of_split(#[batch_context] split: Option<SplitContext>) -> String {
    let split = split.as_ref().and_then(SplitContext::exit_status);
    split.unwrap_or_else(|| "NO SPLIT".into())
}

/// Spec: JAK-34
#[test]
fn the_analyzer_gets_the_partitions_of_this_execution() {
    let (_folder, job) = mapped("<analyzer ref='ListStatuses'/>");
    let job = job.parameter("parts", 3).parameter("fails", 1);
    let first = job.launch();
    let statuses = "COMPLETED ONE OF 3, COMPLETED ONE OF 3, FAILED FAILED";
    first.step("s").assert_exit_status(statuses);
    let again = job.restart(&first, [("fails", "99")]);
    again.step("s").assert_exit_status("COMPLETED ONE OF 3");
    let rows = again
        .steps()
        .iter()
        .map(|step| (&*step.step_name, step.is_of_partition()));
    assert!(rows.eq([("s", false), ("s:2", true)]), "{again}");
}

/// Plans a partition for each of the files, as a mapper that lists a folder does; without files two partitions without properties.
#[partition_algorithm("PlanFiles")]
fn plan_files(#[batch_property] files: &str) -> PartitionPlan {
    if files.is_empty() {
        return PartitionPlan::new(2);
    }
    PartitionPlan::with_properties(files.split(',').map(|file| [("file", file)]))
}

/// A chunk of 30 numbers in a partition for each of the files `east` and `north`, whose processor fails once, at this item.
fn failing_once_at(item: u64) -> (tempfile::TempDir, JobTest, WrittenItems<u64>) {
    let files = property("files", "#{jobParameters['files']}");
    let (folder, job) = job(&format!(
        "<chunk><reader ref='Thirty'/><processor ref='Check'/><writer ref='Table'/></chunk>
         <partition><mapper ref='PlanFiles'><properties>{files}</properties></mapper></partition>"
    ));
    let (table, failures) = (WrittenItems::new(), AtomicU64::new(0));
    // It fails in both partitions of the first execution.
    let check = move |read: &u64| match *read == item && failures.fetch_add(1, Ordering::SeqCst) < 2 {
        true => Err(BatchError::msg(format!("broken at {item}"))),
        false => Ok(Some(*read)),
    };
    let job = job.reader("Thirty", 0..30_u64).processor("Check", check);
    (
        folder,
        job.writer("Table", &table).parameter("files", "east,north"),
        table,
    )
}

/// A partition that has processed records of one file must not continue with another one.
///
/// Spec: D-101, JAK-32
#[test]
fn a_checkpoint_is_not_used_for_other_properties() {
    let (_folder, job, table) = failing_once_at(25);
    let mut last = job.launch();
    last.assert_failed("broken at 25");
    // The rejected plan is not stored, so a second restart is rejected too.
    for _ in 0..2 {
        last = job.restart(&last, [("files", "east,middle,north")]);
        last.assert_failed("(`file` was \"north\", and is \"middle\" now)");
        last.assert_failed("`-batch.partition.replan=no` to run the earlier plan");
    }
    last = job.restart(&last, [("files", "")]);
    last.assert_failed("(`file` was \"east\", and is none now)");
    last = job.restart(
        &last,
        [("files", "east,middle,north"), ("batch.partition.replan", "no")],
    );
    last.assert_completed();
    assert_eq!(partitions(&last), ["s:1 COMPLETED", "s:2 COMPLETED"]);
    assert_eq!(table.items().len(), 60);
}

/// Where nothing is committed, or the properties are the same, the new plan applies.
///
/// Spec: D-101
#[test]
fn the_same_properties_continue_at_the_checkpoint() {
    for (item, at_restart) in [(25, "east,north"), (3, "east,south")] {
        let (_folder, job, table) = failing_once_at(item);
        let first = job.launch();
        first.assert_failed("broken");
        job.restart(&first, [("files", at_restart)]).assert_completed();
        assert_eq!(table.items().len(), 60);
    }
}
