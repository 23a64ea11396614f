//! The engine: runs bound jobs. It never meets an unknown `ref`, and sees no XML, SQL or registry.

mod batchlet;
mod bound;
mod call;
mod chunk;
mod decision;
mod elements;
mod ending;
mod job;
mod listeners;
mod running;
mod split;
mod step;
mod walk;
mod worker;

pub(crate) use bound::{Bound, BoundListener};
pub(crate) use call::{call, discard};
pub(crate) use chunk::FaultRules;
pub(crate) use elements::{
    BoundBody, BoundChunk, BoundJob, BoundStep, CheckpointInterval, Element, ElementBody, Elements,
};
pub(crate) use job::JobRunner;
pub(crate) use running::Running;
pub use running::{Progress, StepProgress};
