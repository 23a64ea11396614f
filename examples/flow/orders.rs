//! The orders of the day, the first step, which adds them up, and the decision that follows it.

use std::path::{Path, PathBuf};

use batch_examples::money;
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
    /// What the customer pays, in cents.
    pub(crate) fn cents(&self) -> Result<i64, BatchError> {
        let price = money::cents(&self.price);
        let cents = price.and_then(|price| price.checked_mul(self.quantity));
        cents.ok_or_else(|| BatchError::msg(format!("order {}: no price", self.order)))
    }
}

/// The orders of a file; it is small enough to be read as a whole.
pub(crate) fn read(file: &Path) -> Result<Vec<Order>, csv::Error> {
    csv::Reader::from_path(file)?.deserialize().collect()
}

/// Adds up the day. The sum is persistent user data of the step, for whoever comes after it.
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
        let cents = orders.iter().map(Order::cents).sum::<Result<i64, _>>()?;
        self.step.set_persistent_user_data(&cents)?;
        println!("{} orders, {} EUR", orders.len(), money::text(cents));
        Ok(format!("{} ORDERS", orders.len()))
    }

    #[cancel]
    fn cancel(&self) {}
}

/// Says which way the day takes: `EMPTY`, `SMALL` or `LARGE`.
#[derive(BatchArtifact)]
struct SizeOfTheDay {
    #[batch_property(name = "approval.limit")]
    limit: String,
    /// That of the step before the decision.
    #[batch_context]
    step: Option<StepContext>,
}

#[decider("SizeOfTheDay")]
impl SizeOfTheDay {
    #[decide]
    fn decide(&mut self) -> Result<String, BatchError> {
        let limit = money::cents(&self.limit);
        let limit = limit.ok_or_else(|| BatchError::msg(format!("`{}` is no amount", self.limit)))?;
        let sum = match &self.step {
            Some(step) => step.persistent_user_data::<i64>()?.unwrap_or_default(),
            None => 0,
        };
        Ok(match sum {
            0 => "EMPTY",
            sum if sum <= limit => "SMALL",
            _ => "LARGE",
        }
        .into())
    }
}
