//! What happens to the spool of an upload, and to the object, while the step runs or between two launches.

use std::fs;
use std::path::{Path, PathBuf};

use batch_runtime::BatchStatus;
use batch_test_servers::ObjectServer;

use super::disturbance::{self, ACTIONS};
use super::proxy::Proxy;
use super::stage::{Ended, Stage};
use super::writing;

/// Returns the file that is spooled. What was moved aside has an extension.
fn part(spool: &Path) -> PathBuf {
    let entries = fs::read_dir(spool).unwrap().map(|entry| entry.unwrap().path());
    let mut folders = entries.filter(|path| path.extension().is_none());
    folders.next().unwrap().join("out.part")
}

pub(crate) fn happen(action: &str, spool: &Path) -> std::io::Result<()> {
    match action {
        "fail" => disturbance::happen(action, spool),
        _ => disturbance::happen(action, &part(spool)),
    }
}

fn stage(bucket: &str, proxy: &Proxy) -> Stage {
    let stage = writing(&format!("output=s3://{bucket}/out"), proxy);
    stage.write(
        "in",
        (1..=20).map(|number| format!("{number}\n")).collect::<String>(),
    );
    stage
}

/// Launches a job until it is complete. Returns the message of a wrong end.
fn end(stage: &Stage, action: &str, runs: bool) -> Result<(), String> {
    let spool = stage.path().join("spool");
    let mut ended = stage.start([("fail.at", "14"), ("do", if runs { action } else { "fail" })]);
    let part = part(&spool);
    let again = |ended: &Ended| stage.restart(ended, [("fail.at", "0")]);
    if !runs {
        happen(action, &spool).unwrap();
        ended = again(&ended);
    }
    for _ in 0..2 {
        if ended.status == BatchStatus::Failed {
            let is_named = ended.message.contains("/out");
            assert!(is_named, "{action}: {}", ended.message);
            ended = again(&ended);
        }
    }
    if ended.status == BatchStatus::Failed {
        disturbance::undo(action, &part);
        ended = again(&ended);
    }
    match ended.status {
        BatchStatus::Completed => Ok(()),
        _ => Err(ended.message),
    }
}

/// Whatever happens to the spool, the step fails and names the object, and the same launch ends exact when the file is back; or it ends
/// exact.
///
/// Spec: LOSS-01
#[test]
fn nothing_that_happens_to_the_spool_loses_items() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    let expected: String = (1..=20).map(|number| format!("{number}\n")).collect();
    for (action, runs) in ACTIONS
        .iter()
        .flat_map(|action| [(*action, true), (*action, false)])
    {
        let bucket = server.new_bucket();
        let stage = stage(&bucket, &proxy);
        let case = format!("{action}, while it runs: {runs}");
        let end = end(&stage, action, runs);
        assert_eq!(end, Ok(()), "{case}");
        let object = server.get(&format!("{bucket}/out")).unwrap();
        assert!(object == expected.as_bytes(), "{case}");
        assert_eq!(server.keys(&bucket), ["out"], "{case}");
    }
}

/// An object that appears, is replaced or deleted between two launches is replaced at the end, whole.
///
/// Spec: LOSS-01
#[test]
fn what_happens_to_the_object_changes_nothing() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    let expected: String = (1..=20).map(|number| format!("{number}\n")).collect();
    for (before, between) in [
        (None, Some("other")),
        (Some("old"), Some("other")),
        (Some("old"), None),
    ] {
        let bucket = server.new_bucket();
        let key = format!("{bucket}/out");
        let stage = stage(&bucket, &proxy);
        before.into_iter().for_each(|content| server.put(&key, content));
        let failed = stage.start([("fail.at", "14")]);
        assert_eq!(server.get(&key).as_deref(), before.map(str::as_bytes));
        match between {
            Some(content) => server.put(&key, content),
            None => server.delete(&key),
        }
        let again = stage.restart(&failed, [("fail.at", "0")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        assert!(
            server.get(&key).unwrap() == expected.as_bytes(),
            "{before:?} {between:?}"
        );
    }
}
