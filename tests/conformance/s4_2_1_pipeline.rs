//! Pipelined chunk steps, which read the next chunk while one is written: an extension, the runtime property
//! `batch.chunk.pipeline`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use batch_runtime::prelude::*;
use batch_runtime::xml::Severity;
use batch_runtime::{BatchStatus, JobParameters};
use batch_tests::stage::{Stage, say};

use super::artifacts::{
    Gate, assert_completed, assert_contains, chosen, first_step_execution, impatient, job_execution, refused,
    restart_with, tree,
};
use super::faults::{FaultLog, RULES, faulty_job, faulty_stage, lines, pipeline_listeners};
use super::parallel;

/// Adds properties to the step of a job.
pub(crate) fn with_properties(xml: &str, properties: &[(&str, &str)]) -> String {
    let list = properties.iter().map(|(name, value)| format!("{name}={value}"));
    let list = parallel::properties(&list.collect::<Vec<_>>().join("; "));
    xml.replacen("<step id=\"copy\">", &format!("<step id=\"copy\">{list}"), 1)
}

fn pipelined(xml: &str) -> String {
    with_properties(xml, &[("batch.chunk.pipeline", "true")])
}

/// Records the calls of the listeners that a pipelined step may have.
#[derive(BatchArtifact)]
struct PipelineListeners {
    #[batch_artifact]
    log: FaultLog,
    #[batch_context]
    step: StepContext,
}

impl PipelineListeners {
    fn record(&self, call: &str) -> Result<(), BatchError> {
        let metrics = self.step.metrics();
        let counters: Vec<_> = metrics.iter().map(|metric| metric.value.to_string()).collect();
        self.log.record(format!("L {call} [{}]", counters.join(" ")))
    }
}

pipeline_listeners!(PipelineListeners);

/// The faults of a step that completes, and of one that fails.
const HANDLED: &[&str] = &[
    "",
    "process 4: Skip; process 5: Skip; process 19: Skip",
    "process 3: Skip; read 4: Skip; has n6: @Skip",
    "process 6: Both; process 7: Both; read 9: Both",
    "process 5: Both x2",
    "process 4: Retry x2; has n12: Retry x3; has n13: Skip",
    "has n2: Soft x1; has n9: @SoftSkip; read 20: Skip",
];
const FATAL: &[&str] = &[
    "process 12: Fatal",
    "process 8: Panic",
    "read 8: Fatal",
    "read 8: Panic",
    "has n9: Fatal",
    "has n9: Panic",
    "checkpoint reader at 14: Fatal",
    "checkpoint writer: Fatal",
];

/// Runs the copy with these faults. Returns its end and the rows, and the calls of each artifact.
fn story(xml: &str, fault: &str) -> (String, [Vec<String>; 4]) {
    let stage = faulty_stage(xml);
    let execution = stage.start("job", [("faults", fault), ("items", "20")]);
    let end = format!("{}{}", tree(&stage, execution), lines(&stage));
    let log = stage.log();
    let of = |artifact: fn(&str) -> bool| log.iter().filter(|call| artifact(call)).cloned().collect();
    let calls = [
        of(|call| call.starts_with("read ") || call.contains(" reader")),
        of(|call| call.starts_with("process ")),
        of(|call| call.starts_with("write ") || call.contains(" writer")),
        of(|call| call.starts_with("L ")),
    ];
    (end, calls)
}

