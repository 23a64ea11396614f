//! The parameters and results of the stores, except the executions; one file per subject.

mod claim;
mod launch;
mod notification;
mod operator;
mod partition;
mod step;

pub(crate) use claim::{Claim, ClaimRequest, Concurrency, Ending, KeptState, Lease, Target, TurnOutcome};
pub(crate) use launch::{LaunchPhase, LaunchRow, TakenLaunch, WithdrawOutcome};
pub(crate) use notification::{NewNotification, NextNotification, QueuedNotification};
pub(crate) use operator::{AbandonOutcome, AcceptOutcome, DeathOutcome, StopOutcome};
pub use operator::{ExecutionFilter, RepositorySize};
pub(crate) use partition::{
    ClaimedPartition, InnerSteps, PartitionFinding, PartitionReport, PartitionState, PayloadKey,
    QueuedPartition, Signals, WorkerRow,
};
pub(crate) use step::{ChunkCommit, EndOfStep, Inserted, NewStepExecution, SideWrites, StepHistory};
