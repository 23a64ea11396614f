//! Inheritance: the parent of an element, the inherited parts, and the limits. The examples of the draft are in
//! `examples.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::hostile::in_time;
use batch_xml::model::ExecutionElement;
use batch_xml::{
    Document, Effective, JobXmlErrors, Library, Limits, RootKind, Source, Values, parse, resolve,
};

fn document(text: &str) -> Arc<Document> {
    let name = format!("{}.xml", text.split('\'').nth(1).unwrap());
    let limits = Limits {
        elements: 100_000,
        file_bytes: 1 << 30,
        ..Limits::default()
    };
    Arc::new(parse(&Source::new(name, text), &limits).unwrap_or_else(|errors| panic!("{text}\n{errors}")))
}

fn try_inherit(limits: &Limits, text: &str, library: &[&str]) -> Result<Effective, JobXmlErrors> {
    let library: Vec<Arc<Document>> = library.iter().map(|text| document(text)).collect();
    Effective::new(&document(text), &library, limits)
}

/// Returns the document without declaration, indentation and line breaks, with single quotes.
fn short(effective: &Effective) -> String {
    let text = effective.to_xml().replace('"', "'");
    text.lines().skip(1).map(str::trim).collect()
}

#[track_caller]
fn check(text: &str, library: &[&str], expect: &str) {
    let effective =
        try_inherit(&Limits::default(), text, library).unwrap_or_else(|errors| panic!("\n{errors}"));
    let expect: String = expect.lines().map(str::trim).collect();
    assert_eq!(short(&effective), expect);
}

fn codes(result: Result<Effective, JobXmlErrors>) -> Vec<&'static str> {
    result.map_or_else(
        |errors| errors.iter().map(|error| error.code).collect(),
        |_| Vec::new(),
    )
}

