//! The threads of an execution: their shared state, their stop requests, the subjobs they wait for.

mod running;
mod subjobs;
mod worker;
mod workers;

pub(crate) use running::Running;
pub(super) use subjobs::{Analysis, Report, SubjobEnd, SubjobOutcomes, SubjobThreads, exit_status_of};
pub(crate) use subjobs::{Collecting, CollectorSink};
pub(crate) use worker::Worker;
pub(super) use worker::{Exceeded, lock};
