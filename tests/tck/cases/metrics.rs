//! `MetricsTests`.

use batch_runtime::BatchStatus::Completed;
use batch_runtime::Timestamp;
use batch_runtime::execution::MetricName;

use crate::case::{Case, case};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = counts();
    cases.extend(times());
    cases
}

fn counts() -> Vec<Case> {
    vec![
        case("MetricsTests.testMetricsInApp", "testChunkMetrics")
            .start(
                "execution.number=1, readrecord.fail=40, app.arraysize=30, app.chunksize=7, app.commitinterval=10, \
                 numberOfSkips=0, ReadProcessWrite=READ, app.writepoints=0,7,14,21,28,30, \
                 app.next.writepoints=7,14,21,28,30",
            )
            .ends(Completed, "GOOD READ METRICS RESULT"),
        case("MetricsTests.testMetricsSkipRead", "testMetricsSkipCount")
            .start(
                "execution.number=1, readrecord.fail=1,3,4,12, app.arraysize=30, numberOfSkips=4, \
                 ReadProcessWrite=READ_SKIP",
            )
            .ends(Completed, "GOOD READ METRICS RESULT")
            .metric(MetricName::ReadSkipCount, 4),
        case("MetricsTests.testMetricsSkipWrite", "testMetricsSkipWriteCount")
            .start(
                "execution.number=1, writerecord.fail=1,3,4, app.arraysize=30, numberOfSkips=3, \
                 ReadProcessWrite=WRITE_SKIP",
            )
            .is(Completed)
            .metric(MetricName::WriteSkipCount, 3),
        case("MetricsTests.testMetricsSkipProcess", "testMetricsSkipCount")
            .start(
                "execution.number=1, processrecord.fail=7,13, app.arraysize=30, numberOfSkips=2, \
                 ReadProcessWrite=PROCESS",
            )
            .ends(Completed, "GOOD PROCESS METRICS RESULT")
            .metric(MetricName::ProcessSkipCount, 2),
        case("MetricsTests.testReadMetric", "testMetricCount")
            .start("execution.number=1, readrecord.fail=-1, app.arraysize=30")
            .is(Completed)
            .metric(MetricName::ReadCount, 9),
        case("MetricsTests.testWriteMetric", "testMetricCount")
            .start("")
            .is(Completed)
            .metric(MetricName::WriteCount, 9),
        case("MetricsTests.testMetricsFilterCount", "testMetricsFilterCount")
            .start("app.processFilterItem=3")
            .is(Completed)
            .metric(MetricName::FilterCount, 1),
        case("MetricsTests.testMetricsCommitCount", "testMetricsCommitCount")
            .start("app.processFilterItem=3")
            .is(Completed)
            .metric(MetricName::CommitCount, 4),
    ]
}

fn times() -> Vec<Case> {
    vec![
        case("MetricsTests.testMetricsStepTimestamps", "testMetricsCommitCount")
            .start("app.processFilterItem=3")
            .is(Completed)
            .check("the step starts before it ends", |run| {
                let step = run.steps()?.remove(0);
                ordered(&[Some(run.begin), Some(step.started), step.ended])
            }),
        case(
            "MetricsTests.testMetricsJobExecutionTimestamps",
            "testMetricsCommitCount",
        )
        .start("app.processFilterItem=3")
        .is(Completed)
        .check("the job is created before it starts and ends", |run| {
            let execution = run.execution()?;
            ordered(&[
                Some(run.begin),
                Some(execution.created),
                execution.started,
                execution.ended,
            ])?;
            ordered(&[execution.started, Some(execution.last_updated)])
        }),
    ]
}

/// Checks that each time is later than the one before, with one second of tolerance.
fn ordered(times: &[Option<Timestamp>]) -> Result<(), String> {
    let times: Option<Vec<Timestamp>> = times.iter().copied().collect();
    let times = times.ok_or("a time is not set")?;
    let is_ordered = |pair: &[Timestamp]| pair[0].millis_since(pair[1]) <= 1000;
    match times.windows(2).all(is_ordered) {
        true => Ok(()),
        false => Err(format!("not in order: {times:?}")),
    }
}
