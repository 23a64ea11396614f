//! Time zones: the conversion between wall-clock times and points in time, for the columns of repositories that are
//! shared with a JVM; see `repository/diesel/session.rs`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use batch_xml::suggest::nearest;
use jiff::civil::DateTime;
use jiff::tz;

use crate::clock::Timestamp;

/// A time zone: UTC, an IANA name, or a fixed offset.
///
/// ```
/// use batch_runtime::time::TimeZone;
/// let zone: TimeZone = "Europe/Berlin".parse()?;
/// assert_eq!(zone.to_string(), "Europe/Berlin");
/// assert_eq!("-03:30".parse::<TimeZone>()?.to_string(), "-03:30");
/// let error = "Europe/Berln".parse::<TimeZone>().unwrap_err();
/// assert_eq!(error.to_string(), "unknown time zone \"Europe/Berln\": did you mean `Europe/Berlin`?");
/// # Ok::<(), batch_runtime::time::TimeZoneError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeZone(tz::TimeZone);

impl TimeZone {
    /// Universal time.
    pub const UTC: Self = Self(tz::TimeZone::UTC);

    /// Returns the zone of this computer; UTC if that is not known.
    pub(crate) fn system() -> Self {
        Self(tz::TimeZone::system())
    }

    /// Returns the wall-clock time of a point in time, as milliseconds since 1970-01-01T00:00:00.
    pub(crate) fn wall(&self, instant: Timestamp) -> Timestamp {
        Timestamp(instant.0.saturating_add(self.offset(instant.0)))
    }

    /// Returns the point in time of a wall-clock time, by the rules of java.sql.Timestamp and JDBC drivers: the later
    /// one where clocks are set back, and shifted by the gap where they are set forward.
    pub(crate) fn instant(&self, wall: Timestamp) -> Timestamp {
        let found = jiff::Timestamp::from_millisecond(wall.0).and_then(|as_if_utc| {
            let shown = tz::TimeZone::UTC.to_datetime(as_if_utc);
            self.0.to_ambiguous_timestamp(shown).later()
        });
        match found {
            Ok(instant) => Timestamp(instant.as_millisecond()),
            // The last days of the year 9999, or beyond the calendar.
            Err(_) => Timestamp(wall.0.saturating_sub(self.offset(wall.0))),
        }
    }

    /// Returns the date and time that the zone shows, and its abbreviation; `None` beyond the calendar.
    pub(crate) fn shown(&self, instant: Timestamp) -> Option<(DateTime, String)> {
        let instant = jiff::Timestamp::from_millisecond(instant.0).ok()?;
        let info = self.0.to_offset_info(instant);
        let shown = info.offset().to_datetime(instant);
        Some((shown, info.abbreviation().to_owned()))
    }

    /// Returns whether the zone has one abbreviation for standard time and at most one for daylight saving time, since a point in time.
    pub(crate) fn has_same_names_since(&self, instant: Timestamp) -> bool {
        /// Of each year there are at most two, except for a few zones.
        const TRANSITIONS: usize = 150;
        let Ok(first) = jiff::Timestamp::from_millisecond(instant.0) else {
            return false;
        };
        let now = self.0.to_offset_info(first);
        let now = (now.dst(), now.abbreviation().to_owned());
        let later = self.0.following(first).take(TRANSITIONS);
        let later = later.map(|transition| (transition.dst(), transition.abbreviation().to_owned()));
        let names: BTreeSet<_> = [now].into_iter().chain(later).collect();
        let kinds: BTreeSet<_> = names.iter().map(|(dst, _)| dst).collect();
        names.len() == kinds.len()
    }

    /// Returns the offset from UTC in milliseconds.
    fn offset(&self, instant: i64) -> i64 {
        let [first, last] = [jiff::Timestamp::MIN, jiff::Timestamp::MAX].map(jiff::Timestamp::as_second);
        let known = jiff::Timestamp::from_second(instant.div_euclid(1_000).clamp(first, last));
        let offset = known.map_or(tz::Offset::UTC, |instant| self.0.to_offset(instant));
        i64::from(offset.seconds()) * 1_000
    }
}

impl Default for TimeZone {
    fn default() -> Self {
        Self::UTC
    }
}

impl fmt::Display for TimeZone {
    /// Writes the text that parses as this zone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.0.iana_name() {
            return f.write_str(name);
        }
        let seconds = self.offset(0) / 1_000;
        let sign = if seconds < 0 { '-' } else { '+' };
        let minutes = seconds.abs() / 60;
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

impl FromStr for TimeZone {
    type Err = TimeZoneError;

    /// Parses `UTC`, an IANA name such as `Europe/Berlin`, or an offset from UTC such as `+02:00`.
    fn from_str(text: &str) -> Result<Self, TimeZoneError> {
        if let Some(offset) = offset(text) {
            return Ok(Self(tz::TimeZone::fixed(offset)));
        }
        match tz::TimeZone::get(text) {
            Ok(zone) if !zone.is_unknown() => Ok(Self(zone)),
            _ => {
                let names: Vec<_> = tz::db().available().collect();
                let names = names.iter().map(|name| name.as_str());
                Err(TimeZoneError {
                    text: text.to_owned(),
                    nearest: nearest(text, names).map(str::to_owned),
                })
            }
        }
    }
}

