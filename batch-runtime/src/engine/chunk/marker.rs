//! The marker of a destination: the destination commits first, with what the repository will store, and the repository follows.
// Spec: MARK-04 to MARK-10, D-109

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::super::body::StepEnv;
use super::super::bound::Bound;
use super::super::call::{Failure, Interrupt, call};
use super::interval_state::{Interval, RolledBack};
use crate::checkpoint::CheckpointInfo;
use crate::error::BatchError;
use crate::execution::{JobExecutionId, StepCounters, StepExecution, StepExecutionId};
use crate::marker::{Advance, AnyDestination, Marker, Markers, marker_key};
use crate::observer::JobEventKind;
use crate::random::random_id;
use crate::repository::{
    ChunkCommit, DataChanges, PartitionReport, RepositoryError, SideWrites, StepState, ascii_json,
};
use crate::status::BatchStatus;

/// The version of the form of [`MarkerState`].
const VERSION: u32 = 1;
/// With [`MarkerState::dropped`]: a program that does not know it would lose what the repository has to write.
const VERSION_OF_BOTH: u32 = 2;

/// The destination of a step, and its marker.
pub(crate) struct Marked {
    /// `None` while a transaction has it.
    destination: Option<AnyDestination>,
    /// `None` if the repository is in memory: after a crash nothing could continue at the marker.
    claimed: Option<Claimed>,
}

/// A marker that this execution owns.
struct Claimed {
    key: String,
    fence: i64,
    /// Where the marker is.
    at: Position,
    /// The interval after it, which the destination has committed, and the repository has to write its own part of.
    replayed: Option<MarkerState>,
}

/// The repository's side of a marker, in the state of the step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    /// Identifies the run of the step, from its beginning, that the marker belongs to.
    lineage: String,
    /// The number of intervals whose items are committed.
    interval: i64,
}

/// The state of an interval, as the destination keeps it with the items: all that the repository stores for the same interval.
#[derive(Debug, Serialize, Deserialize)]
struct MarkerState {
    version: u32,
    lineage: String,
    job_instance: i64,
    step_execution: i64,
    /// The items of the interval alone.
    #[serde(default)]
    counters: IntervalCounters,
    reader: Option<String>,
    writer: Option<String>,
    user_data: Option<String>,
    skips: Option<String>,
    /// The changed data of the job.
    #[serde(default)]
    data: DataChanges,
    /// The payloads of a collector in a worker.
    #[serde(default)]
    payloads: Vec<StoredPayload>,
    /// Only if the writer has used the transaction of the repository, too: the results of the interval that failed writes have skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dropped: Option<Vec<usize>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct IntervalCounters {
    reads: i64,
    writes: i64,
    filters: i64,
    read_skips: i64,
    process_skips: i64,
    write_skips: i64,
}

/// The size of an interval, as the rules about failed items count it.
#[derive(Clone, Copy, Debug)]
pub(super) struct IntervalSize {
    pub(super) inputs: usize,
    pub(super) results: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredPayload {
    /// The step execution of the partition: of a flow it is another one than the step's.
    partition: i64,
    job_execution: i64,
    claim: i64,
    number: u64,
    report: String,
}

impl IntervalCounters {
    /// Returns what `after` counts more than `before`.
    fn between(before: StepCounters, after: StepCounters) -> Self {
        Self {
            reads: after.reads - before.reads,
            writes: after.writes - before.writes,
            filters: after.filters - before.filters,
            read_skips: after.read_skips - before.read_skips,
            process_skips: after.process_skips - before.process_skips,
            write_skips: after.write_skips - before.write_skips,
        }
    }

    fn size(self) -> IntervalSize {
        let count = |items: i64| usize::try_from(items).unwrap_or(0);
        IntervalSize {
            inputs: count(self.reads + self.read_skips),
            results: count(self.reads - self.filters - self.process_skips),
        }
    }

    /// Adds one interval.
    fn added_to(self, counters: StepCounters) -> StepCounters {
        counters.plus(StepCounters {
            reads: self.reads,
            writes: self.writes,
            filters: self.filters,
            commits: 1,
            rollbacks: 0,
            read_skips: self.read_skips,
            process_skips: self.process_skips,
            write_skips: self.write_skips,
        })
    }
}

impl Position {
    fn begin() -> Self {
        Self {
            lineage: random_id(),
            interval: 0,
        }
    }

