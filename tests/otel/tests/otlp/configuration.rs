//! The variables of the environment.

use batch_tests::process;

use crate::program::Traced;
use crate::receiver::Receiver;
use crate::tree::attribute;

const JOB: &str = r#"<job id="job"><step id="only"><batchlet ref="Task"/></step></job>"#;

/// Spec: OTEL-01
#[test]
fn the_standard_variables_configure_it() {
    let traced = Traced::new(JOB);
    traced.launch(
        0,
        &[
            ("OTEL_SERVICE_NAME", "nightly"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ],
    );
    let received = traced.receiver.received();
    assert!(!received.spans().is_empty() && !received.last_metrics().is_empty());
    for head in &received.heads {
        assert!(head.contains("authorization: bearer abc\r\n"), "{head}");
        assert!(head.contains("content-encoding: gzip\r\n"), "{head}");
    }
    for resource in received.resources() {
        let value = |name| attribute(&resource.attributes, name);
        assert_eq!(value("service.name").as_deref(), Some("nightly"));
        assert_eq!(value("deployment.environment.name").as_deref(), Some("test"));
        assert_eq!(value("telemetry.sdk.language").as_deref(), Some("rust"));
    }
}

/// A collector with a certificate of a private authority is trusted if that is configured, and only then.
///
/// Spec: OTEL-01
#[test]
fn the_certificate_of_the_collector_is_checked() {
    let traced = Traced::to(JOB, Receiver::with_tls());
    let error = traced.launch(0, &[]);
    assert!(
        error.contains("cannot send traces to the OpenTelemetry collector at https://127.0.0.1:"),
        "{error}"
    );
    assert!(traced.receiver.received().spans().is_empty());
    std::fs::write(traced.path().join("ca.pem"), include_bytes!("tls/ca.pem")).unwrap();
    let mut command = traced.command(&["start", "job"]);
    let output = command
        .env("OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem")
        .output()
        .unwrap();
    let (_, error) = process::ended(0, &output);
    assert_eq!(traced.receiver.received().spans().len(), 2, "{error}");
}

/// Spec: OTEL-01
#[test]
fn the_program_is_the_service_by_default() {
    let traced = Traced::new(JOB);
    traced.launch(0, &[]);
    let received = traced.receiver.received();
    let name = attribute(
        &received.traces[0].resource.as_ref().unwrap().attributes,
        "service.name",
    );
    assert_eq!(name.as_deref(), Some("traced"));
}

/// Spec: OTEL-01
#[test]
fn what_is_not_configured_is_not_sent() {
    for (variables, signals) in [
        (&[("OTEL_SDK_DISABLED", "true")][..], ""),
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")], ""),
        (
            &[("OTEL_METRICS_EXPORTER", "none"), ("OTEL_LOGS_EXPORTER", "none")],
            "traces",
        ),
        (
            &[("OTEL_TRACES_EXPORTER", "none"), ("OTEL_LOGS_EXPORTER", "none")],
            "metrics",
        ),
    ] {
        let traced = Traced::new(JOB);
        traced.launch(0, variables);
        let heads = traced.receiver.received().heads.clone();
        let paths = heads.iter().map(|head| head.split_whitespace().nth(1).unwrap());
        let mut paths: Vec<_> = paths.map(|path| path.trim_start_matches("/v1/")).collect();
        paths.dedup();
        assert_eq!(paths.join(" "), signals, "{variables:?}");
        assert_eq!(
            traced.stored_trace(1).is_empty(),
            signals != "traces",
            "{variables:?}"
        );
    }
}

/// A job that the sampler leaves out still has an identity, for its restarts and workers.
///
/// Spec: OTEL-01
#[test]
fn the_sampler_decides() {
    let traced = Traced::new(JOB);
    traced.launch(0, &[("OTEL_TRACES_SAMPLER", "always_off")]);
    assert!(traced.receiver.received().spans().is_empty());
    assert!(
        traced.stored_trace(1).ends_with("-00"),
        "{}",
        traced.stored_trace(1)
    );
    let unsampled = Traced::new(JOB);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    unsampled.launch(0, &[("TRACEPARENT", parent)]);
    assert!(unsampled.receiver.received().spans().is_empty());
    assert!(
        unsampled
            .stored_trace(1)
            .starts_with("00-0af7651916cd43dd8448eb211c80319c-")
    );
}

/// Spec: OTEL-01
#[test]
fn what_cannot_be_sent_is_reported() {
    let traced = Traced::new(JOB);
    for (variable, value, problem) in [
        (
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "grpc",
            "no traces are sent: OTEL_EXPORTER_OTLP_PROTOCOL is `grpc`",
        ),
        (
            "OTEL_TRACES_EXPORTER",
            "zipkin",
            "ignoring OTEL_TRACES_EXPORTER=`zipkin`",
        ),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "not a url", "no traces are sent: "),
        (
            "OTEL_EXPORTER_OTLP_CLIENT_KEY",
            "key.pem",
            "ignoring OTEL_EXPORTER_OTLP_CLIENT_KEY: client certificates are not supported",
        ),
        (
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
            "missing.pem",
            "cannot read OTEL_EXPORTER_OTLP_CERTIFICATE=`missing.pem`",
        ),
    ] {
        let mut command = traced.command(&["start", "job"]);
        let output = command.env(variable, value).output().unwrap();
        let (_, error) = process::ended(0, &output);
        assert!(error.contains(problem), "{variable}\n{error}");
    }
}
