//! Partitions in the dialect of Jakarta Batch: the plan of a restart, collectors and reducers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobExecutionId, JobOperator, PartitionPlan};
use batch_testing::{JobRun, JobTest};

/// Plans the number of partitions in its property. The one with the number `fails`, from 0, gets a wrong property.
#[derive(BatchArtifact)]
struct PlanParts {
    #[batch_property(name = "parts")]
    parts: u32,
    #[batch_property(name = "fails", value = "99")]
    fails: u32,
    #[batch_property(name = "override", value = "false")]
    replaces: bool,
    #[batch_property(name = "threads")]
    threads: Option<u32>,
}

#[partition_algorithm("PlanParts")]
impl PlanParts {
    #[calculate_partitions]
    fn plan(&mut self) -> PartitionPlan {
        let properties = (0..self.parts).map(|part| {
            let file = if part == self.fails { "wrong" } else { "right" };
            [("file", file.to_owned()), ("of", self.parts.to_string())]
        });
        let mut plan = PartitionPlan::with_properties(properties);
        plan.set_partitions_override(self.replaces);
        plan.set_threads(self.threads);
        plan
    }
}

/// Fails for a wrong file.
#[derive(BatchArtifact)]
struct LoadFile {
    #[batch_property(name = "file", value = "right")]
    file: String,
    #[batch_property(name = "of", value = "?")]
    of: String,
}

#[batchlet("LoadFile")]
impl LoadFile {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        match self.file.as_str() {
            "right" => Ok(format!("ONE OF {}", self.of)),
            file => Err(BatchError::msg(format!("no file `{file}`"))),
        }
    }
}

#[derive(BatchArtifact)]
struct CollectOne;

#[sub_job_collector("CollectOne")]
impl CollectOne {
    #[collect_sub_job_data]
    fn collect(&mut self) -> Option<u32> {
        Some(1)
    }
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
        self.step
            .set_exit_status(Some(&format!("{} PAYLOADS", self.payloads)));
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
    std::fs::write(
        &file,
        format!("<job id='j' {namespace}><step id='s'>{step}</step></job>"),
    )
    .unwrap();
    (folder, JobTest::new(file))
}