    fn next(&self) -> Self {
        Self {
            lineage: self.lineage.clone(),
            interval: self.interval + 1,
        }
    }

    fn of(state: &StepState) -> Result<Option<Self>, Failure> {
        let stored = state.marker.as_ref().map(CheckpointInfo::decode).transpose();
        stored.map_err(|error| Failure::new(format!("cannot read the marker of the step: {error}")))
    }

    /// Returns the position of a step, and stores it at the beginning: the repository has to know the lineage before the destination does. Else a
    /// crash after the first interval would look like a repository that was restored.
    fn stored(env: StepEnv<'_>, step: &mut StepExecution, state: &mut StepState) -> Result<Self, Interrupt> {
        if let Some(here) = Self::of(state)? {
            return Ok(here);
        }
        let here = Self::begin();
        let mut next = state.clone();
        next.marker = Some(here.encode()?);
        store(env, step, &next, step.counters, &SideWrites::default())?;
        *state = next;
        Ok(here)
    }

    fn encode(&self) -> Result<CheckpointInfo, Failure> {
        CheckpointInfo::encode(self).map_err(|error| Failure::new(error.to_string()))
    }
}

/// Compares a marker with the repository.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// Both have committed the same intervals.
    Equal,
    /// The destination has committed one interval more.
    OneAhead,
    /// The marker is new, or of an earlier beginning that the repository knows.
    Outdated,
    /// Of a beginning that has to be looked up.
    Other,
    /// One of the two was restored from a backup.
    Apart,
}

fn compare(here: &Position, interval: i64, state: Option<&MarkerState>) -> Found {
    match state {
        None if here.interval == 0 && interval == 0 => Found::Outdated,
        None => Found::Apart,
        // Nothing is committed: another repository that has run the job, or an older one, has left it.
        Some(state) if here.interval == 0 && interval == 0 && state.lineage != here.lineage => {
            Found::Outdated
        }
        Some(state) if state.lineage == here.lineage => match interval - here.interval {
            0 => Found::Equal,
            1 => Found::OneAhead,
            _ => Found::Apart,
        },
        Some(_) if here.interval == 0 => Found::Other,
        Some(_) => Found::Apart,
    }
}

impl MarkerState {
    /// Reads the state of a marker; `None` if it has none.
    fn parse(marker: &Marker) -> Result<Option<Self>, Failure> {
        if !marker.state.starts_with('{') {
            return Ok(None);
        }
        let unreadable = |why: &dyn std::fmt::Display| {
            Failure::new(format!(
                "the marker in the destination cannot be read ({why}); run the job with the version of batch-runtime that wrote it, or a \
                 later one"
            ))
        };
        let state: Self = serde_json::from_str(&marker.state).map_err(|error| unreadable(&error))?;
        match state.version {
            VERSION | VERSION_OF_BOTH => Ok(Some(state)),
            other => Err(unreadable(&format_args!("its form has version {other}"))),
        }
    }

    /// Takes the state of the step at the end of the interval.
    fn apply(&self, state: &mut StepState) {
        let stored = |text: &Option<String>| text.clone().map(CheckpointInfo::from_json);
        state.reader = stored(&self.reader);
        state.writer = stored(&self.writer);
        state.user_data = stored(&self.user_data);
        state.skips = stored(&self.skips);
    }

    /// Returns what else the interval stores. Payloads of another execution have lost their analyzer.
    fn side_writes(&self, execution: JobExecutionId) -> SideWrites {
        let payloads = self.payloads.iter();
        SideWrites {
            data: self.data.clone(),
            payloads: payloads
                .filter(|payload| payload.job_execution == execution.0)
                .map(|payload| PartitionReport {
                    step_execution: StepExecutionId(payload.partition),
                    job_execution: JobExecutionId(payload.job_execution),
                    claim: payload.claim,
                    number: payload.number,
                    report: payload.report.clone(),
                })
                .collect(),
        }
    }
}

