//! Where a CSV file has been read to: the checkpoint of its readers.

use std::fs::File;

use csv::Reader;
use serde::{Deserialize, Serialize};

/// Where the next row begins. A restart seeks there; it does not read what comes before.
#[derive(Serialize, Deserialize)]
pub struct Position {
    byte: u64,
    line: u64,
    record: u64,
}

impl Position {
    /// Where these rows are; the beginning, where there are none.
    pub fn of(rows: Option<&Reader<File>>) -> Self {
        let position = rows.map_or_else(csv::Position::new, |rows| rows.position().clone());
        Self {
            byte: position.byte(),
            line: position.line(),
            record: position.record(),
        }
    }

    /// Has `rows` go on here. Whoever needs the header reads it before.
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
