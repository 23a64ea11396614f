//! The loader: gives the client to the artifacts that need it, and leaves all others to the runtime.

use std::sync::Arc;

use batch_runtime::prelude::*;

use super::invoices::{RateUsage, ToEuro};
use super::rates::RateClient;

/// Made once, by its `Default`; so the client is made once too. The class is what batch.xml calls it.
#[derive(Default)]
struct Clients {
    rates: Arc<RateClient>,
}

#[artifact_loader(class = "custom_loader::Clients")]
impl BatchArtifactLoader for Clients {
    /// Asked once for each `ref` before the job starts, and again for every instance: each answer is a new instance. The
    /// runtime then fills its properties and contexts; the other fields stay as they are.
    fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError> {
        let rates = Arc::clone(&self.rates);
        Ok(match reference {
            "ToEuro" => Some(LoadedArtifact::new(ToEuro::with(rates))),
            "RateUsage" => Some(LoadedArtifact::new(RateUsage::with(rates))),
            _ => None,
        })
    }
}
