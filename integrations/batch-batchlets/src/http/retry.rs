//! Retries: the failures that are retried, and the pauses between attempts.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;

/// The reason why a request failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) message: String,
    /// The beginning of the response, for the error only: it may repeat what was sent.
    pub(super) excerpt: String,
    pub(super) retry: Retry,
}

/// Whether another attempt may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    Never,
    Yes,
    /// Not before this time has passed, as the service requests by `Retry-After`.
    After(Duration),
}

impl Failure {
    pub(super) fn new(message: impl Into<String>, retry: Retry) -> Self {
        Self {
            message: message.into(),
            excerpt: String::new(),
            retry,
        }
    }

    /// Describes an error of the connection, or of the request.
    pub(super) fn of(error: &ureq::Error) -> Self {
        use ureq::Error;

        let is_of_connection = matches!(
            error,
            Error::Io(_) | Error::Timeout(_) | Error::HostNotFound | Error::ConnectionFailed
        );
        let retry = if is_of_connection {
            Retry::Yes
        } else {
            Retry::Never
        };
        Self::new(error.to_string(), retry)
    }
}

impl Retry {
    /// Returns whether a status may be temporary, given the header `Retry-After`.
    pub(super) fn of_status(status: u16, retry_after: Option<&str>, now: Timestamp) -> Self {
        if !matches!(status, 429 | 502 | 503 | 504) {
            return Self::Never;
        }
        retry_after
            .and_then(|text| parse_retry_after(text, now))
            .map_or(Self::Yes, Self::After)
    }
}

/// Parses a number of seconds, or a date.
fn parse_retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = rfc2822::parse(text.trim()).ok()?.timestamp();
    // A date in the past means at once.
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

/// The limits of retries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) retries: u32,
    pub(super) delay: Duration,
    pub(super) longest_delay: Duration,
}

impl Limits {
    /// Returns the pause before the next attempt, after so many retries, or `None` if there is no next attempt. `random` is
    /// from 0 to 1.
    pub(super) fn pause(self, retries: u32, retry: Retry, random: f64) -> Option<Duration> {
        if retries >= self.retries {
            return None;
        }
        let doubled = self
            .delay
            .saturating_mul(1_u32.checked_shl(retries).unwrap_or(u32::MAX));
        // Between half of it and all of it, so that clients which failed together do not return together.
        let backoff = doubled.min(self.longest_delay).mul_f64(0.5 + random / 2.0);
        match retry {
            Retry::Never => None,
            Retry::Yes => Some(backoff),
            Retry::After(least) => (least <= self.longest_delay).then_some(backoff.max(least)),
        }
    }
}

/// Returns a random number from 0 to 1.
pub(super) fn random() -> f64 {
    let bits = RandomState::new().hash_one(());
    bits as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_pause_doubles_up_to_its_limit() {
        let limits = Limits {
            retries: 40,
            delay: SECOND,
            longest_delay: 60 * SECOND,
        };
        for (retries, seconds) in [(0, 1), (1, 2), (3, 8), (5, 32), (6, 60), (39, 60)] {
            let pause = |random| limits.pause(retries, Retry::Yes, random);
            assert_eq!(pause(1.0), Some(seconds * SECOND), "{retries}");
            assert_eq!(pause(0.0), Some(seconds * SECOND / 2), "{retries}");
        }
        assert_eq!(limits.pause(40, Retry::Yes, 1.0), None);
        assert_eq!(limits.pause(0, Retry::Never, 1.0), None);
    }

    #[test]
    fn the_pause_is_as_long_as_the_service_requests() {
        let limits = Limits {
            retries: 3,
            delay: SECOND,
            longest_delay: 60 * SECOND,
        };
        for (requested, pause) in [
            (0, Some(SECOND)),
            (30, Some(30 * SECOND)),
            (60, Some(60 * SECOND)),
            (61, None),
        ] {
            let retry = Retry::After(requested * SECOND);
            assert_eq!(limits.pause(0, retry, 1.0), pause, "{requested}");
        }
    }

    #[test]
    fn some_statuses_are_temporary() {
        let now: Timestamp = "2026-11-20T20:00:00Z".parse().unwrap();
        let of = |status, header| Retry::of_status(status, header, now);
        for status in [429, 502, 503, 504] {
            assert_eq!(of(status, None), Retry::Yes, "{status}");
        }
        for status in [400, 401, 404, 409, 500, 501] {
            assert_eq!(of(status, Some("5")), Retry::Never, "{status}");
        }
        assert_eq!(of(503, Some(" 120 ")), Retry::After(120 * SECOND));
        assert_eq!(
            of(503, Some("Fri, 20 Nov 2026 20:00:30 GMT")),
            Retry::After(30 * SECOND)
        );
        assert_eq!(
            of(429, Some("Fri, 20 Nov 2026 19:00:00 GMT")),
            Retry::After(Duration::ZERO)
        );
        assert_eq!(of(429, Some("soon")), Retry::Yes);
    }

    #[test]
    fn random_numbers_are_in_their_range() {
        for _ in 0..100 {
            assert!((0.0..=1.0).contains(&random()));
        }
    }
}
