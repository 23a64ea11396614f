//! The chunk element.

use std::num::NonZeroU32;

use super::Lowering;
use crate::codes;
use crate::model::{ArtifactRef, CheckpointPolicy, Chunk, ExceptionClasses, Target};
use crate::schema;
use crate::span::Spanned;
use crate::substitute::Level;
use crate::tree::Element;
use crate::values;

/// Default of commit-interval, and of chunk-size if the interval does not count items.
const DEFAULT_ITEMS: NonZeroU32 = NonZeroU32::new(10).expect("ten is not zero");

/// The runtime property that names a skip policy.
pub(super) const SKIP_POLICY: &str = "batch.skip.policy";

/// The artifacts of a chunk.
struct Parts {
    reader: ArtifactRef,
    processor: Option<ArtifactRef>,
    writer: ArtifactRef,
}

/// The sizes of a chunk.
struct Interval {
    items: NonZeroU32,
    time_limit: Option<NonZeroU32>,
    chunk_size: NonZeroU32,
    buffer_reads: bool,
}

impl<'a> Lowering<'a> {
    // Spec: JSL-CHUNK-01, JSL-CHUNK-25
    pub(super) fn chunk(&mut self, element: &'a Element, has_skip_policy: bool) -> Option<Chunk> {
        self.scope.enter(element);
        let chunk = self.chunk_in_scope(element, has_skip_policy);
        self.scope.leave();
        chunk
    }

    fn chunk_in_scope(&mut self, element: &'a Element, has_skip_policy: bool) -> Option<Chunk> {
        let parts = self.parts(element);
        let policy = self.checkpoint_policy(element);
        let interval = self.interval(element, policy.as_ref());
        let skip_limit = self.integer(element, "skip-limit", 0);
        let retry_limit = self.integer(element, "retry-limit", 0);
        let checkpoint_timeout = self.integer(element, "checkpoint-timeout", 0).unwrap_or(0);
        let algorithm = element.child("checkpoint-algorithm");
        if let Some(policy) = &policy {
            self.check_algorithm(policy, algorithm);
        }
        let checkpoint_algorithm = algorithm.and_then(|algorithm| self.artifact(algorithm));
        let skippable = self.exception_classes(element, "skippable-exception-classes");
        let retryable = self.exception_classes(element, "retryable-exception-classes");
        let no_rollback = self.exception_classes(element, "no-rollback-exception-classes");
        // Classes of the step, excluded ones too, win against a policy of the job.
        let has_skip_policy = has_skip_policy || skippable.exclude.is_empty() && self.job_has_skip_policy();
        self.check_limit(
            element,
            "skip-limit",
            "skippable-exception-classes",
            skip_limit.filter(|_| !has_skip_policy),
            &skippable,
        );
        self.check_limit(
            element,
            "retry-limit",
            "retryable-exception-classes",
            retry_limit,
            &retryable,
        );
        let (parts, checkpoint_policy) = (parts?, policy?);
        Some(Chunk {
            span: element.tag.clone(),
            reader: parts.reader,
            processor: parts.processor,
            writer: parts.writer,
            commit_interval: interval.items,
            time_limit: interval.time_limit,
            chunk_size: interval.chunk_size,
            checkpoint_policy,
            buffer_reads: interval.buffer_reads,
            skip_limit,
            retry_limit,
            checkpoint_timeout,
            checkpoint_algorithm,
            skippable,
            retryable,
            no_rollback,
        })
    }

    /// Returns whether the job has a skip policy, from its properties or from outside the document.
    // Spec: FAULT-04
    fn job_has_skip_policy(&self) -> bool {
        let scope = &self.scope;
        let in_job = |job: &Level<'_>| job.matching(SKIP_POLICY, None).next().is_some();
        scope.levels.first().is_some_and(in_job) || scope.is_given(SKIP_POLICY)
    }

