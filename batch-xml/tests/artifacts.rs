//! batch.xml: its content, several files as one, and the diagnostics of mistakes.

use batch_xml::{BatchXml, JobXmlErrors, Limits, Source};
use insta::assert_snapshot;

fn read(texts: &[&str]) -> Result<BatchXml, JobXmlErrors> {
    let name = |index: usize| format!("{}/META-INF/batch.xml", ["a", "b"][index]);
    let sources: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| Source::new(name(index), *text))
        .collect();
    BatchXml::read(&sources, &Limits::default())
}

fn refused(texts: &[&str]) -> String {
    read(texts).unwrap_err().to_string()
}

/// Returns the loader, and each id with its class, in order.
fn entries(batch_xml: &BatchXml) -> String {
    let loader = batch_xml.loader.as_ref().map(|class| class.value.as_str());
    let artifacts = batch_xml
        .artifacts
        .iter()
        .map(|entry| format!("\n{} = {} ({})", entry.id.value, entry.class.value, entry.id.span));
    format!(
        "loader {}{}",
        loader.unwrap_or("-"),
        artifacts.collect::<String>()
    )
}

/// The draft's own example, with the missing root added.
///
/// Spec: LOADER-10, LOADER-11, LOADER-14, EX-32
#[test]
fn a_file_holds_a_loader_and_artifacts() {
    let example = include_str!("../../tests/jsl/examples/5.7.2-batch.xml");
    assert_snapshot!(entries(&read(&[example]).unwrap()), @r"
    loader com.ibm.batch.sample.artifact.ArtifactLoaderImpl
    MyReader = com.ibm.batch.sample.MyReaderImpl (a/META-INF/batch.xml:5:17)
    MyWriter = com.ibm.batch.sample.MyWriterImpl (a/META-INF/batch.xml:6:17)
    ");
}

/// Spec: LOADER-10, LOADER-11
#[test]
fn any_root_is_read_and_both_kinds_of_entries_are_optional() {
    let root =
        r#"<j:anything xmlns:j="urn:x" version="1.0"><artifact id="A" classname="x::A"/></j:anything>"#;
    assert_snapshot!(entries(&read(&[root]).unwrap()), @r"
    loader -
    A = x::A (a/META-INF/batch.xml:1:57)
    ");
    assert_snapshot!(entries(&read(&[r#"<b><loader classname="L"/></b>"#]).unwrap()), @"loader L");
    assert_snapshot!(entries(&read(&[]).unwrap()), @"loader -");
}

/// Copied from a Java project.
///
/// Spec: JAK-43
#[test]
fn the_elements_of_jakarta_batch_are_read() {
    let copied = r#"<batch-artifacts xmlns="https://jakarta.ee/xml/ns/jakartaee">
      <ref id="reader" class="com.example.Reader"/>
      <ref id="writer" classname="com.example.Writer"/>
    </batch-artifacts>"#;
    assert_snapshot!(refused(&[copied]), @r#"
    error[JSL0015]: `ref` has no attribute `class`
     --> a/META-INF/batch.xml:3:8
      |
    3 |       <ref id="writer" classname="com.example.Writer"/>
      |        ^^^ `class` is required

    error[JSL0011]: `ref` has no attribute `classname`
     --> a/META-INF/batch.xml:3:24
      |
    3 |       <ref id="writer" classname="com.example.Writer"/>
      |                        ^^^^^^^^^ unknown attribute
      = help: allowed here: `id`, `class`
    "#);
    let corrected = copied.replace("classname", "class");
    assert_snapshot!(entries(&read(&[&corrected]).unwrap()), @r"
    loader -
    reader = com.example.Reader (a/META-INF/batch.xml:2:16)
    writer = com.example.Writer (a/META-INF/batch.xml:3:16)
    ");
}

/// Spec: ENV-06
#[test]
fn a_file_without_entries_is_a_warning() {
    let empty = read(&["<batch-artifacts/>"]).unwrap();
    let warnings: Vec<_> = empty.warnings.iter().map(ToString::to_string).collect();
    assert_snapshot!(warnings.join("\n"), @r"
    warning[JSL0062]: the file has no entry
     --> a/META-INF/batch.xml:1:2
      |
    1 | <batch-artifacts/>
      |  ^^^^^^^^^^^^^^^ neither `loader` nor `artifact`
      = help: artifacts are found by the names of their annotations, so the file can be deleted
    ");
    let filled = read(&[r#"<b><artifact id="A" classname="x::A"/></b>"#]).unwrap();
    assert!(filled.warnings.is_empty());
}

/// Spec: LOADER-10, LOADER-11, D-64
#[test]
fn several_files_are_merged() {
    let first = r#"<b><loader classname="L"/><artifact id="A" classname="x::A"/></b>"#;
    // A repeated entry is not a conflict.
    let second = r#"<b><artifact id="A" classname="x::A"/><artifact id="B" classname="x::B"/><loader classname="L"/></b>"#;
    assert_snapshot!(entries(&read(&[first, second]).unwrap()), @r"
    loader L
    A = x::A (a/META-INF/batch.xml:1:41)
    B = x::B (b/META-INF/batch.xml:1:53)
    ");
}

/// Spec: LOADER-12
#[test]
fn one_id_has_one_class() {
    let first = r#"<b><artifact id="A" classname="x::A"/><artifact id="A" classname="y::A"/></b>"#;
    assert_snapshot!(refused(&[first, r#"<b><artifact id="A" classname="z::A"/></b>"#]), @r#"
    error[JSL0060]: the artifact id `A` has two classes
     --> a/META-INF/batch.xml:1:67
      |
    1 | <b><artifact id="A" classname="x::A"/><artifact id="A" classname="y::A"/></b>
      |                                                                   ^^^^ mapped to another class before
    note: the first one is here
     --> a/META-INF/batch.xml:1:32
      |
    1 | <b><artifact id="A" classname="x::A"/><artifact id="A" classname="y::A"/></b>
      |                                ----

    error[JSL0060]: the artifact id `A` has two classes
     --> b/META-INF/batch.xml:1:32
      |
    1 | <b><artifact id="A" classname="z::A"/></b>
      |                                ^^^^ mapped to another class before
    note: the first one is here
     --> a/META-INF/batch.xml:1:32
      |
    1 | <b><artifact id="A" classname="x::A"/><artifact id="A" classname="y::A"/></b>
      |                                ----
    "#);
}

/// Spec: LOADER-15
#[test]
fn a_mistake_in_any_file_is_an_error() {
    let good = r#"<b><loader classname="L"/></b>"#;
    let bad = "<b><artifact id='A'/></b>";
    for texts in [[bad, good], [good, bad]] {
        assert!(refused(&texts).contains("classname"), "{}", refused(&texts));
    }
}

/// Spec: LOADER-10
#[test]
fn there_is_at_most_one_loader() {
    let twice = r#"<b><loader classname="L"/><loader classname="L"/></b>"#;
    assert_snapshot!(refused(&[twice, r#"<b><loader classname="M"/></b>"#]), @r#"
    error[JSL0014]: `loader` is repeated in `b`
     --> a/META-INF/batch.xml:1:28
      |
    1 | <b><loader classname="L"/><loader classname="L"/></b>
      |                            ^^^^^^ only one is allowed
    note: the first one is here
     --> a/META-INF/batch.xml:1:5
      |
    1 | <b><loader classname="L"/><loader classname="L"/></b>
      |     ------

    error[JSL0061]: `M` is a second preferred loader
     --> b/META-INF/batch.xml:1:23
      |
    1 | <b><loader classname="M"/></b>
      |                       ^ only one is allowed
    note: the first one is here
     --> a/META-INF/batch.xml:1:23
      |
    1 | <b><loader classname="L"/><loader classname="L"/></b>
      |                       -
    "#);
}

/// Spec: LOADER-10, LOADER-11, LOADER-15
#[test]
fn all_mistakes_of_all_files_are_reported_at_once() {
    let first = r#"<batch-artifacts>text
  <artifact id="A"/><artifact classname="x::A"/><artifact id="" classname=""/>
  <artefact id="A" classname="x::A"/><artifact id="A" clasname="x::A"/><loader/>
  <artifact id="B" classname="x::B" scope="job"><artifact id="C" classname="x::C"/></artifact>
</batch-artifacts>"#;
    assert_snapshot!(refused(&[first, "<batch-artifacts><artifact></batch-artifacts>"]), @r#"
    error[JSL0013]: text is not allowed in `batch-artifacts`
     --> a/META-INF/batch.xml:1:18
      |
    1 | <batch-artifacts>text
      |                  ^^^^
      = help: write values as attributes, and remarks as XML comments

    error[JSL0015]: `artifact` has no attribute `classname`
     --> a/META-INF/batch.xml:2:4
      |
    2 |   <artifact id="A"/><artifact classname="x::A"/><artifact id="" classname=""/>
      |    ^^^^^^^^ `classname` is required

    error[JSL0015]: `artifact` has no attribute `id`
     --> a/META-INF/batch.xml:2:22
      |
    2 |   <artifact id="A"/><artifact classname="x::A"/><artifact id="" classname=""/>
      |                      ^^^^^^^^ `id` is required

    error[JSL0016]: `id` of `artifact` is empty
     --> a/META-INF/batch.xml:2:63
      |
    2 |   <artifact id="A"/><artifact classname="x::A"/><artifact id="" classname=""/>
      |                                                               ^ a value is required

    error[JSL0016]: `classname` of `artifact` is empty
     --> a/META-INF/batch.xml:2:76
      |
    2 |   <artifact id="A"/><artifact classname="x::A"/><artifact id="" classname=""/>
      |                                                                            ^ a value is required

    error[JSL0010]: `artefact` is not allowed in `batch-artifacts`
     --> a/META-INF/batch.xml:3:4
      |
    3 |   <artefact id="A" classname="x::A"/><artifact id="A" clasname="x::A"/><loader/>
      |    ^^^^^^^^ unknown element
      = help: did you mean `artifact`?

    error[JSL0011]: `artifact` has no attribute `clasname`
     --> a/META-INF/batch.xml:3:55
      |
    3 |   <artefact id="A" classname="x::A"/><artifact id="A" clasname="x::A"/><loader/>
      |                                                       ^^^^^^^^ unknown attribute
      = help: did you mean `classname`?

    error[JSL0015]: `loader` has no attribute `classname`
     --> a/META-INF/batch.xml:3:73
      |
    3 |   <artefact id="A" classname="x::A"/><artifact id="A" clasname="x::A"/><loader/>
      |                                                                         ^^^^^^ `classname` is required

    error[JSL0011]: `artifact` has no attribute `scope`
     --> a/META-INF/batch.xml:4:37
      |
    4 |   <artifact id="B" classname="x::B" scope="job"><artifact id="C" classname="x::C"/></artifact>
      |                                     ^^^^^ unknown attribute
      = help: allowed here: `id`, `classname`

    error[JSL0010]: `artifact` is not allowed in `artifact`
     --> a/META-INF/batch.xml:4:50
      |
    4 |   <artifact id="B" classname="x::B" scope="job"><artifact id="C" classname="x::C"/></artifact>
      |                                                  ^^^^^^^^ not allowed here
      = help: it belongs in the root element

    error[JSL0003]: `artifact` is not closed
     --> b/META-INF/batch.xml:1:18
      |
    1 | <batch-artifacts><artifact></batch-artifacts>
      |                  ^^^^^^^^^^ the end tag is missing
    note: this end tag closes an outer element
     --> b/META-INF/batch.xml:1:28
      |
    1 | <batch-artifacts><artifact></batch-artifacts>
      |                            ------------------
    "#);
}

/// Spec: LOADER-15, JSL-DOC-02, JSL-DOC-18
#[test]
fn what_is_not_processed_in_a_job_file_is_not_here() {
    let document_type = r#"<!DOCTYPE b [<!ENTITY x "y">]><b><artifact id="&x;" classname="x::A"/></b>"#;
    let codes = |text: &str| -> Vec<_> {
        let errors = read(&[text]).unwrap_err();
        errors.iter().map(|diagnostic| diagnostic.code).collect()
    };
    assert!(codes(document_type).contains(&"JSL0004"));
    assert_eq!(
        codes(&format!("<b><!--{}--></b>", "x".repeat(5 << 20))),
        ["JSL0001"]
    );
    assert_eq!(codes(""), ["JSL0003"]);
}
