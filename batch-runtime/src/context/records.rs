//! Counts of records, for steps whose items are lists of records.

use crate::execution::StepCounters;

/// The numbers of records that the reader and the writer of a step have counted in its job instance.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecordCounts {
    /// The number of records that were read, including skipped ones, and the number that the reader has skipped.
    pub(super) read: Option<(u64, u64)>,
    /// The number of records that were written.
    pub(super) written: Option<u64>,
}

impl RecordCounts {
    /// Returns the line of the exit description, or `None` if the counters of the items have the same numbers.
    // Spec: LOSS-07
    pub(super) fn line(&self, items: &StepCounters) -> Option<String> {
        let is_writes = |records: u64| i64::try_from(records) == Ok(items.writes);
        match (self.read, self.written) {
            (None, None) => None,
            (None, Some(written)) => (!is_writes(written)).then(|| format!("{written} records written")),
            (Some((read, skipped)), None) => {
                let in_items = read.saturating_sub(skipped);
                (skipped > 0).then(|| format!("{read} records read: {in_items} in groups, {skipped} skipped"))
            }
            (Some((read, skipped)), Some(written)) => {
                let is_reads = i64::try_from(read) == Ok(items.reads + items.read_skips);
                let same = is_reads && is_writes(written);
                (!same).then(|| all_counts(read, written, skipped, items))
            }
        }
    }
}

/// Returns the line with what became of all records. A processor may return more records than were read.
fn all_counts(read: u64, written: u64, skipped: u64, items: &StepCounters) -> String {
    let rest = read.saturating_sub(skipped).saturating_sub(written);
    let filtered = match items.process_skips + items.write_skips {
        0 => "filtered",
        _ => "filtered or in skipped groups",
    };
    let mut line = format!("{read} records read: {written} written");
    for (count, name) in [(rest, filtered), (skipped, "skipped")] {
        if count > 0 {
            line.push_str(&format!(", {count} {name}"));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: LOSS-07
    #[test]
    fn a_line_says_what_became_of_the_records() {
        let items = StepCounters {
            reads: 5,
            filters: 1,
            writes: 4,
            read_skips: 1,
            ..StepCounters::default()
        };
        let with_skips = StepCounters {
            writes: 3,
            write_skips: 1,
            ..items
        };
        for (read, written, items, expected) in [
            (None, None, items, None),
            (None, Some(4), items, None),
            (None, Some(9), items, Some("9 records written")),
            (Some((14, 0)), None, items, None),
            (
                Some((14, 3)),
                None,
                items,
                Some("14 records read: 11 in groups, 3 skipped"),
            ),
            (Some((6, 1)), Some(4), items, None),
            (
                Some((6, 1)),
                Some(3),
                items,
                Some("6 records read: 3 written, 2 filtered, 1 skipped"),
            ),
            (
                Some((14, 0)),
                Some(14),
                items,
                Some("14 records read: 14 written"),
            ),
            (
                Some((14, 3)),
                Some(9),
                items,
                Some("14 records read: 9 written, 2 filtered, 3 skipped"),
            ),
            (
                Some((14, 3)),
                Some(9),
                with_skips,
                Some("14 records read: 9 written, 2 filtered or in skipped groups, 3 skipped"),
            ),
            (
                Some((14, 0)),
                Some(20),
                items,
                Some("14 records read: 20 written"),
            ),
        ] {
            let counts = RecordCounts { read, written };
            assert_eq!(counts.line(&items).as_deref(), expected, "{counts:?}");
        }
    }
}