/// Spec: INH-04, INH-05, INH-06, INH-12, D-40
#[test]
fn attributes_of_the_element_are_its_own_those_of_its_parts_combined() {
    check(
        "<job id='j'><step id='s' parent='p' next='n'><chunk writer='w' skip-limit='1'/></step></job>",
        &["<step id='p' start-limit='3' abstract='true' next='x'>
           <chunk reader='r' writer='x' skip-limit='2'><checkpoint-algorithm ref='c'/></chunk></step>"],
        "<job id='j'><step id='s' next='n'><chunk writer='w' skip-limit='1' reader='r'>
         <checkpoint-algorithm ref='c'/></chunk></step></job>",
    );
}

/// Spec: INH-07, INH-08, INH-09, INH-10, INH-11, D-41
#[test]
fn lists_are_merged_entry_by_entry() {
    let parent = "<step id='p' abstract='true'><properties>
        <property name='a' value='p'/><property name='a' value='p' target='reader'/><property name='b' value='p'/>
        </properties></step>";
    let child = |merge: &str| {
        format!(
            "<job id='j'><step id='s' parent='p'><properties{merge}><property name='c' value='c'/>
             <property target='reader' name='a' value='c'/></properties></step></job>"
        )
    };
    for merge in ["", " merge='true'", " merge='1'"] {
        check(
            &child(merge),
            &[parent],
            "<job id='j'><step id='s'><properties><property name='a' value='p'/>
             <property target='reader' name='a' value='c'/><property name='b' value='p'/>
             <property name='c' value='c'/></properties></step></job>",
        );
    }
    check(
        &child(" merge='0'"),
        &[parent],
        "<job id='j'><step id='s'><properties><property name='c' value='c'/>
         <property target='reader' name='a' value='c'/></properties></step></job>",
    );
    check(
        "<job id='j'><step id='s' parent='p'><properties merge='false'/></step></job>",
        &[parent],
        "<job id='j'><step id='s'><properties/></step></job>",
    );
}

/// Listeners without a wrapper are a list too. A repeated entry counts twice.
///
/// Spec: INH-09, INH-10, D-52
#[test]
fn bare_listeners_are_merged_like_listed_ones() {
    let parent =
        "<step id='p' abstract='true'><listener ref='a'/><listener ref='b'/><listener ref='a'/></step>";
    let own = "<properties><property name='n' value='1'/></properties>";
    check(
        &format!(
            "<job id='j'><step id='s' parent='p'><listener ref='c'/><listener ref='a'>{own}</listener></step></job>"
        ),
        &[parent],
        &format!(
            "<job id='j'><step id='s'><listeners><listener ref='a'>{own}</listener><listener ref='b'/>
             <listener ref='a'/><listener ref='c'/></listeners></step></job>"
        ),
    );
    check(
        "<job id='j'><step id='s' parent='p'><listeners merge='false'><listener ref='d'/></listeners></step></job>",
        &[parent],
        "<job id='j'><step id='s'><listeners><listener ref='d'/></listeners></step></job>",
    );
}

/// Spec: INH-19, INH-20, INH-21, D-43
#[test]
fn elements_transitions_and_bodies_are_replaced_whole() {
    check(
        "<job id='j' parent='p'><flow id='b'><step id='t'><batchlet ref='T'/></step></flow><step id='d'/></job>",
        &["<job id='p' abstract='true'><step id='a' next='b'/><step id='b' next='c'><batchlet ref='B'/></step>
           <decision id='c' decider='D'/></job>"],
        "<job id='j'><step id='a' next='b'/><flow id='b'><step id='t'><batchlet ref='T'/></step></flow>
         <decision id='c' decider='D'/><step id='d'/></job>",
    );
    check(
        "<job id='j'><step id='s' parent='p'><batchlet ref='B'/><end on='X'/><fail on='Z'/></step></job>",
        &["<step id='p' abstract='true'><chunk reader='R'/><next on='X' to='a'/><fail on='Y'/></step>"],
        "<job id='j'><step id='s'><end on='X'/><fail on='Y'/><batchlet ref='B'/><fail on='Z'/></step></job>",
    );
}

/// Spec: INH-22, INH-03, FLOW-05, SPLIT-05
#[test]
fn flows_splits_and_nested_parts_are_combined() {
    check(
        "<job id='j'><split id='s' parent='ps'><flow id='f' parent='pf'>
         <partition><analyzer ref='A'/><logicalTX><properties><property name='x' value='c'/></properties></logicalTX>
         </partition></flow><concurrency><collector ref='C2'/></concurrency></split></job>",
        &[
            "<split id='ps'><flow id='g'><step id='t'><batchlet ref='T'/></step></flow>
             <concurrency><logicalTX ref='L'/><collector ref='C1'><properties><property name='c' value='1'/></properties>
             </collector></concurrency></split>",
            "<flow id='pf'><step id='u' parent='pu'/><partition instances='2'><logicalTX ref='L'><properties>
             <property name='y' value='p'/></properties></logicalTX></partition></flow>",
            "<step id='pu'><batchlet ref='U'/></step>",
        ],
        "<job id='j'><split id='s'><flow id='g'><step id='t'><batchlet ref='T'/></step></flow>
         <concurrency><logicalTX ref='L'/><collector ref='C2'><properties><property name='c' value='1'/></properties>
         </collector></concurrency>
         <flow id='f'><step id='u'><batchlet ref='U'/></step><partition instances='2'><logicalTX ref='L'><properties>
         <property name='y' value='p'/><property name='x' value='c'/></properties></logicalTX><analyzer ref='A'/>
         </partition></flow></split></job>",
    );
}

/// An element of the job, at any level, precedes the document of the same id; the parents of a document that is not a
/// job are searched in that document.
///
/// Spec: INH-15, D-42
#[test]
fn parents_are_looked_up_in_the_job_first() {
    let library = [
        "<step id='p'><batchlet ref='Document'/></step>",
        "<step id='q' parent='p'/>",
    ];
    check(
        "<job id='j'><step id='s' parent='p'/><step id='t' parent='q'/>
         <flow id='f'><step id='p'><batchlet ref='Own'/></step></flow></job>",
        &library,
        "<job id='j'><step id='s'><batchlet ref='Own'/></step><step id='t'><batchlet ref='Document'/></step>
         <flow id='f'><step id='p'><batchlet ref='Own'/></step></flow></job>",
    );
    // A flow of the same id is not an element of the same kind.
    check(
        "<job id='j'><step id='s' parent='p'/><flow id='p'><step id='t'/></flow></job>",
        &library,
        "<job id='j'><step id='s'><batchlet ref='Document'/></step><flow id='p'><step id='t'/></flow></job>",
    );
}

/// Spec: INH-27
#[test]
fn a_parent_added_later_is_found() {
    let text = "<job id='j'><step id='s' parent='p'/></job>";
    assert_eq!(codes(try_inherit(&Limits::default(), text, &[])), ["JSL0033"]);
    let later = ["<step id='p'><batchlet ref='B'/></step>"];
    assert_eq!(codes(try_inherit(&Limits::default(), text, &later)), [""; 0]);
}

/// Documents of all kinds have an effective form.
///
/// Spec: JSL-DOC-19
#[test]
fn any_document_can_inherit() {
    for kind in ["job", "step", "flow", "split"] {
        let text = format!("<{kind} id='c' parent='p' abstract='true'/>");
        let parent = format!("<{kind} id='p' abstract='true'/>");
        check(&text, &[&parent], &text.replace(" parent='p'", ""));
    }
    let library: Vec<Arc<Document>> =
        vec![document("<flow id='f' abstract='1'/>"), document("<job id='j'/>")];
    assert_eq!(
        (library.ids(RootKind::Flow), library.ids(RootKind::Step)),
        (vec!["f".to_owned()], vec![])
    );
}

#[test]
fn generations_are_bounded() {
    let chain = |generations: usize| {
        let steps: String = (0..generations)
            .map(|n| format!("<step id='s{n}' parent='s{}' abstract='true'/>", n + 1))
            .collect();
        format!("<job id='j'>{steps}<step id='s{generations}' abstract='true'/></job>")
    };
    let limits = Limits::default();
    for (generations, expect) in [(15, None), (16, None), (17, Some("JSL0037"))] {
        assert_eq!(
            codes(try_inherit(&limits, &chain(generations), &[])),
            Vec::from_iter(expect),
            "{generations}"
        );
    }
    let limits = Limits {
        parents: usize::MAX,
        ..limits
    };
    assert_eq!(codes(try_inherit(&limits, &chain(256), &[])), [""; 0]);
    let found = codes(try_inherit(&limits, &chain(20_000), &[]));
    assert!(
        !found.is_empty() && found.iter().all(|code| *code == "JSL0037"),
        "{found:?}"
    );
}

#[test]
fn inherited_elements_are_bounded() {
    let limits = Limits {
        inherited_elements: 12,
        ..Limits::default()
    };
    for (properties, expect) in [(9, None), (10, None), (11, Some("JSL0037"))] {
        let list: String = (0..properties)
            .map(|n| format!("<property name='{n}' value=''/>"))
            .collect();
        // The list and the batchlet count too.
        let parent = format!("<step id='p'><properties>{list}</properties><batchlet ref='B'/></step>");
        let text = "<job id='j'><step id='s' parent='p'/></job>";
        assert_eq!(
            codes(try_inherit(&limits, text, &[&parent])),
            Vec::from_iter(expect),
            "{properties}"
        );
    }
}

/// Inherited elements see the properties of the place that inherits them; `parent` itself is never substituted.
///
/// Spec: SUBST-06
#[test]
fn symbols_of_a_parent_are_resolved_where_they_are_inherited() {
    let library: Vec<Arc<Document>> = vec![document(
        "<step id='p' abstract='true' start-limit='${limit}'><listeners><listener ref='${who}'/></listeners>
           <properties><property name='file' value='${dir}/in'/></properties></step>",
    )];
    let job = |dir: &str| {
        document(&format!(
            "<job id='j'><properties><property name='dir' value='{dir}'/><property name='who' value='L'/></properties>
               <step id='s' parent='p'><batchlet ref='B'/></step></job>"
        ))
    };
    for dir in ["/a", "/b"] {
        let none = BTreeMap::new();
        let values = Values {
            parameters: &none,
            system: &none,
        };
        // `limit` is an attribute of the parent itself, which is not inherited, so its value is not needed.
        let resolved = resolve(&job(dir), &library, &values, &Limits::default())
            .unwrap_or_else(|errors| panic!("{errors}"));
        let ExecutionElement::Step(step) = &resolved.job.elements[0] else {
            panic!("a step")
        };
        assert_eq!(step.listeners[0].name.value, "L");
        assert_eq!(step.properties[0].value.value, format!("{dir}/in"));
    }
}

/// A long value that many elements inherit, as an element or as an attribute.
#[test]
fn inherited_bytes_are_bounded() {
    for (elements, most) in [("a property", 100), ("an attribute", 50)] {
        let limits = Limits {
            inherited_bytes: most,
            ..Limits::default()
        };
        for (bytes, expect) in [(49, None), (50, None), (51, Some("JSL0037"))] {
            let (parent, own) = match elements {
                // The name of the property and the batchlet are 50 bytes more.
                "a property" => (
                    format!(
                        "<batchlet ref='B'><properties><property name='{}' value='{}'/></properties></batchlet>",
                        "n".repeat(49),
                        "v".repeat(bytes)
                    ),
                    "",
                ),
                _ => (format!("<batchlet ref='{}'/>", "v".repeat(bytes)), "<batchlet/>"),
            };
            let text = format!("<job id='j'><step id='s' parent='p'>{own}</step></job>");
            let found = codes(try_inherit(
                &limits,
                &text,
                &[&format!("<step id='p'>{parent}</step>")],
            ));
            assert_eq!(found, Vec::from_iter(expect), "{elements} {bytes}");
        }
    }
    // By default 300 steps with 60,000 bytes each exceed the limit.
    let parent = format!("<step id='p'><batchlet ref='{}'/></step>", "v".repeat(60_000));
    let steps: String = (0..300)
        .map(|n| format!("<step id='s{n}' parent='p'/>"))
        .collect();
    let found = codes(try_inherit(
        &Limits::default(),
        &format!("<job id='j'>{steps}</job>"),
        &[&parent],
    ));
    assert_eq!(found, ["JSL0037"]);
}

/// A short document that requests millions of elements.
#[test]
fn inheritance_bombs_fail_fast() {
    let steps: String = (0..3000)
        .map(|n| format!("<step id='s{n}'><batchlet ref='B'/></step>"))
        .collect();
    let parent = format!("<flow id='p'>{steps}</flow>");
    let flows: String = (0..9000)
        .map(|n| format!("<flow id='f{n}' parent='p'/>"))
        .collect();
    let job = format!("<job id='j'>{flows}</job>");
    let found = in_time(|| codes(try_inherit(&Limits::default(), &job, &[&parent])));
    assert_eq!(found, ["JSL0037"]);
}