/// Returns the partitions that have run, in order.
fn partitions(run: &JobRun) -> Vec<String> {
    let names = run.steps().iter().map(|step| step.step_name.clone());
    let mut names: Vec<String> = names.filter(|name| name.contains(':')).collect();
    names.sort();
    names
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

/// The number of partitions is remembered; their properties come from the new plan.
///
/// Spec: D-50, JAK-32
#[test]
fn a_restart_plans_the_properties_again() {
    let (_folder, job) = mapped("");
    let job = job.parameter("parts", 3).parameter("fails", 1);
    let first = job.launch();
    first.assert_failed("no file `wrong`");
    let again = job.restart(
        &first,
        [
            ("parts", "7"),
            ("fails", "5"),
            ("batch.partition.replan", "properties"),
        ],
    );
    again.assert_completed();
    assert_eq!(partitions(&again), ["s:2"]);
    assert_eq!(again.step("s:2").execution().exit_status, "ONE OF 7");
}

/// A complete partition is passed over, so its new properties would never be processed: of a mapper that lists a folder, one file would be
/// loaded twice, and another one never.
///
/// Spec: D-101, JAK-32
#[test]
fn a_complete_partition_does_not_get_other_properties() {
    let (_folder, job) = mapped("");
    let job = job.parameter("parts", 3).parameter("fails", 1);
    let first = job.launch();
    let refused = job.restart(&first, [("parts", "7"), ("fails", "5")]);
    refused.assert_failed("partition 1 of `s` is complete, but the new plan");
    refused.assert_failed("(`of` was \"3\", and is \"7\" now)");
    let earlier = job.restart(&refused, [("batch.partition.replan", "all"), ("fails", "5")]);
    earlier.assert_completed();
    assert_eq!(partitions(&earlier), ["s:1", "s:2", "s:3"]);
}

/// A plan with too few properties for the existing partitions is an error with a remedy.
///
/// Spec: JAK-32
#[test]
fn a_smaller_plan_has_to_replace_the_partitions() {
    let (_folder, job) = mapped("");
    let job = job.parameter("parts", 3).parameter("fails", 1);
    let first = job.launch();
    let again = job.restart(&first, [("parts", "2"), ("fails", "99")]);
    again.assert_failed("call `set_partitions_override(true)` to discard their work");
    let replaced = job.restart(&again, [("parts", "2"), ("fails", "99"), ("override", "true")]);
    replaced.assert_completed();
    assert_eq!(partitions(&replaced), ["s:1", "s:2"]);
}

/// All partitions start anew, also those that were complete.
///
/// Spec: JAK-32
#[test]
fn a_plan_may_replace_the_partitions() {
    let (_folder, job) = mapped("");
    let job = job.parameter("parts", 3).parameter("fails", 1);
    let first = job.launch();
    let again = job.restart(&first, [("override", "true"), ("fails", "2")]);
    again.assert_failed("no file `wrong`");
    assert_eq!(partitions(&again), ["s:1", "s:2", "s:3"]);
    // The restart of a restart knows the partitions that have replaced the first ones.
    let last = job.restart(&again, [("override", "false"), ("fails", "99")]);
    last.assert_completed();
    assert_eq!(partitions(&last), ["s:3"]);
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
    assert_eq!(partitions(&again), ["s:1"]);
}

/// Spec: JAK-33
#[test]
fn complete_partitions_do_not_run_again_after_a_rollback() {
    let (_folder, job) = mapped("<reducer ref='Reducer'/>");
    let job = job.parameter("parts", 3).parameter("fails", 1);
    let first = job.launch();
    first.assert_failed("no file `wrong`");
    let again = job.restart(&first, [("fails", "99")]);
    again.assert_completed();
    assert_eq!(partitions(&again), ["s:2"]);
}

/// A failed partition stops no other one, even if it has not started.
///
/// Spec: JAK-25, JAK-32
#[test]
fn the_other_partitions_run_to_their_end() {
    let (_folder, job) = mapped("");
    let run = job
        .parameter("batch.partition.threads", 1)
        .parameter("parts", 3)
        .parameter("fails", 0)
        .launch();
    run.assert_failed("no file `wrong`");
    let statuses = ["s:1", "s:2", "s:3"].map(|part| run.step(part).execution().status);
    assert_eq!(
        statuses,
        [
            BatchStatus::Failed,
            BatchStatus::Completed,
            BatchStatus::Completed
        ]
    );
}

/// The collector of a batchlet is called even if the batchlet fails.
///
/// Spec: SUBJOB-16, JAK-34
#[test]
fn the_collector_is_called_for_a_failed_batchlet() {
    let (_folder, job) = mapped("<collector ref='CollectOne'/><analyzer ref='CountPayloads'/>");
    let run = job.parameter("parts", 3).parameter("fails", 1).launch();
    run.step("s").assert_status(BatchStatus::Failed);
    assert_eq!(run.step("s").execution().exit_status, "3 PAYLOADS");
}

/// After each checkpoint: in the draft once more at the end of the step.
///
/// Spec: SUBJOB-03, D-45, JAK-34
#[test]
fn the_collector_is_called_after_each_checkpoint() {
    let subjobs = "<collector ref='CollectOne'/><analyzer ref='CountPayloads'/>";
    let jakarta = job(&format!(
        "<chunk><reader ref='Thirty'/><writer ref='Table'/></chunk><partition><plan/>{subjobs}</partition>"
    ));
    let draft = in_namespace(
        "",
        &format!("<chunk reader='Thirty' processor='Same' writer='Table'/><partition>{subjobs}</partition>"),
    );
    let draft = (
        draft.0,
        draft
            .1
            .processor("Same", |item: &u64| Ok::<_, BatchError>(Some(*item))),
    );
    for ((_folder, job), payloads) in [(jakarta, "4 PAYLOADS"), (draft, "5 PAYLOADS")] {
        let run = job
            .reader("Thirty", 0..30_u64)
            .writer("Table", &batch_testing::WrittenItems::<u64>::new())
            .launch();
        run.assert_completed();
        assert_eq!(run.step("s").execution().exit_status, payloads);
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
    assert!(partitions(&last).contains(&"s:2".to_owned()));
    let (_folder, job) = mapped("");
    let job = job.parameter("parts", 3).parameter("fails", 1);
    let first = job.launch();
    let all = job.restart(&first, [("fails", "99"), ("batch.partition.replan", "all")]);
    all.assert_completed();
    assert_eq!(partitions(&all), ["s:1", "s:2", "s:3"]);
    let wrong = job
        .parameter("batch.partition.replan", "maybe")
        .launch_fails()
        .to_string();
    assert!(wrong.contains("expected `no`, `properties` or `all`"), "{wrong}");
}

/// Whichever flow ends first.
///
/// Spec: SPLIT-19, D-31
#[test]
fn the_last_flow_of_the_document_sets_the_exit_status_of_a_split() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("job.xml");
    let flow = |id: &str| format!("<flow id='{id}'><step id='in-{id}'><batchlet ref='{id}'/></step></flow>");
    std::fs::write(
        &file,
        format!(
            "<job id='j'><split id='both' next='seen'>{}{}</split>
               <decision id='seen' decider='ExitOfSplit'><end on='*'/></decision></job>",
            flow("one"),
            flow("two")
        ),
    )
    .unwrap();
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
        let job = JobTest::new(&file)
            .batchlet("one", task("one"))
            .batchlet("two", task("two"));
        operator.set(job.operator()).ok().unwrap();
        job.launch().assert_completed().assert_exit_status("EXIT two");
    }
}

#[derive(BatchArtifact)]
struct ExitOfSplit {
    #[batch_context]
    split: Option<SplitContext>,
}

