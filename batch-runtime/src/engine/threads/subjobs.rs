//! Subjobs: their threads, their reports to the parent thread, and its analyzer.
// Spec: SUBJOB-02 to SUBJOB-27, SPLIT-16 to SPLIT-21, PART-25, PART-26, PART-34, D-31, D-32, D-45

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use crossbeam::channel::{Receiver, Sender, bounded};

use super::running::Running;
use super::worker::{Worker, lock};
use crate::Dialect;
use crate::artifact::{CollectorData, ContextScope};
use crate::engine::bound::{Bound, BoundListener, Listener};
use crate::engine::call::{Failure, call, discard};
use crate::engine::outcome::{ElementEnd, Last, Outcome};
use crate::repository::{PartitionReport, RepositoryError};
use crate::role::{SubJobAnalyzer, SubJobCollector};
use crate::status::BatchStatus;
use crate::thread::{Scope, ThreadEnv};

/// The capacity of the analyzer's queue of payloads. Collectors wait while it is full.
const WAITING_PAYLOADS: usize = 64;

/// A report of a subjob to its parent thread. The reports of one subjob arrive in order.
// Spec: SUBJOB-11
pub(in crate::engine) enum Report {
    /// The collector of the subjob at this position sent a payload.
    Data(usize, CollectorData),
    Ended(SubjobEnd),
}

/// The end of a subjob.
pub(in crate::engine) struct SubjobEnd {
    /// Its position among its siblings.
    pub(in crate::engine) position: usize,
    /// The thread, if it has ended as well.
    worker: Option<Arc<Worker>>,
    pub(in crate::engine) result: Result<ElementEnd, RepositoryError>,
}

/// The end of a subjob, and the next one of its thread, with its position.
type Series<T> = (ElementEnd, Option<(usize, T)>);

/// Takes the payloads of a collector.
pub(crate) trait CollectorSink: Send + Sync {
    /// Returns the report that stores a payload in the transaction that it belongs to; `None` if it is sent after the commit.
    ///
    /// # Errors
    /// If the payload cannot be written.
    fn report(&self, data: &CollectorData) -> Result<Option<PartitionReport>, Failure>;

    /// Sends a payload to the analyzer.
    fn send(&self, data: CollectorData);
}

/// Sends payloads to the thread that waits for the subjob, which receives until the subjob has ended.
struct ParentSink {
    parent: Sender<Report>,
    position: usize,
}

impl CollectorSink for ParentSink {
    fn report(&self, _data: &CollectorData) -> Result<Option<PartitionReport>, Failure> {
        Ok(None)
    }

    fn send(&self, data: CollectorData) {
        // It does not receive any more if the runtime has panicked.
        let _ = self.parent.send(Report::Data(self.position, data));
    }
}

/// The threads of the subjobs of one element.
pub(in crate::engine) struct SubjobThreads<'c, 'scope> {
    scope: &'c Scope<'scope>,
    running: &'c Running,
    parent: &'c Worker,
    active: Vec<Arc<Worker>>,
    sender: Sender<Report>,
    reports: Receiver<Report>,
}

