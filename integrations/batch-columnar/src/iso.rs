//! Texts of dates and times, of ISO 8601, in nanoseconds.

use batch_items::rows::{Dialect, Temporal};

pub(crate) const NANOS_OF_SECOND: i128 = 1_000_000_000;
pub(crate) const NANOS_OF_DAY: i128 = 86_400 * NANOS_OF_SECOND;

/// Returns the nanoseconds from 1970 to a date, whose year may have a sign.
pub(crate) fn date(text: &str) -> Option<i128> {
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
pub(crate) fn clock(text: &str) -> Option<i128> {
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
pub(crate) fn timestamp(text: &str, has_zone: bool) -> Option<i128> {
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
