//! Metrics and logs, over the same endpoint.

use std::collections::BTreeMap;

use batch_tests::process;
use insta::assert_snapshot;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric::Data, number_data_point};

use crate::program::Traced;
use crate::tree::{attribute, hex};

const JOB: &str = r#"<job id="job"><step id="load">
  <properties><property name="refused" value="2"/></properties>
  <chunk reader="Numbers" processor="Choosy" writer="Moody" commit-interval="2" skip-limit="1">
    <skippable-exception-classes><include class="Refused"/></skippable-exception-classes>
  </chunk>
</step></job>"#;

/// Returns the series of metrics: their values, of histograms the number of values.
fn series(metrics: &[Metric]) -> String {
    let mut all = BTreeMap::new();
    for metric in metrics {
        let points: Vec<_> = match metric.data.as_ref().unwrap() {
            Data::Gauge(gauge) => gauge
                .data_points
                .iter()
                .map(|point| (&point.attributes, number(point.value)))
                .collect(),
            Data::Sum(sum) => sum
                .data_points
                .iter()
                .map(|point| (&point.attributes, number(point.value)))
                .collect(),
            Data::Histogram(histogram) => {
                let points = histogram.data_points.iter();
                points
                    .map(|point| (&point.attributes, format!("{} values", point.count)))
                    .collect()
            }
            other => panic!("{other:?}"),
        };
        for (attributes, value) in points {
            let label = |name| attribute(attributes, name).unwrap_or_default();
            let labels = format!("{} {} {}", label("job"), label("step"), label("status"));
            all.insert(format!("{} [{}] {labels}", metric.name, metric.unit), value);
        }
    }
    let lines: Vec<_> = all
        .iter()
        .map(|(series, value)| format!("{series}: {value}"))
        .collect();
    lines.join("\n")
}

fn number(value: Option<number_data_point::Value>) -> String {
    match value.unwrap() {
        number_data_point::Value::AsDouble(value) => value.to_string(),
        number_data_point::Value::AsInt(value) => value.to_string(),
    }
}

/// The endpoint for Prometheus has the same instruments at the same time.
///
/// Spec: OTEL-06
#[test]
fn metrics_are_those_of_the_runtime() {
    let traced = Traced::new(JOB);
    let output = traced
        .command(&["launch", "job", "--metrics-port", "0"])
        .output()
        .unwrap();
    process::ended(0, &output);
    let with_endpoint = series(&traced.receiver.received().last_metrics());
    assert_snapshot!(with_endpoint, @r#"
    spring.batch.chunk.write [s] job load SUCCESS: 3 values
    spring.batch.item.process [] job load FILTERED: 0
    spring.batch.item.process [] job load SKIPPED: 1
    spring.batch.item.process [] job load SUCCESS: 4
    spring.batch.item.read [] job load SKIPPED: 0
    spring.batch.item.read [] job load SUCCESS: 5
    spring.batch.item.write [] job load SKIPPED: 0
    spring.batch.item.write [] job load SUCCESS: 4
    spring.batch.job [s] job  COMPLETED: 1 values
    spring.batch.job.active [] job  : 0
    spring.batch.job.launch.count [] job  : 1
    spring.batch.step [s] job load COMPLETED: 1 values
    spring.batch.step.active [] job load : 0
    "#);
    let other = Traced::new(JOB);
    other.launch(0, &[]);
    assert_eq!(series(&other.receiver.received().last_metrics()), with_endpoint);
}

/// Log records of a job and its steps belong to their spans.
///
/// Spec: OTEL-07
#[test]
fn log_records_belong_to_their_spans() {
    let traced = Traced::new(JOB);
    traced.launch(0, &[("BATCH_LOG", "info")]);
    let received = traced.receiver.received();
    let span_of = |name: &str| {
        let spans = received.spans();
        let span = spans.iter().find(|span| span.name == name).unwrap();
        (hex(&span.trace_id), hex(&span.span_id))
    };
    let mut found = Vec::new();
    for record in received.records() {
        let Some(Value::StringValue(body)) = record.body.unwrap().value else {
            panic!("a body that is no text");
        };
        if ["job started", "step started", "step ended", "job ended"].contains(&&*body) {
            let name = if body.starts_with("job") {
                "job job"
            } else {
                "step load"
            };
            assert_eq!(
                (hex(&record.trace_id), hex(&record.span_id)),
                span_of(name),
                "{body}"
            );
            assert_eq!(record.severity_text, "INFO");
            assert_eq!(attribute(&record.attributes, "execution").as_deref(), Some("1"));
            found.push(body);
        }
    }
    assert_eq!(found, ["job started", "step started", "step ended", "job ended"]);
}
