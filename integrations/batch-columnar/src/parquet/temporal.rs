//! Texts of dates and times as the numbers that columns have for them.

use arrow_schema::{DataType, TimeUnit};

use crate::iso::{NANOS_OF_DAY, NANOS_OF_SECOND, clock, date, timestamp};

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
