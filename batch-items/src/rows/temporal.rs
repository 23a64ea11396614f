//! Texts of dates and times, which every database accepts in the form of ISO 8601 alone: others depend on its settings.

/// The type of a column of dates or times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temporal {
    Date,
    Time,
    Timestamp,
}

/// The database of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    /// It has dates before Christ, infinity, and names of time zones.
    Postgres,
    /// Its times are durations, up to 838 hours.
    Mysql,
}

impl Temporal {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Date => "a date such as 2026-11-26",
            Self::Time => "a time such as 10:00:00",
            Self::Timestamp => "a timestamp such as 2026-11-26 10:00:00",
        }
    }

    /// Returns whether a text is a value of the type.
    pub fn accepts(self, text: &str, dialect: Dialect) -> bool {
        let is_postgres = dialect == Dialect::Postgres;
        if is_postgres && self != Self::Time && matches!(text, "infinity" | "-infinity") {
            return true;
        }
        let text = text.strip_suffix(" BC").filter(|_| is_postgres).unwrap_or(text);
        match self {
            Self::Date => is_date(text),
            Self::Time => is_time(text, dialect),
            Self::Timestamp => match text.split_once(['T', 't', ' ']) {
                Some((date, time)) => is_date(date) && is_time(time, dialect),
                None => is_date(text),
            },
        }
    }

    /// Returns the digits after the second, and the zone, of a text that is accepted.
    pub(super) fn parts(self, text: &str) -> (&str, &str) {
        let text = text.strip_suffix(" BC").unwrap_or(text);
        let time = match self {
            Self::Date => "",
            Self::Time => text.strip_prefix('-').unwrap_or(text),
            // Infinity has none.
            Self::Timestamp if text.contains("infinity") => "",
            Self::Timestamp => text.split_once(['T', 't', ' ']).map_or("", |(_, time)| time),
        };
        let (clock, zone) = split_zone(time);
        (clock.split_once('.').map_or("", |(_, digits)| digits), zone)
    }
}

/// Returns the time of day, and the zone after it.
fn split_zone(time: &str) -> (&str, &str) {
    let end =
        time.find(|character: char| !character.is_ascii_digit() && character != ':' && character != '.');
    let (clock, zone) = time.split_at(end.unwrap_or(time.len()));
    (clock, zone.trim_start())
}

/// Returns whether a text is `2026-11-26`.
fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let (Some(year), Some(month), Some(day)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let (Some(month), Some(day)) = (number(month, 2), number(day, 2)) else {
        return false;
    };
    let is_year = (4..=6).contains(&year.len());
    let Some(year) = number(year, year.len()).filter(|_| is_year) else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// Returns whether a text is `10:00`, `10:00:00` or `10:00:00.5`, with or without `Z` or an offset such as `+01:00`.
fn is_time(text: &str, dialect: Dialect) -> bool {
    let is_mysql = dialect == Dialect::Mysql;
    let text = text.strip_prefix('-').filter(|_| is_mysql).unwrap_or(text);
    let (clock, zone) = split_zone(text);
    let mut parts = clock.split(':');
    let (Some(hours), Some(minutes)) = (parts.next(), parts.next()) else {
        return false;
    };
    let (seconds, fraction) = match parts.next() {
        Some(seconds) => seconds
            .split_once('.')
            .map_or((seconds, None), |(whole, part)| (whole, Some(part))),
        None => ("00", None),
    };
    let most_hours = if is_mysql { 838 } else { 24 };
    let is_hours =
        matches!(hours.len(), 2 | 3) && number(hours, hours.len()).is_some_and(|hours| hours <= most_hours);
    parts.next().is_none()
        && is_hours
        && number(minutes, 2).is_some_and(|minutes| minutes < 60)
        // Databases would store a leap second as the next minute.
        && number(seconds, 2).is_some_and(|seconds| seconds < 60)
        && fraction.is_none_or(|part| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit()))
        && is_zone(zone, dialect)
}

/// Returns whether a text is a time zone, or none.
fn is_zone(text: &str, dialect: Dialect) -> bool {
    let Some(offset) = text.strip_prefix(['+', '-']) else {
        let is_name = |character: char| character.is_ascii_alphanumeric() || "/_+-".contains(character);
        let is_postgres = dialect == Dialect::Postgres;
        return matches!(text, "" | "Z" | "z" | "UTC") || (is_postgres && text.chars().all(is_name));
    };
    let mut parts = match offset.len() {
        4 if offset.is_ascii() && !offset.contains(':') => vec![&offset[..2], &offset[2..]],
        _ => offset.split(':').collect(),
    };
    let hours = parts.remove(0);
    number(hours, 2).is_some_and(|hours| hours < 24)
        && parts.len() <= 2
        && parts
            .iter()
            .all(|part| number(part, 2).is_some_and(|part| part < 60))
}

/// Returns the number that a text of so many digits is.
fn number(text: &str, digits: usize) -> Option<u32> {
    let is_number = text.len() == digits && text.bytes().all(|digit| digit.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: Temporal, dialect: Dialect, accepted: &[&str], rejected: &[&str]) {
        for text in accepted {
            assert!(kind.accepts(text, dialect), "{text}");
        }
        for text in rejected {
            assert!(!kind.accepts(text, dialect), "{text}");
        }
    }

    // Spec: ITEM-VALUE-04
    #[test]
    fn dates_and_times_have_the_form_of_iso() {
        use Dialect::{Mysql, Postgres, Sqlite};
        for dialect in [Sqlite, Postgres, Mysql] {
            check(
                Temporal::Date,
                dialect,
                &["2026-11-26", "2024-02-29", "2000-02-29", "0001-01-01"],
                &[
                    "26.11.2026",
                    "12.11.2026",
                    "11/12/2026",
                    "2026-02-29",
                    "1900-02-29",
                    "2026-13-01",
                    "2026-00-01",
                    "2026-01-00",
                    "2026-04-31",
                    "26-11-12",
                    "20261126",
                    "2026-1-2",
                    "",
                    "now",
                    "2026-11-26 10:00:00",
                    "2026-11-é",
                ],
            );
            check(
                Temporal::Timestamp,
                dialect,
                &[
                    "2026-11-26",
                    "2026-11-26 10:00:00",
                    "2026-11-26T10:00:00.123456Z",
                    "2026-11-26 10:00",
                    "2026-11-26 10:00:00+01",
                    "2026-11-26 10:00:00 +01:30",
                    "2026-11-26T10:00:00-0130",
                ],
                &[
                    "26.11.2026 10:00",
                    "2026-11-26 10",
                    "2026-11-26 10:60",
                    "2026-11-26 23:59:60",
                    "2026-11-26 ",
                    "yesterday",
                    "2026-11-26 10:00:00.",
                    "2026-11-26 10:00:00+1",
                    "2026-11-26 10:00:00:00",
                ],
            );
            check(
                Temporal::Time,
                dialect,
                &["10:00", "23:59:59.5"],
                &["10", "10.00", "noon", "10:5", "2026-11-26"],
            );
        }
        check(Temporal::Date, Postgres, &["infinity", "0044-03-15 BC"], &["-"]);
        check(
            Temporal::Timestamp,
            Postgres,
            &["2026-11-26 10:00 Europe/Berlin"],
            &["2026-11-26 10:00 !"],
        );
        check(Temporal::Date, Sqlite, &[], &["infinity", "0044-03-15 BC"]);
        check(
            Temporal::Time,
            Mysql,
            &["-120:00:00", "838:59:59"],
            &["839:00:00"],
        );
        check(Temporal::Time, Sqlite, &[], &["-10:00:00", "25:00:00"]);
    }
}
