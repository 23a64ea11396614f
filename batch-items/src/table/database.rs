//! What the writer of tables needs of a database.

use std::sync::Arc;

use batch_runtime::BatchArtifact;
use batch_runtime::destination::AnyDestination;
use batch_runtime::prelude::*;

pub use super::catalogue::{Table, TableColumn};
pub use super::declared;
pub use super::error::StatementError;
pub use super::plan::{Changed, Column, Plan, quoted, quoted_table};
pub use super::settings::Settings;
use crate::rows::{Kind, Rows};

/// The database of a [`TableItemWriter`](crate::TableItemWriter): where it is, and how it describes and writes a table.
pub trait TableDatabase: BatchArtifact + Send + 'static {
    /// Returns the database, if it is not the repository's.
    ///
    /// # Errors
    /// If the properties name none.
    fn destination(&self) -> Result<Option<AnyDestination>, BatchError>;

    /// Describes a table; without columns, if it does not exist.
    ///
    /// # Errors
    /// If the database cannot be reached.
    fn describe(&mut self, table: &str) -> Result<Arc<Table>, BatchError>;

    /// Describes a table after a failed statement, whose cause may be that it has changed. `None` if that is not known.
    fn describe_again(&mut self, table: &str, tx: &mut ChunkTransaction) -> Option<Table>;

    /// Reports the table as an output.
    fn report(&self, table: &Table, name: &str);

    /// Writes rows inside the transaction, and returns how many have changed.
    ///
    /// # Errors
    /// The error of the database.
    fn execute(
        &mut self,
        tx: &mut ChunkTransaction,
        plan: &Plan,
        kinds: &[Kind],
        rows: &Rows,
    ) -> Result<Changed, StatementError>;
}
