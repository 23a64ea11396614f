//! Binding: each `ref` of a job to its artifact, and what fits to what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use batch_xml::model::{
    ArtifactRef, CheckpointPolicy, Chunk, ExceptionClasses, ExecutionElement, Job, Property, Step, StepBody,
};
use batch_xml::{Diagnostic, JobXmlErrors, Span};

use super::artifacts::{Artifacts, Found};
use super::{BindOutcome, Outside};
use crate::artifact::{Factory, Properties, Role};
use crate::engine::{Bound, BoundBody, BoundChunk, BoundJob, BoundListener, BoundStep, CheckpointInterval};

/// The runtime does not do this yet.
const UNSUPPORTED: &str = "ART0008";
/// The writer does not write through the chunk transaction.
const AT_LEAST_ONCE: &str = "ART0009";

/// The roles of a listener of a job. Spec: D-51
const JOB_LISTENERS: [Role; 3] = [Role::JobListener, Role::SkipListener, Role::RetryListener];
/// The roles of a listener of a chunk step. Spec: JSL-STEPLIS-02
const CHUNK_LISTENERS: [Role; 7] = [
    Role::StepListener,
    Role::CheckpointListener,
    Role::ItemReadListener,
    Role::ItemProcessListener,
    Role::ItemWriteListener,
    Role::SkipListener,
    Role::RetryListener,
];
/// The roles of a listener of a batchlet step. Spec: JSL-STEPLIS-03
const BATCHLET_LISTENERS: [Role; 1] = [Role::StepListener];
/// The listener roles that the engine calls in this version.
const CALLED: [Role; 2] = [Role::JobListener, Role::StepListener];

impl Artifacts {
    /// Binds `job`.
    ///
    /// # Errors
    /// Everything that is wrong, at once.
    pub(crate) fn bind(&self, job: &Job, outside: &Outside) -> Result<BindOutcome, JobXmlErrors> {
        let mut binder = Binder {
            artifacts: self,
            outside,
            diagnostics: Vec::new(),
            warnings: Vec::new(),
            parameter_names: job.symbols.union(&job.property_names).cloned().collect(),
            taken: BTreeSet::new(),
            reaching: Vec::new(),
        };
        let bound = binder.job(job);
        binder.unused_properties(job);
        match bound {
            Some(job) if binder.diagnostics.is_empty() => Ok(BindOutcome {
                job,
                warnings: binder.warnings,
                parameter_names: binder.parameter_names,
            }),
            _ => Err(binder.diagnostics.into()),
        }
    }
}

pub(super) struct Binder<'a> {
    artifacts: &'a Artifacts,
    outside: &'a Outside,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) warnings: Vec<Diagnostic>,
    pub(super) parameter_names: BTreeSet<String>,
    /// Names of the properties that some artifact takes.
    pub(super) taken: BTreeSet<String>,
    /// Properties that reach an artifact.
    pub(super) reaching: Vec<Property>,
}

