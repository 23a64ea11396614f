//! Reading and writing by ODBC, with the drivers of Debian and real servers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod destinations;
mod reading;
mod stage;
mod writing;
