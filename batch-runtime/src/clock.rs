//! The clock, and points in time as the repository stores them.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::SignedDuration;
pub(crate) use jiff::civil::{self, DateTime};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time in milliseconds since 1970-01-01T00:00:00Z, as stored in the repository's TIMESTAMP columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the milliseconds from `earlier` to this point; 0 if `earlier` is later.
    pub fn millis_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl fmt::Display for Timestamp {
    /// Writes ISO 8601 in UTC with milliseconds, such as `2026-11-20T13:45:00.123Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match date_time(self.0) {
            Some(time) => write!(f, "{}", time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ")),
            // Only a corrupt row can contain it.
            None => write!(f, "{} ms since 1970", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// Parses ISO 8601 in UTC, from the day to the millisecond: `2026-11-20`, `2026-11-20T13:45`,
    /// `2026-11-20T13:45:00.123Z`. The parts of the day may also be separated by `/`.
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        parse(text).ok_or(TimestampError)
    }
}

impl Serialize for Timestamp {
    /// Serializes the displayed text.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A text that is not a valid [`Timestamp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a day or a time in UTC, such as 2026-11-20 or 2026-11-20T13:45:00Z")]
pub struct TimestampError;

fn parse(text: &str) -> Option<Timestamp> {
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, time.strip_suffix('Z').unwrap_or(time)),
        None => (text, "00:00"),
    };
    let separator = if date.contains('/') { '/' } else { '-' };
    let [year, month, day] = numbers(date, separator)?[..] else {
        return None;
    };
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = match numbers(time, ':')?[..] {
        [hour, minute] => [hour, minute, 0],
        [hour, minute, second] => [hour, minute, second],
        _ => return None,
    };
    let millis = format!("{fraction:0<3}");
    let [millis] = numbers(millis.get(..3)?, ':')?[..] else {
        return None;
    };
    if !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let [month, day, hour, minute, second] = [month, day, hour, minute, second].map(i8::try_from);
    let nanos = i32::from(millis) * 1_000_000;
    let time = DateTime::new(
        year,
        month.ok()?,
        day.ok()?,
        hour.ok()?,
        minute.ok()?,
        second.ok()?,
        nanos,
    );
    time.ok().map(|time| Timestamp(millis_of(time)))
}

/// Parses decimal numbers without signs, at most four digits each.
fn numbers(text: &str, separator: char) -> Option<Vec<i16>> {
    let number = |part: &str| {
        let plain = (1..=4).contains(&part.len()) && part.bytes().all(|digit| digit.is_ascii_digit());
        plain.then(|| part.parse().ok()).flatten()
    };
    text.split(separator).map(number).collect()
}

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Returns date and time of milliseconds since 1970; `None` beyond the years -9999 to 9999.
pub(crate) fn date_time(millis: i64) -> Option<DateTime> {
    EPOCH.checked_add(SignedDuration::from_millis(millis)).ok()
}

/// Returns the milliseconds from 1970 to a date and time.
pub(crate) fn millis_of(time: DateTime) -> i64 {
    let since = time.duration_since(EPOCH);
    since.as_secs() * 1_000 + i64::from(since.subsec_millis())
}

/// The source of wall-clock time.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// The operating system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_read_as_iso_8601() {
        let check = |millis, expected: &str| assert_eq!(Timestamp(millis).to_string(), expected);
        check(0, "1970-01-01T00:00:00.000Z");
        check(-1, "1969-12-31T23:59:59.999Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(1_704_067_200_123, "2024-01-01T00:00:00.123Z");
        check(4_107_542_399_999, "2100-02-28T23:59:59.999Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn timestamps_are_read_as_they_are_written() {
        for millis in [
            0,
            -1,
            951_782_400_000,
            1_704_067_200_123,
            4_107_542_399_999,
            -62_167_219_200_000,
        ] {
            assert_eq!(Timestamp(millis).to_string().parse(), Ok(Timestamp(millis)));
        }
        let day = Ok(Timestamp(1_704_067_200_000));
        for same in [
            "2024-01-01",
            "2024/01/01",
            "2024/1/1",
            "2024-01-01T00:00",
            "2024-01-01 00:00:00",
            "2024-01-01T00:00:00.0Z",
        ] {
            assert_eq!(same.parse(), day, "{same}");
        }
        for wrong in [
            "",
            "2024",
            "2024-01",
            "2024-02-30",
            "2023-02-29",
            "2024-13-01",
            "2024-00-01",
            "2024-01-00",
            "2024-01-01T24:00",
            "2024-01-01T00:60",
            "2024-01-01T00",
            "2024-01-01T00:00:00.x",
            "2024-01-01T00:00:00.1x",
            "+024-01-01",
            "20240-01-01",
            "2024-01/01",
            "2024-01-01T00:00:00+01:00",
            "zwanzig",
            "2024-01-01T00:00:00.\u{e9}",
        ] {
            assert_eq!(wrong.parse::<Timestamp>(), Err(TimestampError), "{wrong}");
        }
    }
}