impl<'c, 'scope> SubjobThreads<'c, 'scope> {
    pub(in crate::engine) fn new(scope: &'c Scope<'scope>, running: &'c Running, parent: &'c Worker) -> Self {
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

    /// Starts a subjob on a new thread.
    ///
    /// # Errors
    /// If the operating system cannot create a thread.
    pub(in crate::engine) fn begin(
        &mut self,
        position: usize,
        name: String,
        work: impl Fn(&Arc<Worker>, &Arc<dyn CollectorSink>) -> Result<ElementEnd, RepositoryError>
        + Send
        + 'scope,
    ) -> io::Result<()> {
        self.begin_series(name, (position, ()), move |worker, sink, ()| {
            work(worker, sink).map(|ended| (ended, None))
        })
    }

    /// Starts a thread that runs a subjob, and then each one that `work` returns.
    ///
    /// # Errors
    /// If the operating system cannot create a thread.
    pub(in crate::engine) fn begin_series<T: Send + 'scope>(
        &mut self,
        name: String,
        first: (usize, T),
        work: impl Fn(&Arc<Worker>, &Arc<dyn CollectorSink>, T) -> Result<Series<T>, RepositoryError>
        + Send
        + 'scope,
    ) -> io::Result<()> {
        let worker = self.running.workers.begin();
        self.parent.adopt(&worker);
        let (sender, of_thread) = (self.sender.clone(), Arc::clone(&worker));
        let env = ThreadEnv::of_this_thread();
        let run = move || {
            of_thread.runs_here();
            let mut next = Some(first);
            while let Some((position, subjob)) = next.take() {
                let sink: Arc<dyn CollectorSink> = Arc::new(ParentSink {
                    parent: sender.clone(),
                    position,
                });
                // A panic of the runtime must not block the element.
                let ran = catch_unwind(AssertUnwindSafe(|| work(&of_thread, &sink, subjob)));
                let result = ran
                    .unwrap_or(Err(RepositoryError::Fault))
                    .map(|(ended, following)| {
                        next = following;
                        ended
                    });
                of_thread.leave_all();
                let _ = sender.send(Report::Ended(SubjobEnd {
                    position,
                    worker: next.is_none().then(|| Arc::clone(&of_thread)),
                    result,
                }));
            }
        };
        let thread = self.scope.builder().name(name);
        match thread.spawn(move |_| env.run(run)) {
            Ok(_) => self.active.push(worker),
            Err(error) => {
                self.over(&worker);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Waits for the next report. Returns `None` if no subjob runs.
    pub(in crate::engine) fn next(&mut self) -> Option<Report> {
        // This end of the channel holds a sender, so `recv` would wait forever.
        if self.active.is_empty() {
            return None;
        }
        let report = self.reports.recv().ok()?;
        self.received(&report);
        Some(report)
    }

    /// Returns the next report, if there is one.
    pub(in crate::engine) fn try_next(&mut self) -> Option<Report> {
        let report = self.reports.try_recv().ok()?;
        self.received(&report);
        Some(report)
    }

    fn received(&mut self, report: &Report) {
        if let Report::Ended(end) = report {
            let Some(worker) = &end.worker else { return };
            self.active.retain(|other| !Arc::ptr_eq(other, worker));
            self.over(worker);
        }
    }

    fn over(&self, worker: &Arc<Worker>) {
        self.parent.release(worker);
        self.running.workers.end(worker);
    }

    /// Requests the running subjobs to stop.
    // Spec: SPLIT-18, PART-25, LTX-10, D-32
    pub(in crate::engine) fn stop(&self) {
        self.active.iter().for_each(|worker| worker.request_stop());
    }
}

/// The outcomes of the subjobs of an element that have ended. What depends on their order does not depend on the order of their
/// ends, which differs from run to run.
// Spec: D-31
#[derive(Default)]
pub(in crate::engine) struct SubjobOutcomes {
    /// By the position of the subjob among its siblings.
    finished: BTreeMap<usize, (Outcome, Option<String>)>,
    /// True once one of them has failed or ended the job.
    ends_all: bool,
    /// The repository rejects writes, so no outcome can be recorded.
    pub(in crate::engine) broken: Option<RepositoryError>,
}

impl SubjobOutcomes {
    /// Adds the end of the subjob at `position`.
    pub(in crate::engine) fn insert(
        &mut self,
        position: usize,
        outcome: Outcome,
        exit_status: Option<String>,
    ) {
        self.ends_all |= matches!(outcome, Outcome::Failed(_) | Outcome::Terminated(_));
        self.finished.insert(position, (outcome, exit_status));
    }

    /// Returns whether no further subjob may start.
    pub(in crate::engine) fn are_ending(&self) -> bool {
        self.broken.is_some() || self.ends_all
    }

    /// Returns whether the subjobs that still run must stop.
    // Spec: SPLIT-18, PART-25, FPART-08, LTX-10, D-32
    pub(in crate::engine) fn stop_siblings(&self, dialect: Dialect) -> bool {
        self.broken.is_some() || (self.are_ending() && dialect.ending_flow_stops_siblings())
    }

    /// Returns the end of the element: by a terminating element, FAILED before STOPPED before COMPLETED, or else by the worst
    /// subjob.
    // Spec: SPLIT-19, SPLIT-21, STATUS-15, PART-26
    pub(in crate::engine) fn outcome(&self) -> Outcome {
        let precedence = |outcome: &&Outcome| match (outcome, outcome.status()) {
            (Outcome::Terminated(_), BatchStatus::Failed) => 0,
            (Outcome::Failed(_), _) => 1,
            (Outcome::Terminated(_), BatchStatus::Stopped) => 2,
            (Outcome::Terminated(_), _) => 3,
            (Outcome::Stopped, _) => 4,
            (Outcome::Completed, _) => 5,
        };
        let outcomes = self.finished.values().map(|(outcome, _)| outcome);
        // The first one with the highest precedence.
        let first = outcomes.min_by_key(precedence);
        first.cloned().unwrap_or(Outcome::Completed)
    }

    // Spec: SPLIT-19, PART-26, D-31
    pub(in crate::engine) fn worst(&self) -> BatchStatus {
        let statuses = self.finished.values().map(|(outcome, _)| outcome.status());
        let has = |status: &BatchStatus| statuses.clone().any(|other| other == *status);
        let mut worst = [BatchStatus::Failed, BatchStatus::Stopped].into_iter();
        worst.find(has).unwrap_or(BatchStatus::Completed)
    }

    /// Returns the exit status of the last subjob with a batch status, in the order of the document.
    // Spec: SPLIT-19, D-31
    pub(in crate::engine) fn exit_status(&self, status: BatchStatus) -> Option<String> {
        let mut of_status = self
            .finished
            .values()
            .filter(|(outcome, _)| outcome.status() == status);
        of_status
            .next_back()
            .and_then(|(_, exit_status)| exit_status.clone())
    }
}

/// Returns the exit status of a subjob: the one it set, or else its batch status.
// Spec: SUBJOB-10, D-67
pub(in crate::engine) fn exit_status_of(end: &ElementEnd) -> String {
    let set = end.last.as_ref().and_then(Last::exit_status);
    set.unwrap_or_else(|| end.outcome.status().to_string())
}

/// The analyzer of an element, on the parent thread.
// Spec: SUBJOB-08, SUBJOB-21, SUBJOB-25
pub(in crate::engine) struct Analysis<'a> {
    made: Option<(&'a Bound, Box<dyn SubJobAnalyzer>)>,
    /// The first error of the analyzer, which is not called again.
    pub(in crate::engine) failure: Option<Failure>,
}

impl<'a> Analysis<'a> {
    pub(in crate::engine) fn make(
        bound: Option<&'a Bound>,
        contexts: &ContextScope,
    ) -> Result<Self, Failure> {
        let made = bound.map(|bound| Ok((bound, bound.sub_job_analyzer(contexts)?)));
        Ok(Self {
            made: made.transpose()?,
            failure: None,
        })
    }

    /// Returns whether the element has an analyzer.
    pub(in crate::engine) fn is_present(&self) -> bool {
        self.made.is_some()
    }

    // Spec: SUBJOB-09, LTX-15
    pub(in crate::engine) fn data(&mut self, data: CollectorData) {
        let mut data = Some(data);
        self.notify("analyze_collector_data", |analyzer| {
            data.take()
                .map_or(Ok(()), |data| analyzer.analyze_collector_data(data))
        });
        discard(data);
    }

    // Spec: SUBJOB-10, LTX-15
    pub(in crate::engine) fn ended(&mut self, batch_status: BatchStatus, exit_status: &str) {
        self.notify("analyze_exit_status", |analyzer| {
            analyzer.analyze_exit_status(batch_status, exit_status)
        });
    }

    fn notify(
        &mut self,
        method: &str,
        notification: impl FnOnce(&mut dyn SubJobAnalyzer) -> Result<(), crate::error::BatchError>,
    ) {
        let Some((bound, analyzer)) = self.made.as_mut().filter(|_| self.failure.is_none()) else {
            return;
        };
        self.failure = bound.call(method, || notification(analyzer.as_mut())).err();
    }
}

impl Drop for Analysis<'_> {
    fn drop(&mut self) {
        discard(self.made.take());
    }
}

/// The collector of a subjob, on the subjob's thread.
// Spec: SUBJOB-02, SUBJOB-18, SUBJOB-22
pub(crate) struct Collecting {
    bound: Arc<BoundListener>,
    /// Created at its first call, because it may need the context of a step.
    collector: Mutex<Option<Listener>>,
    sink: Arc<dyn CollectorSink>,
    waiting: Mutex<Waiting>,
}

/// The payloads of a collector that are not committed.
#[derive(Default)]
struct Waiting {
    payloads: Vec<Payload>,
    /// The number of those that a rollback of a chunk does not discard.
    kept: usize,
    /// The payloads of the chunk that was rolled back last: a destination may have committed it.
    in_doubt: Option<Vec<Payload>>,
}

enum Payload {
    /// Is stored in the next transaction.
    Stored(PartitionReport),
    /// Is sent after the next transaction.
    Sent(CollectorData),
}

impl Collecting {
    pub(in crate::engine) fn new(bound: Bound, sink: &Arc<dyn CollectorSink>) -> Arc<Self> {
        Arc::new(Self {
            bound: Arc::new(BoundListener { roles: vec![bound] }),
            collector: Mutex::default(),
            sink: Arc::clone(sink),
            waiting: Mutex::default(),
        })
    }

    /// Calls the collector; `contexts` are the step's contexts. Its payload belongs to the next transaction, which takes
    /// [`reports`](Self::reports) and is followed by [`committed`](Self::committed).
    // Spec: SUBJOB-03 to SUBJOB-05, SUBJOB-15, LTX-14, D-108
    pub(in crate::engine) fn collect(&self, contexts: &ContextScope) -> Result<(), Failure> {
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
        let collected = artifact.call("collect_sub_job_data", || {
            bound.and_then(|()| collector.collect_sub_job_data())
        });
        if let Some(data) = collected? {
            let payload = match self.sink.report(&data)? {
                Some(report) => Payload::Stored(report),
                None => Payload::Sent(data),
            };
            lock(&self.waiting).payloads.push(payload);
        }
        Ok(())
    }

    /// Calls the collector outside of a transaction. What is to be stored waits for the next one.
    pub(in crate::engine) fn collect_outside(&self, contexts: &ContextScope) -> Result<(), Failure> {
        self.collect(contexts)?;
        let mut waiting = lock(&self.waiting);
        let all = std::mem::take(&mut waiting.payloads).into_iter();
        let (stored, sent): (Vec<_>, Vec<_>) = all.partition(|payload| matches!(payload, Payload::Stored(_)));
        waiting.kept = stored.len();
        waiting.payloads = stored;
        drop(waiting);
        self.send(sent);
        Ok(())
    }

    /// Returns the reports to store in the current transaction.
    pub(in crate::engine) fn reports(&self) -> Vec<PartitionReport> {
        let waiting = lock(&self.waiting);
        let reports = waiting.payloads.iter().filter_map(|payload| match payload {
            Payload::Stored(report) => Some(report.clone()),
            Payload::Sent(_) => None,
        });
        reports.collect()
    }

    /// Notes that the transaction is committed.
    pub(in crate::engine) fn committed(&self) {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        self.send(waiting.payloads);
    }

    /// Discards the payloads of a chunk that was rolled back.
    pub(in crate::engine) fn roll_back(&self) {
        let waiting = &mut *lock(&self.waiting);
        let kept = waiting.kept.min(waiting.payloads.len());
        waiting.in_doubt = Some(waiting.payloads.split_off(kept));
    }

    /// Sends the payloads of the chunk that was rolled back last: the repository has committed it from the marker of its destination, with
    /// those that are stored.
    // Spec: MARK-06
    pub(in crate::engine) fn committed_after_all(&self) {
        let mut waiting = lock(&self.waiting);
        // In another process, those that wait here are not in the marker.
        let Some(payloads) = waiting.in_doubt.take() else {
            return;
        };
        *waiting = Waiting::default();
        drop(waiting);
        self.send(payloads);
    }

    fn send(&self, payloads: Vec<Payload>) {
        for payload in payloads {
            if let Payload::Sent(data) = payload {
                self.sink.send(data);
            }
        }
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        discard(lock(&self.collector).take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::call::Failure;
    use crate::transition::Termination;

    fn by(status: BatchStatus) -> Outcome {
        Outcome::Terminated(Termination {
            status,
            exit_status: None,
            restart: None,
        })
    }

    fn ended(all: &[Outcome]) -> SubjobOutcomes {
        let mut outcomes = SubjobOutcomes::default();
        for (number, outcome) in all.iter().enumerate() {
            outcomes.insert(number, outcome.clone(), Some(format!("end {number}")));
        }
        outcomes
    }

    /// Whichever of two subjobs ends first.
    // Spec: SPLIT-19, SPLIT-21, STATUS-15, D-31
    #[test]
    fn the_outcome_of_subjobs_has_a_precedence() {
        let failed = Outcome::Failed(Failure::new("no disk"));
        let ranked = [
            (by(BatchStatus::Failed), BatchStatus::Failed),
            (failed, BatchStatus::Failed),
            (by(BatchStatus::Stopped), BatchStatus::Stopped),
            (by(BatchStatus::Completed), BatchStatus::Completed),
            (Outcome::Stopped, BatchStatus::Stopped),
            (Outcome::Completed, BatchStatus::Completed),
        ];
        let is_same = |one: &Outcome, other: &Outcome| format!("{one:?}") == format!("{other:?}");
        for (rank, (higher, status)) in ranked.iter().enumerate() {
            assert_eq!(higher.status(), *status);
            for (lower, _) in &ranked[rank + 1..] {
                for pair in [[higher, lower], [lower, higher]] {
                    let outcome = ended(&pair.map(Outcome::clone)).outcome();
                    assert!(is_same(&outcome, higher), "{pair:?}: {outcome:?}");
                }
            }
        }
    }

    // Spec: SPLIT-19, D-31
    #[test]
    fn the_exit_status_is_that_of_the_last_subjob_with_the_status() {
        let mut reversed = SubjobOutcomes::default();
        for number in [2, 0, 1] {
            reversed.insert(number, Outcome::Completed, Some(format!("end {number}")));
        }
        assert_eq!(
            reversed.exit_status(BatchStatus::Completed).as_deref(),
            Some("end 2")
        );
        let all = ended(&[
            Outcome::Completed,
            Outcome::Stopped,
            Outcome::Completed,
            Outcome::Stopped,
        ]);
        assert_eq!(all.worst(), BatchStatus::Stopped);
        assert_eq!(all.exit_status(BatchStatus::Stopped).as_deref(), Some("end 3"));
        assert_eq!(all.exit_status(BatchStatus::Completed).as_deref(), Some("end 2"));
        assert_eq!(all.exit_status(BatchStatus::Failed), None);
    }
}
