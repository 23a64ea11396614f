//! The pauses before retries: of items, and of notifications.
// Spec: CHUNK-RETRY-16, D-07, FAULT-01

use std::time::Duration;

use crate::random::random;

/// The pauses before retries; of items, between two commits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BackOff {
    /// The number of retries before the first pause.
    pub(crate) quick: u32,
    /// The first pause.
    pub(crate) initial: Duration,
    /// The factor from each pause to the next.
    pub(crate) multiplier: f64,
    pub(crate) max: Duration,
    /// The largest fraction of a pause that is cut off at random; 0 disables the jitter.
    pub(crate) jitter: f64,
}

impl Default for BackOff {
    /// Relieves an overloaded system, and hardly delays a retry that succeeds.
    fn default() -> Self {
        Self {
            quick: 3,
            initial: Duration::from_millis(1),
            multiplier: 2.0,
            max: Duration::from_secs(1),
            jitter: 0.0,
        }
    }
}

impl BackOff {
    /// Returns the pauses to use while a transaction is open: on SQLite, all other writers wait for it.
    pub(crate) fn in_transaction(self) -> Self {
        Self {
            max: self.max.min(Duration::from_secs(1)),
            ..self
        }
    }

    /// Returns the pause before an attempt. The first attempt has the number 1.
    pub(crate) fn pause(self, attempt: u32) -> Option<Duration> {
        if self.initial.is_zero() {
            return None;
        }
        let before = attempt.checked_sub(self.quick + 1)?;
        let factor = self.multiplier.powi(i32::try_from(before).unwrap_or(i32::MAX));
        let longest = self.max.as_secs_f64();
        let pause = (self.initial.as_secs_f64() * factor).min(longest);
        let left_out = match self.jitter > 0.0 {
            true => pause * self.jitter * fraction(),
            false => 0.0,
        };
        let pause = Duration::try_from_secs_f64(pause - left_out).unwrap_or(self.max);
        (!pause.is_zero()).then_some(pause)
    }
}

/// Returns a random number from 0 to 1.
#[allow(clippy::cast_precision_loss, reason = "32 bits are exact")]
fn fraction() -> f64 {
    let bits = random() >> 32;
    bits as f64 / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: FAULT-01
    #[test]
    fn pauses_grow_up_to_the_longest() {
        let millis = Duration::from_millis;
        let exponential = BackOff {
            quick: 0,
            initial: millis(100),
            multiplier: 2.0,
            max: millis(500),
            jitter: 0.0,
        };
        let pauses = |back_off: BackOff| [1, 2, 3, 4, 9].map(|attempt| back_off.pause(attempt));
        assert_eq!(
            pauses(exponential),
            [100, 200, 400, 500, 500].map(|pause| Some(millis(pause)))
        );
        let fixed = BackOff {
            multiplier: 1.0,
            ..exponential
        };
        assert_eq!(pauses(fixed), [Some(millis(100)); 5]);
        let none = BackOff {
            initial: Duration::ZERO,
            ..exponential
        };
        assert_eq!(pauses(none), [None; 5]);
        assert_eq!(none.pause(u32::MAX), None);
        assert_eq!(exponential.pause(u32::MAX), Some(millis(500)));
    }

    // Spec: FAULT-01
    #[test]
    fn pauses_in_a_transaction_are_short() {
        let hour = Duration::from_secs(3_600);
        let long = BackOff {
            quick: 0,
            initial: hour,
            multiplier: 1.0,
            max: hour,
            jitter: 0.0,
        };
        assert_eq!(long.pause(1), Some(hour));
        assert_eq!(long.in_transaction().pause(1), Some(Duration::from_secs(1)));
    }

    // Spec: FAULT-01
    #[test]
    fn jitter_shortens_pauses_at_random() {
        let back_off = BackOff {
            quick: 0,
            initial: Duration::from_secs(100),
            multiplier: 1.0,
            max: Duration::from_secs(100),
            jitter: 0.5,
        };
        let pauses: Vec<_> = (0..50).filter_map(|_| back_off.pause(1)).collect();
        let is_between = |pause: &Duration| (50.0..=100.0).contains(&pause.as_secs_f64());
        assert!(pauses.iter().all(is_between), "{pauses:?}");
        assert!(pauses.iter().any(|pause| *pause != pauses[0]), "{pauses:?}");
        // They are spread over the whole range.
        let half = Duration::from_secs(75);
        assert!(pauses.iter().any(|pause| *pause < half), "{pauses:?}");
        assert!(pauses.iter().any(|pause| *pause > half), "{pauses:?}");
    }
}
