//! The end of a run: the property `until`.

use std::str::FromStr;
use std::time::{self, Instant};

use crate::duration::Duration;

/// When a reader of a queue ends, which itself has no end: at the first of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Until {
    /// `end`: at the messages that are there when the step first starts.
    pub end: bool,
    /// `idle 30s`: when no message has arrived for that long.
    pub idle: Option<time::Duration>,
    /// `items 1000`: after that many items, over all executions of the instance.
    pub items: Option<u64>,
}

const EXPECTED: &str = "expected `end`, `idle` with a duration such as `idle 30s`, `items` with a number such as `items 1000`, or several \
     of them, separated by commas";

impl FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut until = Self::default();
        for part in text.split(',') {
            let mut words = part.split_whitespace();
            let is_new = match (words.next(), words.next(), words.next()) {
                (Some("end"), None, None) => !std::mem::replace(&mut until.end, true),
                (Some("idle"), Some(time), None) => {
                    let time: Duration = time.parse()?;
                    until.idle.replace(time.get()).is_none()
                }
                (Some("items"), Some(number), None) => {
                    let number = number.parse().map_err(|_| EXPECTED.to_owned())?;
                    until.items.replace(number).is_none()
                }
                _ => return Err(EXPECTED.to_owned()),
            };
            if !is_new {
                return Err(format!("`{}` is there twice", part.trim()));
            }
        }
        Ok(until)
    }
}

impl Until {
    /// Returns whether this number of items is enough.
    pub fn is_enough(&self, items: u64) -> bool {
        self.items.is_some_and(|limit| items >= limit)
    }

    /// Returns whether the last message arrived too long ago.
    pub fn is_idle(&self, last: Instant) -> bool {
        self.idle.is_some_and(|idle| last.elapsed() >= idle)
    }

    /// Returns the longest wait for a message, at most `longest`.
    pub fn wait(&self, last: Instant, longest: time::Duration) -> time::Duration {
        let left = self.idle.map(|idle| idle.saturating_sub(last.elapsed()));
        left.map_or(longest, |left| left.min(longest))
    }

    /// Returns the number of items of the whole run, of which `read` are read and `left` are there.
    pub fn count(&self, read: u64, left: Option<u64>) -> Option<u64> {
        let there = left.filter(|_| self.end).map(|left| read + left);
        match (self.items, there) {
            (Some(limit), Some(there)) => Some(limit.min(there)),
            (limit, there) => limit.or(there),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: QUEUE-03
    #[test]
    fn a_run_ends_at_the_first_of_its_bounds() {
        let seconds = time::Duration::from_secs;
        for (text, expected) in [
            ("end", (true, None, None)),
            ("idle 30s", (false, Some(30), None)),
            (" items 5 , idle 1m ", (false, Some(60), Some(5))),
            ("end, items 5", (true, None, Some(5))),
        ] {
            let until: Until = text.parse().unwrap();
            let (end, idle, items) = expected;
            assert_eq!(
                until,
                Until {
                    end,
                    idle: idle.map(seconds),
                    items
                },
                "{text}"
            );
        }
        for text in [
            "", "never", "idle", "items", "items x", "items -1", "end 5", "idle 5 s", "end,",
        ] {
            assert_eq!(text.parse::<Until>(), Err(EXPECTED.to_owned()), "{text}");
        }
        let twice = "end, end".parse::<Until>();
        assert_eq!(twice, Err("`end` is there twice".to_owned()));
        let unit = "idle 5x".parse::<Until>().unwrap_err();
        assert!(unit.contains("a duration such as"), "{unit}");
    }

    #[test]
    fn the_number_of_items_is_known_with_an_end() {
        let until = |text: &str| text.parse::<Until>().unwrap();
        assert_eq!(until("end").count(3, Some(4)), Some(7));
        assert_eq!(until("end, items 5").count(3, Some(4)), Some(5));
        assert_eq!(until("items 5").count(3, Some(4)), Some(5));
        assert_eq!(until("idle 1s").count(3, Some(4)), None);
    }
}
