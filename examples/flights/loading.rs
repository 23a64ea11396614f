//! The second step: loads each flight of a CSV file, joined and classified, into a table. Exactly once, because the writer
//! uses the chunk transaction. `flight_reader.rs` has the reader.

use std::collections::HashMap;

use batch_examples::flight_reader::FlightRow;
use batch_runtime::prelude::*;
use diesel::prelude::*;

use super::tables::{airport, flight};

/// Joins the cities, derives the classes, and filters the shortest flights.
#[derive(BatchArtifact)]
struct FlightProcessor {
    #[batch_property(name = "minimum.miles", value = "100")]
    minimum_miles: i32,
    #[batch_context]
    job: JobContext,
    cities: Option<HashMap<String, String>>,
}

/// A row of the table of flights.
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

    /// Returns the city of an airport; empty if the first step did not load it.
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
