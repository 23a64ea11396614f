//! Values as pages show them.

pub(crate) mod chart;
pub(crate) mod owners;
pub(crate) mod progress;
pub(crate) mod rows;
pub(crate) mod timeline;

use std::fmt;

use askama::filters::{Escaper, Html};
use batch_runtime::time::elapsed;
use batch_runtime::xml::is_unprintable;
use batch_runtime::{BatchStatus, Timestamp};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What a segment of a path may hold as it is.
const SEGMENT: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Returns a text as a segment of a URL's path, or a value of its query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, &SEGMENT).to_string()
}

/// Returns a page without characters that turn the direction of text, or that a terminal would interpret in its source.
pub(crate) fn printable(page: String) -> String {
    let is_bad = |c: char| is_unprintable(c) && c != '\n' && c != '\t';
    match page.contains(is_bad) {
        true => page.replace(is_bad, "\u{fffd}"),
        false => page,
    }
}

/// A status, with the class that colors it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pill {
    pub(crate) class: &'static str,
    pub(crate) text: &'static str,
}

impl Pill {
    pub(crate) fn of(status: BatchStatus) -> Self {
        let class = match status {
            BatchStatus::Completed => "completed",
            BatchStatus::Failed | BatchStatus::Unknown => "failed",
            BatchStatus::Stopped => "stopped",
            BatchStatus::Abandoned => "abandoned",
            BatchStatus::Stopping => "stopping",
            BatchStatus::Starting => "starting",
            BatchStatus::Started => "running",
        };
        let text = status.as_str();
        Self { class, text }
    }

    /// Returns whether a person has to act: after a failure, or the death of a process.
    pub(crate) fn is_failure(self) -> bool {
        matches!(self.class, "failed" | "dead")
    }

    /// An execution that has not ended although its process is dead.
    pub(crate) const DEAD: Self = Self {
        class: "dead",
        text: "DEAD",
    };

    /// An execution that waits for its turn.
    pub(crate) const WAITING: Self = Self {
        class: "starting",
        text: "WAITING",
    };
}

/// A point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Time {
    /// For programs, and for the browser to show in its own time zone.
    pub(crate) iso: String,
    /// In UTC, to the second.
    pub(crate) text: String,
    /// The time since then.
    pub(crate) ago: String,
}

impl Time {
    pub(crate) fn new(time: Timestamp, now: Timestamp) -> Self {
        let iso = time.to_string();
        let seconds = iso.split_once('.').map_or(iso.as_str(), |(seconds, _)| seconds);
        let text = seconds.replace('T', " ");
        let ago = ago(now.millis_since(time));
        Self { iso, text, ago }
    }
}

/// Formats the time since something happened.
fn ago(millis: u64) -> String {
    let seconds = millis / 1_000;
    match seconds {
        0..5 => "now".into(),
        5..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// Formats a round length of time, of an axis or an estimate.
pub(crate) fn round(millis: u64) -> String {
    elapsed(millis).replace(".000 ", " ")
}

/// A number with spaces between groups of three digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) i64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.unsigned_abs().to_string();
        let mut text = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push('\u{2009}');
            }
            text.push(digit);
        }
        if self.0 < 0 {
            text.insert(0, '-');
        }
        f.write_str(&text)
    }
}

/// Returns a number with its noun: `1 commit`, `2 commits`.
pub(crate) fn counted(count: i64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", Count(count))
}

/// Returns a process as people name it, by its host and number, from its name as a lease holder: `host/4281/5f0c/locked`.
pub(crate) fn process(owner: &str) -> String {
    match owner.split('/').collect::<Vec<_>>()[..] {
        [host, process, _, _] if process.parse::<u32>().is_ok() => format!("{host}, process {process}"),
        _ => owner.to_owned(),
    }
}

/// Returns the part `value / whole` of a length. Times and counters of other programs may be absurd.
pub(crate) fn scaled(value: u64, length: u64, whole: u64) -> u64 {
    let scaled = u128::from(value.min(whole)) * u128::from(length) / u128::from(whole.max(1));
    u64::try_from(scaled).unwrap_or(length)
}

/// Returns the items per second; `None` if it is too early for a rate.
pub(crate) fn rate(items: i64, millis: u64) -> Option<Count> {
    let items = u64::try_from(items).ok().filter(|items| *items > 0)?;
    let per_second = (millis >= 100).then(|| items.saturating_mul(1_000) / millis)?;
    let per_second = i64::try_from(per_second).ok()?;
    (per_second > 0).then_some(Count(per_second))
}

/// Text with the characters escaped that HTML and SVG interpret.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Html.write_escaped_str(f, self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_durations_are_short() {
        let shown = [0, 999, 1_000, 1_234_567].map(|count| Count(count).to_string());
        assert_eq!(shown, ["0", "999", "1\u{2009}000", "1\u{2009}234\u{2009}567"]);
        let shown = [0, 59_000, 3_599_000, 90_000_000].map(ago);
        assert_eq!(shown, ["now", "59 s ago", "59 min ago", "1 d ago"]);
        assert_eq!(rate(1_000, 500), Some(Count(2_000)));
        assert_eq!([rate(0, 500), rate(5, 0)], [None, None]);
        assert_eq!(
            [0, 1, 2].map(|count| counted(count, "item")),
            ["0 items", "1 item", "2 items"]
        );
        assert_eq!([scaled(1, 640, 2), scaled(u64::MAX, 640, u64::MAX)], [320, 640]);
    }

    #[test]
    fn processes_are_named_by_host_and_number() {
        let shown = ["vm/4281/7b5b00ff00ff00ff/locked", "vm", "a/b/c/d", ""].map(process);
        assert_eq!(shown, ["vm, process 4281", "vm", "a/b/c/d", ""]);
    }

    // Spec: CON-06
    #[test]
    fn hostile_characters_are_replaced() {
        assert_eq!(
            printable("a\u{202e}b\u{1b}[31m\nc".into()),
            "a\u{fffd}b\u{fffd}[31m\nc"
        );
        assert_eq!(
            Escaped("<a href='x' b=\"&\">").to_string(),
            "&#60;a href=&#39;x&#39; b=&#34;&#38;&#34;&#62;"
        );
        assert_eq!(encoded("a/../b?c#d e"), "a%2F..%2Fb%3Fc%23d%20e");
    }
}
