//! Jobs in the dialect of Jakarta Batch.

use std::fs;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use batch_runtime::execution::StepExecution;
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus, Dialect};
use batch_testing::{JobTest, SkippedItems, WrittenItems, always_fails_at, fails_at};

use crate::artifacts::{assert_contains, assert_starts};

/// Counts to its limit, which only its own property sets.
#[derive(BatchArtifact)]
struct CountTo {
    #[batch_property(name = "limit", value = "3")]
    limit: u64,
    /// Before the second item it waits this long.
    #[batch_property(name = "seconds", value = "0")]
    seconds: u64,
    last: u64,
}

#[item_reader("CountTo")]
impl CountTo {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.last = checkpoint.unwrap_or(0);
    }
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        let begin = Instant::now();
        while self.last == 1 && begin.elapsed() < Duration::from_secs(self.seconds) {
            std::thread::yield_now();
        }
        (self.last < self.limit).then(|| {
            self.last += 1;
            self.last
        })
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.last
    }
}

/// Ends with its property as the exit status.
#[batchlet("ExitWith")]
fn exit_with(
    #[batch_property(value = "no status")] status: String,
    #[batch_context] job: &JobContext,
) -> String {
    job.set_exit_status(Some(&status));
    status
}

fn job(elements: &str) -> (tempfile::TempDir, JobTest) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("job.xml");
    let text =
        format!("<job id='j' version='2.0' xmlns='https://jakarta.ee/xml/ns/jakartaee'>{elements}</job>");
    fs::write(&file, text).unwrap();
    (folder, JobTest::new(file))
}

