//! The connection, and the stream that it needs.

use std::fmt::Display;
use std::future::{Future, ready};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectErrorKind, ConnectOptions};
use batch_runtime::{JobExecutionId, StepExecutionId};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::address::Address;
use crate::error::NatsError;
use crate::violations::Violations;

/// The queue that every process checks; an element's queue is checked when its channel opens.
const DEFAULT_QUEUE: &str = "default";
/// The time limit for the first connection, and for each response of the server.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum age of a ticket. Its job has ended without it, or submits it again.
const TICKETS_EXPIRE_AFTER: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The server recognizes a message that was published twice within this time.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// A connection. The threads of its runtime belong to it alone.
pub(crate) struct Server {
    runtime: Runtime,
    pub(crate) client: Client,
    pub(crate) jetstream: Context,
    pub(crate) address: Address,
    pub(crate) violations: Violations,
}

impl Server {
    /// Connects, creates the stream if it does not exist, and checks that this user may do what coordinators and workers do.
    pub(crate) fn connect(address: Address) -> Result<Self, NatsError> {
        let options = address.options()?.connection_timeout(TIMEOUT);
        let server = Self::start(address, options)?;
        server.create(server.partitions())?;
        server.check_queue(DEFAULT_QUEUE)?;
        server.check_acknowledge()?;
        server.subscribe_to_stops()?;
        // No job execution has this id.
        server.subscribe(server.subject_of_reports(JobExecutionId(0)))?;
        Ok(server)
    }

    fn start(address: Address, options: ConnectOptions) -> Result<Self, NatsError> {
        let violations = Violations::new();
        let noting = violations.clone();
        let options = options.event_callback(move |event| {
            noting.note(&event);
            ready(())
        });
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
        Ok(Self {
            runtime,
            client,
            jetstream,
            address,
            violations,
        })
    }

    /// Returns a connection to a server that is away.
    #[cfg(test)]
    pub(crate) fn away() -> Self {
        let address = Address::parse("nats://127.0.0.1:1").unwrap_or_else(|error| panic!("{error}"));
        let options = ConnectOptions::new().retry_on_initial_connect();
        Self::start(address, options).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Checks that this user may publish tickets to a queue.
    pub(crate) fn check_queue(&self, queue: &str) -> Result<(), NatsError> {
        let ticket = self.subject_of_ticket(queue, StepExecutionId(0));
        self.check_publish(ticket, self.stream_of_partitions())
    }

    /// Returns whether the server can be reached. If not, the client keeps messages for it.
    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Runs a future of the client to its end on the calling thread.
    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Runs a future beside the calling thread.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.runtime.spawn(future)
    }

    /// Creates a stream, unless it exists.
    fn create(&self, config: Config) -> Result<(), NatsError> {
        let stream = config.name.clone();
        let created = self.answer(self.jetstream.get_or_create_stream(config));
        let Err(problem) = created else { return Ok(()) };
        // Another process, which may create streams, has done so meanwhile.
        if self.answer(self.jetstream.get_stream(&stream)).is_ok() {
            return Ok(());
        }
        Err(NatsError::Stream {
            stream,
            server: self.address.server.clone(),
            problem: format!(
                "{problem}; start the server with JetStream (`-js`), and permit this user to publish to `$JS.API.>` and `{}.>`, and to \
                 subscribe to `_INBOX.>`",
                self.address.prefix
            ),
        })
    }

    /// Returns the answer to a request. The error is the request's, or names what the server does not permit.
    fn answer<T, E: Display>(&self, request: impl Future<Output = Result<T, E>>) -> Result<T, String> {
        let answer = self.wait(self.violations.or_result(request, |_| true));
        answer?.map_err(|error| error.to_string())
    }

    /// The work queue: a message for each ticket, which a later one of the same partition replaces.
    fn partitions(&self) -> Config {
        Config {
            name: self.stream_of_partitions(),
            subjects: vec![format!("{}.part.>", self.address.prefix)],
            retention: RetentionPolicy::WorkQueue,
            max_messages_per_subject: 1,
            discard: DiscardPolicy::Old,
            max_age: TICKETS_EXPIRE_AFTER,
            storage: StorageType::File,
            num_replicas: self.address.replicas,
            duplicate_window: DUPLICATE_WINDOW,
            ..Config::default()
        }
    }

    pub(crate) fn stream_of_partitions(&self) -> String {
        format!("{}_PARTITIONS", self.address.prefix.to_uppercase())
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
    // The error of the kinds of authentication contains the same words twice.
    match error.kind() {
        kind @ (ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation) => {
            format!("{kind}; {remedy}")
        }
        _ => format!("{error}; {remedy}"),
    }
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
