//! The counters of a step in its instance: an interruption must not change what limits, deciders and reports see.

use batch_runtime::JobExecutionId;
use batch_runtime::execution::{Metric, MetricName};
use batch_runtime::prelude::*;
use batch_tests::stage::{Stage, say};
use insta::assert_snapshot;

use crate::artifacts::{assert_completed, chosen, restart_with};
use crate::faults::{Oops, RULES, faulty, make_table};

/// Records the counters of the step that has ended, and is asked about it.
#[derive(BatchArtifact)]
struct Counts {
    #[batch_property(name = "log")]
    log: String,
    #[batch_context]
    step: StepContext,
}

impl Counts {
    fn say(&self, who: &str) {
        use MetricName::{ProcessSkipCount, ReadSkipCount};
        let skips = |metrics: Vec<Metric>| -> i64 {
            let is_skips = |metric: &&Metric| matches!(metric.name, ReadSkipCount | ProcessSkipCount);
            metrics.iter().filter(is_skips).map(|metric| metric.value).sum()
        };
        let (all, here) = (skips(self.step.metrics()), skips(self.step.execution_metrics()));
        say(&self.log, format!("{who}: {all} skips, {here} in this execution"));
    }
}

#[step_listener("Counts")]
impl Counts {
    #[after_step]
    fn after(&mut self) {
        self.say("listener");
    }
}

#[decider("Asked")]
fn asked(#[batch_property] log: &str, #[batch_context] step: &StepContext) -> String {
    let (log, step) = (log.to_owned(), step.clone());
    Counts { log, step }.say("decider");
    "ON".into()
}

/// Fails as long as the parameter is set.
#[batchlet("Unless")]
fn unless(#[batch_property(value = "no")] fail: &str) -> Result<String, BatchError> {
    match fail {
        "yes" => Err(BatchError::msg("not yet")),
        _ => Ok("DONE".into()),
    }
}

fn xml() -> String {
    format!(
        r#"<job id="job">
             <step id="copy" next="ask">
               <listeners><listener ref="Counts"/></listeners>
               <chunk reader="Source" processor="Shape" writer="TableOut" commit-interval="2" skip-limit="3">{RULES}</chunk>
             </step>
             <decision id="ask" ref="Asked"><next on="*" to="last"/></decision>
             <step id="last"><batchlet ref="Unless"/></step>
           </job>"#
    )
}

/// Returns the executions, reads, writes and skips of each step.
fn totals(stage: &Stage, execution: JobExecutionId) -> Vec<String> {
    let totals = stage.operator().step_totals(execution).unwrap();
    let shown = totals.iter().map(|total| {
        let (name, runs, c) = (&total.step_name, total.executions, total.counters);
        format!(
            "{name}: {runs} executions, {} read, {} written, {} skipped",
            c.reads,
            c.writes,
            c.skips()
        )
    });
    shown.collect()
}

/// Metrics, deciders and totals count the executions of the step since it last completed; the row of each has its own counters.
///
/// Spec: CTX-30, CHUNK-SKIP-06, D-95, OP-25
#[test]
fn counters_are_those_of_the_instance() {
    let stage = Stage::new(&xml());
    make_table(&stage);
    let faults = "process 2: Skip; process 4: Skip; read 6: Fatal x1";
    let first = stage.start("job", [("faults", faults), ("items", "8"), ("fail", "yes")]);
    assert_snapshot!(stage.log().last().unwrap(), @"listener: 2 skips, 2 in this execution");
    let of_first = ["copy: 1 executions, 4 read, 2 written, 2 skipped"];
    assert_eq!(totals(&stage, first), of_first);

    let faults = ("faults", "process 7: Skip");
    let second = restart_with(&stage, first, [faults, ("items", "8"), ("fail", "yes")]);
    let said = [
        "listener: 3 skips, 1 in this execution",
        "decider: 3 skips, 1 in this execution",
    ];
    assert_eq!(chosen(&stage, &["listener", "decider"]), said);
    let copy = "copy: 2 executions, 8 read, 5 written, 3 skipped";
    let last = "last: 1 executions, 0 read, 0 written, 0 skipped";
    assert_eq!(totals(&stage, second), [copy, last]);
    assert_eq!(totals(&stage, first), of_first);

    // The step is complete; the decider is asked again.
    let third = restart_with(&stage, second, [faults, ("items", "8"), ("fail", "no")]);
    assert_eq!(chosen(&stage, &["listener", "decider"]), said[1..]);
    let last = "last: 2 executions, 0 read, 0 written, 0 skipped";
    assert_eq!(totals(&stage, third), [copy, last]);
    assert_completed(&stage, third);
}

/// Reads its input from the start again, because it has no checkpoint.
#[derive(BatchArtifact)]
struct FromStart {
    next: u64,
}

#[item_reader]
impl FromStart {
    #[open]
    fn open(&mut self) {
        self.next = 1;
    }
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        self.next += 1;
        (self.next <= 5).then_some(self.next - 1)
    }
}

/// Rejects the first number, and cannot process the last one while the parameter is set.
#[item_processor("RejectsFirst")]
fn rejects_first(number: u64, #[batch_property(value = "no")] fail: &str) -> Result<Option<u64>, Oops> {
    match number {
        1 => Err(Oops::Skip),
        4 if fail == "yes" => Err(Oops::Fatal),
        _ => Ok(Some(number)),
    }
}

/// The same record is rejected in each execution: counted again and again it would use up the limit.
///
/// Spec: CHUNK-SKIP-06, D-95
#[test]
fn the_count_starts_over_with_the_input() {
    let stage = Stage::new(&format!(
        r#"<job id="job"><step id="copy">
             <listeners><listener ref="Counts"/></listeners>
             <chunk reader="FromStart" processor="RejectsFirst" writer="Nothing" commit-interval="2" skip-limit="1">{RULES}</chunk>
           </step></job>"#
    ));
    let mut execution = stage.start("job", [("fail", "yes")]);
    for fail in ["yes", "no"] {
        assert_eq!(stage.log(), ["listener: 1 skips, 1 in this execution"]);
        execution = restart_with(&stage, execution, [("fail", fail)]);
    }
    assert_completed(&stage, execution);
}

/// Eight different numbers, so that none can stand in the column of another.
///
/// Spec: REPO-55, REPO-56, REPO-57, REPO-58, REPO-59, REPO-60
#[test]
fn each_counter_has_its_column() {
    let limits = r#"commit-interval="5" skip-limit="10" retry-limit="10""#;
    let stage = faulty("", "TableOut", limits, RULES);
    let faults = "read 3: Skip; process 5: Skip; process 6: Skip; has n8: @Skip; has n9: @Skip; has n16: @Skip; \
                  has n17: @Retry x5";
    let parameters = [("faults", faults), ("items", "30"), ("filter.every", "7")];
    stage.start("job", parameters);
    let columns = "SELECT READ_COUNT || ' ' || FILTER_COUNT || ' ' || WRITE_COUNT || ' ' || COMMIT_COUNT || ' ' || ROLLBACK_COUNT
        || ' ' || READ_SKIP_COUNT || ' ' || PROCESS_SKIP_COUNT || ' ' || WRITE_SKIP_COUNT AS text FROM BATCH_STEP_EXECUTION";
    assert_eq!(stage.outside().rows(columns), ["29 4 20 6 8 1 2 3"]);
}
