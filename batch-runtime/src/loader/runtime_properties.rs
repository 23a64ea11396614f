//! The properties of a job or step that belong to the runtime: extensions of the draft.

use std::time::Duration;

use batch_xml::model::{CheckpointPolicy, Chunk, Job, Property, Step};
use batch_xml::{Diagnostic, Span};

use super::binder::{Binder, ListenerAt};
use super::runtime_names::*;
use crate::clock::{Clock as _, SystemClock};
use crate::deadline::Deadline;
use crate::engine::{BoundChunk, Concurrency, InnerSteps, Replan, StepLimits};
use crate::exit_codes::{EXIT_CODES, ExitCodes};
use crate::role::Role;

impl Binder<'_> {
    /// Reads the runtime properties of a job. Returns its timeout, and the number of executions that may run at the same time.
    pub(super) fn properties_of_job(&mut self, job: &Job) -> (Option<Duration>, Concurrency) {
        let place = Some(&job.id.span);
        self.defaults = Defaults {
            timeout: self.number(STEP_TIMEOUT, "seconds", &job.properties, place),
            heartbeat: self.number(STEP_HEARTBEAT, "seconds", &job.properties, place),
            promoted: self.promoted_by(&job.properties, place).unwrap_or_default(),
            checkpoint_limit: self.number(CHECKPOINT_LIMIT, "bytes", &job.properties, place),
            split_threads: self.number(SPLIT_THREADS, "threads", &job.properties, place),
            threads: self.number(PARTITION_THREADS, "threads", &job.properties, place),
            replan: self.replan_of(&job.properties, place),
            dispatcher: self.name(DISPATCH, &job.properties, place),
            queue: self.name(DISPATCH_QUEUE, &job.properties, place),
            retry_input: self.flag(RETRY_INPUT, &job.properties, place),
            faults: self.fault_properties(&job.properties, place),
            processors: self.number(PROCESSORS, "threads", &job.properties, place),
            pipeline: self.flag(PIPELINE, &job.properties, place),
        };
        self.exit_codes(job);
        let timeout = self.number(JOB_TIMEOUT, "seconds", &job.properties, place);
        (timeout.map(seconds), self.concurrency(job).unwrap_or_default())
    }

    /// Reads when an instance of a job is to be complete.
    // Spec: NOTIFY-07
    pub(super) fn deadline(&mut self, job: &Job) -> Option<Deadline> {
        let place = Some(&job.id.span);
        let (value, span) = self.runtime_property(JOB_DEADLINE, &job.properties, place)?;
        let span = span.clone();
        match value.parse() {
            Ok(Deadline::At(time)) if time <= SystemClock.now() => {
                let message = format!("the deadline {value:?} of the job is in the past");
                let warning = Diagnostic::warning(RUNTIME_PROPERTY, message, span)
                    .label("the job is overdue when it starts")
                    .help("give the time by a job parameter, or a time of day such as `06:00`");
                self.warnings.push(warning);
                Some(Deadline::At(time))
            }
            Ok(deadline) => Some(deadline),
            Err(expected) => {
                let message = format!("invalid value {value:?} for `{JOB_DEADLINE}`");
                self.reject_property(JOB_DEADLINE, message, span, &expected);
                None
            }
        }
    }

    // Spec: TURN-01
    fn concurrency(&mut self, job: &Job) -> Option<Concurrency> {
        let place = Some(&job.id.span);
        let (value, span) = self.runtime_property(JOB_CONCURRENCY, &job.properties, place)?;
        match value.trim() {
            "any" => return Some(Concurrency::Any),
            "one" => return Some(Concurrency::One),
            "queue" => return Some(Concurrency::Queue),
            _ => {}
        }
        let message = format!("invalid value {value:?} for `{JOB_CONCURRENCY}`");
        let span = span.clone();
        self.reject_property(JOB_CONCURRENCY, message, span, "expected `any`, `one` or `queue`");
        None
    }

    /// Reads the runtime properties of a step.
    pub(super) fn properties_of_step(&mut self, step: &Step) -> StepLimits {
        let of_job = |property: &&Property| OF_JOB_ONLY.contains(&property.name.value.as_str());
        for property in step.properties.iter().filter(of_job) {
            let name = &property.name;
            let message = format!("`{}` is a property of a job, not of a step", name.value);
            let misplaced = Diagnostic::error(RUNTIME_PROPERTY, message, name.span.clone())
                .label("has no effect here")
                .help("move it to the `properties` of the job");
            self.diagnostics.push(misplaced);
        }
        let defaults = self.defaults.clone();
        let mut number =
            |name, unit, default: Option<usize>| self.number(name, unit, &step.properties, None).or(default);
        let timeout = number(STEP_TIMEOUT, "seconds", defaults.timeout);
        let heartbeat = number(STEP_HEARTBEAT, "seconds", defaults.heartbeat);
        let checkpoint_bytes = number(CHECKPOINT_LIMIT, "bytes", defaults.checkpoint_limit);
        let limits = StepLimits::default();
        StepLimits {
            timeout: timeout.map(seconds),
            heartbeat: heartbeat.map(seconds),
            checkpoint_bytes: checkpoint_bytes.unwrap_or(limits.checkpoint_bytes),
        }
    }

    /// Returns the properties of a step for skips and retries.
    pub(super) fn faults_of(&mut self, step: &Step) -> FaultProperties {
        self.fault_properties(&step.properties, None)
            .or(&self.defaults.faults)
    }

    /// Returns the fields of a step's user data that become data of the job.
    pub(super) fn promoted(&mut self, step: &Step) -> Vec<String> {
        let of_step = self.promoted_by(&step.properties, None);
        of_step.unwrap_or_else(|| self.defaults.promoted.clone())
    }

    fn promoted_by(&mut self, properties: &[Property], of: Option<&Span>) -> Option<Vec<String>> {
        let (value, span) = self.runtime_property(PROMOTE, properties, of)?;
        let names: Vec<String> = value.split(',').map(|name| name.trim().to_owned()).collect();
        if names
            .iter()
            .all(|name| !name.is_empty() && !name.starts_with("batch."))
        {
            return Some(names);
        }
        let message = format!("invalid value {value:?} for `{PROMOTE}`");
        let span = span.clone();
        let expected = "expected names, separated by commas, that do not begin with `batch.`";
        self.reject_property(PROMOTE, message, span, expected);
        None
    }

    /// Reports an invalid value.
    pub(super) fn reject_property(&mut self, name: &str, message: String, span: Span, expected: &str) {
        let wrong = Diagnostic::error(RUNTIME_PROPERTY, message, span)
            .label(expected)
            .help(format!("`{name}` is a property of the runtime"));
        self.diagnostics.push(wrong);
    }

    /// Returns whether the reader and the processor of a step are retried.
    pub(super) fn retry_input(&mut self, step: &Step) -> bool {
        self.flag(RETRY_INPUT, &step.properties, None)
            .or(self.defaults.retry_input)
            .unwrap_or_else(|| self.dialect().retries_input())
    }

    /// Returns whether the step or the job sets `batch.retry.input`.
    pub(super) fn sets_retry_input(&self, step: &Step) -> bool {
        step.properties
            .iter()
            .any(|property| property.name.value == RETRY_INPUT)
            || self.defaults.retry_input.is_some()
    }

    /// Returns the number of processors of a chunk. The policy `custom` asks its algorithm after each item, so it has one.
    pub(super) fn processors(&mut self, step: &Step, chunk: &Chunk) -> usize {
        let of_step = self.number(PROCESSORS, "threads", &step.properties, None);
        let is_custom = chunk.checkpoint_policy.value == CheckpointPolicy::Custom;
        if is_custom
            && of_step.is_some_and(|number| number > 1)
            && let Some((_, span)) = self.runtime_property(PROCESSORS, &step.properties, None)
        {
            let message = format!("`{PROCESSORS}` cannot be combined with a checkpoint algorithm");
            let wrong = Diagnostic::error(RUNTIME_PROPERTY, message, span.clone())
                .label("the algorithm decides after each item")
                .help("remove the property, or choose the checkpoint-policy `item` or `time`");
            self.diagnostics.push(wrong);
        }
        match of_step.or(self.defaults.processors) {
            Some(number) if !is_custom => number,
            _ => 1,
        }
    }

    /// Returns the value that the step sets for the pipeline.
    pub(super) fn pipeline(&mut self, step: &Step) -> Option<bool> {
        self.flag(PIPELINE, &step.properties, None)
    }

    /// Returns whether a step is to be pipelined, by its own property or the job's.
    pub(super) fn wants_pipeline(&self, of_step: Option<bool>) -> bool {
        of_step.or(self.defaults.pipeline).unwrap_or(false)
    }

    /// Returns whether a step is pipelined. An obstacle is an error if the step sets the property, a warning if the job does.
    pub(super) fn is_pipelined(
        &mut self,
        of_step: Option<bool>,
        step: &Step,
        chunk: &Chunk,
        bound: &BoundChunk,
        listeners: &[ListenerAt],
    ) -> bool {
        if !self.wants_pipeline(of_step) {
            return false;
        }
        let obstacles = obstacles(chunk, bound, listeners);
        let is_pipelined = obstacles.is_empty();
        for (reason, span) in obstacles {
            let message = format!("step `{}` cannot be pipelined", step.id.value);
            if of_step.is_some() {
                let wrong = Diagnostic::error(RUNTIME_PROPERTY, message, span)
                    .label(reason)
                    .help(format!("remove `{PIPELINE}`, or set it to `false`"));
                self.diagnostics.push(wrong);
            } else {
                let ignored = Diagnostic::warning(RUNTIME_PROPERTY, message, span)
                    .label(reason)
                    .help(format!("set `{PIPELINE}` of the step to `false`"));
                self.warnings.push(ignored);
            }
        }
        is_pipelined
    }

    /// Returns the settings for the partitions of an element with these properties.
    pub(super) fn partition_settings(&mut self, properties: &[Property]) -> PartitionSettings {
        let threads = self.number(PARTITION_THREADS, "threads", properties, None);
        let dispatcher = self.name(DISPATCH, properties, None);
        let queue = self.name(DISPATCH_QUEUE, properties, None);
        PartitionSettings {
            threads: threads.or(self.defaults.threads),
            replan: self.replan(properties),
            dispatcher: dispatcher.or_else(|| self.defaults.dispatcher.clone()),
            queue: queue.or_else(|| self.defaults.queue.clone()),
            is_chunk: false,
            inner: InnerSteps::None,
        }
    }

    /// Returns the plan of a restart, of an element with these properties.
    fn replan(&mut self, properties: &[Property]) -> Replan {
        let by_dialect = match self.dialect().replans_partitions() {
            true => Replan::SafeProperties,
            false => Replan::No,
        };
        self.replan_of(properties, None)
            .or(self.defaults.replan)
            .unwrap_or(by_dialect)
    }

    fn replan_of(&mut self, properties: &[Property], of: Option<&Span>) -> Option<Replan> {
        let (value, span) = self.runtime_property(PARTITION_REPLAN, properties, of)?;
        match value.trim() {
            "no" => return Some(Replan::No),
            "properties" => return Some(Replan::Properties),
            "all" => return Some(Replan::All),
            _ => {}
        }
        let message = format!("invalid value {value:?} for `{PARTITION_REPLAN}`");
        let span = span.clone();
        self.reject_property(
            PARTITION_REPLAN,
            message,
            span,
            "expected `no`, `properties` or `all`",
        );
        None
    }

    /// Returns a runtime property of a job or step: from its properties, whose values are the effective ones, else
    /// from a job parameter or system property.
    pub(super) fn runtime_property<'p>(
        &'p self,
        name: &str,
        properties: &'p [Property],
        of: Option<&'p Span>,
    ) -> Option<(&'p str, &'p Span)> {
        match properties.iter().find(|property| property.name.value == name) {
            Some(property) if property.deferred => None,
            Some(property) => Some((&property.value.value, &property.value.span)),
            None => Some((self.source.external.get(name)?, of?)),
        }
    }

    /// Parses a numeric property, at least 1. `of` is the place of the job or step, if the value may come from outside.
    fn number(
        &mut self,
        name: &str,
        unit: &str,
        properties: &[Property],
        of: Option<&Span>,
    ) -> Option<usize> {
        let (value, span) = self.runtime_property(name, properties, of)?;
        if let Ok(number) = value.trim().parse::<usize>()
            && number > 0
        {
            return Some(number);
        }
        let message = format!("invalid value {value:?} for `{name}`");
        let span = span.clone();
        self.reject_property(
            name,
            message,
            span,
            &format!("expected a number of {unit}, at least 1"),
        );
        None
    }

    /// Reads a property that is a name, at most 100 characters. `of` is the place of the job, if the value may come from outside.
    fn name(&mut self, name: &str, properties: &[Property], of: Option<&Span>) -> Option<String> {
        let (value, span) = self.runtime_property(name, properties, of)?;
        let value = value.trim();
        if !value.is_empty() && value.chars().count() <= 100 {
            return Some(value.to_owned());
        }
        let message = format!("invalid value {value:?} for `{name}`");
        let span = span.clone();
        self.reject_property(name, message, span, "expected a name of 1 to 100 characters");
        None
    }

    /// Parses a property that is `true` or `false`. `of` is the place of the job, if the value may come from outside.
    fn flag(&mut self, name: &str, properties: &[Property], of: Option<&Span>) -> Option<bool> {
        let (value, span) = self.runtime_property(name, properties, of)?;
        if let Ok(flag) = value.trim().parse() {
            return Some(flag);
        }
        let message = format!("invalid value {value:?} for `{name}`");
        let span = span.clone();
        self.reject_property(name, message, span, "expected `true` or `false`");
        None
    }

    /// Checks the runtime property that `JobOperator::exit_code` reads.
    fn exit_codes(&mut self, job: &Job) {
        let Some((text, span)) = self.runtime_property(EXIT_CODES, &job.properties, Some(&job.id.span))
        else {
            return;
        };
        if let Err(problem) = text.parse::<ExitCodes>() {
            let wrong = Diagnostic::error(RUNTIME_PROPERTY, problem, span.clone())
                .label("expected exit statuses with codes, separated by commas: `NOTHING TO DO=5, *SKIPS=4`")
                .help(format!("`{EXIT_CODES}` is a property of the runtime"));
            self.diagnostics.push(wrong);
        }
    }
}

