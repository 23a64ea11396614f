//! The threads of the runtime: all of them start here.
//!
//! Partitions and flows end before the call that starts them returns, so they borrow from it: their threads are scoped, by crossbeam. The
//! others outlive the call, and have a handle or report through a channel.

use std::io;
use std::thread::{Builder, JoinHandle};

pub(crate) use crossbeam::thread::{Scope, scope};

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

/// Starts a thread of a chunk step that calls its artifacts: in the surroundings of the step, and behind its gate.
///
/// # Errors
/// If the operating system has no thread left.
pub(crate) fn start_for_step(
    name: impl Into<String>,
    surroundings: Surroundings,
    gate: &Arc<ContextGate>,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let gate = Arc::clone(gate);
    start(name, move || {
        gate.guard_this_thread();
        surroundings.run(work);
    })
}

/// What a thread that calls artifacts has in common with the thread that starts it.
#[derive(Clone)]
pub(crate) struct Surroundings {
    span: tracing::Span,
    async_runtime: AsyncRuntime,
}

impl Surroundings {
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
