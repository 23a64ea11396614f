//! Makes run events from the events of an observer.

use std::collections::HashMap;

use batch_runtime::observer::{JobEvent, JobEventKind, ObservedStep, StepBody};
use batch_runtime::{BatchStatus, Timestamp};

use crate::event::{EventType, RunEvent};
use crate::ids;
use crate::parent::{Parents, RunOf};
use crate::steps::StepRun;

/// The runs of this process.
pub(crate) struct Runs {
    namespace: String,
    parents: Parents,
    /// The steps that run, by the ids of their runs.
    steps: HashMap<String, StepRun>,
    /// Events that are not sent yet.
    events: Vec<String>,
}

/// The end of a run.
struct End<'e> {
    kind: EventType,
    error: Option<&'e str>,
}

impl<'e> End<'e> {
    fn of(status: BatchStatus, exit_status: &'e str, exit_message: &'e str) -> Self {
        let kind = match status {
            BatchStatus::Completed => EventType::Complete,
            BatchStatus::Stopped => EventType::Abort,
            _ => EventType::Fail,
        };
        let message = match exit_message.trim() {
            "" => exit_status,
            _ => exit_message,
        };
        let error = (kind == EventType::Fail).then_some(message);
        Self { kind, error }
    }

    fn lost(cause: &'e str) -> Self {
        Self {
            kind: EventType::Fail,
            error: Some(cause),
        }
    }
}

impl Runs {
    pub(crate) fn new(namespace: String, parents: Parents) -> Self {
        Self {
            namespace,
            parents,
            steps: HashMap::new(),
            events: Vec::new(),
        }
    }

    /// Handles an event, and returns the run events that it causes. An execution without a trace context has no runs: no observer of its
    /// coordinator makes some.
    pub(crate) fn on_event(&mut self, event: &JobEvent) -> Vec<String> {
        if let Some(context) = &event.job.trace.context {
            let job = RunOf {
                namespace: self.namespace.clone(),
                job: event.job.job.clone(),
                run: ids::of_job(context),
            };
            match &event.step {
                None => self.on_job_event(event, &job),
                Some(step) if step.body == StepBody::Flow => {}
                Some(step) => self.on_step_event(event, step, &job, context),
            }
        }
        std::mem::take(&mut self.events)
    }

    fn on_job_event(&mut self, event: &JobEvent, job: &RunOf) {
        match &event.kind {
            JobEventKind::JobStarted => self.add_job(job, event.at, EventType::Start, None),
            JobEventKind::JobEnded(end) => {
                let end = End::of(end.status, &end.exit_status, &end.exit_message);
                self.end_job(job, event.at, &end);
            }
            JobEventKind::JobLost { cause } => self.end_job(job, event.at, &End::lost(cause)),
            _ => {}
        }
    }

    /// Ends a job, and its steps whose ends were not observed.
    fn end_job(&mut self, job: &RunOf, at: Timestamp, end: &End<'_>) {
        let left = self.steps.extract_if(|_, step| step.job == *job);
        for (_, step) in left.collect::<Vec<_>>() {
            if !step.is_remote {
                self.add_step(&step, at, end.kind, end.error);
            }
        }
        self.add_job(job, at, end.kind, end.error);
    }

    fn on_step_event(&mut self, event: &JobEvent, step: &ObservedStep, job: &RunOf, context: &str) {
        // Partitions have no runs of their own.
        let of = match step.name.rsplit_once(':') {
            Some((of, _)) if step.is_partition => of,
            _ => &step.name,
        };
        let id = ids::of_step(context, of);
        match &event.kind {
            JobEventKind::StepStarted { .. } => self.start_step(event, step, job, id),
            JobEventKind::DatasetUsed(dataset) => {
                if let Some(running) = self.steps.get_mut(&id) {
                    running.uses(&step.name, dataset);
                }
            }
            JobEventKind::ChunkCommitted { .. } => {
                let running = self.steps.get(&id);
                if let Some(true) = running.map(|running| running.is_due(event.at)) {
                    self.add_running(&id, event.at);
                }
            }
            JobEventKind::StepEnded(end) => {
                let Some(running) = self.steps.get_mut(&id) else {
                    return;
                };
                let is_last = running.ended(&step.name, Some((step.body, &end.counters)));
                let end = End::of(end.status, &end.exit_status, &end.exit_message);
                self.end_step(event.at, step, &id, is_last, &end);
            }
            JobEventKind::StepLost => {
                let Some(running) = self.steps.get_mut(&id) else {
                    return;
                };
                let is_last = running.ended(&step.name, None);
                let lost = End::lost("this process does not run it any more");
                self.end_step(event.at, step, &id, is_last, &lost);
            }
            _ => {}
        }
    }

    fn start_step(&mut self, event: &JobEvent, step: &ObservedStep, job: &RunOf, id: String) {
        if let Some(running) = self.steps.get_mut(&id) {
            return running.started(&step.name);
        }
        let run = RunOf {
            namespace: job.namespace.clone(),
            job: format!("{}.{}", job.job, step.step),
            run: id.clone(),
        };
        let mut running = StepRun::new(run, job.clone(), step.is_partition, event.at);
        running.started(&step.name);
        if !step.is_partition {
            self.add_step(&running, event.at, EventType::Start, None);
        }
        self.steps.insert(id, running);
    }

    fn end_step(&mut self, at: Timestamp, step: &ObservedStep, id: &str, is_last: bool, end: &End<'_>) {
        if !step.is_partition {
            if let Some(ended) = self.steps.remove(id) {
                self.add_step(&ended, at, end.kind, end.error);
            }
            return;
        }
        // The coordinator does not know the datasets of partitions in this process.
        let is_remote = self.steps.get(id).is_some_and(|running| running.is_remote);
        if is_remote && self.steps[id].has_news() {
            self.add_running(id, at);
        }
        if is_remote && is_last {
            self.steps.remove(id);
        }
    }

    /// Adds the event RUNNING.
    fn add_running(&mut self, id: &str, at: Timestamp) {
        if let Some(mut running) = self.steps.remove(id) {
            self.add_step(&running, at, EventType::Running, None);
            running.shown(at);
            self.steps.insert(id.to_owned(), running);
        }
    }

    fn add_job(&mut self, job: &RunOf, at: Timestamp, kind: EventType, error: Option<&str>) {
        let event = RunEvent {
            kind,
            at,
            run: job,
            job_type: "JOB",
            parent: self.parents.parent.as_ref(),
            root: self.parents.root.as_ref(),
            error,
            datasets: &[],
        };
        self.events.push(event.to_json());
    }

    fn add_step(&mut self, step: &StepRun, at: Timestamp, kind: EventType, error: Option<&str>) {
        // The root of a job that another process runs is not known here.
        let root = (!step.is_remote).then(|| self.parents.root.as_ref().unwrap_or(&step.job));
        let event = RunEvent {
            kind,
            at,
            run: &step.run,
            job_type: "STEP",
            parent: Some(&step.job),
            root,
            error,
            datasets: &step.datasets,
        };
        self.events.push(event.to_json());
    }
}
