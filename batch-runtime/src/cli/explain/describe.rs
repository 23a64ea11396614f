//! What there is to say about a job.

use std::collections::{BTreeMap, BTreeSet};

use batch_xml::model::{
    ArtifactRef, CheckpointPolicy, Chunk, ExceptionClasses, ExecutionElement, Job, Property, StepBody,
    Target, TransitionKind,
};
use batch_xml::{Span, Spanned};
use serde_json::{Value, json};

use super::{Element, Explained, Found, OfPartition, Origin, Part, Partition, Setting, Transition, written};
use crate::artifact::PropertyInfo;
use crate::loader::{Artifacts, Outside};
use crate::role::Role;

/// Explains a whole job.
pub(super) fn explain(job: &Job, artifacts: &Artifacts, outside: Outside) -> Explained {
    let mut describer = Describer {
        artifacts,
        outside,
        partitions: Vec::new(),
        used: job.symbols.union(&job.property_names).cloned().collect(),
        symbols: job.symbols.clone(),
        taken: BTreeSet::new(),
        reaching: BTreeMap::new(),
    };
    let mut root = blank("job", &job.id, job.id.span.clone());
    root.attributes
        .push(("restartable", Value::Bool(job.restartable)));
    root.properties = describer.of_context(&job.properties);
    root.parts = describer.listeners(Role::JobListener, &job.listeners);
    root.elements = describer.elements(&job.elements);
    let given = describer.outside.parameters.keys();
    let unused = given.filter(|name| !describer.used.contains(*name));
    Explained {
        unused: unused.cloned().collect(),
        untaken: describer.untaken(),
        job: root,
    }
}

struct Describer<'a> {
    artifacts: &'a Artifacts,
    outside: Outside,
    /// The partitions that enclose the place, outermost first.
    partitions: Vec<&'a batch_xml::model::Partition>,
    /// Names that a job parameter can have an effect by.
    used: BTreeSet<String>,
    /// Names that a symbol uses.
    symbols: BTreeSet<String>,
    /// Places of properties that a field or a context takes.
    taken: BTreeSet<String>,
    /// Properties that reach an artifact, by place.
    reaching: BTreeMap<String, (String, Span)>,
}

impl<'a> Describer<'a> {
    fn elements(&mut self, elements: &'a [ExecutionElement]) -> Vec<Element> {
        elements.iter().map(|element| self.element(element)).collect()
    }

    fn element(&mut self, element: &'a ExecutionElement) -> Element {
        let (kind, span) = match element {
            ExecutionElement::Step(step) => ("step", &step.span),
            ExecutionElement::Flow(flow) => ("flow", &flow.span),
            ExecutionElement::Split(split) => ("split", &split.span),
            ExecutionElement::Decision(decision) => ("decision", &decision.span),
        };
        let mut described = blank(kind, element.id(), span.clone());
        if let Some(next) = element.next() {
            described.attributes.push(("next", json!(next.value)));
        }
        described.transitions = element.transitions().iter().map(transition).collect();
        if let Some(partition) = element.partition() {
            described.partition = Some(self.partition(partition));
            self.partitions.push(partition);
        }
        match element {
            ExecutionElement::Step(step) => {
                described.attributes.extend([
                    ("start-limit", json!(step.start_limit)),
                    ("allow-start-if-complete", json!(step.allow_start_if_complete)),
                ]);
                described.properties = self.of_context(&step.properties);
                match &step.body {
                    StepBody::Chunk(chunk) => {
                        described.attributes.extend(chunk_attributes(chunk));
                        described.parts = self.chunk(chunk);
                    }
                    StepBody::Batchlet(batchlet) => {
                        described.parts = vec![self.part("batchlet", Role::Batchlet, batchlet, None)];
                    }
                }
                let listeners = self.listeners(Role::StepListener, &step.listeners);
                described.parts.extend(listeners);
            }
            ExecutionElement::Decision(decision) => {
                described.parts = vec![self.part("decider", Role::Decider, &decision.decider, None)];
            }
            ExecutionElement::Split(split) => {
                let around = &split.concurrency;
                described.parts = self.optional(&[
                    ("logicalTX", Role::LogicalTX, &around.logical_tx),
                    ("collector", Role::SubJobCollector, &around.collector),
                    ("analyzer", Role::SubJobAnalyzer, &around.analyzer),
                ]);
            }
            ExecutionElement::Flow(_) => {}
        }
        described.elements = self.elements(element.elements());
        if element.partition().is_some() {
            self.partitions.pop();
        }
        described
    }

    fn chunk(&mut self, chunk: &Chunk) -> Vec<Part> {
        let mut parts = vec![
            self.part("reader", Role::ItemReader, &chunk.reader, Some(Target::Reader)),
            self.part(
                "processor",
                Role::ItemProcessor,
                &chunk.processor,
                Some(Target::Processor),
            ),
            self.part("writer", Role::ItemWriter, &chunk.writer, Some(Target::Writer)),
        ];
        parts.extend(self.optional(&[(
            "checkpoint-algorithm",
            Role::CheckpointAlgorithm,
            &chunk.checkpoint_algorithm,
        )]));
        parts
    }

