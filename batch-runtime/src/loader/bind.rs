//! Binds each `ref` of a job to its artifact, and checks that they fit.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use batch_xml::model::{
    ArtifactRef, CheckpointPolicy, Chunk, ExecutionElement, Flow, Job, Property, Split, Step, StepBody,
    TransitionKind,
};
use batch_xml::{Diagnostic, JobXmlErrors, Limits, Resolved, Severity, Spanned};

use super::artifacts::{Artifacts, Found};
use super::binder::{Binder, ListenerAt, SHARED_OUTPUT, Scope, Wanted, listener_place, without_place};
use super::partition::step_names;
use super::runtime_names::of_job;
use super::source::Source;
use super::{BindOutcome, ExternalValues, NestedJobRef};
use crate::artifact::Properties;
use crate::engine::{
    Bound, BoundBody, BoundChunk, BoundFlow, BoundJob, BoundListener, BoundSplit, BoundStep, BoundSubjobs,
    CheckpointInterval, Element, ElementBody, Elements, FaultRules, Outputs,
};
use crate::role::{Factory, Place, Role, WriterInfo};
use crate::status::BatchStatus;
use crate::transition::{Termination, Transition, TransitionAction, Transitions};

/// The warnings that do not fail a check that denies warnings: the artifact may well be right.
const REMINDERS: [&str; 2] = [UNKNOWN_POSITION, READS_FROM_THE_BEGINNING];

/// The reader has no checkpoint.
const READS_FROM_THE_BEGINNING: &str = "ART0026";

/// The writer neither uses the chunk transaction nor has a checkpoint.
const UNKNOWN_POSITION: &str = "ART0009";

/// Returns whether it is a warning that is not listed in `REMINDERS`.
pub(crate) fn may_be_mistake(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity == Severity::Warning && !REMINDERS.contains(&diagnostic.code)
}

impl Artifacts {
    /// Binds the job of `resolved`.
    ///
    /// # Errors
    /// All mistakes at once, and the warnings.
    pub(crate) fn bind(
        self: &Arc<Self>,
        Resolved { job, effective, .. }: &Resolved,
        external: ExternalValues,
        limits: &Limits,
    ) -> Result<BindOutcome, JobXmlErrors> {
        let source = Source {
            dialect: job.dialect,
            artifacts: Arc::clone(self),
            external,
            text: Some((effective.clone(), limits.clone())),
        };
        Arc::new(source).bind(job)
    }

    /// Checks the wiring of an incomplete job.
    pub(crate) fn check_part(self: &Arc<Self>, job: &Job, external: ExternalValues) -> Vec<Diagnostic> {
        self.incomplete(job, external).check_part(job)
    }

    /// Returns the jobs that the artifacts of a job run, as far as they are known without its parameters.
    // Spec: NEST-05
    pub(crate) fn nested_jobs(self: &Arc<Self>, job: &Job, external: ExternalValues) -> Vec<NestedJobRef> {
        self.incomplete(job, external).nested_jobs(job)
    }

    fn incomplete(self: &Arc<Self>, job: &Job, external: ExternalValues) -> Arc<Source> {
        Arc::new(Source {
            dialect: job.dialect,
            artifacts: Arc::clone(self),
            external,
            text: None,
        })
    }
}

impl Source {
    /// Binds `job`, which was resolved from this source.
    ///
    /// # Errors
    /// All mistakes at once, and the warnings.
    pub(super) fn bind(self: &Arc<Self>, job: &Job) -> Result<BindOutcome, JobXmlErrors> {
        let of_job = of_job().map(str::to_owned);
        let mut binder = Binder {
            parameter_names: of_job.chain(job.parameter_names().cloned()).collect(),
            checks_partitions: true,
            ..Binder::new(self)
        };
        let bound = binder.job(job);
        let unknown = binder.uses.unknown(job);
        binder.diagnostics.extend(unknown);
        let unused = binder.uses.unused(job);
        binder.warnings.extend(unused);
        match bound {
            Some(job) if binder.diagnostics.is_empty() => Ok(BindOutcome {
                job,
                warnings: binder.warnings,
                parameter_names: binder.parameter_names,
                transactional_writer: binder.transactional_writer,
                nested: binder.nested,
            }),
            _ => Err(binder.into_diagnostics().into()),
        }
    }