/// Neither the properties around an artifact nor job parameters of the same name reach it.
///
/// Spec: JAK-07, JAK-10 to JAK-12
#[test]
fn a_chunk_without_a_processor_writes_what_it_reads() {
    let (_folder, job) = job("<properties><property name='limit' value='99'/></properties>
         <step id='s'>
           <properties><property name='limit' value='98'/></properties>
           <chunk item-count='2'>
             <reader ref='CountTo'>
               <properties><property name='limit' value=\"#{jobParameters['count']}?:5;\"/></properties>
             </reader>
             <writer ref='Table'/>
           </chunk>
         </step>");
    let written = WrittenItems::<u64>::new();
    let run = job.writer("Table", &written).parameter("limit", 97).launch();
    run.assert_completed();
    run.step("s").assert_reads(5).assert_writes(5).assert_commits(3);
    assert_eq!(written.items(), [1, 2, 3, 4, 5]);
}

/// Without a property, the reader has the default. A chunk ends after its time limit although it has fewer items.
///
/// Spec: JAK-11, JAK-12
#[test]
fn artifacts_have_defaults_and_chunks_a_time_limit() {
    for (attributes, own, commits) in [
        ("item-count='100'", "", 1),
        (
            "item-count='100' time-limit='1'",
            "<properties><property name='seconds' value='1'/></properties>",
            2,
        ),
    ] {
        let (_folder, job) = job(&format!(
            "<properties><property name='limit' value='99'/></properties>
             <step id='s'><chunk {attributes}>
               <reader ref='CountTo'>{own}</reader><writer ref='Table'/>
             </chunk></step>"
        ));
        let run = job.writer("Table", &WrittenItems::<u64>::new()).launch();
        let step = run.assert_completed().step("s");
        step.assert_reads(3).assert_commits(commits);
    }
}

/// A plan gives each partition its own values, counted from 0.
///
/// Spec: JAK-13, JAK-14
#[test]
fn a_plan_gives_each_partition_its_properties() {
    let (_folder, job) = job(
        "<step id='s'>
           <batchlet ref='ExitWith'>
             <properties><property name='status' value=\"#{partitionPlan['month']}?:ALL;\"/></properties>
           </batchlet>
           <partition><plan partitions='3' threads='2'>
             <properties partition='0'><property name='month' value='MAY'/></properties>
             <properties partition='2'><property name='month' value=\"#{jobParameters['last']}\"/></properties>
           </plan></partition>
         </step>",
    );
    let run = job.parameter("last", "JULY").launch();
    run.assert_completed();
    let statuses = ["s:1", "s:2", "s:3"].map(|partition| run.step(partition).execution().exit_status.clone());
    assert_eq!(statuses, ["MAY", "ALL", "JULY"]);
}

/// The first transition that matches is taken, and then the attribute. Without a `next`, nothing follows a step whose transitions do not
/// match, and the job completes.
///
/// Spec: JAK-17
#[test]
fn transitions_are_tried_in_the_order_of_the_document() {
    for (next, transitions, status, steps) in [
        (
            "next='two'",
            "<stop on='*'/><fail on='LATE'/>",
            BatchStatus::Stopped,
            &["one"][..],
        ),
        (
            "next='two'",
            "<fail on='LATE*'/><stop on='LATE'/>",
            BatchStatus::Failed,
            &["one"],
        ),
        (
            "next='two'",
            "<stop on='EARLY'/>",
            BatchStatus::Completed,
            &["one", "two"],
        ),
        (
            "",
            "<next on='NEVER' to='two'/>",
            BatchStatus::Completed,
            &["one"],
        ),
    ] {
        let (_folder, job) = job(&format!(
            "<step id='one' {next}>
               <batchlet ref='ExitWith'><properties><property name='status' value='LATE'/></properties></batchlet>
               {transitions}
             </step>
             <step id='two'><batchlet ref='ExitWith'/></step>"
        ));
        job.launch().assert_status(status).assert_steps(steps);
    }
}

/// Flows and splits are nested to any depth.
///
/// Spec: JAK-15
#[test]
fn flows_contain_flows_and_splits() {
    let (_folder, job) = job("<flow id='outer' next='last'>
           <flow id='inner' next='both'><step id='one'><batchlet ref='ExitWith'/></step></flow>
           <split id='both'>
             <flow id='left'><step id='two'><batchlet ref='ExitWith'/></step></flow>
             <flow id='right'><step id='three'><batchlet ref='ExitWith'/></step></flow>
           </split>
         </flow>
         <step id='last'><batchlet ref='ExitWith'/></step>");
    let run = job.launch();
    run.assert_completed();
    let names: Vec<&str> = run.steps().iter().map(|step| step.step_name.as_str()).collect();
    assert_eq!((names[0], names[3], names.len()), ("one", "last", 4));
}

/// The program can choose the dialect of documents without a namespace.
///
/// Spec: JAK-02
#[test]
fn a_program_chooses_the_dialect() {
    let folder = tempfile::tempdir().unwrap();
    let text = "<job id='j'><step id='s'><chunk item-count='5'><reader ref='CountTo'/><writer ref='W'/></chunk></step></job>";
    fs::write(folder.path().join("j.xml"), text).unwrap();
    let builder = batch_runtime::BatchRuntime::builder().job_path(folder.path().display().to_string());
    let report = builder.clone().dialect(Dialect::Jakarta).check([("a", "b")]);
    let text = report.checks[0].report();
    assert_starts(&text, "error[ART0001]: unknown item writer `W`");
    let text = builder.check([("a", "b")]).checks[0].report();
    assert_contains(&text, "it is part of the dialect `jakarta`");
}

/// A chunk of the numbers to 6 by 3, with exception classes.
fn copy(classes: &str) -> (tempfile::TempDir, JobTest) {
    job(&format!(
        "<step id='s'><chunk item-count='3'>
           <reader ref='Numbers'/><writer ref='Table'/>
           <{classes}><include class='SimulatedFailure'/></{classes}>
         </chunk></step>"
    ))
}

/// One failed write is one skip, and takes its whole list along.
///
/// Spec: JAK-19
#[test]
fn a_skipped_write_skips_its_list() {
    let (written, skipped) = (WrittenItems::<u64>::new(), SkippedItems::<u64>::new());
    let (_folder, job) = copy("skippable-exception-classes");
    let job = job.reader("Numbers", 1..=6_u64).skipped(&skipped);
    let job = job.failing_writer("Table", &written, &always_fails_at(5));
    let run = job.launch();
    run.assert_completed();
    let step = run.step("s").assert_reads(6).assert_writes(3);
    step.assert_write_skips(1).assert_filters(0).assert_rollbacks(0);
    assert_eq!((written.items(), skipped.items()), (vec![1, 2, 3], vec![4, 5, 6]));
}

/// A failed read is retried after a rollback, without a further setting.
///
/// Spec: JAK-18
#[test]
fn a_failed_read_is_retried() {
    let written = WrittenItems::<u64>::new();
    let (_folder, job) = copy("retryable-exception-classes");
    let job = job.failing_reader("Numbers", 1..=6_u64, &fails_at(5, 1));
    let run = job.writer("Table", &written).launch();
    run.assert_completed();
    run.step("s").assert_reads(6).assert_writes(6).assert_rollbacks(1);
    assert_eq!(written.items(), [1, 2, 3, 4, 5, 6]);
}

/// Counts its opens in the user data, and fails the first time.
#[derive(BatchArtifact)]
struct CountOpens {
    #[batch_context]
    step: StepContext,
}

#[item_reader("CountOpens")]
impl CountOpens {
    #[open]
    fn open(&mut self, _: Option<()>) -> Result<(), BatchError> {
        let opens: u64 = self.step.persistent_user_data()?.unwrap_or(0);
        self.step.set_persistent_user_data(&(opens + 1))
    }
    #[read_item]
    fn read(&mut self) -> Result<Option<u64>, BatchError> {
        match self.step.persistent_user_data::<u64>()? {
            Some(1) => Err(BatchError::msg("the first time")),
            _ => Ok(None),
        }
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// The step fails before its first checkpoint, and a restart finds what it has set.
///
/// Spec: JAK-20
#[test]
fn a_failed_chunk_step_keeps_its_user_data() {
    let (_folder, job) =
        job("<step id='s'><chunk><reader ref='CountOpens'/><writer ref='Table'/></chunk></step>");
    let job = job.writer("Table", &WrittenItems::<u64>::new());
    job.launch().assert_failed("the first time");
    job.launch().assert_completed();
}

/// Decides what its property contains.
#[decider("Decided")]
fn decided(#[batch_property] result: String) -> String {
    result
}

/// Spec: JAK-21
#[test]
fn a_decision_without_a_matching_transition_completes_the_job() {
    let (_folder, job) = job("<step id='one' next='two'><batchlet ref='ExitWith'/></step>
         <decision id='two' ref='Decided'>
           <properties><property name='result' value='OTHER'/></properties>
           <fail on='BAD'/>
         </decision>");
    job.launch().assert_completed().assert_exit_status("OTHER");
}

/// A step that stopped the job is COMPLETED and does not run again, although the restart begins at the first element.
///
/// Spec: JAK-22, JAK-23
#[test]
fn a_step_that_stops_the_job_is_complete() {
    let (_folder, job) = job(
        "<step id='one' next='two'><batchlet ref='ExitWith'/></step>
         <step id='two' next='three'><batchlet ref='ExitWith'/><stop on=\"#{jobParameters['stop']}?:no status;\"/></step>
         <step id='three'><batchlet ref='ExitWith'/></step>",
    );
    let run = job.launch();
    run.assert_status(BatchStatus::Stopped);
    run.assert_steps(&["one", "two"]);
    run.step("two").assert_status(BatchStatus::Completed);
    let again = job.restart(&run, [("stop", "NEVER")]);
    again.assert_completed().assert_steps(&["three"]);
}

/// Returns a job whose only step fails.
fn failing(attributes: &str) -> (tempfile::TempDir, JobTest) {
    let (folder, job) = job(&format!(
        "<step id='one' {attributes}><batchlet ref='Failing'/></step>"
    ));
    let fails = || Err::<String, _>(BatchError::msg("as always"));
    (folder, job.batchlet("Failing", fails))
}

/// Spec: JAK-24
#[test]
fn a_start_limit_counts_the_first_start() {
    let (_folder, job) = failing("start-limit='1'");
    job.launch().assert_failed("as always");
    let again = job.launch();
    again.assert_status(BatchStatus::Failed).assert_steps(&[]);
}

/// The steps of the other flow take longer than a stop request would.
///
/// Spec: JAK-25
#[test]
fn a_failed_flow_does_not_stop_the_others() {
    let step = |id: &str, next: String| format!("<step id='{id}' {next}><batchlet ref='ExitWith'/></step>");
    let steps = (1..30).map(|number| step(&format!("s{number}"), format!("next='s{}'", number + 1)));
    let steps: String = steps.chain([step("s30", String::new())]).collect();
    let (_folder, job) = job(&format!(
        "<split id='both'>
           <flow id='left'><step id='failing'><batchlet ref='Failing'/></step></flow>
           <flow id='right'><step id='one' next='s1'><batchlet ref='AtTheFailure'/></step>{steps}</flow>
         </split>",
    ));
    let failing = Arc::new(Barrier::new(2));
    let other = Arc::clone(&failing);
    let job = job.batchlet("Failing", move || {
        failing.wait();
        Err::<String, _>(BatchError::msg("it fails"))
    });
    let job = job.batchlet("AtTheFailure", move || {
        other.wait();
        Ok::<_, BatchError>("DONE".to_owned())
    });
    let run = job.launch();
    run.assert_failed("it fails");
    run.step("s30").assert_status(BatchStatus::Completed);
}

/// Decides by the names and exit statuses of the steps that it gets.
#[decider("DecideBySteps")]
fn decide_by_steps(steps: &[StepExecution]) -> String {
    let shown = |step: &StepExecution| format!("{}={}", step.step_name, step.exit_status);
    steps.iter().map(shown).collect::<Vec<_>>().join(" ")
}

/// Spec: JAK-26
#[test]
fn a_decider_gets_the_last_steps() {
    let step = |id: &str, next: &str| {
        let status = id.to_uppercase();
        format!(
            "<step id='{id}' {next}><batchlet ref='ExitWith'>
               <properties><property name='status' value='{status}'/></properties>
             </batchlet></step>"
        )
    };
    let two = step("one", "next='two'") + &step("two", "");
    let three = step("three", "");
    for (elements, decision) in [
        (step("one", "next='decision'"), "one=ONE"),
        (format!("<flow id='f' next='decision'>{two}</flow>"), "two=TWO"),
        (
            format!(
                "<split id='s' next='decision'><flow id='l'>{two}</flow><flow id='r'>{three}</flow></split>"
            ),
            "two=TWO three=THREE",
        ),
    ] {
        let (_folder, job) = job(&format!(
            "{elements}<decision id='decision' ref='DecideBySteps'><end on='NEVER'/></decision>"
        ));
        job.launch().assert_exit_status(decision);
    }
}

/// A file is found by its name, with the id of another file; a restart takes the same file.
///
/// Spec: JAK-36, JAK-38
#[test]
fn a_job_is_started_by_the_name_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let of = |exit: &str| {
        format!(
            "<job id='twin' xmlns='https://jakarta.ee/xml/ns/jakartaee'><step id='s' allow-start-if-complete='true'><batchlet ref='ExitWith'>
               <properties><property name='status' value=\"#{{jobParameters['exit']}}?:{exit};\"/></properties></batchlet>
               <stop on='{exit}'/></step></job>"
        )
    };
    let broken = "<job id='b'>".to_owned();
    for (file, text) in [("first", of("ONE")), ("second", of("TWO")), ("broken", broken)] {
        fs::write(folder.path().join(file).with_extension("xml"), text).unwrap();
    }
    let runtime = BatchRuntime::builder()
        .repository(format!("sqlite://{}/batch.db", folder.path().display()))
        .job_path(folder.path().display().to_string())
        .build()
        .unwrap();
    let operator = runtime.job_operator();
    let ends = |execution| operator.wait(execution).unwrap().exit_status;
    let start = |file| operator.start_xml(file, ());
    let first = start("second").unwrap();
    assert_eq!(ends(first), "TWO");
    assert_eq!(ends(start("first.xml").unwrap()), "ONE");
    let again = operator.restart(first, [("exit", "THREE")]).unwrap();
    assert_eq!(ends(again), "THREE");
    assert_contains(&start("secand").unwrap_err(), "did you mean `second`?");
    assert_contains(&start("broken").unwrap_err(), "broken.xml:1");
    assert_contains(&start("second.txt").unwrap_err(), "unknown job");
}

/// Sets user data, and ends.
#[batchlet("KeepNumber")]
fn keep_number(#[batch_context] step: &StepContext) -> Result<String, BatchError> {
    step.set_persistent_user_data(&vec![42_u64])?;
    Ok("KEPT".into())
}

#[decider("DecideByData")]
fn decide_by_data(steps: &[StepExecution]) -> Result<String, BatchError> {
    let data: Option<Vec<u64>> = steps[0].persistent_user_data()?;
    Ok(format!("{data:?}"))
}

/// Spec: JAK-37
#[test]
fn a_step_execution_has_the_user_data() {
    let (_folder, job) = job("<step id='one' next='d'><batchlet ref='KeepNumber'/></step>
         <decision id='d' ref='DecideByData'><next on='*' to='two'/></decision>
         <step id='two'><batchlet ref='ExitWith'/></step>");
    let run = job.launch();
    run.assert_completed();
    let step = |id| run.step(id).execution().clone();
    assert_eq!(step("one").persistent_user_data().unwrap(), Some(vec![42_u64]));
    let error = step("one").persistent_user_data::<String>().unwrap_err();
    assert_contains(&error, "the user data is `[42]`, not the requested");
    assert_eq!(step("two").persistent_user_data::<u64>().unwrap(), None);
}

/// Spec: JAK-35
#[test]
fn a_complete_execution_is_abandoned() {
    let (_folder, job) = job("<step id='one'><batchlet ref='ExitWith'/></step>");
    let run = job.launch();
    let operator = job.operator();
    operator.abandon(run.execution().id).unwrap();
    let found = operator.job_execution(run.execution().id).unwrap().unwrap();
    assert_eq!(found.status, BatchStatus::Abandoned);
    assert_contains(&job.launch_fails(), "is ABANDONED");
}

/// Spec: JAK-39
#[test]
fn only_the_latest_execution_is_restarted() {
    let (_folder, job) = failing("");
    let first = job.launch().execution().id;
    let second = job.launch().execution().id;
    let operator = job.operator();
    let error = operator.restart(first, ()).unwrap_err().to_string();
    let expected = "job execution 1 is not the latest of its instance; restart execution 2";
    assert_eq!(error, expected);
    let third = operator.restart(second, ()).unwrap();
    operator.wait(third).unwrap();
}

/// Shows its properties as the exit status.
#[batchlet("ShowProperties")]
fn show_properties(
    #[batch_property(value = "7")] number: u64,
    #[batch_property] optional: Option<i32>,
    #[batch_property(value = "a default")] text: &str,
) -> String {
    format!("{number} {optional:?} {text:?}")
}

/// A parameter that is not given is an empty text, which is no number.
///
/// Spec: JAK-07, BPROP-08
#[test]
fn an_empty_value_is_missing_where_it_does_not_parse() {
    let own: String = ["number", "optional", "text"]
        .map(|name| format!("<property name='{name}' value=\"#{{jobParameters['{name}']}}\"/>"))
        .concat();
    let (_folder, job) = job(&format!(
        "<step id='one'><batchlet ref='ShowProperties'><properties>{own}</properties></batchlet></step>"
    ));
    job.launch().step("one").assert_exit_status("7 None \"\"");
    let job = job.parameter("number", 8).parameter("optional", -9);
    let job = job.parameter("text", "given");
    let run = job.launch();
    run.step("one").assert_exit_status("8 Some(-9) \"given\"");
}
