//! The artifact loader: from a checked Job XML to a job whose every `ref` is a registered artifact. All mistakes of a
//! job are reported at once, each at its place in the XML, before anything runs.
//!
//! Spec: LOADER-01, LOADER-08, LOADER-16, LOADER-17, ART-09, CHUNK-LOOP-17

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use batch_xml::model::{
    ArtifactRef, CheckpointPolicy, Chunk, ExceptionClasses, ExecutionElement, Job, Property, Step, StepBody,
};
use batch_xml::suggest::nearest;
use batch_xml::{Diagnostic, JobXmlErrors, Spanned};

use crate::artifact::{
    ArtifactRegistration, ContextKind, Factory, ItemType, Properties, PropertySource, Role, registry,
};
use crate::engine::{Bound, BoundBody, BoundChunk, BoundJob, BoundStep, CheckpointInterval};
use crate::error::BatchError;

/// `ref` names no artifact.
const UNKNOWN: &str = "ART0001";
/// `ref` names an artifact of another role.
const WRONG_ROLE: &str = "ART0002";
/// `ref` names several artifacts.
const AMBIGUOUS: &str = "ART0003";
/// Item types do not fit together.
const ITEM_TYPES: &str = "ART0004";
/// A property's value does not parse as its field's type.
const PROPERTY_VALUE: &str = "ART0005";
/// A property that a field needs has no value.
const PROPERTY_MISSING: &str = "ART0006";
/// A context field that can never be in scope.
const CONTEXT_SCOPE: &str = "ART0007";
/// The runtime does not do this yet.
const UNSUPPORTED: &str = "ART0008";
/// A property of the Job XML that no artifact takes.
const PROPERTY_UNUSED: &str = "ART0010";
/// The writer does not write through the chunk transaction.
const AT_LEAST_ONCE: &str = "ART0009";

/// The artifacts of all linked crates.
pub(crate) struct Artifacts {
    all: Vec<&'static ArtifactRegistration>,
}

/// Values from outside the Job XML.
#[derive(Clone, Default)]
pub(crate) struct Outside {
    pub(crate) parameters: Arc<BTreeMap<String, String>>,
    pub(crate) system: Arc<BTreeMap<String, String>>,
}

/// A bound job, with what is worth a warning.
pub(crate) struct BindOutcome {
    pub(crate) job: BoundJob,
    pub(crate) warnings: Vec<Diagnostic>,
    /// The names that a job parameter can have an effect by.
    pub(crate) parameter_names: BTreeSet<String>,
}

impl Artifacts {
    /// Drains the registry.
    pub(crate) fn linked() -> Self {
        Self {
            all: registry::linked().collect(),
        }
    }

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

    /// Spec: D-64, D-65
    fn find(
        &self,
        role: Role,
        name: &Spanned<String>,
    ) -> Result<&'static ArtifactRegistration, Box<Diagnostic>> {
        let of_role = || {
            self.all
                .iter()
                .copied()
                .filter(move |registration| registration.role() == role)
        };
        let by_name: Vec<_> = of_role()
            .filter(|registration| registration.name == name.value)
            .collect();
        let found = if by_name.is_empty() {
            let is_class = |registration: &&'static ArtifactRegistration| {
                registration.class == name.value || registration.declared_class == Some(name.value.as_str())
            };
            of_role().filter(is_class).collect()
        } else {
            by_name
        };
        match found.as_slice() {
            [one] => Ok(one),
            [] => Err(Box::new(self.not_found(role, name))),
            several => {
                let places: Vec<String> = several.iter().map(|one| place(one)).collect();
                Err(Box::new(
                    Diagnostic::error(
                        AMBIGUOUS,
                        format!("several artifacts are {role} `{}`", name.value),
                        name.span.clone(),
                    )
                    .label("which one?")
                    .help(format!("give one of them another name: {}", places.join(", "))),
                ))
            }
        }
    }

    fn not_found(&self, role: Role, name: &Spanned<String>) -> Diagnostic {
        let named = |registration: &&&ArtifactRegistration| {
            registration.name == name.value || registration.class == name.value
        };
        if let Some(other) = self.all.iter().find(named) {
            return Diagnostic::error(
                WRONG_ROLE,
                format!(
                    "`{}` is no {role}, it is {}",
                    name.value,
                    other.role().with_article()
                ),
                name.span.clone(),
            )
            .label(format!("{} is needed here", role.with_article()))
            .help(format!("`{}` is registered at {}", name.value, place(other)));
        }
        let names: Vec<&str> = self
            .all
            .iter()
            .filter(|registration| registration.role() == role)
            .map(|registration| registration.name)
            .collect();
        let diagnostic = Diagnostic::error(
            UNKNOWN,
            format!("no {role} is called `{}`", name.value),
            name.span.clone(),
        );
        let linked = "an artifact crate is linked only if the program names it: `use my_artifacts as _;`";
        match nearest(&name.value, names.iter().copied()) {
            Some(near) => diagnostic
                .label("unknown artifact")
                .help(format!("did you mean `{near}`? If not: {linked}")),
            None if names.is_empty() => diagnostic
                .label("unknown artifact")
                .help(format!("the program has no {role} at all; {linked}")),
            None => {
                let known = names.join("`, `");
                diagnostic
                    .label("unknown artifact")
                    .help(format!("known: `{known}`. If yours is missing: {linked}"))
            }
        }
    }
}

