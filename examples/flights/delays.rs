//! The third step: reports the airports with the worst mean delay.

use std::path::PathBuf;

use batch_runtime::prelude::*;
use diesel::prelude::*;
use serde::Serialize;

/// Prints the ten origins with the worst mean delay and writes them to a CSV file.
#[derive(BatchArtifact)]
struct WorstDelays {
    #[batch_property(name = "report.file")]
    file: PathBuf,
    /// Airports with fewer flights are omitted.
    #[batch_property(name = "minimum.flights", value = "50")]
    minimum_flights: i64,
    #[batch_context]
    job: JobContext,
}

#[derive(QueryableByName, Serialize)]
struct Row {
    #[diesel(sql_type = diesel::sql_types::Text)]
    origin: String,
    #[diesel(sql_type = diesel::sql_types::Text)]
    city: String,
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    flights: i64,
    #[diesel(sql_type = diesel::sql_types::Double)]
    mean_delay: f64,
}

#[batchlet("WorstDelays")]
impl WorstDelays {
    #[process]
    fn report(&self) -> Result<String, BatchError> {
        let mut connection = self.job.connect()?;
        let rows: Vec<Row> = diesel::sql_query(
            "SELECT origin, origin_city AS city, COUNT(*) AS flights, ROUND(AVG(delay), 2) AS mean_delay
             FROM flight WHERE job_instance_id = ? GROUP BY origin, origin_city
             HAVING COUNT(*) >= ? ORDER BY mean_delay DESC, origin LIMIT 10",
        )
        .bind::<diesel::sql_types::BigInt, _>(self.job.instance_id().0)
        .bind::<diesel::sql_types::BigInt, _>(self.minimum_flights)
        .load(connection.sqlite()?)?;
        let mut report = csv::Writer::from_path(&self.file)?;
        println!("worst mean delays, in minutes:");
        for row in &rows {
            println!(
                "  {} {:<20} {:>6.2}  ({} flights)",
                row.origin, row.city, row.mean_delay, row.flights
            );
            report.serialize(row)?;
        }
        report.flush()?;
        Ok("REPORTED".into())
    }

    #[cancel]
    fn cancel(&self) {}
}
