//! The engine: runs bound jobs. It never meets an unknown `ref`, and sees no XML, SQL or registry.

mod batchlet;
mod bound;
mod call;
mod chunk;
mod ending;
mod job;
mod listeners;
mod running;
mod step;

pub(crate) use bound::{
    Bound, BoundBody, BoundChunk, BoundJob, BoundListener, BoundStep, CheckpointInterval,
};
pub(crate) use call::{call, discard};
pub(crate) use job::JobRunner;
pub use running::Progress;
pub(crate) use running::Running;
