//! The jobs that sell an inventory. Readers have no access to the chunk's transaction, so the writer makes both changes in
//! it: it takes the items from the inventory, and inserts the orders.

use std::thread;
use std::time::Duration;

use batch_runtime::prelude::*;
use batch_runtime::{ChunkTransaction, RepositoryConnection};
use diesel::prelude::*;
use diesel::sql_types::BigInt;

use super::values::Required;

/// The statements that create the tables.
pub(crate) const CREATE_INVENTORY: [&str; 3] = [
    "CREATE TABLE INVENTORY (ITEM INTEGER PRIMARY KEY, QUANTITY INTEGER NOT NULL)",
    "INSERT INTO INVENTORY VALUES (1, 100)",
    "CREATE TABLE ORDERS (ORDER_ID INTEGER PRIMARY KEY, ITEM INTEGER NOT NULL, QUANTITY INTEGER NOT NULL)",
];

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

/// Returns the number that a query selects.
fn select(connection: &mut RepositoryConnection, query: &str) -> Result<i64, BatchError> {
    let row: Number = diesel::sql_query(query).get_result(connection.sqlite()?)?;
    Ok(row.number)
}

/// Returns the quantity in the inventory.
fn quantity(job: &JobContext) -> Result<i64, BatchError> {
    select(
        &mut job.connect()?,
        "SELECT QUANTITY AS number FROM INVENTORY WHERE ITEM = 1",
    )
}

/// Reads the one item of the inventory.
#[derive(BatchArtifact)]
struct InitReader {
    #[batch_context]
    job: JobContext,
    count: i64,
}

#[item_reader("inventoryInitReader")]
impl InitReader {
    #[open]
    fn open(&mut self, _checkpoint: Option<i64>) {}

    #[read_item]
    fn read(&mut self) -> Result<Option<i64>, BatchError> {
        if self.count > 0 {
            return Ok(None);
        }
        self.count += 1;
        quantity(&self.job).map(Some)
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) -> i64 {
        self.count
    }
}

/// Replaces the quantity.
#[derive(BatchArtifact)]
struct InitProcessor {
    #[batch_property(name = "init.inventory.quantity")]
    quantity: i64,
}

#[item_processor("inventoryInitProcessor")]
impl InitProcessor {
    #[process_item]
    fn process(&mut self, _quantity: &i64) -> Option<i64> {
        Some(self.quantity)
    }
}

/// Deletes the orders, and sets the quantity.
#[derive(BatchArtifact)]
struct InitWriter;

