//! Connections for artifacts.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::result::Error as DieselError;

use crate::repository::RepositoryError;

/// A connection to the database that holds the job repository.
pub struct RepositoryConnection {
    on: On,
}

enum On {
    #[cfg(feature = "sqlite")]
    Sqlite(SqliteConnection),
    #[cfg(feature = "postgres")]
    Postgres(PgConnection),
    #[cfg(feature = "mysql")]
    Mysql(MysqlConnection),
}

/// A diesel connection to the database that holds the job repository, for code that works on each kind.
#[non_exhaustive]
pub enum DatabaseConnection<'a> {
    /// SQLite.
    #[cfg(feature = "sqlite")]
    Sqlite(&'a mut SqliteConnection),
    /// PostgreSQL.
    #[cfg(feature = "postgres")]
    Postgres(&'a mut PgConnection),
    /// MySQL or MariaDB.
    #[cfg(feature = "mysql")]
    Mysql(&'a mut MysqlConnection),
}

impl RepositoryConnection {
    /// Returns the diesel connection.
    pub fn any(&mut self) -> DatabaseConnection<'_> {
        match &mut self.on {
            #[cfg(feature = "sqlite")]
            On::Sqlite(connection) => DatabaseConnection::Sqlite(connection),
            #[cfg(feature = "postgres")]
            On::Postgres(connection) => DatabaseConnection::Postgres(connection),
            #[cfg(feature = "mysql")]
            On::Mysql(connection) => DatabaseConnection::Mysql(connection),
        }
    }
}

impl RepositoryConnection {
    /// Returns whether the connection to a server is lost. Meaningful after an error, outside of a transaction.
    pub fn is_lost(&mut self) -> bool {
        match &mut self.on {
            #[cfg(feature = "sqlite")]
            On::Sqlite(_) => false,
            #[cfg(feature = "postgres")]
            On::Postgres(connection) => connection.batch_execute("SELECT 1").is_err(),
            #[cfg(feature = "mysql")]
            On::Mysql(connection) => connection.batch_execute("SELECT 1").is_err(),
        }
    }
}

impl RepositoryConnection {
    /// Executes statements, separated by `;`, in the SQL of the database.
    ///
    /// # Errors
    /// When a statement fails; the statements before it may have been executed.
    pub fn batch_execute(&mut self, statements: &str) -> QueryResult<()> {
        match &mut self.on {
            #[cfg(feature = "sqlite")]
            On::Sqlite(connection) => connection.batch_execute(statements),
            #[cfg(feature = "postgres")]
            On::Postgres(connection) => connection.batch_execute(statements),
            #[cfg(feature = "mysql")]
            On::Mysql(connection) => connection.batch_execute(statements),
        }
    }
}

/// Implements the accessor for the connection of one database, and the conversion into this type.
macro_rules! connection {
    ($(#[$about:meta])* $feature:literal, $method:ident, $variant:ident, $connection:ty) => {
        #[cfg(feature = $feature)]
        impl RepositoryConnection {
            $(#[$about])*
            pub fn $method(&mut self) -> QueryResult<&mut $connection> {
                match &mut self.on {
                    On::$variant(connection) => Ok(connection),
                    #[allow(unreachable_patterns, reason = "there may be one database only")]
                    _ => Err(on_another_database($feature)),
                }
            }
        }

        #[cfg(feature = $feature)]
        impl From<$connection> for RepositoryConnection {
            fn from(connection: $connection) -> Self {
                Self {
                    on: On::$variant(connection),
                }
            }
        }
    };
}

connection! {
    /// Returns the diesel connection, if the repository is on SQLite.
    ///
    /// # Errors
    /// When it is on another database.
    "sqlite", sqlite, Sqlite, SqliteConnection
}

connection! {
    /// Returns the diesel connection, if the repository is on PostgreSQL.
    ///
    /// # Errors
    /// When it is on another database.
    "postgres", postgres, Postgres, PgConnection
}

connection! {
    /// Returns the diesel connection, if the repository is on MySQL or MariaDB.
    ///
    /// # Errors
    /// When it is on another database.
    "mysql", mysql, Mysql, MysqlConnection
}

/// Returns the error for a connection of another database than the repository's.
pub(super) fn on_another_database(asked_for: &str) -> DieselError {
    DieselError::QueryBuilderError(format!("the database is not {asked_for}").into())
}

/// Returns the error for the connection of a chunk transaction of a repository in memory.
pub(super) fn no_database() -> DieselError {
    let problem = RepositoryError::InMemory {
        missing: "database, so its chunk transaction has no connection",
    };
    DieselError::QueryBuilderError(Box::new(problem))
}