    /// Checks the wiring of an incomplete job, and returns the mistakes that do not depend on the missing parts.
    pub(super) fn check_part(self: &Arc<Self>, job: &Job) -> Vec<Diagnostic> {
        self.bind_part(job).into_diagnostics()
    }

    /// Returns the jobs that the artifacts of a job run, which may be incomplete.
    pub(super) fn nested_jobs(self: &Arc<Self>, job: &Job) -> Vec<NestedJobRef> {
        self.bind_part(job).nested
    }

    fn bind_part(self: &Arc<Self>, job: &Job) -> Binder<'_> {
        let mut binder = Binder {
            checks_partitions: true,
            is_incomplete: true,
            ..Binder::new(self)
        };
        binder.job(job);
        binder
    }
}

impl Binder<'_> {
    /// Returns the errors first, because the last of too many diagnostics are dropped.
    fn into_diagnostics(self) -> Vec<Diagnostic> {
        let mut diagnostics = self.diagnostics;
        diagnostics.extend(self.warnings);
        // The listeners of a partitioned step are bound twice: those around the partitions, and those within.
        let mut seen = HashSet::new();
        diagnostics.retain(|one| seen.insert((one.code, one.span.to_string(), one.message.clone())));
        diagnostics
    }

    fn job(&mut self, job: &Job) -> Option<BoundJob> {
        let (listeners, complete) = self.listeners(Place::Job, Wanted::All, &job.listeners, Scope::default());
        let (timeout, concurrency) = self.properties_of_job(job);
        let deadline = self.deadline(job);
        self.job_listeners.clone_from(&listeners);
        let elements = self.elements(&job.elements, Scope::default());
        Some(BoundJob {
            id: job.id.value.clone(),
            restartable: job.restartable,
            concurrency,
            deadline,
            dialect: job.dialect,
            timeout,
            properties: self.as_map(&job.properties),
            listeners: complete.then(|| without_place(listeners))?,
            elements: elements?,
            step_names: step_names(&job.elements),
        })
    }

    /// Binds the elements of a job, flow or split, and their transitions.
    pub(super) fn elements(&mut self, elements: &[ExecutionElement], scope: Scope) -> Option<Elements> {
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
                        self.step(step, scope).map(Box::new).map(ElementBody::Step)
                    }
                    ExecutionElement::Flow(flow) => {
                        self.flow(flow, scope).map(Box::new).map(ElementBody::Flow)
                    }
                    ExecutionElement::Split(split) => self.split(split).map(Box::new).map(ElementBody::Split),
                    ExecutionElement::Decision(decision) => self
                        .artifact(Role::Decider, &decision.decider, Scope::all())
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
        for (position, problem) in Outputs::replaced(&all) {
            let span = elements[position].id().span.clone();
            let help = "give each a different name; `if.exists` = `append` keeps what is there";
            let warning = Diagnostic::warning(SHARED_OUTPUT, problem, span);
            self.warnings
                .push(warning.label("this step replaces the output").help(help));
        }
        Some(Elements { all })
    }

    fn flow(&mut self, flow: &Flow, scope: Scope) -> Option<BoundFlow> {
        let scope = Scope { flow: true, ..scope };
        match &flow.partition {
            Some(partition) => self.partitioned_flow(flow, partition, scope),
            None => Some(BoundFlow {
                elements: self.elements(&flow.elements, scope)?,
                partition: None,
            }),
        }
    }

    fn split(&mut self, split: &Split) -> Option<BoundSplit> {
        let scope = Scope {
            split: true,
            ..Scope::default()
        };
        let concurrency = &split.concurrency;
        let subjobs = self.subjobs(
            concurrency.logical_tx.as_ref(),
            concurrency.analyzer.as_ref(),
            scope,
        );
        // The collector of a partitioned flow is called at the flow's end. Spec: SUBJOB-24
        let has_partitioned = split.elements.iter().any(|element| element.partition().is_some());
        let within = Scope {
            flow: true,
            step: !has_partitioned,
            ..scope
        };
        let analyzer = subjobs.as_ref().and_then(|subjobs| subjobs.analyzer.as_ref());
        let collector = self.collector(concurrency.collector.as_ref(), analyzer, within);
        let elements = self.elements(&split.elements, scope);
        if let Some(flows) = &elements {
            self.check_flows(&split.id, flows);
        }
        Some(BoundSplit {
            elements: elements?,
            threads: self.defaults.split_threads,
            subjobs: BoundSubjobs {
                collector: collector?,
                ..subjobs?
            },
        })
    }

    /// Reports two flows of a split that write the same output.
    // Spec: LOSS-03
    fn check_flows(&mut self, split: &Spanned<String>, flows: &Elements) {
        let mut outputs = Outputs::default();
        for flow in &flows.all {
            if let Err(problem) = outputs.add(&format!("flow `{}`", flow.id), &flow.body) {
                let error = Diagnostic::error(SHARED_OUTPUT, problem, split.span.clone());
                self.diagnostics.push(error);
                return;
            }
        }
    }

    fn step(&mut self, step: &Step, scope: Scope) -> Option<BoundStep> {
        let scope = Scope { step: true, ..scope };
        match &step.partition {
            Some(partition) => self.partitioned_step(step, partition, scope),
            None => self.whole_step(step, Wanted::All, scope),
        }
    }

    /// Binds a step for one thread, or a partition of it.
    pub(super) fn whole_step(&mut self, step: &Step, wanted: Wanted, scope: Scope) -> Option<BoundStep> {
        let (listeners, complete) = self.listeners(listener_place(step), wanted, &step.listeners, scope);
        let body = match &step.body {
            StepBody::Chunk(chunk) => {
                let mut properties = self.faults_of(step);
                let policy = properties.skip_policy.take();
                let skip_policy = self.skip_policy(step, chunk, policy, scope);
                self.check_limits(step, chunk, skip_policy.is_some());
                let processors = self.processors(step, chunk);
                let pipeline = self.pipeline(step);
                let faults = self.fault_rules(step, chunk, properties);
                self.chunk(chunk, scope, faults, skip_policy, processors)
                    .map(|mut bound| {
                        self.check_retried_classes(step, chunk, &bound);
                        bound.faults.repeats_reader =
                            self.dialect().retries_one_by_one() && !bound.reader.registration.is_ready_made();
                        bound.pipelined = self.is_pipelined(pipeline, step, chunk, &bound, &listeners);
                        let needs_each_commit = acts_on_commits(&listeners);
                        bound.rewindable &= !needs_each_commit;
                        bound.ends_with_commit &= !needs_each_commit;
                        if processors == 1 && !bound.pipelined {
                            bound.faults.repeats_processor = true;
                        }
                        BoundBody::Chunk(Box::new(bound))
                    })
            }
            StepBody::Batchlet(batchlet) => self
                .artifact(Role::Batchlet, batchlet, scope)
                .map(BoundBody::Batchlet),
        };
        if let Some(BoundBody::Chunk(chunk)) = &body {
            self.check_listener_items(chunk, &listeners);
            let of_job = self.job_listeners.clone();
            self.check_listener_items(chunk, &of_job);
        }
        let bound = self.bind_step(step, complete.then(|| without_place(listeners))?, body?);
        if let Err(problem) = Outputs::check_step(&bound) {
            let error = Diagnostic::error(SHARED_OUTPUT, problem, step.id.span.clone());
            self.diagnostics.push(error);
            return None;
        }
        Some(bound)
    }

    /// Binds the parts of a step other than its chunk or batchlet.
    pub(super) fn bind_step(
        &mut self,
        step: &Step,
        listeners: Vec<Arc<BoundListener>>,
        body: BoundBody,
    ) -> BoundStep {
        let limits = self.properties_of_step(step);
        BoundStep {
            max_starts: self.source.dialect.max_starts(step.start_limit),
            allow_start_if_complete: step.allow_start_if_complete,
            limits,
            promoted: self.promoted(step),
            properties: self.as_map(&step.properties),
            listeners,
            body,
        }
    }

    fn note_writer(&mut self, name: &Spanned<String>, info: WriterInfo) {
        match (info.transactional, info.has_destination) {
            // The destination has the transaction.
            (true, true) => {}
            (true, false) => self.transactional_writer = Some(name.value.clone()),
            (false, _) if !info.keeps_position => self.warnings.push(unknown_position(name)),
            (false, _) => {}
        }
    }

    fn chunk(
        &mut self,
        chunk: &Chunk,
        scope: Scope,
        faults: FaultRules,
        skip_policy: Option<Bound>,
        processors: usize,
    ) -> Option<BoundChunk> {
        let reader = self.artifact(Role::ItemReader, &chunk.reader, scope);
        let processor = chunk.processor.as_ref();
        let has_processor = processor.is_some();
        let processor = processor.and_then(|named| self.artifact(Role::ItemProcessor, named, scope));
        let writer = self.artifact(Role::ItemWriter, &chunk.writer, scope);
        self.check_chunk_items(reader.as_ref(), processor.as_ref(), writer.as_ref(), chunk);
        let interval = self.checkpoint_interval(chunk, scope)?;
        let (reader, writer) = (reader?, writer?);
        if has_processor && processor.is_none() {
            return None;
        }
        let (Factory::ItemReader(_, input), Factory::ItemWriter(_, info)) =
            (reader.registration.factory, writer.registration.factory)
        else {
            return None;
        };
        let (input, info) = (input(), info());
        if !input.keeps_position {
            self.warnings.push(from_the_beginning(&chunk.reader.name));
        }
        self.note_writer(&chunk.writer.name, info);
        let write_batch = if info.buffered {
            as_usize(chunk.chunk_size.get())
        } else {
            1
        };
        // Its last method may set user data that the end of the step stores. Spec: JAK-20
        let has_algorithm = matches!(interval, CheckpointInterval::Custom(_));
        Some(BoundChunk {
            reader,
            processor,
            processors,
            pipelined: false,
            writer,
            interval,
            write_batch,
            transactional: info.transactional,
            writer_keeps_position: info.keeps_position,
            rewindable: input.rewindable && info.rewindable && !info.transactional,
            reader_has_origin: input.rewindable && input.has_origin,
            ends_with_commit: info.transactional
                && !(info.has_end_methods || input.has_end_methods || has_algorithm),
            buffer_reads: chunk.buffer_reads,
            faults: FaultRules {
                has_policy: skip_policy.is_some(),
                ..faults
            },
            skip_policy,
        })
    }

    fn checkpoint_interval(&mut self, chunk: &Chunk, scope: Scope) -> Option<CheckpointInterval> {
        Some(match chunk.checkpoint_policy.value {
            CheckpointPolicy::Item => CheckpointInterval::Items {
                count: as_usize(chunk.commit_interval.get()),
                time: chunk
                    .time_limit
                    .map(|limit| Duration::from_secs(limit.get().into())),
            },
            CheckpointPolicy::Time => {
                CheckpointInterval::Time(Duration::from_secs(chunk.commit_interval.get().into()))
            }
            // The XML checks require an algorithm.
            CheckpointPolicy::Custom => {
                let algorithm = chunk.checkpoint_algorithm.as_ref()?;
                CheckpointInterval::Custom(self.artifact(Role::CheckpointAlgorithm, algorithm, scope)?)
            }
        })
    }

    pub(super) fn dialect(&self) -> crate::Dialect {
        self.source.dialect
    }

    /// Binds the listeners that are wanted here, and returns whether all of them could be bound.
    pub(super) fn listeners(
        &mut self,
        place: Place,
        wanted: Wanted,
        refs: &[ArtifactRef],
        scope: Scope,
    ) -> (Vec<ListenerAt>, bool) {
        let roles = place.roles();
        let mut listeners = Vec::new();
        let mut complete = true;
        // Continues after a failure, to find all mistakes. Deferred names are bound in the partition. Spec: SUBST-09
        for listener in refs.iter().filter(|listener| !listener.deferred) {
            match self.source.artifacts.find_listener(&roles, &listener.name) {
                Ok(mut found) => {
                    found.retain(|one| wanted.contains(one.registration.role()));
                    let roles: Vec<Bound> = found
                        .into_iter()
                        .map(|found| self.bound(found, listener, scope))
                        .collect();
                    self.check_reject_listener(&roles, listener, scope);
                    if !roles.is_empty() {
                        let bound = Arc::new(BoundListener { roles });
                        listeners.push((bound, listener.name.span.clone()));
                    }
                }
                Err(diagnostic) => {
                    self.diagnostics.push(*diagnostic);
                    self.uses.reach_unknown(&listener.properties);
                    complete = false;
                }
            }
        }
        (listeners, complete)
    }

    pub(super) fn artifact(&mut self, role: Role, artifact: &ArtifactRef, scope: Scope) -> Option<Bound> {
        if artifact.deferred {
            self.uses.reach_unknown(&artifact.properties);
            return None;
        }
        match self.source.artifacts.find(role, &artifact.name) {
            Ok(found) => Some(self.bound(found, artifact, scope)),
            Err(diagnostic) => {
                self.diagnostics.push(*diagnostic);
                self.uses.reach_unknown(&artifact.properties);
                None
            }
        }
    }

    /// Returns the properties of a context, including secrets.
    fn as_map(&self, properties: &[Property]) -> BTreeMap<String, String> {
        let secrets = &self.source.external.secrets;
        let of_context = |property: &Property| {
            let value = secrets.revealed(&property.value.value).into_owned();
            (property.name.value.clone(), value)
        };
        // Among properties of one name, the outermost comes first and wins.
        properties.iter().rev().map(of_context).collect()
    }

    /// Binds an artifact with its properties, checked for its place.
    fn bound(&mut self, found: Found, artifact: &ArtifactRef, scope: Scope) -> Bound {
        let Found { registration, loader } = found;
        let of_xml = |property: &Property| {
            (
                property.name.value.clone(),
                property.value.value.clone(),
                property.value.span.to_string(),
            )
        };
        let external = &self.source.external;
        // Deferred properties do not exist outside of partitions.
        let known = artifact.properties.iter().filter(|property| !property.deferred);
        let properties = Properties {
            dialect: self.source.dialect,
            parameters: Arc::clone(&external.parameters),
            system: Arc::clone(&external.system),
            xml: known.map(of_xml).collect(),
            of_partition: !self.path.is_empty(),
            secrets: external.secrets.clone(),
        };
        self.check_properties(registration, &properties, artifact);
        self.check_contexts(registration, artifact, scope);
        Bound {
            name: artifact.name.value.clone(),
            registration,
            loader,
            properties,
        }
    }
}

