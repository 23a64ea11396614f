//! Checks that each output has one writer, and that no two partitions read the same input.
//!
//! What a plan knows is compared before anything starts: the artifacts of a step, the flows of a split, the partitions of an element. What
//! only a running element shows, such as the partitions inside of a partition, is compared when a step starts.
// Spec: LOSS-03

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Mutex;

use super::bound::Bound;
use super::call::Failure;
use super::elements::{BoundBody, BoundStep, Element, ElementBody};
use super::threads::lock;
use crate::output_path::OutputPath;

/// An output of an artifact.
struct Output {
    /// The same for all names of the file.
    identity: PathBuf,
    /// As the job names it, without secrets.
    shown: String,
    /// `the property `output` of `recordCsvWriter``.
    property: String,
    /// True if the output is appended to an existing file: `if.exists` = `append`.
    appends: bool,
}

/// The outputs of elements or partitions that do not run one after the other.
#[derive(Default)]
pub(crate) struct Outputs {
    /// The writers, with their properties, by the identities of the outputs.
    writers: BTreeMap<PathBuf, (String, String)>,
}

impl Outputs {
    /// Adds the outputs of `writer`, such as `partition 3`. Returns whether its artifacts have any, even if they are not set.
    ///
    /// # Errors
    /// The problem, if an earlier writer has one of them.
    pub(crate) fn add(&mut self, writer: &str, body: &ElementBody) -> Result<bool, String> {
        let mut steps = Vec::new();
        collect(body, &mut steps);
        for output in steps.iter().flat_map(|step| outputs_of(step)) {
            let (first, _) = self
                .writers
                .entry(output.identity)
                .or_insert_with(|| (writer.to_owned(), output.property.clone()));
            if first != writer {
                return Err(format!(
                    "{first} and {writer} both write `{}`, {}, so one would replace what the other has written; put a property that \
                     differs in each of them into its name",
                    output.shown, output.property,
                ));
            }
        }
        let artifacts = steps.iter().flat_map(|step| artifacts(step));
        Ok(artifacts
            .flat_map(|artifact| (artifact.registration.properties)())
            .any(|info| info.is_output))
    }

    /// Returns the elements that replace the output of an element that may run before them: the position of each, and the problem.
    pub(crate) fn replaced(elements: &[Element]) -> Vec<(usize, String)> {
        let of_element = |element: &Element| {
            let mut steps = Vec::new();
            collect(&element.body, &mut steps);
            steps.into_iter().flat_map(outputs_of).collect::<Vec<_>>()
        };
        let outputs: Vec<Vec<Output>> = elements.iter().map(of_element).collect();
        let mut problems = Vec::new();
        for (first, before) in outputs
            .iter()
            .enumerate()
            .filter(|(_, before)| !before.is_empty())
        {
            for second in after(elements, first) {
                let replaced = outputs[second].iter().find(|output| {
                    !output.appends && before.iter().any(|earlier| earlier.identity == output.identity)
                });
                if let Some(output) = replaced {
                    let [first, then] = [first, second].map(|position| elements[position].id.as_str());
                    let problem = format!(
                        "`{first}` and then `{then}` both write `{}`, {}, so `{then}` replaces what `{first}` has written",
                        output.shown, output.property
                    );
                    problems.push((second, problem));
                }
            }
        }
        problems
    }

    /// Returns the problem, if two properties of a step name the same output.
    pub(crate) fn check_step(step: &BoundStep) -> Result<(), String> {
        let mut first = BTreeMap::new();
        for output in outputs_of(step) {
            if let Some(other) = first.insert(output.identity, output.property.clone()) {
                return Err(format!(
                    "{other} and {} both write `{}`; give each a different file",
                    output.property, output.shown
                ));
            }
        }
        Ok(())
    }
}

/// The work of the chunk steps of partitions, if their properties alone decide it.
#[derive(Default)]
pub(crate) struct Inputs {
    /// The partitions, by the number of a step in the partition, and the names and properties of the step's artifacts.
    partitions: BTreeMap<(usize, Vec<String>), u32>,
}

impl Inputs {
    /// Adds a partition. Returns whether the input of a step is known.
    ///
    /// # Errors
    /// If an earlier partition would do the same work.
    pub(crate) fn add(&mut self, partition: u32, body: &ElementBody) -> Result<bool, String> {
        let mut steps = Vec::new();
        collect(body, &mut steps);
        let mut is_known = false;
        for (number, step) in steps.into_iter().enumerate() {
            let Some((reader, work)) = work_of(step) else {
                continue;
            };
            is_known = true;
            if let Some(first) = self.partitions.insert((number, work), partition) {
                return Err(format!(
                    "partition {first} and partition {partition} would both read the whole input of `{reader}`, so that each item would be written twice: \
                     no property of the step differs in them; use a property of the plan in a property of the reader, such as its \
                     `resource` or `parameters`, or do not partition the step"
                ));
            }
        }
        Ok(is_known)
    }
}

