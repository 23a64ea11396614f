//! The engine: runs bound jobs. It never meets an unknown `ref`, and sees no XML, SQL or registry.

mod batchlet;
mod body;
mod bound;
mod call;
mod chunk;
mod decision;
mod elements;
mod ending;
mod job;
mod limits;
mod listeners;
mod logical_tx;
mod outcome;
mod outputs;
mod partition;
mod refused_step;
mod spans;
mod split;
mod states;
mod step;
mod threads;
mod turn;
mod walk;

pub(crate) use bound::{Bound, BoundListener};
pub(crate) use call::{call, discard};
pub(crate) use chunk::{ClassLimits, FaultRules};
pub(crate) use elements::{
    BindPartition, BoundBody, BoundChunk, BoundFlow, BoundJob, BoundPartition, BoundSplit, BoundStep,
    BoundSubjobs, CheckpointInterval, Element, ElementBody, Elements, PartitionBody, PartitionKey, Replan,
};
pub(crate) use job::JobRunner;
pub(crate) use limits::StepLimits;
pub(crate) use outputs::{Inputs, Outputs};
pub(crate) use partition::RemotePartition;
pub(crate) use states::States;
pub(crate) use threads::Running;
pub(crate) use turn::forget_partitions;
pub(crate) use walk::Dispatch;

pub(crate) use crate::repository::{Concurrency, InnerSteps};
