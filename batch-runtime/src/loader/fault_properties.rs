//! The runtime properties of a job or step for skips and retries.
// Spec: FAULT-01 to FAULT-03

use std::str::FromStr;
use std::time::Duration;

use batch_xml::model::{ArtifactRef, Chunk, ExceptionClasses, Property, Step};
use batch_xml::{Diagnostic, Span, Spanned};

use super::binder::{Binder, Scope};
use super::runtime_names::{
    BACKOFF_INITIAL, BACKOFF_JITTER, BACKOFF_MAX, BACKOFF_MULTIPLIER, FaultProperties, MAX_ATTEMPTS,
    RETRY_LIMITS, RUNTIME_PROPERTY, SKIP_LIMITS, SKIP_POLICY,
};
use crate::engine::{Bound, ClassLimits};
use crate::role::Role;

impl Binder<'_> {
    /// Reads the properties. `of` is the place of the job, if the values may come from outside.
    pub(super) fn fault_properties(&mut self, properties: &[Property], of: Option<&Span>) -> FaultProperties {
        let millis = |number: u64| Duration::from_millis(number);
        let is_millis = "expected a number of milliseconds";
        let is_factor = |factor: &f64| (1.0..=1_000.0).contains(factor);
        let is_part = |part: &f64| (0.0..=1.0).contains(part);
        FaultProperties {
            initial: self
                .parsed(BACKOFF_INITIAL, is_millis, properties, of, |_| true)
                .map(millis),
            multiplier: self.parsed(
                BACKOFF_MULTIPLIER,
                "expected a number from 1 to 1000",
                properties,
                of,
                is_factor,
            ),
            max: self
                .parsed(BACKOFF_MAX, is_millis, properties, of, |_| true)
                .map(millis),
            jitter: self.parsed(
                BACKOFF_JITTER,
                "expected a number from 0 to 1",
                properties,
                of,
                is_part,
            ),
            max_attempts: self.parsed(
                MAX_ATTEMPTS,
                "expected a number of attempts, at least 1",
                properties,
                of,
                |most| *most > 0,
            ),
            retry_limits: self.class_limits(RETRY_LIMITS, properties, of),
            skip_limits: self.class_limits(SKIP_LIMITS, properties, of),
            skip_policy: {
                let named = self.runtime_property(SKIP_POLICY, properties, of);
                named.map(|(name, span)| Spanned::new(name.trim().to_owned(), span.clone()))
            },
        }
    }

    /// Binds the skip policy of a step. The policy receives the step's properties. Classes of the step win over a policy of the job.
    pub(super) fn skip_policy(
        &mut self,
        step: &Step,
        chunk: &Chunk,
        name: Option<Spanned<String>>,
        scope: Scope,
    ) -> Option<Bound> {
        let name = name?;
        if let Some(class) = chunk
            .skippable
            .include
            .first()
            .or(chunk.skippable.exclude.first())
        {
            if property(&step.properties, SKIP_POLICY).is_some() {
                let message = format!("`{SKIP_POLICY}` decides in place of `skippable-exception-classes`");
                let expected = "has no effect beside the policy: remove one of them";
                self.reject_property(SKIP_POLICY, message, class.span.clone(), expected);
            }
            return None;
        }
        let policy = ArtifactRef {
            name,
            properties: step.properties.clone(),
            deferred: false,
        };
        self.artifact(Role::SkipPolicy, &policy, scope)
    }

    /// Warns of properties of a step for skips and retries that cannot happen.
    pub(super) fn check_limits(&mut self, step: &Step, chunk: &Chunk, has_policy: bool) {
        let mut idle = Vec::new();
        if chunk.skippable.include.is_empty() && !has_policy {
            idle.push((SKIP_LIMITS, "skippable-exception-classes"));
        }
        if chunk.retryable.include.is_empty() {
            idle.extend([RETRY_LIMITS, MAX_ATTEMPTS].map(|name| (name, "retryable-exception-classes")));
        }
        for (name, list) in idle {
            let Some(found) = property(&step.properties, name) else {
                continue;
            };
            let message = format!("`{name}` limits nothing");
            let warning = Diagnostic::warning(RUNTIME_PROPERTY, message, found.name.span.clone())
                .label("no exception class is included")
                .help(format!(
                    "add `<{list}><include class=\"..\"/></{list}>` to the chunk"
                ));
            self.warnings.push(warning);
        }
    }

    /// Parses a property; `expected` describes the values that `is_valid` accepts.
    fn parsed<T: FromStr>(
        &mut self,
        name: &str,
        expected: &str,
        properties: &[Property],
        of: Option<&Span>,
        is_valid: impl Fn(&T) -> bool,
    ) -> Option<T> {
        let (value, span) = self.runtime_property(name, properties, of)?;
        let parsed = value.trim().parse().ok().filter(is_valid);
        if parsed.is_none() {
            let (message, span) = (format!("invalid value {value:?} for `{name}`"), span.clone());
            self.reject_property(name, message, span, expected);
        }
        parsed
    }

    fn class_limits(
        &mut self,
        name: &str,
        properties: &[Property],
        of: Option<&Span>,
    ) -> Option<ClassLimits> {
        let (value, span) = self.runtime_property(name, properties, of)?;
        let span = span.clone();
        match value.parse::<ClassLimits>() {
            Ok(limits) => {
                let classes = limits
                    .classes()
                    .map(|class| Spanned::new(class.to_owned(), span.clone()));
                self.check_exception_classes(&ExceptionClasses {
                    include: classes.collect(),
                    ..ExceptionClasses::default()
                });
                Some(limits)
            }
            Err(problem) => {
                let expected = "expected exception classes with limits, separated by commas: `io::Error=5, BadRecord=100`";
                self.reject_property(name, problem, span, expected);
                None
            }
        }
    }
}

fn property<'p>(properties: &'p [Property], name: &str) -> Option<&'p Property> {
    properties.iter().find(|property| property.name.value == name)
}
