//! Conversions between the dialects, rule by rule: small documents, and what becomes of them.

use std::collections::BTreeMap;

use batch_xml::{Conversion, DeclaredProperty, Dialect, Effective, Limits, Severity, Source, parse};

const NAMESPACE: &str = r#"xmlns="https://jakarta.ee/xml/ns/jakartaee" version="2.0""#;

/// Artifacts that declare nothing, so that only what is written on them is converted.
const ARTIFACTS: &str = "A B C D L M R P W T U";

fn known() -> BTreeMap<String, Vec<DeclaredProperty>> {
    let mut known: BTreeMap<String, Vec<DeclaredProperty>> = ARTIFACTS
        .split(' ')
        .map(|name| (name.to_owned(), Vec::new()))
        .collect();
    let property = |name: &str, default: Option<&str>, is_optional| DeclaredProperty {
        name: name.to_owned(),
        default: default.map(str::to_owned),
        is_optional,
    };
    let fields = vec![
        property("file", None, false),
        property("mode", Some("fast"), false),
        property("limit", None, true),
    ];
    known.insert("Fields".to_owned(), fields);
    known.insert("Text".to_owned(), vec![property("text", Some("a;b"), true)]);
    known.insert("Odd".to_owned(), vec![property("a']}b", Some("c"), false)]);
    known
}

fn convert(text: &str, to: Dialect) -> Conversion {
    let limits = Limits::default();
    let document =
        parse(&Source::new("j.xml", text), &limits).unwrap_or_else(|errors| panic!("{text}\n{errors}"));
    let effective = Effective::new(&document, &Vec::new(), &limits);
    let effective = effective.unwrap_or_else(|errors| panic!("{text}\n{errors}"));
    effective.convert(to, &known())
}

/// Returns what is in the job, on one line, without the tags of the job.
fn content(xml: &str) -> String {
    let lines: String = xml.lines().skip(2).map(str::trim).collect();
    lines.trim_end_matches("</job>").to_owned()
}

/// The codes of conversions, of which the tests show the last two digits.
const CODES: [&str; 13] = [
    "JSL0040", "JSL0070", "JSL0071", "JSL0072", "JSL0073", "JSL0074", "JSL0075", "JSL0076", "JSL0077",
    "JSL0078", "JSL0079", "JSL0080", "JSL0081",
];

/// Returns each problem as its code and the text that it underlines, in the order of the text.
fn problems(conversion: &Conversion) -> Vec<String> {
    let problems = conversion.problems.iter();
    let lines = problems.map(|one| {
        let kind = match one.severity {
            Severity::Error => "E",
            Severity::Warning => "W",
        };
        assert!(CODES.contains(&one.code), "{}", one.code);
        format!("{kind}{} {}", &one.code[5..], one.span.text())
    });
    lines.collect()
}

#[track_caller]
fn check(document: &str, to: Dialect, expect: &str, expected_problems: &[&str]) {
    let found = convert(document, to);
    let shown = format!("{document}\n{}\n{}", found.xml, found.problems);
    let expect: String = expect.lines().map(str::trim).collect();
    assert_eq!(content(&found.xml), expect, "{shown}");
    assert_eq!(problems(&found), expected_problems, "{shown}");
    let has_error = expected_problems.iter().any(|problem| problem.starts_with('E'));
    assert_eq!(found.is_complete, !has_error, "{shown}");
    assert!(found.problems.iter().all(|one| one.help.is_some()), "{shown}");
}

/// Checks what becomes of the content of a job of the draft.
#[track_caller]
fn to_jakarta(content: &str, expect: &str, problems: &[&str]) {
    check(
        &format!("<job id='j'>{content}</job>"),
        Dialect::Jakarta,
        expect,
        problems,
    );
}

/// Checks what becomes of the content of a job of Jakarta Batch.
#[track_caller]
fn to_draft(content: &str, expect: &str, problems: &[&str]) {
    check(
        &format!("<job id='j' {NAMESPACE}>{content}</job>"),
        Dialect::Draft,
        expect,
        problems,
    );
}

