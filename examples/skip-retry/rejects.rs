//! The skip listener: writes skipped rows, with line and reason, to a CSV file.

use std::fs::OpenOptions;
use std::path::PathBuf;

use batch_runtime::prelude::*;

use super::booking::Payment;
use super::errors::PaymentError;
use super::reading::PaymentRow;

/// Appends a row for each skip. The file is not part of the chunk's transaction: after a crash the skips of the uncommitted
/// chunk happen again, so their lines appear twice.
#[derive(BatchArtifact)]
struct Rejects {
    #[batch_property(name = "rejects.file")]
    file: PathBuf,
}

#[skip_listener("Rejects")]
impl Rejects {
    /// Records a skipped row. There is no item, so the error has to hold the line.
    #[on_skip_in_read]
    fn in_read(&mut self, ex: &BatchError) -> Result<(), csv::Error> {
        let line = match ex.downcast_ref::<PaymentError>() {
            Some(PaymentError::Unreadable { line, .. }) => *line,
            _ => 0,
        };
        self.reject(line, ex)
    }

    #[on_skip_in_process]
    fn in_process(&mut self, ex: &BatchError, row: &PaymentRow) -> Result<(), csv::Error> {
        self.reject(row.line, ex)
    }

    /// Records the payment that could not be booked; the list does not include the others.
    #[on_skip_in_write]
    fn in_write(&mut self, ex: &BatchError, payment: &Payment) -> Result<(), csv::Error> {
        self.reject(payment.line.unsigned_abs(), ex)
    }

    fn reject(&self, line: u64, ex: &BatchError) -> Result<(), csv::Error> {
        let file = OpenOptions::new().create(true).append(true).open(&self.file)?;
        let is_new = file.metadata()?.len() == 0;
        let mut rows = csv::Writer::from_writer(file);
        if is_new {
            rows.write_record(["line", "reason"])?;
        }
        rows.write_record([&line.to_string(), &ex.to_string()])?;
        rows.flush()?;
        Ok(())
    }
}
