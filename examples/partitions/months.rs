//! The partition plan: the months in the file.

use std::collections::BTreeSet;
use std::path::PathBuf;

use batch_examples::open_csv;
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
    fn plan(&mut self) -> Result<PartitionPlan, BatchError> {
        let mut months = BTreeSet::new();
        for row in open_csv(&self.file)?.records() {
            // Part of a date such as `2001/01/01 00:47`.
            months.insert(row?[0].chars().take(7).collect::<String>());
        }
        // The reader declares this property.
        Ok(PartitionPlan::with_properties(
            months.into_iter().map(|month| [("month", month)]),
        ))
    }
}