/// Parses an offset of less than a day, such as `+02:00` or `-02:00`.
fn offset(text: &str) -> Option<tz::Offset> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |part: &str| match part.as_bytes() {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            Some(i32::from(tens - b'0') * 10 + i32::from(ones - b'0'))
        }
        _ => None,
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours < 24 && minutes < 60).then_some(())?;
    tz::Offset::from_seconds(sign * (hours * 3_600 + minutes * 60)).ok()
}

/// A text that is not a valid [`TimeZone`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone {text:?}: {}", .nearest.as_ref().map_or_else(
    || "expected a name such as Europe/Berlin, or an offset such as +02:00".to_owned(),
    |name| format!("did you mean `{name}`?")
))]
pub struct TimeZoneError {
    text: String,
    nearest: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> TimeZone {
        name.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// Checks the conversion between wall-clock time and point in time, both ways.
    fn check(name: &str, wall: &str, instant: &str) {
        let (wall, instant) = (time(wall), time(instant));
        assert_eq!(zone(name).instant(wall), instant, "{name} {wall}");
        assert_eq!(zone(name).wall(instant), wall, "{name} {instant}");
    }

    #[test]
    fn clocks_differ_from_utc() {
        check("UTC", "2026-11-20T13:45:00.123", "2026-11-20T13:45:00.123");
        check(
            "Europe/Berlin",
            "2026-11-20T13:45:00.123",
            "2026-11-20T12:45:00.123",
        );
        check("Europe/Berlin", "2026-07-20T13:45", "2026-07-20T11:45");
        check("America/New_York", "2026-07-20T13:45", "2026-07-20T17:45");
        check("Asia/Kolkata", "2026-07-20T13:45", "2026-07-20T08:15");
        check("+02:00", "2026-11-20T01:00", "2026-11-19T23:00");
        check("-03:30", "2026-11-20T01:00", "2026-11-20T04:30");
        check("Europe/Berlin", "9999-12-30T12:00", "9999-12-30T11:00");
        check("Europe/Berlin", "9999-12-31T23:59", "9999-12-31T22:59");
    }

    /// Clocks set forward and back; in Moscow also set back without a summer time.
    #[test]
    fn clocks_that_are_changed_are_read_as_java_does() {
        let skipped = zone("Europe/Berlin").instant(time("2024-03-31T02:30"));
        assert_eq!(
            skipped,
            time("2024-03-31T01:30"),
            "half an hour after they were set forward"
        );
        check("Europe/Berlin", "2024-03-31T03:30", "2024-03-31T01:30");
        check("Europe/Berlin", "2024-10-27T02:30", "2024-10-27T01:30");
        assert_eq!(
            zone("Europe/Berlin").wall(time("2024-10-27T00:30")),
            time("2024-10-27T02:30")
        );
        check(
            "Europe/Berlin",
            "2024-10-27T01:59:59.999",
            "2024-10-26T23:59:59.999",
        );
        check("Europe/Berlin", "2024-10-27T03:00", "2024-10-27T02:00");
        check("Europe/Moscow", "2014-10-26T01:30", "2014-10-25T22:30");
    }

    /// Times that only a corrupt row can contain are preserved.
    #[test]
    fn no_time_is_too_far_away() {
        for millis in [i64::MIN, i64::MAX, 400_000_000_000_000, -400_000_000_000_000] {
            let there = zone("+02:00").instant(Timestamp(millis));
            assert!(
                (there.0 - millis).abs() <= 7_200_000 || there.0 == millis,
                "{millis}"
            );
            zone("Europe/Berlin").wall(Timestamp(millis));
        }
        let far = Timestamp(400_000_000_000_000);
        assert_eq!(zone("+02:00").wall(zone("+02:00").instant(far)), far);
    }

    #[test]
    fn names_are_parsed_and_shown() {
        for name in [
            "UTC",
            "Europe/Berlin",
            "America/Argentina/Buenos_Aires",
            "+00:30",
            "-12:00",
        ] {
            assert_eq!(zone(name).to_string(), name);
        }
        assert_eq!(zone("europe/berlin"), zone("Europe/Berlin"));
        assert_eq!(zone("+00:00").wall(Timestamp(5)), Timestamp(5));
        for (text, help) in [
            ("Europe/Berln", "did you mean `Europe/Berlin`?"),
            ("UTCC", "did you mean `UTC`?"),
            ("", "expected a name"),
            ("+2:00", "expected a name"),
            ("+24:00", "expected a name"),
            ("02:00", "expected a name"),
            ("-01:60", "expected a name"),
            ("/etc/localtime", "expected a name"),
            ("../../etc/passwd", "expected a name"),
            ("local", "expected a name"),
        ] {
            let error = text.parse::<TimeZone>().unwrap_err().to_string();
            assert!(error.contains(help), "{text}: {error}");
        }
    }
}
