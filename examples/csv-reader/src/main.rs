//! Counts airports by state; the reader comes from the library.
//!
//! ```text
//! cargo run -p csv-reader -- launch states
//! ```

use std::collections::BTreeMap;
use std::process::ExitCode;

use batch_cli::Cli;
use batch_runtime::prelude::*;
use csv_reader::CsvItemReader;

#[derive(Clone, serde::Deserialize)]
struct Airport {
    name: String,
    state: Option<String>,
}

#[item_reader("AirportReader")]
type AirportReader = CsvItemReader<Airport>;

/// Returns the state of an airport.
#[derive(BatchArtifact)]
struct StateOf {
    #[batch_property(name = "fails.at")]
    fails_at: Option<String>,
}

#[item_processor("StateOf")]
impl StateOf {
    #[process_item]
    fn state(&mut self, airport: &Airport) -> Result<Option<String>, BatchError> {
        if self.fails_at.as_ref() == Some(&airport.name) {
            return Err(BatchError::msg(format!("stopped at {}", airport.name)));
        }
        Ok(airport.state.clone())
    }
}

/// Counts airports by state. Its checkpoint is the counts.
#[derive(BatchArtifact)]
struct Count {
    counts: BTreeMap<String, u64>,
}

#[item_writer("Count")]
impl Count {
    #[open]
    fn open(&mut self, checkpoint: Option<BTreeMap<String, u64>>) {
        self.counts = checkpoint.unwrap_or_default();
    }
    #[write_items]
    fn count(&mut self, states: &[String]) {
        for state in states {
            *self.counts.entry(state.clone()).or_default() += 1;
        }
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> BTreeMap<String, u64> {
        self.counts.clone()
    }
    #[close]
    fn close(&mut self) {
        let mut counts: Vec<_> = self.counts.iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (state, count) in counts.iter().take(3) {
            println!("{state} {count}");
        }
    }
}

fn main() -> ExitCode {
    Cli::new()
        .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/jobs"))
        .system_property("data", concat!(env!("CARGO_MANIFEST_DIR"), "/../data"))
        .main()
}
