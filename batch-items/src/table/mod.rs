//! Tables as the output of steps, in the transaction of the chunk.

mod catalogue;
#[cfg(feature = "postgres")]
mod copy;
pub mod database;
pub mod declared;
mod diesel_tables;
mod error;
pub mod insertable;
#[cfg(feature = "mysql")]
mod mysql;
mod plan;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "sqlite", feature = "mysql"))]
mod prepared;
mod settings;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(any(feature = "sqlite", feature = "mysql"))]
mod template;
mod writer;

pub(crate) use self::database::TableDatabase;
pub(crate) use self::diesel_tables::describe;
pub(crate) use self::writer::TablePosition;

pub use self::error::{ConstraintViolation, TableError};
pub use self::settings::{RowsAffected, WriteMode};
pub use self::writer::TableItemWriter;
