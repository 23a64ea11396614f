//! Objects in object stores and on HTTP servers, read and written by blocking calls.
//!
//! This module is the only one that names `object_store`. Its futures run on one separate thread, and the calling
//! thread waits for them.

mod destination;
mod error;
mod object;
mod reader;
mod service;
mod upload;

pub(super) use self::destination::Destination;
pub(crate) use self::object::Object;

use std::io;
use std::sync::{OnceLock, mpsc};

use tokio::runtime::{Builder, Runtime};

/// Runs a future and waits for its result. Unlike `Runtime::block_on`, it may be called on a thread of another runtime.
fn wait<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let start = || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).thread_name("batch-object-store");
        builder.enable_all().build()
    };
    let runtime = RUNTIME.get_or_init(start).as_ref();
    let runtime = runtime.map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
    let (sender, receiver) = mpsc::sync_channel(1);
    runtime.spawn(async move {
        // The receiver is on the thread that waits below.
        let _ = sender.send(future.await);
    });
    let received = receiver.recv();
    received.map_err(|_| {
        io::Error::other("the request ended by a panic; its message is in the output of the process")
    })
}