/// The arguments of a commit.
pub(super) struct Committing<'a> {
    pub(super) side_writes: &'a SideWrites,
    pub(super) counters: StepCounters,
    /// The results that failed writes have skipped.
    pub(super) dropped: &'a [usize],
}

impl Marked {
    pub(super) fn new(destination: AnyDestination) -> Self {
        Self {
            destination: Some(destination),
            claimed: None,
        }
    }

    /// Returns whether the marker shows what was committed when an answer was lost.
    pub(super) fn is_claimed(&self) -> bool {
        self.claimed.is_some()
    }

    /// Gives the destination to the transaction of an interval.
    pub(super) fn lend(&mut self) -> Option<AnyDestination> {
        self.destination.take()
    }

    /// Takes the destination back.
    pub(super) fn take_back(&mut self, destination: Option<AnyDestination>) {
        self.destination = destination;
    }

    /// Rolls back what a failed claim has left.
    pub(super) fn roll_back(&mut self) {
        if let Some(destination) = &mut self.destination {
            destination.get().roll_back();
        }
    }

    /// Returns whether a failed write can be undone alone.
    pub(super) fn has_savepoints(&mut self) -> bool {
        self.destination
            .as_mut()
            .is_some_and(|destination| destination.get().has_savepoints())
    }

    /// Becomes the owner of the marker, and sets the repository to it if the destination has committed one interval more. No
    /// earlier owner can commit anything from then on. Waits for `patience` while the destination cannot be reached. Returns the size of
    /// the interval that the repository has committed. After an error, [`roll_back`](Self::roll_back) has to follow.
    // Spec: MARK-05, MARK-06, MARK-07
    pub(super) fn claim(
        &mut self,
        writer: &Bound,
        env: StepEnv<'_>,
        step: &mut StepExecution,
        state: &mut StepState,
        patience: Duration,
    ) -> Result<Option<IntervalSize>, Interrupt> {
        let Some(destination) = &mut self.destination else {
            return Ok(None);
        };
        if !env.repository.begin_chunk().has_database() {
            return Ok(None);
        }
        let here = Position::stored(env, step, state)?;
        let instance = env.repository.instance(env.running.lease.instance_id)?;
        let instance = instance.ok_or(RepositoryError::Fault)?;
        let key = marker_key(&instance.job_name, &instance.job_key, &step.step_name);
        let marker = claim_patiently(writer, env, destination, &key, patience)?;
        let mut claimed = Claimed {
            key,
            fence: marker.fence,
            at: here,
            replayed: None,
        };
        let stored = MarkerState::parse(&marker)?;
        let found = match compare(&claimed.at, marker.interval, stored.as_ref()) {
            Found::Other if is_known(env, &marker, stored.as_ref())? => Found::Outdated,
            found => found,
        };
        let committed = match (found, &stored) {
            (Found::Equal, _) => None,
            // The interval runs again without its destination.
            (Found::OneAhead, Some(MarkerState { dropped: Some(_), .. })) => {
                claimed.replayed = stored;
                None
            }
            (Found::OneAhead, Some(stored)) => {
                let next = claimed.at.next();
                roll_forward(env, step, state, &next, stored)?;
                claimed.at = next;
                Some(stored.counters.size())
            }
            (Found::Outdated, _) => {
                let first = MarkerState::at_beginning(&claimed.at, env, step).encode()?;
                let advance = claimed.advance(marker.interval, &claimed.at, &first);
                match writer.call("destination", || destination.get().commit(&advance))? {
                    true => None,
                    false => return Err(claimed.superseded().into()),
                }
            }
            _ => {
                let place = destination.get().place();
                return Err(claimed.mismatch(&place, &marker, stored.as_ref(), env).into());
            }
        };
        self.claimed = Some(claimed);
        Ok(committed)
    }

