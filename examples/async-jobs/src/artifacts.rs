//! The artifacts, whose methods are `async`.

use std::collections::VecDeque;

use batch_runtime::prelude::*;
use batch_sqlx::SqlxDestination;
use sqlx::{PgPool, PgTransaction, Postgres};

/// The number of invoices that one query reads.
const PAGE: i64 = 500;

/// A row of the table `invoice`.
#[derive(Clone, sqlx::FromRow)]
struct Invoice {
    id: i64,
    customer: String,
    cents: i64,
}

/// A row of the table `reminder`.
struct Reminder {
    invoice: i64,
    text: String,
}

/// Reads the invoices that are not paid, a page at a time. The checkpoint is the id of the last invoice.
#[derive(BatchArtifact)]
pub(crate) struct UnpaidInvoices {
    // `None` unless the loader makes it.
    pool: Option<PgPool>,
    page: VecDeque<Invoice>,
    last: i64,
}

impl UnpaidInvoices {
    pub(crate) fn with(pool: PgPool) -> Self {
        Self {
            pool: Some(pool),
            page: VecDeque::new(),
            last: 0,
        }
    }
}

#[item_reader("UnpaidInvoices")]
impl UnpaidInvoices {
    #[open]
    fn open(&mut self, checkpoint: Option<i64>) {
        self.page.clear();
        self.last = checkpoint.unwrap_or(0);
    }

    #[read_item]
    async fn read(&mut self) -> Result<Option<Invoice>, BatchError> {
        if self.page.is_empty() {
            let pool = self.pool.as_ref().ok_or_else(no_pool)?;
            let sql =
                "SELECT id, customer, cents FROM invoice WHERE NOT paid AND id > $1 ORDER BY id LIMIT $2";
            let page: Vec<_> = sqlx::query_as(sql)
                .bind(self.last)
                .bind(PAGE)
                .fetch_all(pool)
                .await?;
            self.page = page.into();
        }
        let invoice = self.page.pop_front();
        self.last = invoice.as_ref().map_or(self.last, |invoice| invoice.id);
        Ok(invoice)
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> i64 {
        self.last
    }
}

/// Writes the text of a reminder.
#[derive(BatchArtifact)]
struct Reminders;

#[item_processor("Reminders")]
impl Reminders {
    #[process_item]
    fn remind(&mut self, Invoice { id, customer, cents }: &Invoice) -> Option<Reminder> {
        let text = format!("{customer}: please pay {}.{:02}", cents / 100, cents % 100);
        Some(Reminder { invoice: *id, text })
    }
}

/// Inserts reminders, each exactly once: the destination commits them with a marker that knows the position of the reader.
#[derive(BatchArtifact)]
pub(crate) struct ReminderTable {
    pool: Option<PgPool>,
}

impl ReminderTable {
    pub(crate) fn with(pool: PgPool) -> Self {
        Self { pool: Some(pool) }
    }
}

#[item_writer("ReminderTable")]
impl ReminderTable {
    #[destination]
    fn database(&self) -> Result<SqlxDestination<Postgres>, BatchError> {
        Ok(SqlxDestination::new(self.pool.clone().ok_or_else(no_pool)?))
    }

    #[write_items]
    async fn write(
        &mut self,
        reminders: &[Reminder],
        tx: &mut PgTransaction<'static>,
    ) -> Result<(), sqlx::Error> {
        let (invoices, texts): (Vec<_>, Vec<_>) = reminders
            .iter()
            .map(|reminder| (reminder.invoice, reminder.text.as_str()))
            .unzip();
        let sql = "INSERT INTO reminder (invoice, text) SELECT * FROM UNNEST($1::bigint[], $2::text[])";
        sqlx::query(sql)
            .bind(invoices)
            .bind(texts)
            .execute(&mut **tx)
            .await?;
        Ok(())
    }
}

fn no_pool() -> BatchError {
    BatchError::msg("there is no pool: the loader `Clients` makes this artifact")
}
