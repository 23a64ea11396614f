//! 5.7: the mistakes that the loader rejects before a job starts, each at its place.

use std::sync::atomic::{AtomicU32, Ordering};

use batch_runtime::prelude::*;
use batch_tests::stage::Stage;
use insta::assert_snapshot;

use super::artifacts::{assert_contains, assert_contains_all, first_step_execution, job, refused, started};

fn refusal(elements: &str) -> String {
    let stage = Stage::new(&job(elements));
    let text = refused(&stage, "job", ());
    assert_eq!(stage.operator().job_instance_count("job").unwrap(), 0);
    text
}

/// Spec: LOADER-08, LOADER-01, OP-11
#[test]
fn an_unknown_ref_is_rejected_with_the_nearest_name() {
    assert_snapshot!(refusal(r#"<step id="one"><batchlet ref="Taks"/></step>"#), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0001]: unknown batchlet `Taks`
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><batchlet ref="Taks"/></step>
      |                               ^^^^ unknown artifact
      = help: did you mean `Task`? If not: an artifact crate is linked only if the program names it: `use my_artifacts as _;`
    "#);
    assert_snapshot!(
        refusal(r#"<step id="one"><chunk reader="Nummbers" processor="Label" writer="Linse"/></step>"#), @r#"
        cannot start job `job`: its definition is invalid
        error[ART0001]: unknown item reader `Nummbers`
         --> jobs/job.xml:2:31
          |
        2 | <step id="one"><chunk reader="Nummbers" processor="Label" writer="Linse"/></step>
          |                               ^^^^^^^^ unknown artifact
          = help: did you mean `Numbers`? If not: an artifact crate is linked only if the program names it: `use my_artifacts as _;`

        error[ART0001]: unknown item processor `Label`
         --> jobs/job.xml:2:52
          |
        2 | <step id="one"><chunk reader="Nummbers" processor="Label" writer="Linse"/></step>
          |                                                    ^^^^^ unknown artifact
          = help: did you mean `Labels`? If not: an artifact crate is linked only if the program names it: `use my_artifacts as _;`

        error[ART0001]: unknown item writer `Linse`
         --> jobs/job.xml:2:67
          |
        2 | <step id="one"><chunk reader="Nummbers" processor="Label" writer="Linse"/></step>
          |                                                                   ^^^^^ unknown artifact
          = help: did you mean `Lines`? If not: an artifact crate is linked only if the program names it: `use my_artifacts as _;`
        "#
    );
    // No name is similar: all batchlets are listed.
    let text = refusal(r#"<step id="one"><batchlet ref="http://example.org"/></step>"#);
    assert_contains_all(&text, &["known: `", "`Task`"]);
    // There are two with this name.
    assert_eq!(text.matches("`Twin`").count(), 1, "{text}");
}

/// Spec: ART-09, LOADER-08
#[test]
fn an_artifact_of_another_role_is_rejected() {
    assert_snapshot!(refusal(r#"<step id="one"><batchlet ref="Numbers"/></step>"#), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0002]: `Numbers` is not a batchlet but an item reader
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><batchlet ref="Numbers"/></step>
      |                               ^^^^^^^ a batchlet is required here
      = help: `Numbers` is registered at tests/conformance/artifacts.rs
    "#);
    assert_snapshot!(refusal(r#"<step id="one"><chunk reader="Labels" processor="Labels" writer="Lines"/></step>"#), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0002]: `Labels` is not an item reader but an item processor
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><chunk reader="Labels" processor="Labels" writer="Lines"/></step>
      |                               ^^^^^^ an item reader is required here
      = help: `Labels` is registered at tests/conformance/artifacts.rs
    "#);
}

/// Takes texts where numbers arrive, and returns numbers where texts are written.
#[item_processor("Lengths")]
fn lengths(item: String) -> Option<usize> {
    Some(item.len())
}

/// Spec: CHUNK-LOOP-17
#[test]
fn items_of_another_type_are_rejected_with_both_types() {
    assert_snapshot!(refusal(r#"<step id="one"><chunk reader="Numbers" processor="Lengths" writer="Lines"/></step>"#), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0004]: item processor `Lengths` does not accept the items of item reader `Numbers`
     --> jobs/job.xml:2:51
      |
    2 | <step id="one"><chunk reader="Numbers" processor="Lengths" writer="Lines"/></step>
      |                                                   ^^^^^^^ expected `String`, found `u64`
      = help: they are defined at tests/conformance/s5_7_loader.rs and tests/conformance/artifacts.rs

    error[ART0004]: item writer `Lines` does not accept the items of item processor `Lengths`
     --> jobs/job.xml:2:68
      |
    2 | <step id="one"><chunk reader="Numbers" processor="Lengths" writer="Lines"/></step>
      |                                                                    ^^^^^ expected `String`, found `usize`
      = help: they are defined at tests/conformance/artifacts.rs and tests/conformance/s5_7_loader.rs
    "#);
}

mod listening {
    use std::any::Any;

    use batch_runtime::prelude::*;

    /// Handles the items of `Numbers` and `Labels`.
    #[derive(BatchArtifact)]
    struct Listens {}

    #[item_read_listener]
    impl Listens {
        #[after_read]
        fn read(&mut self, _: &u64) {}
    }

    #[item_process_listener]
    impl Listens {
        #[after_process]
        fn processed(&mut self, _: &u64, _: Option<&String>) {}
    }

    #[item_write_listener]
    impl Listens {
        #[after_write]
        fn written(&mut self, _: &[String]) {}
    }

    #[derive(BatchArtifact)]
    struct ListensToAll {}

    #[skip_listener]
    impl ListensToAll {
        #[on_skip_in_process]
        fn skipped(&mut self, _: &BatchError, _: &dyn Any) {}
    }

    #[item_write_listener]
    impl ListensToAll {
        #[before_write]
        fn written(&mut self, _: ChunkItems<'_>) {}
    }

    /// Confuses results and items.
    #[derive(BatchArtifact)]
    struct MistakesThem {}

    #[item_process_listener]
    impl MistakesThem {
        #[after_process]
        fn processed(&mut self, _: &String, _: Option<&u64>) {}
    }

    #[retry_listener]
    impl MistakesThem {
        #[on_retry_item]
        fn again(&mut self, _: &BatchError, _: &u64) {}
    }

    #[skip_listener]
    impl MistakesThem {
        #[on_skip_in_process]
        fn in_process(&mut self, _: &BatchError, _: &String) {}
        #[on_skip_in_write]
        fn in_write(&mut self, _: &BatchError, _: &u64) {}
    }
}

/// Returns the diagnostics about item types, for a job with these listeners of the job and of its only step.
fn item_types(of_job: &str, of_step: &str) -> String {
    let listener = |name: &str| match name {
        "" => String::new(),
        name => format!(r#"<listeners><listener ref="{name}"/></listeners>"#),
    };
    let (of_job, of_step) = (listener(of_job), listener(of_step));
    let text = job(&format!(
        r#"{of_job}<step id="one">{of_step}<chunk reader="Numbers" processor="Labels" writer="Lines"/></step>"#
    ));
    let stage = Stage::new(&text);
    let checked = stage.operator().check("job", ());
    let report = checked.err().map(|error| error.to_string()).unwrap_or_default();
    let is_shown = |line: &&str| line.contains("ART0004") || line.contains("^ ");
    let mistakes = report.split("\n\n").filter(|part| part.contains("ART0004"));
    let lines = mistakes.flat_map(|part| part.lines().filter(is_shown));
    lines.collect::<Vec<_>>().join("\n")
}

/// Each method with an item type must name the type of the reader's or of the processor's items; a job listener is called
/// for the items of every step.
///
/// Spec: CHUNK-LOOP-17
#[test]
fn listeners_of_other_items_are_rejected() {
    assert_eq!(item_types("", "Listens"), "");
    assert_eq!(item_types("ListensToAll", "ListensToAll"), "");
    assert_snapshot!(item_types("", "MistakesThem"), @r"
    error[ART0004]: item process listener `MistakesThem` does not accept the items of item reader `Numbers`
      |                                          ^^^^^^^^^^^^ expected `String`, found `u64`
    error[ART0004]: item process listener `MistakesThem` does not accept the items of item processor `Labels`
      |                                          ^^^^^^^^^^^^ expected `u64`, found `String`
    error[ART0004]: skip listener `MistakesThem` does not accept the items of item reader `Numbers`
      |                                          ^^^^^^^^^^^^ expected `String`, found `u64`
    error[ART0004]: skip listener `MistakesThem` does not accept the items of item processor `Labels`
      |                                          ^^^^^^^^^^^^ expected `u64`, found `String`
    error[ART0004]: retry listener `MistakesThem` does not accept the items of item processor `Labels`
      |                                          ^^^^^^^^^^^^ expected `u64`, found `String`
    ");
    assert_snapshot!(item_types("MistakesThem", ""), @r"
    error[ART0004]: skip listener `MistakesThem` does not accept the items of item reader `Numbers`
      |                           ^^^^^^^^^^^^ expected `String`, found `u64`
    error[ART0004]: skip listener `MistakesThem` does not accept the items of item processor `Labels`
      |                           ^^^^^^^^^^^^ expected `u64`, found `String`
    error[ART0004]: retry listener `MistakesThem` does not accept the items of item processor `Labels`
      |                           ^^^^^^^^^^^^ expected `u64`, found `String`
    ");
}

mod twice {
    use batch_runtime::prelude::*;

    macro_rules! twins {
        ($($name:ident)*) => {$(
            #[derive(BatchArtifact)]
            struct $name {}

            #[batchlet("Twin")]
            impl $name {
                #[process]
                fn process(&self) -> String {
                    stringify!($name).into()
                }
            }
        )*};
    }

    twins!(Castor Pollux);
}

/// Two artifacts with one name are an error only if the name is used.
///
/// Spec: LOADER-17
#[test]
fn an_ambiguous_name_is_rejected_when_it_is_used() {
    assert_snapshot!(refusal(r#"<step id="one"><batchlet ref="Twin"/></step>"#), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0003]: batchlet `Twin` is ambiguous
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><batchlet ref="Twin"/></step>
      |                               ^^^^ several artifacts match
      = help: they are `conformance::s5_7_loader::twice::Castor` (tests/conformance/s5_7_loader.rs) and `conformance::s5_7_loader::twice::Pollux` (tests/conformance/s5_7_loader.rs); give one of them another name, or map this one in batch.xml: `<artifact id="Twin" classname="conformance::s5_7_loader::twice::Castor"/>`
    "#);
    let castor = "conformance::s5_7_loader::twice::Castor";
    let (stage, execution) = started(
        &format!(r#"<step id="one"><batchlet ref="{castor}"/></step>"#),
        (),
    );
    assert_eq!(first_step_execution(&stage, execution).exit_status, "Castor");
}

mod attentive {
    use batch_runtime::prelude::*;

    #[derive(BatchArtifact)]
    struct OfSteps {}

    #[step_listener("Attentive")]
    impl OfSteps {
        #[before_step]
        fn before(&mut self) {}
    }

    #[derive(BatchArtifact)]
    struct OfChunks {}

    #[chunk_listener("Attentive")]
    impl OfChunks {
        #[before_chunk]
        fn before(&mut self) {}
    }
}

/// One `ref` is one instance, so two types are ambiguous although their roles differ.
///
/// Spec: LOADER-17, JSL-STEPLIS-07
#[test]
fn an_ambiguous_listener_is_rejected() {
    let error = refusal(
        r#"<step id="one"><listeners><listener ref="Attentive"/></listeners>
           <chunk reader="Numbers" processor="Labels" writer="Lines"/></step>"#,
    );
    let types = ["attentive::OfSteps", "attentive::OfChunks"];
    assert_contains(&error, "listener `Attentive` is ambiguous");
    assert_contains_all(&error, &types);
}

mod apart {
    use batch_runtime::prelude::*;

    pub(super) const FIRST: u32 = line!() + 2;

    #[batchlet("Namesake")]
    fn first() {}

    pub(super) const SECOND: u32 = line!() + 2;

    #[batchlet("Namesake")]
    fn second() {}
}

/// Spec: LOADER-17
#[test]
fn an_ambiguous_name_is_rejected_with_the_places_of_both() {
    let stage = Stage::new(&job(r#"<step id="one"><batchlet ref="Namesake"/></step>"#));
    let error = stage.operator().start("job", ()).unwrap_err();
    for line in [apart::FIRST, apart::SECOND] {
        assert_contains(&error, &format!("tests/conformance/s5_7_loader.rs:{line})"));
    }
}

/// An artifact of another crate is available if that crate is linked; no code names its type.
///
/// Spec: LOADER-19, LOADER-16, PKG-01
#[test]
fn artifacts_of_all_linked_crates_are_registered() {
    for name in [
        "LinkedArtifact",
        "com.example.LinkedArtifact",
        "batch_tests::linked_artifact::LinkedArtifact",
    ] {
        let (stage, execution) = started(&format!(r#"<step id="one"><batchlet ref="{name}"/></step>"#), ());
        assert_eq!(first_step_execution(&stage, execution).exit_status, "LINKED");
    }
}

/// The number of calls of `Here`, of this process.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// Returns the id of its process.
#[batchlet("Here")]
fn here() -> String {
    CALLS.fetch_add(1, Ordering::Relaxed);
    std::process::id().to_string()
}

/// What a class loader is in Java is the process here: an artifact sees the statics of the program that starts its job.
///
/// Spec: CL-01
#[test]
fn artifacts_run_in_the_process_that_starts_the_job() {
    let (stage, execution) = started(r#"<step id="one"><batchlet ref="Here"/></step>"#, ());
    let step = &first_step_execution(&stage, execution);
    assert_eq!(step.exit_status, std::process::id().to_string());
    assert_eq!(CALLS.load(Ordering::Relaxed), 1);
}

/// All mistakes of a job are reported at once.
///
/// Spec: OP-11, LOADER-08, ART-09
#[test]
fn all_mistakes_are_reported_at_once() {
    let text = refusal(
        r#"<listener ref="Numbers"/>
           <step id="one" next="two"><listener ref="Nobody.At.All"/><batchlet ref="Lines"/></step>
           <step id="two"><chunk reader="Numbers" processor="Lengths" writer="Lines"/></step>"#,
    );
    let places: Vec<_> = text.lines().filter(|line| line.contains("error[")).collect();
    assert_snapshot!(places.join("\n"), @r"
    error[ART0002]: `Numbers` is not a job listener but an item reader
    error[ART0001]: unknown step listener `Nobody.At.All`
    error[ART0002]: `Lines` is not a batchlet but an item writer
    error[ART0004]: item processor `Lengths` does not accept the items of item reader `Numbers`
    error[ART0004]: item writer `Lines` does not accept the items of item processor `Lengths`
    ");
}
