//! The skip and retry rules of a chunk step, their limits, and the decision about an error.
// Spec: CHUNK-SKIP-01 to CHUNK-SKIP-08, CHUNK-RETRY-01 to CHUNK-RETRY-06, CHUNK-NORB-01 to CHUNK-NORB-05, D-07, D-08

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::class_limits::{ClassLimit, ClassLimits, UsedLimits};
use crate::artifact::{ExceptionFilter, class_of};
use crate::back_off::BackOff;
use crate::error::BatchError;
use crate::execution::StepCounters;
use crate::observer::ItemPhase;

/// The rules of a chunk, from its Job XML.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultRules {
    pub(crate) skippable: ExceptionFilter,
    /// Maximum number of skips of the step in its instance; `None` is unlimited.
    pub(crate) skip_limit: Option<u32>,
    pub(crate) retryable: ExceptionFilter,
    /// Maximum number of retries of a step execution; `None` is unlimited.
    pub(crate) retry_limit: Option<u32>,
    pub(crate) no_rollback: ExceptionFilter,
    /// True if a policy decides which errors are skippable.
    pub(crate) has_policy: bool,
    /// Maximum number of skips in the instance, for some classes.
    pub(crate) skip_limits: ClassLimits,
    /// Maximum number of retries of a step execution, for some classes.
    pub(crate) retry_limits: ClassLimits,
    /// Maximum number of attempts at an item, including the first; `None`: an item that fails in its retry is skipped if possible.
    pub(crate) max_attempts: Option<u32>,
    pub(crate) back_off: BackOff,
    /// True if errors of the reader and the processor are retried too.
    pub(crate) retry_input: bool,
    /// True if a failed call of the processor is repeated at once, if the error keeps the transaction. False if items are read ahead or
    /// processed by several threads.
    // Spec: JAK-31, FAULT-05
    pub(crate) repeats_processor: bool,
    /// The same for the reader. False in the draft, and for a reader of `batch-items`: it has advanced past the item that failed, so a
    /// repeated call would lose it.
    // Spec: JAK-31, FAULT-05, LOSS-07
    pub(crate) repeats_reader: bool,
    /// True if a retry reads and processes the items again, one by one, instead of keeping them.
    // Spec: JAK-30
    pub(crate) retry_one_by_one: bool,
    /// True if a failed write skips its whole list, in Jakarta Batch.
    pub(crate) failed_write_skips_its_list: bool,
}

impl FaultRules {
    /// Returns whether a failed write may be handled, so that the items of an interval are kept until its commit.
    pub(crate) fn handle_writes(&self) -> bool {
        self.has_policy || !self.skippable.is_empty() || !self.retryable.is_empty()
    }

    /// Returns whether a retry of a write keeps the transaction.
    // Spec: CHUNK-NORB-02, CHUNK-NORB-03
    pub(super) fn keeps_transaction(&self, error: &BatchError) -> bool {
        self.no_rollback.includes(error) && !error.needs_rollback()
    }

    /// Returns whether a failed call of the processor may be repeated without a rollback.
    // Spec: JAK-31, FAULT-05
    pub(crate) fn repeats_calls(&self) -> bool {
        self.retry_input
            && self.repeats_processor
            && !self.no_rollback.is_empty()
            && !self.retryable.is_empty()
    }
}

/// An error of the reader, processor or writer, or of a listener about an item that is written again.
pub(super) struct Fault<'f> {
    pub(super) phase: ItemPhase,
    pub(super) error: &'f Arc<BatchError>,
    /// The failed item, for the policy.
    pub(super) item: Option<&'f dyn Any>,
    /// The numbers, in the interval, of the inputs or results that the call may have failed at. Empty for a listener, which is not
    /// retried.
    pub(super) numbers: &'f [usize],
    pub(super) attempt: Attempt,
}

/// The reason for a call of the writer. A call of the reader or processor is a first attempt, as far as its caller knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    First,
    Retry,
    /// The search for the bad item of a list.
    Search,
}

/// What happens to an item that has failed. Otherwise the step fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Retry,
    /// Skips the item, or the whole list.
    Skip,
    /// Searches for the item, which then fails alone.
    Search {
        is_retry: bool,
    },
}

