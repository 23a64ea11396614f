//! The connection, and the streams that it needs.

use std::future::Future;
use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectErrorKind};
use batch_runtime::{JobExecutionId, StepExecutionId};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::address::Address;
use crate::error::NatsError;

/// The time limit for the first connection, and for each response of the server.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The age at which a report is removed: its coordinator has long found the end in the repository.
const REPORTS_EXPIRE_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// The time for which the server recognizes a message that was published twice.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// A connection. The threads of its runtime belong to it alone.
pub(crate) struct Server {
    runtime: Runtime,
    pub(crate) client: Client,
    pub(crate) jetstream: Context,
    pub(crate) address: Address,
}

impl Server {
    /// Connects, and creates the streams if they do not exist.
    pub(crate) fn connect(address: Address) -> Result<Self, NatsError> {
        let options = address.options()?.connection_timeout(TIMEOUT);
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        threads.worker_threads(1).thread_name("batch-nats").enable_all();
        let runtime = threads.build().map_err(NatsError::Threads)?;
        let connected = runtime.block_on(options.connect(&address.server));
        let client = connected.map_err(|error| NatsError::Connection {
            server: address.server.clone(),
            problem: explained(&error),
        })?;
        // It starts a task.
        let entered = runtime.enter();
        let jetstream = jetstream::ContextBuilder::new()
            .timeout(TIMEOUT)
            .build(client.clone());
        drop(entered);
        let server = Self {
            runtime,
            client,
            jetstream,
            address,
        };
        server.create(server.partitions())?;
        server.create(server.reports())?;
        Ok(server)
    }

    /// Runs a future of the client to its end on the calling thread.
    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Runs a future beside the calling thread.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.runtime.spawn(future)
    }

    fn create(&self, config: Config) -> Result<(), NatsError> {
        let stream = config.name.clone();
        let created = self.wait(self.jetstream.get_or_create_stream(config));
        created.map(drop).map_err(|error| NatsError::Stream {
            stream,
            server: self.address.server.clone(),
            problem: format!(
                "{error}; start the server with JetStream (`-js`), and permit this user to publish to `$JS.API.>` and `{}.>`, and to \
                 subscribe to `_INBOX.>`",
                self.address.prefix
            ),
        })
    }

    /// The work queue: a message for each ticket, which a later one of the same partition replaces.
    fn partitions(&self) -> Config {
        Config {
            name: self.stream_of_partitions(),
            subjects: vec![format!("{}.part.>", self.address.prefix)],
            retention: RetentionPolicy::WorkQueue,
            max_messages_per_subject: 1,
            discard: DiscardPolicy::Old,
            storage: StorageType::File,
            num_replicas: self.address.replicas,
            duplicate_window: DUPLICATE_WINDOW,
            ..Config::default()
        }
    }

    fn reports(&self) -> Config {
        Config {
            name: self.stream_of_reports(),
            subjects: vec![format!("{}.report.>", self.address.prefix)],
            retention: RetentionPolicy::Limits,
            max_age: REPORTS_EXPIRE_AFTER,
            storage: StorageType::File,
            num_replicas: self.address.replicas,
            duplicate_window: DUPLICATE_WINDOW,
            ..Config::default()
        }
    }

    pub(crate) fn stream_of_partitions(&self) -> String {
        format!("{}_PARTITIONS", self.address.prefix.to_uppercase())
    }

    pub(crate) fn stream_of_reports(&self) -> String {
        format!("{}_REPORTS", self.address.prefix.to_uppercase())
    }

    pub(crate) fn subject_of_queue(&self, queue: &str) -> String {
        format!("{}.part.{}", self.address.prefix, token(queue))
    }

    pub(crate) fn subject_of_ticket(&self, queue: &str, partition: StepExecutionId) -> String {
        format!("{}.{partition}", self.subject_of_queue(queue))
    }

    pub(crate) fn subject_of_reports(&self, job: JobExecutionId) -> String {
        format!("{}.report.{job}", self.address.prefix)
    }

    pub(crate) fn subject_of_stops(&self) -> String {
        format!("{}.stop", self.address.prefix)
    }
}

/// Returns a part of a subject: other characters than letters and digits are written by their code.
pub(crate) fn token(queue: &str) -> String {
    let written = queue.chars().map(|character| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => character.to_string(),
        other => format!("_{:x}_", u32::from(other)),
    });
    written.collect()
}

/// Explains why a connection failed, and what to do.
fn explained(error: &async_nats::ConnectError) -> String {
    let remedy = match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            "check the user and password, or the file of the option `credentials` or `nkey`"
        }
        ConnectErrorKind::Tls => {
            "check the scheme, `nats` or `tls`, and the options `ca`, `certificate` and `key`"
        }
        ConnectErrorKind::Dns => "check the name of the host",
        _ => "check that the server runs at this address",
    };
    format!("{error}; {remedy}")
}

#[cfg(test)]
mod tests {
    use super::token;

    #[test]
    fn queues_have_different_subjects() {
        assert_eq!(token("default-2"), "default-2");
        assert_eq!(token("a.b *>_"), "a_2e_b_20__2a__3e__5f_");
    }
}
