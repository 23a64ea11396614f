//! The property values of a job: defaults, overrides, substitution.

use std::collections::BTreeMap;

use batch_xml::model::{ArtifactRef, CheckpointPolicy, Chunk, ExecutionElement, Job, Step, StepBody};
use batch_xml::{JobXmlErrors, Limits, Resolved, RootKind, Source, Values, parse, resolve, sniff_root};

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn try_run(
    text: &str,
    parameters: &[(&str, &str)],
    system: &[(&str, &str)],
) -> Result<Resolved, JobXmlErrors> {
    let limits = Limits::default();
    let document = parse(&Source::new("t.xml", text), &limits)?;
    resolve(
        &document,
        &Vec::new(),
        &Values {
            parameters: &map(parameters),
            system: &map(system),
        },
        &limits,
    )
}

#[track_caller]
fn job(text: &str) -> Job {
    job_with(text, &[], &[])
}

#[track_caller]
fn job_with(text: &str, parameters: &[(&str, &str)], system: &[(&str, &str)]) -> Job {
    try_run(text, parameters, system)
        .unwrap_or_else(|errors| panic!("\n{errors}"))
        .job
}

/// Returns the codes and the marked text of all errors.
fn findings(text: &str, parameters: &[(&str, &str)]) -> Vec<(&'static str, String)> {
    let errors = try_run(text, parameters, &[]).expect_err("the document is wrong");
    errors
        .iter()
        .map(|d| (d.code, d.span.text().to_owned()))
        .collect()
}

fn step(job: &Job, index: usize) -> &Step {
    let ExecutionElement::Step(step) = &job.elements[index] else {
        unreachable!()
    };
    step
}

fn batchlet(job: &Job, index: usize) -> &ArtifactRef {
    let StepBody::Batchlet(batchlet) = &step(job, index).body else {
        panic!("no batchlet")
    };
    batchlet
}

fn chunk(job: &Job) -> &Chunk {
    let StepBody::Chunk(chunk) = &step(job, 0).body else {
        panic!("no chunk")
    };
    chunk
}

fn chunk_of(attributes: &str) -> Chunk {
    let text = format!(
        "<job id='j'><step id='s'>
         <chunk reader='R' processor='P' writer='W' {attributes}>{}</chunk></step></job>",
        if attributes.contains("custom") {
            "<checkpoint-algorithm ref='A'/>"
        } else {
            ""
        }
    );
    chunk(&job(&text)).clone()
}

fn properties(artifact: &ArtifactRef) -> Vec<(&str, &str)> {
    artifact
        .properties
        .iter()
        .map(|p| (p.name.value.as_str(), p.value.value.as_str()))
        .collect()
}

const ONE_STEP: &str = "<step id='s'><batchlet ref='B'/></step>";

/// Spec: JSL-JOB-03, JSL-STEP-03, JSL-STEP-08, JSL-STEP-12, JSL-STEP-13
#[test]
fn defaults_of_job_and_step() {
    let job = job(&format!("<job id='j'>{ONE_STEP}</job>"));
    assert!(job.restartable);
    let step = step(&job, 0);
    assert_eq!((step.start_limit, step.allow_start_if_complete), (0, false));
    assert!(step.next.is_none() && step.transitions.is_empty());
}

/// Spec: JSL-CHUNK-05, JSL-CHUNK-13, JSL-CHUNK-15, JSL-CHUNK-22, JSL-CHUNK-23, JSL-CHUNK-24
#[test]
fn defaults_of_a_chunk() {
    let chunk = chunk_of("");
    assert_eq!(*chunk.checkpoint_policy, CheckpointPolicy::Item);
    assert_eq!((chunk.commit_interval.get(), chunk.chunk_size.get()), (10, 10));
    assert!(chunk.buffer_reads);
    assert_eq!(
        (chunk.skip_limit, chunk.retry_limit, chunk.checkpoint_timeout),
        (None, None, 0)
    );
    assert!(chunk.checkpoint_algorithm.is_none());
    assert!(chunk.skippable.span.is_none() && chunk.skippable.include.is_empty());
}

