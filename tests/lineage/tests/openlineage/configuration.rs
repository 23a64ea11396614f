//! The variables of the environment.

use std::fs;

use serde_json::Value;

use crate::program::Tracked;
use crate::schema;

const JOB: &str = r#"<step id="only"><batchlet ref="Task"/></step>"#;

/// Spec: LIN-01
#[test]
fn the_standard_variables_configure_it() {
    let tracked = Tracked::new(JOB);
    tracked.launch(
        0,
        &[
            ("OPENLINEAGE_ENDPOINT", "lineage/v2"),
            ("OPENLINEAGE_API_KEY", "abc"),
            ("OPENLINEAGE_NAMESPACE", "nightly"),
        ],
    );
    let events = tracked.receiver.events();
    assert_eq!(events.len(), 4);
    assert!(events.iter().all(|event| event["job"]["namespace"] == "nightly"));
    for head in tracked.receiver.heads() {
        assert!(head.starts_with("POST /lineage/v2 HTTP/1.1\r\n"), "{head}");
        let head = head.to_lowercase();
        assert!(head.contains("authorization: bearer abc\r\n"), "{head}");
        assert!(head.contains("content-type: application/json\r\n"), "{head}");
    }
}

/// Spec: LIN-01
#[test]
fn what_is_not_configured_is_not_sent() {
    for variable in [
        ("OPENLINEAGE_DISABLED", "true"),
        ("OPENLINEAGE_URL", ""),
        ("OPENLINEAGE__TRANSPORT__TYPE", "noop"),
    ] {
        let tracked = Tracked::new(JOB);
        tracked.launch(0, &[variable]);
        assert!(tracked.receiver.heads().is_empty(), "{variable:?}");
    }
}

/// The events of several processes are lines of one file.
///
/// Spec: LIN-01
#[test]
fn a_file_gets_the_events() {
    let tracked = Tracked::new(JOB);
    let variables = [
        ("OPENLINEAGE__TRANSPORT__TYPE", "file"),
        ("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", "lineage.json"),
    ];
    tracked.launch(0, &variables);
    let mut command = tracked.command(&["start", "job", "run=2"]);
    assert!(command.envs(variables).status().unwrap().success());
    let written = fs::read_to_string(tracked.path().join("lineage.json")).unwrap();
    let events: Vec<Value> = written
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.len(), 8);
    events.iter().for_each(schema::validate);
    assert!(tracked.receiver.heads().is_empty());
}

/// Spec: LIN-01, LIN-04
#[test]
fn what_is_ignored_is_reported() {
    for (variable, value, problem) in [
        (
            "OPENLINEAGE_URL",
            "not a url",
            "no lineage is sent: OPENLINEAGE_URL is not a valid URL",
        ),
        (
            "OPENLINEAGE_CONFIG",
            "openlineage.yml",
            "ignoring OPENLINEAGE_CONFIG: files of configuration are not supported; OPENLINEAGE_URL counts",
        ),
        (
            "OPENLINEAGE_PARENT_ID",
            "dag/task",
            "ignoring OPENLINEAGE_PARENT_ID=`dag/task`",
        ),
        (
            "OPENLINEAGE__TRANSPORT__TYPE",
            "kafka",
            "no lineage is sent: OPENLINEAGE__TRANSPORT__TYPE is `kafka`",
        ),
    ] {
        let tracked = Tracked::new(JOB);
        let error = tracked.launch(0, &[(variable, value)]);
        assert_eq!(error.matches(problem).count(), 1, "{variable}\n{error}");
    }
}
