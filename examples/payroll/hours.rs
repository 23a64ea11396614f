//! The hours that employees have worked: the reader, its exception, and the listener of skipped rows.

use std::fmt;
use std::fs::File;

use batch_examples::money::Cents;
use batch_examples::open_csv;
use batch_runtime::prelude::*;
use serde::Deserialize;

/// A row of a file.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Hours {
    pub(crate) employee: String,
    pub(crate) hours: i64,
    pub(crate) rate: Cents,
}

/// The exception that the job skips.
#[derive(Debug, BatchException)]
#[batch_exception(class = "com.example.payroll.BadHoursException")]
pub(crate) struct BadHours(pub(crate) String);

impl fmt::Display for BadHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadHours {}

/// Reads the rows of a file. Its checkpoint is the number of rows that it has read.
#[derive(BatchArtifact)]
struct HoursReader {
    #[batch_property]
    file: String,
    rows: Option<csv::DeserializeRecordsIntoIter<File, Hours>>,
    read: usize,
}

#[item_reader("hoursReader")]
impl HoursReader {
    #[open]
    fn open(&mut self, checkpoint: Option<usize>) -> Result<(), BatchError> {
        self.read = checkpoint.unwrap_or(0);
        let mut rows = open_csv(self.file.as_ref())?.into_deserialize();
        rows.by_ref().take(self.read).for_each(drop);
        self.rows = Some(rows);
        Ok(())
    }

    #[read_item]
    fn read_item(&mut self) -> Result<Option<Hours>, BadHours> {
        let Some(row) = self.rows.as_mut().and_then(Iterator::next) else {
            return Ok(None);
        };
        self.read += 1;
        row.map(Some)
            .map_err(|error| BadHours(format!("row {} of {}: {error}", self.read, self.file)))
    }

    #[get_checkpoint_info]
    fn checkpoint_info(&self) -> usize {
        self.read
    }
}

/// Prints the rows that are skipped.
#[derive(BatchArtifact)]
struct BadHoursListener;

#[skip_listener("badHoursListener")]
impl BadHoursListener {
    #[on_skip_in_read]
    fn on_skip_read_item(&mut self, ex: &BatchError) {
        eprintln!("not paid: {ex}");
    }

    #[on_skip_in_process]
    fn on_skip_process_item(&mut self, ex: &BatchError, row: &Hours) {
        eprintln!("not paid: {}: {ex}", row.employee);
    }
}