/// What the operator sees is the same as without a pipeline: status, counters, rows; and each artifact is called in the same
/// order, listeners with the same counters. Only if the step fails may the reader be ahead.
///
/// Spec: D-100, CHUNK-SKIP-06, CHUNK-SKIP-09, CHUNK-SKIP-10, CHUNK-SKIP-11, CHUNK-RETRY-08, CHUNK-LOOP-13, CTX-30
#[test]
fn a_pipelined_step_does_what_a_plain_one_does() {
    for attributes in [
        "commit-interval=\"1\"",
        "commit-interval=\"3\" skip-limit=\"2\" retry-limit=\"5\"",
        "commit-interval=\"7\" chunk-size=\"2\" retry-limit=\"9\"",
        "commit-interval=\"4\" skip-limit=\"9\"",
        "commit-interval=\"100\" chunk-size=\"100\"",
    ] {
        for listeners in ["", "<listener ref=\"PipelineListeners\"/>"] {
            for processors in ["1", "3"] {
                for fault in HANDLED.iter().chain(FATAL) {
                    let job = faulty_job(listeners, "TableOut", attributes, RULES);
                    let properties = [
                        ("batch.retry.input", "true"),
                        ("batch.chunk.processors", processors),
                        ("batch.chunk.pipeline", "true"),
                    ];
                    let [plain, pipelined] = [&properties[..2], &properties]
                        .map(|properties| story(&with_properties(&job, properties), fault));
                    let case = format!("{attributes}, {fault}, {processors} processors, {listeners}");
                    assert_eq!(pipelined.0, plain.0, "{case}");
                    // The reader is asked for its position before the list is written, not after.
                    if !fault.starts_with("checkpoint reader") {
                        assert_eq!(pipelined.1[2..], plain.1[2..], "{case}");
                    }
                    if plain.0.starts_with("job job COMPLETED") && processors == "1" {
                        assert_eq!(pipelined.1[..2], plain.1[..2], "{case}");
                    }
                }
            }
        }
    }
}

/// Waits at its second list until the reader has started to read the fifth item, and until the test continues.
#[item_writer("WaitsForTheReader")]
fn waits_for_the_reader(
    items: &[String],
    _: &mut ChunkTransaction,
    #[batch_property] log: &str,
    #[batch_property] folder: &str,
) {
    if items.contains(&"n3".to_owned()) {
        let gate = Gate::of(folder);
        gate.pass("held");
        gate.open("writing");
        gate.pass("written");
    }
    say(log, format!("wrote {}", items.join(" ")));
}

/// The next chunk is read while a chunk is written. A stop ends reading; the items that were read ahead are written and committed.
///
/// Spec: D-100, CHUNK-LOOP-15, RESTART-07
#[test]
fn a_stop_commits_what_was_read_ahead() {
    let xml = pipelined(&faulty_job("", "WaitsForTheReader", "commit-interval=\"2\"", ""));
    let stage = impatient(&xml);
    let (operator, gate) = (stage.operator(), Gate::at(&stage));
    let execution = operator.start("job", [("hold.at", "5"), ("items", "7")]).unwrap();
    gate.pass("writing");
    assert!(!operator.stop(execution).unwrap());
    gate.open("written");
    gate.open("go");
    operator.wait(execution).unwrap();
    assert_contains(
        &stage.tree(execution),
        "copy STOPPED STOPPED read 5 filter 0 write 5 commit 3 ",
    );
    let again = restart_with(&stage, execution, [("hold.at", "0")]);
    assert_contains(
        &stage.tree(again),
        "copy COMPLETED COMPLETED read 2 filter 0 write 2 ",
    );
    let expected = ["wrote n1 n2", "wrote n3 n4", "wrote n5", "wrote n6 n7"];
    assert_eq!(chosen(&stage, &["wrote"]), expected);
}

/// The last number that [`AddsUp`] has received.
static RECEIVED: AtomicU64 = AtomicU64::new(0);

/// Adds each number to the persistent user data.
#[item_processor("AddsUp")]
fn adds_up(item: &u64, #[batch_context] step: &StepContext) -> Result<Option<String>, BatchError> {
    RECEIVED.store(*item, Ordering::SeqCst);
    let sum = step.persistent_user_data::<u64>()?.unwrap_or(0) + item;
    step.set_persistent_user_data(&sum)?;
    step.set_transient_user_data(*item);
    Ok(Some(item.to_string()))
}

