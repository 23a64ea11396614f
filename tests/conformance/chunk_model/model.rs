//! The rules of the catalogue for one chunk step: 4.2.1, 4.2.1.2, 4.2.1.3, D-04 to D-15. Implemented as plainly as
//! possible: items are searched one by one, nothing is typed, nothing is stored.

use std::ops::Range;

use super::case::{Case, Class, Phase, Plan};

/// The result of an execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) completed: bool,
    pub(crate) reads: i64,
    pub(crate) writes: i64,
    pub(crate) filters: i64,
    pub(crate) commits: i64,
    pub(crate) rollbacks: i64,
    pub(crate) read_skips: i64,
    pub(crate) process_skips: i64,
    pub(crate) write_skips: i64,
}

impl Outcome {
    fn skips(&self) -> i64 {
        self.read_skips + self.process_skips + self.write_skips
    }
}

/// The number of calls of each listener method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notified {
    pub(crate) skips_in_read: u32,
    pub(crate) skips_in_process: u32,
    pub(crate) skips_in_write: u32,
    pub(crate) retry_exceptions: u32,
    pub(crate) retry_items: u32,
}

/// One job instance.
pub(crate) struct Model<'c> {
    case: &'c Case,
    plan: Plan,
    pub(crate) notified: Notified,
    /// The committed items, in the order of writing.
    pub(crate) written: Vec<u64>,
    /// The reader's checkpoint.
    position: u64,
    step: Outcome,
    /// The skips of earlier executions, which the limit counts too.
    earlier_skips: i64,
    retries: u32,
    /// The case takes too long, because there are too many retries.
    pub(crate) endless: bool,
}

/// The next step for the items that are not written.
#[derive(Default)]
enum Next {
    #[default]
    Lists,
    /// Write these alone, after the retry listeners were called.
    Retry { items: Range<usize>, class: Class },
    /// Write one by one up to here.
    Search(usize),
}

#[derive(Default)]
struct Interval {
    position: u64,
    /// What it adds to the counters of the step.
    counts: Outcome,
    /// The results since the last checkpoint.
    results: Vec<u64>,
    written: usize,
    next: Next,
}

enum End {
    Failed,
    ReadAgain(Next),
}

/// The maximum number of retries before a case is given up.
const MOST_RETRIES: u32 = 12;

impl<'c> Model<'c> {
    pub(crate) fn new(case: &'c Case) -> Self {
        Self {
            case,
            plan: Plan::new(case),
            notified: Notified::default(),
            written: Vec::new(),
            position: 0,
            step: Outcome::default(),
            earlier_skips: 0,
            retries: 0,
            endless: false,
        }
    }

    /// Runs the next execution of the instance.
    pub(crate) fn execute(&mut self) -> Outcome {
        self.earlier_skips += std::mem::take(&mut self.step).skips();
        self.retries = 0;
        let mut next = Next::Lists;
        loop {
            let mut interval = Interval {
                position: self.position,
                next: std::mem::take(&mut next),
                ..Interval::default()
            };
            match self.interval(&mut interval) {
                Ok(at_the_end) => {
                    self.commit(interval);
                    if at_the_end {
                        self.step.completed = true;
                        return self.step.clone();
                    }
                }
                Err(End::Failed) => {
                    self.step.rollbacks += 1;
                    return self.step.clone();
                }
                Err(End::ReadAgain(again)) => {
                    self.step.rollbacks += 1;
                    next = again;
                }
            }
        }
    }

    fn commit(&mut self, interval: Interval) {
        let (step, counts) = (&mut self.step, interval.counts);
        step.commits += 1;
        step.reads += counts.reads;
        step.filters += counts.filters;
        step.read_skips += counts.read_skips;
        step.process_skips += counts.process_skips;
        step.write_skips += counts.write_skips;
        step.writes += i64::try_from(interval.results.len()).expect("few");
        self.position = interval.position;
        self.written.extend(interval.results);
    }

    /// Returns `true` at the end of the input. CHUNK-LOOP-03 to 09, D-05, D-06
    fn interval(&mut self, interval: &mut Interval) -> Result<bool, End> {
        loop {
            let item = self.read(interval)?;
            if let Some(item) = item {
                interval.counts.reads += 1;
                self.process(item, interval)?;
            }
            let due = interval.counts.reads >= i64::from(self.case.commit_interval);
            if item.is_none() || due {
                self.write(interval)?;
                return Ok(item.is_none());
            }
            if interval.results.len() - interval.written >= self.case.write_batch() {
                self.write(interval)?;
            }
        }
    }

    /// CHUNK-SKIP-09
    fn read(&mut self, interval: &mut Interval) -> Result<Option<u64>, End> {
        while interval.position < self.case.items {
            let item = interval.position + 1;
            let Some(thrown) = self.plan.throws(Phase::Read, item) else {
                interval.position = item;
                return Ok(Some(item));
            };
            if thrown.named {
                interval.position = item;
            }
            self.skip(thrown.class, interval)?;
            interval.counts.read_skips += 1;
            self.notified.skips_in_read += 1;
        }
        Ok(None)
    }

    /// CHUNK-SKIP-10, CHUNK-LOOP-05
    fn process(&mut self, item: u64, interval: &mut Interval) -> Result<(), End> {
        if let Some(thrown) = self.plan.throws(Phase::Process, item) {
            self.skip(thrown.class, interval)?;
            interval.counts.process_skips += 1;
            self.notified.skips_in_process += 1;
        } else if item.is_multiple_of(self.case.filter) {
            interval.counts.filters += 1;
        } else {
            interval.results.push(item);
        }
        Ok(())
    }

