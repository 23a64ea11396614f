//! The state that the threads of an execution share, as it stands in `batch-runtime/src/engine`, under every order in
//! which threads may come.
//!
//! The engine takes its locks and flags from `engine/sync.rs`; here they are those of `shuttle`, which runs a test many
//! times with other orders, and finds one that blocks for ever. Each property is also checked against the same types with a
//! fault put in, which it has to find.

#![cfg(test)]
#![allow(dead_code, reason = "not every part of the types is needed here")]

/// What the state types need of the rest of the runtime.
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

/// No artifact here throws.
#[derive(Debug)]
pub(crate) enum Nothing {}

impl Nothing {
    fn chain(&self) -> String {
        String::new()
    }
}

mod properties;

/// The state types with what `build.rs` has made of them.
macro_rules! variant {
    ($name:ident) => {
        mod $name {
            mod sync {
                pub(super) use shuttle::sync::atomic::{AtomicBool, Ordering};
                pub(super) use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard};
                pub(super) use std::sync::PoisonError;
            }
            mod call {
                pub(super) fn call<T>(
                    artifact: impl FnOnce() -> Result<T, crate::Nothing>,
                ) -> Result<T, crate::Nothing> {
                    artifact()
                }
            }
            mod worker {
                include!(concat!(
                    env!("OUT_DIR"),
                    "/",
                    stringify!($name),
                    "/worker.rs"
                ));
            }
            mod workers {
                include!(concat!(
                    env!("OUT_DIR"),
                    "/",
                    stringify!($name),
                    "/workers.rs"
                ));
            }
            use self::worker::Worker;
            use self::workers::Workers;
            crate::properties::properties!();
        }
    };
}

variant!(real);
variant!(batchlet_after_stop);
variant!(cancel_without_lock);
variant!(cancelled_twice);
variant!(child_missed);
variant!(nobody_woken);
variant!(thread_missed);

/// Orders that are tried of each property.
const ORDERS: usize = 10_000;

/// Spec: BLET-06, BLET-08, OP-13, PART-25, PART-28, SPLIT-18, D-32, D-87
mod kept {
    use super::real;

    #[test]
    fn a_batchlet_is_cancelled_once_and_only_while_it_runs() {
        real::cancel();
    }

    #[test]
    fn a_stop_reaches_every_thread_and_subjob() {
        real::reach();
    }

    #[test]
    fn a_pause_ends_with_a_stop() {
        real::pause();
    }

    #[test]
    fn siblings_of_a_failed_partition_are_stopped_once() {
        real::siblings();
    }
}

/// The same properties notice what is wrong.
mod noticed {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::{
        batchlet_after_stop, cancel_without_lock, cancelled_twice, child_missed, nobody_woken, thread_missed,
    };

    fn finds(property: fn()) {
        let found = catch_unwind(AssertUnwindSafe(property));
        assert!(found.is_err(), "the fault was not found");
    }

    #[test]
    fn a_batchlet_that_begins_after_a_stop() {
        finds(batchlet_after_stop::cancel);
    }

    #[test]
    fn a_cancel_after_the_end() {
        finds(cancel_without_lock::cancel);
    }

    #[test]
    fn a_second_cancel() {
        finds(cancelled_twice::cancel);
    }

    #[test]
    fn a_pause_that_nobody_ends() {
        finds(nobody_woken::pause);
    }

    #[test]
    fn a_subjob_that_no_stop_reaches() {
        finds(child_missed::reach);
    }

    #[test]
    fn a_thread_that_no_stop_reaches() {
        finds(thread_missed::reach);
    }
}
