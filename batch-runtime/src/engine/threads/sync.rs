//! The synchronization primitives of the threads. `tests/schedules` replaces them to run the same code under every
//! order of threads.

pub(super) use std::sync::atomic::{AtomicBool, Ordering};
pub(super) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
