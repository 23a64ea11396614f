//! The state shared by the threads of an execution, `batch-runtime/src/engine/threads` and `context_gate.rs`, and the wait of
//! commits for the disk, `group_sync.rs`, under many schedules.
//!
//! The engine takes its locks and flags from `sync.rs`; here they come from shuttle, which runs a test under many
//! schedules and finds deadlocks. Each property is also checked with a fault planted in a lock or flag, which it must
//! detect.

#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "not every part of the types is needed here")]

#[path = "../../../batch-runtime/src/context_gate.rs"]
mod context_gate;
mod engine;
#[path = "../../../batch-runtime/src/repository/diesel/sqlite/group_sync.rs"]
mod group_sync;
mod properties;
mod sync;

mod role {
    pub(crate) trait Batchlet: Send + Sync {
        fn cancel(&self) -> Result<(), crate::Nothing>;
    }
}

mod context {
    pub(crate) trait ShowsStop: Send + Sync {
        fn show_stop(&self);
    }
}

/// The error of artifacts, never returned here.
#[derive(Debug)]
pub(crate) enum Nothing {}

impl Nothing {
    fn chain(&self) -> String {
        String::new()
    }
}

/// The number of schedules that each property is checked under.
const ORDERS: usize = 4_000;

/// Spec: BLET-06, BLET-08, OP-13, PART-25, PART-28, SPLIT-18, D-32, D-87
mod kept {
    use crate::properties;

    #[test]
    fn a_batchlet_is_cancelled_once_and_only_while_it_runs() {
        properties::cancel();
    }

    #[test]
    fn a_stop_reaches_every_thread_and_subjob() {
        properties::reach();
    }

    #[test]
    fn a_pause_ends_with_a_stop() {
        properties::pause();
    }

    /// Spec: D-100
    #[test]
    fn a_context_is_not_used_before_the_commit() {
        properties::gate();
    }

    /// Spec: REPO-62
    #[test]
    fn a_commit_that_was_reported_is_on_the_disk() {
        properties::synced();
    }

    #[test]
    fn siblings_of_a_failed_partition_are_stopped_once() {
        properties::siblings();
    }
}

/// The properties find planted faults.
mod found {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use crate::properties;
    use crate::sync::{Fault, plant};

    fn finds(fault: Fault, property: fn()) {
        plant(fault);
        let found = catch_unwind(AssertUnwindSafe(property));
        assert!(found.is_err(), "{fault:?} was not found");
    }

    #[test]
    fn a_batchlet_that_starts_after_a_stop() {
        finds(Fault::StaleFlag, properties::cancel);
    }

    #[test]
    fn a_thread_or_subjob_that_no_stop_reaches() {
        finds(Fault::StaleFlag, properties::reach);
    }

    #[test]
    fn a_cancel_after_the_end() {
        finds(Fault::LeakyLock, properties::cancel);
    }

    #[test]
    fn a_second_cancel() {
        finds(Fault::RacySwap, properties::cancel);
    }

    #[test]
    fn a_pause_that_no_stop_ends() {
        finds(Fault::LostWakeup, properties::pause);
    }

    #[test]
    fn a_gate_that_does_not_open() {
        finds(Fault::LostWakeup, properties::gate);
    }

    #[test]
    fn a_commit_that_waits_for_ever() {
        finds(Fault::LostWakeup, properties::synced);
    }

    #[test]
    fn a_gate_that_does_not_close() {
        finds(Fault::LeakyLock, properties::gate);
    }
}
