//! The interface between the engine and a dispatcher of partitions to worker processes. Public as
//! [`partition`](crate::partition).

mod declined;
mod dispatcher;
mod dispatchers;
mod poller;
mod repository;
mod ticket;
mod transport;

pub use declined::DeclinedFingerprints;
pub use dispatcher::{DispatchError, PartitionChannel, PartitionDispatcher, PartitionEvent};
pub(crate) use dispatchers::{CUSTOM, DEFAULT_QUEUE, Dispatchers, LOCAL, REPOSITORY, choices, shown_name};
pub(crate) use repository::RepositoryTransport;
pub use ticket::{DeclinedPartition, PartitionTicket};
pub use transport::{PartitionDelivery, PartitionSource, PartitionTransport};
