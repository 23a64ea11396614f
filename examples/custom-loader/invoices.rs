//! The artifacts. The loader calls the constructors of those with a client.

use std::path::PathBuf;
use std::sync::Arc;

use batch_examples::money::Cents;
use batch_examples::open_csv;
use batch_runtime::prelude::*;
use serde::Deserialize;

use super::rates::RateClient;

/// Reads all invoices at once, because there are few. The checkpoint is the number of invoices returned.
#[derive(BatchArtifact)]
struct InvoiceFile {
    #[batch_property(name = "invoices.file")]
    file: PathBuf,
    invoices: Vec<Invoice>,
    next: usize,
}

#[derive(Clone, Deserialize)]
struct Invoice {
    invoice: String,
    customer: String,
    amount: String,
    currency: String,
}

#[item_reader("InvoiceFile", class = "custom_loader::InvoiceFile")]
impl InvoiceFile {
    #[open]
    fn open(&mut self, checkpoint: Option<usize>) -> Result<(), BatchError> {
        let rows = open_csv(&self.file)?.into_deserialize();
        self.invoices = rows.collect::<Result<_, _>>()?;
        self.next = checkpoint.unwrap_or(0);
        Ok(())
    }

    #[read_item]
    fn read(&mut self) -> Option<Invoice> {
        let invoice = self.invoices.get(self.next).cloned();
        self.next += usize::from(invoice.is_some());
        invoice
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> usize {
        self.next
    }
}

/// Converts the amount of an invoice to euros.
#[derive(BatchArtifact)]
pub(crate) struct ToEuro {
    // The derive requires `Default` for every field that is not a property: `None` unless the loader supplies a client.
    rates: Option<Arc<RateClient>>,
}

impl ToEuro {
    pub(crate) fn with(rates: Arc<RateClient>) -> Self {
        Self { rates: Some(rates) }
    }
}

#[item_processor("ToEuro")]
impl ToEuro {
    #[process_item]
    fn convert(&mut self, invoice: &Invoice) -> Result<Option<String>, BatchError> {
        let rates = self.rates.as_ref().ok_or_else(no_client)?;
        let Cents(cents) = invoice.amount.parse()?;
        let euro = Cents(cents * rates.rate(&invoice.currency)? / 10_000);
        let (number, customer) = (&invoice.invoice, &invoice.customer);
        Ok(Some(format!("{number} {customer:<15} {euro:>8} EUR")))
    }
}

/// Prints the invoices. At-least-once: after a crash it may print the invoices of one chunk again.
#[derive(BatchArtifact)]
struct PrintInvoices;

#[item_writer("PrintInvoices")]
impl PrintInvoices {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[write_items]
    fn print(&mut self, lines: &[String]) {
        lines.iter().for_each(|line| println!("{line}"));
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// Prints the number of requests to the service: another artifact in another step, with the same client.
#[derive(BatchArtifact)]
pub(crate) struct RateUsage {
    rates: Option<Arc<RateClient>>,
}

impl RateUsage {
    pub(crate) fn with(rates: Arc<RateClient>) -> Self {
        Self { rates: Some(rates) }
    }
}

#[batchlet("RateUsage")]
impl RateUsage {
    #[process]
    fn tell(&self) -> Result<String, BatchError> {
        let requests = self.rates.as_ref().ok_or_else(no_client)?.requests();
        println!("the rate service was asked {requests} times");
        Ok(format!("{requests} REQUESTS"))
    }

    #[cancel]
    fn cancel(&self) {}
}

fn no_client() -> BatchError {
    BatchError::msg("there is no client: the loader `Clients` makes this artifact, and batch.xml names it")
}
