//! What the compiler says about annotations, and what the annotations accept.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod annotations;
mod ui;
