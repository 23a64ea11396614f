//! Collectors that cannot be reached, hang or reject: the job does not notice.

use std::net::TcpListener;

use batch_tests::http::Manner;
use batch_tests::process;

use crate::program::Traced;

const JOB: &str = r#"<job id="job"><step id="load">
  <chunk reader="Numbers" processor="Choosy" writer="Moody" commit-interval="2"/>
</step></job>"#;

/// Returns the warnings, without what depends on the machine.
fn warnings(error: &str) -> Vec<&str> {
    let warnings = error
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("WARN "));
    warnings.collect()
}

/// One warning for each signal, for any number of requests.
///
/// Spec: OTEL-09
#[test]
fn a_collector_that_cannot_be_reached_is_a_warning() {
    let traced = Traced::new(JOB);
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let endpoint = format!("http://user:secret@127.0.0.1:{port}");
    let error = traced.launch(
        0,
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            ("OTEL_BSP_SCHEDULE_DELAY", "1"),
        ],
    );
    let warnings = warnings(&error);
    for signal in ["traces", "metrics", "logs"] {
        let start = format!(
            "cannot send {signal} to the OpenTelemetry collector at http://127.0.0.1:{port}/v1/{signal}: "
        );
        let found = warnings.iter().filter(|line| line.starts_with(&start)).count();
        // Logs are sent only if there are some: the warnings of the others are not.
        assert!(
            found == 1 || (signal == "logs" && found == 0),
            "{signal}\n{error}"
        );
    }
    assert!(!error.contains("secret"), "{error}");
    assert!(!error.contains("ERROR"), "{error}");
}

/// The process ends although no response comes: neither the job nor its result waits.
///
/// Spec: OTEL-08, OTEL-09
#[test]
fn a_collector_that_hangs_delays_only_the_end() {
    let traced = Traced::with(JOB, Manner::Hangs);
    // Longer than any test: the process does not wait for its own requests.
    let error = traced.launch(0, &[("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000")]);
    assert!(
        warnings(&error).contains(&"not all traces could be sent in 5s; the rest is lost"),
        "{error}"
    );
    assert!(
        traced
            .receiver
            .received()
            .heads
            .iter()
            .any(|head| head.starts_with("post /v1/traces"))
    );
}

/// Spec: OTEL-09
#[test]
fn a_collector_that_rejects_is_a_warning() {
    let traced = Traced::with(JOB, Manner::Responds(401));
    let error = traced.launch(0, &[]);
    let rejected =
        |line: &&str| line.contains("cannot send traces") && line.contains("it responds 401 Unauthorized");
    assert_eq!(
        warnings(&error).iter().filter(|line| rejected(line)).count(),
        1,
        "{error}"
    );
}

/// The exit code of a failed job is its own.
///
/// Spec: OTEL-09
#[test]
fn a_failed_job_fails_as_without_telemetry() {
    let job = r#"<job id="job"><step id="only">
      <batchlet ref="Task"><properties><property name="then" value="no"/></properties></batchlet>
    </step></job>"#;
    let traced = Traced::with(job, Manner::Hangs);
    let mut command = traced.command(&["launch", "job"]);
    command.env("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000");
    process::ended(1, &command.output().unwrap());
}
