//! Whole jobs on each database, and what one is told when there is none.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod databases {
    mod crash;
    mod edges;
    mod history;
    mod jobs;
    mod lost;
    mod opening;
    mod prefix;
    mod purge;
    mod zones;
}