/// Returns the reader of a chunk step, and the artifacts and properties that decide its work. Returns `None` if something else may make
/// partitions differ, such as a reader of the program, or an artifact of the program whose step context has the partition's number.
fn work_of(step: &BoundStep) -> Option<(&str, Vec<String>)> {
    let BoundBody::Chunk(chunk) = &step.body else {
        return None;
    };
    let is_reader = |artifact: &Bound| std::ptr::eq(artifact, &chunk.reader);
    let mut work = Vec::new();
    for artifact in artifacts(step) {
        let registration = artifact.registration;
        let may_differ = match is_reader(artifact) {
            true => !registration.reads_its_properties(),
            false => registration.sees_its_step(),
        };
        // A preferred loader may give each partition a different artifact.
        if may_differ || artifact.loader.is_some() {
            return None;
        }
        work.push(artifact.name.clone());
        for info in (registration.properties)() {
            let given = artifact.properties.get(&info.name).map(|(value, _)| value);
            work.push(given.or(info.default).unwrap_or_default().to_owned());
        }
    }
    Some((&chunk.reader.name, work))
}

/// A flow of a split or a partition, by the name of the enclosing element and its own.
pub(super) type Lane = (String, String);

/// The outputs of the steps that an execution has started in this process.
#[derive(Default)]
pub(super) struct ClaimedOutputs(Mutex<BTreeMap<PathBuf, Vec<Lane>>>);

impl ClaimedOutputs {
    /// Claims the outputs of a step that runs in `lanes`, outermost first.
    ///
    /// # Errors
    /// If a step of another flow of the same split, or of another partition of the same element, has claimed one of them.
    pub(super) fn claim(&self, step: &BoundStep, lanes: &[Lane]) -> Result<(), Failure> {
        // Elements outside of splits and partitions run one after the other.
        if lanes.is_empty() {
            return Ok(());
        }
        let mut claimed = lock(&self.0);
        for output in outputs_of(step) {
            // Never released: a later step would replace the output as well.
            let other = claimed.entry(output.identity).or_insert_with(|| lanes.to_vec());
            let fork = other.iter().zip(lanes).find(|(one, own)| one != own);
            // Lanes that part at different elements run one after the other.
            if let Some(((element, one), (same, own))) = fork
                && element == same
            {
                return Err(Failure::new(format!(
                    "{one} and {own} of `{element}` both write `{}`, {}, so one would replace what the other has written; put a property \
                     that differs in each of them into its name",
                    output.shown, output.property,
                )));
            }
        }
        Ok(())
    }
}

/// Returns the positions of the elements that may run after the one at `start`.
fn after(elements: &[Element], start: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = vec![start];
    while let Some(position) = open.pop() {
        let next = elements[position].transitions.targets();
        open.extend(next.filter(|next| *next != start && found.insert(*next)));
    }
    found
}

fn collect<'b>(body: &'b ElementBody, steps: &mut Vec<&'b BoundStep>) {
    let elements = match body {
        ElementBody::Step(step) => return steps.push(step),
        ElementBody::Flow(flow) => &flow.elements,
        ElementBody::Split(split) => &split.elements,
        ElementBody::Decision(_) => return,
    };
    elements
        .all
        .iter()
        .for_each(|element| collect(&element.body, steps));
}

fn artifacts(step: &BoundStep) -> Vec<&Bound> {
    // The roles of a listener share its properties.
    let listeners = step
        .listeners
        .iter()
        .filter_map(|listener| listener.roles.first());
    let mut artifacts: Vec<_> = listeners.collect();
    match &step.body {
        BoundBody::Chunk(chunk) => {
            artifacts.extend([&chunk.reader, &chunk.writer]);
            artifacts.extend(&chunk.processor);
        }
        BoundBody::Batchlet(batchlet) => artifacts.push(batchlet),
        // Each partition has its own plan.
        BoundBody::Partitioned(_) => {}
    }
    artifacts
}

/// Returns whether an artifact of `batch-items` appends an output to an existing file.
fn appends(artifact: &Bound, output: &str) -> bool {
    let if_exists = output
        .strip_suffix("output")
        .map(|prefix| format!("{prefix}if.exists"));
    let value = if_exists.and_then(|name| artifact.properties.get(&name).map(|(value, _)| value.to_owned()));
    value.is_some_and(|value| value == "append")
}

/// Returns the outputs of a step that are set.
fn outputs_of(step: &BoundStep) -> Vec<Output> {
    let mut outputs = Vec::new();
    for artifact in artifacts(step) {
        // Parts of an artifact may read the same property.
        let mut names = BTreeSet::new();
        let infos = (artifact.registration.properties)().into_iter();
        let infos = infos.filter(|info| info.is_output && names.insert(info.name.clone()));
        outputs.extend(infos.filter_map(|info| {
            let given = artifact.properties.get(&info.name).map(|(value, _)| value);
            let output: OutputPath = given.or(info.default)?.parse().ok()?;
            Some(Output {
                identity: output.identity(),
                shown: artifact.properties.secrets.hidden(output.to_string()),
                property: format!("the property `{}` of `{}`", info.name, artifact.name),
                appends: appends(artifact, &info.name),
            })
        }));
    }
    outputs
}
