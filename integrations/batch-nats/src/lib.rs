//! [NATS JetStream](https://docs.nats.io/nats-concepts/jetstream) for batch jobs: as the queue of partitions on worker processes and, with the
//! feature `items`, which is on by default, as the input and output of steps, see [`items`].
//!
//! ```no_run
//! use batch_nats::NatsTransport;
//! use batch_runtime::BatchRuntime;
//!
//! let runtime = BatchRuntime::builder()
//!     .repository("postgres://batch@db/batch")
//!     .partition_transport("nats", NatsTransport::connect("nats://broker.example.com")?)
//!     .dispatch("nats")
//!     .build()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Coordinators and workers are programs of `batch-runtime` with the same repository. The repository decides who runs a partition, and how it
//! has ended; NATS carries tickets to workers, and reports of ends back. What it loses costs time, and no record.
//!
//! On the server there is a stream, which the first program creates: `BATCH_PARTITIONS`, a work queue with a durable consumer for each
//! queue of workers, whose tickets expire after 7 days. With a [prefix](NatsTransport::connect) it has another name, so that several
//! repositories can share a server.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `items` (default) | streams as the input and output of steps |
//! | `sqlite` (default), `postgres`, `mysql` | the databases of job repositories, as of `batch-runtime` |
//! | `bundled-postgres`, `bundled-mysql` | the same, with the client library compiled in |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod address;
mod coordinator;
mod error;
#[cfg(feature = "items")]
pub mod items;
mod message;
mod outbox;
mod permissions;
mod server;
mod transport;
mod violations;
mod worker;

pub use error::NatsError;
#[cfg(feature = "items")]
pub use items::{NatsItemReader, NatsItemWriter};
pub use transport::NatsTransport;
