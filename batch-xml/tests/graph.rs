//! Drawings: deterministic, well-formed for every job, and complete.

use std::collections::BTreeMap;

use batch_xml::graph::JobGraph;
use batch_xml::model::Job;
use batch_xml::{Limits, Source, Values, parse, resolve};
use roxmltree::{Document, Node};

fn job(text: &str, parameters: &[(&str, &str)]) -> Job {
    let parameters: BTreeMap<String, String> = parameters
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let limits = Limits::default();
    let values = Values {
        parameters: &parameters,
        system: &BTreeMap::new(),
    };
    let document = parse(&Source::new("job.xml", text), &limits).unwrap();
    resolve(&document, &Vec::new(), &values, &limits)
        .unwrap_or_else(|errors| panic!("{errors}"))
        .job
}

/// A job with every kind of transition.
const DAY: &str = r#"<job id="end-of-day">
  <step id="collect" next="checked">
    <batchlet ref="Collector"/><fail on="NO FILES" exit-status="NOTHING TO DO"/><stop on="LATE*" restart="collect"/>
  </step>
  <decision id="checked" decider="QualityDecider">
    <next on="GOOD" to="load"/><next on="REPAIR*" to="repair"/><next on="AGAIN?" to="collect"/>
    <end on="EMPTY" exit-status="EMPTY DAY"/><stop on="HOLD" exit-status="WAITING" restart="load"/><fail on="*"/>
  </decision>
  <step id="repair">
    <batchlet ref="Repair"/><next on="*" to="load"/><next on="MORE" to="repair"/><next on="MUCH MORE" to="load"/>
  </step>
  <split id="load" next="report">
    <flow id="accounts" next="balances">
      <step id="read-accounts"><chunk reader="AccountReader" processor="AccountProcessor" writer="AccountWriter"/></step>
    </flow>
    <flow id="balances"><step id="compute"><batchlet ref="Balances"/></step></flow>
    <flow id="trades">
      <step id="read-trades" next="settled">
        <partition instances="4"/><chunk reader="TradeReader" processor="TradeProcessor" writer="TradeWriter"/>
      </step>
      <decision id="settled" decider="Settled"><next on="YES" to="archive"/><next on="NO" to="dispute"/></decision>
      <step id="archive"><batchlet ref="Archive"/></step>
      <step id="dispute"><batchlet ref="Dispute"/></step>
    </flow>
    <flow id="prices">
      <partition><algorithm ref="ByExchange"/></partition>
      <step id="load-prices"><batchlet ref="Prices"/></step>
    </flow>
  </split>
  <step id="report"><batchlet ref="Report"/></step>
</job>"#;

/// Spec: SEQ-01, SEQ-02, FLOW-03, SPLIT-03, SPLIT-06, DEC-06
#[test]
fn a_job_as_mermaid() {
    insta::assert_snapshot!(JobGraph::new(&job(DAY, &[])).to_mermaid());
}

#[test]
fn a_job_for_graphviz() {
    insta::assert_snapshot!(JobGraph::new(&job(DAY, &[])).to_dot());
}

#[test]
fn a_job_as_svg() {
    let job = job(DAY, &[]);
    let svg = JobGraph::new(&job).to_svg();
    assert_eq!(svg, JobGraph::new(&job).to_svg());
    insta::assert_snapshot!(svg);
}

fn of_class<'a, 'i>(svg: &'a Document<'i>, class: &str) -> Vec<Node<'a, 'i>> {
    let has = |node: &Node<'_, '_>| {
        node.attribute("class")
            .is_some_and(|classes| classes.split(' ').eq(class.split(' ')))
    };
    svg.descendants().filter(has).collect()
}

fn texts(svg: &Document<'_>, class: &str) -> Vec<String> {
    of_class(svg, class)
        .iter()
        .map(|node| node.text().unwrap_or_default().to_owned())
        .collect()
}