/// Returns all reasons why a chunk cannot be read ahead, with their places.
// Spec: D-100
fn obstacles(chunk: &Chunk, bound: &BoundChunk, listeners: &[ListenerAt]) -> Vec<(String, Span)> {
    let mut obstacles = Vec::new();
    if !chunk.buffer_reads {
        let reason = "`buffer-reads=\"false\"` reads items again after a rollback";
        obstacles.push((reason.into(), chunk.span.clone()));
    }
    if chunk.checkpoint_policy.value == CheckpointPolicy::Custom {
        let reason = "the checkpoint algorithm decides after each item, after the commit of the chunk before";
        obstacles.push((reason.into(), chunk.checkpoint_policy.span.clone()));
    }
    if bound.faults.repeats_calls() {
        let reason =
            "an error in `no-rollback-exception-classes` repeats the call, before another item is read";
        obstacles.push((reason.into(), chunk.span.clone()));
    }
    let processor = bound.processor.as_ref().zip(chunk.processor.as_ref());
    let others = [(&bound.reader, &chunk.reader), (&bound.writer, &chunk.writer)];
    for (artifact, named) in others.into_iter().chain(processor) {
        if !artifact.registration.pipelined {
            let reason = format!("`{}` is declared with `pipelined = false`", artifact.name);
            obstacles.push((reason, named.name.span.clone()));
        }
    }
    for (listener, span) in listeners {
        let mut roles = listener.roles.iter().map(|bound| bound.registration.role());
        if roles.any(|role| matches!(role, Role::ItemReadListener | Role::ItemProcessListener)) {
            let name = listener.roles.first().map_or("", |bound| bound.name.as_str());
            let reason = format!(
                "`{name}` is a listener of reading or processing, which a pipelined step cannot call"
            );
            obstacles.push((reason, span.clone()));
        }
    }
    obstacles
}

fn seconds(number: usize) -> Duration {
    Duration::from_secs(number as u64)
}
