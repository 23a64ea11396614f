//! What the threads of an execution share their state with. In one place, so that `tests/schedules` can run the same code
//! under every order in which threads may come.

pub(super) use std::sync::atomic::{AtomicBool, Ordering};
pub(super) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
