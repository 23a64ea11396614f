//! Partitioned steps and flows. Artifacts on the parent thread are bound with the job, artifacts of a partition when it
//! starts, because its properties are known only then. The XML of partitions is checked before.
// Spec: PART-12 to PART-18, PART-31, FPART-03 to FPART-07, SUBST-09, D-34, D-39

use std::collections::BTreeSet;
use std::sync::Arc;

use batch_xml::model::{ArtifactRef, ExecutionElement, Flow, Partition, Step, StepBody};
use batch_xml::{Diagnostic, JobXmlErrors, Spanned};

use super::binder::{Binder, SHARED_OUTPUT, Scope, Wanted, all, listener_place, without_place};
use super::runtime_names::{Defaults, PartitionSettings};
use super::source::Source;
use crate::engine::{
    BindPartition, Bound, BoundBody, BoundFlow, BoundPartition, BoundStep, BoundSubjobs, Element,
    ElementBody, Elements, InnerSteps, Inputs, Outputs, PartitionBody, PartitionKey,
};
use crate::role::Role;
use crate::transition::Transitions;

/// Maximum number of partitions of a job that are checked before it starts.
const CHECKED_PARTITIONS: u32 = 1_000;

/// Binds the partitions of an element.
struct OfElement {
    source: Arc<Source>,
    scope: Scope,
    defaults: Defaults,
}

impl BindPartition for OfElement {
    fn bind(&self, path: &[PartitionKey]) -> Result<PartitionBody, String> {
        let mut binder = Binder::new(&self.source);
        binder.path = path.to_vec();
        binder.defaults = self.defaults.clone();
        match binder.body(self.scope, None) {
            Some(body) if binder.diagnostics.is_empty() => Ok(body),
            _ => Err(JobXmlErrors::from(binder.diagnostics).to_string()),
        }
    }
}

