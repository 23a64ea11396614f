//! The processor, which rejects invalid payments, and the writer, which books the others.

use batch_runtime::prelude::*;
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error};
use serde::Serialize;

use super::errors::PaymentError;
use super::payments::PaymentRow;
use super::report::payment;

#[derive(BatchArtifact)]
struct PaymentProcessor {
    /// Currencies that the bank books.
    #[batch_property(name = "currencies", value = "EUR,CHF")]
    currencies: Vec<String>,
}

/// A valid payment.
#[derive(Insertable, Serialize)]
#[diesel(table_name = payment)]
pub(crate) struct Payment {
    number: String,
    account: String,
    cents: i64,
    currency: String,
    /// The line in the file.
    line: i64,
    /// The row, for the file of rejects; it is not in the table.
    #[diesel(skip_insertion)]
    text: String,
}

#[item_processor("PaymentProcessor")]
impl PaymentProcessor {
    #[process_item]
    fn process(&mut self, row: &PaymentRow) -> Result<Option<Payment>, BatchError> {
        let invalid = |reason: String| Err(PaymentError::Invalid(reason).into());
        if row.amount.0 <= 0 {
            return invalid(format!("{} is not a positive amount", row.amount));
        }
        if !self.currencies.contains(&row.currency) {
            return invalid(format!("{} is not a supported currency", row.currency));
        }
        Ok(Some(Payment {
            number: row.payment.clone(),
            account: row.account.clone(),
            cents: row.amount.0,
            currency: row.currency.clone(),
            line: i64::try_from(row.line)?,
            text: row.text.clone(),
        }))
    }
}

/// Books in the chunk transaction: each payment exactly once.
#[derive(BatchArtifact)]
struct PaymentWriter {
    /// The calls, counted from 1, that find the ledger busy, to demonstrate a retry. A real writer would get this error from a
    /// lock timeout or a service.
    #[batch_property(name = "ledger.busy", value = "2")]
    busy: Vec<u32>,
    calls: u32,
}

#[item_writer("PaymentWriter")]
impl PaymentWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    /// Inserts the list in one statement. If it contains a duplicate, the runtime searches for it: it calls again with halves of
    /// the list, each behind a savepoint.
    #[write_items]
    fn write(&mut self, payments: &[Payment], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        self.calls += 1;
        let insert = diesel::insert_into(payment::table).values(payments);
        match insert.execute(tx.sqlite()?) {
            Err(Error::DatabaseError(DatabaseErrorKind::UniqueViolation, _)) => {
                return Err(PaymentError::Duplicate.into());
            }
            result => result?,
        };
        // The rows inserted above roll back with the transaction.
        if self.busy.contains(&self.calls) {
            return Err(PaymentError::LedgerBusy.into());
        }
        Ok(())
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}
