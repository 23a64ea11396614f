//! Texts of dates and times as the numbers that columns have for them.

use arrow_schema::{DataType, TimeUnit};
use batch_items::rows::{Dialect, Temporal};

const NANOS_OF_SECOND: i128 = 1_000_000_000;
const NANOS_OF_DAY: i128 = 86_400 * NANOS_OF_SECOND;

/// Returns a text in the units of a type; `None` if it is not a value of the type, or has a fraction of a unit.
pub(super) fn in_units(text: &str, kind: &DataType) -> Option<i64> {
    let (nanos, unit) = match kind {
        DataType::Date32 => (date(text)?, NANOS_OF_DAY),
        DataType::Time32(unit) | DataType::Time64(unit) => (clock(text)?, nanos_of(unit)),
        DataType::Timestamp(unit, zone) => (timestamp(text, zone.is_some())?, nanos_of(unit)),
        _ => return None,
    };
    let count = i64::try_from(nanos / unit).ok();
    count.filter(|_| nanos % unit == 0)
}

fn nanos_of(unit: &TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => NANOS_OF_SECOND,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1000,
        TimeUnit::Nanosecond => 1,
    }
}

/// Returns the nanoseconds from 1970 to a date, whose year may have a sign.
fn date(text: &str) -> Option<i128> {
    let (sign, text) = signed(text);
    if !Temporal::Date.accepts(text, Dialect::Sqlite) {
        return None;
    }
    let mut parts = text.split('-').map(|part| part.parse::<i128>().ok());
    let (year, month, day) = (sign * parts.next()??, parts.next()??, parts.next()??);
    // Years begin in March, so that the leap day is the last one.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    Some((365 * year + leap_days + day_of_year - 719_468) * NANOS_OF_DAY)
}

/// Returns the nanoseconds from midnight to a time without a zone. Leap seconds are not in the types.
fn clock(text: &str) -> Option<i128> {
    if !Temporal::Time.accepts(text, Dialect::Sqlite) {
        return None;
    }
    let mut parts = text.split(':').map(seconds);
    let (hours, minutes) = (parts.next()??, parts.next()??);
    let seconds = parts.next().unwrap_or(Some(0))?;
    let is_clock = hours < 24 * NANOS_OF_SECOND && seconds < 60 * NANOS_OF_SECOND;
    is_clock.then_some(hours * 3600 + minutes * 60 + seconds)
}

/// Returns the nanoseconds from 1970 to a timestamp, which has a time zone or none.
fn timestamp(text: &str, has_zone: bool) -> Option<i128> {
    let Some((day, time)) = text.split_once(['T', 't', ' ']) else {
        return date(text).filter(|_| !has_zone);
    };
    let end = time.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.');
    let (time, zone) = time.split_at(end.unwrap_or(time.len()));
    let local = date(day)? + clock(time)?;
    match zone.trim_start() {
        "" => Some(local).filter(|_| !has_zone),
        "Z" | "z" | "UTC" => Some(local).filter(|_| has_zone),
        offset => {
            let (sign, offset) = offset
                .strip_prefix('+')
                .map(|offset| (1, offset))
                .or_else(|| offset.strip_prefix('-').map(|offset| (-1, offset)))?;
            let offset = match offset.len() {
                2 => format!("{offset}:00"),
                4 => format!("{}:{}", offset.get(..2)?, offset.get(2..)?),
                _ => offset.to_owned(),
            };
            Some(local - sign * clock(&offset)?).filter(|_| has_zone)
        }
    }
}

/// Returns a number of seconds, such as `4.5`, in nanoseconds.
fn seconds(text: &str) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = fraction.trim_end_matches('0');
    let is_number = |text: &str| text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.is_empty() || digits.len() > 9 || !is_number(whole) || !is_number(digits)
    {
        return None;
    }
    let nanos: i128 = format!("{digits:0<9}").parse().ok()?;
    Some(whole.parse::<i128>().ok()? * NANOS_OF_SECOND + nanos)
}

fn signed(text: &str) -> (i128, &str) {
    match text.strip_prefix('-') {
        Some(text) => (-1, text),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: &str, held: &[(&str, i64)], rejected: &[&str]) {
        let kind: DataType = kind.parse().unwrap();
        for (text, expected) in held {
            assert_eq!(in_units(text, &kind), Some(*expected), "{kind} {text}");
        }
        for text in rejected {
            assert_eq!(in_units(text, &kind), None, "{kind} {text}");
        }
    }

    // Spec: ITEM-VALUE-10
    #[test]
    fn dates_and_times_are_exact() {
        check(
            "Date32",
            &[
                ("1970-01-01", 0),
                ("2000-02-29", 11_016),
                ("1600-03-01", -135_080),
                ("1969-12-31", -1),
                ("0000-03-01", -719_468),
                ("-0001-12-31", -719_529),
                ("+10000-01-01", 2_932_897),
            ],
            &["2026-02-29", "29.2.2024", "2024-02-29T00:00:00", "20240229", ""],
        );
        check(
            "Time32(ms)",
            &[
                ("10:00", 36_000_000),
                ("23:59:59.999", 86_399_999),
                ("00:00:00.5000000", 500),
            ],
            &["24:00:00", "23:59:60", "10:00:00.0001", "10:00:00Z", "10"],
        );
        check(
            "Time64(ns)",
            &[("00:00:00.000000001", 1)],
            &["00:00:00.0000000001"],
        );
        check(
            "Timestamp(ms)",
            &[
                ("1970-01-02T00:00:01", 86_401_000),
                ("1970-01-02 00:00:01.000", 86_401_000),
                ("1970-01-02", 86_400_000),
                ("1969-12-31T23:59:59.999", -1),
            ],
            &[
                "1970-01-01T00:00:00.0009",
                "1970-01-01T00:00:00Z",
                "1970-01-01T23:59:60",
                "1970-01-01T",
            ],
        );
        check(
            "Timestamp(ms, \"UTC\")",
            &[
                ("1970-01-01T00:00:00.001Z", 1),
                ("1970-01-01T01:00:00+01:00", 0),
                ("1969-12-31 22:30:00-0130", 0),
                ("1970-01-01T00:00:00 +01", -3_600_000),
            ],
            &[
                "1970-01-01T00:00:00.0001Z",
                "1970-01-01T00:00:00",
                "1970-01-01",
                "1970-01-01T00:00:00+1",
            ],
        );
        check(
            "Timestamp(ns)",
            &[("2262-04-11T23:47:16.854775807", i64::MAX)],
            &["2262-04-11T23:47:16.854775808"],
        );
    }
}
