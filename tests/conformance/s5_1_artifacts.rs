//! 5.1: artifacts in general: names, instances, checkpoints, bad behaviour.

use batch_runtime::prelude::*;
use batch_tests::stage::{Stage, say};
use insta::assert_snapshot;

use super::artifacts::{
    assert_completed, assert_contains, first_step_execution, job, refused, restart_with, started, story,
};

/// Counts its own calls.
#[derive(BatchArtifact)]
struct Fresh {
    #[batch_property(name = "log")]
    log: String,
    calls: std::sync::atomic::AtomicU32,
}

#[batchlet("Fresh")]
impl Fresh {
    #[process]
    fn process(&self) -> String {
        let calls = self.calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        say(&self.log, format!("call {calls} of this instance"));
        "DONE".into()
    }
}

/// Each `ref` has its own instance, created for one step execution by the `Default` of its fields.
///
/// Spec: ART-08, ART-10, LOADER-18, LOADER-01
#[test]
fn each_ref_has_an_instance_of_its_own() {
    let stage = Stage::new(&job(
        r#"<step id="one" next="two"><batchlet ref="Fresh"/></step><step id="two"><batchlet ref="Fresh"/></step>"#,
    ));
    stage.start("job", ());
    stage.start("job", ());
    assert_eq!(stage.log(), ["call 1 of this instance"; 4]);
}

mod named {
    use batch_runtime::prelude::*;

    /// Has no declared name.
    #[derive(BatchArtifact)]
    struct ByItsType {}

    #[batchlet]
    impl ByItsType {
        #[process]
        fn process(&self) -> String {
            "BY TYPE".into()
        }
    }

    /// Has a name other than its type's.
    #[derive(BatchArtifact)]
    struct WithAName {}

    #[batchlet("by its name")]
    impl WithAName {
        #[process]
        fn process(&self) -> String {
            "BY NAME".into()
        }
    }
}

