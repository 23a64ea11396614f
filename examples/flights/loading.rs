//! The second step: each flight of a CSV file, joined and classified, into a table. Exactly once: the writer writes
//! through the chunk transaction.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;

use batch_runtime::prelude::*;
use csv::{Reader, StringRecord};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};

use super::tables::{airport, flight};

/// Reads one flight per CSV row; restarts after the last committed row.
#[derive(BatchArtifact)]
struct FlightReader {
    #[batch_property(name = "flights.file")]
    file: PathBuf,
    rows: Option<Reader<File>>,
    header: StringRecord,
    row: StringRecord,
}

/// Where the next row begins.
#[derive(Serialize, Deserialize)]
struct Position {
    byte: u64,
    line: u64,
    record: u64,
}

/// A row of the CSV file.
#[derive(Deserialize)]
struct FlightRow {
    /// Number of the row in the file, from 1.
    #[serde(skip)]
    record: u64,
    /// Such as `2001/01/01 00:47`, local time.
    date: String,
    /// Minutes late at arrival; negative when early.
    delay: i32,
    /// Miles.
    distance: i32,
    origin: String,
    destination: String,
}

#[item_reader("FlightReader")]
impl FlightReader {
    #[open]
    fn open(&mut self, checkpoint: Option<Position>) -> Result<(), csv::Error> {
        let mut rows = Reader::from_path(&self.file)?;
        self.header = rows.headers()?.clone();
        if let Some(Position { byte, line, record }) = checkpoint {
            let mut position = csv::Position::new();
            rows.seek(position.set_byte(byte).set_line(line).set_record(record).clone())?;
        }
        self.rows = Some(rows);
        Ok(())
    }

    #[read_item]
    fn read(&mut self) -> Result<Option<FlightRow>, csv::Error> {
        let Some(rows) = &mut self.rows else {
            return Ok(None);
        };
        if !rows.read_record(&mut self.row)? {
            return Ok(None);
        }
        let mut flight: FlightRow = self.row.deserialize(Some(&self.header))?;
        flight.record = self.row.position().map_or(0, csv::Position::record);
        Ok(Some(flight))
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Position {
        let position = self
            .rows
            .as_ref()
            .map(|rows| rows.position().clone())
            .unwrap_or_else(csv::Position::new);
        Position {
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

/// Joins the cities, derives the classes, and leaves out the shortest flights.
#[derive(BatchArtifact)]
struct FlightProcessor {
    #[batch_property(name = "minimum.miles", value = "100")]
    minimum_miles: i32,
    #[batch_context]
    job: JobContext,
    cities: Option<HashMap<String, String>>,
}

/// What is stored of a flight.
#[derive(Insertable)]
#[diesel(table_name = flight, treat_none_as_default_value = false)]
struct Flight {
    record: i64,
    date: String,
    local_hour: i32,
    origin: String,
    origin_city: String,
    destination: String,
    destination_city: String,
    distance: i32,
    distance_class: &'static str,
    delay: i32,
    delay_class: &'static str,
}

#[item_processor("FlightProcessor")]
impl FlightProcessor {
    #[process_item]
    fn process(&mut self, row: &FlightRow) -> Result<Option<Flight>, BatchError> {
        if row.distance < self.minimum_miles {
            return Ok(None);
        }
        let hour = row
            .date
            .split_once(' ')
            .and_then(|(_, time)| time.split(':').next());
        let hour =
            hour.ok_or_else(|| BatchError::msg(format!("row {}: no time in {:?}", row.record, row.date)))?;
        Ok(Some(Flight {
            record: i64::try_from(row.record)?,
            date: row.date.clone(),
            local_hour: hour.parse()?,
            origin_city: self.city(&row.origin)?,
            origin: row.origin.clone(),
            destination_city: self.city(&row.destination)?,
            destination: row.destination.clone(),
            distance: row.distance,
            distance_class: distance_class(row.distance),
            delay: row.delay,
            delay_class: delay_class(row.delay),
        }))
    }

    /// City of an airport; empty for one that the first step did not load.
    fn city(&mut self, iata: &str) -> Result<String, BatchError> {
        if self.cities.is_none() {
            let mut connection = self.job.connect()?;
            let cities: Vec<(String, String)> = airport::table
                .select((airport::iata, airport::city))
                .load(connection.sqlite()?)?;
            self.cities = Some(cities.into_iter().collect());
        }
        Ok(self
            .cities
            .as_ref()
            .and_then(|cities| cities.get(iata))
            .cloned()
            .unwrap_or_default())
    }
}

fn distance_class(miles: i32) -> &'static str {
    match miles {
        ..500 => "short",
        500..1500 => "medium",
        _ => "long",
    }
}

fn delay_class(minutes: i32) -> &'static str {
    match minutes {
        ..0 => "early",
        0..15 => "on time",
        15..60 => "late",
        _ => "very late",
    }
}

/// Inserts the flights in the chunk transaction.
#[derive(BatchArtifact)]
struct FlightWriter {
    #[batch_context]
    job: JobContext,
}

#[item_writer("FlightWriter")]
impl FlightWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[write_items]
    fn write(&mut self, flights: &[Flight], tx: &mut ChunkTransaction) -> QueryResult<()> {
        let (instance, execution) = (self.job.instance_id().0, self.job.execution_id().0);
        let run = || {
            (
                flight::job_instance_id.eq(instance),
                flight::job_execution_id.eq(execution),
            )
        };
        for rows in flights.chunks(100) {
            let rows: Vec<_> = rows.iter().map(|row| (row, run())).collect();
            diesel::insert_into(flight::table)
                .values(rows)
                .execute(tx.sqlite()?)?;
        }
        Ok(())
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}
