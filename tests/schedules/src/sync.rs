//! The locks and flags of the engine, on shuttle's, and the faults that can be planted in them.

use std::cell::Cell;
use std::sync::{LockResult, TryLockResult};
use std::time::Duration;

use shuttle::sync::atomic;

pub(crate) use shuttle::sync::atomic::Ordering;
pub(crate) use shuttle::sync::{Arc, MutexGuard};
pub(crate) use std::sync::PoisonError;

/// A fault of a lock or flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A set flag is read as unset, once.
    StaleFlag,
    /// Each of several threads that swap a flag sees it as unset.
    RacySwap,
    /// A held lock does not block another thread.
    LeakyLock,
    /// A notification wakes no thread.
    LostWakeup,
}

thread_local! {
    /// Shuttle runs the threads of a test on the test's own thread.
    static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// Plants a fault for the rest of the test.
pub(crate) fn plant(fault: Fault) {
    FAULT.set(Some(fault));
}

fn has(fault: Fault) -> bool {
    FAULT.get() == Some(fault)
}

#[derive(Default)]
pub(crate) struct AtomicBool {
    value: atomic::AtomicBool,
    /// Returns whether the next load misses the last store.
    is_stale: atomic::AtomicBool,
}

impl AtomicBool {
    pub(crate) fn load(&self, order: Ordering) -> bool {
        if has(Fault::StaleFlag) && self.is_stale.swap(false, Ordering::SeqCst) {
            return false;
        }
        self.value.load(order)
    }

    pub(crate) fn store(&self, value: bool, order: Ordering) {
        self.is_stale.store(value, Ordering::SeqCst);
        self.value.store(value, order);
    }

    pub(crate) fn swap(&self, value: bool, order: Ordering) -> bool {
        let before = self.value.swap(value, order);
        before && !has(Fault::RacySwap)
    }
}

#[derive(Default)]
pub(crate) struct Mutex<T> {
    value: shuttle::sync::Mutex<T>,
    /// The guard that a second thread gets from a leaky lock.
    other: shuttle::sync::Mutex<T>,
}

impl<T> Mutex<T> {
    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        if has(Fault::LeakyLock) {
            return match self.value.try_lock() {
                Ok(guard) => Ok(guard),
                Err(_) => self.other.lock(),
            };
        }
        self.value.lock()
    }

    pub(crate) fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        self.value.try_lock()
    }
}

#[derive(Default)]
pub(crate) struct Condvar(shuttle::sync::Condvar);

impl Condvar {
    pub(crate) fn wait_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        self.0.wait_while(guard, condition)
    }

    pub(crate) fn notify_all(&self) {
        if !has(Fault::LostWakeup) {
            self.0.notify_all();
        }
    }

    pub(crate) fn wait_timeout_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        time: Duration,
        condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, shuttle::sync::WaitTimeoutResult)> {
        self.0.wait_timeout_while(guard, time, condition)
    }
}
