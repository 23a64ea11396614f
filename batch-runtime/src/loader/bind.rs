//! Binding: each `ref` of a job to its artifact, and what fits to what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use batch_xml::model::{
    ArtifactRef, CheckpointPolicy, Chunk, ExceptionClasses, ExecutionElement, Flow, Job, Partition, Property,
    Split, Step, StepBody, TransitionKind,
};
use batch_xml::{Diagnostic, JobXmlErrors, Span, Spanned};

use super::artifacts::{Artifacts, Found};
use super::unused::PropertyUses;
use super::{BindOutcome, Outside};
use crate::artifact::{ExceptionFilter, Factory, Properties, Role};
use crate::dialect::Dialect;
use crate::engine::{
    Bound, BoundBody, BoundChunk, BoundJob, BoundListener, BoundStep, CheckpointInterval, Element,
    ElementBody, Elements, FaultRules,
};
use crate::status::BatchStatus;
use crate::transition::{Termination, Then, Transition, Transitions};

/// The runtime does not do this yet.
const UNSUPPORTED: &str = "ART0008";
/// The writer does not write through the chunk transaction.
pub(crate) const AT_LEAST_ONCE: &str = "ART0009";

/// A time-out that is no number of seconds.
const TIMEOUT: &str = "ART0012";

/// The runtime properties of a job and of a step: seconds. (ext)
pub(super) const JOB_TIMEOUT: &str = "batch.job.timeout";
pub(super) const STEP_TIMEOUT: &str = "batch.step.timeout";

/// The rules of the draft.
const DIALECT: Dialect = Dialect::Draft;

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

impl Artifacts {
    /// Binds `job`.
    ///
    /// # Errors
    /// Everything that is wrong, at once, and then what is worth a warning.
    pub(crate) fn bind(&self, job: &Job, outside: &Outside) -> Result<BindOutcome, JobXmlErrors> {
        let mut binder = Binder::new(self, job, outside);
        let bound = binder.job(job);
        let unused = binder.uses.unused(job);
        binder.warnings.extend(unused);
        match bound {
            Some(job) if binder.diagnostics.is_empty() => Ok(BindOutcome {
                job,
                warnings: binder.warnings,
                parameter_names: binder.parameter_names,
            }),
            _ => Err(binder.said().into()),
        }
    }

    /// What is wrong with the wiring of a job of which only a part could be made, as far as the missing part does not
    /// matter to it.
    pub(crate) fn check_part(&self, job: &Job, outside: &Outside) -> Vec<Diagnostic> {
        let mut binder = Binder {
            is_partial: true,
            ..Binder::new(self, job, outside)
        };
        binder.job(job);
        binder.said()
    }
}

pub(super) struct Binder<'a> {
    artifacts: &'a Artifacts,
    outside: &'a Outside,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) warnings: Vec<Diagnostic>,
    pub(super) parameter_names: BTreeSet<String>,
    pub(super) uses: PropertyUses,
    /// Whether the job lacks what could not be made of its XML.
    pub(super) is_partial: bool,
    /// The listeners of the job that could be bound, and their elements: some hear of the items of each chunk.
    job_listeners: (Vec<Arc<BoundListener>>, Vec<ArtifactRef>),
}

impl<'a> Binder<'a> {
    fn new(artifacts: &'a Artifacts, job: &Job, outside: &'a Outside) -> Self {
        Self {
            artifacts,
            outside,
            diagnostics: Vec::new(),
            warnings: Vec::new(),
            parameter_names: job.symbols.union(&job.property_names).cloned().collect(),
            uses: PropertyUses::default(),
            is_partial: false,
            job_listeners: (Vec::new(), job.listeners.clone()),
        }
    }

    /// Errors first: of too many diagnostics the last are left out.
    fn said(self) -> Vec<Diagnostic> {
        self.diagnostics.into_iter().chain(self.warnings).collect()
    }

    fn job(&mut self, job: &Job) -> Option<BoundJob> {
        let listeners = self.listeners(&JOB_LISTENERS, &job.listeners);
        self.job_listeners.0 = listeners.clone().unwrap_or_default();
        let elements = self.elements(&job.elements, Around::default());
        Some(BoundJob {
            id: job.id.value.clone(),
            restartable: job.restartable,
            dialect: DIALECT,
            timeout: self.timeout(JOB_TIMEOUT, &job.properties),
            properties: as_map(&job.properties),
            listeners: listeners?,
            elements: elements?,
        })
    }

