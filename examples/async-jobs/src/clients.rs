//! The loader: creates the artifacts that share the pool. The runtime creates all others.

use batch_runtime::prelude::*;
use sqlx::PgPool;

use crate::artifacts::{ReminderTable, UnpaidInvoices};

/// The clients that the program has made, for the artifacts that use them.
#[derive(Clone, Debug)]
pub struct Clients {
    /// The connections to the database of the invoices.
    pub pool: PgPool,
}

impl BatchArtifactLoader for Clients {
    fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError> {
        let pool = self.pool.clone();
        Ok(match reference {
            "UnpaidInvoices" => Some(LoadedArtifact::new(UnpaidInvoices::with(pool))),
            "ReminderTable" => Some(LoadedArtifact::new(ReminderTable::with(pool))),
            _ => None,
        })
    }
}