    /// Commits the items and the marker.
    // Spec: MARK-04, MARK-08
    pub(super) fn commit(
        &mut self,
        writer: &Bound,
        env: StepEnv<'_>,
        interval: &mut Interval<'_, '_>,
        committing: &Committing<'_>,
    ) -> Result<(), RolledBack> {
        let Some(claimed) = &mut self.claimed else {
            let destination = interval.tx.destination_mut();
            let committed = destination.map_or(Ok(()), |destination| {
                writer.call("destination", || destination.get().commit_unmarked())
            });
            return Ok(committed?);
        };
        let next = claimed.at.next();
        let state = MarkerState::at_end(&next, env, interval, committing).encode()?;
        let advance = claimed.advance(claimed.at.interval, &next, &state);
        // A process that was suspended may have lost its step to one that does not use this marker.
        if env.running.is_untrusted() && interval.tx.is_used() {
            return Err(claimed.open_again(env, interval));
        }
        env.running.ensure_owned(env.repository)?;
        let destination = interval.tx.destination_mut().ok_or(RepositoryError::Fault)?;
        let committed = writer.call("destination", || destination.get().commit(&advance))?;
        if !committed {
            return Err(claimed.open_again(env, interval));
        }
        interval.state.marker = Some(next.encode()?);
        claimed.at = next;
        Ok(())
    }

    /// Returns the interval that the destination has committed, while the repository writes its own part of it.
    pub(super) fn replayed(&self) -> Option<Replayed<'_>> {
        let replayed = self.claimed.as_ref()?.replayed.as_ref()?;
        Some(Replayed(replayed))
    }

    /// Completes the repository's part of an interval that the destination has committed: its state is what the marker has. Returns the rest
    /// of what the repository stores; `None` for other intervals.
    // Spec: MARK-15
    pub(super) fn complete_replay(
        &mut self,
        env: StepEnv<'_>,
        interval: &mut Interval<'_, '_>,
        counters: StepCounters,
    ) -> Result<Option<SideWrites>, Failure> {
        let claimed = self.claimed.as_mut();
        let Some((claimed, replayed)) = claimed.and_then(|claimed| {
            let replayed = claimed.replayed.take()?;
            Some((claimed, replayed))
        }) else {
            return Ok(None);
        };
        let here = IntervalCounters::between(interval.step.counters, counters);
        // The results that are not in the destination were dropped without a failed write.
        let there = IntervalCounters {
            write_skips: here.write_skips,
            ..replayed.counters
        };
        if here != there {
            return Err(other_items(there, here));
        }
        let next = claimed.at.next();
        replayed.apply(interval.state);
        interval.state.marker = Some(next.encode()?);
        claimed.at = next;
        Ok(Some(replayed.side_writes(env.running.lease.execution_id)))
    }

    /// Removes the marker of a step that the repository has recorded as complete. A marker that stays harms nothing.
    // Spec: MARK-10
    pub(crate) fn remove_after(marked: Option<Self>, status: BatchStatus) {
        let complete = marked.filter(|_| status == BatchStatus::Completed);
        let Some(Self {
            destination: Some(mut destination),
            claimed: Some(claimed),
        }) = complete
        else {
            return;
        };
        if let Err(error) = call(|| destination.get().remove(&claimed.key, claimed.fence)) {
            tracing::warn!(
                marker = claimed.key,
                error = error.chain(),
                "the marker of a complete step stays in the destination; it can be deleted"
            );
        }
    }
}

/// An interval that the destination has committed.
#[derive(Clone, Copy)]
pub(super) struct Replayed<'a>(&'a MarkerState);

impl Replayed<'_> {
    /// Returns how many more items there are to read, after `reads` reads and `read_skips` skips.
    pub(super) fn remaining(self, reads: usize, read_skips: usize) -> usize {
        let left = |all: i64, done: usize| usize::try_from(all).unwrap_or(0).saturating_sub(done);
        // Only a read shows a bad record after the last item.
        match left(self.0.counters.reads, reads) {
            0 => left(self.0.counters.read_skips, read_skips).min(1),
            reads => reads,
        }
    }

    /// Returns the counters after the interval.
    pub(super) fn counters_after(self, before: StepCounters) -> StepCounters {
        self.0.counters.added_to(before)
    }

    /// Returns whether a failed write has skipped a result, by its number in the interval.
    pub(super) fn has_dropped(self, number: usize) -> bool {
        self.0.dropped.iter().flatten().any(|dropped| *dropped == number)
    }
}

impl MarkerState {
    fn encode(&self) -> Result<String, Failure> {
        let json = serde_json::to_string(self).map_err(|error| Failure::new(error.to_string()))?;
        Ok(ascii_json(&json))
    }