    /// The elements of a job, flow or split, and how they lead to each other.
    fn elements(&mut self, elements: &[ExecutionElement], around: Around) -> Option<Elements> {
        let positions: BTreeMap<&str, usize> = elements
            .iter()
            .enumerate()
            .map(|(position, element)| (element.id().value.as_str(), position))
            .collect();
        let bound: Vec<_> = elements
            .iter()
            .map(|element| {
                let body = match element {
                    ExecutionElement::Step(step) => {
                        self.step(step, around).map(Box::new).map(ElementBody::Step)
                    }
                    ExecutionElement::Flow(flow) => self.flow(flow, around).map(ElementBody::Flow),
                    ExecutionElement::Split(split) => self.split(split).map(ElementBody::Split),
                    ExecutionElement::Decision(decision) => self
                        .artifact(Role::Decider, &decision.decider, Around::everything())
                        .map(ElementBody::Decision),
                };
                Some(Element {
                    id: element.id().value.clone(),
                    transitions: transitions(element, &positions),
                    body: body?,
                })
            })
            .collect();
        let all = bound.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Elements { all })
    }

    fn flow(&mut self, flow: &Flow, around: Around) -> Option<Elements> {
        if let Some(partition) = &flow.partition {
            self.no_partition(partition);
        }
        self.elements(&flow.elements, Around { flow: true, ..around })
    }

    fn split(&mut self, split: &Split) -> Option<Elements> {
        let concurrency = &split.concurrency;
        for (what, artifact) in [
            ("a logical transaction", &concurrency.logical_tx),
            ("a collector", &concurrency.collector),
            ("an analyzer", &concurrency.analyzer),
        ] {
            if let Some(artifact) = artifact {
                self.unsupported(what, &artifact.name.span);
                self.uses.reach_unknown(&artifact.properties);
            }
        }
        let around = Around {
            split: true,
            ..Around::default()
        };
        self.elements(&split.elements, around)
    }

    fn no_partition(&mut self, partition: &Partition) {
        self.unsupported("a partition", &partition.span);
    }

    fn step(&mut self, step: &Step, around: Around) -> Option<BoundStep> {
        let around = Around { step: true, ..around };
        if let Some(partition) = &step.partition {
            self.no_partition(partition);
            let artifacts = step.listeners.iter().chain(artifacts_of(&step.body));
            artifacts.for_each(|artifact| self.uses.reach_unknown(&artifact.properties));
            return None;
        }
        let roles = match &step.body {
            StepBody::Chunk(_) => CHUNK_LISTENERS.as_slice(),
            StepBody::Batchlet(_) => BATCHLET_LISTENERS.as_slice(),
        };
        let listeners = self.listeners_around(roles, &step.listeners, around);
        let body = match &step.body {
            StepBody::Chunk(chunk) => self
                .chunk(chunk, around)
                .map(|chunk| BoundBody::Chunk(Box::new(chunk))),
            StepBody::Batchlet(batchlet) => self
                .artifact(Role::Batchlet, batchlet, around)
                .map(BoundBody::Batchlet),
        };
        if let (Some(listeners), Some(BoundBody::Chunk(chunk))) = (&listeners, &body) {
            self.check_listener_items(chunk, listeners, &step.listeners);
            let (of_job, refs) = self.job_listeners.clone();
            self.check_listener_items(chunk, &of_job, &refs);
        }
        Some(BoundStep {
            max_starts: DIALECT.most_starts(step.start_limit),
            allow_start_if_complete: step.allow_start_if_complete,
            timeout: self.timeout(STEP_TIMEOUT, &step.properties),
            properties: as_map(&step.properties),
            listeners: listeners?,
            body: body?,
        })
    }

    fn chunk(&mut self, chunk: &Chunk, around: Around) -> Option<BoundChunk> {
        let reader = self.artifact(Role::ItemReader, &chunk.reader, around);
        let processor = self.artifact(Role::ItemProcessor, &chunk.processor, around);
        let writer = self.artifact(Role::ItemWriter, &chunk.writer, around);
        self.check_chunk_items(reader.as_ref(), processor.as_ref(), writer.as_ref(), chunk);
        let mut filter = |classes: &ExceptionClasses| {
            self.check_exception_classes(classes);
            let names = |list: &[Spanned<String>]| list.iter().map(|class| class.value.clone()).collect();
            ExceptionFilter::new(names(&classes.include), names(&classes.exclude))
        };
        let faults = FaultRules {
            skippable: filter(&chunk.skippable),
            skip_limit: chunk.skip_limit,
            retryable: filter(&chunk.retryable),
            retry_limit: chunk.retry_limit,
            no_rollback: filter(&chunk.no_rollback),
        };
        let interval = match chunk.checkpoint_policy.value {
            CheckpointPolicy::Item => CheckpointInterval::Items(as_usize(chunk.commit_interval.get())),
            CheckpointPolicy::Time => {
                CheckpointInterval::Time(Duration::from_secs(chunk.commit_interval.get().into()))
            }
            // The XML is refused without an algorithm.
            CheckpointPolicy::Custom => {
                let algorithm = chunk.checkpoint_algorithm.as_ref()?;
                CheckpointInterval::Custom(self.artifact(Role::CheckpointAlgorithm, algorithm, around)?)
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
            transactional: info.transactional,
            buffer_reads: chunk.buffer_reads,
            faults,
        })
    }

    /// A runtime property of a job or step: whole seconds, more than none.
    fn timeout(&mut self, name: &str, properties: &[Property]) -> Option<Duration> {
        let property = properties.iter().find(|property| property.name.value == name)?;
        match property.value.value.trim().parse() {
            Ok(seconds) if seconds > 0 => Some(Duration::from_secs(seconds)),
            _ => {
                let message = format!("{:?} is no time-out", property.value.value);
                self.diagnostics.push(
                    Diagnostic::error(TIMEOUT, message, property.value.span.clone())
                        .label("a number of seconds, at least 1")
                        .help(format!("`{name}` is a property of the runtime")),
                );
                None
            }
        }
    }

    fn unsupported(&mut self, what: &str, at: &Span) {
        let message = format!("{what} is not supported by this version");
        self.diagnostics.push(
            Diagnostic::error(UNSUPPORTED, message, at.clone())
                .label("not run by this version")
                .help("CHANGELOG.md says what is not there yet"),
        );
    }

    fn listeners(&mut self, roles: &[Role], refs: &[ArtifactRef]) -> Option<Vec<Arc<BoundListener>>> {
        self.listeners_around(roles, refs, Around::default())
    }

    fn listeners_around(
        &mut self,
        roles: &[Role],
        refs: &[ArtifactRef],
        around: Around,
    ) -> Option<Vec<Arc<BoundListener>>> {
        // Each is looked at, also after one that fails.
        let bound: Vec<_> = refs
            .iter()
            .map(|listener| self.listener(roles, listener, around).map(Arc::new))
            .collect();
        bound.into_iter().collect()
    }

    fn listener(&mut self, roles: &[Role], artifact: &ArtifactRef, around: Around) -> Option<BoundListener> {
        let found = match self.artifacts.find_listener(roles, &artifact.name) {
            Ok(found) => found,
            Err(diagnostic) => {
                self.diagnostics.push(*diagnostic);
                self.uses.reach_unknown(&artifact.properties);
                return None;
            }
        };
        let bound: Vec<Bound> = found
            .into_iter()
            .map(|found| self.bound(found, artifact, around))
            .collect();
        Some(BoundListener { roles: bound })
    }

    fn artifact(&mut self, role: Role, artifact: &ArtifactRef, around: Around) -> Option<Bound> {
        match self.artifacts.find(role, &artifact.name) {
            Ok(found) => Some(self.bound(found, artifact, around)),
            Err(diagnostic) => {
                self.diagnostics.push(*diagnostic);
                self.uses.reach_unknown(&artifact.properties);
                None
            }
        }
    }

    /// An artifact with its properties, checked for its place.
    fn bound(&mut self, found: Found, artifact: &ArtifactRef, around: Around) -> Bound {
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
        self.check_properties(registration, &properties, artifact);
        self.check_contexts(registration, artifact, around);
        Bound {
            name: artifact.name.value.clone(),
            registration,
            loader,
            properties,
        }
    }
}

