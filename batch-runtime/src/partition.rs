//! Partitions of steps and flows in other processes: the interface between the engine and a dispatcher, which carries partitions
//! to workers.
//!
//! The engine plans the partitions of an element and writes a row for each of them in the repository, in status STARTING. A
//! [`PartitionDispatcher`] takes a [`PartitionTicket`], which holds ids only, to a worker process. The worker has the same
//! artifacts, the same Job XML and the same repository; it passes the ticket to
//! [`BatchRuntime::claim_partition`](crate::BatchRuntime::claim_partition) and runs the claimed partition. The
//! repository decides: a ticket that arrives twice is claimed once, a worker holds a lease of its partition and is fenced when it
//! loses it, and the end of a partition is read from its row. The events of a dispatcher are hints. The payloads of collectors are stored in the
//! repository, too.
//!
//! ```text
//! coordinator                          dispatcher                worker
//! plan, rows STARTING
//! PartitionChannel::submit(tickets) -> carries them -----------> claim_partition(&ticket)   row STARTED, lease of the partition
//!                                                                PartitionRun::run(..)      chunks commit under VERSION
//! reads payloads and row <------------ Ended(id) <-------------- returns                    row COMPLETED, FAILED or STOPPED
//! reopens the row, submits again <---- Lost(id)                  (died)                     lease expires
//! ```
//!
//! Without a dispatcher, partitions run on threads of the process that runs their job, through the same calls of the engine.
// Spec: PART-32, PART-34, SUBJOB-11

pub use crate::artifact::CollectorData;
pub use crate::dispatch::{
    DeclinedFingerprints, DeclinedPartition, DispatchError, PartitionChannel, PartitionDelivery,
    PartitionDispatcher, PartitionEvent, PartitionSource, PartitionTicket, PartitionTransport,
};
pub use crate::operator::{ClaimPartitionError, PartitionRun, PartitionStop};