/// Each kind of element and of transition is distinguishable.
#[test]
fn the_picture_shows_what_is_what() {
    let svg = JobGraph::new(&job(DAY, &[])).to_svg();
    let svg = Document::parse(&svg).unwrap();
    for (class, count) in [
        // A partitioned step is three rectangles.
        ("step", 9 + 2),
        ("decision", 2),
        ("flow", 4),
        ("split", 1),
        ("end exit", 1),
        ("fail exit", 2),
        ("stop exit", 2),
        ("again exit", 1),
        // Transitions between the same two elements share one line.
        ("next line", 6),
        ("next pill", 6),
    ] {
        assert_eq!(of_class(&svg, class).len(), count, "{class}");
    }
    let patterns = texts(&svg, "on");
    for pattern in [
        "NO FILES",
        "LATE*",
        "GOOD",
        "REPAIR*",
        "AGAIN?",
        "EMPTY",
        "HOLD",
        "*",
        "*, MUCH MORE",
        "MORE",
        "YES",
        "NO",
    ] {
        assert!(
            patterns.iter().any(|found| found == pattern),
            "{pattern}: {patterns:?}"
        );
    }
    let exits = texts(&svg, "word");
    for exit in [
        "fail NOTHING TO DO",
        "stop ↺ collect",
        "end EMPTY DAY",
        "stop WAITING ↺ load",
        "fail",
        "again",
    ] {
        assert!(exits.iter().any(|found| found == exit), "{exit}: {exits:?}");
    }
    assert!(texts(&svg, "name").contains(&"read-trades × 4".to_owned()));
    assert!(texts(&svg, "title").contains(&"flow prices × n".to_owned()));
    let pointers = svg.descendants().filter(|node| node.has_tag_name("title"));
    let pointers: Vec<&str> = pointers.filter_map(|node| node.text()).collect();
    assert!(pointers.contains(&"step repair (job.xml:9:3)"), "{pointers:?}");
}

/// The begin and end of a flow are marked, unless its steps follow each other unconditionally.
///
/// Spec: FLOW-03, SEQ-20
#[test]
fn only_chains_have_no_marks() {
    let marks = |first: &str| {
        let flow = format!("<flow id='f'>{first}<step id='b'><batchlet ref='B'/></step></flow>");
        let svg = JobGraph::new(&job(&format!("<job id='j'>{flow}</job>"), &[])).to_svg();
        let svg = Document::parse(&svg).unwrap();
        of_class(&svg, "mark").len()
    };
    let of_chain = marks("<step id='a' next='b'><batchlet ref='B'/></step>");
    let of_choice = marks("<step id='a'><batchlet ref='B'/><next on='GOOD' to='b'/></step>");
    assert_eq!(of_choice, of_chain + 2);
}

/// Characters that are markup in some format are drawn as text.
#[test]
fn hostile_texts_are_only_texts() {
    let text = r##"<job id="j"><step id="&lt;/text>&amp;&quot;'x&quot;]; end ]]>">
        <batchlet ref="${ref}"/><fail on="--> &lt;script>|&quot;|" exit-status="`#quot;`\&quot;"/></step>
        <step id="]--"><batchlet ref="\"/></step></job>"##;
    let graph = JobGraph::new(&job(text, &[("ref", "a\u{1}b\nc\u{fffe}")]));
    let svg = graph.to_svg();
    let svg = Document::parse(&svg).unwrap();
    assert_eq!(texts(&svg, "name"), [r#"</text>&"'x"]; end ]]>"#, "]--"]);
    assert_eq!(texts(&svg, "detail"), ["a\u{fffd}b c\u{fffd}", "\\"]);
    assert_eq!(texts(&svg, "on"), [r#"--> <script>|"|"#]);
    assert!(!svg.descendants().any(|node| node.has_tag_name("script")));

    let mermaid = graph.to_mermaid();
    assert!(
        mermaid.contains(r##"|"--#62; #60;script#62;#124;#34;#124;"|"##),
        "{mermaid}"
    );
    assert!(mermaid.contains("#96;#35;quot#59;#96;#92;#34;"), "{mermaid}");
    let dot = graph.to_dot();
    assert!(
        dot.contains(r#"[label="</text>&amp;\"'x\"]; end ]]>\na�b"#),
        "{dot}"
    );
    assert!(dot.contains(r#"label="]--\n\\","#), "{dot}");
}

/// Long texts are truncated in the picture, and complete in tooltips.
#[test]
fn long_ids_do_not_make_it_wide() {
    let id = "x".repeat(100);
    let svg = JobGraph::new(&job(
        &format!("<job id='j'><step id='{id}'><batchlet ref='B'/></step></job>"),
        &[],
    ))
    .to_svg();
    assert!(svg.contains(&format!("<title>step {id} (job.xml:1:13)</title>")));
    assert!(svg.contains(&format!(">{}…</text>", "x".repeat(48))));
    let document = Document::parse(&svg).unwrap();
    let width: f64 = document
        .root_element()
        .attribute("width")
        .unwrap()
        .parse()
        .unwrap();
    assert!(width < 600.0, "{width}");
}

/// The size of the picture is linear in the size of the job.
#[test]
fn many_steps_take_room_for_many_steps() {
    let size = |count: usize| {
        let steps: String = (0..count)
            .map(|n| {
                let next = if n + 1 < count {
                    format!(" next='s{}'", n + 1)
                } else {
                    String::new()
                };
                format!("<step id='s{n}'{next}><batchlet ref='B'/><fail on='F'/></step>")
            })
            .collect();
        JobGraph::new(&job(&format!("<job id='j'>{steps}</job>"), &[]))
            .to_svg()
            .len()
    };
    let (small, large) = (size(100), size(1_000));
    assert!(large < 11 * small, "{small} {large}");
}
