//! The interface between the engine and a dispatcher of partitions to worker processes. Public as
//! [`partition`](crate::partition).

mod dispatcher;
mod ticket;

pub use dispatcher::{
    CollectedPayload, DispatchError, PartitionChannel, PartitionDispatcher, PartitionEvent,
};
pub use ticket::PartitionTicket;