/// The used part of the limits, grouped by what resets it.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// Kept by the step execution.
    retries: u32,
    retries_by_class: UsedLimits,
    /// The number of items that are still to be read one by one after a retry. Each commit counts its items.
    // Spec: JAK-30
    pub(super) one_by_one: usize,
    /// A commit resets this, a rollback does not.
    since_commit: SinceCommit,
    /// A commit keeps these as `committed`. Reading the items again resets them to `committed`.
    skips: Skips,
    committed: Skips,
}

#[derive(Debug, Default)]
struct SinceCommit {
    retries: u32,
    /// Rollbacks and retries.
    attempts: u32,
    /// Lost connections.
    losses: u32,
    /// How often an item has failed, by its number in the interval: of the reader, of the processor, and among the results.
    failures: [BTreeMap<usize, u32>; 3],
}

/// The skips of a step in its instance.
#[derive(Clone, Debug, Default, PartialEq)]
struct Skips {
    by_phase: [u64; 3],
    /// Only if the step limits them.
    by_class: UsedLimits,
    causes: Causes,
}

/// The number of skips by the class of the error, each with the first text: most of them may have a different cause than the last one.
type Causes = BTreeMap<&'static str, (u64, String)>;

fn class_or_type(error: &BatchError) -> &'static str {
    class_of(error).unwrap_or_else(|| error.type_name())
}

/// Limits the retries of a chunk that loses the connection each time, for example because it is too large.
const MAX_LOSSES: u32 = 3;

/// Returns whether a number of retries without a commit is logged: 8, and then twice as many each time.
fn is_logged(retries: u32) -> bool {
    retries >= 8 && retries.is_power_of_two()
}

impl Budget {
    /// Counts a retry. Logs if there are many without a commit: without a limit they may have no end.
    fn count_retry(&mut self, error: &BatchError) {
        self.retries = self.retries.saturating_add(1);
        let open = &mut self.since_commit.retries;
        *open = open.saturating_add(1);
        if is_logged(*open) {
            tracing::warn!(
                error = error.chain(),
                "{open} retries since the last commit of the step; `retry-limit` and `batch.retry.max-attempts` limit them"
            );
        }
    }

    /// Returns how often the items of a fault have failed, including this time, or `None` if it has none.
    fn failures(&self, fault: &Fault<'_>) -> Option<u32> {
        let before = &self.since_commit.failures[fault.phase as usize];
        let failures = |number| before.get(number).copied().unwrap_or(0) + 1;
        fault.numbers.iter().map(failures).max()
    }

    fn count_failure(&mut self, fault: &Fault<'_>) {
        for number in fault.numbers {
            let failures = &mut self.since_commit.failures[fault.phase as usize];
            *failures.entry(*number).or_default() += 1;
        }
    }

    /// Sets the committed skips: `counters` count the step in its instance.
    pub(super) fn restore(&mut self, counters: StepCounters, by_class: UsedLimits) {
        let skips = [counters.read_skips, counters.process_skips, counters.write_skips];
        self.skips.by_phase = skips.map(|skips| u64::try_from(skips).unwrap_or(0));
        self.skips.by_class = by_class;
        self.committed.clone_from(&self.skips);
    }

    /// Returns the number of skips in the interval.
    pub(super) fn skipped(&self, phase: ItemPhase) -> usize {
        let of = |skips: &Skips| skips.by_phase[phase as usize];
        usize::try_from(of(&self.skips) - of(&self.committed)).unwrap_or(usize::MAX)
    }

    /// Returns the number of inputs of the interval, if the reader has returned `reads` of them and skipped the others.
    pub(super) fn inputs(&self, reads: usize) -> usize {
        reads + self.skipped(ItemPhase::Read)
    }

    /// Returns the skips of the step in its instance, including the skips of the interval.
    // Spec: CHUNK-SKIP-06, D-95
    pub(super) fn all_skips(&self) -> u64 {
        self.skips.by_phase.iter().sum()
    }

    /// Returns the skips by class as of the end of the interval, if it has changed them.
    pub(super) fn changed_classes(&self) -> Option<&UsedLimits> {
        let by_class = &self.skips.by_class;
        (*by_class != self.committed.by_class).then_some(by_class)
    }

    /// Forgets the skips of the interval: its items are read again.
    pub(super) fn read_again(&mut self) {
        self.skips.clone_from(&self.committed);
    }

