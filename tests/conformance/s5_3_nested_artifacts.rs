//! 5.3 and 5.4 for artifacts in fields of artifacts, an extension.

use batch_runtime::prelude::*;
use batch_runtime::{BatchArtifact, JobParameters};
use batch_tests::stage::{Stage, say};
use insta::assert_snapshot;

use super::artifacts::{calls, chosen, job, listens, refused, secret, started, story, tree};
use super::parallel::sorted;

/// Has properties of several kinds, a context, and a plain field.
#[derive(BatchArtifact)]
struct Output {
    #[batch_property(name = "resource")]
    resource: String,
    #[batch_property(name = "limit", value = "7")]
    limit: u8,
    #[batch_property]
    tags: Vec<String>,
    #[batch_property]
    note: Option<String>,
    #[batch_context]
    step: Option<StepContext>,
    shown: u32,
}

impl Output {
    fn show(&mut self) -> String {
        self.shown += 1;
        let step = self.step.as_ref().map_or("none", |step| step.id());
        format!(
            "{:?} {} {:?} {:?} in {step}, shown {}",
            self.resource, self.limit, self.tags, self.note, self.shown
        )
    }
}

/// The level in the middle, with its own name in another field than the nested artifact.
#[derive(BatchArtifact)]
struct Archive {
    #[batch_artifact(prefix = "archive.")]
    output: Output,
    #[batch_property(name = "resource")]
    resource: String,
}

/// Nests with a prefix, without one, and over two levels.
#[derive(BatchArtifact)]
struct Sorter {
    #[batch_property(name = "log")]
    log: String,
    #[batch_artifact(prefix = "accepted.")]
    accepted: Output,
    #[batch_artifact(prefix = "rejected.")]
    rejected: Archive,
    #[batch_artifact]
    same: Output,
}

impl Sorter {
    fn show(&mut self, event: &str) -> Result<(), BatchError> {
        let [accepted, archive, same] =
            [&mut self.accepted, &mut self.rejected.output, &mut self.same].map(Output::show);
        let rejected = &self.rejected.resource;
        let shown = format!(
            "{event}\n  accepted {accepted}\n  rejected {rejected:?}\n  archive {archive}\n  same {same}"
        );
        say(&self.log, shown);
        Ok(())
    }
}

listens!(step_listener Sorter.show: before_step "before step");

