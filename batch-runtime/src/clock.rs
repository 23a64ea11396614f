//! Time: the clock that the runtime asks, and the point in time that the repository stores.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time, in milliseconds since 1970-01-01T00:00:00Z; what the repository's TIMESTAMP columns hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Milliseconds from `earlier` to this point; 0 if that is later.
    pub fn millis_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl fmt::Display for Timestamp {
    /// ISO 8601 in UTC with milliseconds, such as `2026-11-20T13:45:00.123Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, millis) = (self.0.div_euclid(86_400_000), self.0.rem_euclid(86_400_000));
        let (year, month, day) = civil_date(days);
        let (hour, minute, second) = (millis / 3_600_000, millis / 60_000 % 60, millis / 1_000 % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z",
            millis % 1_000
        )
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// ISO 8601 in UTC, from the day to the millisecond: `2026-11-20`, `2026-11-20T13:45`, `2026-11-20T13:45:00.123Z`. The
    /// parts of the day may also be separated by `/`.
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        parse(text).ok_or(TimestampError)
    }
}

impl Serialize for Timestamp {
    /// As it is shown.
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
    let (hour, minute, second) = match numbers(time, ':')?[..] {
        [hour, minute] => (hour, minute, 0),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    let millis = format!("{fraction:0<3}");
    let [millis] = numbers(millis.get(..3)?, ':')?[..] else {
        return None;
    };
    let is_whole = fraction.bytes().all(|digit| digit.is_ascii_digit());
    let in_range = hour < 24 && minute < 60 && second < 60 && year <= 9_999 && is_whole;
    let days = day_number(year, month, day)?;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
    in_range.then_some(Timestamp(seconds * 1_000 + millis))
}

/// Decimal numbers without signs, four digits at most.
fn numbers(text: &str, separator: char) -> Option<Vec<i64>> {
    let number = |part: &str| {
        let plain = (1..=4).contains(&part.len()) && part.bytes().all(|digit| digit.is_ascii_digit());
        plain.then(|| part.parse().ok()).flatten()
    };
    text.split(separator).map(number).collect()
}

/// The day counted from 1970-01-01; `None` if there is no such day.
fn day_number(year: i64, month: i64, day: i64) -> Option<i64> {
    const TO_1970: i64 = 719_468;
    // As `civil_date` counts: from 1 March of the year 0.
    let year_from_march = year - i64::from(month <= 2);
    let month_from_march = (month + 9) % 12;
    let of_years = year_from_march * 365 + year_from_march.div_euclid(4) - year_from_march.div_euclid(100)
        + year_from_march.div_euclid(400);
    let days = of_years + (153 * month_from_march + 2) / 5 + day - 1 - TO_1970;
    (civil_date(days) == (year, month, day)).then_some(days)
}

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar. Years are counted from
/// 1 March, so that the leap day is a year's last.
pub(crate) fn civil_date(days: i64) -> (i64, i64, i64) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    let days = days + 719_468;
    let era = days.div_euclid(DAYS_OF_400_YEARS);
    let day_of_era = days.rem_euclid(DAYS_OF_400_YEARS);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Where the runtime takes its wall-clock time from.
pub trait Clock: Send + Sync {
    /// The time now.
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
