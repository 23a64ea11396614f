//! The orders of the day, the first step, which sums them, and the decision after it.

use std::path::{Path, PathBuf};

use batch_examples::money::Cents;
use batch_examples::open_csv;
use batch_runtime::prelude::*;
use serde::Deserialize;

/// A row of the CSV file.
#[derive(Deserialize)]
pub(crate) struct Order {
    pub(crate) order: String,
    pub(crate) customer: String,
    pub(crate) item: String,
    pub(crate) quantity: i64,
    price: String,
}

impl Order {
    /// The amount that the customer pays.
    pub(crate) fn amount(&self) -> Result<Cents, BatchError> {
        let Cents(price) = self.price.parse()?;
        let amount = price.checked_mul(self.quantity);
        amount
            .map(Cents)
            .ok_or_else(|| BatchError::msg(format!("order {}: too much", self.order)))
    }
}

/// Reads the orders of a file, which is small enough to read at once.
pub(crate) fn read(file: &Path) -> Result<Vec<Order>, BatchError> {
    Ok(open_csv(file)?.deserialize().collect::<Result<_, _>>()?)
}

/// Sums the orders of the day. The sum is persistent user data of the step, for later elements.
#[derive(BatchArtifact)]
struct AddUpOrders {
    #[batch_property(name = "orders.file")]
    file: PathBuf,
    #[batch_context]
    step: StepContext,
}

#[batchlet("AddUpOrders")]
impl AddUpOrders {
    #[process]
    fn add_up(&self) -> Result<String, BatchError> {
        let orders = read(&self.file)?;
        let mut sum = 0;
        for order in &orders {
            sum += order.amount()?.0;
        }
        self.step.set_persistent_user_data(&sum)?;
        println!("{} orders, {} EUR", orders.len(), Cents(sum));
        Ok(format!("{} ORDERS", orders.len()))
    }

    #[cancel]
    fn cancel(&self) {}
}

/// Decides by the sum: `EMPTY`, `SMALL` or `LARGE`.
#[derive(BatchArtifact)]
struct SizeOfTheDay {
    /// A property of a custom type: a value that is not an amount is rejected before the job starts.
    #[batch_property(name = "approval.limit")]
    limit: Cents,
    /// The context of the step before the decision.
    #[batch_context]
    step: Option<StepContext>,
}

#[decider("SizeOfTheDay")]
impl SizeOfTheDay {
    #[decide]
    fn decide(&mut self) -> Result<String, BatchError> {
        let sum = match &self.step {
            Some(step) => step.persistent_user_data::<i64>()?.unwrap_or_default(),
            None => 0,
        };
        Ok(match sum {
            0 => "EMPTY",
            sum if Cents(sum) <= self.limit => "SMALL",
            _ => "LARGE",
        }
        .into())
    }
}
