//! Walks a job and collects its explanation.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use batch_xml::model::{
    ArtifactRef, CheckpointPolicy, Chunk, ExceptionClasses, ExecutionElement, Job, Partition, Property,
    StepBody, Target, Transition, TransitionKind,
};
use batch_xml::{Dialect, Span, Spanned, ValueSource};

use super::guarantee::Guarantee;
use super::{
    ArtifactExplanation, ArtifactType, AttributeValue, ElementExplanation, FieldExplanation, JobExplanation,
    PartitionExplanation, PartitionProperty, PropertyExplanation, TransitionExplanation, UnusedProperty,
    ValueOrigin,
};
use crate::artifact::PropertyInfo;
use crate::loader::{Artifacts, ExternalValues};
use crate::role::Role;
use crate::url::redact;

type Attribute = (&'static str, AttributeValue);

/// Explains a whole job.
pub(super) fn explain(
    job: &Job,
    artifacts: &Artifacts,
    external: ExternalValues,
    in_memory: bool,
) -> JobExplanation {
    let mut describer = Describer {
        dialect: job.dialect,
        artifacts,
        external,
        in_memory,
        partitions: Vec::new(),
        used: job.parameter_names().cloned().collect(),
        symbols: job.symbols.clone(),
        taken: BTreeSet::new(),
        available: BTreeMap::new(),
    };
    let mut root = blank("job", &job.id, job.id.span.clone());
    root.attributes.push(("restartable", job.restartable.into()));
    root.properties = describer.context_properties(&job.properties);
    root.artifacts = describer.listeners(Role::JobListener, &job.listeners);
    root.elements = describer.elements(&job.elements);
    let given = describer.external.parameters.keys();
    let unused = given.filter(|name| !describer.used.contains(*name));
    JobExplanation {
        unused_parameters: unused.cloned().collect(),
        unused_properties: describer.unused_properties(),
        job: root,
    }
}

struct Describer<'a> {
    dialect: Dialect,
    artifacts: &'a Artifacts,
    external: ExternalValues,
    /// Whether the repository keeps nothing after the process.
    in_memory: bool,
    /// The partitions that enclose the current element, outermost first.
    partitions: Vec<&'a Partition>,
    /// Names of job parameters that can have an effect.
    used: BTreeSet<String>,
    /// Names that a symbol uses.
    symbols: BTreeSet<String>,
    /// Places of the properties that a field or a context takes.
    taken: BTreeSet<String>,
    /// All properties that an artifact could take, by place.
    available: BTreeMap<String, UnusedProperty>,
}

impl<'a> Describer<'a> {
    fn elements(&mut self, elements: &'a [ExecutionElement]) -> Vec<ElementExplanation> {
        elements.iter().map(|element| self.element(element)).collect()
    }

