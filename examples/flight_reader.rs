//! The reader of `data/flights.csv`, which several examples use.

use std::fs::File;
use std::path::PathBuf;

use batch_runtime::prelude::*;
use csv::{ByteRecord, Reader, StringRecord};
use serde::Deserialize;

use crate::position::Position;

/// Reads one flight per CSV row; a restart resumes after the last committed row.
#[derive(BatchArtifact)]
struct FlightReader {
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
pub struct FlightRow {
    /// Number of the row in the file, from 1.
    #[serde(skip)]
    pub record: u64,
    /// Local time, such as `2001/01/01 00:47`.
    pub date: String,
    /// Delay at arrival in minutes; negative if early.
    pub delay: i32,
    /// Distance in miles.
    pub distance: i32,
    /// The airport's IATA code.
    pub origin: String,
    /// The airport's IATA code.
    pub destination: String,
}

#[item_reader("FlightReader")]
impl FlightReader {
    #[open]
    fn open(&mut self, checkpoint: Option<Position>) -> Result<(), csv::Error> {
        let mut rows = Reader::from_path(&self.file)?;
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
    fn item_count(&self) -> Result<Option<u64>, csv::Error> {
        let (mut rows, mut row) = (Reader::from_path(&self.file)?, ByteRecord::new());
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
