//! The program `batch`: the command line with the ready-made artifacts of the enabled features, for jobs that need no code of their own.
//!
//! | feature | |
//! |---|---|
//! | `sqlite` (default) | repository, tables and queries on SQLite |
//! | `postgres`, `mysql` | the same on PostgreSQL, MySQL and MariaDB, with the client library of the system |
//! | `bundled-postgres`, `bundled-mysql` | the same with a client library that is compiled in |
//! | `odbc` | tables and queries of other databases, with the driver manager of the system |
//! | `columnar` (default) | Parquet, Arrow IPC and Excel files |
//! | `object-store` (default) | files in object stores, and input from HTTP |
//! | `zstd` (default) | files compressed by zstd |
//! | `http` (default) | the batchlet `httpCall` |
//! | `kafka` (default) | topics of Kafka as input and output |
//! | `nats` (default) | streams of NATS as input and output, and partitions on workers |
//! | `console` (default), `prometheus` (default), `otlp` (default) | the operations console, metrics for Prometheus, and OpenTelemetry |
//! | `lineage` (default), `notify` (default) | OpenLineage events and notifications |
//!
//! The default features need Rust and a C compiler.

use std::process::ExitCode;

// Each registers its artifacts.
use batch_batchlets as _;
#[cfg(feature = "columnar")]
use batch_columnar as _;
use batch_items as _;
#[cfg(feature = "kafka")]
use batch_kafka as _;
#[cfg(feature = "nats")]
use batch_nats as _;
#[cfg(feature = "odbc")]
use batch_odbc as _;

fn main() -> ExitCode {
    batch_cli::main()
}
