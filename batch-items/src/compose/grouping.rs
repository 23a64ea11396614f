//! A reader whose items are groups of items, such as an order with its lines.

use std::fmt;
use std::num::NonZeroUsize;

use batch_runtime::BatchArtifact;
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

use super::dropped::Origins;
use super::peek::PeekableItemReader;
use super::traits::ReadItems;

/// Reads the items of another reader in groups, such as the lines of an order: each item is a `Vec` of them.
///
/// The rule `G` says where groups begin: [`group_rule!`](crate::group_rule) declares one, by a key or at headers, [`BySize`] counts, and
/// programs can implement [`GroupRule`]. The first item of a group that begins at a header is the header. Items with equal keys have to
/// follow each other: the reader does not sort. A group may continue in the next file.
///
/// | property | default | |
/// |---|---|---|
/// | `max.group.size` | `10000` | the number of items of the largest group, which is kept in memory; a larger one is a [`GroupError`] |
///
/// It has the other properties of the inner reader, without a prefix, and of the rule.
///
/// **A group is read as a whole or not at all.** The checkpoint is the position of the first item of the next group, so a restart begins
/// with it; input that is appended to the last group after that group was read is another group, or an error before the next header.
///
/// **An item that cannot be read** is an error of the inner reader, as without groups. If the job skips it, its group is skipped too. By a
/// key it may belong to the group before it or to the one after it, so both are skipped. At headers, everything is skipped up to the next
/// header: if the bad item was one, its details do not become part of the order before it. Groups of a [size](BySize) are different: the
/// group ends before the bad item, and no other item is skipped. Each bad item counts as one skip, the other items of its group as none:
/// the limit of skips counts bad items. A [`RejectListener`](crate::RejectListener) writes all of them, each with its text, as far as the
/// inner reader knows it. If more than `max.group.size` items are passed over, each further part of this size is a [`GroupError`].
///
/// **An item before the first header** is a [`GroupError`]. If the job skips it, reading continues at the first header.
///
/// ```
/// use batch_items::{DelimitedItemReader, GroupingItemReader};
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Deserialize)]
/// struct OrderLine {
///     order: u64,
///     article: String,
///     cents: i64,
/// }
///
/// batch_items::group_rule!(ByOrder: key |line: &OrderLine| line.order);
///
/// #[item_reader("OrderReader")]
/// type OrderReader = GroupingItemReader<DelimitedItemReader<OrderLine>, ByOrder>;
///
/// batch_items::function_processor!(Total("Total"): |order: &Vec<OrderLine>| -> Option<i64> {
///     Some(order.iter().map(|line| line.cents).sum())
/// });
/// ```
#[derive(BatchArtifact)]
pub struct GroupingItemReader<R, G>
where
    R: ReadItems,
{
    #[batch_artifact]
    items: PeekableItemReader<R>,
    #[batch_artifact]
    rule: G,
    #[batch_property(name = "max.group.size", value = "10000")]
    max_group_size: NonZeroUsize,
    /// True after an error, until the next item that is certain to be the first of its group.
    passing: bool,
    /// The origins of the items of the group.
    origins: Origins,
    counts: GroupCounts,
    /// The position after the item that could not be read last, as JSON, if no item was read since.
    failed_at: Option<String>,
    /// `None` outside of a step.
    #[batch_context]
    step: Option<StepContext>,
}

/// The checkpoint of a [`GroupingItemReader`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupPosition<P> {
    /// The position of the inner reader, before the first item of the next group.
    pub next: P,
    /// Whether the rest of a group that could not be read comes first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passing: bool,
    /// What has been read so far.
    pub counts: GroupCounts,
}

/// The items that a [`GroupingItemReader`] has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupCounts {
    /// All of them, with those that could not be read.
    pub read: u64,
    /// Those in the groups that it has returned.
    pub grouped: u64,
}

/// How a [`GroupingItemReader`] makes groups.
///
/// ```
/// use batch_items::compose::{GroupPart, GroupRule};
/// use batch_runtime::prelude::*;
///
/// struct Click {
///     second: u64,
/// }
///
/// /// Clicks with at most so many seconds between them are a visit.
/// #[derive(BatchArtifact)]
/// struct Visits {
///     #[batch_property(name = "gap", value = "1800")]
///     gap: u64,
/// }
///
/// impl GroupRule<Click> for Visits {
///     fn part(&self, previous: Option<&Click>, click: &Click) -> Result<GroupPart, BatchError> {
///         Ok(match previous {
///             Some(previous) if click.second <= previous.second + self.gap => GroupPart::Detail,
///             _ => GroupPart::First,
///         })
///     }
/// }
/// ```
pub trait GroupRule<T>: BatchArtifact + Send {
    /// Returns which part of a group an item is, after the previous item. `previous` is `None` at the beginning of the input and of a
    /// restart, and after an item that cannot be read.
    ///
    /// # Errors
    /// If the rule cannot be applied to the item. The item then counts as one that cannot be read.
    fn part(&self, previous: Option<&T>, item: &T) -> Result<GroupPart, BatchError>;

