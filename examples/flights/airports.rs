//! The first step: loads the airports into their table.

use std::path::PathBuf;

use batch_runtime::prelude::*;
use diesel::prelude::*;
use serde::Deserialize;

use super::tables::{self, airport};

/// Replaces the airports in the database by those of a CSV file. Like every batchlet it must be safe to run twice, because
/// it runs again after an interruption.
#[derive(BatchArtifact)]
struct LoadAirports {
    #[batch_property(name = "airports.file")]
    file: PathBuf,
    #[batch_context]
    job: JobContext,
}

/// A row of the CSV file, without its other columns.
#[derive(Deserialize, Insertable)]
#[diesel(table_name = airport)]
struct Airport {
    iata: String,
    name: String,
    city: String,
    state: String,
}

#[batchlet("LoadAirports")]
impl LoadAirports {
    #[process]
    fn load(&self) -> Result<String, BatchError> {
        let mut connection = self.job.connect()?;
        let connection = connection.sqlite()?;
        tables::create(connection)?;
        let airports: Vec<Airport> = csv::Reader::from_path(&self.file)?
            .deserialize()
            .collect::<Result<_, _>>()?;
        connection.immediate_transaction(|connection| {
            diesel::delete(airport::table).execute(connection)?;
            diesel::insert_into(airport::table)
                .values(&airports)
                .execute(connection)
        })?;
        Ok(format!("{} AIRPORTS", airports.len()))
    }

    #[cancel]
    fn cancel(&self) {}
}