    fn at_beginning(here: &Position, env: StepEnv<'_>, step: &StepExecution) -> Self {
        Self {
            version: VERSION,
            lineage: here.lineage.clone(),
            job_instance: env.running.lease.instance_id.0,
            step_execution: step.id.0,
            counters: IntervalCounters::default(),
            reader: None,
            writer: None,
            user_data: None,
            skips: None,
            data: DataChanges::new(),
            payloads: Vec::new(),
            dropped: None,
        }
    }

    fn at_end(
        next: &Position,
        env: StepEnv<'_>,
        interval: &mut Interval<'_, '_>,
        committing: &Committing<'_>,
    ) -> Self {
        let dropped = interval.tx.is_used().then(|| committing.dropped.to_vec());
        let (step, state) = (&interval.step, &interval.state);
        let text = |stored: &Option<CheckpointInfo>| stored.as_ref().map(|info| info.as_json().to_owned());
        let payloads = committing.side_writes.payloads.iter();
        Self {
            counters: IntervalCounters::between(step.counters, committing.counters),
            reader: text(&state.reader),
            writer: text(&state.writer),
            user_data: text(&state.user_data),
            skips: text(&state.skips),
            data: committing.side_writes.data.clone(),
            payloads: payloads
                .map(|payload| StoredPayload {
                    partition: payload.step_execution.0,
                    job_execution: payload.job_execution.0,
                    claim: payload.claim,
                    number: payload.number,
                    report: payload.report.clone(),
                })
                .collect(),
            version: if dropped.is_some() {
                VERSION_OF_BOTH
            } else {
                VERSION
            },
            dropped,
            ..Self::at_beginning(next, env, step)
        }
    }
}

impl Claimed {
    fn advance<'a>(&'a self, from: i64, to: &Position, state: &'a str) -> Advance<'a> {
        Advance {
            key: &self.key,
            fence: self.fence,
            from,
            to: to.interval,
            state,
        }
    }

    /// Rolls the interval back. If this process still owns the step, it opens at the marker again.
    fn open_again(&self, env: StepEnv<'_>, interval: &mut Interval<'_, '_>) -> RolledBack {
        // An open transaction of the repository would keep the lease from being renewed.
        interval.tx.restart();
        if let Err(fenced) = env.running.renew(env.repository) {
            return fenced.into();
        }
        interval.tx.supersede();
        self.superseded().into()
    }

    fn superseded(&self) -> Failure {
        Failure::new(format!(
            "another process has taken over the marker `{}` in the destination; nothing of this interval was committed",
            self.key
        ))
    }

    /// Returns the failure for a marker that the repository cannot continue.
    // Spec: MARK-07
    fn mismatch(
        &self,
        place: &str,
        marker: &Marker,
        stored: Option<&MarkerState>,
        env: StepEnv<'_>,
    ) -> Failure {
        let instance = env.running.lease.instance_id;
        let here = self.at.interval;
        let there = match stored {
            None => "has no marker of this step".to_owned(),
            Some(stored) => format!(
                "has the marker of interval {} of job instance {}, written by step execution {}",
                marker.interval, stored.job_instance, stored.step_execution
            ),
        };
        let is_of_instance = stored.is_some_and(|stored| stored.job_instance == instance.0);
        let cause = match (stored, is_of_instance) {
            (Some(_), true) if marker.interval > here => "the repository was restored from a backup",
            (Some(_), false) => {
                "the repository was restored from a backup, or another repository runs the same job there"
            }
            _ => "the destination was restored from a backup, or its marker was deleted",
        };
        let place = match place {
            "" => String::new(),
            place => format!(" `{place}`"),
        };
        Failure::new(format!(
            "the destination{place} {there}, and the repository is at interval {here} of instance {instance}; probable cause: {cause}. No item was \
             read or written.\n\
             To continue, restore the other one of the two to the same moment. Or compare what the destination holds with the input, `abandon` this \
             execution, delete the row `{}`, if it is there, from the table {} (unless the program names another one), and `start` the job with \
             an input of the missing items alone",
            self.key,
            Markers::TABLE,
        ))
    }
}

