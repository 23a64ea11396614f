//! The deadline of a job: the property `batch.job.deadline`.

use std::str::FromStr;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::time_zone::TimeZone;

/// When an instance is to be complete.
// Spec: NOTIFY-07
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deadline {
    /// This time after its first execution was created.
    After(Duration),
    /// When clocks in the zone first show this time of day, in milliseconds, after the first execution was created.
    TimeOfDay(i64, TimeZone),
    /// At this time.
    At(Timestamp),
}

/// A hundred years. More is a mistake, such as a number of milliseconds.
const MOST_SECONDS: u64 = 100 * 366 * 24 * 60 * 60;
/// Milliseconds.
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

pub(crate) const EXPECTED: &str = "expected a number of seconds, a time of day such as `06:00` or `06:00 Europe/Berlin`, or a time in UTC such as `2026-11-30T06:00Z`";

impl Deadline {
    /// Returns the deadline of an instance whose first execution was created at `first`.
    pub(crate) fn of(&self, first: Timestamp) -> Timestamp {
        match self {
            Self::After(time) => {
                let time = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
                Timestamp(first.0.saturating_add(time))
            }
            Self::TimeOfDay(time, zone) => {
                let began = zone.wall(first).0;
                let that_day = began.div_euclid(DAY) * DAY + time;
                let next = if that_day > began {
                    that_day
                } else {
                    that_day + DAY
                };
                zone.instant(Timestamp(next))
            }
            Self::At(time) => *time,
        }
    }
}

impl FromStr for Deadline {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Ok(seconds) = text.parse::<u64>() {
            return match seconds {
                0 => Err(EXPECTED.to_owned()),
                MOST_SECONDS.. => Err(format!("{seconds} seconds are more than a hundred years")),
                _ => Ok(Self::After(Duration::from_secs(seconds))),
            };
        }
        let (time, zone) = match text.split_once(' ') {
            Some((time, zone)) => (time, Some(zone.trim())),
            None => (text, None),
        };
        if let Some(time) = time_of_day(time) {
            let zone = match zone {
                Some(zone) => zone
                    .parse()
                    .map_err(|error: crate::time_zone::TimeZoneError| error.to_string())?,
                None => TimeZone::system(),
            };
            return Ok(Self::TimeOfDay(time, zone));
        }
        text.parse().map(Self::At).map_err(|_| EXPECTED.to_owned())
    }
}

/// Parses `06:00`.
fn time_of_day(text: &str) -> Option<i64> {
    let (hour, minute) = text.split_once(':')?;
    let number = |text: &str, most: i64| {
        let number: i64 = (text.len() == 2).then(|| text.parse().ok())??;
        (0..=most).contains(&number).then_some(number)
    };
    Some(number(hour, 23)? * HOUR + number(minute, 59)? * MINUTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    // Spec: NOTIFY-07
    #[test]
    fn the_deadline_is_counted_from_the_first_execution() {
        let first = at("2026-03-28T22:30:00Z");
        for (text, expected) in [
            ("90", "2026-03-28T22:31:30Z"),
            ("23:00 UTC", "2026-03-28T23:00:00Z"),
            // A time of day that has passed means the next day.
            ("22:30 UTC", "2026-03-29T22:30:00Z"),
            // On the next day clocks are set forward in between, at 2:00.
            ("06:00 Europe/Berlin", "2026-03-29T04:00:00Z"),
            // Clocks there show no such time on that day.
            ("02:30 Europe/Berlin", "2026-03-29T01:30:00Z"),
            ("06:00 -03:30", "2026-03-29T09:30:00Z"),
            ("2026-03-30T06:00Z", "2026-03-30T06:00:00Z"),
        ] {
            let deadline: Deadline = text.parse().unwrap();
            assert_eq!(deadline.of(first), at(expected), "{text}");
        }
    }

    // Spec: NOTIFY-07
    #[test]
    fn other_texts_are_rejected() {
        for text in [
            "",
            "0",
            "-1",
            "6:00",
            "24:00",
            "06:60",
            "06:00:00",
            "soon",
            "06:00Z",
            "2026-13-01",
        ] {
            assert_eq!(text.parse::<Deadline>().unwrap_err(), EXPECTED, "{text}");
        }
        let long = "99999999999999".parse::<Deadline>().unwrap_err();
        assert_eq!(long, "99999999999999 seconds are more than a hundred years");
        let unknown = "06:00 Europe/Berln".parse::<Deadline>().unwrap_err();
        assert!(unknown.contains("did you mean `Europe/Berlin`?"), "{unknown}");
    }
}