#[item_writer("inventoryInitWriter")]
impl InitWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[write_items]
    fn write(&mut self, quantities: &[i64], tx: &mut ChunkTransaction) -> QueryResult<()> {
        diesel::sql_query("DELETE FROM ORDERS").execute(tx.sqlite()?)?;
        for quantity in quantities {
            diesel::sql_query("UPDATE INVENTORY SET QUANTITY = ? WHERE ITEM = 1")
                .bind::<BigInt, _>(*quantity)
                .execute(tx.sqlite()?)?;
        }
        Ok(())
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

/// Reads an order of one item as long as there is one. Its checkpoint is the number of orders.
#[derive(BatchArtifact)]
struct OrderReader {
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
    remaining: i64,
    count: i64,
}

#[item_reader("inventoryReader")]
impl OrderReader {
    #[open]
    fn open(&mut self, checkpoint: Option<i64>) -> Result<(), BatchError> {
        if let Some(count) = checkpoint {
            self.count = count;
            self.step.set_transient_user_data(count);
        }
        self.remaining = quantity(&self.job)?;
        Ok(())
    }

    #[read_item]
    fn read(&mut self) -> Option<i64> {
        if self.remaining < 1 {
            return None;
        }
        self.remaining -= 1;
        self.count += 1;
        Some(1)
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) -> i64 {
        self.count
    }
}

/// Passes the orders on.
#[derive(BatchArtifact)]
struct OrderProcessor;

#[item_processor("inventoryProcessor")]
impl OrderProcessor {
    #[process_item]
    fn process(&mut self, order: &i64) -> Option<i64> {
        Some(*order)
    }
}

/// Takes the items of the orders from the inventory, and inserts the orders. At one of them it waits, or fails.
#[derive(BatchArtifact)]
struct OrderWriter {
    #[batch_property(name = "forced.fail.count")]
    fail_at: Option<i64>,
    #[batch_property(name = "dummy.delay.seconds")]
    milliseconds: Option<u64>,
    count: i64,
}

#[item_writer("inventoryWriter")]
impl OrderWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[write_items]
    fn write(&mut self, orders: &[i64], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        for order in orders {
            diesel::sql_query("UPDATE INVENTORY SET QUANTITY = QUANTITY - ? WHERE ITEM = 1")
                .bind::<BigInt, _>(*order)
                .execute(tx.sqlite()?)?;
            diesel::sql_query("INSERT INTO ORDERS (ITEM, QUANTITY) VALUES (1, ?)")
                .bind::<BigInt, _>(*order)
                .execute(tx.sqlite()?)?;
            self.count += 1;
            let fail_at = self.fail_at.required()?;
            if fail_at == 0 || self.count < fail_at {
                continue;
            }
            match self.milliseconds.required()? {
                0 => return Err(BatchError::msg("fails on purpose")),
                milliseconds => thread::sleep(Duration::from_millis(milliseconds)),
            }
            self.fail_at = Some(0);
        }
        Ok(())
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

/// Sets the exit status of the job to what is in the tables.
#[derive(BatchArtifact)]
struct CountsOrders {
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
}

#[step_listener("inventoryStepListener")]
impl CountsOrders {
    #[after_step]
    fn after(&mut self) -> Result<(), BatchError> {
        let checkpoint = self.step.transient_user_data::<i64>()?;
        let checkpoint = checkpoint.map_or_else(|| "null".to_owned(), |count| count.to_string());
        let orders = select(&mut self.job.connect()?, "SELECT COUNT(*) AS number FROM ORDERS")?;
        let exit_status = format!(
            "Inventory={} InitialCheckpoint={checkpoint} OrderCount={orders}",
            quantity(&self.job)?
        );
        self.job.set_exit_status(Some(&exit_status));
        Ok(())
    }
}

/// Takes a checkpoint after every ninth item, or after the number of items in its property.
#[derive(BatchArtifact)]
struct EveryNth {
    #[batch_property(name = "commitInterval")]
    interval: Option<i64>,
    items: i64,
}

impl EveryNth {
    fn count(&mut self) -> Result<bool, BatchError> {
        self.items += 1;
        let is_ready = self.items == self.interval.required()?;
        if is_ready {
            self.items = 0;
        }
        Ok(is_ready)
    }
}

/// Leaves the timeout as it is.
#[derive(BatchArtifact)]
struct InheritsTimeout {
    #[batch_artifact]
    counter: EveryNth,
}

#[checkpoint_algorithm("inventoryCheckpointAlgorithmNoOverride")]
impl InheritsTimeout {
    #[is_ready_to_checkpoint]
    fn is_ready(&mut self) -> Result<bool, BatchError> {
        self.counter.count()
    }
}

/// Sets a timeout of 150 seconds.
#[derive(BatchArtifact)]
struct LongTimeout {
    #[batch_artifact]
    counter: EveryNth,
}

#[checkpoint_algorithm("inventoryCheckpointAlgorithmOverride150")]
impl LongTimeout {
    #[get_checkpoint_timeout]
    fn timeout(&mut self, _inherited: i32) -> i32 {
        150
    }

    #[is_ready_to_checkpoint]
    fn is_ready(&mut self) -> Result<bool, BatchError> {
        self.counter.count()
    }
}
