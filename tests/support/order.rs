//! The order of the calls of a chunk step: an automaton that accepts exactly the orders of Appendix B.2 of the
//! catalogue.
//!
//! It reads the log that recording artifacts write: the call, its argument, and ` !Class` if it threw.

use std::collections::BTreeSet;

use Kind::*;

/// A call of an artifact, as its words in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    OpenReader,
    OpenWriter,
    Begin,
    BeforeRead,
    Read,
    AfterRead,
    OnReadError,
    SkipInRead,
    BeforeProcess,
    Process,
    AfterProcess,
    OnProcessError,
    SkipInProcess,
    Ready,
    BeforeWrite,
    Write,
    AfterWrite,
    OnWriteError,
    RetryException,
    RetryItem,
    SkipInWrite,
    BeforeCheckpoint,
    ReaderCheckpoint,
    WriterCheckpoint,
    End,
    AfterCheckpoint,
    Finish,
    CloseWriter,
    CloseReader,
}

/// The calls by the words that they begin with; longer words precede their prefixes.
const WORDS: &[(&str, Kind)] = &[
    ("open reader", OpenReader),
    ("open writer", OpenWriter),
    ("begin checkpoint", Begin),
    ("before read", BeforeRead),
    ("read ", Read),
    ("after read", AfterRead),
    ("on read error", OnReadError),
    ("on skip in read", SkipInRead),
    ("before process", BeforeProcess),
    ("process ", Process),
    ("after process", AfterProcess),
    ("on process error", OnProcessError),
    ("on skip in process", SkipInProcess),
    ("ready?", Ready),
    ("before write", BeforeWrite),
    ("write ", Write),
    ("after write", AfterWrite),
    ("on write error", OnWriteError),
    ("on retry exception", RetryException),
    ("on retry item", RetryItem),
    ("on skip in write", SkipInWrite),
    ("before checkpoint", BeforeCheckpoint),
    ("checkpoint reader", ReaderCheckpoint),
    ("checkpoint writer", WriterCheckpoint),
    ("end checkpoint", End),
    ("after checkpoint", AfterCheckpoint),
    ("finish", Finish),
    ("close writer", CloseWriter),
    ("close reader", CloseReader),
];

/// The calls that listeners, checkpoint algorithms and some writers receive; one without a receiver is skipped.
const OPTIONAL: &[Kind] = &[
    Begin,
    BeforeRead,
    AfterRead,
    OnReadError,
    SkipInRead,
    BeforeProcess,
    AfterProcess,
    OnProcessError,
    SkipInProcess,
    Ready,
    BeforeWrite,
    AfterWrite,
    OnWriteError,
    RetryException,
    RetryItem,
    SkipInWrite,
    BeforeCheckpoint,
    End,
    AfterCheckpoint,
    Finish,
];

/// Returns the calls that may follow a call that returned; further listeners repeat its call. `known`: the writer
/// failed at one item, or named it; else its list is searched, or written again as a whole.
fn after(kind: Kind, known: bool) -> &'static [Kind] {
    match kind {
        OpenReader => &[OpenWriter],
        OpenWriter => &[Begin],
        Begin => &[BeforeRead, BeforeCheckpoint],
        BeforeRead => &[Read],
        // The end of the input is handled in `Order::next`.
        Read => &[AfterRead],
        AfterRead => &[BeforeProcess],
        // The last one fails if its skip is not allowed.
        OnReadError => &[SkipInRead, CloseWriter],
        SkipInRead => &[BeforeRead, RetryItem, BeforeWrite, BeforeCheckpoint],
        BeforeProcess => &[Process],
        Process => &[AfterProcess],
        AfterProcess => &[Ready],
        OnProcessError => &[SkipInProcess, CloseWriter],
        SkipInProcess => &[Ready],
        Ready => &[BeforeRead, RetryItem, BeforeWrite, BeforeCheckpoint],
        BeforeWrite => &[Write],
        Write => &[AfterWrite],
        AfterWrite => &[BeforeRead, BeforeWrite, RetryItem, BeforeCheckpoint],
        OnWriteError if known => &[RetryException, SkipInWrite, CloseWriter],
        OnWriteError => &[RetryException, BeforeWrite, CloseReader, CloseWriter],
        // After a rollback the writer is opened again; before items are read again, the reader too.
        RetryException => &[RetryItem, BeforeWrite, CloseReader, CloseWriter],
        RetryItem => &[BeforeWrite],
        SkipInWrite => &[BeforeRead, BeforeWrite, RetryItem, BeforeCheckpoint, CloseWriter],
        BeforeCheckpoint => &[ReaderCheckpoint],
        ReaderCheckpoint => &[WriterCheckpoint],
        WriterCheckpoint => &[End],
        End => &[AfterCheckpoint],
        AfterCheckpoint => &[Begin, Finish],
        Finish => &[CloseWriter],
        CloseWriter => &[CloseReader],
        // The step is over; the log may continue with another execution.
        CloseReader => &[OpenReader],
    }
}

