//! The rows of the file, their reader, and the file of rejected rows.

use batch_examples::money::Cents;
use batch_items::{DelimitedItemReader, RejectListener};
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

use super::booking::Payment;

/// A row of the file.
#[derive(Deserialize, Serialize)]
pub(crate) struct PaymentRow {
    pub(crate) payment: String,
    pub(crate) account: String,
    pub(crate) amount: Cents,
    pub(crate) currency: String,
    /// Added by the reader: the line of the row, and its text.
    pub(crate) line: u64,
    pub(crate) text: String,
}

#[item_reader("PaymentReader")]
type PaymentReader = DelimitedItemReader<PaymentRow>;

/// Writes what is skipped: rows that cannot be read or processed, and payments that cannot be booked.
#[skip_listener("Rejects")]
#[checkpoint_listener("Rejects")]
type Rejects = RejectListener<PaymentRow, Payment>;
