//! 5.7.2: batch.xml, its locations, and its use by the built-in loader.

use std::fs;
use std::path::Path;

use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchRuntimeBuilder, JobParameters};
use batch_tests::stage::Stage;
use insta::assert_snapshot;

use super::artifacts::{assert_contains, assert_contains_all, first_step_execution, job, refused};

/// Batchlets that end with the name of their type as exit status.
macro_rules! batchlets {
    ($($(#[$attribute:meta])* $name:ident)*) => {$(
        #[derive(BatchArtifact)]
        struct $name {}

        $(#[$attribute])*
        impl $name {
            #[process]
            fn process(&self) -> String {
                stringify!($name).into()
            }
        }
    )*};
}

batchlets! {
    #[batchlet("mapping.plain")] Plain
    #[batchlet(class = "com.example.Ported")] Ported
    #[batchlet("mapping.twin")] Romulus
    #[batchlet("mapping.twin", class = "com.example.Remus")] Remus
    #[batchlet("mapping.one", class = "com.example.Two")] One
    #[batchlet("mapping.two", class = "com.example.Two")] Two
}

const HERE: &str = "conformance::s5_7_batch_xml";

fn step(reference: &str) -> String {
    job(&format!(r#"<step id="one"><batchlet ref="{reference}"/></step>"#))
}

/// A stage with a batch.xml of these entries.
fn stage(reference: &str, entries: &str) -> Stage {
    let text = format!("<batch-artifacts>{entries}</batch-artifacts>");
    Stage::configured(&step(reference), |builder| builder.batch_xml("batch.xml", text))
}

fn artifact(id: &str, class: &str) -> String {
    format!(r#"<artifact id="{id}" classname="{class}"/>"#)
}

/// Returns the name of the type that ran.
fn ran(stage: &Stage) -> String {
    let execution = stage.start("job", ());
    first_step_execution(stage, execution).exit_status.clone()
}

fn build_error(builder: BatchRuntimeBuilder) -> String {
    let built = builder.repository("sqlite://:memory:").build();
    built.map(drop).unwrap_err().to_string()
}

/// Spec: LOADER-02, LOADER-11, LOADER-13, ART-02
#[test]
fn an_id_is_mapped_to_a_class_by_path_or_by_declared_name() {
    let path = format!("{HERE}::Plain");
    assert_eq!(ran(&stage("anything", &artifact("anything", &path))), "Plain");
    let declared = artifact("any.thing", "com.example.Ported");
    assert_eq!(ran(&stage("any.thing", &declared)), "Ported");
    // Both classes of one type name it.
    let path = artifact("anything", &format!("{HERE}::Ported"));
    assert_eq!(ran(&stage("anything", &path)), "Ported");
}

/// Spec: LOADER-02, LOADER-09, LOADER-16, D-64, D-65
#[test]
fn an_entry_comes_before_the_registered_names_and_these_before_the_classes() {
    let entry = artifact("mapping.plain", "com.example.Ported");
    assert_eq!(ran(&stage("mapping.plain", &entry)), "Ported");
    // Without an entry the annotation's name is used, then the type's, then a class.
    for (reference, expected) in [
        ("mapping.plain", "Plain"),
        ("Ported", "Ported"),
        ("com.example.Ported", "Ported"),
        (&format!("{HERE}::Plain"), "Plain"),
    ] {
        assert_eq!(ran(&Stage::new(&step(reference))), expected, "{reference}");
    }
    // A class is not a name: it does not hide the type of that name.
    let name_of_another = artifact("com.example.Ported", &format!("{HERE}::Plain"));
    assert_eq!(ran(&stage("com.example.Ported", &name_of_another)), "Plain");
    assert_eq!(ran(&stage("Ported", &name_of_another)), "Ported");
}

/// Spec: LOADER-17
#[test]
fn an_entry_resolves_an_ambiguous_name() {
    assert!(refused(&Stage::new(&step("mapping.twin")), "job", JobParameters::new()).contains("ART0003"));
    for (class, expected) in [
        (format!("{HERE}::Romulus"), "Romulus"),
        ("com.example.Remus".to_owned(), "Remus"),
    ] {
        let entry = artifact("mapping.twin", &class);
        assert_eq!(ran(&stage("mapping.twin", &entry)), expected);
    }
}

/// A class that two types declare is ambiguous where it is used: each is reported with its place.
///
/// Spec: LOADER-15, LOADER-17
#[test]
fn a_class_of_two_types_is_rejected_when_it_is_used() {
    let entry = artifact("x", "com.example.Two");
    assert_eq!(ran(&stage("mapping.one", &entry)), "One");
    assert_snapshot!(refused(&stage("x", &entry), "job", ()), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0003]: batchlet `x` is ambiguous
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><batchlet ref="x"/></step>
      |                               ^ several artifacts match
    note: its class is set here
     --> batch.xml:1:46
      |
    1 | <batch-artifacts><artifact id="x" classname="com.example.Two"/></batch-artifacts>
      |                                              ---------------
      = help: they are `conformance::s5_7_batch_xml::One` (tests/conformance/s5_7_batch_xml.rs) and `conformance::s5_7_batch_xml::Two` (tests/conformance/s5_7_batch_xml.rs); give one of them another class, or use the path of its type as the class
    "#);
}

/// Spec: LOADER-13, LOADER-15
#[test]
fn a_class_that_is_not_registered_is_rejected_when_the_ref_is_used() {
    let wrong = artifact("x", "com.example.Portd") + &artifact("mapping.plain", "somewhere::Plain");
    assert_eq!(ran(&stage("Ported", &wrong)), "Ported");
    assert_snapshot!(refused(&stage("x", &wrong), "job", ()), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0021]: no artifact has the class `com.example.Portd`, to which batch.xml maps `x`
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><batchlet ref="x"/></step>
      |                               ^ cannot be loaded
    note: the class is named here
     --> batch.xml:1:46
      |
    1 | <batch-artifacts><artifact id="x" classname="com.example.Portd"/><artifact id="mapping.plain" classname="…
      |                                              -----------------
      = help: did you mean `com.example.Ported`?
    "#);
    // The type exists elsewhere: its crate was moved, or the path was guessed.
    let text = refused(&stage("mapping.plain", &wrong), "job", ());
    assert_contains(&text, &format!("did you mean `{HERE}::Plain`?"));
}

/// Spec: ART-09, LOADER-15
#[test]
fn an_entry_of_another_role_is_rejected_with_its_place() {
    let entry = artifact("x", "conformance::artifacts::Numbers");
    assert_snapshot!(refused(&stage("x", &entry), "job", ()), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0002]: `x` is not a batchlet but an item reader
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><batchlet ref="x"/></step>
      |                               ^ a batchlet is required here
    note: its class is set here
     --> batch.xml:1:46
      |
    1 | <batch-artifacts><artifact id="x" classname="conformance::artifacts::Numbers"/></batch-artifacts>
      |                                              -------------------------------
      = help: `x` is registered at tests/conformance/artifacts.rs
    "#);
}

/// Spec: LOADER-12, LOADER-15, LOADER-10
#[test]
fn all_mistakes_in_batch_xml_fail_the_build_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let first = "<b><artifact id='A' classname='x::A'/><loader classname='L'/></b>";
    let second = "<b><artifact id='A' classname='x::B'/><loader clasname='L'/><artefact/></b>";
    let builder = BatchRuntime::builder()
        .batch_xml("one.xml", first)
        .batch_xml("two.xml", second)
        .batch_xml("three.xml", "<b>");
    let text = build_error(builder);
    assert_contains_all(
        &text,
        &["cannot load the artifacts", "the artifact id `A` has two classes"],
    );
    assert_contains_all(&text, &["one.xml:1:32", "two.xml:1:32", "three.xml:1:1"]);
    assert_contains_all(&text, &["did you mean `classname`?", "did you mean `artifact`?"]);
    // A runtime that failed to build creates nothing.
    let database = folder.path().join("batch.db");
    let builder = BatchRuntime::builder()
        .repository(format!("sqlite://{}", database.display()))
        .batch_xml("one.xml", "<b>");
    assert!(builder.build().is_err());
    assert!(!database.exists());
}

/// Spec: ENV-06, LOADER-09
#[test]
fn a_batch_xml_without_entries_is_accepted() {
    assert_eq!(ran(&stage("Ported", "")), "Ported");
}

fn write(directory: &Path, text: &str) {
    fs::create_dir_all(directory.join("META-INF")).unwrap();
    fs::write(directory.join("META-INF/batch.xml"), text).unwrap();
}

fn classpath(builder: BatchRuntimeBuilder, directories: &[&Path]) -> BatchRuntimeBuilder {
    let list = std::env::join_paths(directories).unwrap();
    builder.system_property("batch.classpath", list.into_string().unwrap())
}

/// Every directory is searched, and entries built into the program are added; a directory given twice counts once.
///
/// Spec: PKG-02, D-64, LOADER-02
#[test]
fn batch_xml_lies_under_meta_inf_of_every_directory_of_the_classpath() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, without] = ["a", "b", "c"].map(|name| folder.path().join(name));
    let entry = |id: &str, class: &str| format!("<b>{}</b>", artifact(id, class));
    write(&a, &entry("of.a", "com.example.Ported"));
    write(&b, &entry("of.b", "com.example.Remus"));
    fs::create_dir(&without).unwrap();
    fs::write(without.join("batch.xml"), "this is none of ours").unwrap();
    let missing = folder.path().join("missing");
    let directories = [&a, &without, &b, &a, &missing].map(|path| path.as_path());
    for (reference, expected) in [("of.a", "Ported"), ("of.b", "Remus"), ("embedded", "Plain")] {
        let stage = Stage::configured(&step(reference), |builder| {
            let embedded = entry("embedded", &format!("{HERE}::Plain"));
            classpath(builder, &directories).batch_xml("embedded.xml", embedded)
        });
        assert_eq!(ran(&stage), expected);
    }
    write(&b, &entry("of.a", "com.example.Remus"));
    let text = build_error(classpath(BatchRuntime::builder(), &directories));
    assert_contains_all(&text, &["a/META-INF/batch.xml:1:", "b/META-INF/batch.xml:1:"]);
}

/// Spec: PKG-02, LOADER-15
#[test]
fn an_unreadable_batch_xml_fails_the_build() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, text) = (folder.path().join("a"), folder.path().join("b"));
    fs::create_dir_all(directory.join("META-INF/batch.xml")).unwrap();
    write(&text, "<b>");
    let message = build_error(classpath(BatchRuntime::builder(), &[&directory, &text, &text]));
    assert_contains_all(&message, &["a/META-INF/batch.xml", "not a regular file"]);
    // It is found twice and read once.
    assert_eq!(
        message.matches("b/META-INF/batch.xml:1:1").count(),
        1,
        "{message}"
    );
}