    /// Returns the number of items of each group, if that alone makes groups: then [`part`](Self::part) is not called.
    fn size(&self) -> Option<NonZeroUsize> {
        None
    }
}

/// The part of a group that an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupPart {
    /// It begins a group, whatever comes before it.
    Header,
    /// It begins a group, because the previous item belongs to another one.
    First,
    /// It belongs to the group of the previous item. Without a previous item, its header is missing.
    Detail,
}

/// Groups of a number of items, the property `group.size`. The last one may have fewer.
///
/// A group also ends before an item that cannot be read, so the job skips this item alone. `max.group.size` does not apply.
///
/// ```
/// use batch_items::compose::BySize;
/// use batch_items::{GroupingItemReader, LineItemReader};
/// use batch_runtime::prelude::*;
///
/// /// `group.size` = `100`: the lines of one request.
/// #[item_reader("Requests")]
/// type Requests = GroupingItemReader<LineItemReader<String>, BySize>;
/// ```
#[derive(BatchArtifact)]
pub struct BySize {
    #[batch_property(name = "group.size")]
    size: NonZeroUsize,
}

impl<T> GroupRule<T> for BySize {
    fn part(&self, previous: Option<&T>, _: &T) -> Result<GroupPart, BatchError> {
        Ok(previous.map_or(GroupPart::First, |_| GroupPart::Detail))
    }

    fn size(&self) -> Option<NonZeroUsize> {
        Some(self.size)
    }
}

/// A group that is larger than `max.group.size`, or an item before the first header.
///
/// A job may skip the error: `<include class="GroupError"/>`. Reading continues with the next group.
#[derive(Debug, BatchException)]
pub struct GroupError {
    place: Option<String>,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    TooLarge(usize),
    NoHeader,
    Rest,
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        match self.cause {
            Cause::TooLarge(most) => write!(
                f,
                "the group has more than {most} items, the `max.group.size`; check the rule that makes groups, or set `max.group.size` to \
                 the number of items of the largest group, which is kept in memory"
            ),
            Cause::Rest => f.write_str(
                "the items up to this one belong to a group that could not be read, and are more than `max.group.size`",
            ),
            Cause::NoHeader => f.write_str(
                "the item comes before the first header; check the rule that recognizes headers, or correct the input",
            ),
        }
    }
}

impl std::error::Error for GroupError {}

#[item_reader(rewindable = true)]
impl<R, G> GroupingItemReader<R, G>
where
    R: ReadItems,
    G: GroupRule<R::Item>,
{
    /// Opens the inner reader, at the checkpoint.
    #[open]
    pub fn open(&mut self, checkpoint: Option<GroupPosition<R::Position>>) -> Result<(), BatchError> {
        let start = checkpoint.as_ref();
        self.passing = start.is_some_and(|position| position.passing);
        self.failed_at = None;
        self.counts = start.map(|position| position.counts).unwrap_or_default();
        self.items.open(checkpoint.map(|position| position.next))
    }

    /// Reads the next group.
    #[read_item]
    pub fn read(&mut self) -> Result<Option<Vec<R::Item>>, BatchError> {
        self.origins.clear();
        let group = match self.rule.size() {
            Some(size) => self.next_items(size.get())?,
            None => {
                if self.passing {
                    self.pass();
                    if self.origins.len() > 0 {
                        return Err(self.dropped(self.fail(Cause::Rest)));
                    }
                }
                match self.next_group() {
                    Ok(group) => group,
                    Err(error) => {
                        self.passing = true;
                        self.origins.split();
                        self.pass();
                        return Err(self.dropped(error));
                    }
                }
            }
        };
        self.counts.grouped += group.len() as u64;
        Ok(Some(group).filter(|group| !group.is_empty()))
    }

    /// Returns the file and lines of the last group, as errors name them.
    #[get_item_origin]
    pub fn item_origin(&self) -> Option<String> {
        self.origins.ends()
    }

    /// Returns the position of the next group.
    #[get_checkpoint_info]
    pub fn checkpoint(&mut self) -> Result<GroupPosition<R::Position>, BatchError> {
        if let Some(step) = &self.step {
            let GroupCounts { read, grouped } = self.counts;
            step.set_records_read(read, read.saturating_sub(grouped));
        }
        Ok(GroupPosition {
            next: self.items.position()?,
            passing: self.passing,
            counts: self.counts,
        })
    }

    /// Closes the inner reader.
    #[close]
    pub fn close(&mut self) {
        self.items.close();
    }
}

