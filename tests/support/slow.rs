//! The slow tier: with `BATCH_TEST_SLOW=1` the tests that repeat something many times do it more often.

/// Returns how often a test repeats: `usual` times, or `slow` times in the slow tier.
pub fn times(usual: u32, slow: u32) -> u32 {
    let is_slow = std::env::var("BATCH_TEST_SLOW").is_ok_and(|value| value == "1");
    if is_slow { slow } else { usual }
}