/// Checks that the contexts know of the items in the list, and of no later one.
#[item_writer("SeesTheSum")]
fn sees_the_sum(
    items: &[String],
    _: &mut ChunkTransaction,
    #[batch_context] step: &StepContext,
    #[batch_property(name = "items")] count: u64,
    #[batch_property(name = "fail.at", value = "0")] fail_at: u64,
) -> Result<(), BatchError> {
    let last: u64 = items.last().and_then(|item| item.parse().ok()).unwrap_or(0);
    // The processor has the next item, and a moment to change the data.
    while last < count && RECEIVED.load(Ordering::SeqCst) <= last {
        thread::yield_now();
    }
    (0..20).for_each(|_| thread::yield_now());
    let sum = step.persistent_user_data::<u64>()?;
    let stored = step.transient_user_data::<u64>()?;
    if sum != Some(last * (last + 1) / 2) || stored.as_deref() != Some(&last) {
        return Err(BatchError::msg(format!("list to {last}: {sum:?}, {stored:?}")));
    }
    if last == fail_at {
        return Err(BatchError::msg("stopped by the test"));
    }
    Ok(())
}

/// The user data of a commit belongs to its items, although later ones are read already.
///
/// Spec: D-100, CTX-23, CTX-24, CTX-25, CHUNK-LOOP-11, RESTART-14
#[test]
fn user_data_belongs_to_its_chunk() {
    let xml = pipelined(&faulty_job("", "SeesTheSum", "commit-interval=\"2\"", ""));
    let stage = Stage::new(&xml.replace("\"Shape\"", "\"AddsUp\""));
    let failed = stage.start("job", [("items", "400"), ("fail.at", "300")]);
    assert_contains(&job_execution(&stage, failed).exit_message, "stopped by the test");
    let again = restart_with(&stage, failed, [("fail.at", "0")]);
    assert_completed(&stage, again);
}

/// Stops its own job at the fifth item.
#[item_processor("StopsItself")]
fn stops_itself(item: &u64, #[batch_context] job: &JobContext) -> Result<Option<String>, BatchError> {
    if *item == 5 {
        job.job_operator().unwrap().stop(job.execution_id())?;
    }
    Ok(Some(format!("n{item}")))
}

/// An artifact that stops its own job does not wait for the end of the job, on any thread of the step.
///
/// Spec: D-60, D-99, D-100
#[test]
fn an_artifact_that_stops_its_job_does_not_wait_for_itself() {
    let partition = r#"<partition><algorithm ref="Planner"/></partition></step>"#;
    for (pipeline, processors, end) in [
        ("false", "1", "</step>"),
        ("true", "1", "</step>"),
        ("false", "2", "</step>"),
        ("true", "2", "</step>"),
        ("false", "1", partition),
        ("true", "2", partition),
    ] {
        let job = faulty_job("", "Out", "commit-interval=\"2\"", "")
            .replace("\"Shape\"", "\"StopsItself\"")
            .replace("</step>", end);
        let properties = [
            ("batch.chunk.pipeline", pipeline),
            ("batch.chunk.processors", processors),
        ];
        let stage = Stage::configured(&with_properties(&job, &properties), |builder| {
            builder.stop_timeout(Duration::from_secs(3_600))
        });
        let execution = stage.start("job", [("items", "1000000"), ("parts", "one")]);
        assert!(stage.tree(execution).starts_with("job job STOPPED"));
    }
}

/// Needs more than a second for the first three items, so that the next interval of a second is read ahead, and more than a second
/// for the next seven, so that it is due.
#[derive(BatchArtifact)]
struct SlowStart {
    begin: Option<Instant>,
    last: u64,
}

#[item_reader]
impl SlowStart {
    #[open]
    fn open(&mut self, last: Option<u64>) {
        self.begin = Some(Instant::now());
        self.last = last.unwrap_or(0);
    }
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        self.last += 1;
        let is_early = |begin: &Instant| begin.elapsed() < Duration::from_millis(1_050);
        while matches!(self.last, 3 | 10) && self.begin.as_ref().is_some_and(is_early) {
            thread::yield_now();
        }
        if self.last == 4 {
            self.begin = Some(Instant::now());
        }
        (self.last <= 20).then_some(self.last)
    }
    #[get_checkpoint_info]
    fn checkpoint(&self) -> u64 {
        self.last
    }
}

