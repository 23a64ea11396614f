//! A job whose partitions run on workers. In one terminal, and in as many others as you like:
//!
//! ```text
//! cargo run -p cluster -- worker
//! cargo run -p cluster -- launch interest
//! ```
//!
//! Kill a worker, or the launch, while the job runs (`-pace=1` makes it slow): each account has its interest once. These processes share a
//! SQLite file, which only one machine can; `deploy` has a compose file, systemd units and a Kubernetes manifest for several machines, with
//! PostgreSQL and the features `postgres` and `nats`.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

// Links the batchlets that the job names.
use batch_batchlets as _;
use batch_cli::Cli;
use batch_items::{QueryItemReader, TableItemWriter};
use batch_runtime::prelude::*;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, QueryableByName, Serialize)]
struct Account {
    #[diesel(sql_type = BigInt)]
    id: i64,
    #[diesel(sql_type = BigInt)]
    cents: i64,
}

#[derive(Deserialize, Serialize)]
struct Interest {
    account: i64,
    cents: i64,
}

#[item_reader("AccountReader")]
type AccountReader = QueryItemReader<Account>;

#[item_writer("InterestWriter")]
type InterestWriter = TableItemWriter<Interest>;

/// Computes the interest, rounded down to cents.
#[derive(BatchArtifact)]
struct AddInterest {
    /// In hundredths of a percent.
    #[batch_property(name = "rate", value = "175")]
    rate: i64,
    /// Milliseconds for each account, to have time for a kill.
    #[batch_property(name = "pace", value = "0")]
    pace: u64,
}

#[item_processor("AddInterest")]
impl AddInterest {
    #[process_item]
    fn add(&mut self, account: &Account) -> Option<Interest> {
        thread::sleep(Duration::from_millis(self.pace));
        Some(Interest {
            account: account.id,
            cents: account.cents * self.rate / 10_000,
        })
    }
}

fn main() -> ExitCode {
    Cli::new().jobs(embed_jobs!("jobs")).dispatch("repository").main()
}
