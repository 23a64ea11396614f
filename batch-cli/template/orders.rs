//! The artifacts that `jobs/NAME.xml` names: a reader, a processor and a writer.

use batch_items::{DelimitedItemReader, TableItemWriter};
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

/// A row of the file; its columns have the names of the fields.
#[derive(Deserialize)]
pub struct OrderRow {
    pub number: String,
    pub customer: String,
    pub quantity: i64,
    pub cents: i64,
}

/// A row of the table `orders`.
#[derive(Debug, PartialEq, Serialize)]
pub struct Order {
    pub number: String,
    pub customer: String,
    pub total_cents: i64,
}

/// Reads the file that the property `resource` names. A restart continues after the last committed row.
#[item_reader("OrderReader")]
type OrderReader = DelimitedItemReader<OrderRow>;

/// Inserts the rows in the transaction that commits the reader's position: each exactly once.
#[item_writer("OrderWriter")]
type OrderWriter = TableItemWriter<Order>;

/// Computes the total of an order.
#[derive(BatchArtifact)]
pub struct OrderProcessor {
    /// Orders with a smaller total are left out.
    #[batch_property(name = "minimum.cents", value = "0")]
    pub minimum_cents: i64,
}

#[item_processor("OrderProcessor")]
impl OrderProcessor {
    /// Returns `None` for an order that is left out. An error fails the step, or skips the order, as the job file says.
    #[process_item]
    pub fn process(&mut self, row: &OrderRow) -> Result<Option<Order>, BatchError> {
        let total_cents = row.quantity.checked_mul(row.cents);
        let total_cents = total_cents
            .ok_or_else(|| BatchError::msg(format!("order {} is too large", row.number)))?;
        Ok((total_cents >= self.minimum_cents).then(|| Order {
            number: row.number.clone(),
            customer: row.customer.clone(),
            total_cents,
        }))
    }
}
