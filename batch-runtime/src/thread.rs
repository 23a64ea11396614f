//! Starts the threads of the runtime.
//!
//! Partitions and flows end before the call that starts them returns, so their threads borrow from it: they are scoped, by crossbeam, and
//! start in `engine/threads/subjobs.rs`. The others outlive the call, and have a handle or report through a channel.

use std::io;
use std::thread::{Builder, JoinHandle};

pub(crate) use crossbeam::thread::{Scope, scope as scoped};

use crate::async_runtime::AsyncRuntime;
use crate::context_gate::ContextGate;
use crate::sync::Arc;

/// Starts a thread that outlives the call.
///
/// # Errors
/// If the operating system has no thread left.
pub(crate) fn start<T: Send + 'static>(
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.into()).spawn(work)
}

/// Starts a thread that calls the artifacts of a chunk step: in the span and tokio runtime of the step, guarded by its context gate.
///
/// # Errors
/// If the operating system has no thread left.
pub(crate) fn start_for_step(
    name: impl Into<String>,
    env: ThreadEnv,
    gate: &Arc<ContextGate>,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let gate = Arc::clone(gate);
    start(name, move || {
        gate.guard_this_thread();
        env.run(work);
    })
}

/// The span and the tokio runtime that a thread inherits from the thread that starts it.
#[derive(Clone)]
pub(crate) struct ThreadEnv {
    span: tracing::Span,
    async_runtime: AsyncRuntime,
}

impl ThreadEnv {
    pub(crate) fn of_this_thread() -> Self {
        Self {
            span: tracing::Span::current(),
            async_runtime: AsyncRuntime::of_this_thread(),
        }
    }

    /// Runs `work` on the calling thread.
    pub(crate) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let _span = self.span.enter();
        let _entered = self.async_runtime.enter();
        work()
    }
}
