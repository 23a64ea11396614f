//! Orders of a file become bookings in a table and a report. Rows that are no orders go to a file of their own, and a service that does
//! not always answer is asked again.
//!
//! ```text
//! cargo run --example orders -- launch orders
//! ```
//!
//! Kill it as often as you like and run the same command again: table, report and rejects are exact.

use batch_cli::{Cli, embed_jobs};
use batch_examples::money::Cents;
use batch_items::{DelimitedItemReader, RejectListener, TableItemWriter};
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

/// A row of the file.
#[derive(Clone, Deserialize, Serialize)]
struct Order {
    order: String,
    customer: String,
    quantity: std::num::NonZeroI64,
    price: Cents,
}

/// A row of the table.
#[derive(Serialize)]
struct Booking {
    order_number: String,
    customer: String,
    cents: i64,
}

#[item_reader("OrderFile")]
type OrderFile = DelimitedItemReader<Order>;
#[item_writer("BookingTable")]
type BookingTable = TableItemWriter<Booking>;
#[skip_listener("Rejects")]
#[checkpoint_listener("Rejects")]
type Rejects = RejectListener<Order, Booking>;

#[derive(BatchArtifact)]
struct Bookings {
    calls: u64,
}

#[item_processor("Bookings")]
impl Bookings {
    #[process_item]
    fn book(&mut self, order: Order) -> Result<Option<Booking>, std::io::Error> {
        self.calls += 1;
        // In place of a service that does not always answer.
        if self.calls.is_multiple_of(10_007) {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        Ok(Some(Booking {
            cents: order.quantity.get() * order.price.0,
            order_number: order.order,
            customer: order.customer,
        }))
    }
}

#[decider("Quality")]
fn quality(#[batch_context] step: &StepContext) -> String {
    format!("{} REJECTS", step.counters().skips())
}

fn main() -> std::process::ExitCode {
    let cli = Cli::new().jobs(embed_jobs!("orders"));
    cli.schema_sql(include_str!("schema.sql")).main()
}
