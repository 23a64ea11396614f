//! The chunk element.

use std::num::NonZeroU32;

use super::Lowering;
use crate::codes;
use crate::model::{CheckpointPolicy, Chunk, ExceptionClasses, Target};
use crate::span::Spanned;
use crate::tree::Element;
use crate::values;

/// Default of commit-interval, and of chunk-size if the interval does not count items.
const DEFAULT_ITEMS: NonZeroU32 = NonZeroU32::new(10).expect("ten is not zero");

impl<'a> Lowering<'a> {
    /// Spec: JSL-CHUNK-01, JSL-CHUNK-25
    pub(super) fn chunk(&mut self, element: &'a Element) -> Option<Chunk> {
        self.scope.enter(element);
        let chunk = self.chunk_in_scope(element);
        self.scope.leave();
        chunk
    }

    fn chunk_in_scope(&mut self, element: &'a Element) -> Option<Chunk> {
        let reader = self.artifact_named(element, "reader", Some(Target::Reader));
        let processor = self.artifact_named(element, "processor", Some(Target::Processor));
        let writer = self.artifact_named(element, "writer", Some(Target::Writer));
        let policy = self.checkpoint_policy(element);
        let commit_interval = self.positive(element, "commit-interval").unwrap_or(DEFAULT_ITEMS);
        let chunk_size = self.positive(element, "chunk-size");
        let buffer_reads = self.boolean(element, "buffer-reads", true);
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
        self.check_limit(
            element,
            ("skip-limit", "skippable-exception-classes"),
            skip_limit,
            &skippable,
        );
        self.check_limit(
            element,
            ("retry-limit", "retryable-exception-classes"),
            retry_limit,
            &retryable,
        );
        let checkpoint_policy = policy?;
        Some(Chunk {
            span: element.tag.clone(),
            reader: reader?,
            processor: processor?,
            writer: writer?,
            commit_interval,
            chunk_size: effective_chunk_size(chunk_size, buffer_reads, *checkpoint_policy, commit_interval),
            checkpoint_policy,
            buffer_reads,
            skip_limit,
            retry_limit,
            checkpoint_timeout,
            checkpoint_algorithm,
            skippable,
            retryable,
            no_rollback,
        })
    }

    /// Warns of a limit of what never happens. Without classes nothing is skipped or retried. Spec: D-09
    fn check_limit(
        &mut self,
        chunk: &Element,
        (name, list): (&str, &str),
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

    /// Spec: JSL-CHUNK-05, JSL-CHUNK-06, D-01
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
        let policy = match value.as_str() {
            "item" => CheckpointPolicy::Item,
            "time" => CheckpointPolicy::Time,
            "custom" => CheckpointPolicy::Custom,
            "record" => {
                self.warning(codes::RECORD_POLICY, &value.span, |d| {
                    d.message("the checkpoint policy `record` is an obsolete name of `item`")
                        .help("write `item`")
                });
                CheckpointPolicy::Item
            }
            _ => {
                values::bad_choice(name, &value, &["item", "time", "custom"], self.scope.sink);
                return None;
            }
        };
        Some(Spanned::new(policy, value.span))
    }

    /// Spec: JSL-CHUNK-10, JSL-CHUNK-11
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

    /// Spec: CHUNK-SKIP-01, CHUNK-SKIP-03, CHUNK-SKIP-04, CHUNK-RETRY-03, CHUNK-NORB-04, CHUNK-NORB-05
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

/// Spec: JSL-CHUNK-18, JSL-CHUNK-19, JSL-CHUNK-20, JSL-CHUNK-21, D-04
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
