//! The tables of the program, which [`BatchRuntimeBuilder::schema_sql`](crate::BatchRuntimeBuilder::schema_sql) creates.

use std::sync::{Mutex, PoisonError};

use super::{JobOperator, StartError};
use crate::repository::{JobRepository, RepositoryError};

/// The statements that create the tables of the program, until a start of this process has executed them.
#[derive(Default)]
pub(crate) struct Schema(Mutex<Option<String>>);

impl Schema {
    pub(crate) fn new(statements: Option<String>) -> Self {
        Self(Mutex::new(statements))
    }

    /// Executes the statements, unless an earlier call has.
    fn create(&self, repository: &dyn JobRepository) -> Result<(), RepositoryError> {
        let mut statements = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(text) = statements.as_deref() else {
            return Ok(());
        };
        let mut connection = repository.connector().connect()?;
        // If two processes create a table at the same time, the database may reject one of them, which finds it at the second attempt.
        if connection.batch_execute(text).is_err() {
            let created = connection.batch_execute(text);
            created.map_err(|error| RepositoryError::Database {
                action: "execute the statements of `schema_sql`",
                source: Box::new(error),
            })?;
        }
        *statements = None;
        Ok(())
    }
}

impl JobOperator {
    /// Creates the tables of the program before its first job.
    // Spec: SCHEMA-01
    pub(super) fn create_schema(&self) -> Result<(), StartError> {
        let created = self.shared.schema.create(&*self.shared.repository);
        created.map_err(StartError::Schema)
    }
}
