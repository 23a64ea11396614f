//! The transport: a connection with its two sides.

use std::fmt;
use std::sync::Arc;

use batch_runtime::JobExecutionId;
use batch_runtime::partition::{
    DispatchError, PartitionChannel, PartitionDispatcher, PartitionSource, PartitionTransport,
};

use crate::address::Address;
use crate::coordinator::Channel;
use crate::error::NatsError;
use crate::server::Server;
use crate::worker::Source;

/// Partitions on workers, with NATS JetStream as the queue.
pub struct NatsTransport(Arc<Server>);

impl NatsTransport {
    /// Connects to a server, and creates the stream of tickets if it does not exist. The connection has its own threads, and reconnects by itself.
    ///
    /// The address is `nats://USER:PASSWORD@HOST:PORT`, `nats://TOKEN@HOST`, or the same with `tls`; the port is 4222 by default. It may have options, as in
    /// `nats://host?prefix=payroll&ack-wait=60`:
    ///
    /// | option | default | meaning |
    /// |---|---|---|
    /// | `credentials` | | path of a `.creds` file |
    /// | `nkey` | | path of a file with the seed of an nkey |
    /// | `ca` | the system's certificates | path of a PEM file with root certificates |
    /// | `certificate`, `key` | | paths of PEM files with the certificate of the client and its key |
    /// | `prefix` | `batch` | the first part of all names, in lower case: programs with different repositories need different ones |
    /// | `ack-wait` | `30` | seconds, at least 15, until a ticket is delivered to another worker if the first one is silent; the
    /// last worker to connect sets it for its queue |
    /// | `replicas` | `1` | the number of servers that store the stream, 1 to 5, when it is created |
    ///
    /// # Errors
    /// If the address is invalid, or the server cannot be reached, rejects the user, has no JetStream, or does not permit the user to publish
    /// and acknowledge tickets, and to send and receive reports and stop requests.
    pub fn connect(address: &str) -> Result<Self, NatsError> {
        Ok(Self(Arc::new(Server::connect(Address::parse(address)?)?)))
    }
}

impl PartitionDispatcher for NatsTransport {
    fn open(
        &self,
        job_execution: JobExecutionId,
        queue: &str,
    ) -> Result<Box<dyn PartitionChannel>, DispatchError> {
        Ok(Box::new(Channel::open(&self.0, job_execution, queue)?))
    }
}

impl PartitionTransport for NatsTransport {
    fn connect_worker(&self, queue: &str) -> Result<Box<dyn PartitionSource>, DispatchError> {
        Ok(Box::new(Source::connect(&self.0, queue)?))
    }

    fn connects_hosts(&self) -> bool {
        !self.0.address.is_loopback
    }
}

impl fmt::Debug for NatsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NatsTransport")
            .field(&self.0.address.server)
            .finish()
    }
}