/// An artifact is found by the name in its annotation, by its type's name if it has none, and by the full path.
///
/// Spec: ART-01, ART-02, LOADER-09, LOADER-16, BLET-01
#[test]
fn artifacts_are_found_by_name_type_and_path() {
    let stage = Stage::new(&job(r#"<step id="one"><batchlet ref="${ref}"/></step>"#));
    for (name, result) in [
        ("ByItsType", "BY TYPE"),
        ("by its name", "BY NAME"),
        ("conformance::s5_1_artifacts::named::ByItsType", "BY TYPE"),
        ("conformance::s5_1_artifacts::named::WithAName", "BY NAME"),
    ] {
        let execution = stage.start("job", [("ref", name)]);
        assert_eq!(first_step_execution(&stage, execution).exit_status, result);
    }
    let error = refused(&stage, "job", [("ref", "WithAName")]);
    assert_contains(&error, "unknown batchlet `WithAName`");
}

// Readers that differ in the type of their checkpoint.
macro_rules! readers {
    ($($name:ident: $checkpoint:ty = $value:expr;)*) => {$(
        #[derive(BatchArtifact)]
        struct $name {
            #[batch_property(name = "log")]
            log: String,
            #[batch_property(name = "fail.at", value = "0")]
            fail_at: u32,
            read: u32,
        }

        #[item_reader]
        impl $name {
            #[open]
            fn open(&mut self, checkpoint: Option<$checkpoint>) {
                say(&self.log, format!("open {checkpoint:?}"));
            }
            #[read_item]
            fn read(&mut self) -> Result<Option<u64>, BatchError> {
                self.read += 1;
                if self.read == self.fail_at {
                    return Err(BatchError::msg("cannot read"));
                }
                Ok((self.read <= 3).then_some(1))
            }
            #[get_checkpoint_info]
            fn checkpoint(&mut self) -> $checkpoint {
                $value
            }
        }
    )*};
}

readers! {
    NumberedReader: u32 = 7;
    NamedReader: String = "seven".into();
    StructuredReader: (Vec<String>, Option<f64>) = (vec!["é\"\\\n".into()], Some(0.1));
}

const READS: &str = r#"<step id="one"><chunk reader="${reader}" processor="Labels" writer="Lines" commit-interval="2"/></step>"#;

/// A checkpoint of another type than the reader's fails the step; it never starts from the beginning instead.
///
/// Spec: READ-10, READ-04, RESTART-07, STATUS-27
#[test]
fn a_checkpoint_of_another_type_fails_the_step() {
    let (stage, execution) = started(READS, [("reader", "NumberedReader"), ("fail.at", "3")]);
    stage.log();
    let again = restart_with(&stage, execution, [("reader", "NamedReader"), ("fail.at", "0")]);
    assert_snapshot!(story(&stage, again), @r"
    job job FAILED
        | the checkpoint cannot be read as `alloc::string::String`: invalid type: integer `7`, expected a string at line 1 column 1
        | thrown by #[open] of item reader `NamedReader`
      step one FAILED | the job's message
    ");
    // Nothing is lost: with the reader of that checkpoint the step resumes.
    let last = restart_with(&stage, again, [("fail.at", "0")]);
    assert_eq!(stage.log()[0], "open Some(7)");
    assert_completed(&stage, last);
}

/// Any serde type can be a checkpoint, and is restored unchanged.
///
/// Spec: READ-04, READ-08, READ-09
#[test]
fn a_checkpoint_is_restored_unchanged() {
    let (stage, execution) = started(READS, [("reader", "StructuredReader"), ("fail.at", "3")]);
    stage.log();
    restart_with(&stage, execution, [("fail.at", "0")]);
    assert_eq!(stage.log()[0], r#"open Some((["é\"\\\n"], Some(0.1)))"#);
}

/// Takes its items by value, and returns items of another type.
#[item_processor("Halves")]
fn halves(item: u64) -> Option<f64> {
    Some(item as f64 / 2.0)
}

/// Writes numbers.
#[derive(BatchArtifact)]
struct Floats {
    #[batch_property(name = "log")]
    log: String,
}

#[item_writer(value = "Floats")]
impl Floats {
    #[write_items]
    fn write(&mut self, items: &[f64]) {
        say(&self.log, format!("{items:?}"));
    }
}

/// Spec: PROC-02, PROC-03, WRITE-01, WRITE-06, WRITE-07, ART-02, ART-06
#[test]
fn input_and_output_of_a_processor_may_differ() {
    let stage = Stage::new(&job(
        r#"<step id="one"><chunk reader="NumberedReader" processor="Halves" writer="Floats"/></step>"#,
    ));
    stage.start("job", ());
    assert_eq!(stage.log(), ["open None", "[0.5, 0.5, 0.5]"]);
}

/// Panics when it is dropped.
#[derive(BatchArtifact)]
struct Undroppable {
    #[batch_property(name = "log")]
    log: String,
}

impl Drop for Undroppable {
    fn drop(&mut self) {
        say(&self.log, "drop");
        assert!(std::thread::panicking(), "no way out");
    }
}

#[batchlet]
impl Undroppable {
    #[process]
    fn process(&self) -> String {
        "DONE".into()
    }
}

#[item_reader]
impl Undroppable {
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        None
    }
}

#[step_listener]
impl Undroppable {
    #[before_step]
    fn before(&mut self) {}
}

#[job_listener]
impl Undroppable {
    #[before_job]
    fn before_job(&mut self) {}
}

/// An artifact that panics when it is dropped has done its work; nothing else is affected.
///
/// Spec: CHUNK-EXC-03
#[test]
fn a_panic_in_drop_is_contained() {
    let elements = r#"<listener ref="Undroppable"/>
           <step id="one" next="two"><listener ref="Undroppable"/><batchlet ref="Undroppable"/></step>
           <step id="two"><chunk reader="Undroppable" processor="Labels" writer="Lines"/></step>"#;
    let (stage, execution) = started(elements, ());
    assert_snapshot!(story(&stage, execution), @r"
    job job COMPLETED
      step one COMPLETED DONE
      step two COMPLETED commit 1
    drop · drop · open writer at the beginning · checkpoint writer at 0 · close writer · drop · drop
    ");
    let elements = r#"<step id="one"><listener ref="StepWatch"/><batchlet ref="Undroppable"/></step>"#;
    let (stage, execution) = started(elements, [("fail", "StepWatch before one STARTED")]);
    assert_snapshot!(story(&stage, execution), @r"
    job job FAILED | cannot StepWatch before one STARTED
        | thrown by #[before_step] of step listener `StepWatch`
      step one FAILED | the job's message
    StepWatch before one STARTED · drop · StepWatch after one FAILED
    ");
}

struct Explosive;

impl Default for Explosive {
    fn default() -> Self {
        panic!("no default today")
    }
}

/// Cannot be created.
#[derive(BatchArtifact)]
struct Unmakeable {
    #[allow(dead_code, reason = "only its making matters")]
    field: Explosive,
}

#[batchlet]
impl Unmakeable {
    #[process]
    fn process(&self) -> String {
        "DONE".into()
    }
}

#[step_listener]
impl Unmakeable {
    #[before_step]
    fn before(&mut self) {}
}

#[job_listener]
impl Unmakeable {
    #[before_job]
    fn before_job(&mut self) {}
}

#[sub_job_analyzer]
impl Unmakeable {
    #[analyze_exit_status]
    fn status(&mut self, _: &str) {}
}

/// A panic while an artifact is created fails the step or job that needs it, and nothing else.
///
/// Spec: CHUNK-EXC-03, ART-10, STATUS-24, STATUS-25
#[test]
fn an_artifact_that_cannot_be_created_fails_its_scope() {
    let mut text = String::new();
    for elements in [
        r#"<step id="one"><batchlet ref="Unmakeable"/></step>"#,
        r#"<step id="one"><listener ref="Unmakeable"/><batchlet ref="Task"/></step>"#,
        r#"<listener ref="Unmakeable"/><step id="one"><batchlet ref="Task"/></step>"#,
        r#"<step id="one"><batchlet ref="Task"/><partition instances="2"><analyzer ref="Unmakeable"/></partition></step>"#,
        r#"<split id="all"><concurrency><analyzer ref="Unmakeable"/></concurrency>
            <flow id="flow"><step id="one"><batchlet ref="Task"/></step></flow></split>"#,
    ] {
        let (stage, execution) = started(elements, ());
        text += &format!("{}\n", story(&stage, execution));
    }
    assert_snapshot!(text, @r"
    job job FAILED | cannot create batchlet `Unmakeable`: the artifact panicked: no default today
      step one FAILED | the job's message

    job job FAILED | cannot create step listener `Unmakeable`: the artifact panicked: no default today
      step one FAILED | the job's message

    job job FAILED | cannot create job listener `Unmakeable`: the artifact panicked: no default today

    job job FAILED
        | cannot create sub job analyzer `Unmakeable`: the artifact panicked: no default today
      step one FAILED | the job's message

    job job FAILED
        | cannot create sub job analyzer `Unmakeable`: the artifact panicked: no default today
    ");
}