/// Returns the calls that may follow a call that threw; an unhandled error ends the step.
fn after_throw(kind: Kind, known: bool) -> &'static [Kind] {
    match kind {
        OpenWriter => &[CloseReader],
        Read => &[OnReadError],
        Process => &[OnProcessError],
        Write => &[OnWriteError],
        // All retry listeners are called, even if one of them throws.
        RetryException => after(RetryException, known),
        RetryItem => &[SkipInWrite, CloseWriter],
        CloseWriter | CloseReader => after(kind, known),
        _ => &[CloseWriter],
    }
}

/// Parses a line of the log.
struct Call<'l> {
    kind: Kind,
    about: &'l str,
    thrown: Option<&'l str>,
}

impl<'l> Call<'l> {
    /// Listeners write their name before the call.
    fn parse(line: &'l str) -> Option<Self> {
        let (text, thrown) = match line.split_once(" !") {
            Some((text, class)) => (text, Some(class)),
            None => (line, None),
        };
        let known = |text: &'l str| {
            WORDS.iter().find_map(|(words, kind)| {
                let about = text.strip_prefix(words)?.trim();
                Some(Self {
                    kind: *kind,
                    about,
                    thrown,
                })
            })
        };
        known(text).or_else(|| known(text.split_once(' ')?.1))
    }

    fn is_the_end(&self) -> bool {
        self.kind == Read && self.about == "the end"
    }
}

/// Returns the items of a list, as numbers.
fn items(list: &str) -> Vec<u64> {
    list.split(' ')
        .filter_map(|item| item.strip_prefix('n')?.parse().ok())
        .collect()
}

/// The automaton.
#[derive(Default)]
pub struct Order {
    /// The optional calls that have a receiver.
    received: BTreeSet<Kind>,
    /// The processed items since the last commit.
    processed: BTreeSet<u64>,
    /// The last item read, and the list that is being written.
    item: String,
    list: String,
    /// True if the item of the last failed write is known.
    known: bool,
    /// The items whose retry listeners are called again before they are written.
    retried: BTreeSet<u64>,
    telling: bool,
    /// The items among them whose listeners have been called again, and whether one threw.
    notified: BTreeSet<u64>,
    refused: bool,
    /// The item that is passed to the skip listeners, one by one.
    skipped: Option<u64>,
    /// True if reader and writer may be opened again.
    reopened: bool,
    reader_is_open: bool,
    writer_is_open: bool,
    /// True if the reader has just been opened again.
    reread: bool,
    /// True if this interval is read again.
    read_again: bool,
    /// True if the step may fail between any two calls.
    disturbed: bool,
}

impl Order {
    /// Creates the automaton for a step whose listener, and whose checkpoint algorithm, record every call.
    pub fn listening(listener: bool, algorithm: bool) -> Self {
        let is_received = |kind: &Kind| match kind {
            Finish => false,
            Begin | Ready | End => algorithm,
            _ => listener,
        };
        Self {
            received: OPTIONAL.iter().copied().filter(is_received).collect(),
            ..Self::default()
        }
    }

    /// Creates the automaton for a step whose repository may fail at any time between the calls.
    pub fn disturbed() -> Self {
        Self {
            disturbed: true,
            ..Self::default()
        }
    }

    /// Checks like `check`, for a process that may have died at any time.
    ///
    /// # Errors
    /// As `check`.
    pub fn check_until_death(mut self, log: &[String]) -> Result<(), String> {
        self.allowed_after(log).map(drop)
    }

    /// Checks the log of one or more executions of a chunk step. A call that has a receiver must be there each time.
    ///
    /// # Errors
    /// The first call that is out of order.
    pub fn check(mut self, log: &[String]) -> Result<(), String> {
        let allowed = self.allowed_after(log)?;
        if allowed.contains(&OpenReader) && !self.reader_is_open {
            Ok(())
        } else {
            Err(format!("the log ends early; allowed: {allowed:?}"))
        }
    }