    /// CHUNK-SKIP-05 to 08
    fn skip(&self, class: Class, interval: &Interval) -> Result<(), End> {
        let skips = self.earlier_skips + self.step.skips() + interval.counts.skips();
        let allowed = self.case.skip_limit.is_none_or(|limit| skips < i64::from(limit));
        (class.is_skippable() && allowed).then_some(()).ok_or(End::Failed)
    }

    fn write(&mut self, interval: &mut Interval) -> Result<(), End> {
        while interval.written < interval.results.len() {
            let (first, end) = (interval.written, interval.results.len());
            let until = |to: usize| first..end.min(to).min(first + self.case.write_batch());
            let list = match &interval.next {
                Next::Lists => until(end),
                Next::Retry { items, .. } if first < items.start => until(items.start),
                Next::Retry { items, .. } if first == items.start => {
                    self.tell_again(interval)?;
                    match &interval.next {
                        Next::Retry { items, .. } => items.clone(),
                        _ => continue,
                    }
                }
                Next::Search(to) if first < *to => first..first + 1,
                Next::Retry { .. } | Next::Search(_) => {
                    interval.next = Next::Lists;
                    continue;
                }
            };
            let Some((thrown, place)) = self.plan.write(&interval.results[list.clone()]) else {
                interval.written = list.end;
                continue;
            };
            let known = (thrown.named || list.len() == 1).then_some(list.start + place);
            self.write_failed(interval, list, known, thrown.class)?;
        }
        Ok(())
    }

    /// CHUNK-RETRY-08, step 3; LISTEN-RETRY-09, LISTEN-RETRY-10
    fn tell_again(&mut self, interval: &mut Interval) -> Result<(), End> {
        let Next::Retry { items, class } = &interval.next else {
            return Ok(());
        };
        let (class, first, mut end) = (*class, items.start, items.end);
        let mut place = first;
        while self.case.listened && place < end {
            let item = interval.results[place];
            self.notified.retry_items += 1;
            match self.plan.throws(Phase::OnRetryItem, item) {
                None => place += 1,
                Some(thrown) => {
                    self.skip(thrown.class, interval)?;
                    interval.results.remove(place);
                    interval.counts.write_skips += 1;
                    self.notified.skips_in_write += 1;
                    end -= 1;
                }
            }
        }
        let items = first..end;
        interval.next = match items.is_empty() {
            true => Next::Lists,
            false => Next::Retry { items, class },
        };
        Ok(())
    }

    /// D-08 to D-13
    fn write_failed(
        &mut self,
        interval: &mut Interval,
        list: Range<usize>,
        known: Option<usize>,
        class: Class,
    ) -> Result<(), End> {
        let again = matches!(&interval.next, Next::Retry { items, .. } if items.start == list.start);
        let left = self.case.retry_limit.is_none_or(|limit| self.retries < limit);
        if class.is_retryable() && left && !(again && class.is_skippable()) {
            self.retries += 1;
            if self.retries > MOST_RETRIES {
                self.endless = true;
                return Err(End::Failed);
            }
            let items = match known {
                Some(place) => place..place + 1,
                None if class.has_no_rollback() => list,
                None => return self.roll_back(interval, Next::Search(list.end)),
            };
            let forced = self.call_retry_listeners(&interval.results[items.clone()])?;
            let start = items.start;
            let next = Next::Retry { items, class };
            if forced || !class.has_no_rollback() {
                return self.roll_back(interval, next);
            }
            interval.written = start;
            interval.next = next;
            return Ok(());
        }
        self.skip(class, interval)?;
        let Some(place) = known else {
            return self.roll_back(interval, Next::Search(list.end));
        };
        interval.results.remove(place);
        interval.counts.write_skips += 1;
        self.notified.skips_in_write += 1;
        let before = |to: usize| to - usize::from(place < to);
        match &mut interval.next {
            Next::Lists => {}
            Next::Search(to) => *to = before(*to),
            Next::Retry { items, .. } => *items = before(items.start)..before(items.end),
        }
        if matches!(&interval.next, Next::Retry { items, .. } if items.is_empty()) {
            interval.next = Next::Lists;
        }
        if list.len() > 1 {
            let next = std::mem::take(&mut interval.next);
            return self.roll_back(interval, next);
        }
        Ok(())
    }

    /// Returns `true` when a listener throws, which forces a rollback. LISTEN-RETRY-04, D-15
    fn call_retry_listeners(&mut self, items: &[u64]) -> Result<bool, End> {
        if !self.case.listened {
            return Ok(false);
        }
        for item in items {
            self.notified.retry_exceptions += 1;
            match self.plan.throws(Phase::OnRetryException, *item) {
                None => {}
                Some(thrown) if thrown.class == Class::Panic => return Err(End::Failed),
                Some(_) => return Ok(true),
            }
        }
        Ok(false)
    }

    /// D-12
    fn roll_back(&mut self, interval: &mut Interval, next: Next) -> Result<(), End> {
        if !self.case.buffer_reads {
            return Err(End::ReadAgain(next));
        }
        self.step.rollbacks += 1;
        interval.written = 0;
        interval.next = next;
        Ok(())
    }
}