/// An interval of the policy `time` continues after errors that were read ahead, the first item among them, and ends when it is due.
///
/// Spec: D-100, JSL-CHUNK-08, CHUNK-SKIP-10
#[test]
fn an_interval_of_the_policy_time_is_read_ahead() {
    for (listeners, processors) in [("", "1"), ("<listener ref=\"PipelineListeners\"/>", "2")] {
        let attributes = "checkpoint-policy=\"time\" commit-interval=\"1\"";
        let job = faulty_job(listeners, "TableOut", attributes, RULES).replace("\"Source\"", "\"SlowStart\"");
        let properties = [
            ("batch.chunk.pipeline", "true"),
            ("batch.chunk.processors", processors),
        ];
        let stage = faulty_stage(&with_properties(&job, &properties));
        let faults = "process 4: Skip; process 6: Skip; process 7: Skip";
        let execution = stage.start("job", [("faults", faults)]);
        let tree = stage.tree(execution);
        assert_contains(&tree, "copy COMPLETED COMPLETED read 20 filter 0 write 17 ");
        // Several processors get all items at once.
        if processors == "1" {
            let commits = first_step_execution(&stage, execution).counters.commits;
            assert!(commits >= 3, "{tree}");
        }
    }
}

/// Sets the exit status for each number.
#[item_processor("SetsExitStatus")]
fn sets_exit_status(
    item: &u64,
    #[batch_property] folder: &str,
    #[batch_context] step: &StepContext,
) -> Option<String> {
    if *item == 3 {
        Gate::of(folder).open("third");
    }
    step.set_exit_status(Some(&format!("SEEN {item}")));
    Some(item.to_string())
}

/// Fails when the processor has received the third item.
#[item_writer("FailsLate")]
fn fails_late(
    _items: &[String],
    _: &mut ChunkTransaction,
    #[batch_property] folder: &str,
) -> Result<(), BatchError> {
    Gate::of(folder).pass("third");
    Err(BatchError::msg("no space"))
}

/// Items that are discarded have no effect on contexts.
///
/// Spec: D-100, CTX-22
#[test]
fn discarded_items_do_not_change_contexts() {
    let xml = pipelined(&faulty_job("", "FailsLate", "commit-interval=\"2\"", ""));
    let stage = Stage::new(&xml.replace("\"Shape\"", "\"SetsExitStatus\""));
    let tree = stage.tree(stage.start("job", [("items", "6")]));
    assert_contains(&tree, "step copy FAILED SEEN 2 read 0");
}

/// The number of results that exist, and the largest so far.
static ALIVE: Mutex<(usize, usize)> = Mutex::new((0, 0));

/// A result that counts itself; the one of 150 panics when it is dropped, if it is fragile.
struct Counted {
    item: u64,
    is_fragile: bool,
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.lock().unwrap().0 -= 1;
        let is_late = self.is_fragile && self.item == 150;
        assert!(!is_late, "no way to drop {}", self.item);
    }
}

#[item_processor("Counts")]
fn counts(item: &u64, #[batch_property(value = "false")] fragile: bool) -> Option<Counted> {
    let mut alive = ALIVE.lock().unwrap();
    alive.0 += 1;
    alive.1 = alive.1.max(alive.0);
    let (item, is_fragile) = (*item, fragile);
    Some(Counted { item, is_fragile })
}

#[item_writer("TakesCounted")]
fn takes_counted(_items: &[Counted], _: &mut ChunkTransaction) {}

/// If the results of an interval are kept until the commit, only one list more is in memory. A panic in the `Drop` of an item is reported
/// as in a plain step.
///
/// Spec: D-100, CHUNK-LOOP-13
#[test]
fn items_are_dropped_in_time() {
    let attributes = "commit-interval=\"100\" chunk-size=\"10\"";
    let job = faulty_job("", "TakesCounted", attributes, RULES).replace("\"Shape\"", "\"Counts\"");
    let ended = |xml: &str, fragile: &str| {
        let stage = Stage::new(xml);
        let execution = stage.start("job", [("items", "300"), ("fragile", fragile)]);
        stage.operator().wait(execution).unwrap()
    };
    assert_eq!(ended(&pipelined(&job), "false").status, BatchStatus::Completed);
    let (alive, most) = *ALIVE.lock().unwrap();
    assert!(alive == 0 && most <= 125, "{alive}, {most}");
    let (pipelined, plain) = (ended(&pipelined(&job), "true"), ended(&job, "true"));
    assert_eq!(pipelined.status, BatchStatus::Failed);
    assert_contains(&pipelined.exit_message, "no way to drop 150");
    assert_eq!(pipelined.exit_message, plain.exit_message);
}

