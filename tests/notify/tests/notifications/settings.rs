//! Settings that are not valid.

use batch_tests::http::ACCEPTS;
use serde_json::Value;

use crate::program::{Notified, TASK};

/// All are reported at once, each with its line, and nothing starts.
///
/// Spec: NOTIFY-06
#[test]
fn mistakes_are_reported_before_anything_starts() {
    let notified = Notified::new(TASK, "", ACCEPTS);
    notified.write(
        "batch.toml",
        r#"[notify.none]
on = ["failed"]
[notify.both]
webhook = "https://example.com/token"
command = ["sh"]
on = ["failed"]
[notify.silent]
webhook = "https://example.com/token"
[notify.words]
webhook = "https://example.com/token"
on = ["faild", "never"]
jobs = "nightly"
retries = 3
[notify.signed]
command = ["sh"]
key = "env:KEY"
skipped-more-than = "many"
"#,
    );
    let (_, error) = notified.run(2, &["launch", "job", "then=complete"]);
    for problem in [
        "batch.toml:1: the notification target `none` has neither `webhook` nor `command`",
        "batch.toml:3: the notification target `both` has both `webhook` and `command`; make it two targets",
        "batch.toml:7: the notification target `silent` names no event; set `on` to some of completed, stopped, failed, taken-over, \
         overdue, heartbeat-missed, or `skipped-more-than`",
        "batch.toml:11: unknown event `faild`; did you mean `failed`?",
        "batch.toml:12: invalid value for `jobs`: expected a list of at least one string, such as [\"one\", \"two\"]",
        "batch.toml:13: unknown setting `retries` of a notification target; expected one of webhook, command, key, on, jobs, \
         skipped-more-than",
        "batch.toml:17: invalid value for `skipped-more-than`: expected a whole number",
    ] {
        assert!(error.contains(problem), "{problem}\n{error}");
    }
    assert!(!error.contains("token"), "{error}");
    assert!(!notified.path().join("batch.db").exists());
}

/// URLs, keys and secrets are checked by the commands that send.
///
/// Spec: NOTIFY-06
#[test]
fn channels_are_checked_before_a_job_starts() {
    let notified = Notified::new(TASK, "", ACCEPTS);
    notified.write(
        "batch.toml",
        r#"[notify.ftp]
webhook = "ftp://example.com/token"
on = ["failed"]
[notify.plain]
webhook = "https://example.com/token"
key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
on = ["failed"]
[notify.missing]
webhook = "env:NO_SUCH_URL"
on = ["failed"]
[notify.short]
webhook = "https://example.com/token"
key = "file:key"
on = ["failed"]
"#,
    );
    notified.write("key", "short\n");
    let (_, error) = notified.run(2, &["launch", "job", "then=complete"]);
    for problem in [
        "batch.toml:1: the notification target `ftp`: the URL of the webhook does not begin with `https://` or `http://`",
        "batch.toml:4: the notification target `plain`: its `key` is not a reference; write the key into an environment variable or a file, \
         and set `key` to `env:NAME` or `file:PATH`",
        "batch.toml:8: the notification target `missing`: cannot read the secret env:NO_SUCH_URL: the environment variable is not set",
        "batch.toml:11: the notification target `short`: the key has fewer than 16 bytes; create one by `openssl rand -base64 24`, and \
         write `whsec_` before it",
    ] {
        assert!(error.contains(problem), "{problem}\n{error}");
    }
    assert!(!error.contains("token") && !error.contains("MfKQ"), "{error}");
    assert!(!notified.path().join("batch.db").exists());
}

const UNUSABLE: &str = r#"[notify.both]
webhook = "ftp://example.com/token"
key = "env:NO_SUCH_KEY"
on = ["failed"]
[notify.short]
webhook = "https://example.com/token"
key = "file:key"
on = ["failed"]
jobs = ["jobb", "j*", "night-?"]
[notify." spaced"]
command = ["sh"]
on = ["failed"]
"#;

