//! The counters of a step in its instance: an interruption must not change what limits, deciders and reports see.

use batch_runtime::execution::{Metric, MetricName};
use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobExecutionId};
use batch_tests::stage::{Stage, say};

use crate::artifacts::{job_execution, restart_with};
use crate::faults::{Oops, RULES, faulty_job, faulty_stage, make_table};

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
        let skips = |metrics: Vec<Metric>| -> i64 {
            let of = |metric: &Metric| {
                matches!(
                    metric.name,
                    MetricName::ReadSkipCount | MetricName::ProcessSkipCount
                )
            };
            metrics
                .iter()
                .filter(|metric| of(metric))
                .map(|metric| metric.value)
                .sum()
        };
        let (all, here) = (skips(self.step.metrics()), skips(self.step.execution_metrics()));
        say(&self.log, format!("{who}: {all} skips, {here} in this execution"));
    }
}

#[step_listener("Counts")]
impl Counts {
    #[before_step]
    fn before(&mut self) {}
    #[after_step]
    fn after(&mut self) {
        self.say("listener");
    }
}

#[derive(BatchArtifact)]
struct Asked {
    #[batch_property(name = "log")]
    log: String,
    #[batch_context]
    step: StepContext,
}

#[decider]
impl Asked {
    #[decide]
    fn decide(&mut self) -> String {
        let counts = Counts {
            log: self.log.clone(),
            step: self.step.clone(),
        };
        counts.say("decider");
        "ON".into()
    }
}

/// Fails as long as the parameter is set.
#[derive(BatchArtifact)]
struct Unless {
    #[batch_property(name = "fail", value = "no")]
    fail: String,
}

#[batchlet]
impl Unless {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        match self.fail.as_str() {
            "yes" => Err(BatchError::msg("not yet")),
            _ => Ok("DONE".into()),
        }
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

fn counters(stage: &Stage, execution: JobExecutionId) -> Vec<(String, u32, i64, i64, i64)> {
    let totals = stage.operator().step_totals(execution).unwrap();
    let counters = totals.iter().map(|total| {
        let counters = total.counters;
        (
            total.step_name.clone(),
            total.executions,
            counters.reads,
            counters.writes,
            counters.skips(),
        )
    });
    counters.collect()
}

/// Metrics, deciders and totals count the executions of the step since it last completed; the row of each has its own counters.
///
/// Spec: CTX-30, CHUNK-SKIP-06, D-95, OP-25
#[test]
fn counters_are_those_of_the_instance() {
    let stage = Stage::new(&xml());
    make_table(&stage);
    let failing = [
        ("faults", "process 2: Skip; process 4: Skip; read 6: Fatal x1"),
        ("items", "8"),
        ("fail", "yes"),
    ];
    let first = stage.start("job", failing);
    assert_eq!(
        stage.log().last().unwrap(),
        "listener: 2 skips, 2 in this execution"
    );
    assert_eq!(counters(&stage, first), [("copy".to_owned(), 1, 4, 2, 2)]);

    let faults = ("faults", "process 7: Skip");
    let second = restart_with(&stage, first, [faults, ("items", "8"), ("fail", "yes")]);
    let said: Vec<String> = stage
        .log()
        .into_iter()
        .filter(|said| said.contains("skips"))
        .collect();
    assert_eq!(
        said,
        [
            "listener: 3 skips, 1 in this execution",
            "decider: 3 skips, 1 in this execution"
        ]
    );
    let all = ("copy".to_owned(), 2, 8, 5, 3);
    assert_eq!(
        counters(&stage, second),
        [all.clone(), ("last".to_owned(), 1, 0, 0, 0)]
    );
    assert_eq!(counters(&stage, first), [("copy".to_owned(), 1, 4, 2, 2)]);

    // The step is complete; the decider is asked again.
    let third = restart_with(&stage, second, [faults, ("items", "8"), ("fail", "no")]);
    let said: Vec<String> = stage
        .log()
        .into_iter()
        .filter(|said| said.contains("skips"))
        .collect();
    assert_eq!(said, ["decider: 3 skips, 1 in this execution"]);
    assert_eq!(counters(&stage, third), [all, ("last".to_owned(), 2, 0, 0, 0)]);
    let ended = job_execution(&stage, third);
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
}

/// Reads its input from the start again, because it has no checkpoint.
#[derive(BatchArtifact)]
struct FromStart {
    next: u64,
}

#[item_reader]
impl FromStart {
    #[open]
    fn open(&mut self, _: Option<()>) {
        self.next = 1;
    }
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        let number = self.next;
        self.next += 1;
        (number <= 4).then_some(number)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// Rejects the first number, and cannot process the last one while the parameter is set.
#[derive(BatchArtifact)]
struct RejectsFirst {
    #[batch_property(name = "fail", value = "no")]
    fail: String,
}

#[item_processor]
impl RejectsFirst {
    #[process_item]
    fn process(&mut self, number: u64) -> Result<Option<u64>, Oops> {
        match number {
            1 => Err(Oops::Skip),
            4 if self.fail == "yes" => Err(Oops::Fatal),
            _ => Ok(Some(number)),
        }
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
    let ended = job_execution(&stage, execution);
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
}

/// Eight different numbers, so that none can stand in the column of another.
///
/// Spec: REPO-55, REPO-56, REPO-57, REPO-58, REPO-59, REPO-60
#[test]
fn each_counter_has_its_column() {
    let limits = r#"commit-interval="5" skip-limit="10" retry-limit="10""#;
    let stage = faulty_stage(&faulty_job("", "TableOut", limits, RULES));
    let faults = "read 3: Skip; process 5: Skip; process 6: Skip; has n8: @Skip; has n9: @Skip; has n16: @Skip; \
                  has n17: @Retry x5";
    let parameters = [("faults", faults), ("items", "30"), ("filter.every", "7")];
    stage.start("job", parameters);
    let columns = "SELECT READ_COUNT || ' ' || FILTER_COUNT || ' ' || WRITE_COUNT || ' ' || COMMIT_COUNT || ' ' || ROLLBACK_COUNT
        || ' ' || READ_SKIP_COUNT || ' ' || PROCESS_SKIP_COUNT || ' ' || WRITE_SKIP_COUNT AS text FROM BATCH_STEP_EXECUTION";
    assert_eq!(stage.outside().rows(columns), ["29 4 20 6 8 1 2 3"]);
}