    /// Seen from outside of it: only the collector runs within.
    fn partition(&mut self, partition: &'a batch_xml::model::Partition) -> Partition {
        let mut parts = self.optional(&[
            ("algorithm", Role::PartitionAlgorithm, &partition.algorithm),
            ("logicalTX", Role::LogicalTX, &partition.logical_tx),
            ("analyzer", Role::SubJobAnalyzer, &partition.analyzer),
        ]);
        self.partitions.push(partition);
        parts.extend(self.optional(&[("collector", Role::SubJobCollector, &partition.collector)]));
        self.partitions.pop();
        let instances = partition
            .algorithm
            .is_none()
            .then(|| ("instances", json!(partition.instances)));
        let symbols: Vec<&str> = partition.deferred.iter().map(String::as_str).collect();
        let symbols = (!symbols.is_empty()).then(|| ("known only within", json!(symbols.join(" "))));
        let properties = partition.properties.iter().map(|property| {
            let target = property.target.map(|target| format!(" ({})", word(target)));
            let name = format!("{}{}", property.name.value, target.unwrap_or_default());
            let (number, written) = (property.number.get(), &property.value);
            let parameter = self
                .outside
                .parameters
                .get(&format!("{}.{number}", property.name.value));
            OfPartition {
                number,
                name,
                value: parameter.unwrap_or(&written.value).clone(),
                is_parameter: parameter.is_some(),
                span: written.span.clone(),
            }
        });
        Partition {
            attributes: instances.into_iter().chain(symbols).collect(),
            properties: properties.collect(),
            parts,
        }
    }

    fn listeners(&mut self, role: Role, listeners: &[ArtifactRef]) -> Vec<Part> {
        let parts = listeners
            .iter()
            .map(|listener| self.part("listener", role, listener, None));
        parts.collect()
    }