/// `check` finds what a launch would, all at once, together with the mistakes of jobs.
///
/// Spec: NOTIFY-06, NOTIFY-09
#[test]
fn a_check_includes_the_targets() {
    let notified = Notified::new(&TASK.replace("Task", "Taks"), "", ACCEPTS);
    notified.write("batch.toml", UNUSABLE);
    notified.write(
        "key", "short
",
    );
    let (_, error) = notified.run(2, &["check"]);
    for problem in [
        "error: batch.toml:1: the notification target `both`: the URL of the webhook does not begin with `https://` or `http://`",
        "error: batch.toml:1: the notification target `both`: cannot read the secret env:NO_SUCH_KEY: the environment variable is not set",
        "error: batch.toml:5: the notification target `short`: the key has fewer than 16 bytes",
        "warning: batch.toml:5: the notification target `short`: no job matches `jobb`; did you mean `job`?",
        "warning: batch.toml:5: the notification target `short`: no job matches `night-?`; `check` lists the jobs",
        "error: invalid name ` spaced` of a notification target",
        "unknown batchlet `Taks`",
    ] {
        assert_eq!(error.matches(problem).count(), 1, "{problem}\n{error}");
    }
    assert!(!error.contains("`j*`") && !error.contains("token"), "{error}");
    let (out, _) = notified.run(2, &["check", "job", "--json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    let report = json[0]["report"].as_str().unwrap();
    assert!(
        report
            .lines()
            .all(|line| line.starts_with("error: ") || line.starts_with("warning: ")),
        "{report}"
    );
    let severities: Vec<_> = json[0]["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["severity"].as_str().unwrap())
        .collect();
    assert_eq!(severities, ["error", "error", "error", "warning", "warning"]);
    assert_eq!(
        (&json[0]["job"], &json[0]["right"]),
        (&Value::Null, &Value::Bool(false))
    );
}

/// A pattern of jobs that matches none is a warning, which `check` can deny.
///
/// Spec: NOTIFY-09
#[test]
fn a_pattern_that_matches_no_job_is_a_warning() {
    let notified = Notified::new(
        TASK,
        r#"on = ["completed"]
jobs = ["jobb", "j*"]"#,
        ACCEPTS,
    );
    let warning =
        "warning: batch.toml:1: the notification target `ops`: no job matches `jobb`; did you mean `job`?
";
    let (_, error) = notified.run(0, &["launch", "job"]);
    assert_eq!(error.matches(warning).count(), 1, "{error}");
    assert!(!error.contains("j*"), "{error}");
    assert_eq!(notified.receiver.received().len(), 1);
    let (out, error) = notified.run(0, &["check"]);
    assert!(error == warning && out.starts_with("job: ok\n"), "{error}{out}");
    notified.run(2, &["check", "--deny-warnings"]);
    // It runs no job.
    let (_, error) = notified.run(0, &["executions"]);
    assert_eq!(error, "");
}

/// `config show` reports whether keys are there, and shows none.
///
/// Spec: NOTIFY-06
#[test]
fn the_settings_show_whether_keys_are_there() {
    let notified = Notified::new(TASK, "", ACCEPTS);
    let plain = r#"[notify.plain]
webhook = "https://example.com/token"
key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
on = ["failed"]
"#;
    notified.write("batch.toml", &format!("{UNUSABLE}{plain}"));
    notified.write(
        "key",
        "secret-key
",
    );
    let (out, _) = notified.run(0, &["config", "show"]);
    for (target, shown) in [
        ("both", "webhook, signed (key not found): failed"),
        (
            "short",
            "webhook, signed (key found): failed of jobb, j*, night-?",
        ),
        ("plain", "webhook, signed (key not found): failed"),
    ] {
        let line = out
            .lines()
            .find(|line| line.starts_with(&format!("notify.{target} ")))
            .unwrap();
        assert!(line.contains(shown), "{line}");
    }
    for secret in ["token", "MfKQ", "secret-key"] {
        assert!(!out.contains(secret), "{out}");
    }
}

/// Spec: NOTIFY-07
#[test]
fn a_deadline_that_cannot_be_read_is_an_error() {
    let property = r#"<properties><property name="batch.job.deadline" value="6 o'clock"/></properties>"#;
    let job = TASK.replacen("<step", &format!("{property}<step"), 1);
    let notified = Notified::new(&job, r#"on = ["overdue"]"#, ACCEPTS);
    let (_, error) = notified.run(2, &["launch", "job", "then=complete"]);
    assert!(
        error.contains(r#"invalid value "6 o'clock" for `batch.job.deadline`"#),
        "{error}"
    );
    assert!(
        error.contains("expected a number of seconds, a time of day such as `06:00`"),
        "{error}"
    );
}
