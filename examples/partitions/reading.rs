//! A hand-written reader, which deserializes only the flights of its month.

use std::fs::File;
use std::path::PathBuf;

use batch_examples::open_csv;
use batch_runtime::prelude::*;
use csv::{ByteRecord, Reader, StringRecord};
use serde::{Deserialize, Serialize};

/// Reads one flight per CSV row; a restart resumes after the last committed row.
#[derive(BatchArtifact)]
struct MonthReader {
    #[batch_property(name = "flights.file")]
    file: PathBuf,
    /// A month such as `2001/01`, to read only its flights. Without the property, all flights.
    #[batch_property(name = "month")]
    month: String,
    rows: Option<Reader<File>>,
    header: StringRecord,
    row: StringRecord,
}

/// A row of the CSV file.
#[derive(Deserialize)]
pub(crate) struct FlightRow {
    /// Number of the row in the file, from 1.
    #[serde(skip)]
    pub(crate) record: u64,
    /// Local time, such as `2001/01/01 00:47`.
    pub(crate) date: String,
    /// Delay at arrival in minutes; negative if early.
    pub(crate) delay: i32,
    /// Distance in miles.
    pub(crate) distance: i32,
    /// The airport's IATA code.
    pub(crate) origin: String,
    /// The airport's IATA code.
    pub(crate) destination: String,
}

#[item_reader("MonthReader")]
impl MonthReader {
    #[open]
    fn open(&mut self, checkpoint: Option<Position>) -> Result<(), BatchError> {
        let mut rows = open_csv(&self.file)?;
        self.header = rows.headers()?.clone();
        if let Some(position) = checkpoint {
            position.seek(&mut rows)?;
        }
        self.rows = Some(rows);
        Ok(())
    }

    #[read_item]
    fn read(&mut self) -> Result<Option<FlightRow>, csv::Error> {
        let Some(rows) = &mut self.rows else {
            return Ok(None);
        };
        while rows.read_record(&mut self.row)? {
            // The date is the first column.
            if self.row[0].starts_with(&self.month) {
                let mut flight: FlightRow = self.row.deserialize(Some(&self.header))?;
                flight.record = self.row.position().map_or(0, csv::Position::record);
                return Ok(Some(flight));
            }
        }
        Ok(None)
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Position {
        Position::of(self.rows.as_ref())
    }

    /// Counts the rows, which is fast compared with processing them.
    #[get_item_count]
    fn item_count(&self) -> Result<Option<u64>, BatchError> {
        let (mut rows, mut row) = (open_csv(&self.file)?, ByteRecord::new());
        let mut count = 0;
        while rows.read_byte_record(&mut row)? {
            count += u64::from(row[0].starts_with(self.month.as_bytes()));
        }
        Ok(Some(count))
    }

    #[close]
    fn close(&mut self) {
        self.rows = None;
    }
}

/// The position of the next row. A restart seeks to it, without reading earlier rows.
#[derive(Serialize, Deserialize)]
struct Position {
    byte: u64,
    line: u64,
    record: u64,
}

impl Position {
    /// Returns the position of an iterator of rows; the beginning if there is none.
    fn of(rows: Option<&Reader<File>>) -> Self {
        let position = rows.map_or_else(csv::Position::new, |rows| rows.position().clone());
        Self {
            byte: position.byte(),
            line: position.line(),
            record: position.record(),
        }
    }

    /// Seeks `rows` to this position. The header has to be read before.
    fn seek(&self, rows: &mut Reader<File>) -> Result<(), csv::Error> {
        let mut position = csv::Position::new();
        position
            .set_byte(self.byte)
            .set_line(self.line)
            .set_record(self.record);
        rows.seek(position)
    }
}
