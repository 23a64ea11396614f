//! The examples of the draft, and the cases that pin a decision: every case of `tests/jsl/examples/cases.json`, as far
//! as it can be checked without running the job.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use batch_xml::model::{
    ArtifactRef, ExecutionElement, Job, Property, Step, StepBody, Transition, TransitionKind,
};
use batch_xml::{
    Dialect, Document, Effective, JobXmlErrors, Limits, PartitionView, Resolved, Source, Values, parse,
    resolve,
};
use serde_json::Value;

type Map = BTreeMap<String, String>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/jsl/examples")
}

fn text_of(file: &str) -> String {
    std::fs::read_to_string(folder().join(file)).unwrap()
}

fn map(value: &Value) -> Map {
    let pairs = value.as_object().into_iter().flatten();
    pairs
        .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
        .collect()
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().map_or(Vec::new(), |list| {
        list.iter().map(|item| item.as_str().unwrap()).collect()
    })
}

/// A case: its documents and values.
struct Case {
    name: String,
    documents: Vec<Arc<Document>>,
    job: Arc<Document>,
    parameters: Map,
    system: Map,
    limits: Limits,
}

impl Case {
    fn new(case: &Value) -> Case {
        let limits = Limits::default();
        let read = |file: &str| Arc::new(parse(&Source::new(file, text_of(file)), &limits).unwrap());
        let documents: Vec<Arc<Document>> = strings(&case["files"]).into_iter().map(read).collect();
        let id = case["job"].as_str().unwrap();
        let job = documents
            .iter()
            .find(|document| document.id().value == id)
            .unwrap();
        Case {
            name: case["id"].as_str().unwrap().to_owned(),
            job: Arc::clone(job),
            documents,
            parameters: map(&case["params"]),
            system: map(&case["system"]),
            limits,
        }
    }

    fn values(&self) -> Values<'_> {
        Values {
            parameters: &self.parameters,
            system: &self.system,
        }
    }

    fn resolve(&self) -> Result<Resolved, JobXmlErrors> {
        resolve(&self.job, &self.documents, &self.values(), &self.limits)
    }

    /// Returns the step with an id, as in a partition of the enclosing element, or of the step itself.
    fn step(&self, resolved: &Resolved, id: &str, partition: Option<u64>) -> Step {
        let Some(number) = partition else {
            return find(&resolved.job.elements, id).unwrap();
        };
        let around = partitioned(&resolved.job.elements, id).unwrap();
        let path = [PartitionView {
            element: &around,
            number: u32::try_from(number).unwrap(),
            plan: None,
        }];
        let element = resolved
            .effective
            .resolve_partition(&path, &self.values(), &self.limits)
            .unwrap_or_else(|errors| panic!("{}: {errors}", self.name));
        find(std::slice::from_ref(&element), id).unwrap()
    }
}

fn find(elements: &[ExecutionElement], id: &str) -> Option<Step> {
    elements.iter().find_map(|element| match element {
        ExecutionElement::Step(step) if step.id.value == id => Some(Step::clone(step)),
        other => find(other.elements(), id),
    })
}

/// Returns the id of the outermost partitioned element around a step.
fn partitioned(elements: &[ExecutionElement], id: &str) -> Option<String> {
    let within = |element: &&ExecutionElement| find(std::slice::from_ref(*element), id).is_some();
    let element = elements.iter().find(within)?;
    if element.partition().is_some() {
        return Some(element.id().value.clone());
    }
    partitioned(element.elements(), id)
}

fn artifact<'a>(step: &'a Step, name: &str) -> &'a ArtifactRef {
    match (&step.body, name) {
        (StepBody::Chunk(chunk), "reader") => &chunk.reader,
        (StepBody::Chunk(chunk), "processor") => chunk.processor.as_ref().unwrap(),
        (StepBody::Chunk(chunk), "writer") => &chunk.writer,
        (StepBody::Batchlet(batchlet), "batchlet") => batchlet,
        _ => panic!("{name}"),
    }
}

/// Returns the value of a `@BatchProperty` field: the XML has resolved all other sources; if it has no value they
/// decide alone.
fn injected(case: &Case, artifact: &ArtifactRef, name: &str) -> Option<String> {
    let in_xml = artifact.property(name).map(|value| value.value.clone());
    let outside = case.parameters.get(name).or_else(|| case.system.get(name));
    in_xml.or_else(|| outside.cloned())
}

/// A run of the job by its transitions: batch status, exit status, executed elements, restart position.
struct Run {
    status: &'static str,
    exit_status: String,
    executed: Vec<String>,
    restart: Option<String>,
}