    /// Returns the artifacts of the chunk; `None`, after a report, if one is missing.
    // Spec: JSL-CHUNK-02, JSL-CHUNK-03, JSL-CHUNK-04
    fn parts(&mut self, element: &'a Element) -> Option<Parts> {
        if !self.scope.dialect.rules().parts_are_elements {
            let reader = self.artifact_named(element, "reader", Some(Target::Reader));
            let has_processor = element.attribute("processor").is_some();
            let processor =
                has_processor.then(|| self.artifact_named(element, "processor", Some(Target::Processor)));
            let writer = self.artifact_named(element, "writer", Some(Target::Writer));
            return Some(Parts {
                reader: reader?,
                processor: match processor {
                    Some(processor) => Some(processor?),
                    None => None,
                },
                writer: writer?,
            });
        }
        let reader = self.part(element, "reader");
        let processor = element.child("processor");
        let has_processor = processor.is_some();
        let processor = processor.and_then(|processor| self.artifact(processor));
        let writer = self.part(element, "writer");
        Some(Parts {
            reader: reader?,
            processor: match processor {
                None if has_processor => return None,
                processor => processor,
            },
            writer: writer?,
        })
    }

    /// Returns a required artifact that is an element.
    fn part(&mut self, chunk: &'a Element, name: &str) -> Option<ArtifactRef> {
        if let Some(part) = chunk.children.iter().find(|child| child.name.value == name) {
            return self.artifact(part);
        }
        if !schema::has_unknown_child(self.scope.dialect, chunk) {
            self.error(codes::MISSING_PART, &chunk.name.span, |d| {
                d.message(format!("a chunk requires a `{name}` element"))
                    .label(format!("has no {name}"))
            });
        }
        None
    }

    fn interval(&mut self, element: &Element, policy: Option<&Spanned<CheckpointPolicy>>) -> Interval {
        if self.scope.dialect.rules().parts_are_elements {
            let items = self.positive(element, "item-count").unwrap_or(DEFAULT_ITEMS);
            let time_limit = self.integer(element, "time-limit", 0).and_then(NonZeroU32::new);
            let is_item = policy.is_none_or(|policy| policy.value == CheckpointPolicy::Item);
            return Interval {
                items,
                time_limit: time_limit.filter(|_| is_item),
                // There is one write for each checkpoint.
                chunk_size: match is_item && time_limit.is_none() {
                    true => items,
                    false => NonZeroU32::MAX,
                },
                buffer_reads: true,
            };
        }
        let items = self.positive(element, "commit-interval").unwrap_or(DEFAULT_ITEMS);
        let chunk_size = self.positive(element, "chunk-size");
        let buffer_reads = self.boolean(element, "buffer-reads", true);
        let policy = policy.map_or(CheckpointPolicy::Item, |policy| policy.value);
        Interval {
            items,
            time_limit: None,
            chunk_size: effective_chunk_size(chunk_size, buffer_reads, policy, items),
            buffer_reads,
        }
    }

    /// Warns of a limit of what never happens. Without classes nothing is skipped or retried.
    // Spec: D-09
    fn check_limit(
        &mut self,
        chunk: &Element,
        name: &str,
        list: &str,
        limit: Option<u32>,
        classes: &ExceptionClasses,
    ) {
        let attribute = chunk.attribute(name);
        let (Some(attribute), Some(1..), []) = (attribute, limit, classes.include.as_slice()) else {
            return;
        };
        self.warning(codes::LIMIT_WITHOUT_CLASSES, &attribute.name.span, |d| {
            d.message(format!("`{name}` limits nothing"))
                .label("no exception class is included")
                .help(format!(
                    "add `<{list}><include class=\"..\"/></{list}>` to the chunk"
                ))
        });
    }

    fn positive(&mut self, element: &Element, name: &str) -> Option<NonZeroU32> {
        self.integer(element, name, 1).and_then(NonZeroU32::new)
    }