/// Checks a chunk of the draft.
#[track_caller]
fn chunk_to_jakarta(attributes: &str, content: &str, expect: &str, problems: &[&str]) {
    let chunk = format!(
        "<step id='s'><chunk reader='R' processor='P' writer='W' {attributes}>{content}</chunk></step>"
    );
    to_jakarta(&chunk, &format!(r#"<step id="s">{expect}</step>"#), problems);
}

/// Checks a step with a batchlet and these transition elements.
#[track_caller]
fn transitions_to_jakarta(transitions: &str, expect: &str, problems: &[&str]) {
    let steps = |inner: &str| {
        format!(r#"<step id="s"><batchlet ref="B"/>{inner}</step><step id="t"><batchlet ref="B"/></step>"#)
    };
    to_jakarta(&steps(transitions), &steps(expect), problems);
}

#[track_caller]
fn transitions_to_draft(transitions: &str, expect: &str, problems: &[&str]) {
    let steps = |inner: &str| {
        format!(r#"<step id="s"><batchlet ref="B"/>{inner}</step><step id="t"><batchlet ref="B"/></step>"#)
    };
    to_draft(&steps(transitions), &steps(expect), problems);
}

const STATUS: &str = "W78";

/// Spec: JAK-40
#[test]
fn jobs_and_their_namespace() {
    let found = convert(
        "<job id='j' restartable='false'><step id='s'><batchlet ref='B'/></step></job>",
        Dialect::Jakarta,
    );
    let expect = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
        <job xmlns=\"https://jakarta.ee/xml/ns/jakartaee\" version=\"2.0\" id=\"j\" restartable=\"false\">\n  \
          <step id=\"s\">\n    <batchlet ref=\"B\"/>\n  </step>\n</job>\n";
    assert_eq!(found.xml, expect);
    let back = convert(&found.xml, Dialect::Draft);
    assert!(
        back.xml.contains("<job id=\"j\" restartable=\"false\">\n"),
        "{}",
        back.xml
    );
    assert!(back.is_complete);
    // The same dialect is the effective document.
    let same = convert(&found.xml, Dialect::Jakarta);
    assert!(same.xml.contains("<step id=\"s\">") && same.problems.iter().next().is_none());

    for (text, span) in [
        ("<step id='s'/>", "step"),
        ("<job id='j' abstract='true'/>", "job"),
    ] {
        assert_eq!(
            problems(&convert(text, Dialect::Jakarta)),
            [format!("E70 {span}")]
        );
    }
    to_jakarta(
        "<step id='s'><batchlet ref='B'/></step><step id='a' abstract='true'/><flow id='f' abstract='${x}'><step id='t'><batchlet ref='B'/></step></flow>",
        r#"<step id="s"><batchlet ref="B"/></step><flow id="f"><step id="t"><batchlet ref="B"/></step></flow>"#,
        &["E70 abstract"],
    );
}

/// Spec: JAK-40
#[test]
fn chunks_of_the_draft() {
    let parts = r#"<reader ref="R"/><processor ref="P"/><writer ref="W"/>"#;
    let chunk = |attributes: &str| format!("<chunk{attributes}>{parts}</chunk>");
    chunk_to_jakarta("", "", &chunk(""), &[]);
    chunk_to_jakarta(
        "checkpoint-policy='record' commit-interval='7' skip-limit='1' retry-limit='2'",
        "",
        &chunk(r#" item-count="7" skip-limit="1" retry-limit="2""#),
        &[],
    );
    chunk_to_jakarta(
        "commit-interval='7' chunk-size='7'",
        "",
        &chunk(r#" item-count="7""#),
        &[],
    );
    chunk_to_jakarta(
        "commit-interval='${n}' chunk-size='${n}' buffer-reads='true' checkpoint-timeout='0'",
        "",
        &chunk(r##" item-count="#{jobParameters['n']}""##),
        &["W80 ${n}"],
    );
    chunk_to_jakarta("chunk-size='3'", "", &chunk(""), &["E71 3"]);
    chunk_to_jakarta(
        "buffer-reads='false' checkpoint-timeout='9'",
        "",
        &chunk(""),
        &["E71 false", "E71 9"],
    );
    chunk_to_jakarta(
        "checkpoint-policy='time' commit-interval='5'",
        "",
        &chunk(r#" item-count="2147483647" time-limit="5""#),
        &["W77 time"],
    );
    chunk_to_jakarta(
        "checkpoint-policy='time' chunk-size='2147483647'",
        "",
        &chunk(r#" item-count="2147483647" time-limit="10""#),
        &[],
    );
    chunk_to_jakarta("checkpoint-policy='${p}'", "", &chunk(""), &["E71 ${p}"]);
    chunk_to_jakarta(
        "checkpoint-policy='custom' chunk-size='2147483647'",
        "<checkpoint-algorithm ref='C'><properties><property name='x' value='1'/></properties></checkpoint-algorithm>",
        &format!(
            r##"<chunk checkpoint-policy="custom">{parts}<checkpoint-algorithm ref="C">
            <properties><property name="x" value="#{{jobParameters['x']}}?:1;"/></properties></checkpoint-algorithm></chunk>"##
        ),
        &[],
    );
    chunk_to_jakarta(
        "checkpoint-policy='custom'",
        "<checkpoint-algorithm ref='item-time'><properties><property name='item-count' value='5'/></properties></checkpoint-algorithm>",
        &chunk(
            r##" item-count="#{jobParameters['item-count']}?:5;" time-limit="#{jobParameters['time-limit']}?:0;""##,
        ),
        &[],
    );
    chunk_to_jakarta(
        "",
        "<skippable-exception-classes><include class='E'/></skippable-exception-classes>\
         <retryable-exception-classes><include class='F'/></retryable-exception-classes>\
         <no-rollback-exception-classes><exclude class='G'/></no-rollback-exception-classes>",
        &format!(
            r#"<chunk>{parts}<skippable-exception-classes><include class="E"/></skippable-exception-classes>
            <retryable-exception-classes><include class="F"/></retryable-exception-classes>
            <no-rollback-exception-classes><exclude class="G"/></no-rollback-exception-classes></chunk>"#
        ),
        &[
            "W76 skippable-exception-classes",
            "W76 retryable-exception-classes",
        ],
    );
}

/// Spec: JAK-40
#[test]
fn chunks_of_jakarta_batch() {
    let step = |attributes: &str, content: &str| {
        format!(
            "<step id='s'><chunk {attributes}><reader ref='R'/><processor ref='P'/><writer ref='W'/>{content}</chunk></step>"
        )
    };
    let chunk = |attributes: &str| {
        format!(r#"<step id="s"><chunk reader="R" processor="P" writer="W"{attributes}/></step>"#)
    };
    to_draft(&step("", ""), &chunk(""), &[]);
    to_draft(
        &step("item-count='3' skip-limit='1' retry-limit='2' time-limit='0'", ""),
        &chunk(r#" commit-interval="3" skip-limit="1" retry-limit="2""#),
        &[],
    );
    to_draft(
        &step("item-count='3' time-limit='9'", ""),
        r#"<step id="s"><chunk reader="R" processor="P" writer="W" checkpoint-policy="custom" chunk-size="2147483647">
        <checkpoint-algorithm ref="item-time"><properties><property name="item-count" value="3"/>
        <property name="time-limit" value="9"/></properties></checkpoint-algorithm></chunk></step>"#,
        &[],
    );
    to_draft(
        &step("item-count='2147483647' time-limit='9'", ""),
        &chunk(r#" checkpoint-policy="time" commit-interval="9" chunk-size="2147483647""#),
        &[],
    );
    to_draft(
        &step(
            "checkpoint-policy='custom' item-count='3'",
            "<checkpoint-algorithm ref='C'/>",
        ),
        r#"<step id="s"><chunk reader="R" processor="P" writer="W" checkpoint-policy="custom" chunk-size="2147483647">
        <checkpoint-algorithm ref="C"/></chunk></step>"#,
        &[],
    );
    to_draft(
        &step("checkpoint-policy='#{jobParameters[&apos;p&apos;]}'", ""),
        &chunk(""),
        &["E71 #{jobParameters[&apos;p&apos;]}"],
    );
    to_draft(
        "<step id='s'><chunk><reader ref='R'/><writer ref='W'/>\
         <skippable-exception-classes><include class='E'/></skippable-exception-classes></chunk></step>",
        r#"<step id="s"><chunk reader="R" writer="W"><skippable-exception-classes><include class="E"/>
        </skippable-exception-classes></chunk></step>"#,
        &["W76 skippable-exception-classes"],
    );
    // The properties of each artifact are for it alone.
    to_draft(
        "<step id='s'><chunk><reader ref='R'><properties><property name='x' value='1'/></properties></reader>\
         <processor ref='P'/><writer ref='W'><properties><property name='x' value='2'/></properties></writer></chunk></step>",
        r#"<step id="s"><chunk reader="R" processor="P" writer="W"><properties>
        <property name="x" value="1" target="reader"/><property name="x" value="2" target="writer"/></properties></chunk></step>"#,
        &["W80 x"],
    );
    to_draft(
        r##"<step id='s'><chunk><reader ref="#{jobProperties['x']}"><properties><property name='x' value='1'/></properties></reader>
         <processor ref='P'/><writer ref='W'/></chunk></step>"##,
        r#"<step id="s"><chunk reader="${x}" processor="P" writer="W"><properties>
        <property name="x" value="1" target="reader"/></properties></chunk></step>"#,
        &["E71 #{jobProperties['x']}", "W80 x"],
    );
}

/// Spec: JAK-40
#[test]
fn flows_splits_and_decisions_that_one_dialect_lacks() {
    let step = |id: &str| format!(r#"<step id="{id}"><batchlet ref="B"/></step>"#);
    let (a, b) = (step("a"), step("b"));
    to_jakarta(
        &format!("<flow id='f'>{a}<partition instances='2'/></flow>"),
        &format!(r#"<flow id="f">{a}</flow>"#),
        &["E70 partition"],
    );
    to_jakarta(
        &format!(
            "<split id='p'><flow id='f' next='g'>{a}</flow><flow id='g'>{b}</flow><decision id='d' decider='D'/>\
             <concurrency><collector ref='C'/></concurrency></split>"
        ),
        &format!(r#"<split id="p"><flow id="f">{a}</flow><flow id="g">{b}</flow></split>"#),
        &["E70 next", "E70 decision", "E70 concurrency"],
    );
    to_jakarta(
        &format!("<decision id='d' decider='D'><end on='*'/></decision>{a}"),
        &format!(r#"<decision id="d" ref="D"><end on="*"/></decision>{a}"#),
        &["E70 decision"],
    );
    to_draft(
        &format!("<flow id='f'>{a}<flow id='g'>{b}</flow></flow>"),
        &format!(r#"<flow id="f">{a}</flow>"#),
        &["E70 flow"],
    );
    // A decision of the draft fails if nothing matches, and one of Jakarta Batch completes.
    to_jakarta(
        &format!("{a}<decision id='d' ref='D'><next on='X' to='a'/></decision>"),
        &format!(r#"{a}<decision id="d" ref="D"><next on="X" to="a"/><fail on="*"/></decision>"#),
        &[],
    );
    to_draft(
        &format!("{a}<decision id='d' ref='D'><next on='X' to='a'/></decision>"),
        &format!(r#"{a}<decision id="d" decider="D"><next on="X" to="a"/><end on="*"/></decision>"#),
        &[],
    );
}

/// Spec: JAK-40
#[test]
fn start_limits() {
    let step = |limit: &str| format!(r#"<step id="s" start-limit="{limit}"><batchlet ref="B"/></step>"#);
    to_jakarta(&step("0"), &step("0"), &[]);
    to_jakarta(&step("2"), &step("3"), &[]);
    to_jakarta(
        &step("${n}"),
        &step("#{jobParameters['n']}"),
        &["E71 ${n}", "W80 ${n}"],
    );
    to_draft(&step("0"), &step("0"), &[]);
    to_draft(&step("3"), &step("2"), &[]);
    to_draft(
        &step("1"),
        r#"<step id="s"><batchlet ref="B"/></step>"#,
        &["E71 1"],
    );
}

/// Spec: JAK-40
#[test]
fn partitions_of_the_draft() {
    let step = |partition: &str, properties: &str| {
        format!(
            "<step id='s'><batchlet ref='B'>{properties}</batchlet><partition {partition}</partition></step>"
        )
    };
    to_jakarta(
        &step(
            "instances='2'><properties><property name='f.2' value='b'/><property name='f.1' value='a'/></properties>\
             <collector ref='C'/><analyzer ref='A'/><logicalTX ref='T'/>",
            "<properties><property name='x' value='${f}'/><property name='f' value='none'/></properties>",
        ),
        r##"<step id="s"><batchlet ref="B"><properties>
        <property name="x" value="#{jobParameters['x']}?:#{partitionPlan['f']};"/><property name="f" value="#{partitionPlan['f']}"/>
        </properties></batchlet><partition><plan partitions="2">
        <properties partition="0"><property name="f" value="#{jobParameters['f.1']}?:a;"/></properties>
        <properties partition="1"><property name="f" value="#{jobParameters['f.2']}?:b;"/></properties></plan>
        <collector ref="C"/><analyzer ref="A"/><reducer ref="T"/></partition></step>"##,
        &["W79 logicalTX"],
    );
    // A step listener is called outside of the partitions.
    to_jakarta(
        "<step id='s'><listeners><listener ref='L'><properties><property name='f' value='x'/></properties></listener></listeners>\
         <batchlet ref='B'/><partition><properties><property name='f.1' value='a'/></properties></partition></step>",
        r##"<step id="s"><listeners><listener ref="L"><properties><property name="f" value="#{partitionPlan['f']}"/></properties></listener>
        </listeners><batchlet ref="B"/><partition><plan><properties partition="0">
        <property name="f" value="#{jobParameters['f.1']}?:a;"/></properties></plan></partition></step>"##,
        &["W80 L"],
    );
    // An optional property: an algorithm may plan it, or some partitions have it.
    let fields = |partition: &str| {
        format!(
            "<step id='s'><batchlet ref='Fields'/><partition instances='2'>{partition}</partition></step>"
        )
    };
    to_jakarta(
        &fields("<algorithm ref='M'/>"),
        r##"<step id="s"><batchlet ref="Fields"><properties>
        <property name="file" value="#{partitionPlan['file']}?:#{jobParameters['file']};"/>
        <property name="mode" value="#{partitionPlan['mode']}?:fast;"/></properties></batchlet>
        <partition><mapper ref="M"/></partition></step>"##,
        &["W80 Fields", "W80 Fields"],
    );
    to_jakarta(
        &fields("<properties><property name='limit.1' value='7'/></properties>"),
        r##"<step id="s"><batchlet ref="Fields"><properties><property name="file" value="#{jobParameters['file']}"/>
        <property name="mode" value="#{jobParameters['mode']}?:fast;"/>
        <property name="limit" value="#{partitionPlan['limit']}?:#{jobParameters['limit']};"/></properties></batchlet>
        <partition><plan partitions="2"><properties partition="0">
        <property name="limit" value="#{jobParameters['limit.1']}?:7;"/></properties></plan></partition></step>"##,
        &["W80 Fields"],
    );
    // Only one partition has it: the others have the job parameter, which then cannot override the property itself.
    to_jakarta(
        &step(
            "instances='2'><properties><property name='f.1' value='a'/></properties>",
            "<properties><property name='f' value='none'/></properties>",
        ),
        r##"<step id="s"><batchlet ref="B"><properties><property name="f" value="#{partitionPlan['f']}?:none;"/></properties></batchlet>
        <partition><plan partitions="2">
        <properties partition="0"><property name="f" value="#{jobParameters['f.1']}?:a;"/></properties></plan></partition></step>"##,
        &["W80 none"],
    );
    to_jakarta(
        &step(
            "instances='2'><properties><property name='f.1' value='a'/></properties>",
            "<properties><property name='f' value='x;y'/></properties>",
        ),
        r##"<step id="s"><batchlet ref="B"><properties><property name="f" value="#{partitionPlan['f']}"/></properties></batchlet>
        <partition><plan partitions="2">
        <properties partition="0"><property name="f" value="#{jobParameters['f.1']}?:a;"/></properties></plan></partition></step>"##,
        &["W80 x;y", "E73 x;y"],
    );
    to_jakarta(
        &step(
            "><algorithm ref='M'/>",
            "<properties><property name='x' value='${f}'/></properties>",
        ),
        r##"<step id="s"><batchlet ref="B"><properties>
        <property name="x" value="#{partitionPlan['f']}?:#{jobParameters['f']};"/></properties></batchlet>
        <partition><mapper ref="M"/></partition></step>"##,
        &["W80 ${f}", "W80 ${f}", "W80 ${f}"],
    );
    to_jakarta(
        "<step id='s'><chunk reader='R' processor='P' writer='W'/><partition><properties>\
         <property name='f.1' value='a' target='reader'/><property name='f.1' value='b' target='writer'/></properties></partition></step>",
        r##"<step id="s"><chunk><reader ref="R"/><processor ref="P"/><writer ref="W"/></chunk><partition><plan>
        <properties partition="0"><property name="f" value="#{jobParameters['f.1']}?:a;"/><property name="f" value="#{jobParameters['f.1']}?:b;"/></properties></plan></partition></step>"##,
        &["E73 writer"],
    );
    to_jakarta(
        "<step id='s'><properties><property name='f' value='x'/></properties><batchlet ref='B'/>\
         <partition><properties><property name='f.1' value='a'/></properties></partition></step>",
        r##"<step id="s"><properties><property name="f" value="#{jobParameters['f']}?:x;"/></properties><batchlet ref="B"/><partition>
        <plan><properties partition="0"><property name="f" value="#{jobParameters['f.1']}?:a;"/></properties></plan></partition></step>"##,
        &["W80 x"],
    );
}

/// Spec: JAK-40
#[test]
fn partitions_of_jakarta_batch() {
    to_draft(
        r##"<step id="s"><batchlet ref="B"><properties><property name="f" value="#{partitionPlan['f']}"/>
        <property name="x" value="#{partitionPlan['f']}.csv"/></properties></batchlet>
        <partition><plan partitions="2" threads="3"><properties partition="0"><property name="f" value="a"/></properties>
        <properties partition="1"><property name="f" value="#{jobParameters['f.2']}?:b;"/></properties></plan>
        <collector ref="C"/><analyzer ref="A"/><reducer ref="T"/></partition></step>"##,
        r#"<step id="s"><properties><property name="batch.partition.threads" value="3"/></properties>
        <batchlet ref="B"><properties><property name="x" value="${f}.csv"/></properties></batchlet>
        <partition instances="2"><properties><property name="f.1" value="a"/><property name="f.2" value="b"/></properties>
        <logicalTX ref="T"/><collector ref="C"/><analyzer ref="A"/></partition></step>"#,
        &["W80 f", "W79 reducer"],
    );
    to_draft(
        r##"<step id="s"><batchlet ref="B"><properties><property name="x" value="#{partitionPlan['f']}?:#{jobParameters['f']};"/>
        <property name="y" value="#{partitionPlan['g']}?:none;"/></properties></batchlet><partition><mapper ref="M"/></partition></step>
        <step id="t"><batchlet ref="B"><properties><property name="x" value="#{partitionPlan['f']}?:out;"/></properties></batchlet></step>"##,
        r#"<properties><property name="g" value="none"/></properties>
        <step id="s"><batchlet ref="B"><properties><property name="x" value="${f}"/><property name="y" value="${g}"/></properties></batchlet>
        <partition><algorithm ref="M"/></partition></step>
        <step id="t"><batchlet ref="B"><properties><property name="x" value="out"/></properties></batchlet></step>"#,
        &["W80 x"],
    );
    to_draft(
        r##"<step id="s"><batchlet ref="B"/><partition><plan><properties partition="#{jobParameters['n']}"><property name="f" value="a"/>
        </properties></plan></partition></step>"##,
        r#"<step id="s"><batchlet ref="B"/><partition/></step>"#,
        &["E70 #{jobParameters['n']}"],
    );
    // In the draft, the value of the partition would be meant.
    to_draft(
        r##"<step id="s"><batchlet ref="B"><properties><property name="x" value="#{jobParameters['f']}"/></properties></batchlet>
        <partition><plan><properties partition="0"><property name="f" value="a"/></properties></plan></partition></step>"##,
        r#"<properties><property name="f" value=""/></properties>
        <step id="s"><batchlet ref="B"><properties><property name="x" value="${f}"/></properties></batchlet>
        <partition><properties><property name="f.1" value="a"/></properties></partition></step>"#,
        &["W80 x", "E73 #{jobParameters['f']}"],
    );
}

/// A property that only the plan has is passed on beside one that the artifact has, too; a declared default that Jakarta Batch cannot
/// express is not written, and a declared name that no symbol can hold is an error.
///
/// Spec: JAK-40
#[test]
fn properties_of_plans_and_declarations() {
    to_jakarta(
        "<step id='s'><batchlet ref='X'><properties><property name='f' value='x'/></properties></batchlet><partition><properties>\
         <property name='f.1' value='a'/><property name='g.1' value='b'/></properties></partition></step>",
        r##"<step id="s"><batchlet ref="X"><properties><property name="f" value="#{partitionPlan['f']}"/>
        <property name="g" value="#{partitionPlan['g']}"/></properties></batchlet><partition><plan><properties partition="0">
        <property name="f" value="#{jobParameters['f.1']}?:a;"/><property name="g" value="#{jobParameters['g.1']}?:b;"/></properties>
        </plan></partition></step>"##,
        &["W81 X"],
    );
    to_jakarta(
        "<step id='s'><batchlet ref='Text'/><partition instances='2'><properties><property name='text.1' value='z'/></properties>\
         </partition></step>",
        r##"<step id="s"><batchlet ref="Text"><properties>
        <property name="text" value="#{partitionPlan['text']}?:#{jobParameters['text']};"/></properties></batchlet>
        <partition><plan partitions="2"><properties partition="0"><property name="text" value="#{jobParameters['text.1']}?:z;"/></properties>
        </plan></partition></step>"##,
        &["W80 Text"],
    );
    to_jakarta(
        "<step id='s'><batchlet ref='Odd'/></step>",
        r##"<step id="s"><batchlet ref="Odd"><properties><property name="a']}b" value="#{jobParameters['a']}b']}?:c;"/></properties></batchlet></step>"##,
        &["E73 Odd"],
    );
}

/// A name means the value of the partition in the draft, also in the properties around it; but a value of the plan does not mean itself.
///
/// Spec: JAK-41
#[test]
fn names_of_partitions_that_other_properties_use() {
    to_jakarta(
        "<step id='s'><batchlet ref='B'/><partition><properties><property name='f.1' value='${f}.csv'/></properties></partition></step>",
        r##"<step id="s"><batchlet ref="B"/><partition><plan><properties partition="0">
        <property name="f" value="#{jobParameters['f.1']}?:#{jobParameters['f']}.csv;"/></properties></plan></partition></step>"##,
        &["W80 ${f}"],
    );
    to_jakarta(
        "<properties><property name='file' value='${f}.csv'/></properties>\
         <step id='s'><batchlet ref='Fields'/><partition><properties><property name='f.1' value='a'/></properties></partition></step>",
        r##"<properties><property name="file" value="#{jobParameters['file']}?:#{jobParameters['f']}.csv;"/></properties>
        <step id="s"><batchlet ref="Fields"><properties>
        <property name="file" value="#{jobParameters['file']}?:#{partitionPlan['f']}.csv;"/>
        <property name="mode" value="#{jobParameters['mode']}?:fast;"/></properties></batchlet><partition><plan>
        <properties partition="0"><property name="f" value="#{jobParameters['f.1']}?:a;"/></properties></plan></partition></step>"##,
        &["W80 ${f}", "W80 Fields"],
    );
    let step = |own: &str, planned: &str| {
        format!(
            r##"<step id="s"><batchlet ref="B"><properties><property {own}/></properties></batchlet>
            <partition><plan partitions="2"><properties partition="0"><property name="f" value="{planned}"/></properties></plan></partition></step>"##
        )
    };
    let converted = |own: &str, planned: &str| {
        format!(
            r##"<step id="s"><batchlet ref="B"><properties><property {own}/></properties></batchlet>
            <partition instances="2"><properties><property name="f.1" value="{planned}"/></properties></partition></step>"##
        )
    };
    // The value of the partition would replace it.
    let own = r#"name="f" value="own""#;
    to_draft(&step(own, "a"), &converted(own, "a"), &["W80 f", "E73 own"]);
    // Empty in the second partition.
    to_draft(
        &step(r##"name="f" value="#{partitionPlan['f']}""##, "a"),
        &converted(r#"name="f" value="""#, "a"),
        &["W80 f"],
    );
    let of_job = |value: &str| format!(r#"<properties><property name="d" value="{value}"/>"#);
    to_draft(
        &(of_job("#{jobParameters['f']}.csv")
            + "</properties>"
            + &step(r##"name="x" value="#{jobProperties['d']}""##, "a")),
        &(of_job("${f}.csv")
            + r#"<property name="f" value=""/></properties>"#
            + &converted(r#"name="x" value="${d}""#, "a")),
        &["W80 d", "E73 #{jobProperties['d']}"],
    );
    to_draft(
        &step(
            r##"name="x" value="#{partitionPlan['f']}?:v;""##,
            "#{jobParameters['g']}",
        ),
        &(r#"<properties><property name="f" value="v"/><property name="g" value=""/></properties>"#
            .to_owned()
            + &converted(r#"name="x" value="${f}""#, "${g}")),
        &["W80 x", "W80 #{partitionPlan['f']}?:v;"],
    );
}

/// Spec: JAK-40
#[test]
fn transitions_of_the_draft() {
    transitions_to_jakarta(
        r#"<fail on="*"/><next on="A*" to="t"/><end on="A"/>"#,
        r#"<end on="A"/><next on="A?*" to="t"/><fail on="*"/>"#,
        &[&format!("{STATUS} fail")],
    );
    transitions_to_jakarta(
        r#"<next on="A" to="t"/>"#,
        r#"<next on="A" to="t"/><fail on="*"/>"#,
        &[],
    );
    transitions_to_jakarta(r#"<end on="**"/>"#, r#"<end on="?*?*"/>"#, &[]);
    transitions_to_jakarta(
        r#"<stop on="A"/>"#,
        r#"<stop on="A" restart="s"/>"#,
        &[&format!("{STATUS} stop")],
    );
    transitions_to_jakarta(
        r#"<next on="${x}*" to="t"/><end on="*"/>"#,
        r##"<next on="#{jobParameters['x']}?*" to="t"/><end on="*"/>"##,
        &["W78 ${x}*", "W80 ${x}"],
    );
    // The order of a single one does not matter.
    transitions_to_jakarta(
        r#"<next on="${x}" to="t"/>"#,
        r##"<next on="#{jobParameters['x']}" to="t"/><fail on="*"/>"##,
        &["W80 ${x}"],
    );
    // Within a flow, the flow is resumed; a decision cannot be.
    let step = r#"<step id="a"><batchlet ref="B"/>"#;
    to_jakarta(
        &format!(r#"<flow id="f">{step}<stop on="A"/></step></flow>"#),
        &format!(r#"<flow id="f">{step}<stop on="A" restart="f"/></step></flow>"#),
        &["W78 stop"],
    );
    to_jakarta(
        &format!(r#"{step}</step><decision id="d" decider="D"><stop on="*"/></decision>"#),
        &format!(r#"{step}</step><decision id="d" ref="D"><stop on="*"/></decision>"#),
        &["E72 stop"],
    );
}

/// Spec: JAK-40
#[test]
fn transitions_of_jakarta_batch() {
    transitions_to_draft(
        r#"<next on="A*" to="t"/><end on="*"/>"#,
        r#"<next on="A" to="t"/><next on="A*" to="t"/><end on="*"/>"#,
        &["W78 end"],
    );
    transitions_to_draft(
        r#"<next on="A?*" to="t"/><end on="*"/><fail on="B"/>"#,
        r#"<next on="A*" to="t"/><end on="*"/>"#,
        &["W78 end"],
    );
    transitions_to_draft(r#"<fail on="*A*"/>"#, "", &["W78 fail", "E72 *A*"]);
    transitions_to_draft(
        r#"<end on="A?"/><fail on="?BC"/><stop on="?B"/>"#,
        r#"<end on="A?"/><fail on="?BC"/><stop on="?B" restart="s"/>"#,
        &["W78 end"],
    );
    transitions_to_draft(
        r#"<end on="A?*"/><fail on="?BC"/>"#,
        r#"<end on="A*"/><fail on="?BC"/>"#,
        &["W78 end", "E72 ?BC"],
    );
    // Nothing matches: the step ends the job, and a failed one fails it.
    transitions_to_draft(
        r#"<next on="A" to="t"/>"#,
        r#"<next on="A" to="t"/><fail on="FAILED"/><end on="*"/>"#,
        &["W78 step"],
    );
    to_draft(
        r##"<step id="s"><batchlet ref="B"/><fail on="#{jobParameters['x']}*"/></step>"##,
        r#"<properties><property name="x" value=""/></properties><step id="s"><batchlet ref="B"/><fail on="${x}*"/></step>"#,
        &["W78 fail", "W78 #{jobParameters['x']}*"],
    );
    let many: String = (0..70).map(|number| format!("<end on='?{number}'/>")).collect();
    let found = convert(
        &format!("<job id='j' {NAMESPACE}><step id='s'><batchlet ref='B'/>{many}</step></job>"),
        Dialect::Draft,
    );
    assert_eq!(problems(&found), ["W78 end", "E75 ?64"]);
}

/// Spec: JAK-40
#[test]
fn next_beside_transitions() {
    let steps = |attribute: &str, inner: &str| {
        format!(
            r#"<step id="s"{attribute}><batchlet ref="B"/>{inner}</step><step id="t"><batchlet ref="B"/></step>"#
        )
    };
    to_draft(
        &steps(r#" next="t""#, r#"<next on="A" to="t"/>"#),
        &steps(
            "",
            r#"<next on="A" to="t"/><fail on="FAILED"/><next on="*" to="t"/>"#,
        ),
        &["W78 step"],
    );
    to_draft(
        &steps(r#" next="t""#, r#"<end on="A"/>"#),
        &steps(r#" next="t""#, r#"<end on="A"/>"#),
        &["W78 end"],
    );
    to_draft(
        &steps(r#" next="t""#, r#"<next on="*" to="t"/>"#),
        &steps("", r#"<next on="*" to="t"/>"#),
        &[],
    );
    let flow = format!(r#"<flow id="f">{}</flow>"#, steps("", r#"<next on="A" to="t"/>"#));
    to_draft(&flow, &flow, &["E72 step"]);
}

/// Spec: JAK-41
#[test]
fn properties_of_the_draft() {
    // Each sees those that it refers to; an inner one of the same name has no effect.
    to_jakarta(
        "<properties><property name='path' value='${dir}/${file}'/><property name='dir' value='/data'/>\
         <property name='batch.job.timeout' value='9'/></properties>\
         <step id='s'><properties><property name='dir' value='here'/><property name='k' value='${k}'/></properties>\
         <batchlet ref='B'><properties><property name='own' value='${dir}'/><property name='dir' value='x'/></properties></batchlet></step>",
        r##"<properties><property name="dir" value="#{jobParameters['dir']}?:/data;"/>
        <property name="path" value="#{jobParameters['path']}?:#{jobProperties['dir']}/#{jobParameters['file']};"/>
        <property name="batch.job.timeout" value="9"/></properties>
        <step id="s"><properties><property name="dir" value="#{jobProperties['dir']}"/>
        <property name="k" value="#{jobParameters['k']}"/></properties>
        <batchlet ref="B"><properties><property name="own" value="#{jobParameters['own']}?:#{jobProperties['dir']};"/>
        <property name="dir" value="#{jobProperties['dir']}"/></properties></batchlet></step>"##,
        &["W80 ${file}"],
    );
    // What an artifact declares: its own, an outer one, its default, a required one, an optional one.
    to_jakarta(
        "<step id='s'><properties><property name='file' value='a'/><property name='other' value='1'/></properties>\
         <batchlet ref='Fields'/></step>",
        r##"<step id="s"><properties><property name="file" value="#{jobParameters['file']}?:a;"/>
        <property name="other" value="#{jobParameters['other']}?:1;"/></properties>
        <batchlet ref="Fields"><properties><property name="file" value="#{jobProperties['file']}"/>
        <property name="mode" value="#{jobParameters['mode']}?:fast;"/></properties></batchlet></step>"##,
        &["W80 Fields"],
    );
    to_jakarta(
        "<step id='s'><batchlet ref='Fields'><properties><property name='mode' value='slow'/><property name='limit' value=''/></properties></batchlet></step>",
        r##"<step id="s"><batchlet ref="Fields"><properties><property name="mode" value="#{jobParameters['mode']}?:slow;"/>
        <property name="limit" value="#{jobParameters['limit']}"/><property name="file" value="#{jobParameters['file']}"/>
        </properties></batchlet></step>"##,
        &[],
    );
    to_jakarta(
        "<step id='s'><batchlet ref='Text'/></step>",
        r#"<step id="s"><batchlet ref="Text"/></step>"#,
        &["W80 Text"],
    );
    // An artifact that is not linked gets everything.
    to_jakarta(
        "<properties><property name='a' value='1'/></properties><step id='s'><batchlet ref='Unknown'/></step>\
         <step id='t'><batchlet ref='Unknown'/></step>",
        r##"<properties><property name="a" value="#{jobParameters['a']}?:1;"/></properties>
        <step id="s"><batchlet ref="Unknown"><properties><property name="a" value="#{jobProperties['a']}"/></properties></batchlet></step>
        <step id="t"><batchlet ref="Unknown"><properties><property name="a" value="#{jobProperties['a']}"/></properties></batchlet></step>"##,
        &["W81 Unknown"],
    );
    to_jakarta(
        "<step id='s'><batchlet ref='B'><properties><property name='a' value='1;2'/></properties></batchlet></step>",
        r#"<step id="s"><batchlet ref="B"><properties><property name="a" value="1;2"/></properties></batchlet></step>"#,
        &["W80 1;2"],
    );
    // Those of a chunk are for its artifacts.
    chunk_to_jakarta(
        "skip-limit='${n}'",
        "<properties><property name='n' value='3'/><property name='x' value='${y}' target='writer'/><property name='y' value='7'/></properties>",
        r##"<chunk skip-limit="#{jobParameters['n']}?:3;"><reader ref="R"/><processor ref="P"/><writer ref="W"><properties>
        <property name="y" value="#{jobParameters['y']}?:7;"/><property name="x" value="#{jobParameters['x']}?:#{jobProperties['y']};"/>
        </properties></writer></chunk>"##,
        &[],
    );
    to_jakarta(
        "<step id='s'><batchlet ref='B'><properties><property name='${n}' value='1'/><property name='a' value='#{x}'/></properties></batchlet></step>",
        r##"<step id="s"><batchlet ref="B"><properties><property name="a" value="#{jobParameters['a']}?:#{x};"/></properties></batchlet></step>"##,
        &["E73 ${n}", "E74 #{x}"],
    );
    to_jakarta(
        "<step id='s'><batchlet ref='${x}?:y'/></step>",
        r##"<step id="s"><batchlet ref="#{jobParameters['x']}?:y"/></step>"##,
        &["W81 ${x}?:y", "E74 ${x}?:y", "W80 ${x}"],
    );
}

/// Properties that depend on themselves are parameters, and each cycle ends.
///
/// Spec: JAK-41
#[test]
fn circular_properties_of_the_draft() {
    to_jakarta(
        "<properties><property name='a' value='${b}'/><property name='b' value='${a}'/><property name='c' value='x${c}'/></properties>\
         <step id='s'><batchlet ref='B'/></step>",
        r##"<properties><property name="b" value="#{jobParameters['b']}?:#{jobParameters['a']};"/>
        <property name="a" value="#{jobParameters['a']}?:#{jobProperties['b']};"/><property name="c" value="#{jobParameters['c']}"/></properties>
        <step id="s"><batchlet ref="B"/></step>"##,
        &["W80 ${a}"],
    );
    let chain = |length: usize| {
        let links: String = (0..length)
            .map(|link| {
                format!(
                    "<property name='p{link}' value='${{p{}}}${{p{}}}'/>",
                    link + 1,
                    link + 1
                )
            })
            .collect();
        format!(
            "<job id='j'><step id='s'><chunk reader='R' processor='P' writer='W' skip-limit='${{p0}}'>\
             <properties>{links}</properties></chunk></step></job>"
        )
    };
    let found = convert(&chain(30), Dialect::Jakarta);
    assert!(
        found.problems.iter().any(|one| one.code == "JSL0075"),
        "{}",
        found.problems
    );
    let found = convert(&chain(5_000), Dialect::Jakarta);
    assert!(!found.is_complete);
    let many: String = (0..20_000)
        .map(|number| format!("<property name='p{number}' value='1'/>"))
        .collect();
    let steps: String = (0..2_000)
        .map(|number| format!("<step id='s{number}'><batchlet ref='X'/></step>"))
        .collect();
    let found = convert(
        &format!("<job id='j'><properties>{many}</properties>{steps}</job>"),
        Dialect::Jakarta,
    );
    assert!(found.problems.iter().any(|one| one.code == "JSL0075") && found.xml.len() < 64 << 20);
}

/// Spec: JAK-41, JAK-42
#[test]
fn properties_of_jakarta_batch() {
    let batchlet =
        |properties: &str| format!(r#"<step id="s"><batchlet ref="B">{properties}</batchlet></step>"#);
    let list = |entries: &str| format!("<properties>{entries}</properties>");
    // A parameter is a job property with the default; the draft passes what has the same name.
    to_draft(
        &(list(r#"<property name="dir" value="/data"/>"#)
            + &batchlet(&list(
                r##"<property name="x" value="#{jobParameters['p']}?:none;-#{jobParameters['q']}"/>
                <property name="p2" value="#{jobParameters['p2']}?:7;"/><property name="dir" value="#{jobProperties['dir']}"/>
                <property name="y" value="#{jobProperties['dir']}/#{systemProperties['sep']}"/>
                <property name="z" value="#{jobProperties['later']}?:none;"/>"##,
            ))),
        &(list(
            r#"<property name="dir" value="/data"/><property name="p" value="none"/><property name="q" value=""/><property name="sep" value=""/>"#,
        ) + &batchlet(&list(
            r#"<property name="x" value="${p}-${q}"/><property name="p2" value="7"/><property name="y" value="${dir}/${sep}"/>
            <property name="z" value="none"/>"#,
        ))),
        &["W80 dir"],
    );
    let use_twice = |one: &str, other: &str| {
        batchlet(&list(&format!(
            r##"<property name="x" value="#{{jobParameters['p']}}?:{one};"/><property name="y" value="#{{jobParameters['p']}}?:{other};"/>"##
        )))
    };
    let used = batchlet(&list(
        r#"<property name="x" value="${p}"/><property name="y" value="${p}"/>"#,
    ));
    let wanted = list(r#"<property name="p" value="1"/>"#);
    to_draft(&use_twice("1", "1"), &format!("{wanted}{used}"), &["W80 x"]);
    to_draft(
        &use_twice("1", "2"),
        &format!("{wanted}{used}"),
        &["W80 x", "E73 #{jobParameters['p']}?:2;"],
    );
    // The outermost property takes precedence in the draft.
    to_draft(
        &(list(r#"<property name="a" value="1"/>"#)
            + r#"<step id="s"><properties><property name="a" value="2"/></properties><batchlet ref="B"><properties>
            <property name="a" value="1"/></properties></batchlet></step>"#),
        &(list(r#"<property name="a" value="1"/>"#)
            + r#"<step id="s"><properties><property name="a" value="${a}"/></properties><batchlet ref="B"/></step>"#),
        &["W80 a", "E73 2"],
    );
    to_draft(
        &batchlet(&list(
            r##"<property name="p" value="1"/><property name="x" value="#{jobParameters['p']}"/>"##,
        )),
        &(list(r#"<property name="p" value=""/>"#)
            + &batchlet(&list(
                r#"<property name="p" value="1"/><property name="x" value="${p}"/>"#,
            ))),
        &["W80 p", "E73 1"],
    );
    to_draft(
        &(list(r#"<property name="p" value="1"/>"#)
            + &batchlet(&list(r##"<property name="x" value="#{jobParameters['p']}"/>"##))),
        &(list(r#"<property name="p" value="1"/>"#)
            + &batchlet(&list(r#"<property name="x" value="${p}"/>"#))),
        &["W80 p", "E73 #{jobParameters['p']}"],
    );
    // An artifact that declares a name gets it from outside.
    to_draft(
        &(list(r#"<property name="file" value="1"/>"#) + r#"<step id="s"><batchlet ref="Fields"/></step>"#),
        &(list(r#"<property name="file" value="1"/>"#) + r#"<step id="s"><batchlet ref="Fields"/></step>"#),
        &["W80 file", "W80 Fields"],
    );
    to_draft(
        &batchlet(&list(
            r##"<property name="x" value="${y}"/><property name="z" value="#{jobParameters['a}b']}"/>"##,
        )),
        &(list(r#"<property name="a}b" value=""/>"#)
            + &batchlet(&list(
                r#"<property name="x" value="${y}"/><property name="z" value="${a}b}"/>"#,
            ))),
        &["W80 x", "E74 ${y}", "E73 #{jobParameters['a}b']}"],
    );
    to_draft(
        &batchlet(&list(r##"<property name="x" value="#{jobParameters"/>"##)),
        &batchlet(&list(r#"<property name="x" value=""/>"#)),
        &["W80 x", "E40 #{jobParameters"],
    );
}

/// The example of the guide is what the conversion prints.
///
/// Spec: JAK-40
#[test]
fn the_example_of_the_guide_is_converted_as_shown() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/job-xml.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("\n## Converting between the dialects\n").unwrap();
    let blocks: Vec<&str> = section
        .split("```xml\n")
        .skip(1)
        .map(|rest| rest.split_once("```").unwrap().0)
        .collect();
    let [from, to] = blocks[..] else {
        panic!("{blocks:?}")
    };
    let mut artifacts = known();
    let file = DeclaredProperty {
        name: "file".to_owned(),
        default: None,
        is_optional: false,
    };
    artifacts.insert("RowReader".to_owned(), vec![file]);
    for name in ["RowProcessor", "RowWriter", "Report"] {
        artifacts.insert(name.to_owned(), Vec::new());
    }
    let limits = Limits::default();
    let document = parse(&Source::new("import.xml", from), &limits).unwrap();
    let effective = Effective::new(&document, &Vec::new(), &limits).unwrap();
    let found = effective.convert(Dialect::Jakarta, &artifacts);
    assert_eq!(
        found.xml.lines().skip(1).collect::<Vec<_>>(),
        to.lines().collect::<Vec<_>>()
    );
    assert_eq!(problems(&found), ["W78 fail"]);
}