    fn optional(&mut self, parts: &[(&'static str, Role, &Option<ArtifactRef>)]) -> Vec<Part> {
        let given = parts
            .iter()
            .filter_map(|(place, role, artifact)| Some((place, role, artifact.as_ref()?)));
        given
            .map(|(place, role, artifact)| self.part(place, *role, artifact, None))
            .collect()
    }

    fn part(
        &mut self,
        place: &'static str,
        role: Role,
        artifact: &ArtifactRef,
        target: Option<Target>,
    ) -> Part {
        let found = match self.artifacts.named(role, &artifact.name) {
            _ if artifact.deferred => Found::Later,
            Ok(types) => Found::Types(types),
            Err(diagnostic) => Found::Problem(diagnostic.message),
        };
        Part {
            place,
            name: artifact.name.value.clone(),
            span: artifact.name.span.clone(),
            settings: self.settings(&found, artifact, target),
            found,
        }
    }

    /// The properties that fields take, then those that no field takes.
    fn settings(&mut self, found: &Found, artifact: &ArtifactRef, target: Option<Target>) -> Vec<Setting> {
        // What an unknown type takes, nobody knows.
        let known = matches!(found, Found::Types(_));
        for property in artifact.properties.iter().filter(|_| known) {
            let span = &property.name.span;
            let entry = (property.name.value.clone(), span.clone());
            self.reaching.insert(span.to_string(), entry);
        }
        let types = match found {
            Found::Types(types) => types.as_slice(),
            Found::Problem(_) | Found::Later => &[],
        };
        // The roles of one type have the same fields.
        let fields = types.first().map_or(Vec::new(), |one| (one.properties)());
        let is_taken = |property: &&Property| fields.iter().any(|field| field.name == property.name.value);
        let taken = artifact.properties.iter().filter(is_taken);
        self.taken
            .extend(taken.map(|property| property.name.span.to_string()));
        let mut settings: Vec<Setting> = fields
            .iter()
            .map(|field| self.field(field, artifact, target))
            .collect();
        let left = artifact.properties.iter().filter(|property| !is_taken(property));
        settings.extend(left.map(|property| self.setting(property)));
        settings
    }

    /// Spec: OVR-02 to OVR-05, D-34
    fn field(&mut self, field: &PropertyInfo, artifact: &ArtifactRef, target: Option<Target>) -> Setting {
        self.used.insert(field.name.to_owned());
        let outside = |origin, value: &str| (origin, Some(value.to_owned()));
        let (origin, value) = if let Some(span) = self.of_partition(field.name, target) {
            (Origin::Partition(span), None)
        } else if let Some(value) = self.outside.parameters.get(field.name) {
            outside(Origin::Parameter, value)
        } else if let Some(value) = self.outside.system.get(field.name) {
            outside(Origin::System, value)
        } else if let Some(property) = written(artifact, field.name) {
            let setting = self.setting(property);
            (setting.origin, setting.value)
        } else if let Some(value) = field.default {
            outside(Origin::Default, value)
        } else {
            (Origin::Nothing, None)
        };
        let algorithms = self
            .partitions
            .iter()
            .rev()
            .filter_map(|partition| partition.algorithm.as_ref());
        Setting {
            name: field.name.to_owned(),
            value,
            origin,
            planner: algorithms.map(|algorithm| algorithm.name.value.clone()).next(),
            field: Some(field.clone()),
        }
    }

    /// Where a partition around this place gives a value to a property.
    fn of_partition(&self, name: &str, target: Option<Target>) -> Option<Span> {
        let written = self
            .partitions
            .iter()
            .rev()
            .filter(|partition| partition.algorithm.is_none())
            .flat_map(|partition| &partition.properties);
        let concerns = |of: Option<Target>| of.is_none() || of == target;
        let mut found = written.filter(|property| property.name.value == name && concerns(property.target));
        found.next().map(|property| property.value.span.clone())
    }

    fn of_context(&mut self, properties: &[Property]) -> Vec<Setting> {
        let places = properties.iter().map(|property| property.name.span.to_string());
        self.taken.extend(places);
        properties.iter().map(|property| self.setting(property)).collect()
    }

    fn untaken(&mut self) -> Vec<(String, Span)> {
        let reaching = std::mem::take(&mut self.reaching).into_iter();
        let untaken =
            reaching.filter(|(place, (name, _))| !self.taken.contains(place) && !self.symbols.contains(name));
        untaken.map(|(_, entry)| entry).collect()
    }

    /// A property of the Job XML, whose value has taken those from outside into account.
    fn setting(&self, property: &Property) -> Setting {
        let name = property.name.value.clone();
        let span = property.value.span.clone();
        let origin = if property.deferred {
            Origin::Partition(span)
        } else if self.outside.parameters.contains_key(&name) {
            Origin::Parameter
        } else if self.outside.system.contains_key(&name) {
            Origin::System
        } else {
            Origin::Xml(span)
        };
        Setting {
            value: (!property.deferred).then(|| property.value.value.clone()),
            name,
            origin,
            planner: None,
            field: None,
        }
    }
}

fn blank(kind: &'static str, id: &Spanned<String>, span: Span) -> Element {
    Element {
        kind,
        id: id.value.clone(),
        span,
        attributes: Vec::new(),
        properties: Vec::new(),
        parts: Vec::new(),
        partition: None,
        transitions: Vec::new(),
        elements: Vec::new(),
    }
}

fn chunk_attributes(chunk: &Chunk) -> Vec<(&'static str, Value)> {
    let policy = match chunk.checkpoint_policy.value {
        CheckpointPolicy::Item => "item",
        CheckpointPolicy::Time => "time",
        CheckpointPolicy::Custom => "custom",
    };
    let mut attributes = vec![("checkpoint-policy", json!(policy))];
    if chunk.checkpoint_policy.value != CheckpointPolicy::Custom {
        attributes.push(("commit-interval", json!(chunk.commit_interval)));
    }
    attributes.extend([
        ("chunk-size", json!(chunk.chunk_size)),
        ("buffer-reads", json!(chunk.buffer_reads)),
        ("checkpoint-timeout", json!(chunk.checkpoint_timeout)),
    ]);
    let limits = [
        ("skip-limit", chunk.skip_limit),
        ("retry-limit", chunk.retry_limit),
    ];
    attributes.extend(
        limits
            .into_iter()
            .filter_map(|(name, limit)| Some((name, json!(limit?)))),
    );
    let classes = [
        ("skippable-exception-classes", &chunk.skippable),
        ("retryable-exception-classes", &chunk.retryable),
        ("no-rollback-exception-classes", &chunk.no_rollback),
    ];
    let given = classes.into_iter().filter(|(_, classes)| classes.span.is_some());
    attributes.extend(given.map(|(name, classes)| (name, exceptions(classes))));
    attributes
}

fn exceptions(classes: &ExceptionClasses) -> Value {
    let names =
        |list: &[Spanned<String>]| -> Vec<String> { list.iter().map(|class| class.value.clone()).collect() };
    json!({ "include": names(&classes.include), "exclude": names(&classes.exclude) })
}

fn transition(transition: &batch_xml::model::Transition) -> Transition {
    let text = |name, value: &Option<Spanned<String>>| value.as_ref().map(|v| (name, v.value.clone()));
    let (kind, attributes) = match &transition.kind {
        TransitionKind::Next { to } => ("next", vec![Some(("to", to.value.clone()))]),
        TransitionKind::Fail { exit_status } => ("fail", vec![text("exit-status", exit_status)]),
        TransitionKind::End { exit_status } => ("end", vec![text("exit-status", exit_status)]),
        TransitionKind::Stop { exit_status, restart } => (
            "stop",
            vec![text("exit-status", exit_status), text("restart", restart)],
        ),
    };
    Transition {
        on: transition.on.value.to_string(),
        kind,
        attributes: attributes.into_iter().flatten().collect(),
        span: transition.span.clone(),
    }
}

fn word(target: Target) -> &'static str {
    match target {
        Target::Reader => "reader",
        Target::Processor => "processor",
        Target::Writer => "writer",
    }
}