    // Spec: JSL-CHUNK-05, JSL-CHUNK-06, D-01
    fn checkpoint_policy(&mut self, element: &Element) -> Option<Spanned<CheckpointPolicy>> {
        let name = "checkpoint-policy";
        if element.attribute(name).is_none() {
            return Some(Spanned::new(CheckpointPolicy::Item, element.name.span.clone()));
        }
        let value = self.value(element, name)?;
        if value.deferred {
            // A deferred policy must match the presence of an algorithm.
            let policy = match element.child("checkpoint-algorithm") {
                Some(_) => CheckpointPolicy::Custom,
                None => CheckpointPolicy::Item,
            };
            return Some(Spanned::new(policy, value.text.span));
        }
        let value = value.text;
        let choices = self.scope.dialect.rules().checkpoint_policies;
        let policy = match value.as_str() {
            "item" => CheckpointPolicy::Item,
            "time" if choices.contains(&"time") => CheckpointPolicy::Time,
            "custom" => CheckpointPolicy::Custom,
            "record" if choices.contains(&"time") => {
                self.warning(codes::RECORD_POLICY, &value.span, |d| {
                    d.message("the checkpoint policy `record` is an obsolete name of `item`")
                        .help("write `item`")
                });
                CheckpointPolicy::Item
            }
            _ => {
                values::bad_choice(name, &value, choices, self.scope.sink);
                return None;
            }
        };
        Some(Spanned::new(policy, value.span))
    }

    // Spec: JSL-CHUNK-10, JSL-CHUNK-11
    fn check_algorithm(&mut self, policy: &Spanned<CheckpointPolicy>, algorithm: Option<&Element>) {
        match (policy.value, algorithm) {
            (CheckpointPolicy::Custom, None) => {
                self.error(codes::CHECKPOINT_ALGORITHM, &policy.span, |d| {
                    d.message("the checkpoint policy `custom` requires a `checkpoint-algorithm` element")
                        .label("the chunk has none")
                });
            }
            (CheckpointPolicy::Item | CheckpointPolicy::Time, Some(algorithm)) => {
                self.error(codes::CHECKPOINT_ALGORITHM, &algorithm.name.span, |d| {
                    d.message("a `checkpoint-algorithm` requires the checkpoint policy `custom`")
                        .label("the chunk has another policy")
                        .help("add `checkpoint-policy=\"custom\"` to the chunk")
                });
            }
            (CheckpointPolicy::Custom, Some(_)) | (CheckpointPolicy::Item | CheckpointPolicy::Time, None) => {
            }
        }
    }

    // Spec: CHUNK-SKIP-01, CHUNK-SKIP-03, CHUNK-SKIP-04, CHUNK-RETRY-03, CHUNK-NORB-04, CHUNK-NORB-05
    fn exception_classes(&mut self, chunk: &Element, name: &str) -> ExceptionClasses {
        let Some(element) = chunk.child(name) else {
            return ExceptionClasses::default();
        };
        self.boolean(element, "merge", true);
        ExceptionClasses {
            include: self.classes(element, "include"),
            exclude: self.classes(element, "exclude"),
            span: Some(element.tag.clone()),
        }
    }

    fn classes(&mut self, element: &Element, name: &str) -> Vec<Spanned<String>> {
        element
            .children(name)
            .filter_map(|entry| self.required(entry, "class"))
            .collect()
    }
}

// Spec: JSL-CHUNK-18, JSL-CHUNK-19, JSL-CHUNK-20, JSL-CHUNK-21, D-04
fn effective_chunk_size(
    given: Option<NonZeroU32>,
    buffer_reads: bool,
    policy: CheckpointPolicy,
    commit_interval: NonZeroU32,
) -> NonZeroU32 {
    match (given, policy) {
        _ if !buffer_reads => NonZeroU32::MIN,
        (Some(given), _) => given,
        (None, CheckpointPolicy::Item) => commit_interval,
        (None, CheckpointPolicy::Time | CheckpointPolicy::Custom) => DEFAULT_ITEMS,
    }
}
