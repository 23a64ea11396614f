//! The slow tier: with `BATCH_TEST_SLOW=1` repeating tests repeat more often, and sweeps strike at each event.

/// Returns `usual`, or `slow` in the slow tier: the number of repetitions, or the first seed.
pub fn times<T>(usual: T, slow: T) -> T {
    if is_slow() { slow } else { usual }
}

/// Returns the distance between the events that a sweep strikes: 1, all of them, in the slow tier.
pub fn stride(usual: u32) -> u32 {
    if is_slow() { 1 } else { usual }
}

fn is_slow() -> bool {
    std::env::var("BATCH_TEST_SLOW").is_ok_and(|value| value == "1")
}
