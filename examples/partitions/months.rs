//! The plan: which months there are.

use std::collections::BTreeSet;
use std::path::PathBuf;

use batch_examples::flight_rows::{FlightRow, FlightRows};
use batch_runtime::prelude::*;

/// Plans a partition for each month that has flights.
#[derive(BatchArtifact)]
struct Months {
    #[batch_property(name = "flights.file")]
    file: PathBuf,
}

#[partition_algorithm("Months")]
impl Months {
    #[calculate_partitions]
    fn plan(&mut self) -> Result<PartitionPlan, csv::Error> {
        let mut months = BTreeSet::new();
        let mut rows = FlightRows::default();
        rows.open(&self.file, None)?;
        while let Some(flight) = rows.next("")? {
            months.insert(month_of(&flight));
        }
        Ok(PartitionPlan::with_properties(
            months.into_iter().map(|month| [("month", month)]),
        ))
    }
}

/// Such as `2001/01`.
pub(crate) fn month_of(flight: &FlightRow) -> String {
    flight.date.chars().take(7).collect()
}
