//! Bank postings of several files become rows and balances; what cannot be posted goes to a file of its own.
//!
//! ```text
//! cargo run --example postings -- launch postings
//! ```

#[cfg(test)]
mod tests;

use batch_cli::{Cli, embed_jobs};
use batch_items::formats::cents_comma;
use batch_items::prelude::*;
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

batch_items::date_format!(german = "%d.%m.%Y");

/// A row of the files.
#[derive(Clone, Deserialize, Serialize)]
struct Line {
    number: String,
    account: String,
    #[serde(with = "german")]
    day: String,
    #[serde(with = "cents_comma")]
    amount: i64,
}

/// A row of the look-up.
#[derive(Deserialize)]
struct Account {
    customer: String,
    branch: u32,
}

/// A row of the tables `posting` and `balance`.
#[derive(Serialize)]
struct Posting {
    number: String,
    account: String,
    customer: String,
    branch: u32,
    day: String,
    cents: i64,
    postings: u32,
}

artifacts! {
    PostingFiles(item_reader) = DelimitedItemReader<Line>;
    Ledger(item_writer) = CompositeItemWriter<Posting, TableItemWriter<Posting>, TableItemWriter<Posting>>;
    Rejects(skip_listener, checkpoint_listener) = RejectListener<Line, Posting>;
}

#[item_processor("Booking")]
fn book(
    line: Line,
    #[batch_artifact(prefix = "accounts.")] accounts: &Lookup<String, Account>,
) -> Result<Option<Posting>, BatchError> {
    let Account { customer, branch } = accounts.require(&line.account)?;
    Ok(Some(Posting {
        customer: customer.clone(),
        branch: *branch,
        number: line.number,
        account: line.account,
        day: line.day,
        cents: line.amount,
        postings: 1,
    }))
}

fn main() -> std::process::ExitCode {
    Cli::new()
        .jobs(embed_jobs!("postings"))
        .schema_sql(include_str!("schema.sql"))
        .main()
}