    /// Commits an interval with this number of inputs and results.
    pub(super) fn commit(&mut self, inputs: usize, results: usize) {
        self.one_by_one = self.one_by_one.saturating_sub(inputs);
        // Most intervals skip nothing, and need no copy.
        if self.committed != self.skips {
            self.committed.clone_from(&self.skips);
        }
        let mut failures = std::mem::take(&mut self.since_commit).failures;
        // After a rollback the interval may be shorter: failures of later items remain.
        for (failures, committed) in failures.iter_mut().zip([inputs, inputs, results]) {
            let later = |(number, failures): (usize, u32)| Some((number.checked_sub(committed)?, failures));
            *failures = std::mem::take(failures).into_iter().filter_map(later).collect();
        }
        self.since_commit.failures = failures;
    }

    /// Counts a lost connection, and returns whether the step resumes.
    pub(super) fn resume(&mut self) -> bool {
        self.since_commit.losses += 1;
        self.since_commit.losses <= MAX_LOSSES
    }

    /// Returns the pause before the next attempt since the last commit.
    pub(super) fn pause(&mut self, back_off: BackOff) -> Option<Duration> {
        let attempts = &mut self.since_commit.attempts;
        *attempts = attempts.saturating_add(1);
        back_off.pause(*attempts)
    }

    /// Returns the pause before a call is repeated, by the number of its failures.
    pub(super) fn call_pause(&self, fault: &Fault<'_>, back_off: BackOff) -> Option<Duration> {
        let failures = self.failures(fault)?.saturating_sub(1);
        back_off.in_transaction().pause(failures)
    }
}

impl FaultRules {
    /// Decides about an error, and counts it. `shown` is its text.
    ///
    /// # Errors
    /// Remarks on the failure of the step, if the error is neither retried nor skipped.
    // Spec: CHUNK-RETRY-14, D-10, D-11
    pub(super) fn decide(
        &self,
        fault: &Fault<'_>,
        is_skippable: bool,
        budget: &mut Budget,
        shown: impl FnOnce() -> String,
    ) -> Result<Decision, Vec<String>> {
        let (error, is_searched) = (fault.error, self.is_searched(fault));
        // The failure of the whole list is counted; the parts that its search writes are no attempts.
        if is_searched && fault.attempt == Attempt::Search && !error.fails_the_step() {
            return Ok(Decision::Search { is_retry: false });
        }
        // The policy decides once the item is found.
        let used_up = match is_skippable && !(self.has_policy && is_searched) {
            true => self.skips_are_used_up(error, budget),
            false => None,
        };
        if self.retries(fault, is_skippable, used_up.is_some(), budget) {
            // Without a rollback the whole list is written again if the item is unknown; otherwise it is searched for. Spec: D-10
            let whole = fault.numbers.len() == 1 || self.retry_one_by_one || self.keeps_transaction(error);
            return Ok(match whole {
                true => Decision::Retry,
                false => Decision::Search { is_retry: true },
            });
        }
        if !is_skippable || used_up.is_some() {
            return Err(self.remark(fault, budget).into_iter().chain(used_up).collect());
        }
        if is_searched {
            return Ok(Decision::Search { is_retry: false });
        }
        let skips = &mut budget.skips;
        skips.by_phase[fault.phase as usize] += 1;
        self.skip_limits.count(error, &mut skips.by_class);
        let cause = skips.causes.entry(class_or_type(error));
        cause.or_insert_with(|| (0, shown())).0 += 1;
        Ok(Decision::Skip)
    }

    /// Returns whether the item of a failed list is searched for, if the error is skippable.
    pub(super) fn is_searched(&self, fault: &Fault<'_>) -> bool {
        fault.numbers.len() > 1 && !self.failed_write_skips_its_list
    }

    /// Returns the reason if the limits prevent the skip of a skippable error.
    // Spec: CHUNK-SKIP-07
    fn skips_are_used_up(&self, error: &BatchError, budget: &Budget) -> Option<String> {
        if let Some(limit) = self.skip_limit
            && budget.all_skips() >= u64::from(limit)
        {
            // Most skips may have another cause than this error.
            let is_most =
                |class: &str, count: u64| count > u64::from(limit) / 2 && class != class_or_type(error);
            let mut causes = budget.skips.causes.iter();
            let other = causes.find(|(class, (count, _))| is_most(class, *count));
            let other = other.map_or_else(String::new, |(_, (_, first))| {
                format!("; most skips had a different cause, for example: {first}")
            });
            return Some(format!(
                "it is skippable, but the skip-limit of {limit} is used up{other}"
            ));
        }
        let ClassLimit { class, limit, .. } = self.skip_limits.used_up(error, &budget.skips.by_class)?;
        Some(format!(
            "it is skippable, but the limit of {limit} for `{class}` in `batch.skip.limits` is used up"
        ))
    }

