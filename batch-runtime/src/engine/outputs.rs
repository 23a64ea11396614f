//! One output has one writer. Spec: LOSS-03
//!
//! What a plan knows is compared before anything starts: the artifacts of a step, the flows of a split, the partitions of an element. What
//! only a running element shows, such as the partitions inside of a partition, is compared when a step starts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use super::bound::Bound;
use super::call::Failure;
use super::elements::{BoundBody, BoundStep, ElementBody};
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
        if lanes.is_empty() {
            return Ok(());
        }
        let mut claimed = lock(&self.0);
        for output in outputs_of(step) {
            let other = claimed.entry(output.identity).or_insert_with(|| lanes.to_vec());
            let fork = other.iter().zip(lanes).find(|(one, own)| one != own);
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
        // Its partitions have plans of their own.
        BoundBody::Partitioned(_) => {}
    }
    artifacts
}

/// Returns the outputs of a step that are set.
fn outputs_of(step: &BoundStep) -> Vec<Output> {
    let mut outputs = Vec::new();
    for artifact in artifacts(step) {
        let infos = (artifact.registration.properties)().into_iter();
        outputs.extend(infos.filter(|info| info.is_output).filter_map(|info| {
            let given = artifact.properties.get(&info.name).map(|(value, _)| value);
            let output: OutputPath = given.or(info.default)?.parse().ok()?;
            Some(Output {
                identity: output.identity(),
                shown: artifact.properties.secrets.hidden(output.to_string()),
                property: format!("the property `{}` of `{}`", info.name, artifact.name),
            })
        }));
    }
    outputs
}
