//! Errors of payments. The job file names the variants as classes to skip or to retry.

use std::fmt;

use batch_runtime::prelude::*;

#[derive(Debug, BatchException)]
pub(crate) enum PaymentError {
    /// Returned by the processor: the payment is not valid.
    Invalid(String),
    /// Returned by the writer: the payment is already booked.
    Duplicate,
    /// Returned by the writer: the ledger is busy for a moment.
    LedgerBusy,
}

impl fmt::Display for PaymentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(reason) => f.write_str(reason),
            Self::Duplicate => f.write_str("a payment with this number is already booked"),
            Self::LedgerBusy => f.write_str("the ledger is busy"),
        }
    }
}

impl std::error::Error for PaymentError {}