impl Binder<'_> {
    fn job(&mut self, job: &Job) -> Option<BoundJob> {
        let listeners = self.listeners(&JOB_LISTENERS, &job.listeners);
        let positions: BTreeMap<&str, usize> = job
            .elements
            .iter()
            .enumerate()
            .map(|(position, element)| (element.id().value.as_str(), position))
            .collect();
        let steps: Vec<_> = job
            .elements
            .iter()
            .map(|element| match element {
                ExecutionElement::Step(step) => self.step(step, job.restartable, &positions),
                other => {
                    let what = match other {
                        ExecutionElement::Flow(_) => "a flow",
                        ExecutionElement::Split(_) => "a split",
                        _ => "a decision",
                    };
                    self.unsupported(what, &other.id().span);
                    None
                }
            })
            .collect();
        for step in steps.iter().flatten() {
            if let (Some(listeners), BoundBody::Chunk(chunk)) = (&listeners, &step.body) {
                self.check_listener_items(chunk, listeners, &job.listeners);
            }
        }
        Some(BoundJob {
            id: job.id.value.clone(),
            restartable: job.restartable,
            properties: as_map(&job.properties),
            listeners: listeners?,
            steps: steps.into_iter().collect::<Option<_>>()?,
        })
    }

    fn step(
        &mut self,
        step: &Step,
        restartable: bool,
        positions: &BTreeMap<&str, usize>,
    ) -> Option<BoundStep> {
        for transition in &step.transitions {
            self.unsupported("a transition element", &transition.on.span);
        }
        if let Some(partition) = &step.partition {
            self.unsupported("a partition", &partition.span);
            return None;
        }
        let roles = match &step.body {
            StepBody::Chunk(_) => CHUNK_LISTENERS.as_slice(),
            StepBody::Batchlet(_) => BATCHLET_LISTENERS.as_slice(),
        };
        let listeners = self.listeners(roles, &step.listeners);
        let body = match &step.body {
            StepBody::Chunk(chunk) => self.chunk(chunk).map(|chunk| BoundBody::Chunk(Box::new(chunk))),
            StepBody::Batchlet(batchlet) => self.artifact(Role::Batchlet, batchlet).map(BoundBody::Batchlet),
        };
        if let (Some(listeners), Some(BoundBody::Chunk(chunk))) = (&listeners, &body) {
            self.check_listener_items(chunk, listeners, &step.listeners);
        }
        // A limit of n restarts allows n + 1 starts. Spec: JSL-STEP-04, JSL-STEP-07, D-59
        let limited = restartable && step.start_limit > 0;
        Some(BoundStep {
            id: step.id.value.clone(),
            max_starts: limited.then(|| step.start_limit.saturating_add(1)),
            allow_start_if_complete: step.allow_start_if_complete,
            next: step
                .next
                .as_ref()
                .and_then(|next| positions.get(next.value.as_str()).copied()),
            properties: as_map(&step.properties),
            listeners: listeners?,
            body: body?,
        })
    }

    fn chunk(&mut self, chunk: &Chunk) -> Option<BoundChunk> {
        let reader = self.artifact(Role::ItemReader, &chunk.reader);
        let processor = self.artifact(Role::ItemProcessor, &chunk.processor);
        let writer = self.artifact(Role::ItemWriter, &chunk.writer);
        self.check_chunk_items(reader.as_ref(), processor.as_ref(), writer.as_ref(), chunk);
        for classes in [&chunk.skippable, &chunk.retryable, &chunk.no_rollback] {
            self.check_exception_classes(classes);
            self.no_exception_classes(classes);
        }
        let interval = match chunk.checkpoint_policy.value {
            CheckpointPolicy::Item => CheckpointInterval::Items(as_usize(chunk.commit_interval.get())),
            CheckpointPolicy::Time => {
                CheckpointInterval::Time(Duration::from_secs(chunk.commit_interval.get().into()))
            }
            CheckpointPolicy::Custom => {
                self.diagnostics.push(
                    Diagnostic::error(
                        UNSUPPORTED,
                        "checkpoint policy `custom` is not supported by this version",
                        chunk.checkpoint_policy.span.clone(),
                    )
                    .help("use the policy `item` or `time`"),
                );
                return None;
            }
        };
        let (reader, processor, writer) = (reader?, processor?, writer?);
        let Factory::ItemWriter(_, info) = writer.registration.factory else {
            return None;
        };
        let info = info();
        if !info.transactional {
            self.warnings.push(
                Diagnostic::warning(
                    AT_LEAST_ONCE,
                    format!("writer `{}` may write the items of one chunk again after a crash", writer.name),
                    chunk.writer.name.span.clone(),
                )
                .label("at least once")
                .help("to write each item exactly once, take `tx: &mut ChunkTransaction` in `#[write_items]` and write \
                       through it"),
            );
        }
        let write_batch = if info.buffered {
            as_usize(chunk.chunk_size.get())
        } else {
            1
        };
        Some(BoundChunk {
            reader,
            processor,
            writer,
            interval,
            write_batch,
        })
    }

    fn no_exception_classes(&mut self, classes: &ExceptionClasses) {
        let Some(span) = &classes.span else { return };
        if !classes.include.is_empty() {
            self.diagnostics.push(
                Diagnostic::error(UNSUPPORTED, "skip and retry are not supported by this version", span.clone())
                    .help("remove the element: an exception then ends the step FAILED, and a restart goes on from the \
                           last checkpoint"),
            );
        }
    }

    fn unsupported(&mut self, what: &str, at: &Span) {
        let message = format!("{what} is not supported by this version");
        self.diagnostics
            .push(Diagnostic::error(UNSUPPORTED, message, at.clone()));
    }

    fn listeners(&mut self, roles: &[Role], refs: &[ArtifactRef]) -> Option<Vec<BoundListener>> {
        // Each is looked at, also after one that fails.
        let bound: Vec<_> = refs
            .iter()
            .map(|listener| self.listener(roles, listener))
            .collect();
        bound.into_iter().collect()
    }

    fn listener(&mut self, roles: &[Role], artifact: &ArtifactRef) -> Option<BoundListener> {
        let found = match self.artifacts.find_listener(roles, &artifact.name) {
            Ok(found) => found,
            Err(diagnostic) => {
                self.diagnostics.push(*diagnostic);
                return None;
            }
        };
        for registration in found
            .iter()
            .map(|found| found.registration)
            .filter(|registration| !CALLED.contains(&registration.role()))
        {
            let message = format!("a {} is not supported by this version", registration.role());
            self.diagnostics.push(Diagnostic::error(
                UNSUPPORTED,
                message,
                artifact.name.span.clone(),
            ));
        }
        let place = roles[0];
        let bound: Vec<Bound> = found
            .into_iter()
            .map(|found| self.bound(place, found, artifact))
            .collect();
        Some(BoundListener { roles: bound })
    }

    fn artifact(&mut self, role: Role, artifact: &ArtifactRef) -> Option<Bound> {
        match self.artifacts.find(role, &artifact.name) {
            Ok(found) => Some(self.bound(role, found, artifact)),
            Err(diagnostic) => {
                self.diagnostics.push(*diagnostic);
                None
            }
        }
    }

    /// An artifact with its properties, checked for a place where `role` is at home.
    fn bound(&mut self, role: Role, found: Found, artifact: &ArtifactRef) -> Bound {
        let Found { registration, loader } = found;
        let of_xml = |property: &Property| {
            (
                property.name.value.clone(),
                property.value.value.clone(),
                property.value.span.to_string(),
            )
        };
        let properties = Properties {
            parameters: Arc::clone(&self.outside.parameters),
            system: Arc::clone(&self.outside.system),
            xml: artifact.properties.iter().map(of_xml).collect(),
        };
        self.reaching.extend(artifact.properties.iter().cloned());
        self.check_properties(registration, &properties, artifact);
        self.check_contexts(role, registration, artifact);
        Bound {
            name: artifact.name.value.clone(),
            registration,
            loader,
            properties,
        }
    }
}

fn as_map(properties: &[Property]) -> BTreeMap<String, String> {
    // The outermost of several properties of one name is the first.
    properties
        .iter()
        .rev()
        .map(|property| (property.name.value.clone(), property.value.value.clone()))
        .collect()
}

fn as_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
