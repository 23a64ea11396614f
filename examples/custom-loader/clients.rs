//! The loader: creates the artifacts that share the client. The runtime creates all others.

use std::sync::Arc;

use batch_runtime::prelude::*;

use super::invoices::{RateUsage, ToEuro};
use super::rates::RateClient;

/// Created once, by its `Default`, and with it the client. batch.xml names it by its class.
#[derive(Default)]
struct Clients {
    rates: Arc<RateClient>,
}

#[artifact_loader(class = "custom_loader::Clients")]
impl BatchArtifactLoader for Clients {
    /// Returns a new instance at each call: one for each `ref` before the job starts, and one for each instance that runs.
    /// The runtime injects its properties and contexts, and leaves the other fields unchanged.
    fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError> {
        let rates = Arc::clone(&self.rates);
        Ok(match reference {
            "ToEuro" => Some(LoadedArtifact::new(ToEuro::with(rates))),
            "RateUsage" => Some(LoadedArtifact::new(RateUsage::with(rates))),
            _ => None,
        })
    }
}