    fn element(&mut self, element: &'a ExecutionElement) -> ElementExplanation {
        let (kind, span) = match element {
            ExecutionElement::Step(step) => ("step", &step.span),
            ExecutionElement::Flow(flow) => ("flow", &flow.span),
            ExecutionElement::Split(split) => ("split", &split.span),
            ExecutionElement::Decision(decision) => ("decision", &decision.span),
        };
        let mut described = blank(kind, element.id(), span.clone());
        if let Some(next) = element.next() {
            described.attributes.push(("next", next.value.clone().into()));
        }
        described.transitions = element.transitions().iter().map(transition).collect();
        if let Some(partition) = element.partition() {
            described.partition = Some(self.partition(partition));
            self.partitions.push(partition);
        }
        match element {
            ExecutionElement::Step(step) => {
                described.attributes.extend([
                    ("start-limit", step.start_limit.into()),
                    ("allow-start-if-complete", step.allow_start_if_complete.into()),
                ]);
                described.properties = self.context_properties(&step.properties);
                match &step.body {
                    StepBody::Chunk(chunk) => {
                        described.attributes.extend(chunk_attributes(chunk, self.dialect));
                        described.artifacts = self.chunk(chunk);
                        described.guarantee = self.guarantee(chunk, &described.artifacts);
                    }
                    StepBody::Batchlet(batchlet) => {
                        described.artifacts = vec![self.part("batchlet", Role::Batchlet, batchlet, None)];
                        described.guarantee = Some(Guarantee::of_batchlet());
                    }
                }
                let listeners = self.listeners(Role::StepListener, &step.listeners);
                described.artifacts.extend(listeners);
            }
            ExecutionElement::Decision(decision) => {
                described.artifacts = vec![self.part("decider", Role::Decider, &decision.decider, None)];
            }
            ExecutionElement::Split(split) => {
                let around = &split.concurrency;
                described.artifacts = self.optional(&[
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

    fn chunk(&mut self, chunk: &Chunk) -> Vec<ArtifactExplanation> {
        let mut parts = vec![self.part("reader", Role::ItemReader, &chunk.reader, Some(Target::Reader))];
        let processor = chunk.processor.as_ref();
        parts.extend(processor.map(|processor| {
            self.part(
                "processor",
                Role::ItemProcessor,
                processor,
                Some(Target::Processor),
            )
        }));
        parts.push(self.part("writer", Role::ItemWriter, &chunk.writer, Some(Target::Writer)));
        parts.extend(self.optional(&[(
            "checkpoint-algorithm",
            Role::CheckpointAlgorithm,
            &chunk.checkpoint_algorithm,
        )]));
        parts
    }

    /// Returns what a crash does to the items of a chunk.
    fn guarantee(&self, chunk: &Chunk, parts: &[ArtifactExplanation]) -> Option<Guarantee> {
        let registered = |role, artifact: &ArtifactRef| {
            let found = self.artifacts.named(role, &artifact.name).ok()?;
            found.first().copied().filter(|_| !artifact.deferred)
        };
        let written = parts.iter().find(|part| part.usage == "writer")?;
        if self.in_memory {
            return Some(Guarantee::in_memory());
        }
        if self.names_unknown_database(written) {
            return None;
        }
        Guarantee::of_chunk(
            registered(Role::ItemReader, &chunk.reader),
            registered(Role::ItemWriter, &chunk.writer),
            written,
        )
    }

    /// Returns whether the writer names a database that is not one of the known ones: a launch fails.
    fn names_unknown_database(&self, writer: &ArtifactExplanation) -> bool {
        let named = writer
            .properties
            .iter()
            .find(|property| property.name == "database");
        let name = named.and_then(|property| property.value.as_deref());
        let (Some(name), Some(known)) = (name, &self.external.databases) else {
            return false;
        };
        !name.is_empty() && !name.contains([':', '=']) && !known.contains(name)
    }

    /// Only the collector runs inside the partition.
    fn partition(&mut self, partition: &'a Partition) -> PartitionExplanation {
        let mut parts = self.optional(&[
            ("algorithm", Role::PartitionAlgorithm, &partition.algorithm),
            ("logicalTX", Role::LogicalTX, &partition.logical_tx),
            ("analyzer", Role::SubJobAnalyzer, &partition.analyzer),
        ]);
        self.partitions.push(partition);
        parts.extend(self.optional(&[("collector", Role::SubJobCollector, &partition.collector)]));
        self.partitions.pop();
        let mut attributes: Vec<Attribute> = Vec::new();
        if partition.algorithm.is_none() {
            let name = match self.dialect.has_attribute("partition", "instances") {
                true => "instances",
                false => "partitions",
            };
            attributes.push((name, partition.instances.get().into()));
        }
        if !partition.deferred.is_empty() {
            let symbols: Vec<&str> = partition.deferred.iter().map(String::as_str).collect();
            attributes.push(("known only within", symbols.join(" ").into()));
        }
        PartitionExplanation {
            attributes,
            properties: partition
                .properties
                .iter()
                .map(|one| self.partition_property(one))
                .collect(),
            artifacts: parts,
        }
    }

    fn partition_property(&self, property: &batch_xml::model::PartitionProperty) -> PartitionProperty {
        let number = property.number.get();
        let parameter = format!("{}.{number}", property.name.value);
        let parameter = self.dialect.first_value(|source| match source {
            ValueSource::JobParameter => self.external.parameters.get(&parameter),
            _ => None,
        });
        let target = property
            .target
            .map(|target| format!(" ({})", target_name(target)));
        PartitionProperty {
            partition: number,
            name: format!("{}{}", property.name.value, target.unwrap_or_default()),
            value: parameter.unwrap_or(&property.value.value).clone(),
            is_parameter: parameter.is_some(),
            span: property.value.span.clone(),
        }
    }

    fn listeners(&mut self, role: Role, listeners: &[ArtifactRef]) -> Vec<ArtifactExplanation> {
        let parts = listeners
            .iter()
            .map(|listener| self.part("listener", role, listener, None));
        parts.collect()
    }

    fn optional(&mut self, parts: &[(&'static str, Role, &Option<ArtifactRef>)]) -> Vec<ArtifactExplanation> {
        let given = parts
            .iter()
            .filter_map(|(place, role, artifact)| Some((place, role, artifact.as_ref()?)));
        given
            .map(|(place, role, artifact)| self.part(place, *role, artifact, None))
            .collect()
    }

    fn part(
        &mut self,
        usage: &'static str,
        role: Role,
        artifact: &ArtifactRef,
        target: Option<Target>,
    ) -> ArtifactExplanation {
        let (types, problem) = match self.artifacts.named(role, &artifact.name) {
            _ if artifact.deferred => (Vec::new(), Some("known only within a partition".to_owned())),
            Ok(types) => (types, None),
            Err(diagnostic) => (Vec::new(), Some(diagnostic.message)),
        };
        let types_in_roles = types.iter().map(|one| ArtifactType {
            role: one.role().attribute(),
            class: one.class,
            file: one.file,
            line: one.line,
        });
        ArtifactExplanation {
            usage,
            name: artifact.name.value.clone(),
            span: artifact.name.span.clone(),
            types: types_in_roles.collect(),
            problem,
            deferred: artifact.deferred,
            // The roles of one type have the same fields.
            properties: self.properties(types.first().map(|one| (one.properties)()), artifact, target),
        }
    }

    /// The properties that fields take, then the others. `fields` is `None` for an unknown type.
    fn properties(
        &mut self,
        fields: Option<Vec<PropertyInfo>>,
        artifact: &ArtifactRef,
        target: Option<Target>,
    ) -> Vec<PropertyExplanation> {
        if fields.is_some() {
            for property in &artifact.properties {
                let (name, span) = (property.name.value.clone(), property.name.span.clone());
                self.available
                    .insert(span.to_string(), UnusedProperty { name, span });
            }
        }
        let fields = fields.unwrap_or_default();
        let (taken, left): (Vec<&Property>, Vec<&Property>) = artifact
            .properties
            .iter()
            .partition(|property| fields.iter().any(|field| field.name == property.name.value));
        self.taken
            .extend(taken.iter().map(|property| property.name.span.to_string()));
        let mut properties: Vec<PropertyExplanation> = fields
            .iter()
            .map(|field| self.field(field, artifact, target))
            .collect();
        properties.extend(left.into_iter().map(|property| self.property(property)));
        properties
    }

    // Spec: OVR-02 to OVR-05, D-34
    fn field(
        &mut self,
        field: &PropertyInfo,
        artifact: &ArtifactRef,
        target: Option<Target>,
    ) -> PropertyExplanation {
        if self.dialect.parameters_set_properties() {
            self.used.insert(field.name.clone());
        }
        let written = |property: &&Property| property.name.value == field.name;
        let found = self.dialect.first_value(|source| match source {
            ValueSource::Partition => {
                let span = self.partition_value(&field.name, target)?;
                Some((ValueOrigin::Partition(span), None))
            }
            ValueSource::JobParameter => {
                let value = self.external.parameters.get(&field.name)?;
                Some((ValueOrigin::JobParameter, Some(value.clone())))
            }
            ValueSource::SystemProperty => {
                let value = self.external.system.get(&field.name)?;
                Some((ValueOrigin::SystemProperty, Some(value.clone())))
            }
            ValueSource::OutermostProperty | ValueSource::InnermostProperty => {
                let explained = self.property(artifact.properties.iter().find(written)?);
                Some((explained.origin, explained.value))
            }
            _ => None,
        });
        let default = field
            .default
            .map(|value| (ValueOrigin::FieldDefault, Some(value.to_owned())));
        let (origin, value) = found.or(default).unwrap_or((ValueOrigin::Unset, None));
        let value = value.map(|value| redact(&value));
        let mut enclosing = self.partitions.iter().rev();
        let algorithm = enclosing.find_map(|partition| partition.algorithm.as_ref());
        PropertyExplanation {
            name: field.name.clone(),
            value,
            origin,
            planned_by: algorithm.map(|algorithm| algorithm.name.value.clone()),
            field: Some(FieldExplanation {
                name: field.field.clone(),
                type_name: field.type_name,
                optional: field.optional,
            }),
        }
    }

    /// Returns the place where an enclosing partition sets a property.
    fn partition_value(&self, name: &str, target: Option<Target>) -> Option<Span> {
        let mut written = self
            .partitions
            .iter()
            .rev()
            .filter(|partition| partition.algorithm.is_none())
            .flat_map(|partition| &partition.properties);
        let concerns = |of: Option<Target>| of.is_none() || of == target;
        let found = written.find(|property| property.name.value == name && concerns(property.target));
        found.map(|property| property.value.span.clone())
    }

    fn context_properties(&mut self, properties: &[Property]) -> Vec<PropertyExplanation> {
        let places = properties.iter().map(|property| property.name.span.to_string());
        self.taken.extend(places);
        properties
            .iter()
            .map(|property| self.property(property))
            .collect()
    }

    fn unused_properties(&mut self) -> Vec<UnusedProperty> {
        let available = std::mem::take(&mut self.available).into_iter();
        let unused =
            available.filter(|(place, one)| !self.taken.contains(place) && !self.symbols.contains(&one.name));
        unused.map(|(_, one)| one).collect()
    }

    /// Explains a property of the Job XML. Its value already includes the override by a job parameter or system property of the same name,
    /// if the dialect permits one.
    fn property(&self, property: &Property) -> PropertyExplanation {
        let name = property.name.value.clone();
        let span = property.value.span.clone();
        let external = self.dialect.first_value(|source| match source {
            ValueSource::JobParameter => {
                let is_given = self.external.parameters.contains_key(&name);
                is_given.then_some(ValueOrigin::JobParameter)
            }
            ValueSource::SystemProperty => {
                let is_given = self.external.system.contains_key(&name);
                is_given.then_some(ValueOrigin::SystemProperty)
            }
            _ => None,
        });
        let origin = match external {
            _ if property.deferred => ValueOrigin::Partition(span),
            Some(external) => external,
            None => ValueOrigin::Xml(span),
        };
        PropertyExplanation {
            value: (!property.deferred).then(|| redact(&property.value.value)),
            name,
            origin,
            planned_by: None,
            field: None,
        }
    }
}

fn blank(kind: &'static str, id: &Spanned<String>, span: Span) -> ElementExplanation {
    ElementExplanation {
        kind,
        id: id.value.clone(),
        span,
        attributes: Vec::new(),
        properties: Vec::new(),
        guarantee: None,
        artifacts: Vec::new(),
        partition: None,
        transitions: Vec::new(),
        elements: Vec::new(),
    }
}

/// Returns the attributes by their names in the dialect.
fn chunk_attributes(chunk: &Chunk, dialect: Dialect) -> Vec<Attribute> {
    let policy = match chunk.checkpoint_policy.value {
        CheckpointPolicy::Item => "item",
        CheckpointPolicy::Time => "time",
        CheckpointPolicy::Custom => "custom",
    };
    let mut attributes: Vec<Attribute> = vec![("checkpoint-policy", policy.to_owned().into())];
    if chunk.checkpoint_policy.value != CheckpointPolicy::Custom {
        attributes.extend([
            ("commit-interval", chunk.commit_interval.get().into()),
            ("item-count", chunk.commit_interval.get().into()),
            ("time-limit", chunk.time_limit.map_or(0, NonZeroU32::get).into()),
        ]);
    }
    attributes.extend([
        ("chunk-size", chunk.chunk_size.get().into()),
        ("buffer-reads", chunk.buffer_reads.into()),
        ("checkpoint-timeout", chunk.checkpoint_timeout.into()),
    ]);
    attributes.retain(|(name, _)| dialect.has_attribute("chunk", name));
    let limits = [
        ("skip-limit", chunk.skip_limit),
        ("retry-limit", chunk.retry_limit),
    ];
    let given = limits
        .into_iter()
        .filter_map(|(name, limit)| Some((name, limit?.into())));
    attributes.extend(given);
    let classes = [
        ("skippable-exception-classes", &chunk.skippable),
        ("retryable-exception-classes", &chunk.retryable),
        ("no-rollback-exception-classes", &chunk.no_rollback),
    ];
    let given = classes.into_iter().filter(|(_, classes)| classes.span.is_some());
    attributes.extend(given.map(|(name, classes)| (name, classes.into())));
    attributes
}

impl From<bool> for AttributeValue {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<u32> for AttributeValue {
    fn from(value: u32) -> Self {
        Self::Number(value.into())
    }
}

impl From<String> for AttributeValue {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<&ExceptionClasses> for AttributeValue {
    fn from(classes: &ExceptionClasses) -> Self {
        let names = |list: &[Spanned<String>]| list.iter().map(|class| class.value.clone()).collect();
        Self::Classes {
            include: names(&classes.include),
            exclude: names(&classes.exclude),
        }
    }
}

fn transition(transition: &Transition) -> TransitionExplanation {
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
    TransitionExplanation {
        on: transition.on.value.to_string(),
        kind,
        attributes: attributes.into_iter().flatten().collect(),
        span: transition.span.clone(),
    }
}

fn target_name(target: Target) -> &'static str {
    match target {
        Target::Reader => "reader",
        Target::Processor => "processor",
        Target::Writer => "writer",
    }
}