fn from_the_beginning(reader: &Spanned<String>) -> Diagnostic {
    let message = format!(
        "reader `{}` has no checkpoint: a restart reads its input from the beginning",
        reader.value
    );
    Diagnostic::warning(READS_FROM_THE_BEGINNING, message, reader.span.clone())
        .label("items that are written already are read again")
        .help("return the position in `#[get_checkpoint_info]`, and continue there in `#[open]`; ignore this if an item that was read is gone")
}

fn unknown_position(writer: &Spanned<String>) -> Diagnostic {
    let message = format!(
        "writer `{}` cannot know where its output ended: after a crash, items may be missing or written again",
        writer.value
    );
    Diagnostic::warning(UNKNOWN_POSITION, message, writer.span.clone())
        .label("neither the chunk's transaction nor a checkpoint")
        .help(
            "write through `tx: &mut ChunkTransaction` in `#[write_items]`, or to another database with a `#[destination]`, whose marker makes it \
             exact; or flush in `#[get_checkpoint_info]`, return the \
             position, and truncate to it in `#[open]`",
        )
}

/// Returns whether a listener acts on commits: they have to be durable then, and it may fail after the last one.
// Spec: D-103, D-107
fn acts_on_commits(listeners: &[ListenerAt]) -> bool {
    let mut roles = listeners.iter().flat_map(|(listener, _)| &listener.roles);
    roles.any(|bound| bound.registration.role() == Role::CheckpointListener)
}

/// Returns the transitions of an element, by positions of its siblings. The XML checks ensure that targets exist.
fn transitions(element: &ExecutionElement, positions: &BTreeMap<&str, usize>) -> Transitions {
    let position = |id: &Spanned<String>| positions.get(id.value.as_str()).copied();
    let text = |text: &Option<Spanned<String>>| text.as_ref().map(|text| text.value.clone());
    let elements = element.transitions().iter().filter_map(|transition| {
        let end = |status, exit_status: &Option<Spanned<String>>, restart| {
            TransitionAction::Terminate(Termination {
                status,
                exit_status: text(exit_status),
                restart,
            })
        };
        let then = match &transition.kind {
            TransitionKind::Next { to } => TransitionAction::Next(position(to)?),
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

fn as_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
