//! Annotations: the compiler's errors for invalid ones, and the registrations of valid ones.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod annotations;
mod ui;
