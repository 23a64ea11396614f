//! Reading and writing by ODBC, with the drivers of Debian and real servers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod destinations;
mod reading;
mod stage;
mod writing;

/// The page of properties is that of the code.
#[test]
fn properties_are_listed() {
    batch_tests::properties::check_chapter("batch-odbc", &[]);
}