/// Simulates a job of steps, decisions and flows on one path.
///
/// Spec: SEQ-08, SEQ-19, SEQ-20, SEQ-21, SEQ-22, SEQ-23, TERM-01, TERM-02, TERM-03, TERM-05, DEC-14, DEC-15,
/// D-21, D-27
fn walk(job: &Job, exits: &Map, failing: &[&str], start: Option<&str>) -> Run {
    let by_id = |id: &str| {
        job.elements
            .iter()
            .find(|element| element.id().value == id)
            .unwrap()
    };
    let mut at = start.map_or_else(|| job.first().unwrap(), by_id);
    let mut job_exit: Option<String> = None;
    let mut executed = Vec::new();
    let exit_of = |id: &str| exits.get(id).cloned().unwrap_or_else(|| "COMPLETED".to_owned());
    loop {
        let id = at.id().value.clone();
        let failed = failing.contains(&id.as_str());
        let mut status = if failed { "FAILED".to_owned() } else { exit_of(&id) };
        match at {
            ExecutionElement::Flow(flow) => {
                for step in &flow.elements {
                    executed.push(step.id().value.clone());
                    status = exit_of(step.id());
                }
            }
            _ => executed.push(id.clone()),
        }
        if matches!(at, ExecutionElement::Decision(_)) {
            job_exit = Some(status.clone());
        }
        let end = |status: &'static str, given: Option<String>, executed, restart| Run {
            status,
            exit_status: given.unwrap_or_else(|| status.to_owned()),
            executed,
            restart,
        };
        let transition = Dialect::Draft.select(at.transitions(), |transition| &transition.on, &status);
        let given = |text: &Option<batch_xml::Spanned<String>>| text.as_ref().map(|text| text.value.clone());
        let next = match transition.map(|transition| &transition.kind) {
            Some(TransitionKind::Next { to }) => Some(to.value.clone()),
            Some(TransitionKind::Fail { exit_status }) => {
                return end("FAILED", given(exit_status).or(job_exit), executed, None);
            }
            Some(TransitionKind::End { exit_status }) => {
                return end("COMPLETED", given(exit_status).or(job_exit), executed, None);
            }
            Some(TransitionKind::Stop { exit_status, restart }) => {
                let restart = given(restart).or(Some(id));
                return end("STOPPED", given(exit_status).or(job_exit), executed, restart);
            }
            None => {
                let is_next =
                    |transition: &Transition| matches!(transition.kind, TransitionKind::Next { .. });
                let must_match =
                    matches!(at, ExecutionElement::Decision(_)) || at.transitions().iter().any(is_next);
                if failed || must_match {
                    return end("FAILED", job_exit, executed, None);
                }
                at.next().map(|next| next.value.clone())
            }
        };
        match next {
            Some(next) => at = by_id(&next),
            None => return end("COMPLETED", job_exit, executed, None),
        }
    }
}

fn check_run(case: &Case, job: &Job, run: &Value, start: Option<&str>) {
    let found = walk(job, &map(&run["exits"]), &strings(&run["errors"]), start);
    assert_eq!(
        vec![found.status, &found.exit_status],
        strings(&run["job"]),
        "{}",
        case.name
    );
    if !run["executed"].is_null() {
        assert_eq!(found.executed, strings(&run["executed"]), "{}", case.name);
    }
    if !run["restart"].is_null() {
        check_run(case, job, &run["restart"], found.restart.as_deref());
    }
}

/// Spec: OVR-01, OVR-08, OVR-09, OVR-10, OVR-11, OVR-12, SUBST-14, SUBST-15, SUBST-16, SUBST-17, SUBST-18,
/// SUBST-08, SUBST-09, INH-23, INH-24, INH-25, PART-09, PART-12, PART-13, PART-14, PART-15, FPART-03,
/// FPART-04, D-34, D-35, D-39, D-41, D-43, JSL-DOC-19
#[test]
fn every_case_comes_out_as_expected() {
    let cases: Value = serde_json::from_str(&text_of("cases.json")).unwrap();
    let cases = cases["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 43);
    for value in cases {
        let case = Case::new(value);
        let resolved = match (case.resolve(), value["start_error"].as_str()) {
            (Ok(resolved), None) => resolved,
            (Err(errors), Some(symbol)) => {
                let text = errors.to_string();
                assert!(text.contains(&format!("`{symbol}`")), "{}: {text}", case.name);
                continue;
            }
            (Ok(_), Some(symbol)) => panic!("{}: `{symbol}` was accepted", case.name),
            (Err(errors), None) => panic!("{}: {errors}", case.name),
        };
        if let Some(expected) = value["effective"].as_str() {
            let limits = Limits::default();
            let expected = parse(&Source::new(expected, text_of(expected)), &limits).unwrap();
            let expected = Effective::new(&expected, &Vec::new(), &limits).unwrap();
            assert_eq!(sorted(&resolved.effective), sorted(&expected), "{}", case.name);
        }
        for (id, count) in value["partitions"].as_object().into_iter().flatten() {
            let element = resolved
                .job
                .elements
                .iter()
                .find(|element| element.id().value == *id);
            let partition = element.unwrap().partition().unwrap();
            assert_eq!(
                u64::from(partition.instances.get()),
                count.as_u64().unwrap(),
                "{}",
                case.name
            );
        }
        for expected in value["values"].as_array().unwrap() {
            let step = case.step(&resolved, expected[0].as_str().unwrap(), expected[2].as_u64());
            let name = expected[3].as_str().unwrap();
            let found = injected(&case, artifact(&step, expected[1].as_str().unwrap()), name);
            assert_eq!(
                found.as_deref(),
                expected[4].as_str(),
                "{}: {expected}",
                case.name
            );
        }
        for (name, expected) in value["job_properties"].as_object().into_iter().flatten() {
            let is_it = |property: &&Property| property.name.value == *name;
            let property = resolved.job.properties.iter().find(is_it).unwrap();
            assert_eq!(property.value.value, expected.as_str().unwrap(), "{}", case.name);
        }
        for run in value["runs"].as_array().into_iter().flatten() {
            check_run(&case, &resolved.job, run, None);
        }
    }
}

/// Returns the effective document with the attributes of every element in alphabetic order, because their order is not
/// significant.
fn sorted(effective: &Effective) -> String {
    let text = effective.to_xml();
    let lines = text.lines().map(|line| {
        let mut words: Vec<&str> = line.trim_end_matches(['/', '>']).split_inclusive("\" ").collect();
        words.iter_mut().for_each(|word| *word = word.trim_end());
        // The first attribute is in one piece with the name of the element.
        let (name, first) = words[0].rsplit_once(' ').unwrap_or((words[0], ""));
        words[0] = first;
        words.sort_unstable();
        format!("{name} {} {}", words.join(" "), line.ends_with("/>"))
    });
    lines.collect::<Vec<_>>().join("\n")
}
