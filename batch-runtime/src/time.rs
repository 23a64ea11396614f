//! Points in time as the repository stores them, the clock, and the time zone of the stored times.
// Spec: DOM-18

pub use crate::clock::{Clock, SystemClock, Timestamp, TimestampError};
pub use crate::time_zone::{TimeZone, TimeZoneError};

/// Formats a length of time in milliseconds for people: `4.500 s`, `1:05 min`, `2:00:09 h`.
pub fn elapsed(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..60 => format!("{seconds}.{:03} s", millis % 1000),
        60..3600 => format!("{}:{:02} min", seconds / 60, seconds % 60),
        _ => format!(
            "{}:{:02}:{:02} h",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::elapsed;

    #[test]
    fn lengths_of_time_are_short() {
        let shown = [0, 59_999, 60_000, 3_599_999, 3_600_000, 100 * 3_600_000].map(elapsed);
        let expected = [
            "0.000 s",
            "59.999 s",
            "1:00 min",
            "59:59 min",
            "1:00:00 h",
            "100:00:00 h",
        ];
        assert_eq!(shown, expected);
    }
}
