//! A library with a reader of CSV files, generic over the item. A program registers it for its own type by one line:
//!
//! ```
//! use batch_runtime::prelude::*;
//! use csv_reader::CsvItemReader;
//!
//! #[derive(serde::Deserialize)]
//! struct Airport {
//!     name: String,
//! }
//!
//! #[item_reader("AirportReader")]
//! type AirportReader = CsvItemReader<Airport>;
//! ```

use std::fs::File;
use std::path::PathBuf;

use batch_runtime::prelude::*;
use csv::{Position, Reader, ReaderBuilder, StringRecord};
use serde::de::DeserializeOwned;

/// Reads the rows of a CSV file with a header as items of type `T`. A restart resumes at the byte after the last committed row,
/// without reading what comes before it.
#[derive(BatchArtifact)]
pub struct CsvItemReader<T> {
    /// The file.
    #[batch_property(name = "resource")]
    resource: PathBuf,
    rows: Option<Reader<File>>,
    headers: StringRecord,
    row: StringRecord,
    item: std::marker::PhantomData<fn() -> T>,
}

/// The position of the next row.
#[derive(serde::Serialize, serde::Deserialize)]
pub struct Checkpoint {
    byte: u64,
    line: u64,
    record: u64,
}

#[item_reader]
impl<T: DeserializeOwned + Send + 'static> CsvItemReader<T> {
    #[open]
    fn open(&mut self, checkpoint: Option<Checkpoint>) -> Result<(), csv::Error> {
        let mut rows = ReaderBuilder::new().from_path(&self.resource)?;
        self.headers = rows.headers()?.clone();
        if let Some(Checkpoint { byte, line, record }) = checkpoint {
            let mut position = Position::new();
            position.set_byte(byte).set_line(line).set_record(record);
            rows.seek(position)?;
        }
        self.rows = Some(rows);
        Ok(())
    }

    #[read_item]
    fn read(&mut self) -> Result<Option<T>, csv::Error> {
        let Some(rows) = &mut self.rows else {
            return Ok(None);
        };
        if !rows.read_record(&mut self.row)? {
            return Ok(None);
        }
        self.row.deserialize(Some(&self.headers)).map(Some)
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Checkpoint {
        let position = self.rows.as_ref().map(|rows| rows.position().clone());
        let position = position.unwrap_or_else(Position::new);
        Checkpoint {
            byte: position.byte(),
            line: position.line(),
            record: position.record(),
        }
    }

    #[close]
    fn close(&mut self) {
        self.rows = None;
    }
}
