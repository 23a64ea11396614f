//! The end of a job in the dialect of Jakarta Batch: exit statuses of transition elements, and what job listeners see of them.

use std::fs;
use std::sync::Mutex;

use batch_runtime::prelude::*;
use batch_testing::JobTest;

#[batchlet("DoNothing")]
fn do_nothing() -> String {
    "NOTHING".into()
}

/// Keeps the exit status that it sees after the job, and sets its own.
#[derive(BatchArtifact)]
struct LastWord {
    #[batch_property(name = "say")]
    say: Option<String>,
    #[batch_context]
    job: JobContext,
}

static SEEN: Mutex<Vec<Option<String>>> = Mutex::new(Vec::new());

#[job_listener("LastWord")]
impl LastWord {
    #[after_job]
    fn after(&mut self) {
        SEEN.lock().unwrap().push(self.job.exit_status());
        if let Some(say) = &self.say {
            self.job.set_exit_status(Some(say));
        }
    }
}

/// Runs a job that ends with `end`, and returns the exit status that its listener sees and the job's exit status.
fn ended(namespace: &str, say: &str, end: &str) -> (Option<String>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("job.xml");
    let listener =
        format!("<listeners><listener ref='LastWord'><properties>{say}</properties></listener></listeners>");
    let step = format!("<step id='s'><batchlet ref='DoNothing'/>{end}</step>");
    fs::write(&file, format!("<job id='j' {namespace}>{listener}{step}</job>")).unwrap();
    let run = JobTest::new(file).launch();
    let seen = SEEN.lock().unwrap().pop().unwrap();
    (seen, run.execution().exit_status.clone())
}

/// In the draft, the element has the last word; in Jakarta Batch, the listener has it.
///
/// Spec: STATUS-20, JAK-44
#[test]
fn a_job_listener_sees_and_replaces_the_exit_status_of_the_end() {
    let jakarta = "version='2.0' xmlns='https://jakarta.ee/xml/ns/jakartaee'";
    let say = "<property name='say' value='TUNED'/>";
    let status = |seen: Option<&str>, job: &str| (seen.map(str::to_owned), job.to_owned());
    for element in ["end", "stop", "fail"] {
        let with = format!("<{element} on='*' exit-status='DONE'/>");
        let without = format!("<{element} on='*'/>");
        for (namespace, say, end, seen, exit) in [
            (jakarta, "", &with, Some("DONE"), "DONE"),
            (jakarta, say, &with, Some("DONE"), "TUNED"),
            ("", say, &with, None, "DONE"),
            (jakarta, say, &without, None, "TUNED"),
        ] {
            assert_eq!(ended(namespace, say, end), status(seen, exit), "{end}");
        }
    }
}
