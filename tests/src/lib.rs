//! What the tests share.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod elsewhere;
pub mod flights;
pub mod kill;
pub mod order;
pub mod process;
pub mod random;
pub mod stage;
pub mod watch;

/// The README's programs compile.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
