//! Random numbers from a printed seed.

/// A small generator (xorshift64*). Set `BATCH_SEED` to repeat a run.
pub struct Random(u64);

impl Random {
    /// Creates a generator and prints its seed, so that a failing run can be repeated.
    pub fn new(what: &str) -> Self {
        let time = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("after 1970");
        let given = std::env::var("BATCH_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed: u64 =
            given.unwrap_or_else(|| u64::try_from(time.as_nanos() & u128::from(u64::MAX)).expect("masked"));
        println!("{what}: BATCH_SEED={seed}");
        Self(seed | 1)
    }

    /// Creates a generator of a seed that the caller prints.
    pub fn seeded(seed: u64) -> Self {
        // Seeds that differ by one begin with different numbers.
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) % limit.max(1)
    }
}