fn place(registration: &ArtifactRegistration) -> String {
    format!("{}:{}", registration.file, registration.line)
}

struct Binder<'a> {
    artifacts: &'a Artifacts,
    outside: &'a Outside,
    diagnostics: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    parameter_names: BTreeSet<String>,
    /// Names of the properties that some artifact takes.
    taken: BTreeSet<String>,
    /// Properties that reach an artifact.
    reaching: Vec<Property>,
}

impl Binder<'_> {
    /// A property that nobody takes is most often a misspelt one. One of the job or a step may be there for the
    /// contexts, so it has to be much like a name that is taken. Spec: BPROP-11, JSL-CHPROP-07
    fn unused_properties(&mut self, job: &Job) {
        let steps = job.elements.iter().filter_map(|element| match element {
            ExecutionElement::Step(step) => Some(step),
            _ => None,
        });
        let of_contexts: BTreeSet<&str> = steps
            .flat_map(|step| &step.properties)
            .chain(&job.properties)
            .map(|property| property.name.value.as_str())
            .collect();
        let mut told = BTreeSet::new();
        for property in &self.reaching {
            let name = property.name.value.as_str();
            if self.taken.contains(name) || job.symbols.contains(name) || !told.insert(name) {
                continue;
            }
            let near = nearest(name, self.taken.iter().map(String::as_str));
            if near.is_none() && of_contexts.contains(name) {
                continue;
            }
            let message = format!("no artifact that property `{name}` reaches takes it");
            let warning = Diagnostic::warning(PROPERTY_UNUSED, message, property.name.span.clone())
                .label("has no effect");
            self.warnings.push(match near {
                Some(near) => warning.help(format!("did you mean `{near}`?")),
                None => warning,
            });
        }
    }

    fn job(&mut self, job: &Job) -> Option<BoundJob> {
        let listeners = self.listeners(Role::JobListener, &job.listeners);
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
                    self.unsupported("this element", other.id());
                    None
                }
            })
            .collect();
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
            self.unsupported("a transition element", &transition.on);
        }
        let listeners = self.listeners(Role::StepListener, &step.listeners);
        let body = match &step.body {
            StepBody::Chunk(chunk) => self.chunk(chunk).map(|chunk| BoundBody::Chunk(Box::new(chunk))),
            StepBody::Batchlet(batchlet) => self.artifact(Role::Batchlet, batchlet).map(BoundBody::Batchlet),
        };
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
        for classes in [&chunk.skippable, &chunk.retryable, &chunk.no_rollback] {
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
        let info = match (
            reader.registration.factory,
            processor.registration.factory,
            writer.registration.factory,
        ) {
            (
                Factory::ItemReader(_, item),
                Factory::ItemProcessor(_, items),
                Factory::ItemWriter(_, info),
            ) => {
                let (items, info) = (items(), info());
                self.same_items(
                    (&reader, item(), "gives"),
                    (&processor, items.input, "takes"),
                    &chunk.processor.name,
                );
                self.same_items(
                    (&processor, items.output, "gives"),
                    (&writer, info.items, "takes"),
                    &chunk.writer.name,
                );
                info
            }
            _ => return None,
        };
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

    /// Spec: CHUNK-LOOP-17, D-81
    fn same_items(
        &mut self,
        (from, gives, _): (&Bound, ItemType, &str),
        (to, takes, _): (&Bound, ItemType, &str),
        at: &Spanned<String>,
    ) {
        if gives == takes {
            return;
        }
        let (from_role, to_role) = (from.registration.role(), to.registration.role());
        self.diagnostics.push(
            Diagnostic::error(
                ITEM_TYPES,
                format!(
                    "{to_role} `{}` does not take the items that {from_role} `{}` gives",
                    to.name, from.name
                ),
                at.span.clone(),
            )
            .label(format!("takes `{}`, is given `{}`", takes.name(), gives.name()))
            .help(format!(
                "the two are at {} and {}",
                place(to.registration),
                place(from.registration)
            )),
        );
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

    fn unsupported(&mut self, what: &str, at: &Spanned<String>) {
        let message = format!("{what} is not supported by this version");
        self.diagnostics
            .push(Diagnostic::error(UNSUPPORTED, message, at.span.clone()));
    }

    fn listeners(&mut self, role: Role, refs: &[ArtifactRef]) -> Option<Vec<Bound>> {
        // Each is looked at, also after one that fails.
        let bound: Vec<Option<Bound>> = refs
            .iter()
            .map(|listener| self.artifact(role, listener))
            .collect();
        bound.into_iter().collect()
    }

    fn artifact(&mut self, role: Role, artifact: &ArtifactRef) -> Option<Bound> {
        let registration = match self.artifacts.find(role, &artifact.name) {
            Ok(registration) => registration,
            Err(diagnostic) => {
                self.diagnostics.push(*diagnostic);
                return None;
            }
        };
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
        Some(Bound {
            name: artifact.name.value.clone(),
            registration,
            properties,
        })
    }

    /// Spec: BPROP-10
    fn check_properties(
        &mut self,
        registration: &ArtifactRegistration,
        properties: &Properties,
        artifact: &ArtifactRef,
    ) {
        for info in (registration.properties)() {
            self.parameter_names.insert(info.name.to_owned());
            self.taken.insert(info.name.to_owned());
            let default = info.default.map(|text| (text, PropertySource::Default));
            let (text, source) = match properties.get(info.name).or(default) {
                Some(found) => found,
                None if info.optional => continue,
                None => {
                    let given = artifact
                        .properties
                        .iter()
                        .map(|property| property.name.value.as_str());
                    let near = nearest(info.name, given).map(|near| format!(" (the XML gives `{near}`)"));
                    self.diagnostics.push(
                        Diagnostic::error(
                            PROPERTY_MISSING,
                            format!("`{}` needs the property `{}`", artifact.name.value, info.name),
                            artifact.name.span.clone(),
                        )
                        .label(format!("field `{}` is of type `{}`", info.field, info.type_name))
                        .help(format!(
                            "add `<property name=\"{}\" value=\"...\"/>` or give a job parameter{}",
                            info.name,
                            near.unwrap_or_default()
                        )),
                    );
                    continue;
                }
            };
            // A parser that panics must not take the caller of `start` with it. Spec: CHUNK-EXC-03
            let checked = catch_unwind(AssertUnwindSafe(|| (info.check)(text)))
                .unwrap_or_else(|payload| Err(BatchError::from_panic(payload).chain()));
            if let Err(reason) = checked {
                let in_xml = artifact
                    .properties
                    .iter()
                    .find(|property| property.name.value == info.name);
                let span = match (&source, in_xml) {
                    (PropertySource::Xml(_), Some(property)) => property.value.span.clone(),
                    _ => artifact.name.span.clone(),
                };
                let given = match source {
                    PropertySource::Xml(_) => String::new(),
                    other => format!(", given by {other},"),
                };
                self.diagnostics.push(
                    Diagnostic::error(
                        PROPERTY_VALUE,
                        format!(
                            "property `{}`: {text:?}{given} is no `{}`",
                            info.name, info.type_name
                        ),
                        span,
                    )
                    .label(reason)
                    .help(format!(
                        "field `{}` of `{}`, {}",
                        info.field,
                        registration.class,
                        place(registration)
                    )),
                );
            }
        }
    }

    /// Spec: CTX-05, CTX-12, D-66
    fn check_contexts(&mut self, role: Role, registration: &ArtifactRegistration, artifact: &ArtifactRef) {
        let never = |kind: ContextKind| match kind {
            ContextKind::Job => false,
            ContextKind::Step => role == Role::JobListener,
            ContextKind::Flow | ContextKind::Split => true,
        };
        for info in (registration.contexts)()
            .into_iter()
            .filter(|info| !info.optional && never(info.kind))
        {
            let context = info.kind.type_name();
            self.diagnostics.push(
                Diagnostic::error(
                    CONTEXT_SCOPE,
                    format!(
                        "no `{context}` is in scope when `{}` is made",
                        artifact.name.value
                    ),
                    artifact.name.span.clone(),
                )
                .label(format!("field `{}` needs one", info.field))
                .help(format!(
                    "make the field an `Option<{context}>` ({})",
                    place(registration)
                )),
            );
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
