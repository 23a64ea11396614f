//! Jobs written as XML and read back, and jobs built in Rust.

use std::collections::BTreeMap;

use batch_xml::builder::{
    ArtifactBuilder, BuiltElement, ChunkBuilder, DecisionBuilder, FlowBuilder, JobBuilder, PartitionBuilder,
    SplitBuilder, StepBuilder,
};
use batch_xml::model::{Job, Target};
use batch_xml::{Document, Effective, JobXmlErrors, Limits, Resolved, Source, Values, parse, resolve};
use proptest::prelude::*;

fn resolved(document: &Document) -> Result<Resolved, JobXmlErrors> {
    let none = BTreeMap::new();
    let values = Values {
        parameters: &none,
        system: &none,
    };
    resolve(document, &Vec::new(), &values, &Limits::default())
}

fn read(text: &str) -> Document {
    parse(&Source::new("written.xml", text), &Limits::default())
        .unwrap_or_else(|errors| panic!("{text}\n{errors}"))
}

/// Returns the model as text, without source positions.
fn shown(job: &Job) -> String {
    let mut job = job.clone();
    job.symbols.clear();
    let text = format!("{job:#?}");
    let is_place = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("span: ") || line.starts_with("source: ")
    };
    // The place of exception classes shows that the element exists; the position itself takes three lines.
    let lines = text
        .lines()
        .filter(|line| !is_place(line) && !line.contains("written.xml:"));
    let lines = lines.filter(|line| !line.contains("job `j`:"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Makes a valid job of any numbers.
struct Maker<'a> {
    choices: std::slice::Iter<'a, u8>,
    ids: usize,
}

const TEXTS: [&str; 8] = [
    "plain",
    "",
    " <a b='\"'>&amp; ",
    "\t\r\n",
    "ä😀\u{85}",
    "$}{$",
    "${k}-${k}",
    "]]>",
];

impl Maker<'_> {
    fn draw(&mut self, below: usize) -> usize {
        usize::from(self.choices.next().copied().unwrap_or(0)) % below
    }

    fn flag(&mut self) -> bool {
        self.draw(2) == 1
    }

    fn text(&mut self) -> &'static str {
        TEXTS[self.draw(TEXTS.len())]
    }

    fn id(&mut self) -> String {
        self.ids += 1;
        format!("e{}", self.ids)
    }

    fn artifact(&mut self) -> ArtifactBuilder {
        let name = ["A", "b.c.D", "ä b"][self.draw(3)];
        let mut artifact = ArtifactBuilder::new(name);
        for name in &["p", "q", "k"][..self.draw(4)] {
            artifact = artifact.property(name, self.text());
        }
        artifact
    }

    fn chunk(&mut self) -> ChunkBuilder {
        let mut chunk = ChunkBuilder::new("R", "P", "W");
        for name in &["p", "q", "r"][..self.draw(4)] {
            chunk = chunk.property(name, self.text());
        }
        for (name, target) in [
            ("q", Target::Reader),
            ("q", Target::Writer),
            ("t", Target::Processor),
        ] {
            if self.flag() {
                chunk = chunk.property_for(target, name, self.text());
            }
        }
        chunk = match self.draw(4) {
            0 => chunk,
            1 => chunk.checkpoint_policy("time"),
            2 => chunk.checkpoint_policy("item").commit_interval(3),
            _ => chunk
                .checkpoint_policy("custom")
                .checkpoint_algorithm(self.artifact()),
        };
        if self.flag() {
            chunk = chunk
                .chunk_size(4)
                .skip_limit(0)
                .retry_limit(7)
                .checkpoint_timeout(9);
        }
        if self.flag() {
            chunk = chunk
                .buffer_reads(false)
                .skippable(&["E", "*"], &["F"])
                .retryable(&[], &[]);
        }
        if self.flag() {
            chunk = chunk.no_rollback(&["G"], &[]);
        }
        chunk
    }

    fn partition(&mut self) -> PartitionBuilder {
        let partition = if self.flag() {
            let partition = PartitionBuilder::new(3).property(1, "x", self.text(), None);
            partition.property(3, "x.y", self.text(), Some(Target::Reader))
        } else {
            PartitionBuilder::algorithm(self.artifact())
        };
        let partition = partition.collector(self.artifact()).logical_tx(self.artifact());
        partition.analyzer(self.artifact())
    }

    fn step(&mut self, id: &str, next: Option<&str>) -> StepBuilder {
        let mut step = if self.flag() {
            StepBuilder::chunk(id, self.chunk())
        } else {
            StepBuilder::batchlet(id, self.artifact())
        };
        if self.flag() {
            step = step.property("p", self.text()).property("s", self.text());
        }
        for _ in 0..self.draw(3) {
            step = step.listener(self.artifact());
        }
        if self.flag() {
            step = step.start_limit(2).allow_start_if_complete(true);
        }
        if self.draw(4) == 3 {
            step = step.partition(self.partition());
        }
        match (next, self.draw(3)) {
            (Some(next), 0) => step.next(next),
            (Some(next), 1) => step.next_on("A?*", next).fail("B<", None),
            (_, 2) => step.end("*", Some("E \"")).stop("?", None, None),
            _ => step,
        }
    }

    fn decision(&mut self, id: &str, next: Option<&str>) -> DecisionBuilder {
        let mut decision = DecisionBuilder::new(id, "D").fail("F", Some(""));
        if self.flag() {
            decision = decision.property("d", self.text());
        }
        match next {
            Some(next) => decision.next_on("*", next),
            None => decision.stop("*", Some("s"), Some("e1")),
        }
    }

    /// Makes elements that each lead to the next, the first no decision, and no two decisions in a row.
    fn elements(&mut self, kinds: &[char]) -> Vec<BuiltElement> {
        let count = 1 + self.draw(3);
        let ids: Vec<String> = (0..count).map(|_| self.id()).collect();
        let mut was_decision = true;
        let mut elements = Vec::new();
        for (index, id) in ids.iter().enumerate() {
            let next = ids.get(index + 1).map(String::as_str);
            let kind = kinds[self.draw(kinds.len())];
            let kind = if was_decision && kind == 'd' {
                kinds[0]
            } else {
                kind
            };
            was_decision = kind == 'd';
            elements.push(match kind {
                's' => self.step(id, next).into(),
                'd' => self.decision(id, next).into(),
                'f' => self.flow(id, next).into(),
                _ => self.split(id, next).into(),
            });
        }
        elements
    }

    fn flow(&mut self, id: &str, next: Option<&str>) -> FlowBuilder {
        let mut flow = FlowBuilder::new(id);
        for element in self.elements(&['s', 'd']) {
            flow = flow.element(element);
        }
        if self.draw(4) == 3 {
            flow = flow.partition(self.partition());
        }
        next.into_iter().fold(flow, |flow, next| flow.next(next))
    }

    fn split(&mut self, id: &str, next: Option<&str>) -> SplitBuilder {
        let mut split = SplitBuilder::new(id);
        for element in self.elements(&['f', 'd']) {
            split = split.element(element);
        }
        if self.flag() {
            split = split.collector(self.artifact()).analyzer(self.artifact());
        }
        next.into_iter().fold(split, |split, next| split.next(next))
    }

    fn job(&mut self) -> JobBuilder {
        let mut job = JobBuilder::new("j")
            .property("k", "value")
            .restartable(self.flag());
        for _ in 0..self.draw(3) {
            job = job.listener(self.artifact());
        }
        for element in self.elements(&['s', 'd', 'f', 'p']) {
            job = job.element(element);
        }
        job
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: super::cases(400, 1_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Spec: JSL-DOC-19
    #[test]
    fn jobs_written_and_read_are_the_same(choices in prop::collection::vec(any::<u8>(), 0..250)) {
        let job = Maker { choices: choices.iter(), ids: 0 }.job();
        let document = job.document(&Limits::default()).unwrap();
        let first = resolved(&document).unwrap_or_else(|errors| panic!("{}\n{errors}", job.to_xml()));
        let written = first.job.to_xml();
        let second = resolved(&read(&written)).unwrap_or_else(|errors| panic!("{written}\n{errors}"));
        prop_assert_eq!(shown(&first.job), shown(&second.job), "{}\n{}", job.to_xml(), written);
        // A written document is written identically again.
        prop_assert_eq!(second.job.to_xml(), written);

        let effective = first.effective.to_xml();
        let again = Effective::new(&read(&effective), &Vec::new(), &Limits::default()).unwrap();
        prop_assert_eq!(again.to_xml(), effective);
    }
}

/// Spec: JSL-DOC-19
#[test]
fn the_written_job_has_its_values() {
    let text = "<job id='j'><properties><property name='dir' value='/data'/></properties>
      <step id='t' abstract='true'/><step id='s' start-limit='0'>
      <batchlet ref='B'><properties><property name='f' value='${dir}/f'/><property name='dir' value='x'/></properties>
      </batchlet><listener ref='L'/></step></job>";
    let written = resolved(&read(text)).unwrap().job.to_xml();
    assert_eq!(
        written,
        r#"<?xml version="1.0" encoding="UTF-8"?>
<job id="j">
  <properties>
    <property name="dir" value="/data"/>
  </properties>
  <step id="s">
    <listeners>
      <listener ref="L"/>
    </listeners>
    <batchlet ref="B">
      <properties>
        <property name="f" value="/data/f"/>
      </properties>
    </batchlet>
  </step>
</job>
"#
    );
}

/// Spec: JSL-DOC-19
#[test]
fn the_written_chunk_has_its_values() {
    for attributes in [
        r#"checkpoint-policy="item" commit-interval="3" chunk-size="2" checkpoint-timeout="1""#,
        r#"checkpoint-policy="item" commit-interval="3" buffer-reads="false" checkpoint-timeout="9""#,
    ] {
        let chunk = format!(r#"<chunk reader="R" processor="P" writer="W" {attributes}/>"#);
        let job = read(&format!(r#"<job id="j"><step id="s">{chunk}</step></job>"#));
        let first = resolved(&job).unwrap().job;
        let second = resolved(&read(&first.to_xml())).unwrap().job;
        assert_eq!(shown(&first), shown(&second), "{}", first.to_xml());
    }
}

/// Spec: JSL-DOC-19, PART-17, PART-19
#[test]
fn a_built_partition_has_its_algorithm() {
    let algorithm = ArtifactBuilder::new("Halves").property("of", "1000");
    let partition = PartitionBuilder::algorithm(algorithm);
    let step = StepBuilder::batchlet("s", ArtifactBuilder::new("B")).partition(partition);
    let document = JobBuilder::new("j").element(step).document(&Limits::default());
    let written = resolved(&document.unwrap()).unwrap().job.to_xml();
    let algorithm = r#"    <partition instances="1">
      <algorithm ref="Halves">
        <properties>
          <property name="of" value="1000"/>
        </properties>
      </algorithm>
    </partition>
"#;
    assert!(written.contains(algorithm), "{written}");
}

/// A parameter value with characters that XML forbids leaves the document well-formed.
#[test]
fn characters_that_xml_cannot_hold_are_replaced() {
    let parameters = BTreeMap::from([("p".to_owned(), "a\0b\u{ffff}".to_owned())]);
    let values = Values {
        parameters: &parameters,
        system: &BTreeMap::new(),
    };
    let document = read("<job id='j'><step id='s'><batchlet ref='${p}'/></step></job>");
    let job = resolve(&document, &Vec::new(), &values, &Limits::default())
        .unwrap()
        .job;
    assert!(job.to_xml().contains("ref=\"a\u{fffd}b\u{fffd}\""));
    read(&job.to_xml());
}

/// Jobs built in Rust pass the same checks as XML.
#[test]
fn built_jobs_are_checked() {
    let check = |job: JobBuilder, expect: &[&str]| {
        let found = job
            .document(&Limits::default())
            .and_then(|document| resolved(&document));
        let codes: Vec<_> = found.map_or_else(
            |errors| errors.iter().map(|error| error.code).collect(),
            |_| Vec::new(),
        );
        assert_eq!(codes, expect, "{}", job.to_xml());
    };
    let step = |id: &str| StepBuilder::batchlet(id, ArtifactBuilder::new("B"));
    check(JobBuilder::new("j").element(step("s")), &[]);
    check(JobBuilder::new("j"), &["JSL0029"]);
    check(JobBuilder::new("j k").element(step("s")), &["JSL0020"]);
    check(JobBuilder::new("j\0"), &["JSL0003"]);
    check(
        JobBuilder::new("j").element(step("s")).element(step("s")),
        &["JSL0021"],
    );
    check(JobBuilder::new("j").element(StepBuilder::new("s")), &["JSL0024"]);
    check(JobBuilder::new("j").element(step("s").parent("p")), &["JSL0033"]);
    check(
        JobBuilder::new("j").element(step("s").is_abstract(true)),
        &["JSL0029"],
    );
    check(JobBuilder::new("j").is_abstract(true), &["JSL0030"]);
    let flow = FlowBuilder::new("f").element(SplitBuilder::new("p"));
    check(JobBuilder::new("j").element(flow), &["JSL0010"]);
}

/// One element of a job is written with what is around it, without what follows, and with its symbols.
#[test]
fn one_element_is_written_alone() {
    let text = r#"<job id="j">
      <properties><property name="p" value="${a}"/></properties>
      <listeners><listener ref="L"/></listeners>
      <step id="first" next="both"><batchlet ref="B"/><end on="X"/></step>
      <split id="both" next="which">
        <flow id="one"><step id="inner" next="other"><batchlet ref="${b}"/></step><step id="other"><batchlet ref="B"/></step></flow>
        <flow id="two"><step id="third"><batchlet ref="B"/></step></flow>
      </split>
      <decision id="which" decider="D"><next on="*" to="last"/></decision>
      <step id="last"><batchlet ref="B"/></step>
    </job>"#;
    let effective = Effective::new(&read(text), &Vec::new(), &Limits::default()).unwrap();
    assert!(effective.only("none").is_none());
    // It executes nothing.
    assert!(effective.only("which").is_none());
    let only = effective.with_listener("M").only("inner").unwrap().to_xml();
    for kept in [
        "id=\"both\"",
        "id=\"one\"",
        "id=\"inner\"",
        "${a}",
        "${b}",
        "ref=\"L\"",
        "ref=\"M\"",
    ] {
        assert!(only.contains(kept), "{kept}\n{only}");
    }
    for removed in ["first", "other", "two", "third", "which", "last", "next=", "<end"] {
        assert!(!only.contains(removed), "{removed}\n{only}");
    }
    let first = effective.only("first").unwrap().to_xml();
    assert!(
        !first.contains("next=") && !first.contains("<end") && !first.contains("both"),
        "{first}"
    );
    // A listener is added where the job has none, too.
    let bare = read(r#"<job id="j"><step id="s"><batchlet ref="B"/></step></job>"#);
    let bare = Effective::new(&bare, &Vec::new(), &Limits::default()).unwrap();
    assert!(bare.with_listener("M").to_xml().contains("<listener ref=\"M\"/>"));
}
