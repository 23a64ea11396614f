//! 5.7, 5.7.1: the preferred loader, set by the program or named by batch.xml.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use batch_runtime::BatchRuntime;
use batch_runtime::prelude::*;
use batch_tests::stage::{Stage, say};
use insta::assert_snapshot;

use super::artifacts::{
    assert_contains, assert_contains_all, job, listens, refused, story, tree, without_lines,
};

const HERE: &str = "conformance::s5_7_preferred_loader";

/// A batchlet and step listener with a field that is not a property.
#[derive(BatchArtifact)]
struct Courier {
    #[batch_property(name = "log")]
    log: String,
    #[batch_property(name = "town", value = "nowhere")]
    town: String,
    #[batch_context]
    step: Option<StepContext>,
    vehicle: Option<Vehicle>,
}

/// A type without `Default`, so that only the loader can create it.
struct Vehicle {
    number: usize,
}

impl Courier {
    fn with(number: usize) -> Self {
        Self {
            log: String::new(),
            town: "overwritten".into(),
            step: None,
            vehicle: Some(Vehicle { number }),
        }
    }

    fn record(&self, what: &str) -> Result<(), BatchError> {
        let step = self.step.as_ref().map_or("no step", StepContext::id);
        let vehicle = self.vehicle.as_ref().map_or(0, |vehicle| vehicle.number);
        let town = &self.town;
        say(
            &self.log,
            format!("{what}: vehicle {vehicle} to {town} in {step}"),
        );
        Ok(())
    }
}

#[batchlet]
impl Courier {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        self.record("process")?;
        Ok("DELIVERED".into())
    }
}

listens!(step_listener Courier.record: before_step "before", after_step "after");

/// An artifact without a role.
#[derive(BatchArtifact)]
struct Nobody {}

/// Knows names by their prefixes, and counts the instances that it creates.
#[derive(Default)]
struct Fleet {
    log: Option<String>,
    made: AtomicUsize,
}

impl BatchArtifactLoader for Fleet {
    fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError> {
        if let Some(log) = &self.log {
            say(log, format!("load {reference}"));
        }
        let made = || self.made.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(match reference {
            "van" | "Task" => Some(LoadedArtifact::new(Courier::with(made()))),
            "walker" => Some(LoadedArtifact::of::<Courier>()),
            "nobody" => Some(LoadedArtifact::of::<Nobody>()),
            "fickle" if made() > 1 => Some(LoadedArtifact::of::<Nobody>()),
            "fickle" => Some(LoadedArtifact::new(Courier::with(0))),
            "gone" => (made() == 1).then(LoadedArtifact::of::<Courier>),
            "late" if made() > 1 => return Err(BatchError::msg("the garage is closed by now")),
            "late" => Some(LoadedArtifact::of::<Courier>()),
            "stolen" => return Err(BatchError::msg("the garage is empty")),
            "crash" => panic!("the brakes failed"),
            _ => None,
        })
    }
}

fn fleet(elements: &str) -> Stage {
    Stage::configured(&job(elements), |builder| {
        builder.artifact_loader(Fleet::default())
    })
}

fn run(stage: &Stage) -> String {
    let execution = stage.start("job", ());
    story(stage, execution)
}