    /// Counts the failure of an item, and the retry if the error is retried.
    // Spec: CHUNK-RETRY-04, CHUNK-RETRY-05, CHUNK-RETRY-06
    fn retries(&self, fault: &Fault<'_>, is_skippable: bool, is_used_up: bool, budget: &mut Budget) -> bool {
        let (error, is_write) = (fault.error, fault.phase == ItemPhase::Write);
        let Some(failures) = budget.failures(fault) else {
            return false;
        };
        let is_again =
            budget.one_by_one > 0 || fault.attempt == Attempt::Retry || (!is_write && failures > 1);
        let has_attempts = match self.max_attempts {
            Some(most) => failures < most,
            // A retried item is skipped if possible. Spec: CHUNK-RETRY-14
            None => !is_again || !is_skippable || (is_used_up && !is_write),
        };
        let is_used_up = self.retry_limit.is_some_and(|limit| budget.retries >= limit)
            || self
                .retry_limits
                .used_up(error, &budget.retries_by_class)
                .is_some();
        let is_retried =
            (is_write || self.retry_input) && has_attempts && !is_used_up && self.retryable.includes(error);
        // A failed list is an attempt at each of its items, also if the bad one is searched for.
        if is_retried || is_write {
            budget.count_failure(fault);
        }
        if is_retried {
            budget.count_retry(error);
            self.retry_limits.count(error, &mut budget.retries_by_class);
        }
        is_retried
    }

