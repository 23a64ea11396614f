//! What can be wrong with a payment. The job file names these variants as classes: which to skip, which to try again.

use std::fmt;

use batch_runtime::prelude::*;

#[derive(Debug, BatchException)]
pub(crate) enum PaymentError {
    /// Thrown by the reader: the row is no payment.
    Unreadable { line: u64, reason: String },
    /// Thrown by the processor: the payment is not one that may be booked.
    Refused(String),
    /// Thrown by the writer: it is booked already.
    Duplicate,
    /// Thrown by the writer: the ledger is busy, and will not be for long.
    LedgerBusy,
}

impl fmt::Display for PaymentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { reason, .. } | Self::Refused(reason) => f.write_str(reason),
            Self::Duplicate => f.write_str("a payment of this number is booked already"),
            Self::LedgerBusy => f.write_str("the ledger is busy"),
        }
    }
}

impl std::error::Error for PaymentError {}