/// The elements around an artifact, whose contexts are in scope. Spec: CTX-10 to CTX-12
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Around {
    pub(super) step: bool,
    pub(super) flow: bool,
    pub(super) split: bool,
}

impl Around {
    /// Of a decider: which it is shows when it is asked.
    fn everything() -> Self {
        Self {
            step: true,
            flow: true,
            split: true,
        }
    }
}

fn artifacts_of(body: &StepBody) -> Vec<&ArtifactRef> {
    match body {
        StepBody::Batchlet(batchlet) => vec![batchlet],
        StepBody::Chunk(chunk) => [&chunk.reader, &chunk.processor, &chunk.writer]
            .into_iter()
            .chain(&chunk.checkpoint_algorithm)
            .collect(),
    }
}

/// What an element leads to, by the positions of its siblings. Targets were checked with the XML.
fn transitions(element: &ExecutionElement, positions: &BTreeMap<&str, usize>) -> Transitions {
    let position = |id: &Spanned<String>| positions.get(id.value.as_str()).copied();
    let text = |text: &Option<Spanned<String>>| text.as_ref().map(|text| text.value.clone());
    let elements = element.transitions().iter().filter_map(|transition| {
        let end = |status, exit_status: &Option<Spanned<String>>, restart| {
            Then::Terminate(Termination {
                status,
                exit_status: text(exit_status),
                restart,
            })
        };
        let then = match &transition.kind {
            TransitionKind::Next { to } => Then::Next(position(to)?),
            TransitionKind::Fail { exit_status } => end(BatchStatus::Failed, exit_status, None),
            TransitionKind::End { exit_status } => end(BatchStatus::Completed, exit_status, None),
            TransitionKind::Stop { exit_status, restart } => {
                end(BatchStatus::Stopped, exit_status, text(restart))
            }
        };
        Some(Transition {
            on: transition.on.value.clone(),
            then,
        })
    });
    Transitions {
        elements: elements.collect(),
        next: element.next().and_then(position),
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
