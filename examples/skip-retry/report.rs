//! The table of booked payments, the step that creates it, and the step that sums it.

use batch_examples::money::Cents;
use batch_runtime::prelude::*;
use diesel::connection::SimpleConnection;
use diesel::dsl::{count_star, sql};
use diesel::prelude::*;
use diesel::sql_types::BigInt;

table! {
    payment (number) {
        number -> Text,
        account -> Text,
        cents -> BigInt,
        currency -> Text,
        line -> BigInt,
    }
}

/// Creates the table if it does not exist.
#[derive(BatchArtifact)]
struct CreatePaymentTable {
    #[batch_context]
    job: JobContext,
}

#[batchlet("CreatePaymentTable")]
impl CreatePaymentTable {
    #[process]
    fn create(&self) -> Result<String, BatchError> {
        self.job.connect()?.sqlite()?.batch_execute(
            "CREATE TABLE IF NOT EXISTS payment (
                number TEXT NOT NULL PRIMARY KEY, account TEXT NOT NULL, cents INTEGER NOT NULL,
                currency TEXT NOT NULL, line INTEGER NOT NULL);",
        )?;
        Ok("CREATED".into())
    }

    #[cancel]
    fn cancel(&self) {}
}

/// Prints the booked payments.
#[derive(BatchArtifact)]
struct BookedPayments {
    #[batch_context]
    job: JobContext,
}

#[batchlet("BookedPayments")]
impl BookedPayments {
    #[process]
    fn report(&self) -> Result<String, BatchError> {
        let mut connection = self.job.connect()?;
        let sums: Vec<(String, i64, i64)> = payment::table
            .group_by(payment::currency)
            .select((payment::currency, count_star(), sql::<BigInt>("SUM(cents)")))
            .order(payment::currency)
            .load(connection.sqlite()?)?;
        for (currency, payments, cents) in sums {
            println!("booked {payments:>3} payments, {:>9} {currency}", Cents(cents));
        }
        Ok("REPORTED".into())
    }

    #[cancel]
    fn cancel(&self) {}
}
