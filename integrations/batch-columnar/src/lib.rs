//! Parquet, Arrow and Excel files as the input and output of batch jobs.
//!
//! The readers have the properties of [`FileInput`](batch_items::file::FileInput), the writers have the properties of
//! [`FileOutput`](batch_items::file::FileOutput). The page about files in the guide of the repository explains them.
//!
//! ```
//! use batch_columnar::ParquetItemReader;
//! use batch_runtime::prelude::*;
//!
//! #[derive(serde::Deserialize)]
//! struct Flight {
//!     origin: String,
//!     delay: Option<i32>,
//! }
//!
//! #[item_reader("FlightReader")]
//! type FlightReader = ParquetItemReader<Flight>;
//! ```
//!
//! Jobs without Rust types use `parquetRecordReader`, `arrowRecordReader`, `xlsxRecordReader`, `recordParquetWriter` and
//! `recordXlsxWriter`, see [`registered`].
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `parquet` (default) | `ParquetItemReader`, `ParquetItemWriter`, `ArrowItemReader` |
//! | `xlsx` (default) | `XlsxItemReader`, `XlsxItemWriter` |
//! | `zstd` | Parquet and Arrow files compressed by zstd |
//! | `object-store` | files in object stores, as of `batch-items` |
//! | `sqlite` (default), `postgres`, `mysql` | the databases, as of `batch-runtime` |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg(any(test, fuzzing))]
pub mod fuzzing;
#[cfg(any(feature = "parquet", feature = "xlsx"))]
mod guard;
#[cfg(any(feature = "parquet", feature = "xlsx"))]
mod iso;
#[cfg(feature = "parquet")]
mod parquet;
pub mod registered;
#[cfg(feature = "xlsx")]
mod xlsx;

#[cfg(feature = "parquet")]
pub use self::parquet::{ArrowItemReader, Codec, ParquetItemReader, ParquetItemWriter};
#[cfg(feature = "xlsx")]
pub use self::xlsx::{XlsxItemReader, XlsxItemWriter};