    /// Explains why an error fails the step although the rules seem to handle it.
    // Spec: CHUNK-RETRY-05
    fn remark(&self, fault: &Fault<'_>, budget: &Budget) -> Option<String> {
        let error = fault.error;
        let (is_skippable, is_retryable) = (self.skippable.includes(error), self.retryable.includes(error));
        let is_used_up = |limit: &u32| budget.retries >= *limit;
        if fault.numbers.is_empty() {
            None
        } else if is_retryable && fault.phase != ItemPhase::Write && !self.retry_input {
            let remark = "it is retryable, but only writes are retried; set the property `batch.retry.input` of the step to \
                          `true` to retry the reader and the processor too";
            Some(remark.to_owned())
        } else if is_retryable && let Some(limit) = self.retry_limit.filter(is_used_up) {
            Some(format!(
                "it is retryable, but the retry-limit of {limit} is used up"
            ))
        } else if is_retryable
            && let Some(ClassLimit { class, limit, .. }) =
                self.retry_limits.used_up(error, &budget.retries_by_class)
        {
            Some(format!(
                "it is retryable, but the limit of {limit} for `{class}` in `batch.retry.limits` is used up"
            ))
        } else if is_retryable && let Some(most) = self.max_attempts {
            Some(format!(
                "it is retryable, but `batch.retry.max-attempts` allows only {most}"
            ))
        } else if !self.has_policy && self.skip_limit > Some(0) && self.skippable.is_empty() {
            Some("the `skip-limit` has no effect without `skippable-exception-classes`".into())
        } else if self.retry_limit > Some(0) && self.retryable.is_empty() {
            Some("the `retry-limit` has no effect without `retryable-exception-classes`".into())
        } else if !self.has_policy && self.handle_writes() && !is_skippable && !is_retryable {
            // The lists may be wrong.
            let class = class_of(error)?;
            Some(format!("its class `{class}` is neither skippable nor retryable"))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::super::lists::{Action, FailedList, Lists, Outcome};
    use super::*;

    fn fault<'f>(phase: ItemPhase, error: &'f Arc<BatchError>, numbers: &'f [usize]) -> Fault<'f> {
        Fault {
            phase,
            error,
            item: None,
            numbers,
            attempt: Attempt::First,
        }
    }

    /// The results of an interval, whose writes fail at random: runs as `ChunkRunner` does, without artifacts and a transaction.
    #[derive(Default)]
    struct Run {
        random: u64,
        rules: FaultRules,
        budget: Budget,
        lists: Lists,
        undoes: bool,
        names_items: bool,
        /// How often each result fails.
        failures: Vec<usize>,
        results: Vec<usize>,
        written: Vec<usize>,
    }

    impl Run {
        fn new(random: u64) -> Self {
            let mut run = Self {
                random,
                ..Self::default()
            };
            let filter = |classes: &[&str]| {
                ExceptionFilter::new(classes.iter().map(ToString::to_string).collect(), Vec::new())
            };
            run.rules = FaultRules {
                skippable: filter(&["RecvError", "ParseBoolError"]),
                retryable: filter(&["fmt::Error", "ParseBoolError"]),
                no_rollback: filter(&["fmt::Error", "ParseBoolError"][run.below(3)..]),
                skip_limit: [None, Some(2), Some(9)][run.below(3)],
                retry_limit: [Some(0), Some(3), Some(20)][run.below(3)],
                max_attempts: [None, Some(1), Some(3)][run.below(3)],
                failed_write_skips_its_list: run.below(4) == 0,
                ..FaultRules::default()
            };
            (run.undoes, run.names_items) = (run.below(2) == 0, run.below(2) == 0);
            run.lists = Lists::new(1 + run.below(6), run.undoes);
            run.failures = (0..run.below(15))
                .map(|_| [0, 0, 1, 2, 99][run.below(5)])
                .collect();
            run
        }

        fn below(&mut self, limit: usize) -> usize {
            let next = self.random.wrapping_mul(6_364_136_223_846_793_005);
            self.random = next.wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.random >> 33).unwrap() % limit
        }

        /// Adds results and writes them. Returns `None` if the step fails.
        fn add(&mut self, results: Range<usize>) -> Option<()> {
            self.results.extend(results);
            let mut outcome = Outcome::Ready;
            for _ in 0..1_000 {
                outcome = match self.lists.next(self.results.len(), outcome) {
                    Action::Done => return Some(()),
                    Action::Write(list) => self.write(list)?,
                    Action::RollBack { .. } => {
                        self.written.clear();
                        Outcome::Ready
                    }
                };
            }
            panic!("the loop does not end");
        }

        fn write(&mut self, list: Range<usize>) -> Option<Outcome> {
            assert!(!list.is_empty() && list.end <= self.results.len());
            assert_eq!(list.start, self.written.len(), "the next result is written");
            let fails = |place: &usize| self.failures[self.results[*place]] > 0;
            let Some(place) = list.clone().find(fails) else {
                self.written.extend(&self.results[list.clone()]);
                return Some(Outcome::Written(list.end));
            };
            let attempt = self.lists.attempt(&list);
            let is_known = list.len() == 1 || (self.names_items && !self.rules.failed_write_skips_its_list);
            let undone = self.undoes && (list.len() == 1 || attempt == Attempt::Search || !is_known);
            self.failures[self.results[place]] -= usize::from(is_known);
            // Items before the one that the writer reports are written.
            if is_known && !undone {
                self.written.extend(&self.results[list.start..place]);
            }
            let error = Arc::new(match self.below(20) {
                0..7 => std::sync::mpsc::RecvError.into(),
                7..13 => std::fmt::Error.into(),
                13..19 => "neither".parse::<bool>().unwrap_err().into(),
                _ => BatchError::msg("fatal"),
            });
            let item = is_known.then_some(place);
            let failed = FailedList {
                error,
                list,
                item,
                undone,
            };
            self.decide(failed, attempt)
        }

        fn decide(&mut self, failed: FailedList, attempt: Attempt) -> Option<Outcome> {
            let (rules, error, items) = (&self.rules, &failed.error, failed.items());
            let numbers = self.lists.numbers(items.clone());
            let fault = Fault {
                attempt,
                ..fault(ItemPhase::Write, error, &numbers)
            };
            let is_skippable = rules.skippable.includes(error);
            let decision = rules
                .decide(&fault, is_skippable, &mut self.budget, String::new)
                .ok()?;
            let in_place = rules.keeps_transaction(error);
            Some(match decision {
                Decision::Retry => Outcome::Retry { failed, in_place },
                Decision::Search { is_retry } => Outcome::Search { failed, is_retry },
                Decision::Skip => {
                    self.lists.skip(&items);
                    self.results.drain(items);
                    Outcome::Skipped(failed)
                }
            })
        }
    }

    /// The loop ends, each result is written or skipped once, and no limit is exceeded.
    // Spec: CHUNK-SKIP-06, CHUNK-RETRY-04, FAULT-02, D-10
    #[test]
    fn each_result_is_written_or_skipped_once() {
        let mut completed = 0;
        for seed in 0..20_000 {
            let mut run = Run::new(seed);
            let all = run.failures.len();
            if run.add(0..all / 2).and_then(|()| run.add(all / 2..all)).is_some() {
                completed += 1;
                assert_eq!(run.written, run.results, "{seed}");
                let mut ends = [run.written, run.lists.dropped].concat();
                ends.sort_unstable();
                assert_eq!(ends, (0..all).collect::<Vec<_>>(), "{seed}");
            }
            assert!(run.rules.retry_limit >= Some(run.budget.retries), "{seed}");
            let limit = run.rules.skip_limit.map_or(u64::MAX, u64::from);
            assert!(run.budget.all_skips() <= limit, "{seed}");
        }
        assert!(completed > 5_000, "{completed}");
    }

    /// A chunk that loses the connection each time ends the step.
    #[test]
    fn lost_connections_are_limited_until_the_next_commit() {
        let mut budget = Budget::default();
        let mut resumed = || [(); 4].map(|()| budget.resume());
        assert_eq!(resumed(), [true, true, true, false]);
        budget.commit(0, 0);
        assert!(budget.resume());
    }

    #[test]
    fn many_retries_without_a_commit_are_logged_ever_more_rarely() {
        let mut budget = Budget::default();
        let error = BatchError::msg("locked");
        (0..9).for_each(|_| budget.count_retry(&error));
        assert_eq!(budget.since_commit.retries, 9);
        let logged = (0..40).filter(|retries| is_logged(*retries));
        assert_eq!(logged.collect::<Vec<_>>(), [8, 16, 32]);
        budget.commit(0, 0);
        assert_eq!(budget.since_commit.retries, 0);
    }

    /// The first retries run at once; later ones after ever longer pauses, until the next commit.
    // Spec: CHUNK-RETRY-16, D-07
    #[test]
    fn pauses_grow_until_the_next_commit() {
        let mut budget = Budget::default();
        let mut pauses = |count| -> Vec<_> { (0..count).map(|_| budget.pause(BackOff::default())).collect() };
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(pauses(7), [None, None, None, ms(1), ms(2), ms(4), ms(8)]);
        assert_eq!(pauses(20).last(), Some(&ms(1000)));
        budget.commit(0, 0);
        assert_eq!(budget.pause(BackOff::default()), None);
    }

    /// What other items have failed does not lengthen the pauses of a call that is repeated alone.
    // Spec: CHUNK-RETRY-16, FAULT-05, D-07
    #[test]
    fn pauses_of_a_repeated_call_are_those_of_its_item() {
        let (mut budget, error) = (Budget::default(), Arc::new(BatchError::msg("locked")));
        let faults = [&[0], &[1]].map(|numbers| fault(ItemPhase::Process, &error, numbers));
        (0..7).for_each(|_| budget.count_failure(&faults[0]));
        budget.count_failure(&faults[1]);
        budget.since_commit.attempts = 8;
        let pauses = faults.map(|fault| budget.call_pause(&fault, BackOff::default()));
        assert_eq!(pauses, [Some(Duration::from_millis(8)), None]);
    }

    /// A commit of the items before it does not forget how often an item has failed.
    // Spec: FAULT-02
    #[test]
    fn failures_move_with_their_items() {
        let (mut budget, error) = (Budget::default(), Arc::new(BatchError::msg("locked")));
        let faults = [&[1][..], &[2], &[2, 5]].map(|numbers| fault(ItemPhase::Write, &error, numbers));
        budget.count_failure(&fault(ItemPhase::Process, &error, &[4]));
        budget.count_failure(&faults[2]);
        budget.count_failure(&fault(ItemPhase::Write, &error, &[5]));
        let failures = |budget: &Budget| faults.each_ref().map(|fault| budget.failures(fault).unwrap());
        assert_eq!(failures(&budget), [1, 2, 3]);
        budget.commit(3, 3);
        assert_eq!(failures(&budget), [1, 3, 3]);
        assert_eq!(budget.failures(&fault(ItemPhase::Process, &error, &[1])), Some(2));
        budget.commit(3, 3);
        assert_eq!(failures(&budget), [1, 1, 1]);
    }
}