fn property(name: &str, value: &str) -> String {
    format!(r#"<property name="{name}" value="{value}"/>"#)
}

/// Returns a step `one` of a batchlet, with this listener and its properties.
fn listened(listener: &str, properties: &str) -> String {
    job(&format!(
        r#"<step id="one"><listener ref="{listener}">
  <properties>{properties}</properties>
</listener><batchlet ref="Task"/></step>"#
    ))
}

fn shown(properties: &str, parameters: impl Into<JobParameters>) -> String {
    let stage = Stage::new(&listened("Sorter", properties));
    stage.start("job", parameters);
    chosen(&stage, &["before step"]).remove(0)
}

/// Each prefix makes separate names, also over two levels; a name without the prefix does not reach a nested field.
///
/// Spec: D-97, BPROP-04, BPROP-05, BPROP-06, BPROP-09, BPROP-10, CTX-02
#[test]
fn a_prefix_is_part_of_the_names_of_nested_properties() {
    let plain = property("resource", "plain") + &property("limit", "1") + &property("archive.resource", "x");
    assert_snapshot!(shown(&plain, JobParameters::new()), @r#"
    before step
      accepted "" 7 [] None in one, shown 1
      rejected ""
      archive "" 7 [] None in one, shown 1
      same "plain" 1 [] None in one, shown 1
    "#);
    let prefixed = property("accepted.resource", "a")
        + &property("accepted.limit", "2")
        + &property("accepted.tags", "x,y")
        + &property("rejected.resource", "r")
        + &property("rejected.archive.resource", "ra")
        + &property("rejected.archive.limit", "3")
        + &property("rejected.archive.note", "");
    assert_snapshot!(shown(&prefixed, JobParameters::new()), @r#"
    before step
      accepted "a" 2 ["x", "y"] None in one, shown 1
      rejected "r"
      archive "ra" 3 [] Some("") in one, shown 1
      same "" 7 [] None in one, shown 1
    "#);
}

/// A parameter of the prefixed name beats the Job XML, and one without the prefix does not; a secret is injected.
///
/// Spec: D-97, D-91, OVR-02, OVR-03, OVR-04, BPROP-12
#[test]
fn a_prefixed_property_has_the_precedence_of_others() {
    let own = property("accepted.resource", "xml") + &property("rejected.archive.resource", "xml");
    let stage = Stage::configured(&listened("Sorter", &own), |builder| {
        builder
            .system_property("accepted.resource", "system")
            .system_property("rejected.archive.resource", "system")
    });
    let parameters = JobParameters::from([("resource", "without"), ("accepted.resource", "parameter")]);
    let parameters = parameters.with_secret("rejected.archive.note", secret(&stage, "hidden"));
    stage.start("job", parameters);
    assert_snapshot!(stage.log()[0], @r#"
    before step
      accepted "parameter" 7 [] None in one, shown 1
      rejected ""
      archive "system" 7 [] Some("hidden") in one, shown 1
      same "without" 7 [] None in one, shown 1
    "#);
}

/// A batchlet with a nested artifact in a field without a name.
#[derive(BatchArtifact)]
struct Shows(
    #[batch_property(name = "log")] String,
    #[batch_artifact(prefix = "2.")] Output,
);

#[batchlet]
impl Shows {
    #[process]
    fn process(&self) -> String {
        say(&self.0, &self.1.resource);
        "SHOWN".into()
    }
}

/// A number at the end of a name is the partition's number, as for other properties.
///
/// Spec: D-97, PART-12, PART-13
#[test]
fn a_partition_sets_nested_properties() {
    let stage = Stage::new(&job(
        r#"<step id="one"><batchlet ref="Shows"/><partition instances="2"><properties>
  <property name="2.resource.1" value="a"/><property name="2.resource.2" value="b"/>
</properties></partition></step>"#,
    ));
    stage.start("job", [("2.resource.2", "parameter")]);
    assert_snapshot!(sorted(&stage), @"a · parameter");
}

/// Requires a value and a context.
#[derive(BatchArtifact)]
struct Strict {
    #[batch_property(name = "count")]
    count: u32,
    #[batch_context]
    step: StepContext,
}

#[derive(BatchArtifact)]
struct Requires {
    #[batch_artifact(prefix = "outer.")]
    middle: Middle,
}

#[derive(BatchArtifact)]
struct Middle {
    #[batch_artifact(prefix = "inner.")]
    strict: Strict,
}

impl Requires {
    fn show(&self, when: &str) -> Result<String, BatchError> {
        let Strict { count, step } = &self.middle.strict;
        Ok(format!("{when} {count} in {}", step.id()))
    }

    fn listen(&self, when: &str) -> Result<(), BatchError> {
        self.show(when).map(|_| ())
    }
}

listens!(step_listener Requires.listen: before_step "before step");
listens!(job_listener Requires.listen: before_job "before job");

#[decider]
impl Requires {
    #[decide]
    fn decide(&mut self) -> Result<String, BatchError> {
        self.show("decision")
    }
}

/// Reports name the effective property and the path of the field, at the place in the Job XML.
///
/// Spec: D-97, BPROP-10, OP-11
#[test]
fn a_nested_property_is_checked_before_the_start() {
    let stage = Stage::new(&listened("Requires", ""));
    assert_snapshot!(refused(&stage, "job", [("count", "1"), ("inner.count", "1")]), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0006]: `Requires` requires the property `outer.inner.count`
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><listener ref="Requires">
      |                               ^^^^^^^^ field `middle.strict.count` is of type `u32`
      = help: add `<property name="outer.inner.count" value="..."/>` or give a job parameter
    "#);
    assert_snapshot!(refused(&stage, "job", [("outer.inner.count", "many")]), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0005]: invalid value "many" for property `outer.inner.count` (from the job parameter): expected `u32`
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><listener ref="Requires">
      |                               ^^^^^^^^ invalid digit found in string
      = help: field `middle.strict.count` of `conformance::s5_3_nested_artifacts::Requires`, tests/conformance/s5_3_nested_artifacts.rs
    "#);
    let secret = JobParameters::new().with_secret("outer.inner.count", secret(&stage, "hidden"));
    assert_snapshot!(refused(&stage, "job", secret), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0005]: invalid value "{secret:file:secret}" for property `outer.inner.count` (from the job parameter): expected `u32`
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><listener ref="Requires">
      |                               ^^^^^^^^ the secret is not valid
      = help: field `middle.strict.count` of `conformance::s5_3_nested_artifacts::Requires`, tests/conformance/s5_3_nested_artifacts.rs
    "#);
    let stage = Stage::new(&listened("Requires", &property("outer.inner.count", "-1")));
    assert_snapshot!(refused(&stage, "job", ()), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0005]: invalid value "-1" for property `outer.inner.count`: expected `u32`
     --> jobs/job.xml:3:57
      |
    3 |   <properties><property name="outer.inner.count" value="-1"/></properties>
      |                                                         ^^ invalid digit found in string
      = help: field `middle.strict.count` of `conformance::s5_3_nested_artifacts::Requires`, tests/conformance/s5_3_nested_artifacts.rs
    "#);
    assert_eq!(stage.operator().job_instance_count("job").unwrap(), 0);
}

/// Spec: D-97, CTX-05, CTX-12
#[test]
fn a_nested_context_that_is_out_of_scope_is_reported_with_the_path_of_its_field() {
    let count = format!("<properties>{}</properties>", property("outer.inner.count", "1"));
    let stage = Stage::new(&job(&format!(
        r#"{count}<listener ref="Requires"/><step id="one"><batchlet ref="Task"/></step>"#
    )));
    assert_snapshot!(refused(&stage, "job", ()), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0007]: no `StepContext` is in scope when `Requires` is created
     --> jobs/job.xml:2:87
      |
    2 | …rties><property name="outer.inner.count" value="1"/></properties><listener ref="Requires"/><step id="one"><batchlet ref="Task"/></step>
      |                                                                                  ^^^^^^^^ field `middle.strict.step` requires one
      = help: name it in a step, or make the field an `Option<StepContext>` (tests/conformance/s5_3_nested_artifacts.rs)
    "#);
    // Only the course of the job shows that a decider is not called after a step.
    let elements = format!(
        r#"{count}<flow id="flow" next="choose"><step id="one"><batchlet ref="Task"/></step></flow>
           <decision id="choose" decider="Requires"><end on="*"/></decision>"#
    );
    let (stage, execution) = started(&elements, ());
    assert_snapshot!(tree(&stage, execution), @r"
    job job FAILED
        | cannot create decider `Requires`: no `StepContext` is in scope for field `middle.strict.step`: make the field an `Option<StepContext>`
      step one COMPLETED DONE
    ");
}

/// Misspelt names are compared with the prefixed ones.
///
/// Spec: D-97, BPROP-11, OP-09
#[test]
fn a_misspelt_nested_property_is_reported() {
    let own = property("accepted.resuorce", "x") + &property("rejected.archive.limit", "1");
    let stage = Stage::new(&listened("Sorter", &own));
    let warnings = stage.operator().check("job", ()).unwrap();
    let [warning] = &*warnings else {
        panic!("{warnings:?}")
    };
    let warning = warning
        .to_string()
        .replace(&format!("{}/", stage.path().display()), "");
    assert_snapshot!(warning, @r#"
    warning[ART0010]: no artifact in scope declares the property `accepted.resuorce`
     --> jobs/job.xml:3:31
      |
    3 |   <properties><property name="accepted.resuorce" value="x"/><property name="rejected.archive.limit" value="1"/></properties>
      |                               ^^^^^^^^^^^^^^^^^ has no effect
      = help: did you mean `accepted.resource`?
    "#);
    assert_eq!(
        refused(&stage, "job", [("rejected.archive.resuorce", "x")]),
        "cannot start job `job`: it uses no parameter `rejected.archive.resuorce`; did you mean `rejected.archive.resource`?"
    );
}

/// Spec: D-97, OP-11
#[test]
fn explain_lists_nested_properties_by_their_effective_names() {
    let own = property("accepted.resource", "a") + &property("limit", "2");
    let stage = Stage::new(&listened("Sorter", &own));
    let parameters = JobParameters::from([("rejected.archive.note", "n")]);
    let explained = stage
        .operator()
        .definitions()
        .explain("job", &parameters)
        .unwrap();
    assert_eq!(explained.unused_parameters, [""; 0]);
    let properties = &explained.job.elements[0].artifacts[1].properties;
    let properties = properties.iter().filter(|one| one.name != "log").map(|one| {
        let field = one.field.as_ref().unwrap();
        format!("{} = {:?} in {}", one.name, one.value, field.name)
    });
    assert_snapshot!(properties.collect::<Vec<_>>().join("\n"), @r#"
    accepted.resource = Some("a") in accepted.resource
    accepted.limit = Some("7") in accepted.limit
    accepted.tags = None in accepted.tags
    accepted.note = None in accepted.note
    rejected.resource = None in rejected.resource
    rejected.archive.resource = None in rejected.output.resource
    rejected.archive.limit = Some("7") in rejected.output.limit
    rejected.archive.tags = None in rejected.output.tags
    rejected.archive.note = Some("n") in rejected.output.note
    resource = None in same.resource
    limit = Some("2") in same.limit
    tags = None in same.tags
    note = None in same.note
    "#);
}

/// A part of a writer.
trait Sink: BatchArtifact + Send {
    fn put(&mut self, item: &str) -> String;
}

#[derive(BatchArtifact)]
struct Upper {
    #[batch_property(name = "mark", value = "!")]
    mark: String,
}

impl Sink for Upper {
    fn put(&mut self, item: &str) -> String {
        item.to_uppercase() + &self.mark
    }
}

#[derive(BatchArtifact)]
struct Counted {
    #[batch_property(name = "mark", value = "0")]
    mark: u64,
}

impl Sink for Counted {
    fn put(&mut self, item: &str) -> String {
        self.mark += 1;
        format!("{item}#{}", self.mark)
    }
}

/// A composite for all sinks, as in a library.
#[derive(BatchArtifact)]
struct Both<A, B> {
    #[batch_property(name = "log")]
    log: String,
    #[batch_artifact(prefix = "1.")]
    first: A,
    #[batch_artifact(prefix = "2.")]
    second: B,
}

#[item_writer]
impl<A: Sink, B: Sink> Both<A, B> {
    #[write_items]
    fn write(&mut self, items: &[String]) {
        for item in items {
            let (first, second) = (self.first.put(item), self.second.put(item));
            say(&self.log, format!("both {first} {second}"));
        }
    }
}

impl<A: Sink, B: Sink> Sink for Both<A, B> {
    fn put(&mut self, item: &str) -> String {
        self.first.put(item) + &self.second.put(item)
    }
}

#[item_writer("BothSinks")]
type BothSinks = Both<Upper, Counted>;

#[item_writer]
type AllSinks = Both<Both<Upper, Upper>, Both<Counted, Upper>>;

/// Spec: D-97, ART-01, ART-02
#[test]
fn a_generic_composite_is_registered_by_aliases() {
    let mut text = String::new();
    for (writer, parameters) in [
        ("BothSinks", [("1.mark", "?"), ("2.mark", "7")]),
        ("AllSinks", [("1.2.mark", "?"), ("2.1.mark", "8")]),
    ] {
        let stage = Stage::new(&job(&format!(
            r#"<step id="one"><chunk reader="Numbers" processor="Labels" writer="{writer}"/></step>"#
        )));
        let parameters: JobParameters = parameters.into();
        stage.start("job", parameters.with("items", "2"));
        text += &(calls(&stage, &["both"]) + "\n");
    }
    assert_snapshot!(text, @r"
    both N1? n1#8 · both N2? n2#9
    both N1!N1? n1#9N1! · both N2!N2? n2#10N2!
    ");
}

/// Creates the listener with values that a property must replace, and with one that it must keep.
struct Loader;

impl BatchArtifactLoader for Loader {
    fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError> {
        let output = || Output {
            resource: "replaced".into(),
            limit: 0,
            tags: vec!["replaced".into()],
            note: Some("replaced".into()),
            step: None,
            shown: 40,
        };
        let sorter = || Sorter {
            log: String::new(),
            accepted: output(),
            rejected: Archive {
                output: output(),
                resource: "replaced".into(),
            },
            same: output(),
        };
        Ok((reference == "loaded").then(|| LoadedArtifact::new(sorter())))
    }
}

/// The nested instances of a preferred loader are kept, and get their properties and contexts.
///
/// Spec: D-97, LOADER-03, ART-10
#[test]
fn a_nested_instance_of_a_loader_is_filled_by_the_runtime() {
    let own = property("accepted.resource", "a") + &property("rejected.archive.limit", "3");
    let stage = Stage::configured(&listened("loaded", &own), |builder| {
        builder.artifact_loader(Loader)
    });
    stage.start("job", ());
    assert_snapshot!(stage.log()[0], @r#"
    before step
      accepted "a" 7 [] None in one, shown 41
      rejected ""
      archive "" 3 [] None in one, shown 41
      same "" 7 [] None in one, shown 41
    "#);
}

#[derive(BatchArtifact)]
struct Watch {
    #[batch_property(name = "log")]
    log: String,
    #[batch_artifact(prefix = "rejected.")]
    rejected: Archive,
}

impl Watch {
    fn show(&mut self, event: &str) -> Result<(), BatchError> {
        say(&self.log, format!("{event}: {}", self.rejected.output.show()));
        Ok(())
    }
}

listens!(job_listener Watch.show:
    before_job "before job", before_step "before each step", after_step "after each step", after_job "after job");

/// One instance listens to the whole job; the contexts of its nested artifacts belong to the current step.
///
/// Spec: D-97, D-66, LISTEN-JOB-06, CTX-05
#[test]
fn a_nested_artifact_of_a_job_listener_has_the_context_of_each_step() {
    let elements = r#"<listener ref="Watch"/><step id="one" next="two"><batchlet ref="Task"/></step>
           <step id="two"><batchlet ref="Task"/></step>"#;
    let (stage, execution) = started(elements, [("rejected.archive.resource", "r")]);
    assert_snapshot!(story(&stage, execution), @r#"
    job job COMPLETED
      step one COMPLETED DONE
      step two COMPLETED DONE
    before job: "r" 7 [] None in none, shown 1 · before each step: "r" 7 [] None in one, shown 2
    begin one · process one · end one · after each step: "r" 7 [] None in one, shown 3
    before each step: "r" 7 [] None in two, shown 4 · begin two · process two · end two
    after each step: "r" 7 [] None in two, shown 5 · after job: "r" 7 [] None in none, shown 6
    "#);
}

#[derive(BatchArtifact)]
struct Numbered {
    #[batch_property]
    note: Option<String>,
    #[batch_property]
    number: u8,
}

/// Has artifacts that exist if their properties say so.
#[derive(BatchArtifact)]
struct Optionals {
    #[batch_property(name = "log")]
    log: String,
    #[batch_artifact(prefix = "1.")]
    numbered: Option<Numbered>,
    #[batch_artifact(prefix = "2.")]
    output: Option<Output>,
}

impl Optionals {
    fn show(&mut self, event: &str) -> Result<(), BatchError> {
        let numbered = self.numbered.as_ref().map(|part| (part.number, &part.note));
        let output = self.output.as_mut().map(Output::show);
        say(&self.log, format!("{event}: {numbered:?}, {output:?}"));
        Ok(())
    }
}

listens!(step_listener Optionals.show: before_step "parts");

/// Spec: D-97, ITEM-SETTING-05
#[test]
fn an_optional_artifact_exists_if_its_properties_say_so() {
    let shown = |properties: &str| {
        let stage = Stage::new(&listened("Optionals", properties));
        stage.start("job", JobParameters::new());
        chosen(&stage, &["parts"]).remove(0)
    };
    assert_eq!(shown(""), "parts: None, None");
    assert_eq!(shown(&property("1.number", "4")), "parts: Some((4, None)), None");
    let both = property("1.number", "4") + &property("1.note", "n") + &property("2.limit", "9");
    assert_eq!(
        shown(&both),
        r#"parts: Some((4, Some("n"))), Some("\"\" 9 [] None in one, shown 1")"#
    );
    let stage = Stage::new(&listened("Optionals", &property("1.note", "n")));
    let warnings = stage.operator().check("job", ()).unwrap();
    let checked = format!("{warnings:?}");
    assert!(
        checked.contains("`1.note`") && checked.contains("it has an effect only with `1.number`"),
        "{checked}"
    );
}