/// Spec: JSL-CHUNK-07, JSL-CHUNK-08, JSL-CHUNK-09, JSL-CHUNK-12, JSL-CHUNK-14, JSL-CHUNK-18, JSL-CHUNK-19,
/// JSL-CHUNK-20, JSL-CHUNK-21
#[test]
fn chunk_size_by_policy_interval_and_buffering() {
    for (attributes, expect) in [
        ("commit-interval='7'", 7),
        ("commit-interval='7' checkpoint-policy='item'", 7),
        ("commit-interval='7' checkpoint-policy='record'", 7),
        ("commit-interval='7' checkpoint-policy='time'", 10),
        ("commit-interval='7' checkpoint-policy='custom'", 10),
        ("commit-interval='7' chunk-size='3'", 3),
        ("commit-interval='7' chunk-size='30'", 30),
        ("checkpoint-policy='time' chunk-size='3'", 3),
        ("commit-interval='7' buffer-reads='false'", 1),
        ("commit-interval='7' chunk-size='3' buffer-reads='0'", 1),
    ] {
        assert_eq!(chunk_of(attributes).chunk_size.get(), expect, "{attributes}");
    }
}

/// Spec: JSL-CHUNK-05, JSL-CHUNK-06
#[test]
fn record_is_item_with_a_warning() {
    let text = "<job id='j'><step id='s'>\
                <chunk reader='R' processor='P' writer='W' checkpoint-policy='record'/></step></job>";
    let resolved = try_run(text, &[], &[]).unwrap();
    assert_eq!(*chunk(&resolved.job).checkpoint_policy, CheckpointPolicy::Item);
    let warnings: Vec<_> = resolved
        .warnings
        .iter()
        .map(|d| (d.code, d.span.text()))
        .collect();
    assert_eq!(warnings, [("JSL0050", "record")]);
    assert!(
        try_run(&text.replace("record", "item"), &[], &[])
            .unwrap()
            .warnings
            .is_empty()
    );
}

/// Spec: JSL-DOC-10, JSL-DOC-11, JSL-STEP-03, D-07
#[test]
fn numbers_and_booleans_in_all_their_forms() {
    let chunk =
        chunk_of("skip-limit='0' retry-limit=' +2147483647 ' checkpoint-timeout='-0' buffer-reads='1'");
    assert_eq!((chunk.skip_limit, chunk.retry_limit), (Some(0), Some(2147483647)));
    assert_eq!((chunk.checkpoint_timeout, chunk.buffer_reads), (0, true));
}

/// Limits count characters, not bytes.
///
/// Spec: JSL-JOB-02, JSL-STEP-02
#[test]
fn ids_have_at_most_100_characters() {
    for (length, expect) in [(99, None), (100, None), (101, Some("JSL0020"))] {
        for (job, step) in [
            ("j".repeat(length), "s".to_owned()),
            ("j".to_owned(), "ä".repeat(length)),
        ] {
            let text = format!("<job id='{job}'><step id='{step}'><batchlet ref='B'/></step></job>");
            let found = try_run(&text, &[], &[]).map_or_else(|e| Some(e.into_inner()[0].code), |_| None);
            assert_eq!(found, expect, "{text}");
        }
    }
}

/// Spec: JSL-STEP-14, SEQ-01, D-44
#[test]
fn abstract_steps_are_not_part_of_the_job() {
    let job = job(&format!(
        "<job id='j'><step id='t' abstract='true' next='t'><chunk/></step>{ONE_STEP}</job>"
    ));
    assert_eq!(
        job.elements
            .iter()
            .map(|element| element.id().as_str())
            .collect::<Vec<_>>(),
        ["s"]
    );
}

/// Spec: JSL-JOBLIS-01, JSL-JOBLIS-02, JSL-JOBLIS-03, JSL-JOBLIS-08, JSL-STEPLIS-01, JSL-STEPLIS-05
#[test]
fn listeners_keep_the_order_of_the_text() {
    let listeners =
        "<listener ref='a'/><listeners><listener ref='b'/><listener ref='a'/></listeners><listener ref='c'/>";
    let job = job(&format!(
        "<job id='j'>{listeners}<step id='s'><batchlet ref='B'/>{listeners}</step></job>"
    ));
    let names =
        |listeners: &[ArtifactRef]| listeners.iter().map(|l| l.name.value.clone()).collect::<Vec<_>>();
    assert_eq!(names(&job.listeners), ["a", "b", "a", "c"]);
    assert_eq!(names(&step(&job, 0).listeners), ["a", "b", "a", "c"]);
}

