//! The console on a separate thread, for programs without axum.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, oneshot};
use tower::ServiceExt;

use crate::async_operator::MAX_THREADS;
use crate::{Console, app, routes};

/// The number of threads for requests.
const THREADS: usize = 2;
/// The number of connections that are served at the same time; others wait. The jobs of the process need descriptors too.
const MAX_CONNECTIONS: usize = 512;
/// The time limit for the headers of a request, and for an idle connection.
const HEADERS: Duration = Duration::from_secs(15);
/// The pause after a connection that cannot be accepted, usually because there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(200);
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
    #[error(
        "cannot serve the console at {address}: {source}; choose another port, or stop the program that uses it"
    )]
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
    /// Serves the console at an address, on a separate thread. Port 0 picks a free port.
    ///
    /// # Errors
    /// When the address is not a loopback address and [`Access`](crate::Access) requires no authentication, or cannot be used.
    // Spec: CON-04
    pub fn start(self, address: SocketAddr) -> Result<ConsoleServer, StartError> {
        if !address.ip().is_loopback() && !self.access.requires_authentication() {
            return Err(StartError::Open(address));
        }
        let app = app::App::new(self).map_err(|error| StartError::System(io::Error::other(error)))?;
        let router = routes::router(app);
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(MAX_THREADS)
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
                    () = accept(listener, router) => {}
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

/// Accepts connections, until the task is dropped.
async fn accept(listener: TcpListener, router: Router) {
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        // The semaphore is never closed.
        let permit = Arc::clone(&connections).acquire_owned().await;
        match listener.accept().await {
            Ok((stream, peer)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    serve(stream, peer, router).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the console cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Serves the requests of one connection.
async fn serve(stream: TcpStream, peer: SocketAddr, router: Router) {
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().oneshot(request)
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADERS);
    // The errors of a connection are its client's concern.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}
