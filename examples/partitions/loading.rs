//! The work of a partition: loads the late flights of its month into a table, each with the airport that the aircraft was
//! nearest to when it should have landed. The processor compares all airports, to give every thread some work. The plan
//! sets the month of the reader.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use batch_examples::open_csv;
use batch_runtime::prelude::*;
use diesel::prelude::*;
use serde::Deserialize;

use super::minutes;
use super::reading::FlightRow;
use super::route::Point;
use super::tables::late_flight;

/// Filters the flights that were on time, and finds where the others were.
#[derive(BatchArtifact)]
struct LateFlightProcessor {
    #[batch_property(name = "airports.file")]
    airports_file: PathBuf,
    #[batch_property(name = "miles.per.minute", value = "7.5")]
    miles_per_minute: f64,
    #[batch_context]
    job: JobContext,
    airports: HashMap<String, Point>,
}

/// A row of the airports' CSV file, without its other columns.
#[derive(Deserialize)]
struct Airport {
    iata: String,
    latitude: f64,
    longitude: f64,
}

/// A row of the table of late flights.
#[derive(Insertable)]
#[diesel(table_name = late_flight, treat_none_as_default_value = false)]
struct LateFlight {
    job_instance_id: i64,
    job_execution_id: i64,
    record: i64,
    month: String,
    minutes: i32,
    nearest: String,
}

#[item_processor("LateFlightProcessor")]
impl LateFlightProcessor {
    #[process_item]
    fn process(&mut self, flight: &FlightRow) -> Result<Option<LateFlight>, BatchError> {
        if flight.delay <= 0 {
            return Ok(None);
        }
        if self.airports.is_empty() {
            self.airports = airports(&self.airports_file)?;
        }
        Ok(Some(LateFlight {
            job_instance_id: self.job.instance_id().0,
            job_execution_id: self.job.execution_id().0,
            record: i64::try_from(flight.record)?,
            month: flight.date.chars().take(7).collect(),
            minutes: flight.delay,
            nearest: self.nearest(self.place(flight)?).to_owned(),
        }))
    }

    /// Returns where the aircraft was when it should have landed; the origin, if the delay exceeds the duration of the flight.
    fn place(&self, flight: &FlightRow) -> Result<Point, BatchError> {
        let missing = f64::from(flight.delay) * self.miles_per_minute / f64::from(flight.distance);
        let (origin, destination) = (self.airport(&flight.origin)?, self.airport(&flight.destination)?);
        Ok(destination.on_the_way_to(origin, missing.min(1.0)))
    }

    fn airport(&self, iata: &str) -> Result<Point, BatchError> {
        let found = self.airports.get(iata).copied();
        found.ok_or_else(|| BatchError::msg(format!("there is no airport {iata}")))
    }

    fn nearest(&self, place: Point) -> &str {
        let mut nearest = ("", f64::NEG_INFINITY);
        for (iata, point) in &self.airports {
            let nearness = point.nearness(place);
            if nearness > nearest.1 {
                nearest = (iata, nearness);
            }
        }
        nearest.0
    }
}

fn airports(file: &Path) -> Result<HashMap<String, Point>, BatchError> {
    open_csv(file)?
        .deserialize()
        .map(|row| {
            let airport: Airport = row?;
            Ok((airport.iata, Point::at(airport.latitude, airport.longitude)))
        })
        .collect()
}

/// Inserts the late flights in the chunk transaction, and sums their minutes for the collector.
#[derive(BatchArtifact)]
struct LateFlightWriter {
    #[batch_context]
    step: StepContext,
}

#[item_writer("LateFlightWriter")]
impl LateFlightWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[write_items]
    fn write(&mut self, flights: &[LateFlight], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        for rows in flights.chunks(100) {
            diesel::insert_into(late_flight::table)
                .values(rows)
                .execute(tx.sqlite()?)?;
        }
        let written = flights.iter().map(|flight| i64::from(flight.minutes)).sum();
        Ok(minutes::add(&self.step, written)?)
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}