#[decider("ExitOfSplit")]
impl ExitOfSplit {
    #[decide]
    fn decide(&mut self) -> String {
        let split = self.split.as_ref().and_then(SplitContext::exit_status);
        split.unwrap_or_else(|| "NO SPLIT".into())
    }
}

/// Spec: JAK-34
#[test]
fn the_analyzer_gets_the_partitions_of_this_execution() {
    let (_folder, job) = mapped("<analyzer ref='ListStatuses'/>");
    let job = job.parameter("parts", 3).parameter("fails", 1);
    let first = job.launch();
    assert_eq!(
        first.step("s").execution().exit_status,
        "COMPLETED ONE OF 3, COMPLETED ONE OF 3, FAILED FAILED"
    );
    let again = job.restart(&first, [("fails", "99")]);
    assert_eq!(again.step("s").execution().exit_status, "COMPLETED ONE OF 3");
    let rows = again
        .steps()
        .iter()
        .map(|step| (step.step_name.as_str(), step.is_of_partition()));
    assert_eq!(rows.collect::<Vec<_>>(), [("s", false), ("s:2", true)]);
}

/// Plans a partition for each of the files, as a mapper that lists a folder does; without files two partitions without properties.
#[derive(BatchArtifact)]
struct PlanFiles {
    #[batch_property(name = "files")]
    files: String,
}

#[partition_algorithm("PlanFiles")]
impl PlanFiles {
    #[calculate_partitions]
    fn plan(&mut self) -> PartitionPlan {
        if self.files.is_empty() {
            return PartitionPlan::new(2);
        }
        PartitionPlan::with_properties(self.files.split(',').map(|file| [("file", file)]))
    }
}

/// A partition that has processed records of one file must not continue with another one.
///
/// Spec: D-101, JAK-32
#[test]
fn a_checkpoint_is_not_used_for_other_properties() {
    let files = property("files", "#{jobParameters['files']}");
    let (_folder, job) = job(&format!(
        "<chunk><reader ref='Thirty'/><processor ref='Check'/><writer ref='Table'/></chunk>
         <partition><mapper ref='PlanFiles'><properties>{files}</properties></mapper></partition>"
    ));
    let broken = Arc::new(AtomicBool::new(true));
    let (table, is_broken) = (batch_testing::WrittenItems::<u64>::new(), Arc::clone(&broken));
    let check = move |item: &u64| match *item == 25 && is_broken.load(Ordering::SeqCst) {
        true => Err(BatchError::msg("broken at 25")),
        false => Ok(Some(*item)),
    };
    let job = job
        .reader("Thirty", 0..30_u64)
        .processor("Check", check)
        .writer("Table", &table)
        .parameter("files", "east,north");
    let first = job.launch();
    first.assert_failed("broken at 25");
    broken.store(false, Ordering::SeqCst);
    // The rejected plan is not stored, so a second restart is rejected too.
    let mut last = first;
    for _ in 0..2 {
        last = job.restart(&last, [("files", "east,middle,north")]);
        last.assert_failed("(`file` was \"north\", and is \"middle\" now)");
        last.assert_failed("`-batch.partition.replan=no` to run the earlier plan");
    }
    last = job.restart(&last, [("files", "")]);
    last.assert_failed("(`file` was \"east\", and is none now)");
    let same = job.restart(
        &last,
        [("files", "east,middle,north"), ("batch.partition.replan", "no")],
    );
    same.assert_completed();
    assert_eq!(partitions(&same), ["s:1", "s:2"]);
    assert_eq!(table.items().len(), 60);
}

/// Where nothing is committed, or the properties are the same, the new plan applies.
///
/// Spec: D-101
#[test]
fn the_same_properties_continue_at_the_checkpoint() {
    let files = property("files", "#{jobParameters['files']}");
    for (item, at_restart) in [(25, "east,north"), (3, "east,south")] {
        let (_folder, job) = job(&format!(
            "<chunk><reader ref='Thirty'/><processor ref='Check'/><writer ref='Table'/></chunk>
             <partition><mapper ref='PlanFiles'><properties>{files}</properties></mapper></partition>"
        ));
        let broken = Arc::new(AtomicBool::new(true));
        let (table, is_broken) = (batch_testing::WrittenItems::<u64>::new(), Arc::clone(&broken));
        let check = move |read: &u64| match *read == item && is_broken.load(Ordering::SeqCst) {
            true => Err(BatchError::msg("broken")),
            false => Ok(Some(*read)),
        };
        let job = job
            .reader("Thirty", 0..30_u64)
            .processor("Check", check)
            .writer("Table", &table)
            .parameter("files", "east,north");
        let first = job.launch();
        first.assert_failed("broken");
        broken.store(false, Ordering::SeqCst);
        job.restart(&first, [("files", at_restart)]).assert_completed();
        assert_eq!(table.items().len(), 60);
    }
}
