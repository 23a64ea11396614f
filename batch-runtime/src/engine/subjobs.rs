//! Subjobs: threads beside the one that waits for them, what they send to it, and who analyzes that.
//!
//! Spec: SUBJOB-02 to SUBJOB-27, SPLIT-16 to SPLIT-21, PART-25, PART-26, PART-34, D-31, D-32, D-45

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use crossbeam::channel::{Receiver, Sender, bounded};
use crossbeam::thread::Scope;

use super::bound::{Bound, BoundListener, Listener};
use super::call::{Failure, call, discard};
use super::running::Running;
use super::walk::{ElementEnd, Last, Outcome};
use super::worker::{Worker, lock};
use crate::Dialect;
use crate::artifact::{CollectorData, ContextScope};
use crate::repository::RepositoryError;
use crate::role::{SubJobAnalyzer, SubJobCollector};
use crate::status::BatchStatus;
use crate::transition::Termination;

/// So many payloads wait for the analyzer before a collector waits.
const WAITING_PAYLOADS: usize = 64;

/// What a subjob tells the thread that waits for it. Each subjob's reports come in their order. Spec: SUBJOB-11
pub(super) enum Report {
    Data(CollectorData),
    Ended(SubjobEnd),
}

/// A subjob that is over.
pub(super) struct SubjobEnd {
    /// Which one it was.
    pub(super) position: usize,
    worker: Arc<Worker>,
    pub(super) result: Result<ElementEnd, RepositoryError>,
}

/// The threads of the subjobs of one element.
pub(super) struct Crew<'c, 'scope> {
    scope: &'c Scope<'scope>,
    running: &'c Running,
    parent: &'c Worker,
    active: Vec<Arc<Worker>>,
    sender: Sender<Report>,
    reports: Receiver<Report>,
}

impl<'c, 'scope> Crew<'c, 'scope> {
    pub(super) fn new(scope: &'c Scope<'scope>, running: &'c Running, parent: &'c Worker) -> Self {
        let (sender, reports) = bounded(WAITING_PAYLOADS);
        Self {
            scope,
            running,
            parent,
            active: Vec::new(),
            sender,
            reports,
        }
    }

