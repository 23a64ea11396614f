//! The corpus of a fuzz target as an ordinary test: each input, then mutations of them, always the same ones. The tests of the
//! crates that have the bodies of targets include this file.
//!
//! With `BATCH_TEST_SLOW=1`, the mutations are other ones in each run and continue for ten minutes, or for `BATCH_FUZZ_SECONDS`; without, that
//! variable does the same. `BATCH_SEED` repeats the mutations of a run.
#![forbid(unsafe_code)]
#![allow(
    unreachable_pub,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a module of several crates, for tests alone"
)]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use std::{env, fs};

/// The maximum length of a mutated input, unless it was longer before.
const MAX_BYTES: usize = 4_000;

/// Bytes that many of the languages here give a meaning to, and characters at the borders of UTF-8 and UTF-16.
const TOKENS: [&str; 24] = [
    "\0",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "\n",
    ",",
    "=",
    ":",
    "*",
    "?",
    "(",
    ")",
    "{}",
    "[]",
    "null",
    "-",
    "-1",
    "9223372036854775808",
    "1e400",
    "NaN",
    "\u{80}",
    "\u{ffff}",
    "\u{10ffff}",
];

/// Passes every file of a corpus, and `mutations` mutated ones, to the body of its target.
///
/// # Panics
/// If the body panics; prints the seed and the input.
pub fn replay(corpus: &str, mutations: usize, body: fn(&[u8])) {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut folders = folders.map(|folder| folder.join("fuzz/corpus"));
    // A published crate has none.
    let Some(all) = folders.find(|folder| folder.is_dir()) else {
        return println!("NOT CHECKED: {corpus}, whose corpus is in the repository");
    };
    let folder = all.join(corpus);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 10, "{files:?}");
    let inputs: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    let limit = time_limit();
    let given = env::var("BATCH_SEED").ok();
    let seed = match (given, limit) {
        (Some(seed), _) => seed.parse().expect("BATCH_SEED is a number"),
        (None, Some(_)) => fresh_seed(),
        (None, None) => 1,
    };
    // Before the first input, because one that aborts the process prints nothing: `--nocapture` shows it.
    println!("{corpus}: BATCH_SEED={seed}");
    let mut random = Random(seed);
    let start = Instant::now();
    let goes_on = |count: &usize| match limit {
        Some(limit) => start.elapsed() < limit,
        None => *count < mutations,
    };
    let mutated = (0..).take_while(goes_on).map(|_| random.mutated(&inputs));
    let mut runs = 0;
    for input in inputs.iter().cloned().chain(mutated) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(&input))) {
            println!("{corpus}: {}", input.escape_ascii());
            resume_unwind(panic);
        }
        runs += 1;
    }
    println!("{corpus}: {runs} inputs");
}

/// Returns the time for mutations in the slow tier; `None` in the usual one, which has a number of them.
fn time_limit() -> Option<Duration> {
    let is_slow = env::var("BATCH_TEST_SLOW").is_ok_and(|value| value == "1");
    let seconds = match env::var("BATCH_FUZZ_SECONDS") {
        Ok(seconds) => Some(seconds.parse().expect("BATCH_FUZZ_SECONDS is a number")),
        Err(_) => is_slow.then_some(600),
    };
    seconds.map(Duration::from_secs)
}

/// Returns a number that is not zero, which xorshift cannot leave.
fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_micros() % 1_000_000_000_000).unwrap() | 1
}

/// xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
    }

    fn mutated(&mut self, inputs: &[Vec<u8>]) -> Vec<u8> {
        let mut input = inputs[self.below(inputs.len())].clone();
        let length = input.len();
        for _ in 0..=self.below(4) {
            let (from, to) = self.range(input.len());
            let new = match self.below(5) {
                0 => Vec::new(),
                1 => vec![u8::try_from(self.below(256)).unwrap()],
                2 => TOKENS[self.below(TOKENS.len())].as_bytes().to_vec(),
                3 => {
                    let other = &inputs[self.below(inputs.len())];
                    let (from, to) = self.range(other.len());
                    other[from..to].to_vec()
                }
                _ => input[from..to].repeat(2 + self.below(20)),
            };
            input.splice(from..to, new);
            input.truncate(MAX_BYTES.max(length));
        }
        input
    }

    /// Returns a range within a length, mostly a short one.
    fn range(&mut self, length: usize) -> (usize, usize) {
        let from = self.below(length + 1);
        let longest = if self.below(4) == 0 { length } else { 4 };
        let to = from + self.below(longest + 1);
        (from, to.min(length))
    }
}