impl<R, G> GroupingItemReader<R, G>
where
    R: ReadItems,
    G: GroupRule<R::Item>,
{
    /// Reads and counts the next item.
    fn next(&mut self) -> Result<Option<R::Item>, BatchError> {
        let item = self.items.read();
        self.counts.read += match item {
            Ok(None) => 0,
            Ok(Some(_)) => {
                self.failed_at = None;
                1
            }
            Err(_) => u64::from(self.has_advanced()),
        };
        item
    }

    /// Returns whether the reader has passed the item that it could not read. One that has not would be called forever: the runtime
    /// notices that by the position, which counting the same item again would change.
    fn has_advanced(&mut self) -> bool {
        let position = self.items.position().ok();
        let position = position.and_then(|position| serde_json::to_string(&position).ok());
        let is_stuck = position.is_some() && position == self.failed_at;
        self.failed_at = position;
        !is_stuck
    }

    /// Returns up to `size` items: fewer before the end and before one that cannot be read.
    fn next_items(&mut self, size: usize) -> Result<Vec<R::Item>, BatchError> {
        let mut group = Vec::new();
        while group.len() < size && (group.is_empty() || self.items.peek().is_ok()) {
            match self.next()? {
                Some(item) => group.push(item),
                None => break,
            }
            self.origins.push_place(self.items.origin());
        }
        Ok(group)
    }

    /// Returns the items up to the first of the next group; none at the end.
    fn next_group(&mut self) -> Result<Vec<R::Item>, BatchError> {
        let mut group: Vec<R::Item> = Vec::new();
        loop {
            let part = match self.items.peek() {
                Ok(Some(item)) => self.rule.part(group.last(), item),
                // `read` returns the error, or the end.
                Ok(None) | Err(_) => return self.next().map(|_| group),
            };
            match part {
                Err(error) => {
                    self.take()?;
                    return Err(error);
                }
                Ok(GroupPart::Header | GroupPart::First) if !group.is_empty() => return Ok(group),
                Ok(GroupPart::Detail) if group.is_empty() => return Err(self.fail(Cause::NoHeader)),
                Ok(_) if group.len() == self.max_group_size.get() => {
                    return Err(self.fail(Cause::TooLarge(group.len())));
                }
                Ok(_) => group.extend(self.take()?),
            }
        }
    }

    /// Reads the next item, and notes its origin.
    fn take(&mut self) -> Result<Option<R::Item>, BatchError> {
        let item = self.next()?;
        if item.is_some() {
            self.origins.push(self.items.origin(), || self.items.place());
        }
        Ok(item)
    }

    /// Passes over the rest of a group that could not be read: up to the next group, an item that cannot be read, which may belong to
    /// it too, or the largest number of items.
    ///
    /// Without a previous item, the first one by a key may belong to that group, so its whole group is passed over.
    fn pass(&mut self) {
        let (mut previous, most) = (None, self.origins.len().saturating_add(self.max_group_size.get()));
        while let Ok(Some(item)) = self.items.peek() {
            match self.rule.part(previous.as_ref(), item) {
                Ok(GroupPart::First) if previous.is_none() => {}
                Ok(GroupPart::Detail) => {}
                Ok(GroupPart::Header | GroupPart::First) => {
                    self.passing = false;
                    return;
                }
                // `next_group` returns the error.
                Err(_) => return,
            }
            if self.origins.len() == most {
                return;
            }
            match self.take() {
                Ok(item) => previous = item,
                Err(_) => return,
            }
        }
    }

    /// Adds the dropped items to the error that drops them.
    fn dropped(&self, error: BatchError) -> BatchError {
        match self.origins.len() {
            0 => error,
            _ => error.with_details(self.origins.take()),
        }
    }

    fn fail(&self, cause: Cause) -> BatchError {
        let place = self.items.place();
        GroupError { place, cause }.into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::error::{DroppedRecords, Origin};

    /// Reads characters; `!` cannot be read.
    #[derive(BatchArtifact)]
    struct Characters {
        all: Vec<char>,
        texts: Vec<String>,
        next: usize,
    }

    impl ReadItems for Characters {
        type Item = char;
        type Position = usize;

        fn open(&mut self, checkpoint: Option<usize>) -> Result<(), BatchError> {
            self.next = checkpoint.unwrap_or(0);
            Ok(())
        }

        fn read(&mut self) -> Result<Option<char>, BatchError> {
            let item = self.all.get(self.next).copied();
            self.next += 1;
            match item {
                Some('!') => Err(BatchError::msg("bad")),
                // The end is read once, so that a reader cannot depend on what comes after it.
                None if self.next > self.all.len() + 1 => Err(BatchError::msg("read after the end")),
                item => Ok(item),
            }
        }

        fn position(&mut self) -> Result<usize, BatchError> {
            Ok(self.next)
        }

        fn place(&self) -> Option<String> {
            Some(format!("character {}", self.next))
        }

        fn origin(&self) -> Option<Origin<'_>> {
            let line = self.next.saturating_sub(1);
            Some(Origin::new("characters", line as u64, self.texts.get(line)?))
        }
    }

    crate::group_rule!(Equal: key |item: &char| *item);
    crate::group_rule!(AtCapitals: header |item: &char| item.is_uppercase());

    /// Opens a reader, at a checkpoint that was stored.
    fn reader<G: GroupRule<char>>(
        rule: G,
        input: &str,
        checkpoint: Option<&str>,
    ) -> GroupingItemReader<Characters, G> {
        let mut reader = GroupingItemReader {
            items: PeekableItemReader::around(Characters {
                all: input.chars().collect(),
                texts: input.chars().map(String::from).collect(),
                next: 0,
            }),
            rule,
            max_group_size: NonZeroUsize::new(3).unwrap(),
            passing: false,
            origins: Origins::default(),
            counts: GroupCounts::default(),
            failed_at: None,
            step: None,
        };
        let checkpoint = checkpoint.map(|json| serde_json::from_str(json).unwrap());
        reader.open(checkpoint).unwrap();
        reader
    }

    /// Returns an error with the items that are dropped.
    fn shown(error: &BatchError) -> String {
        let message = error.to_string();
        let name = match &*message {
            "bad" => "bad",
            _ if message.contains("the group has more than") => "large",
            _ if message.contains("before the first header") => "header",
            _ if message.contains("belong to a group that could not be read") => "rest",
            other => other,
        };
        let none = DroppedRecords {
            before: Vec::new(),
            after: Vec::new(),
        };
        let DroppedRecords { before, after } = error.details().unwrap_or(&none);
        let [before, after] = [before, after].map(|records| {
            let texts = records
                .iter()
                .map(|record| String::from_utf8_lossy(&record.raw).into_owned());
            texts.collect::<String>()
        });
        format!("{before}[{name}]{after}")
    }

    /// Reads to the end: groups and errors, each with the checkpoint after it.
    fn read<G: GroupRule<char>>(reader: &mut GroupingItemReader<Characters, G>) -> Vec<(String, String)> {
        let mut all = Vec::new();
        loop {
            let outcome = match reader.read() {
                Ok(None) => break,
                Ok(Some(group)) => group.into_iter().collect(),
                Err(error) => shown(&error),
            };
            let checkpoint = reader.checkpoint().unwrap();
            all.push((outcome, serde_json::to_string(&checkpoint).unwrap()));
            assert!(all.len() < 20, "no progress: {all:?}");
        }
        assert_eq!(reader.read().unwrap(), None, "the end remains the end");
        all
    }

    /// Checks what is read of all inputs of these characters, up to seven long, without a restart and with one after each group and error.
    fn check<G: GroupRule<char>>(rule: fn() -> G, alphabet: &str, expected: fn(&str) -> Vec<String>) {
        let mut inputs = VecDeque::from([String::new()]);
        while let Some(input) = inputs.pop_front() {
            let mut whole = reader(rule(), &input, None);
            let all = read(&mut whole);
            let outcomes: Vec<_> = all.iter().map(|(outcome, _)| outcome.clone()).collect();
            assert_eq!(outcomes, expected(&input), "{input}");
            let groups = outcomes.iter().filter(|outcome| !outcome.contains('['));
            let counts = GroupCounts {
                read: input.len() as u64,
                grouped: groups.map(|group| group.len() as u64).sum(),
            };
            assert_eq!(whole.counts, counts, "{input}");
            for (index, (_, checkpoint)) in all.iter().enumerate() {
                let rest = read(&mut reader(rule(), &input, Some(checkpoint)));
                assert_eq!(rest, all[index + 1..], "{input} from {checkpoint}");
            }
            if input.len() < 7 {
                inputs.extend(alphabet.chars().map(|next| format!("{input}{next}")));
            }
        }
    }

    /// Returns the runs of characters of which the second does not begin a group.
    fn runs(text: &str, begins: fn(char, char) -> bool) -> Vec<String> {
        let mut runs: Vec<String> = Vec::new();
        for next in text.chars() {
            match runs.last_mut() {
                Some(run) if !run.ends_with(|previous| begins(previous, next)) => run.push(next),
                _ => runs.push(next.into()),
            }
        }
        runs
    }

    /// Returns what is expected of an input. `is_whole` says whether a run is whole if the item before it is bad.
    fn whole_groups(
        input: &str,
        begins: fn(char, char) -> bool,
        is_whole: fn(&str) -> bool,
        has_header: fn(&str) -> bool,
    ) -> Vec<String> {
        const MOST: usize = 3;
        let mut outcomes: Vec<String> = Vec::new();
        let segments: Vec<_> = input.split('!').collect();
        for (number, segment) in segments.iter().enumerate() {
            // The items before the next error that are dropped with it.
            let mut before = String::new();
            let runs = runs(segment, begins);
            for (index, run) in runs.iter().enumerate() {
                let after_bad = number > 0 && index == 0;
                let before_bad = number + 1 < segments.len() && index + 1 == runs.len();
                let mut parts: Vec<String> = run
                    .chars()
                    .collect::<Vec<_>>()
                    .chunks(MOST)
                    .map(String::from_iter)
                    .collect();
                if after_bad && !is_whole(run) {
                    *outcomes.last_mut().unwrap() += &parts.remove(0);
                } else if !has_header(run) {
                    outcomes.push(format!("[header]{}", parts.remove(0)));
                } else if run.len() > MOST {
                    let first = parts.remove(0);
                    outcomes.push(format!("{first}[large]{}", parts.remove(0)));
                } else if before_bad {
                    before.clone_from(run);
                    continue;
                } else {
                    outcomes.push(run.clone());
                    continue;
                }
                outcomes.extend(parts.iter().map(|rest| format!("[rest]{rest}")));
            }
            if number + 1 < segments.len() {
                outcomes.push(format!("{before}[bad]"));
            }
        }
        outcomes
    }

    #[test]
    fn groups_by_key_are_whole() {
        let expected = |input: &str| whole_groups(input, |a, b| a != b, |_| false, |_| true);
        check(|| Equal, "ab!", expected);
    }

    #[test]
    fn groups_with_headers_are_whole() {
        fn has_header(run: &str) -> bool {
            run.starts_with('H')
        }
        let expected = |input: &str| whole_groups(input, |_, next| next == 'H', has_header, has_header);
        check(|| AtCapitals, "Hd!", expected);
    }

    /// A bad item ends a group of a size, and is skipped alone.
    #[test]
    fn groups_of_a_size_leave_out_bad_items() {
        let expected = |input: &str| {
            let mut outcomes = Vec::new();
            for (number, segment) in input.split('!').enumerate() {
                if number > 0 {
                    outcomes.push("[bad]".to_owned());
                }
                let items: Vec<char> = segment.chars().collect();
                outcomes.extend(items.chunks(2).map(|group| group.iter().collect::<String>()));
            }
            outcomes
        };
        let rule = || BySize {
            size: NonZeroUsize::new(2).unwrap(),
        };
        check(rule, "ab!", expected);
    }

    #[test]
    fn errors_name_the_place_and_the_remedy() {
        let error = reader(Equal, "aaaa", None).read().unwrap_err().to_string();
        assert_eq!(
            error,
            "character 4: the group has more than 3 items, the `max.group.size`; check the rule that makes groups, or set \
             `max.group.size` to the number of items of the largest group, which is kept in memory"
        );
        let error = reader(AtCapitals, "aH", None).read().unwrap_err().to_string();
        assert_eq!(
            error,
            "character 1: the item comes before the first header; check the rule that recognizes headers, or correct the input"
        );
    }

    /// An input that is longer at the restart than when its last group was read.
    #[test]
    fn an_input_that_has_grown_is_read_from_the_end_of_the_last_group() {
        let (_, end) = read(&mut reader(Equal, "aab", None)).pop().unwrap();
        let rest: Vec<_> = read(&mut reader(Equal, "aabbc", Some(&end)));
        assert_eq!(
            rest.iter().map(|(group, _)| group.as_str()).collect::<Vec<_>>(),
            ["b", "c"]
        );
        let (_, end) = read(&mut reader(AtCapitals, "Aa", None)).pop().unwrap();
        let rest: Vec<_> = read(&mut reader(AtCapitals, "AaaBb", Some(&end)));
        assert_eq!(
            rest.iter().map(|(group, _)| group.as_str()).collect::<Vec<_>>(),
            ["[header]a", "Bb"]
        );
    }
}
