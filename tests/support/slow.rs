//! The slow tier: with `BATCH_TEST_SLOW=1` repeating tests repeat more often.

/// Returns the number of repetitions: `usual`, or `slow` in the slow tier.
pub fn times(usual: u32, slow: u32) -> u32 {
    let is_slow = std::env::var("BATCH_TEST_SLOW").is_ok_and(|value| value == "1");
    if is_slow { slow } else { usual }
}
