//! The papers that two concurrent flows write, and the last step.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use batch_runtime::prelude::*;

use super::orders;

/// Writes a file completely or not at all: a batchlet that died runs again, and must not find a partial file.
fn write(folder: &Path, name: &str, lines: &[String]) -> io::Result<()> {
    let half = folder.join(format!("{name}.part"));
    fs::write(&half, lines.join("\n") + "\n")?;
    fs::rename(half, folder.join(name))
}

/// Writes a line per order with its customer and amount.
#[derive(BatchArtifact)]
struct WriteInvoices {
    #[batch_property(name = "orders.file")]
    file: PathBuf,
    #[batch_property(name = "output")]
    output: PathBuf,
}

#[batchlet("WriteInvoices")]
impl WriteInvoices {
    #[process]
    fn invoices(&self) -> Result<String, BatchError> {
        let mut lines = Vec::new();
        for order in orders::read(&self.file)? {
            let amount = order.amount()?;
            lines.push(format!("{} {:<10} {amount:>8} EUR", order.order, order.customer));
        }
        write(&self.output, "invoices.txt", &lines)?;
        Ok(format!("{} INVOICES", lines.len()))
    }

    #[cancel]
    fn cancel(&self) {}
}

/// Writes a line per order with the goods to pack.
#[derive(BatchArtifact)]
struct PackingList {
    #[batch_property(name = "orders.file")]
    file: PathBuf,
    #[batch_property(name = "output")]
    output: PathBuf,
}

#[batchlet("PackingList")]
impl PackingList {
    #[process]
    fn pack(&self) -> Result<String, BatchError> {
        let orders = orders::read(&self.file)?;
        let lines: Vec<String> = orders
            .iter()
            .map(|order| format!("{} {} x {}", order.order, order.quantity, order.item))
            .collect();
        write(&self.output, "packing-list.txt", &lines)?;
        Ok("PACKED".into())
    }

    #[cancel]
    fn cancel(&self) {}
}

/// Writes a line per customer with the address of the parcel.
#[derive(BatchArtifact)]
struct ParcelLabels {
    #[batch_property(name = "orders.file")]
    file: PathBuf,
    #[batch_property(name = "output")]
    output: PathBuf,
}

#[batchlet("ParcelLabels")]
impl ParcelLabels {
    #[process]
    fn label(&self) -> Result<String, BatchError> {
        let mut customers: Vec<String> = orders::read(&self.file)?
            .into_iter()
            .map(|order| order.customer)
            .collect();
        customers.sort();
        customers.dedup();
        write(&self.output, "labels.txt", &customers)?;
        Ok(format!("{} PARCELS", customers.len()))
    }

    #[cancel]
    fn cancel(&self) {}
}

/// Runs after both flows.
#[derive(BatchArtifact)]
struct Ship {
    #[batch_property(name = "output")]
    output: PathBuf,
}

#[batchlet("Ship")]
impl Ship {
    #[process]
    fn ship(&self) -> io::Result<String> {
        let lines =
            |name: &str| Ok::<_, io::Error>(fs::read_to_string(self.output.join(name))?.lines().count());
        println!(
            "{} invoices, {} parcels",
            lines("invoices.txt")?,
            lines("labels.txt")?
        );
        Ok("SHIPPED".into())
    }

    #[cancel]
    fn cancel(&self) {}
}
