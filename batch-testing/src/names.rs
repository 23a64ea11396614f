//! The names in a job: ids of elements, and artifacts.

use batch_runtime::xml::model::{ArtifactRef, ExecutionElement, Job, Step, StepBody};
use batch_runtime::xml::suggest;

/// Fails if the job has no artifact of one of these names. A name may also be in a property, as of an artifact that is made of others.
pub(crate) fn check_doubles<'d>(job: &Job, doubles: impl Iterator<Item = &'d str>) -> Result<(), String> {
    const ARTIFACTS: [&str; 5] = ["ref", "reader", "processor", "writer", "decider"];
    let text = job.to_xml();
    // Attributes are written as ` name="value"`.
    let attributes = || text.split(' ').filter_map(|part| part.split_once("=\""));
    let is_artifact = |(name, _): &(&str, &str)| ARTIFACTS.contains(name);
    let value = |(_, rest): (&'_ str, &'_ str)| rest.split('"').next().unwrap_or_default().to_owned();
    let artifacts: Vec<String> = attributes().filter(is_artifact).map(value).collect();
    let words = || text.split(|c: char| c.is_whitespace() || "\",;".contains(c));
    for double in doubles {
        if artifacts.iter().any(|name| name == double) || words().any(|word| word == double) {
            continue;
        }
        let hint = match suggest::nearest(double, artifacts.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it has `{}`", artifacts.join("`, `")),
        };
        return Err(format!(
            "the job `{}` has no artifact `{double}` to replace; {hint}",
            job.id.value
        ));
    }
    Ok(())
}

/// Returns the artifacts of a step, such as ``reader `A`, writer `B` ``; `None` if the job has no such step.
pub(crate) fn artifacts_of(job: &Job, step: &str) -> Option<String> {
    let step = find_step(&job.elements, step)?;
    let named = |what: &str, artifact: &ArtifactRef| format!("{what} `{}`", artifact.name.value);
    let mut all = match &step.body {
        StepBody::Chunk(chunk) => {
            let processor = chunk
                .processor
                .iter()
                .map(|processor| named("processor", processor));
            let mut parts = vec![named("reader", &chunk.reader)];
            parts.extend(processor.chain([named("writer", &chunk.writer)]));
            parts
        }
        StepBody::Batchlet(batchlet) => vec![named("batchlet", batchlet)],
    };
    let listeners = job.listeners.iter().chain(&step.listeners);
    all.extend(listeners.map(|one| named("listener", one)));
    Some(all.join(", "))
}

fn find_step<'j>(elements: &'j [ExecutionElement], id: &str) -> Option<&'j Step> {
    elements.iter().find_map(|element| match element {
        ExecutionElement::Step(step) => Some(&**step).filter(|step| step.id.value == id),
        ExecutionElement::Flow(flow) => find_step(&flow.elements, id),
        ExecutionElement::Split(split) => find_step(&split.elements, id),
        ExecutionElement::Decision(_) => None,
    })
}

/// Returns the ids of a job's steps, flows and splits.
pub(crate) fn ids(job: &Job) -> Vec<String> {
    fn add(elements: &[ExecutionElement], ids: &mut Vec<String>) {
        for element in elements {
            let (id, inner) = match element {
                ExecutionElement::Step(step) => (&step.id, None),
                ExecutionElement::Flow(flow) => (&flow.id, Some(&flow.elements)),
                ExecutionElement::Split(split) => (&split.id, Some(&split.elements)),
                ExecutionElement::Decision(_) => continue,
            };
            ids.push(id.value.clone());
            add(inner.map_or(&[], |inner| inner.as_slice()), ids);
        }
    }
    let mut ids = Vec::new();
    add(&job.elements, &mut ids);
    ids
}
