//! A table to a Parquet file and back, exactly once.
//!
//! ```text
//! cargo run -p etl -- launch etl
//! ```
//!
//! Kill it while it runs and run the same command again: the file and the table have each reading once. The table is in the
//! repository's database, by default SQLite; with PostgreSQL:
//!
//! ```text
//! cargo run -p etl --features postgres -- --repository postgres://user@host/database launch etl
//! ```

use std::process::ExitCode;

// Links the batchlets that the job names.
use batch_batchlets as _;
use batch_cli::Cli;
use batch_columnar::{ParquetItemReader, ParquetItemWriter};
use batch_items::{QueryItemReader, TableItemWriter};
use batch_runtime::prelude::*;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Double, Nullable, Text};
use serde::{Deserialize, Serialize};

/// A row of the tables and of the file.
#[derive(Clone, Deserialize, QueryableByName, Serialize)]
struct Reading {
    #[diesel(sql_type = BigInt)]
    id: i64,
    #[diesel(sql_type = Text)]
    station: String,
    #[diesel(sql_type = Nullable<Double>)]
    celsius: Option<f64>,
}

#[item_reader("TableReader")]
type TableReader = QueryItemReader<Reading>;

#[item_writer("ParquetWriter")]
type ParquetWriter = ParquetItemWriter<Reading>;

#[item_reader("ParquetReader")]
type ParquetReader = ParquetItemReader<Reading>;

#[item_writer("TableWriter")]
type TableWriter = TableItemWriter<Reading>;

/// Fails at the reading `fails.at`, to show a restart.
#[derive(BatchArtifact)]
struct Readings {
    #[batch_property(name = "fails.at")]
    fails_at: Option<i64>,
}

#[item_processor("Readings")]
impl Readings {
    #[process_item]
    fn process(&mut self, reading: Reading) -> Result<Option<Reading>, BatchError> {
        if self.fails_at == Some(reading.id) {
            return Err(BatchError::msg(format!("stopped at reading {}", reading.id)));
        }
        Ok(Some(reading))
    }
}

fn main() -> ExitCode {
    Cli::new().jobs(embed_jobs!("jobs")).main()
}

#[cfg(test)]
mod tests;
