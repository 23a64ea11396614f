//! A dispatcher that carries partitions to worker processes through pipes, with the public API of `batch-runtime` only.
//!
//! It is a toy: the workers are children of the coordinator. It shows the duties of a dispatcher for a message broker, and its
//! tests kill, stop and fence the workers.

mod artifacts;
mod pipe;
mod protocol;
mod worker;

pub use artifacts::create_table;
pub use pipe::{PipeDispatcher, Workers};
pub use worker::serve;
