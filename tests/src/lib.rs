//! What the tests share.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

pub mod contender;
pub mod databases;
mod elsewhere;
pub mod flights;
pub mod kill;
pub mod logical_tx;
pub mod operated;
pub mod order;
pub mod partitions;
pub mod process;
pub mod random;
mod sphere;
pub mod stage;
pub mod watch;

/// The README's programs compile.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
