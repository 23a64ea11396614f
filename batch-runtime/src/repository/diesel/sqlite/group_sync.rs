//! The wait for the disk, which the commits of all threads of a process share.
//!
//! SQLite itself would wait within each commit, while it holds the database. So the connections of the pool commit without waiting
//! (`synchronous = NORMAL`), release the database, and then wait here: the first one syncs the write-ahead log for all commits that are
//! in it by then, and the others wait for the next sync. A commit is reported only when it survives a loss of power, as with `synchronous =
//! FULL`.

use std::io;

use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Commits that wait for one file.
pub(crate) struct GroupSync<S> {
    sync: S,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// The number of the last request.
    requested: u64,
    /// All requests up to this one are on the disk.
    synced: u64,
    is_syncing: bool,
}

impl<S: Fn() -> io::Result<()>> GroupSync<S> {
    /// `sync` waits until everything that was written before it is on the disk.
    pub(crate) fn new(sync: S) -> Self {
        Self {
            sync,
            state: Mutex::default(),
            ended: Condvar::default(),
        }
    }

    /// Waits until everything that this thread has written before is on the disk.
    ///
    /// # Errors
    /// If the disk reports an error. What was written may be lost then.
    pub(crate) fn wait(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.requested += 1;
        let mine = state.requested;
        while state.synced < mine {
            if state.is_syncing {
                // That sync may have started before this thread wrote.
                let ended = self.ended.wait_while(state, |state| state.is_syncing);
                state = ended.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            // Read before the sync: what is requested during it may have been written too late for it.
            let all = state.requested;
            state.is_syncing = true;
            drop(state);
            let result = (self.sync)();
            state = self.lock();
            state.is_syncing = false;
            self.ended.notify_all();
            // Each of the others tries for itself.
            result?;
            state.synced = all;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
