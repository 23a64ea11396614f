//! The files of the engine under test.

#[path = "../../../../batch-runtime/src/engine/threads/worker.rs"]
mod worker;
#[path = "../../../../batch-runtime/src/engine/threads/workers.rs"]
mod workers;

pub(crate) use worker::Worker;
pub(crate) use workers::Workers;
