//! Makes run events from the events of an observer.

use std::collections::HashMap;

use batch_runtime::observer::{
    ClosedJob, JobEvent, JobEventKind, ObservedJob, ObservedOuter, ObservedStep, StepBody,
};
use batch_runtime::{BatchStatus, Timestamp};

use crate::event::{EventType, RunEvent};
use crate::ids;
use crate::parent::{Parents, RunOf};
use crate::steps::{StepRun, Used};

/// The runs of this process.
pub(crate) struct Runs {
    namespace: String,
    /// The parents in the environment.
    parents: Parents,
    /// The runs at the top of the jobs that run here, by the ids of their runs; `None` if it is not known.
    roots: HashMap<String, Option<RunOf>>,
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
            BatchStatus::Stopped | BatchStatus::Abandoned => EventType::Abort,
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
            roots: HashMap::new(),
            steps: HashMap::new(),
            events: Vec::new(),
        }
    }

    /// Handles an event, and returns the run events that it causes. An execution without a trace context has no runs: no observer of its
    /// coordinator makes some.
    pub(crate) fn on_event(&mut self, event: &JobEvent) -> Vec<String> {
        if let Some(context) = &event.job.trace.context {
            let job = self.run_of_job(&event.job.job, context);
            match &event.step {
                None => self.on_job_event(event, &job, context),
                Some(step) if step.body == StepBody::Flow => {}
                Some(step) => self.on_step_event(event, step, &job, context),
            }
        }
        std::mem::take(&mut self.events)
    }

    fn run_of_job(&self, job: &str, context: &str) -> RunOf {
        RunOf {
            namespace: self.namespace.clone(),
            job: job.to_owned(),
            run: ids::of_job(context),
        }
    }

    fn on_job_event(&mut self, event: &JobEvent, job: &RunOf, context: &str) {
        match &event.kind {
            JobEventKind::JobStarted => {
                let parents = self.parents_of(&event.job);
                let has_none = parents.parent.is_none();
                let root = parents.root.clone().or_else(|| has_none.then(|| job.clone()));
                self.roots.insert(job.run.clone(), root);
                self.add_job(job, &parents, event.at, EventType::Start, None);
            }
            JobEventKind::JobEnded(end) => {
                let end = End::of(end.status, &end.exit_status, &end.exit_message);
                self.end_job(event, job, &end);
            }
            JobEventKind::JobLost { cause } => self.end_job(event, job, &End::lost(cause)),
            JobEventKind::JobClosed(closed) => self.close_job(event.at, job, context, closed),
            _ => {}
        }
    }

    /// Returns the runs above a job's run: the parents in the environment, or the step that runs it.
    fn parents_of(&self, job: &ObservedJob) -> Parents {
        let Some(ObservedOuter { job: outer, step, .. }) = job.outer.as_deref() else {
            return self.parents.clone();
        };
        let Some(context) = &outer.trace.context else {
            return self.parents.clone();
        };
        // If another process runs the outer job, its root is not known.
        let root = self.roots.get(&ids::of_job(context)).cloned().flatten();
        // The partitions of a step belong to its run.
        let of = step_of_partition(step).unwrap_or(step);
        Parents {
            parent: Some(self.run_of_step(&outer.job, of, context)),
            root,
        }
    }

    /// Returns the run of a step that has this name in the repository.
    fn run_of_step(&self, job: &str, name: &str, context: &str) -> RunOf {
        let step = name.rsplit_once('/').map_or(name, |(_, step)| step);
        RunOf {
            namespace: self.namespace.clone(),
            job: format!("{job}.{step}"),
            run: ids::of_step(context, name),
        }
    }

    /// Ends the runs of an execution whose process is dead. Nothing is known of what is above them.
    fn close_job(&mut self, at: Timestamp, job: &RunOf, context: &str, closed: &ClosedJob) {
        let ClosedJob { execution, steps, .. } = closed;
        let end_of = |exit_status, message| End::of(execution.status, exit_status, message);
        let parents = Parents {
            parent: Some(job.clone()),
            root: None,
        };
        for step in steps
            .iter()
            .filter(|step| step_of_partition(&step.step_name).is_none())
        {
            let run = self.run_of_step(&job.job, &step.step_name, context);
            let end = end_of(&step.exit_status, &step.exit_message);
            let at = step.ended.unwrap_or(at);
            self.add(
                &run,
                "STEP",
                &parents,
                &Change {
                    at,
                    kind: end.kind,
                    error: end.error,
                },
                &[],
            );
        }
        let end = end_of(&execution.exit_status, &execution.exit_message);
        let at = execution.ended.unwrap_or(at);
        self.add(
            job,
            "JOB",
            &Parents::default(),
            &Change {
                at,
                kind: end.kind,
                error: end.error,
            },
            &[],
        );
    }

    /// Ends a job, and its steps whose ends were not observed.
    fn end_job(&mut self, event: &JobEvent, job: &RunOf, end: &End<'_>) {
        let left = self.steps.extract_if(|_, step| step.job == *job);
        for (_, step) in left.collect::<Vec<_>>() {
            if !step.is_remote {
                self.add_step(&step, event.at, end.kind, end.error);
            }
        }
        let parents = self.parents_of(&event.job);
        self.add_job(job, &parents, event.at, end.kind, end.error);
        self.roots.remove(&job.run);
    }

    fn on_step_event(&mut self, event: &JobEvent, step: &ObservedStep, job: &RunOf, context: &str) {
        // Partitions have no separate runs.
        let of = match step_of_partition(&step.name) {
            Some(of) if step.is_partition => of,
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

    fn add_job(
        &mut self,
        job: &RunOf,
        parents: &Parents,
        at: Timestamp,
        kind: EventType,
        error: Option<&str>,
    ) {
        self.add(job, "JOB", parents, &Change { at, kind, error }, &[]);
    }

    fn add_step(&mut self, step: &StepRun, at: Timestamp, kind: EventType, error: Option<&str>) {
        // The root of a job that another process runs is not known here.
        let root = match self.roots.get(&step.job.run) {
            Some(root) if !step.is_remote => root.clone(),
            _ => None,
        };
        let parents = Parents {
            parent: Some(step.job.clone()),
            root,
        };
        self.add(
            &step.run,
            "STEP",
            &parents,
            &Change { at, kind, error },
            &step.datasets,
        );
    }

    fn add(
        &mut self,
        run: &RunOf,
        job_type: &'static str,
        parents: &Parents,
        change: &Change<'_>,
        datasets: &[Used],
    ) {
        let event = RunEvent {
            kind: change.kind,
            at: change.at,
            run,
            job_type,
            parent: parents.parent.as_ref(),
            root: parents.root.as_ref(),
            error: change.error,
            datasets,
        };
        self.events.push(event.to_json());
    }
}

/// What has happened to a run.
struct Change<'c> {
    at: Timestamp,
    kind: EventType,
    error: Option<&'c str>,
}

/// Returns the name of the step that a partition belongs to, if this is the name of one. Ids of Job XML contain no colon.
fn step_of_partition(name: &str) -> Option<&str> {
    let (of, number) = name.rsplit_once(':')?;
    number.parse::<u32>().is_ok().then_some(of)
}
