//! Readers and writers of columnar files and sheets, in jobs as users run them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod arrow;
mod column_values;
#[path = "../../../../batch-items/tests/files/disturbance.rs"]
mod disturbance;
#[path = "../../../../batch-items/tests/files/happenings.rs"]
mod happenings;
mod parquet;
mod parquet_columns;
mod round_trips;
#[path = "../../../../batch-items/tests/files/stage.rs"]
#[expect(dead_code, reason = "the tests of batch-items use the rest of it")]
mod stage;
mod xlsx;
mod xlsx_writer;