/// A fleet for a job of one batchlet.
fn batchlet(reference: &str) -> Stage {
    fleet(&format!(r#"<step id="one"><batchlet ref="{reference}"/></step>"#))
}

fn refusal(reference: &str) -> String {
    refused(&batchlet(reference), "job", ())
}

/// Artifacts of the loader keep its fields, and get their properties and contexts from the runtime.
///
/// Spec: LOADER-03, LOADER-05, ENV-07, ART-10, BPROP-12, CTX-02
#[test]
fn an_instance_of_the_loader_is_filled_by_the_runtime() {
    let stage = fleet(
        r#"<step id="one"><batchlet ref="van"><properties><property name="town" value="Ulm"/></properties></batchlet></step>"#,
    );
    assert_snapshot!(run(&stage), @r"
    job job COMPLETED
      step one COMPLETED DELIVERED
    process: vehicle 2 to Ulm in one
    ");
}

/// Spec: LOADER-05
#[test]
fn the_loader_may_leave_the_making_to_the_runtime() {
    assert_snapshot!(run(&batchlet("walker")), @r"
    job job COMPLETED
      step one COMPLETED DELIVERED
    process: vehicle 0 to nowhere in one
    ");
}

/// One instance per place and execution; one for all roles of a listener.
///
/// Spec: LOADER-18, ART-08, JSL-STEPLIS-07
#[test]
fn every_load_yields_a_new_instance() {
    let stage = fleet(
        r#"<step id="one" next="two"><listeners><listener ref="van"/></listeners><batchlet ref="van"/></step>
           <step id="two"><batchlet ref="van"/></step>"#,
    );
    // Three were created to learn their types.
    assert_snapshot!(run(&stage), @r"
    job job COMPLETED
      step one COMPLETED DELIVERED
      step two COMPLETED DELIVERED
    before: vehicle 4 to nowhere in one · process: vehicle 5 to nowhere in one
    after: vehicle 4 to nowhere in one · process: vehicle 6 to nowhere in two
    ");
}

/// The preferred loader is called for every artifact, before batch.xml and the registered names; the built-in loader
/// creates the artifacts that it does not know.
///
/// Spec: LOADER-03, LOADER-04, LOADER-05, D-64
#[test]
fn the_preferred_loader_comes_first_and_the_built_in_one_last() {
    let xml = job(r#"<listeners><listener ref="JobWatch"/></listeners>
           <step id="one" next="two"><batchlet ref="Task"/></step>
           <step id="two" next="three"><batchlet ref="mapped"/></step>
           <step id="three"><chunk reader="Numbers" processor="Labels" writer="Lines"/></step>"#);
    let mapped = format!(
        r#"<b><artifact id="Task" classname="{HERE}::Courier"/><artifact id="mapped" classname="{HERE}::Courier"/></b>"#
    );
    let log = "the-preferred-loader-comes-first";
    let made = AtomicUsize::new(0);
    let loader = Fleet {
        log: Some(log.to_owned()),
        made,
    };
    let stage = Stage::configured(&xml, |builder| {
        let builder = builder.batch_xml("batch.xml", mapped).system_property("log", log);
        builder.artifact_loader(loader)
    });
    let execution = stage.start("job", ());
    assert_snapshot!(tree(&stage, execution), @r"
    job job COMPLETED
      step one COMPLETED DELIVERED
      step two COMPLETED DELIVERED
      step three COMPLETED read 5 write 5 commit 1
    ");
    let said = batch_tests::stage::said(log);
    let with = |word: &str| -> Vec<_> {
        said.iter()
            .filter(|line| line.starts_with(word))
            .cloned()
            .collect()
    };
    // In XML order when the job is bound; then once more for the artifact it knows.
    assert_snapshot!(with("load ").join("\n"), @r"
    load JobWatch
    load Task
    load mapped
    load Numbers
    load Labels
    load Lines
    load Task
    ");
    assert_snapshot!(with("process: vehicle").join("\n"), @r"
    process: vehicle 2 to nowhere in one
    process: vehicle 0 to nowhere in two
    ");
}

/// Spec: LOADER-07, CHUNK-EXC-03
#[test]
fn an_error_or_panic_of_the_loader_is_final() {
    for (reference, place, problem) in [
        ("stolen", "^^^^^^", "the garage is empty"),
        (
            "crash",
            "^^^^^",
            "the artifact loader panicked: the brakes failed",
        ),
    ] {
        let expected = format!(
            r#"cannot start job `job`: its definition is invalid
error[ART0020]: the artifact loader cannot load `{reference}`
 --> jobs/job.xml:2:31
  |
2 | <step id="one"><batchlet ref="{reference}"/></step>
  |                               {place} {problem}
  = help: a loader returns `None` for a name that it does not know, so that the built-in loader resolves it"#
        );
        assert_eq!(refusal(reference).trim_end(), expected);
    }
}

/// Spec: ART-09, LOADER-08
#[test]
fn a_type_without_the_role_is_rejected() {
    assert_snapshot!(refusal("nobody"), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0002]: `nobody` is not a batchlet: the artifact loader returns a `conformance::s5_7_preferred_loader::Nobody`
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><batchlet ref="nobody"/></step>
      |                               ^^^^^^ a batchlet is required here
      = help: write `#[batchlet]` on an impl block of that type; if it is generic, also on a type alias of it
    "#);
    let stage = fleet(
        r#"<listeners><listener ref="nobody"/></listeners><step id="one"><chunk reader="van" processor="Labels" writer="Lines"/></step>"#,
    );
    assert_snapshot!(refused(&stage, "job", ()), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0002]: `nobody` is not a job listener: the artifact loader returns a `conformance::s5_7_preferred_loader::Nobody`
     --> jobs/job.xml:2:27
      |
    2 | <listeners><listener ref="nobody"/></listeners><step id="one"><chunk reader="van" processor="Labels" writer="Lines"/></step>
      |                           ^^^^^^ a job listener is required here
      = help: write `#[job_listener]` on an impl block of that type; if it is generic, also on a type alias of it

    error[ART0002]: `van` is not an item reader but a batchlet
     --> jobs/job.xml:2:78
      |
    2 | <listeners><listener ref="nobody"/></listeners><step id="one"><chunk reader="van" processor="Labels" writer="Lines"/></step>
      |                                                                              ^^^ an item reader is required here
      = help: the artifact loader returns a `conformance::s5_7_preferred_loader::Courier`, which is registered at tests/conformance/s5_7_preferred_loader.rs
    "#);
}

/// Spec: LOADER-08
#[test]
fn an_unknown_ref_of_every_loader_is_rejected() {
    let problems = ["unknown batchlet `Curier`", "did you mean `Courier`?"];
    assert_contains_all(&refusal("Curier"), &problems);
}

/// An artifact that was valid when the job was bound, and is not when it runs, fails the step.
///
/// Spec: LOADER-07, LOADER-08, ART-09
#[test]
fn a_loader_that_changes_its_mind_fails_the_step() {
    let printed = |reference: &str| run(&batchlet(reference));
    assert_snapshot!(printed("fickle"), @r"
    job job FAILED
        | cannot create batchlet `fickle`: the artifact loader returned a `conformance::s5_7_preferred_loader::Courier` when the job was bound, and returns a `conformance::s5_7_preferred_loader::Nobody` now
      step one FAILED | the job's message
    ");
    assert_snapshot!(printed("gone"), @r"
    job job FAILED
        | cannot create batchlet `gone`: the artifact loader returned it when the job was bound, but does not return it now
      step one FAILED | the job's message
    ");
    assert_snapshot!(printed("late"), @r"
    job job FAILED
        | cannot create batchlet `late`: the artifact loader failed: the garage is closed by now
      step one FAILED | the job's message
    ");
}

mod named {
    use super::*;

    #[derive(Default)]
    pub(super) struct Named;

    #[artifact_loader(class = "com.example.Named")]
    impl BatchArtifactLoader for Named {
        fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError> {
            Ok((reference == "van").then(|| LoadedArtifact::new(Courier::with(7))))
        }
    }

    pub(super) struct Broken;

    impl Default for Broken {
        fn default() -> Self {
            panic!("no garage")
        }
    }

    #[artifact_loader]
    impl BatchArtifactLoader for Broken {
        fn load(&self, _: &str) -> Result<Option<LoadedArtifact>, BatchError> {
            Ok(None)
        }
    }

    macro_rules! twins {
        ($($name:ident)*) => {$(
            #[derive(Default)]
            pub(super) struct $name;

            #[artifact_loader(class = "com.example.Twin")]
            impl BatchArtifactLoader for $name {
                fn load(&self, _: &str) -> Result<Option<LoadedArtifact>, BatchError> {
                    Ok(None)
                }
            }
        )*};
    }

    twins!(First Second);
}

fn with_loader(class: &str) -> String {
    format!(
        r#"<batch-artifacts><loader classname="{class}"/><artifact id="map" classname="{HERE}::Courier"/></batch-artifacts>"#
    )
}

/// Spec: LOADER-06, LOADER-10, LOADER-13, LOADER-14
#[test]
fn batch_xml_names_the_loader_by_path_or_by_declared_class() {
    let xml = job(
        r#"<step id="one" next="two"><batchlet ref="van"/></step><step id="two"><batchlet ref="map"/></step>"#,
    );
    let path = "conformance::s5_7_preferred_loader::named::Named";
    for class in [path, "com.example.Named"] {
        let stage = Stage::configured(&xml, |builder| builder.batch_xml("batch.xml", with_loader(class)));
        stage.start("job", ());
        let of_both = [(7, "one"), (0, "two")];
        let of_both = of_both.map(|(van, step)| format!("process: vehicle {van} to nowhere in {step}"));
        assert_eq!(stage.log(), of_both, "{class}");
    }
}

fn build_error(class: &str) -> String {
    let builder = BatchRuntime::builder()
        .repository("sqlite://:memory:")
        .batch_xml("batch.xml", with_loader(class));
    without_lines(&builder.build().map(drop).unwrap_err().to_string())
}

/// Spec: LOADER-06, LOADER-10, LOADER-15, LOADER-17
#[test]
fn a_loader_that_cannot_be_created_fails_the_build() {
    assert_snapshot!(build_error("com.example.Namd"), @r#"
    cannot load the artifacts
    error[ART0021]: no artifact loader has the class `com.example.Namd`
     --> batch.xml:1:37
      |
    1 | <batch-artifacts><loader classname="com.example.Namd"/><artifact id="map" classname="conformance…
      |                                     ^^^^^^^^^^^^^^^^ unknown loader
      = help: did you mean `com.example.Named`? `#[artifact_loader]` on `impl BatchArtifactLoader for ..` registers a loader, if the program names its crate
    "#);
    let unlike = build_error("unlike.AllOthers");
    assert_contains(
        &unlike,
        "what its annotation gives as `class`. `#[artifact_loader]` on",
    );
    assert_snapshot!(build_error("com.example.Twin"), @r#"
    cannot load the artifacts
    error[ART0003]: artifact loader class `com.example.Twin` is ambiguous
     --> batch.xml:1:37
      |
    1 | <batch-artifacts><loader classname="com.example.Twin"/><artifact id="map" classname="conformance…
      |                                     ^^^^^^^^^^^^^^^^ several artifact loaders match
      = help: give one of them another class: tests/conformance/s5_7_preferred_loader.rs and tests/conformance/s5_7_preferred_loader.rs
    "#);
    assert_snapshot!(build_error("conformance::s5_7_preferred_loader::named::Broken"), @r#"
    cannot load the artifacts
    error[ART0020]: cannot create the artifact loader `conformance::s5_7_preferred_loader::named::Broken`
     --> batch.xml:1:37
      |
    1 | <batch-artifacts><loader classname="conformance::s5_7_preferred_loader::named::Broken"/><artifac…
      |                                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the artifact loader panicked: no garage
      = help: its `Default` failed, see tests/conformance/s5_7_preferred_loader.rs
    "#);
}

/// Spec: LOADER-10
#[test]
fn the_program_and_batch_xml_have_one_loader_together() {
    let builder = BatchRuntime::builder()
        .repository("sqlite://:memory:")
        .artifact_loader(Fleet::default())
        .batch_xml("batch.xml", with_loader("com.example.Named"));
    let error = builder.build().map(drop).unwrap_err();
    assert_snapshot!(error.to_string(), @r#"
    cannot load the artifacts
    error[ART0022]: `com.example.Named` is a second preferred loader
     --> batch.xml:1:37
      |
    1 | <batch-artifacts><loader classname="com.example.Named"/><artifact id="map" classname="conformanc…
      |                                     ^^^^^^^^^^^^^^^^^ only one is allowed
      = help: the program sets one by `artifact_loader(..)`; remove one of them
    "#);
}

/// A shared loader: the program keeps a handle.
///
/// Spec: LOADER-03
#[test]
fn a_loader_may_be_shared() {
    struct Shared(Arc<Fleet>);
    impl BatchArtifactLoader for Shared {
        fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError> {
            self.0.load(reference)
        }
    }
    let fleet = Arc::new(Fleet::default());
    let xml = job(r#"<step id="one"><batchlet ref="van"/></step>"#);
    let loader = Shared(Arc::clone(&fleet));
    let stage = Stage::configured(&xml, |builder| builder.artifact_loader(loader));
    run(&stage);
    // One returned its type, one ran.
    assert_eq!(fleet.made.load(Ordering::Relaxed), 2);
}