    fn allowed_after(&mut self, log: &[String]) -> Result<Vec<Kind>, String> {
        let calls: Option<Vec<_>> = log.iter().map(|line| Call::parse(line)).collect();
        let calls = calls.ok_or("a line of the log is no call")?;
        self.received.extend(calls.iter().map(|call| call.kind));
        let mut allowed = vec![OpenReader];
        for (number, call) in calls.iter().enumerate() {
            let line = &log[number];
            if !allowed.contains(&call.kind) {
                return Err(format!(
                    "call {}, `{line}`, must not come here; allowed: {allowed:?}",
                    number + 1
                ));
            }
            self.follow(call)
                .map_err(|problem| format!("call {}, `{line}`: {problem}", number + 1))?;
            allowed = self.next(call);
        }
        Ok(allowed)
    }

    /// Returns the calls that may come next. Optional calls without a receiver are skipped.
    fn next(&mut self, call: &Call<'_>) -> Vec<Kind> {
        let panicked = call.thrown == Some("Panic");
        let mut open: Vec<Kind> = match call.kind {
            // Opened again after a rollback, or the attempt failed.
            OpenReader if self.reopened && self.reader_is_open => vec![Begin, CloseWriter],
            OpenReader if self.reopened => vec![CloseWriter],
            OpenReader if !self.reader_is_open => vec![OpenReader],
            CloseWriter if self.reader_is_open && self.reopened => vec![OpenWriter, CloseReader],
            OpenWriter if self.reopened && self.writer_is_open && self.reread => vec![Begin],
            OpenWriter if self.reopened && self.writer_is_open => {
                vec![RetryItem, BeforeWrite, BeforeCheckpoint]
            }
            CloseWriter if !self.reader_is_open => vec![OpenReader],
            _ if call.is_the_end() && call.thrown.is_none() => vec![BeforeWrite, BeforeCheckpoint],
            // This listener threw, or one before it.
            kind if call.thrown.is_some() || self.refused => after_throw(kind, self.known).to_vec(),
            kind => after(kind, self.known).to_vec(),
        };
        let fails = panicked || self.disturbed;
        if fails && !matches!(call.kind, OpenReader | OpenWriter | CloseWriter | CloseReader) {
            open.push(CloseWriter);
        }
        let repeats = OPTIONAL.contains(&call.kind)
            && !matches!(call.kind, Begin | Ready | End | Finish)
            && (call.thrown.is_none() || matches!(call.kind, RetryException | RetryItem));
        let mut allowed: Vec<Kind> = repeats.then_some(call.kind).into_iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(kind) = open.pop() {
            if !seen.insert(kind) {
                continue;
            }
            if OPTIONAL.contains(&kind) && !self.received.contains(&kind) {
                open.extend(after(kind, self.known));
            } else {
                allowed.push(kind);
            }
        }
        allowed
    }

