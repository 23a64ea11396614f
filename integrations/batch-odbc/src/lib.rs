//! Tables of Oracle, SQL Server, DB2 and other databases as the input and output of batch jobs, by ODBC.
//!
//! | | |
//! |---|---|
//! | [`OdbcItemReader`] | reads the rows of a query; `odbcRecordReader` reads them as records |
//! | [`OdbcTableWriter`] | inserts, updates or deletes rows of a table, exactly once; `recordOdbcTableWriter` writes records |
//! | [`OdbcDestination`] | lets a writer of the program write exactly once with its own statements |
//!
//! The property `database` is a connection string such as `odbc:DSN=erp;UID=batch;PWD=secret`, or the name of one in the table
//! `[databases]` of `batch.toml`. A program links the driver manager of the system: unixODBC, iODBC or the ODBC of Windows.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `sqlite` (default), `postgres`, `mysql` | the databases of job repositories, as of `batch-runtime` |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod columns;
mod connection;
mod destination;
mod dialect;
mod error;
mod parameters;
mod reader;
mod registered;
mod result;
mod row;
mod selects;
mod statements;
mod tables;

pub use self::connection::OdbcConnection;
pub use self::destination::OdbcDestination;
pub use self::error::OdbcError;
pub use self::reader::OdbcItemReader;
pub use self::registered::{OdbcRecordReader, RecordOdbcTableWriter};
pub use self::tables::{OdbcTableWriter, OdbcTables};