    /// Begins a subjob on a thread of its own.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub(super) fn begin(
        &mut self,
        position: usize,
        name: String,
        work: impl FnOnce(&Arc<Worker>, &Sender<Report>) -> Result<ElementEnd, RepositoryError> + Send + 'scope,
    ) -> io::Result<()> {
        let worker = self.running.workers.begin();
        self.parent.adopt(&worker);
        let (sender, of_thread) = (self.sender.clone(), Arc::clone(&worker));
        let span = tracing::Span::current();
        let spawned = self.scope.builder().name(name).spawn(move |_| {
            let _span = span.entered();
            of_thread.runs_here();
            // A fault of the runtime itself must not leave the element waiting.
            let result = catch_unwind(AssertUnwindSafe(|| work(&of_thread, &sender)))
                .unwrap_or(Err(RepositoryError::Fault));
            let _ = sender.send(Report::Ended(SubjobEnd {
                position,
                worker: of_thread,
                result,
            }));
        });
        match spawned {
            Ok(_) => self.active.push(worker),
            Err(error) => {
                self.over(&worker);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Waits for the next report; `None` when nothing runs any more.
    pub(super) fn next(&mut self) -> Option<Report> {
        if self.active.is_empty() {
            return None;
        }
        let report = self.reports.recv().ok()?;
        if let Report::Ended(end) = &report {
            let worker = Arc::clone(&end.worker);
            self.active.retain(|other| !Arc::ptr_eq(other, &worker));
            self.over(&worker);
        }
        Some(report)
    }

    fn over(&self, worker: &Arc<Worker>) {
        self.parent.release(worker);
        self.running.workers.end(worker);
    }

    /// How many subjobs run.
    pub(super) fn active(&self) -> usize {
        self.active.len()
    }

    /// Asks those that still run to stop. Spec: SPLIT-18, PART-25, LTX-10, D-32
    pub(super) fn stop(&self) {
        self.active.iter().for_each(|worker| worker.request_stop());
    }
}

/// How the subjobs of an element have ended so far, in the order in which they did.
#[derive(Default)]
pub(super) struct Ends {
    finished: Vec<(Outcome, Option<String>)>,
    /// The repository does not take any more: nothing can be said.
    pub(super) broken: Option<RepositoryError>,
}

impl Ends {
    pub(super) fn push(&mut self, outcome: Outcome, exit_status: Option<String>) {
        self.finished.push((outcome, exit_status));
    }

    /// Whether nothing more is to begin.
    pub(super) fn are_ending(&self) -> bool {
        let ends_all =
            |(outcome, _): &(Outcome, _)| matches!(outcome, Outcome::Failed(_) | Outcome::Terminated(_));
        self.broken.is_some() || self.finished.iter().any(ends_all)
    }

    /// Whether those that still run are to be stopped. Spec: SPLIT-18, PART-25, FPART-08, LTX-10, D-32
    pub(super) fn end_siblings(&self, dialect: Dialect) -> bool {
        self.broken.is_some() || (self.are_ending() && dialect.ending_flow_stops_siblings())
    }

    /// How the element ends: as a terminating element says, FAILED before STOPPED before COMPLETED; else as the worst of
    /// the subjobs. Spec: SPLIT-19, SPLIT-21, STATUS-15, PART-26
    pub(super) fn outcome(&self) -> Outcome {
        let terminated = |status: BatchStatus| {
            self.finished.iter().find_map(|(outcome, _)| match outcome {
                Outcome::Terminated(termination) if termination.status == status => Some(termination),
                _ => None,
            })
        };
        let end = |termination: &Termination| Outcome::Terminated(termination.clone());
        if let Some(termination) = terminated(BatchStatus::Failed) {
            return end(termination);
        }
        let failed = self
            .finished
            .iter()
            .find(|(outcome, _)| matches!(outcome, Outcome::Failed(_)));
        if let Some((outcome, _)) = failed {
            return outcome.clone();
        }
        if let Some(termination) = terminated(BatchStatus::Stopped).or(terminated(BatchStatus::Completed)) {
            return end(termination);
        }
        match self.worst() {
            BatchStatus::Stopped => Outcome::Stopped,
            _ => Outcome::Completed,
        }
    }

    /// Spec: SPLIT-19, PART-26, D-31
    pub(super) fn worst(&self) -> BatchStatus {
        let has = |status| {
            self.finished
                .iter()
                .any(|(outcome, _)| outcome.status() == status)
        };
        [BatchStatus::Failed, BatchStatus::Stopped]
            .into_iter()
            .find(|status| has(*status))
            .unwrap_or(BatchStatus::Completed)
    }

    /// The exit status of the subjob that finished last with that batch status. Spec: SPLIT-19, D-31
    pub(super) fn exit_status(&self, status: BatchStatus) -> Option<String> {
        let mut of_status = self
            .finished
            .iter()
            .filter(|(outcome, _)| outcome.status() == status);
        of_status
            .next_back()
            .and_then(|(_, exit_status)| exit_status.clone())
    }
}

/// The exit status of a subjob: what it set, else its batch status. Spec: SUBJOB-10, D-67
pub(super) fn exit_status_of(end: &ElementEnd) -> String {
    let set = end.last.as_ref().and_then(Last::exit_status);
    set.unwrap_or_else(|| end.outcome.status().to_string())
}

/// The analyzer of an element, on the thread that waits for the subjobs. Spec: SUBJOB-08, SUBJOB-21, SUBJOB-25
pub(super) struct Analysis<'a> {
    made: Option<(&'a Bound, Box<dyn SubJobAnalyzer>)>,
    /// The first error of the analyzer; it is not called again.
    pub(super) failure: Option<Failure>,
}

impl<'a> Analysis<'a> {
    pub(super) fn make(bound: Option<&'a Bound>, contexts: &ContextScope) -> Result<Self, Failure> {
        let made = bound.map(|bound| {
            let made = bound.sub_job_analyzer(contexts);
            made.map(|analyzer| (bound, analyzer))
                .map_err(|error| Failure::not_made(bound, &error))
        });
        Ok(Self {
            made: made.transpose()?,
            failure: None,
        })
    }

    /// Spec: SUBJOB-09, LTX-15
    pub(super) fn data(&mut self, data: CollectorData) {
        let mut data = Some(data);
        self.tell("analyze_collector_data", |analyzer| {
            data.take()
                .map_or(Ok(()), |data| analyzer.analyze_collector_data(data))
        });
        discard(data);
    }

    /// Spec: SUBJOB-10, LTX-15
    pub(super) fn ended(&mut self, exit_status: &str) {
        self.tell("analyze_exit_status", |analyzer| {
            analyzer.analyze_exit_status(exit_status)
        });
    }

    fn tell(
        &mut self,
        method: &str,
        tell: impl FnOnce(&mut dyn SubJobAnalyzer) -> Result<(), crate::error::BatchError>,
    ) {
        let Some((bound, analyzer)) = self.made.as_mut().filter(|_| self.failure.is_none()) else {
            return;
        };
        if let Err(error) = call(|| tell(analyzer.as_mut())) {
            self.failure = Some(Failure::thrown(bound, method, error));
        }
    }
}

impl Drop for Analysis<'_> {
    fn drop(&mut self) {
        discard(self.made.take());
    }
}

/// The collector of a subjob, on the subjob's thread. Spec: SUBJOB-02, SUBJOB-18, SUBJOB-22
pub(crate) struct Collecting {
    bound: Arc<BoundListener>,
    /// Made when it is told for the first time: it may ask for the context of a step.
    collector: Mutex<Option<Listener>>,
    sender: Sender<Report>,
}

impl Collecting {
    pub(super) fn new(bound: Bound, sender: &Sender<Report>) -> Arc<Self> {
        Arc::new(Self {
            bound: Arc::new(BoundListener { roles: vec![bound] }),
            collector: Mutex::default(),
            sender: sender.clone(),
        })
    }

    /// Sends what the collector gives; `contexts` are those of the step. Spec: SUBJOB-03 to SUBJOB-05, SUBJOB-15, LTX-14
    pub(super) fn collect(&self, contexts: &ContextScope) -> Result<(), Failure> {
        let mut made = lock(&self.collector);
        let listener = match made.take() {
            Some(listener) => listener,
            None => Listener::make(&self.bound, contexts)?,
        };
        let listener = made.insert(listener);
        let bound = call(|| Ok(listener.bind_contexts(contexts)?));
        let Some((artifact, collector)) = listener.cast::<dyn SubJobCollector>() else {
            return Ok(());
        };
        let collected = call(|| bound.and_then(|()| collector.collect_sub_job_data()));
        let data = collected.map_err(|error| Failure::thrown(artifact, "collect_sub_job_data", error))?;
        if let Some(data) = data {
            // Whoever waits for this subjob receives until it has ended.
            let _ = self.sender.send(Report::Data(data));
        }
        Ok(())
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        discard(lock(&self.collector).take());
    }
}
