//! The last step: reports the loaded rows.

use batch_runtime::prelude::*;
use diesel::dsl::{count_star, sum};
use diesel::prelude::*;

use super::tables::{late_flight, load_call};

/// Prints the delays by month, and how the load went.
#[derive(BatchArtifact)]
struct DelaysByMonth {
    #[batch_context]
    job: JobContext,
}

#[batchlet("DelaysByMonth")]
impl DelaysByMonth {
    #[process]
    fn report(&self) -> Result<String, BatchError> {
        let (mut connection, instance) = (self.job.connect()?, self.job.instance_id().0);
        let connection = connection.sqlite()?;
        let loaded = late_flight::table.filter(late_flight::job_instance_id.eq(instance));

        let months: Vec<(String, i64, Option<i64>)> = loaded
            .group_by(late_flight::month)
            .select((late_flight::month, count_star(), sum(late_flight::minutes)))
            .order(late_flight::month)
            .load(connection)?;
        println!("late flights:");
        let (mut all_flights, mut all_minutes) = (0, 0);
        for (month, flights, minutes) in months {
            let minutes = minutes.unwrap_or_default();
            println!("  {month:<8} {flights:>6} {minutes:>8} minutes");
            all_flights += flights;
            all_minutes += minutes;
        }
        println!("  {:<8} {all_flights:>6} {all_minutes:>8} minutes", "in all");

        let nearest: Vec<(String, i64)> = loaded
            .group_by(late_flight::nearest)
            .select((late_flight::nearest, count_star()))
            .order((count_star().desc(), late_flight::nearest))
            .limit(5)
            .load(connection)?;
        let nearest: Vec<String> = nearest
            .iter()
            .map(|(iata, flights)| format!("{iata} ({flights})"))
            .collect();
        println!(
            "when they should have landed most were near {}",
            nearest.join(", ")
        );

        let calls: Vec<String> = load_call::table
            .filter(load_call::job_instance_id.eq(instance))
            .order(load_call::rowid)
            .select(load_call::call)
            .load(connection)?;
        println!("the load went: {}", calls.join(", "));
        Ok("REPORTED".into())
    }

    #[cancel]
    fn cancel(&self) {}
}
