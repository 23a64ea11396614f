//! The rows of `data/flights.csv`, read from any place that a checkpoint remembers. What the readers of `flights` and
//! `partitions` have in common.

use std::fs::File;
use std::path::Path;

use csv::{Reader, StringRecord};
use serde::{Deserialize, Serialize};

/// A row of the CSV file.
#[derive(Deserialize)]
pub struct FlightRow {
    /// Number of the row in the file, from 1.
    #[serde(skip)]
    pub record: u64,
    /// Such as `2001/01/01 00:47`, local time.
    pub date: String,
    /// Minutes late at arrival; negative when early.
    pub delay: i32,
    /// Miles.
    pub distance: i32,
    /// IATA code of the airport.
    pub origin: String,
    /// IATA code of the airport.
    pub destination: String,
}

/// Where the next row begins: the checkpoint of a reader.
#[derive(Default, Serialize, Deserialize)]
pub struct Position {
    byte: u64,
    line: u64,
    record: u64,
}

/// The rows of a file; none until it is opened.
#[derive(Default)]
pub struct FlightRows {
    rows: Option<Reader<File>>,
    header: StringRecord,
    row: StringRecord,
}

impl FlightRows {
    /// Opens a file, at its beginning or where the checkpoint says.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(&mut self, file: &Path, checkpoint: Option<Position>) -> Result<(), csv::Error> {
        let mut rows = Reader::from_path(file)?;
        self.header = rows.headers()?.clone();
        if let Some(Position { byte, line, record }) = checkpoint {
            let mut position = csv::Position::new();
            rows.seek(position.set_byte(byte).set_line(line).set_record(record).clone())?;
        }
        self.rows = Some(rows);
        Ok(())
    }

    /// The next row whose date begins with `date`; `None` when there is none.
    ///
    /// # Errors
    /// When the file cannot be read, or a row is no flight.
    pub fn next(&mut self, date: &str) -> Result<Option<FlightRow>, csv::Error> {
        let Some(rows) = &mut self.rows else {
            return Ok(None);
        };
        while rows.read_record(&mut self.row)? {
            if self.row[0].starts_with(date) {
                let mut flight: FlightRow = self.row.deserialize(Some(&self.header))?;
                flight.record = self.row.position().map_or(0, csv::Position::record);
                return Ok(Some(flight));
            }
        }
        Ok(None)
    }

    /// Where the next row begins.
    pub fn position(&self) -> Position {
        let Some(rows) = &self.rows else {
            return Position::default();
        };
        let position = rows.position();
        Position {
            byte: position.byte(),
            line: position.line(),
            record: position.record(),
        }
    }

    /// Closes the file.
    pub fn close(&mut self) {
        self.rows = None;
    }
}
