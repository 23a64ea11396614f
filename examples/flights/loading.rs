//! The flights: a row of the file, a row of the table, and the processor between them.

use std::collections::HashMap;

use batch_items::{DelimitedItemReader, TableItemWriter};
use batch_runtime::prelude::*;
use diesel::prelude::*;
use serde::{Deserialize, Serialize};

/// A row of the CSV file.
#[derive(Deserialize)]
struct FlightRow {
    /// The number of the row in the file, from 1. The reader adds it.
    record: u64,
    /// The local time, such as `2001/01/01 00:47`.
    date: String,
    /// In minutes; negative if early.
    delay: i32,
    /// In miles.
    distance: i32,
    /// The IATA codes of the airports.
    origin: String,
    destination: String,
}

/// A row of the table.
#[derive(Serialize)]
struct Flight {
    job_instance_id: i64,
    job_execution_id: i64,
    record: u64,
    date: String,
    local_hour: u32,
    origin: String,
    origin_city: String,
    destination: String,
    destination_city: String,
    distance: i32,
    distance_class: &'static str,
    delay: i32,
    delay_class: &'static str,
}

#[item_reader("FlightReader")]
type FlightReader = DelimitedItemReader<FlightRow>;

/// Inserts the flights in the transaction of the chunk: each exactly once.
#[item_writer("FlightWriter")]
type FlightWriter = TableItemWriter<Flight>;

/// Adds the cities, derives the classes, and filters the shortest flights.
#[derive(BatchArtifact)]
struct FlightProcessor {
    #[batch_property(name = "minimum.miles", value = "100")]
    minimum_miles: i32,
    #[batch_context]
    job: JobContext,
    cities: Option<HashMap<String, String>>,
}

#[item_processor("FlightProcessor")]
impl FlightProcessor {
    #[process_item]
    fn process(&mut self, row: &FlightRow) -> Result<Option<Flight>, BatchError> {
        if row.distance < self.minimum_miles {
            return Ok(None);
        }
        let time = row
            .date
            .split_once(' ')
            .and_then(|(_, time)| time.split_once(':'));
        let (hour, _) =
            time.ok_or_else(|| BatchError::msg(format!("row {}: no time in {:?}", row.record, row.date)))?;
        Ok(Some(Flight {
            job_instance_id: self.job.instance_id().0,
            job_execution_id: self.job.execution_id().0,
            record: row.record,
            local_hour: hour.parse()?,
            date: row.date.clone(),
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

    /// Returns the city of an airport; empty if the airport is not in the table.
    fn city(&mut self, iata: &str) -> Result<String, BatchError> {
        let cities = match &mut self.cities {
            Some(cities) => cities,
            None => self.cities.insert(cities(&self.job)?),
        };
        Ok(cities.get(iata).cloned().unwrap_or_default())
    }
}

table! {
    airport (iata) {
        iata -> Text,
        city -> Text,
    }
}

fn cities(job: &JobContext) -> Result<HashMap<String, String>, BatchError> {
    let mut connection = job.connect()?;
    let cities: Vec<(String, String)> = airport::table
        .select((airport::iata, airport::city))
        .load(connection.sqlite()?)?;
    Ok(cities.into_iter().collect())
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
