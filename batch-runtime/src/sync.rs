//! The synchronization primitives of the threads. `tests/schedules` replaces them to run the same code under every
//! order of threads.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
