//! The console on a thread of its own, for programs without axum.

use std::io;
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::{Console, app};

/// The number of threads for requests.
const THREADS: usize = 2;
/// The number of threads for queries.
const QUERY_THREADS: usize = 8;
/// The time that the end waits for queries.
const END: Duration = Duration::from_secs(1);

/// A console that serves requests, until it is dropped.
#[derive(Debug)]
pub struct ConsoleServer {
    address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ConsoleServer {
    /// Returns the address, with the port that was picked for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for ConsoleServer {
    fn drop(&mut self) {
        // Fails if the thread has ended.
        let _ = self.end.take().map(|end| end.send(()));
        if let Some(thread) = self.thread.take() {
            // Its panic has been reported.
            let _ = thread.join();
        }
    }
}

/// The reason why a console cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// Every user who reaches the address could operate jobs.
    #[error(
        "cannot serve the console at {0} without authentication: other computers reach it; give its users tokens, name a reverse proxy that \
         authenticates them, or use 127.0.0.1"
    )]
    Open(SocketAddr),
    /// The address cannot be used.
    #[error("cannot serve the console at {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The system has no thread or no random numbers.
    #[error("cannot start the console: {0}")]
    System(io::Error),
}

impl Console {
    /// Serves the console at an address, on a thread of its own. Port 0 picks a free port.
    ///
    /// # Errors
    /// When the address is not a loopback address and [`Access`](crate::Access) requires no authentication, or cannot be used.
    ///
    /// Spec: CON-04
    pub fn start(self, address: SocketAddr) -> Result<ConsoleServer, StartError> {
        if !address.ip().is_loopback() && !self.access.requires_authentication() {
            return Err(StartError::Open(address));
        }
        let app = app::App::new(self).map_err(|error| StartError::System(io::Error::other(error)))?;
        let service = app::router(app).into_make_service_with_connect_info::<SocketAddr>();
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(QUERY_THREADS)
            .thread_name("batch-console")
            .enable_all()
            .build()
            .map_err(StartError::System)?;
        let bind = |source| StartError::Bind { address, source };
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let (end, ended) = oneshot::channel::<()>();
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    // It only ends with the process.
                    _ = axum::serve(listener, service) => {}
                    _ = ended => {}
                }
            });
            runtime.shutdown_timeout(END);
        };
        let thread = std::thread::Builder::new().name("batch-console".into());
        let thread = thread.spawn(serve).map_err(StartError::System)?;
        Ok(ConsoleServer {
            address,
            end: Some(end),
            thread: Some(thread),
        })
    }
}
