//! Partitioned steps and flows: what runs on the thread of the parent is bound with the job, what runs in a partition
//! when the partition begins, as its properties are known then. What the XML tells of partitions is looked at before.
//!
//! Spec: PART-12 to PART-18, PART-31, FPART-03 to FPART-07, SUBST-09, D-34, D-39

use std::sync::Arc;

use batch_xml::model::{ArtifactRef, ExecutionElement, Flow, Job, Partition, Step};
use batch_xml::{Diagnostic, Dialect, Effective, JobXmlErrors, Limits, PartitionView, Resolved, Values};

use super::artifacts::Artifacts;
use super::bind::{Around, Binder, Wanted, all, listener_place, without_place};
use super::{BindOutcome, Outside};
use crate::engine::{
    BindPartition, Bound, BoundBody, BoundFlow, BoundPartition, BoundStep, BoundSubjobs, Element,
    ElementBody, Elements, PartitionBody, PartitionKey,
};
use crate::role::Role;
use crate::transition::Transitions;

/// So many partitions of a job are looked at before it starts.
const CHECKED_PARTITIONS: u32 = 1_000;

/// What the elements of a job are bound from.
pub(super) struct Source {
    pub(super) dialect: Dialect,
    pub(super) artifacts: Arc<Artifacts>,
    pub(super) outside: Outside,
    /// None when the job could not be made of it.
    text: Option<(Effective, Limits)>,
}

impl Artifacts {
    /// Binds the job of `resolved`.
    ///
    /// # Errors
    /// Everything that is wrong, at once, and then what is worth a warning.
    pub(crate) fn bind(
        self: &Arc<Self>,
        Resolved { job, effective, .. }: &Resolved,
        outside: Outside,
        limits: &Limits,
    ) -> Result<BindOutcome, JobXmlErrors> {
        let source = Source {
            dialect: job.dialect,
            artifacts: Arc::clone(self),
            outside,
            text: Some((effective.clone(), limits.clone())),
        };
        Arc::new(source).bind(job)
    }

    /// What is wrong with the wiring of a job of which only a part could be made.
    pub(crate) fn check_part(self: &Arc<Self>, job: &Job, outside: Outside) -> Vec<Diagnostic> {
        let source = Source {
            dialect: job.dialect,
            artifacts: Arc::clone(self),
            outside,
            text: None,
        };
        Arc::new(source).check_part(job)
    }
}

impl Source {
    /// What a partitioned step or flow is in the partition that `path` leads to. The inner `None`: there is no text.
    fn resolve(&self, path: &[PartitionKey]) -> Result<Option<ExecutionElement>, JobXmlErrors> {
        let Some((effective, limits)) = &self.text else {
            return Ok(None);
        };
        let views: Vec<PartitionView<'_>> = path
            .iter()
            .map(|key| PartitionView {
                element: &key.element,
                number: key.number,
                plan: key.properties.as_deref(),
            })
            .collect();
        let values = Values {
            parameters: &self.outside.parameters,
            system: &self.outside.system,
        };
        effective.resolve_partition(&views, &values, limits).map(Some)
    }
}

/// Binds the partitions of an element.
struct OfElement {
    source: Arc<Source>,
    around: Around,
    job_threads: Option<usize>,
}

impl BindPartition for OfElement {
    fn bind(&self, path: &[PartitionKey]) -> Result<PartitionBody, String> {
        let mut binder = Binder::new(&self.source);
        binder.path = path.to_vec();
        binder.job_threads = self.job_threads;
        match binder.body(self.around, None) {
            Some(body) if binder.diagnostics.is_empty() => Ok(body),
            _ => Err(JobXmlErrors::from(binder.diagnostics).to_string()),
        }
    }
}

