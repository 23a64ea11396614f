//! The reader of the CSV file. An invalid row is an error, and the next call reads the row after it; therefore the error can
//! be skipped.

use std::fs::File;
use std::path::PathBuf;

use batch_examples::position::Position;
use batch_runtime::prelude::*;
use csv::{Reader, StringRecord};

use super::errors::PaymentError;

#[derive(BatchArtifact)]
struct PaymentReader {
    #[batch_property(name = "payments.file")]
    file: PathBuf,
    rows: Option<Reader<File>>,
}

/// A row of the file.
pub(crate) struct PaymentRow {
    pub(crate) line: u64,
    pub(crate) payment: String,
    pub(crate) account: String,
    pub(crate) amount: String,
    pub(crate) currency: String,
}

#[item_reader("PaymentReader")]
impl PaymentReader {
    #[open]
    fn open(&mut self, checkpoint: Option<Position>) -> Result<(), csv::Error> {
        let mut rows = Reader::from_path(&self.file)?;
        rows.headers()?;
        if let Some(position) = checkpoint {
            position.seek(&mut rows)?;
        }
        self.rows = Some(rows);
        Ok(())
    }

    #[read_item]
    fn read(&mut self) -> Result<Option<PaymentRow>, BatchError> {
        let Some(rows) = &mut self.rows else {
            return Ok(None);
        };
        let line = rows.position().line();
        let mut row = StringRecord::new();
        match rows.read_record(&mut row) {
            Ok(true) => Ok(Some(PaymentRow {
                line,
                payment: row[0].into(),
                account: row[1].into(),
                amount: row[2].into(),
                currency: row[3].into(),
            })),
            Ok(false) => Ok(None),
            // Other errors, such as a broken disk, keep their type and fail the step.
            Err(error) if error.is_io_error() => Err(error.into()),
            Err(error) => {
                let reason = match error.kind() {
                    csv::ErrorKind::UnequalLengths {
                        expected_len, len, ..
                    } => {
                        format!("{len} fields instead of {expected_len}")
                    }
                    _ => error.to_string(),
                };
                Err(PaymentError::Unreadable { line, reason }.into())
            }
        }
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Position {
        Position::of(self.rows.as_ref())
    }

    #[close]
    fn close(&mut self) {
        self.rows = None;
    }
}
