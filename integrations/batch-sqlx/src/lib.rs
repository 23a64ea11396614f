//! Databases that writers write to exactly once by sqlx: [`SqlxDestination`].
//!
//! A writer returns the destination from its `#[destination]` method, and `#[write_items]` takes the transaction. The features `postgres`,
//! `mysql` and `sqlite` enable the databases.
//!
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(feature = "postgres", doc = "```")]
#![cfg_attr(not(feature = "postgres"), doc = "```ignore")]
//! use batch_runtime::prelude::*;
//! use batch_sqlx::SqlxDestination;
//! use sqlx::{PgPool, PgTransaction, Postgres};
//!
//! #[derive(BatchArtifact)]
//! struct Postings {
//!     // `None` unless an artifact loader makes it.
//!     pool: Option<PgPool>,
//! }
//!
//! #[item_writer("Postings")]
//! impl Postings {
//!     #[destination]
//!     fn ledger(&self) -> Result<SqlxDestination<Postgres>, BatchError> {
//!         let pool = self.pool.clone();
//!         Ok(SqlxDestination::new(pool.ok_or_else(|| BatchError::msg("the loader makes this artifact"))?))
//!     }
//!
//!     #[write_items]
//!     async fn post(&mut self, cents: &[i64], tx: &mut PgTransaction<'static>) -> Result<(), sqlx::Error> {
//!         let sql = "INSERT INTO posting SELECT * FROM UNNEST($1::bigint[])";
//!         sqlx::query(sql).bind(cents).execute(&mut **tx).await?;
//!         Ok(())
//!     }
//! }
//! ```
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `postgres`, `mysql`, `sqlite` | the databases to write to, as of sqlx |
//! | `repository-sqlite` (default) | job repositories in SQLite; a program with another repository leaves it out |

mod database;
mod destination;

pub use database::SqlxDatabase;
pub use destination::SqlxDestination;
