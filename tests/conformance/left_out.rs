//! Extensions of the draft: what an artifact may leave out.

use batch_runtime::BatchRuntime;
use batch_runtime::prelude::*;
use batch_tests::stage::say;
use insta::assert_snapshot;

use crate::artifacts::{assert_contains, job};
use crate::sequence::run;

/// A value without `Default`.
struct Limit(u64);

/// Reads one, two, three.
#[derive(BatchArtifact)]
struct ThreeNumbers {
    #[default(Limit(3))]
    limit: Limit,
    #[default(1 + 1 - 1)]
    next: u64,
}

#[item_reader]
impl ThreeNumbers {
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        let next = self.next;
        self.next += 1;
        (next <= self.limit.0).then_some(next)
    }
}

#[derive(BatchArtifact)]
struct Saying {
    #[batch_property(name = "log")]
    log: String,
}

#[item_writer]
impl Saying {
    #[open]
    fn open(&mut self) {
        say(&self.log, "open");
    }
    #[write_items]
    fn write(&mut self, items: &[u64]) {
        say(&self.log, format!("write {items:?}"));
    }
}

#[derive(BatchArtifact)]
struct Silent;

#[batchlet]
impl Silent {
    #[process]
    fn process(&self) {}
}

#[derive(BatchArtifact)]
struct Failing;

#[batchlet]
impl Failing {
    #[process]
    fn process(&self) -> Result<(), std::fmt::Error> {
        Err(std::fmt::Error)
    }
}

/// No open, no checkpoint, no processor, no cancel, no exit status; fields without `Default`.
///
/// Spec: ART-12, ART-13, BLET-13, D-03
#[test]
fn artifacts_leave_out_what_they_do_not_need() {
    let elements = r#"<step id="load" next="last"><chunk reader="ThreeNumbers" writer="Saying"/></step>
           <step id="last"><batchlet ref="Silent"/></step>"#;
    assert_snapshot!(run(elements), @r"
    job job COMPLETED
      step load COMPLETED read 3 write 3 commit 1
      step last COMPLETED
    open · write [1, 2, 3]
    ");
    assert_snapshot!(run(r#"<step id="one"><batchlet ref="Failing"/></step>"#), @r"
    job job FAILED | an error occurred when formatting an argument
        | thrown by #[process] of batchlet `Failing`
      step one FAILED | the job's message
    ");
}

/// A check reports both, and still passes where warnings are errors: the artifacts may be right.
///
/// Spec: ART-12
#[test]
fn a_check_reports_what_a_restart_cannot_know() {
    let folder = tempfile::tempdir().unwrap();
    let text = job(r#"<step id="load"><chunk reader="ThreeNumbers" writer="Saying"/></step>"#);
    std::fs::write(folder.path().join("job.xml"), text).unwrap();
    let builder = BatchRuntime::builder().job_path(folder.path().display().to_string());
    let report = builder.check([("log", "unused")]);
    let no_checkpoint = "warning[ART0026]: reader `ThreeNumbers` has no checkpoint: a restart reads its input from the beginning";
    assert_contains(&report, no_checkpoint);
    assert_contains(
        &report,
        "warning[ART0009]: writer `Saying` cannot know where its output ended",
    );
    assert!(report.deny_warnings().is_ok());
}
