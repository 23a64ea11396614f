//! The job's artifacts: read account numbers, make a statement for each, and write it in the chunk's transaction.

use std::thread;
use std::time::Duration;

use batch_runtime::prelude::*;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;

table! {
    // No unique key, so that a statement written twice would be visible.
    statement (rowid) {
        rowid -> BigInt,
        job_instance_id -> BigInt,
        account -> BigInt,
        text -> Text,
    }
}

/// Creates the table if it does not exist.
#[derive(BatchArtifact)]
struct CreateStatementTable {
    #[batch_context]
    job: JobContext,
}

#[batchlet("CreateStatementTable")]
impl CreateStatementTable {
    #[process]
    fn create(&self) -> Result<String, BatchError> {
        self.job.connect()?.sqlite()?.batch_execute(
            "CREATE TABLE IF NOT EXISTS statement (
                job_instance_id INTEGER NOT NULL, account INTEGER NOT NULL, text TEXT NOT NULL);",
        )?;
        Ok("CREATED".into())
    }

    #[cancel]
    fn cancel(&self) {}
}

/// Reads the account numbers; the checkpoint is the last one.
#[derive(BatchArtifact)]
struct Accounts {
    #[batch_property(name = "accounts")]
    accounts: i64,
    last: i64,
}

#[item_reader("Accounts")]
impl Accounts {
    #[open]
    fn open(&mut self, checkpoint: Option<i64>) {
        self.last = checkpoint.unwrap_or(0);
    }

    #[read_item]
    fn read(&mut self) -> Option<i64> {
        (self.last < self.accounts).then(|| {
            self.last += 1;
            self.last
        })
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> i64 {
        self.last
    }
}

/// Makes the statement of an account, then pauses. A stop takes effect between two items.
#[derive(BatchArtifact)]
struct MakeStatement {
    #[batch_property(name = "pause.ms")]
    pause_ms: u64,
}

/// A row of the table of statements.
struct Statement {
    account: i64,
    text: String,
}

#[item_processor("MakeStatement")]
impl MakeStatement {
    #[process_item]
    fn process(&mut self, account: i64) -> Option<Statement> {
        thread::sleep(Duration::from_millis(self.pause_ms));
        Some(Statement {
            account,
            text: format!("Account {account}: nothing has happened."),
        })
    }
}

/// Writes through the chunk transaction: each statement exactly once, even if the job is stopped.
#[derive(BatchArtifact)]
struct StatementWriter {
    #[batch_context]
    job: JobContext,
}

#[item_writer("StatementWriter")]
impl StatementWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[write_items]
    fn write(&mut self, statements: &[Statement], tx: &mut ChunkTransaction) -> QueryResult<()> {
        let row = |statement: &Statement| {
            (
                statement::job_instance_id.eq(self.job.instance_id().0),
                statement::account.eq(statement.account),
                statement::text.eq(statement.text.clone()),
            )
        };
        let rows: Vec<_> = statements.iter().map(row).collect();
        diesel::insert_into(statement::table)
            .values(rows)
            .execute(tx.sqlite()?)?;
        Ok(())
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}