impl Binder<'_> {
    // Spec: PART-20, PART-31
    pub(super) fn partitioned_step(
        &mut self,
        step: &Step,
        partition: &Partition,
        scope: Scope,
    ) -> Option<BoundStep> {
        let (listeners, complete) =
            self.listeners(listener_place(step), Wanted::Step, &step.listeners, scope);
        let of_plan = partition
            .threads
            .and_then(|threads| usize::try_from(threads.get()).ok());
        let settings = self.partition_settings(&step.properties);
        let settings = PartitionSettings {
            threads: settings.threads.or(of_plan),
            is_chunk: matches!(step.body, StepBody::Chunk(_)),
            ..settings
        };
        let bound = self.partition(&step.id, partition, settings, scope, |binder| {
            binder.whole_step(step, Wanted::Partitions, scope);
        });
        let body = BoundBody::Partitioned(Box::new(bound?));
        Some(self.bind_step(step, complete.then(|| without_place(listeners))?, body))
    }

    pub(super) fn partitioned_flow(
        &mut self,
        flow: &Flow,
        partition: &Partition,
        scope: Scope,
    ) -> Option<BoundFlow> {
        let settings = PartitionSettings {
            inner: match flow.elements.iter().any(has_logical_tx) {
                true => InnerSteps::Close,
                false => InnerSteps::Reopen,
            },
            ..self.partition_settings(&[])
        };
        let bound = self.partition(&flow.id, partition, settings, scope, |binder| {
            binder.elements(&flow.elements, scope);
        });
        Some(BoundFlow {
            elements: Elements::default(),
            partition: Some(bound?),
        })
    }

    /// Binds a partition; `look` checks the partitioned content from outside.
    fn partition(
        &mut self,
        id: &Spanned<String>,
        partition: &Partition,
        settings: PartitionSettings,
        scope: Scope,
        look: impl FnOnce(&mut Self),
    ) -> Option<BoundPartition> {
        let algorithm = partition
            .algorithm
            .as_ref()
            .map(|algorithm| self.artifact(Role::PartitionAlgorithm, algorithm, scope));
        let subjobs = self.subjobs(partition.logical_tx.as_ref(), partition.analyzer.as_ref(), scope);
        let analyzer = subjobs.as_ref().and_then(|subjobs| subjobs.analyzer.as_ref());
        if self.checks_partitions {
            if partition.algorithm.is_some() || self.is_incomplete {
                let was_outside = std::mem::replace(&mut self.is_incomplete, true);
                look(self);
                self.collector(partition.collector.as_ref(), analyzer, inside(scope));
                self.is_incomplete = was_outside;
            } else {
                self.check_partitions(id, partition, analyzer, scope);
            }
        }
        Some(BoundPartition {
            instances: partition.instances.get(),
            algorithm: all(algorithm)?,
            required: partition.required.clone(),
            subjobs: subjobs?,
            threads: settings.threads,
            replan: settings.replan,
            dispatcher: settings.dispatcher,
            queue: settings.queue,
            is_chunk: settings.is_chunk,
            inner: settings.inner,
            binder: Arc::new(OfElement {
                source: Arc::clone(self.source),
                scope,
                defaults: self.defaults.clone(),
            }),
        })
    }

    /// Checks the partitions in the XML one by one: each has its own values.
    fn check_partitions(
        &mut self,
        id: &Spanned<String>,
        partition: &Partition,
        analyzer: Option<&Bound>,
        scope: Scope,
    ) {
        let (mut outputs, mut inputs) = (Outputs::default(), Inputs::default());
        for number in 1..=partition.instances.get() {
            if self.checked_partitions == CHECKED_PARTITIONS {
                return;
            }
            self.checked_partitions += 1;
            self.path.push(PartitionKey {
                element: id.value.clone(),
                number,
                properties: None,
            });
            let (errors, warnings) = (self.diagnostics.len(), self.warnings.len());
            let body = self.body(scope, analyzer);
            self.path.pop();
            let shared = body.map(|body| {
                let body = &body.element.body;
                outputs.add(&format!("partition {number}"), body)?;
                inputs.add(number, body)
            });
            if let Some(Err(problem)) = shared {
                let warning = Diagnostic::warning(SHARED_OUTPUT, problem, id.span.clone());
                self.warnings
                    .push(warning.label("fails before its partitions start"));
                return;
            }
            // A mistake in one partition is usually in all of them.
            forget_repeated(&mut self.diagnostics, errors);
            forget_repeated(&mut self.warnings, warnings);
        }
    }

    /// Binds the body of the partition at the path, whose collector sends to `analyzer`.
    // Spec: PART-06, PART-16
    fn body(&mut self, scope: Scope, analyzer: Option<&Bound>) -> Option<PartitionBody> {
        let element = match self.source.resolve(&self.path) {
            Ok(element) => element?,
            Err(errors) => {
                self.diagnostics.extend(errors.into_inner());
                return None;
            }
        };
        let body = match &element {
            ExecutionElement::Step(step) => self.whole_step(step, Wanted::Partitions, scope).map(|step| {
                ElementBody::Step(Box::new(BoundStep {
                    limits: step.limits.of_partition(),
                    ..step
                }))
            }),
            ExecutionElement::Flow(flow) => self.elements(&flow.elements, scope).map(|elements| {
                let partition = None;
                ElementBody::Flow(Box::new(BoundFlow { elements, partition }))
            }),
            ExecutionElement::Split(_) | ExecutionElement::Decision(_) => None,
        };
        let collector = element
            .partition()
            .and_then(|partition| partition.collector.as_ref());
        let collector = self.collector(collector, analyzer, inside(scope));
        Some(PartitionBody {
            element: Element {
                id: element.id().value.clone(),
                transitions: Transitions::default(),
                body: body?,
            },
            collector: collector?,
        })
    }

    /// Binds the collector, whose payload must match the analyzer; the inner `None`: there is none.
    // Spec: PALG-11, SUBJOB-05
    pub(super) fn collector(
        &mut self,
        collector: Option<&ArtifactRef>,
        analyzer: Option<&Bound>,
        scope: Scope,
    ) -> Option<Option<Bound>> {
        let Some(artifact) = collector else {
            return Some(None);
        };
        let bound = self.artifact(Role::SubJobCollector, artifact, scope)?;
        if let Some(analyzer) = analyzer {
            self.check_payload(&bound, analyzer, &artifact.name.span);
        }
        Some(Some(bound))
    }

    /// Binds the artifacts that accompany subjobs on the parent thread.
    // Spec: LTX-20, SUBJOB-08
    pub(super) fn subjobs(
        &mut self,
        logical_tx: Option<&ArtifactRef>,
        analyzer: Option<&ArtifactRef>,
        scope: Scope,
    ) -> Option<BoundSubjobs> {
        let logical_tx = logical_tx.map(|artifact| self.artifact(Role::LogicalTX, artifact, scope));
        let analyzer = analyzer.map(|artifact| self.artifact(Role::SubJobAnalyzer, artifact, scope));
        Some(BoundSubjobs {
            logical_tx: all(logical_tx)?,
            collector: None,
            analyzer: all(analyzer)?,
        })
    }
}

/// Returns the names of the step executions of elements without the numbers of partitions, such as `flow:/load`.
// Spec: LOSS-02
pub(super) fn step_names(elements: &[ExecutionElement]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut open = vec![(String::new(), elements)];
    while let Some((prefix, elements)) = open.pop() {
        for element in elements {
            let name = format!("{prefix}{}", element.id().value);
            match element {
                // Both names, because the start of the step checks whether it had partitions before.
                ExecutionElement::Step(_) => names.extend([format!("{name}:"), name]),
                ExecutionElement::Flow(flow) if flow.partition.is_some() => {
                    names.insert(format!("{name}:"));
                    open.push((format!("{name}:/"), &flow.elements));
                }
                ExecutionElement::Flow(flow) => open.push((prefix.clone(), &flow.elements)),
                ExecutionElement::Split(split) => open.push((prefix.clone(), &split.elements)),
                ExecutionElement::Decision(_) => {}
            }
        }
    }
    names
}

/// Returns whether an element of a flow, which contains steps and decisions, has a logical transaction.
fn has_logical_tx(element: &ExecutionElement) -> bool {
    element
        .partition()
        .is_some_and(|partition| partition.logical_tx.is_some())
}

/// Returns the scope of a collector, which is called within a step.
// Spec: SUBJOB-03, SUBJOB-18
fn inside(scope: Scope) -> Scope {
    Scope { step: true, ..scope }
}

/// Removes diagnostics from index `from` on that repeat earlier ones.
fn forget_repeated(diagnostics: &mut Vec<Diagnostic>, from: usize) {
    for new in diagnostics.split_off(from) {
        let same =
            |old: &Diagnostic| old.code == new.code && old.message == new.message && old.span.is(&new.span);
        if !diagnostics.iter().any(same) {
            diagnostics.push(new);
        }
    }
}
