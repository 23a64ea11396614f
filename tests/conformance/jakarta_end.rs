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
    (
        SEEN.lock().unwrap().pop().unwrap(),
        run.execution().exit_status.clone(),
    )
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
        assert_eq!(
            ended(jakarta, "", &with),
            status(Some("DONE"), "DONE"),
            "{element}"
        );
        assert_eq!(
            ended(jakarta, say, &with),
            status(Some("DONE"), "TUNED"),
            "{element}"
        );
        assert_eq!(ended("", say, &with), status(None, "DONE"), "{element}");
        let without = format!("<{element} on='*'/>");
        assert_eq!(ended(jakarta, say, &without), status(None, "TUNED"), "{element}");
    }
}
