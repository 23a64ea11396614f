//! The position in a CSV file: the checkpoint of its readers.

use std::fs::File;

use csv::Reader;
use serde::{Deserialize, Serialize};

/// The position of the next row. A restart seeks to it, without reading earlier rows.
#[derive(Serialize, Deserialize)]
pub struct Position {
    byte: u64,
    line: u64,
    record: u64,
}

impl Position {
    /// Returns the position of an iterator of rows; the beginning if there is none.
    pub fn of(rows: Option<&Reader<File>>) -> Self {
        let position = rows.map_or_else(csv::Position::new, |rows| rows.position().clone());
        Self {
            byte: position.byte(),
            line: position.line(),
            record: position.record(),
        }
    }

    /// Seeks `rows` to this position. Read the header before, if it is needed.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn seek(&self, rows: &mut Reader<File>) -> Result<(), csv::Error> {
        let mut position = csv::Position::new();
        position
            .set_byte(self.byte)
            .set_line(self.line)
            .set_record(self.record);
        rows.seek(position)
    }
}
