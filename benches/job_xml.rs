//! Gate G8: the cost of a large job before it runs: parse, and inherit, substitute and check.
//!
//! Every step inherits listeners and properties from an abstract step of another document and has a property of its own
//! that takes two look-ups; the job inherits too. The steps follow each other; every tenth has a transition element.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use batch_bench::{Program, head, in_turn, report};
use batch_runtime::xml::graph::JobGraph;
use batch_runtime::xml::{Document, Limits, Source, Values, parse, resolve};

const ROUNDS: usize = 7;
/// Small jobs are repeated until a round has this many steps.
const STEPS: usize = 10_000;

const PARENTS: [&str; 2] = [
    r#"<job id="base" abstract="true">
  <properties><property name="root" value="/data"/><property name="dir" value="${root}/${day}"/></properties>
  <listeners><listener ref="Audit"/></listeners>
</job>"#,
    r#"<step id="Worker" abstract="true" start-limit="3">
  <properties><property name="retries" value="3"/></properties>
  <listeners><listener ref="Timing"/></listeners>
</step>"#,
];

fn job(steps: usize) -> String {
    let mut text = String::from("<job id=\"large\" parent=\"base\">\n");
    for n in 0..steps {
        let next = match n + 1 {
            next if next < steps => format!(" next=\"s{next}\""),
            _ => String::new(),
        };
        let fail = if n % 10 == 0 { "<fail on=\"BAD*\"/>" } else { "" };
        text.push_str(&format!(
            "  <step id=\"s{n}\" parent=\"Worker\"{next}><batchlet ref=\"Work\"><properties><property name=\"file\" \
             value=\"${{dir}}/{n}\"/></properties></batchlet>{fail}</step>\n"
        ));
    }
    text + "</job>\n"
}

fn read(text: &str) -> Document {
    parse(&Source::new("job.xml", text), &Limits::default()).unwrap()
}

/// Returns the time for one job, from as many repetitions as make [`STEPS`] steps.
fn timed<T>(steps: usize, mut work: impl FnMut() -> T) -> Duration {
    let times = u32::try_from(STEPS / steps).unwrap();
    let start = Instant::now();
    for _ in 0..times {
        black_box(work());
    }
    start.elapsed() / times
}

fn main() {
    let library: Vec<Arc<Document>> = PARENTS.iter().map(|text| Arc::new(read(text))).collect();
    let parameters = BTreeMap::from([("day".to_owned(), "today".to_owned())]);
    let values = Values {
        parameters: &parameters,
        system: &BTreeMap::new(),
    };
    let jobs = [100, 1_000, 10_000].map(|steps| (steps, job(steps)));
    let made = |document: &Document| resolve(document, &library, &values, &Limits::default()).unwrap();
    let mut programs: Vec<Program<'_>> = Vec::new();
    for (steps, text) in &jobs {
        let document = read(text);
        let resolved = made(&document);
        assert!(resolved.warnings.is_empty());
        programs.push(("parse", Box::new(move || timed(*steps, || read(text)))));
        programs.push(("resolve", Box::new(move || timed(*steps, || made(&document)))));
        programs.push((
            "draw",
            Box::new(move || timed(*steps, || JobGraph::new(&resolved.job).to_svg())),
        ));
    }
    let times = in_turn(ROUNDS, &mut programs);

    head("A large job with inheritance, before it runs");
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let mut per_step = Vec::new();
    for ((steps, text), times) in jobs.iter().zip(times.chunks(3)) {
        let whole = times[0] + times[1];
        let gate = (*steps == 10_000).then_some(1_000.0);
        report(
            &format!("{steps} steps ({} KiB), parse", text.len() >> 10),
            millis(times[0]),
            "ms",
            None,
        );
        report(
            &format!("{steps} steps, inherit, substitute, check"),
            millis(times[1]),
            "ms",
            None,
        );
        report(&format!("{steps} steps, both (G8)"), millis(whole), "ms", gate);
        report(&format!("{steps} steps, as SVG"), millis(times[2]), "ms", None);
        per_step.push(whole.as_secs_f64() / f64::from(u32::try_from(*steps).unwrap()));
    }
    report(
        "10000 steps / 1000 steps, each (G8b: linear)",
        per_step[2] / per_step[1],
        "x",
        Some(2.0),
    );
}
