//! The outputs of partitions: each has one writer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::PartitionedElement;
use crate::engine::bound::Bound;
use crate::engine::call::Failure;
use crate::engine::elements::{BoundBody, BoundStep, ElementBody, PartitionBody};
use crate::output_path::OutputPath;

/// The outputs of the partitions that were added.
#[derive(Default)]
pub(crate) struct Outputs {
    /// The numbers of the partitions, and the properties, by the identities of the outputs.
    writers: BTreeMap<PathBuf, (u32, String)>,
}

impl Outputs {
    /// Adds the outputs of a partition. Returns whether it has any.
    ///
    /// # Errors
    /// The problem, if an earlier partition has one of them. Spec: LOSS-03
    pub(crate) fn add(&mut self, number: u32, body: &PartitionBody) -> Result<bool, String> {
        let mut artifacts = Vec::new();
        collect(&body.element.body, &mut artifacts);
        let mut has_outputs = false;
        for artifact in artifacts {
            for (property, output) in outputs_of(artifact) {
                has_outputs = true;
                let same = self
                    .writers
                    .entry(output.identity())
                    .or_insert((number, property));
                if same.0 != number {
                    return Err(format!(
                        "partitions {} and {number} both write `{}`, the property `{}` of `{}`, so one would replace what the other has \
                         written; put a property that differs in each partition into its name",
                        same.0,
                        artifact.properties.secrets.hidden(output.to_string()),
                        same.1,
                        artifact.name,
                    ));
                }
            }
        }
        Ok(has_outputs)
    }
}

impl PartitionedElement<'_> {
    /// Returns a failure if two partitions have the same output, also if one of them is complete. Spec: LOSS-03
    pub(super) fn shared_output(&self) -> Option<Failure> {
        let mut outputs = Outputs::default();
        for number in 1..=self.planned() {
            // A partition that cannot be bound fails when it starts.
            let Ok(body) = self.bound.binder.bind(&self.path_to(number)) else {
                continue;
            };
            match outputs.add(number, &body) {
                Ok(true) => {}
                // The other partitions have the same artifacts.
                Ok(false) => return None,
                Err(problem) => {
                    return Some(Failure::new(format!(
                        "the plan of `{}` is wrong: {problem}",
                        self.id
                    )));
                }
            }
        }
        None
    }
}

fn collect<'b>(body: &'b ElementBody, artifacts: &mut Vec<&'b Bound>) {
    match body {
        ElementBody::Step(step) => of_step(step, artifacts),
        ElementBody::Flow(flow) => flow
            .elements
            .all
            .iter()
            .for_each(|element| collect(&element.body, artifacts)),
        ElementBody::Split(split) => split
            .elements
            .all
            .iter()
            .for_each(|element| collect(&element.body, artifacts)),
        ElementBody::Decision(_) => {}
    }
}

fn of_step<'b>(step: &'b BoundStep, artifacts: &mut Vec<&'b Bound>) {
    // The roles of a listener share its properties.
    artifacts.extend(
        step.listeners
            .iter()
            .filter_map(|listener| listener.roles.first()),
    );
    match &step.body {
        BoundBody::Chunk(chunk) => {
            artifacts.extend([&chunk.reader, &chunk.writer]);
            artifacts.extend(&chunk.processor);
        }
        BoundBody::Batchlet(batchlet) => artifacts.push(batchlet),
        // Its partitions have plans of their own.
        BoundBody::Partitioned(_) => {}
    }
}

/// Returns the outputs of an artifact with the names of their properties.
fn outputs_of(artifact: &Bound) -> impl Iterator<Item = (String, OutputPath)> {
    let outputs = (artifact.registration.properties)().into_iter();
    outputs.filter(|info| info.is_output).filter_map(|info| {
        let given = artifact.properties.get(&info.name).map(|(value, _)| value);
        let output = given.or(info.default)?.parse().ok()?;
        Some((info.name, output))
    })
}