impl Binder<'_> {
    /// Spec: PART-20, PART-31
    pub(super) fn partitioned_step(
        &mut self,
        step: &Step,
        partition: &Partition,
        around: Around,
    ) -> Option<BoundStep> {
        let (listeners, complete) =
            self.listeners(listener_place(step), Wanted::OfTheStep, &step.listeners, around);
        let threads = self.threads(&step.properties);
        let bound = self.partition(&step.id.value, partition, threads, around, |binder| {
            binder.whole_step(step, Wanted::OfPartitions, around);
        });
        let body = BoundBody::Partitioned(Box::new(bound?));
        Some(self.around_body(step, complete.then(|| without_place(listeners))?, body))
    }

    pub(super) fn partitioned_flow(
        &mut self,
        flow: &Flow,
        partition: &Partition,
        around: Around,
    ) -> Option<BoundFlow> {
        let threads = self.threads(&[]);
        let bound = self.partition(&flow.id.value, partition, threads, around, |binder| {
            binder.elements(&flow.elements, around);
        });
        Some(BoundFlow {
            elements: Elements::default(),
            partition: Some(bound?),
        })
    }

    /// `look` looks at what is partitioned from outside of its partitions.
    fn partition(
        &mut self,
        id: &str,
        partition: &Partition,
        threads: Option<usize>,
        around: Around,
        look: impl FnOnce(&mut Self),
    ) -> Option<BoundPartition> {
        let algorithm = partition
            .algorithm
            .as_ref()
            .map(|algorithm| self.artifact(Role::PartitionAlgorithm, algorithm, around));
        let subjobs = self.subjobs(partition.logical_tx.as_ref(), partition.analyzer.as_ref(), around);
        let analyzer = subjobs.as_ref().and_then(|subjobs| subjobs.analyzer.as_ref());
        if self.checks_partitions {
            if partition.algorithm.is_some() || self.is_incomplete {
                let was_outside = std::mem::replace(&mut self.is_incomplete, true);
                look(self);
                self.collector(partition.collector.as_ref(), analyzer, inside(around));
                self.is_incomplete = was_outside;
            } else {
                self.check_partitions(id, partition, analyzer, around);
            }
        }
        Some(BoundPartition {
            instances: partition.instances.get(),
            algorithm: all(algorithm)?,
            subjobs: subjobs?,
            threads,
            binder: Arc::new(OfElement {
                source: Arc::clone(self.source),
                around,
                job_threads: self.job_threads,
            }),
        })
    }

    /// Looks at the partitions that the XML tells, one by one: each has values of its own.
    fn check_partitions(
        &mut self,
        id: &str,
        partition: &Partition,
        analyzer: Option<&Bound>,
        around: Around,
    ) {
        for number in 1..=partition.instances.get() {
            if self.checked_partitions == CHECKED_PARTITIONS {
                return;
            }
            self.checked_partitions += 1;
            self.path.push(PartitionKey {
                element: id.to_owned(),
                number,
                properties: None,
            });
            let (errors, warnings) = (self.diagnostics.len(), self.warnings.len());
            self.body(around, analyzer);
            self.path.pop();
            // What is wrong in one is most often wrong in all.
            forget_repeated(&mut self.diagnostics, errors);
            forget_repeated(&mut self.warnings, warnings);
        }
    }

    /// What runs in the partition that the path leads to, whose collector sends to `analyzer`. Spec: PART-06, PART-16
    fn body(&mut self, around: Around, analyzer: Option<&Bound>) -> Option<PartitionBody> {
        let element = match self.source.resolve(&self.path) {
            Ok(element) => element?,
            Err(errors) => {
                self.diagnostics.extend(errors.into_inner());
                return None;
            }
        };
        let body = match &element {
            ExecutionElement::Step(step) => self
                .whole_step(step, Wanted::OfPartitions, around)
                // The time of the step is that of its partitions.
                .map(|step| {
                    ElementBody::Step(Box::new(BoundStep {
                        timeout: None,
                        ..step
                    }))
                }),
            ExecutionElement::Flow(flow) => self.elements(&flow.elements, around).map(|elements| {
                let partition = None;
                ElementBody::Flow(Box::new(BoundFlow { elements, partition }))
            }),
            ExecutionElement::Split(_) | ExecutionElement::Decision(_) => None,
        };
        let collector = element
            .partition()
            .and_then(|partition| partition.collector.as_ref());
        let collector = self.collector(collector, analyzer, inside(around));
        Some(PartitionBody {
            element: Element {
                id: element.id().value.clone(),
                transitions: Transitions::default(),
                body: body?,
            },
            collector: collector?,
        })
    }

    /// The inner `None`: there is none. What it sends is what the analyzer takes. Spec: PALG-11, SUBJOB-05
    pub(super) fn collector(
        &mut self,
        collector: Option<&ArtifactRef>,
        analyzer: Option<&Bound>,
        around: Around,
    ) -> Option<Option<Bound>> {
        let Some(artifact) = collector else {
            return Some(None);
        };
        let bound = self.artifact(Role::SubJobCollector, artifact, around)?;
        if let Some(analyzer) = analyzer {
            self.check_payload(&bound, analyzer, &artifact.name.span);
        }
        Some(Some(bound))
    }

    /// What accompanies subjobs on the thread that waits for them. Spec: LTX-20, SUBJOB-08
    pub(super) fn subjobs(
        &mut self,
        logical_tx: Option<&ArtifactRef>,
        analyzer: Option<&ArtifactRef>,
        around: Around,
    ) -> Option<BoundSubjobs> {
        let logical_tx = logical_tx.map(|artifact| self.artifact(Role::LogicalTX, artifact, around));
        let analyzer = analyzer.map(|artifact| self.artifact(Role::SubJobAnalyzer, artifact, around));
        Some(BoundSubjobs {
            logical_tx: all(logical_tx)?,
            collector: None,
            analyzer: all(analyzer)?,
        })
    }
}

/// What is around a collector: it is told within a step. Spec: SUBJOB-03, SUBJOB-18
fn inside(around: Around) -> Around {
    Around { step: true, ..around }
}

/// Takes those from `from` on away that were there before.
fn forget_repeated(diagnostics: &mut Vec<Diagnostic>, from: usize) {
    for new in diagnostics.split_off(from) {
        let same =
            |old: &Diagnostic| old.code == new.code && old.message == new.message && old.span.is(&new.span);
        if !diagnostics.iter().any(same) {
            diagnostics.push(new);
        }
    }
}