/// Returns the failure for an interval that has other items than the destination has committed.
fn other_items(there: IntervalCounters, here: IntervalCounters) -> Failure {
    let shown = |counters: IntervalCounters| {
        let IntervalCounters {
            reads,
            writes,
            filters,
            read_skips,
            process_skips,
            ..
        } = counters;
        format!(
            "{reads} items read and {read_skips} skipped, {filters} filtered and {process_skips} skipped by the processor, {writes} written"
        )
    };
    Failure::new(format!(
        "the destination has committed an interval whose part in the repository is missing, and reader and processor have returned other items this \
         time.\nThe destination has: {}.\nThis time: {}.\nRestore the input to what it was, and restart the job. Or compare what both databases hold \
         with the input, and `abandon` this execution",
        shown(there),
        shown(here)
    ))
}

/// Claims a marker, and tries again while the connection is lost.
fn claim_patiently(
    writer: &Bound,
    env: StepEnv<'_>,
    destination: &mut AnyDestination,
    key: &str,
    patience: Duration,
) -> Result<Marker, Failure> {
    let began = Instant::now();
    let mut pause = Duration::from_millis(10);
    loop {
        let failure = match writer.call("destination", || destination.get().claim(key)) {
            Ok(marker) => return Ok(marker),
            Err(failure) => failure,
        };
        let is_over = began.elapsed() >= patience || env.worker.stop_requested();
        if is_over || !destination.get().is_lost() {
            return Err(failure);
        }
        destination.get().roll_back();
        env.worker.pause(pause);
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

/// Returns whether the repository knows all that a marker of another beginning says: the step begins anew on purpose.
fn is_known(env: StepEnv<'_>, marker: &Marker, stored: Option<&MarkerState>) -> Result<bool, Interrupt> {
    let Some(stored) = stored else {
        return Ok(true);
    };
    let Some((_, kept)) = env.repository.step(StepExecutionId(stored.step_execution))? else {
        return Ok(false);
    };
    let known = Position::of(&kept)?;
    Ok(known.is_some_and(|known| {
        known.lineage == stored.lineage && (0..=1).contains(&(marker.interval - known.interval))
    }))
}

/// Commits the interval that the destination has committed, and the repository has not.
// Spec: MARK-06
fn roll_forward(
    env: StepEnv<'_>,
    step: &mut StepExecution,
    state: &mut StepState,
    to: &Position,
    stored: &MarkerState,
) -> Result<(), Interrupt> {
    let mut next = state.clone();
    stored.apply(&mut next);
    next.marker = Some(to.encode()?);
    let before = step.counters;
    let counters = stored.counters.added_to(before);
    #[cfg(debug_assertions)]
    let counters = match crate::failpoints::is_on(crate::failpoints::Fault::NoCounters) {
        true => IntervalCounters::default().added_to(before),
        false => counters,
    };
    let side_writes = stored.side_writes(env.running.lease.execution_id);
    store(env, step, &next, counters, &side_writes)?;
    tracing::info!(
        step = step.step_name,
        interval = to.interval,
        "the destination had committed one interval more than the repository, which has caught up"
    );
    *state = next;
    if let Some((collecting, _)) = env.collecting {
        collecting.committed_after_all();
    }
    env.data.committed(side_writes.data);
    env.context.restore_persistent_info(state.user_data.clone());
    env.context.set_counters(counters);
    env.events.emit(JobEventKind::ChunkCommitted {
        before,
        counters,
        elapsed: Duration::ZERO,
    });
    Ok(())
}

/// Commits a state of the step alone.
fn store(
    env: StepEnv<'_>,
    step: &mut StepExecution,
    state: &StepState,
    counters: StepCounters,
    side_writes: &SideWrites,
) -> Result<(), RepositoryError> {
    let mut tx = env.repository.begin_chunk();
    let commit = ChunkCommit {
        counters,
        state,
        side_writes,
        renew: None,
        end: None,
    };
    env.repository.commit_chunk(&mut tx, step, commit)
}

impl From<BatchError> for RolledBack {
    fn from(error: BatchError) -> Self {
        let failure = Failure {
            message: error.chain(),
            exception: Some(Arc::new(error)),
        };
        failure.into()
    }
}