const NESTED: &str = "<job id='j'>
  <properties><property name='a' value='job'/></properties>
  <listener ref='L'>
    <properties><property name='a' value='jl'/><property name='d' value='jl'/></properties>
  </listener>
  <step id='s'>
    <properties>
      <property name='a' value='step'/><property name='b' value='step'/>
      <property name='r' value='step' target='reader'/>
    </properties>
    <chunk reader='R' processor='P' writer='W' checkpoint-policy='custom'>
      <properties>
        <property name='a' value='chunk'/><property name='b' value='chunk'/><property name='c' value='chunk'/>
        <property name='r' value='chunk'/><property name='w' value='chunk' target='writer'/>
      </properties>
      <checkpoint-algorithm ref='A'>
        <properties><property name='c' value='alg'/><property name='d' value='alg'/></properties>
      </checkpoint-algorithm>
    </chunk>
    <listener ref='S'>
      <properties><property name='b' value='sl'/><property name='e' value='sl'/></properties>
    </listener>
  </step>
</job>";

/// Spec: OVR-01, OVR-05, OVR-06, OVR-07, OVR-13, JSL-JOBPROP-02, JSL-JOBPROP-03, JSL-JOBLIS-09,
/// JSL-STEPPROP-02, JSL-STEPPROP-03, JSL-STEPPROP-04, JSL-STEPLIS-06, JSL-CHPROP-01, JSL-CHPROP-04,
/// JSL-CHPROP-05, CHUNK-CKPT-05
#[test]
fn outer_properties_reach_inwards_and_win() {
    let job = job(NESTED);
    let chunk = chunk(&job);
    assert_eq!(properties(&job.listeners[0]), [("a", "job"), ("d", "jl")]);
    assert_eq!(
        properties(&step(&job, 0).listeners[0]),
        [("a", "job"), ("b", "step"), ("e", "sl")]
    );
    let common = [("a", "job"), ("b", "step")];
    assert_eq!(
        properties(&chunk.reader),
        [&common[..], &[("r", "step"), ("c", "chunk")]].concat()
    );
    assert_eq!(
        properties(chunk.processor.as_ref().unwrap()),
        [&common[..], &[("c", "chunk"), ("r", "chunk")]].concat()
    );
    assert_eq!(
        properties(&chunk.writer),
        [&common[..], &[("c", "chunk"), ("r", "chunk"), ("w", "chunk")]].concat()
    );
    let algorithm = chunk.checkpoint_algorithm.as_ref().unwrap();
    assert_eq!(
        properties(algorithm),
        [&common[..], &[("c", "chunk"), ("r", "chunk"), ("d", "alg")]].concat()
    );
    let own = |list: &[batch_xml::model::Property]| {
        list.iter()
            .map(|p| (p.name.value.clone(), p.value.value.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(own(&job.properties), [("a".to_owned(), "job".to_owned())]);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        own(&step(&job, 0).properties),
        [pair("a", "job"), pair("b", "step")]
    );
    assert_eq!(
        job.property_names.iter().map(String::as_str).collect::<String>(),
        "abcderw"
    );
}

/// Spec: OVR-02, OVR-04, OVR-10, OVR-11, OVR-12, JSL-BATCHLET-03
#[test]
fn parameters_win_over_system_properties_over_xml() {
    let text = "<job id='j'><properties><property name='x' value='job'/></properties><step id='s'>
      <batchlet ref='B'>
        <properties><property name='x' value='own'/><property name='y' value='${x}'/></properties>
      </batchlet></step></job>";
    for (parameters, system, expect) in [
        (&[("x", "parameter")][..], &[("x", "system")][..], "parameter"),
        (&[], &[("x", "system")], "system"),
        (&[], &[], "job"),
    ] {
        let job = job_with(text, parameters, system);
        assert_eq!(properties(batchlet(&job, 0)), [("x", expect), ("y", expect)]);
        assert_eq!(job.properties[0].value.value, expect);
    }
}

/// Within one list a property for the artifact is the nearer one, regardless of the order.
///
/// Spec: OVR-13, SUBST-11
#[test]
fn the_order_of_a_list_does_not_matter() {
    let one = "<property name='f' value='all'/>";
    let other = "<property name='f' value='reader' target='reader'/>";
    for list in [format!("{one}{other}"), format!("{other}{one}")] {
        let job = job(&format!(
            "<job id='j'><step id='s'><chunk reader='R' processor='P' writer='W'>\
             <properties>{list}</properties></chunk></step></job>"
        ));
        assert_eq!(chunk(&job).reader.property("f").unwrap().value, "reader");
        assert_eq!(chunk(&job).writer.property("f").unwrap().value, "all");
    }
}

/// A symbol in a property for all artifacts has the value that the injected artifact sees.
///
/// Spec: SUBST-07, OVR-13
#[test]
fn symbols_see_the_properties_of_the_artifact() {
    let job = job("<job id='j'><step id='s'>
        <chunk reader='R' processor='P' writer='W'><properties>
        <property name='f' value='all'/><property name='f' value='r' target='reader'/>
        <property name='f' value='w' target='writer'/><property name='q' value='[${f}]'/>
        <property name='d' value='${q}'/></properties></chunk></step></job>");
    let values =
        |artifact: &ArtifactRef| ["q", "d"].map(|name| artifact.property(name).unwrap().value.clone());
    assert_eq!(values(&chunk(&job).reader), ["[r]", "[r]"]);
    assert_eq!(values(&chunk(&job).writer), ["[w]", "[w]"]);
    assert_eq!(
        values(chunk(&job).processor.as_ref().unwrap()),
        ["[all]", "[all]"]
    );
}

/// Spec: SUBST-01, SUBST-04, SUBST-07, SUBST-10, SUBST-11
#[test]
fn symbols_are_replaced_recursively_in_any_order() {
    let job = job(
        "<job id='j'><properties><property name='path' value='${dir}/${file}$'/>
         <property name='file' value='f.txt'/>
         <property name='dir' value='/${env}'/><property name='env' value='test'/></properties>
         <step id='s'><batchlet ref='${path}'/></step></job>",
    );
    assert_eq!(batchlet(&job, 0).name.value, "/test/f.txt$");
    assert_eq!(
        job.symbols.iter().map(String::as_str).collect::<Vec<_>>(),
        ["dir", "env", "file", "path"]
    );
}

/// A symbol in a property of the job has the value that the job sees, wherever the property is used.
///
/// Spec: SUBST-08, SUBST-11
#[test]
fn inner_and_sibling_properties_are_not_visible() {
    let text = "<job id='j'><properties><property name='outer' value='${inner}'/></properties>
         <step id='s'><batchlet ref='B'><properties><property name='inner' value='x'/></properties></batchlet>
         </step></job>";
    assert_eq!(findings(text, &[]), [("JSL0041", "${inner}".to_owned())]);
    assert!(try_run(text, &[("inner", "given")], &[]).is_ok());
}

/// A property is ignored while it is resolved: the symbol means the next one of its name.
///
/// Spec: SUBST-10, D-39
#[test]
fn a_property_may_build_on_another_of_its_name() {
    // The outer property decides; in its own value its name is unknown.
    let text = |outer: &str| {
        format!(
            "<job id='j'><properties><property name='p' value='{outer}'/></properties><step id='s'>
             <chunk reader='R' processor='P' writer='W'><properties>
             <property name='q' value='[${{p}}]'/><property name='f' value='all'/>
             <property name='f' value='${{f}}+reader' target='reader'/></properties></chunk></step></job>"
        )
    };
    let job = job(&text("x"));
    assert_eq!(chunk(&job).reader.property("q").unwrap().value, "[x]");
    assert_eq!(chunk(&job).reader.property("f").unwrap().value, "all+reader");
    assert_eq!(chunk(&job).writer.property("f").unwrap().value, "all");
    assert_eq!(findings(&text("${p}"), &[]), [("JSL0042", "${p}".to_owned())]);
    assert_eq!(findings(&text("${q}"), &[]), [("JSL0041", "${q}".to_owned())]);
}

/// Spec: JSL-DOC-13, SUBST-05, SUBST-13
#[test]
fn a_document_is_resolved_anew_for_every_execution() {
    let limits = Limits::default();
    let text = "<job id='j'><step id='s'><batchlet ref='${which}'/></step></job>";
    let document = parse(&Source::new("t.xml", text), &limits).unwrap();
    for which in ["A", "B"] {
        let values = Values {
            parameters: &map(&[("which", which)]),
            system: &map(&[]),
        };
        assert_eq!(
            batchlet(&resolve(&document, &Vec::new(), &values, &limits).unwrap().job, 0)
                .name
                .value,
            which
        );
    }
}

/// Spec: SUBST-20
#[test]
fn values_of_parameters_are_plain_text() {
    let job = job_with(
        &format!(
            "<job id='j'><properties><property name='p' value='[${{x}}]'/></properties>{ONE_STEP}</job>"
        ),
        &[("x", "<a b='&amp;'>${x}${unknown}${")],
        &[],
    );
    assert_eq!(job.properties[0].value.value, "[<a b='&amp;'>${x}${unknown}${]");
}

/// Spec: OVR-03
#[test]
fn values_given_are_not_changed() {
    let (parameters, system) = (map(&[("x", "p")]), map(&[("x", "s")]));
    let limits = Limits::default();
    let text = format!("<job id='j'><properties><property name='x' value='1'/></properties>{ONE_STEP}</job>");
    let document = parse(&Source::new("t.xml", text), &limits).unwrap();
    resolve(
        &document,
        &Vec::new(),
        &Values {
            parameters: &parameters,
            system: &system,
        },
        &limits,
    )
    .unwrap();
    assert_eq!((parameters, system), (map(&[("x", "p")]), map(&[("x", "s")])));
}

/// Spec: JSL-CHUNK-10, JSL-DOC-06, JSL-DOC-07, JSL-DOC-15, SUBST-08
#[test]
fn mistakes_of_all_kinds_are_in_one_report() {
    let text = "<job id='j' restartabel='true'><step id='a' next='bb'><batchlet ref='${x}'/></step>
         <stepp/><step id='b' start-limit='-1'>
         <chunk reader='R' processor='P' checkpoint-policy='custom'/></step></job>";
    let codes: Vec<_> = findings(text, &[]).into_iter().map(|(code, _)| code).collect();
    assert_eq!(
        codes,
        [
            "JSL0011", "JSL0012", "JSL0041", "JSL0010", "JSL0018", "JSL0015", "JSL0025"
        ]
    );
}

/// One mistyped name is one mistake, not also a missing one.
///
/// Spec: JSL-DOC-06, JSL-DOC-07
#[test]
fn one_mistake_gives_one_error() {
    let wrong = |text: &str| {
        findings(text, &[])
            .into_iter()
            .map(|(_, text)| text)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        wrong("<job id='j'><step id='s'><batchlt ref='B'/></step></job>"),
        ["batchlt"]
    );
    assert_eq!(
        wrong("<job id='j'><step id='s'><batchlet reff='B'/></step></job>"),
        ["reff"]
    );
    assert_eq!(wrong("<job id='j'><stepp id='s'/></job>"), ["stepp"]);
    assert_eq!(wrong("<job id='j' parent='p'/>"), ["p"]);
}

/// Spec: JSL-DOC-03, JSL-DOC-04, JSL-JOB-05
#[test]
fn documents_tell_what_they_are() {
    let limits = Limits::default();
    for (text, kind, is_abstract) in [
        ("<job id='j'/>", RootKind::Job, false),
        ("<step id='j' abstract='1'/>", RootKind::Step, true),
        (
            "<x:flow id='j' abstract='true' xmlns:x='u'/>",
            RootKind::Flow,
            true,
        ),
        ("<split id='j' abstract='false'/>", RootKind::Split, false),
    ] {
        let document = parse(&Source::new("t.xml", text), &limits).unwrap();
        assert_eq!(
            (document.root_kind(), document.is_abstract()),
            (kind, is_abstract)
        );
        assert_eq!(
            (document.id().value.as_str(), document.source().name()),
            ("j", "t.xml")
        );
    }
    let other = parse(&Source::new("pom.xml", "<project>&undefined;</project>"), &limits).unwrap_err();
    assert_eq!(other.iter().map(|d| d.code).collect::<Vec<_>>(), ["JSL0006"]);
    let other = parse(&Source::new("pom.xml", "<project>text</project>"), &limits).unwrap_err();
    assert_eq!(other.iter().map(|d| d.code).collect::<Vec<_>>(), ["JSL0007"]);
}

/// Spec: JSL-DOC-04
#[test]
fn the_root_can_be_sniffed() {
    for (text, expect) in [
        (
            "<?xml version='1.0'?><!-- c --><!DOCTYPE x><m:project a='<'>",
            Some("project"),
        ),
        ("<job", None),
        ("<job/><x", Some("job")),
        ("", None),
        ("text", None),
        ("<>", None),
    ] {
        assert_eq!(
            sniff_root(&Source::new("t.xml", text)).as_deref(),
            expect,
            "{text}"
        );
    }
}