/// A processor that cannot be pipelined.
#[derive(BatchArtifact)]
struct ReadsBalances;

#[item_processor("ReadsBalances", pipelined = false)]
impl ReadsBalances {
    #[process_item]
    fn process(&mut self, item: &u64) -> Option<String> {
        Some(item.to_string())
    }
}

/// Returns an instance of that processor instead of `Shape`.
struct LoadsReadsBalances;

impl BatchArtifactLoader for LoadsReadsBalances {
    fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError> {
        Ok((reference == "Shape").then(|| LoadedArtifact::item_processor(ReadsBalances)))
    }
}

/// Returns the job of a step that cannot be pipelined.
fn obstacle(listeners: &str, attributes: &str, children: &str) -> String {
    faulty_job(listeners, "TableOut", attributes, children)
}

/// A step that asks for a pipeline and cannot have one is rejected; if the job asks for all its steps, the others have one.
///
/// Spec: D-100
#[test]
fn obstacles_are_named() {
    const LISTENER: &str = r#"<listener ref="CallListener"/>"#;
    let custom = format!("<checkpoint-algorithm ref=\"Every\"/>{RULES}");
    let reads_balances = obstacle("", "", "").replace("\"Shape\"", "\"ReadsBalances\"");
    for (job, reason) in [
        (
            obstacle("", "buffer-reads=\"false\"", ""),
            "`buffer-reads=\"false\"` reads items again after a rollback",
        ),
        (
            obstacle("", "checkpoint-policy=\"custom\"", &custom),
            "the checkpoint algorithm decides after each item",
        ),
        (
            reads_balances,
            "`ReadsBalances` is declared with `pipelined = false`",
        ),
        (
            obstacle(LISTENER, "", ""),
            "`CallListener` is a listener of reading or processing, which a pipelined step cannot call",
        ),
    ] {
        let message = refused(&Stage::new(&pipelined(&job)), "job", ());
        assert_contains(&message, "step `copy` cannot be pipelined");
        assert_contains(&message, reason);

        let stage = faulty_stage(&job);
        let parameters: JobParameters = [("batch.chunk.pipeline", "true")].into();
        let warnings = stage.operator().check("job", parameters.clone()).unwrap();
        let [warning] = warnings.as_slice() else {
            panic!("{warnings:?}")
        };
        assert_eq!(warning.severity, Severity::Warning);
        assert_contains(&warning.label, reason);
        assert_completed(&stage, stage.start("job", parameters));
    }
    // An instance of a loader keeps the flags of its registration.
    let loaded = Stage::configured(&pipelined(&obstacle("", "", "")), |builder| {
        builder.artifact_loader(LoadsReadsBalances)
    });
    let several = Stage::new(&pipelined(&obstacle(LISTENER, "buffer-reads=\"false\"", "")));
    let wrong = obstacle("", "", "").replace("\"Source\"", "\"Sorce\"");
    let wrong = Stage::new(&with_properties(&wrong, &[("batch.chunk.pipeline", "yes")]));
    for (stage, problems) in [
        (loaded, &["is declared with `pipelined = false`"][..]),
        (several, &["buffer-reads", "`CallListener` is a listener"]),
        (
            wrong,
            &["invalid value \"yes\" for `batch.chunk.pipeline`", "`Sorce`"],
        ),
    ] {
        let message = refused(&stage, "job", ());
        problems
            .iter()
            .for_each(|problem| assert_contains(&message, problem));
    }
}