    /// Checks the argument of the call against the calls before it.
    fn follow(&mut self, call: &Call<'_>) -> Result<(), String> {
        let same = |what: &str, expected: &str| {
            if what == expected {
                Ok(())
            } else {
                Err(format!("the calls before were about `{expected}`"))
            }
        };
        match call.kind {
            OpenReader => {
                self.processed.clear();
                self.reader_is_open = call.thrown.is_none();
                // Items that are read again may differ: then only their position shows which one is retried.
                self.retried.clear();
                self.read_again = self.reopened;
            }
            CloseReader => self.reader_is_open = false,
            OpenWriter => self.writer_is_open = call.thrown.is_none(),
            CloseWriter => self.writer_is_open = false,
            Read => call.about.clone_into(&mut self.item),
            AfterRead | BeforeProcess => same(call.about, &self.item)?,
            AfterProcess => same(call.about.split(' ').next().unwrap_or_default(), &self.item)?,
            OnProcessError | SkipInProcess => {
                same(call.about.rsplit(' ').next().unwrap_or_default(), &self.item)?;
            }
            Process => {
                same(call.about, &self.item)?;
                if call.thrown.is_none() {
                    self.processed.extend(self.item.parse::<u64>());
                }
            }
            BeforeWrite => call.about.clone_into(&mut self.list),
            Write => {
                if self.received.contains(&BeforeWrite) {
                    same(call.about, &self.list)?;
                }
                call.about.clone_into(&mut self.list);
                let items = items(call.about);
                self.known = items.len() == 1 || call.thrown.is_some_and(|class| class.starts_with('@'));
                if call.thrown.is_some() && !self.known {
                    self.retried.clear();
                }
                if self.received.contains(&RetryItem)
                    && let Some(item) = items.iter().find(|item| self.retried.contains(item))
                {
                    return Err(format!(
                        "the retry listeners were not called again with item {item}"
                    ));
                }
                if items.is_empty() {
                    return Err("the list is empty".to_owned());
                }
                if !items.is_sorted_by(|one, other| one < other) {
                    return Err("the items are not in reading order".to_owned());
                }
                if let Some(other) = items.iter().find(|item| !self.processed.contains(item)) {
                    return Err(format!("item {other} was not processed since the last commit"));
                }
            }
            AfterWrite => same(call.about, &self.list)?,
            OnWriteError => {
                let list = call.about.split_once(' ').map_or("", |(_, list)| list);
                same(list, &self.list)?;
            }
            SkipInWrite => {
                let skipped = call.about.rsplit(' ').next().unwrap_or_default();
                for item in items(skipped) {
                    self.retried.remove(&item);
                    if !self.processed.remove(&item) && self.skipped != Some(item) {
                        return Err("the item is not there to be skipped".to_owned());
                    }
                    self.skipped = Some(item);
                }
            }
            RetryException => {
                // For an item, or for each item of a list.
                if !self.telling {
                    self.retried.clear();
                }
                let retried = call.about.rsplit(' ').next().unwrap_or_default();
                // The rest of a list is repeated too, if a listener throws at one of its items.
                let again = if self.known { retried } else { &self.list };
                self.retried.extend(items(again));
            }
            RetryItem => {
                let retried = call.about.rsplit(' ').next().unwrap_or_default();
                for item in items(retried) {
                    if self.received.contains(&RetryException)
                        && !self.read_again
                        && !self.retried.contains(&item)
                        && !self.notified.contains(&item)
                    {
                        return Err("the item does not wait for a retry".to_owned());
                    }
                    self.retried.remove(&item);
                    self.notified.insert(item);
                }
            }
            WriterCheckpoint if call.thrown.is_none() => {
                self.processed.clear();
                self.read_again = false;
            }
            _ => {}
        }
        self.telling = call.kind == RetryException;
        self.skipped = self.skipped.filter(|_| call.kind == SkipInWrite);
        self.refused = call.kind == RetryItem && (self.refused || call.thrown.is_some());
        if call.kind == Write {
            self.notified.clear();
        }
        // Only after a failed write.
        self.reread = match call.kind {
            OpenReader => self.reopened,
            CloseWriter | OpenWriter => self.reread,
            _ => false,
        };
        self.reopened = match call.kind {
            // Both are closed: the step is over.
            CloseReader => self.reopened && self.writer_is_open,
            OpenReader | CloseWriter | OpenWriter => self.reopened,
            Write | OnWriteError | RetryException | SkipInWrite => true,
            _ => false,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(log: &[&str]) -> Option<String> {
        let log: Vec<String> = log.iter().map(ToString::to_string).collect();
        Order::default().check(&log).err()
    }

    /// The same with all listeners.
    fn problem_with_listeners(log: &[&str]) -> Option<String> {
        let log: Vec<String> = log.iter().map(ToString::to_string).collect();
        Order::listening(true, true).check(&log).err()
    }

    /// A whole run: two items are written, one of them again alone after a rollback, and one read is skipped.
    const RIGHT: &[&str] = &[
        "open reader at 0",
        "open writer at 0",
        "begin checkpoint",
        "L before read",
        "read 1",
        "L after read 1",
        "L before process 1",
        "process 1",
        "L after process 1 Some(\"n1\")",
        "ready? false",
        "L before read",
        "read 2 !Skip",
        "L on read error Skip",
        "L on skip in read Skip",
        "L before read",
        "read 3",
        "L after read 3",
        "L before process 3",
        "process 3",
        "L after process 3 Some(\"n3\")",
        "ready? true",
        "L before write n1 n3",
        "write n1 n3 !@Retry",
        "L on write error Retry n1 n3",
        "L on retry exception Retry n3",
        "L before write n1",
        "write n1",
        "L after write n1",
        "L on retry item Retry n3",
        "L before write n3",
        "write n3",
        "L after write n3",
        "L before checkpoint",
        "checkpoint reader at 3",
        "checkpoint writer",
        "end checkpoint",
        "L after checkpoint",
        "begin checkpoint",
        "L before read",
        "read the end",
        "L before checkpoint",
        "checkpoint reader at 3",
        "checkpoint writer",
        "end checkpoint",
        "L after checkpoint",
        "close writer",
        "close reader",
    ];

    #[test]
    fn a_right_order_is_accepted() {
        assert_eq!(problem(RIGHT), None);
    }

    /// Omitting any call, or moving it one place forward, makes the order wrong.
    #[test]
    fn every_call_has_its_place() {
        for place in 0..RIGHT.len() {
            let mut without = RIGHT.to_vec();
            let call = without.remove(place);
            assert!(
                problem_with_listeners(&without).is_some(),
                "without call {place}, `{call}`"
            );
            let mut twice = RIGHT.to_vec();
            twice.swap(place, (place + 1) % RIGHT.len());
            assert!(
                problem_with_listeners(&twice).is_some(),
                "`{call}` at {place} is late"
            );
        }
        for end in 0..RIGHT.len() {
            assert!(
                problem_with_listeners(&RIGHT[..end]).is_some() || end == 0,
                "ends at {end}"
            );
        }
    }

    /// The argument of a call is checked as well as its place.
    #[test]
    fn every_call_is_about_the_right_items() {
        for (place, wrong) in [
            (5, "L after read 2"),
            (6, "L before process 2"),
            (7, "process 2"),
            (8, "L after process 2 Some(\"n2\")"),
            (21, "L before write n1"),
            (22, "write n3 n1 !@Retry"),
            (22, "write n1 n2 !@Retry"),
            (23, "L on write error Retry n1"),
            (27, "L after write n3"),
            (30, "write n4"),
            (11, "read 2"),
            (39, "read 4"),
            (2, "nonsense"),
        ] {
            let mut changed = RIGHT.to_vec();
            changed[place] = wrong;
            assert!(problem(&changed).is_some(), "{wrong}");
        }
    }

    /// If the repository may fail, a step may be closed early, but never left open; if its process may die, also that.
    #[test]
    fn a_disturbed_step_may_end_early() {
        let started: Vec<String> = RIGHT[..8].iter().map(ToString::to_string).collect();
        let closed: Vec<String> = [&RIGHT[..8], &["close writer", "close reader"]]
            .concat()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(Order::default().check(&closed).is_err());
        assert_eq!(Order::disturbed().check(&closed), Ok(()));
        assert!(Order::disturbed().check(&started).is_err());
        assert_eq!(Order::disturbed().check_until_death(&started), Ok(()));
        let wrong: Vec<String> = started.into_iter().skip(1).collect();
        assert!(Order::disturbed().check_until_death(&wrong).is_err());
    }

    /// Committed items do not occur again, a failed step is closed, and items are read again only after a failed write.
    #[test]
    fn the_rest_of_the_rules() {
        let until = |end: usize, rest: &[&'static str]| [&RIGHT[..end], rest].concat();
        let closed = ["close writer", "close reader"];
        assert_eq!(problem(&until(24, &closed)), None, "neither retried nor skipped");
        assert_eq!(problem(&until(13, &closed)), None, "a read that is not skipped");
        assert_eq!(
            problem(&until(11, &["read 2 !Panic", closed[0], closed[1]])),
            None
        );
        assert!(problem(&until(10, &closed)).is_some(), "closed for no reason");
        assert!(problem(&until(24, &["close reader", "close writer"])).is_some());
        assert!(problem(&until(37, &["begin checkpoint", "L before write n3", "write n3"])).is_some());
        let again = ["close reader", "open reader at 0", "begin checkpoint"];
        let read_again = [&RIGHT[..25], &again, &RIGHT[3..21], &RIGHT[25..]].concat();
        assert_eq!(problem(&read_again), None);
        let writer = ["close writer", "open writer at 0"];
        let written_again = [&RIGHT[..25], &writer, &RIGHT[25..]].concat();
        assert_eq!(problem(&written_again), None);
        let both_again = [&RIGHT[..25], &again[..2], &writer, &RIGHT[2..21], &RIGHT[25..]].concat();
        assert_eq!(problem(&both_again), None);
        assert!(problem(&[&RIGHT[..21], &writer, &RIGHT[21..]].concat()).is_some());
        assert!(problem(&[&RIGHT[..21], &again, &RIGHT[3..]].concat()).is_some());
    }
}
