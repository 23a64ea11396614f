//! The audit log: each operation, with its user and its outcome.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use batch_runtime::time::{Clock, SystemClock};
use batch_runtime::{JobExecutionId, Timestamp};
use serde::{Deserialize, Serialize};

/// The number of entries that are kept for the page.
const MAX_ENTRIES: usize = 500;
/// The length of the end of the file that is read at the start, in bytes.
const TAIL: u64 = 256 * 1024;
/// The time between two logins with wrong tokens that are recorded.
const FAILED_LOGINS: Duration = Duration::from_secs(10);

/// An action of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) time: Timestamp,
    pub(crate) user: String,
    /// The operation with its object: `stop execution 5`.
    pub(crate) action: String,
    /// The outcome.
    pub(crate) outcome: String,
}

impl Entry {
    /// Returns whether it is an action on an execution, or the one that has started it.
    fn is_about(&self, execution: &str) -> bool {
        let mut words = self.action.splitn(4, ' ').skip(1);
        // As `restart execution 5 day=1`; the parameters of a launch may hold anything.
        let is_object = words.next() == Some("execution") && words.next() == Some(execution);
        is_object || self.outcome.strip_prefix("execution ") == Some(execution)
    }
}

/// The latest entries, and the file that has all.
#[derive(Clone, Default)]
pub(crate) struct AuditLog(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    latest: VecDeque<Entry>,
    /// When a login with a wrong token was recorded last.
    failed_login: Option<Instant>,
    file: Option<(PathBuf, File)>,
}

impl AuditLog {
    /// Appends to a file, and reads its last entries.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).read(true).append(true);
        // Parameters may name what is not for everyone.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut tail = Vec::new();
        (&file).take(TAIL).read_to_end(&mut tail)?;
        let text = String::from_utf8_lossy(&tail);
        // The first line may be cut.
        let entries = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let mut latest: VecDeque<Entry> = entries.collect();
        latest.drain(..latest.len().saturating_sub(MAX_ENTRIES));
        let file = Some((path.to_owned(), file));
        let failed_login = None;
        Ok(Self(Arc::new(Mutex::new(Entries {
            latest,
            failed_login,
            file,
        }))))
    }

    /// Records a login with a wrong token. Those that follow within ten seconds are only logged, so that many of them fill neither the disk
    /// nor the page.
    pub(crate) fn record_failed_login(&self) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = entries
            .failed_login
            .is_none_or(|last| last.elapsed() >= FAILED_LOGINS);
        if is_first {
            entries.failed_login = Some(Instant::now());
            drop(entries);
            self.record("-", "log in", "wrong token");
        } else {
            tracing::info!("a login with a wrong token");
        }
    }

    /// Records an action with its outcome.
    pub(crate) fn record(&self, user: &str, action: &str, outcome: &str) {
        tracing::info!(user, action, outcome, "console");
        let entry = Entry {
            time: SystemClock.now(),
            user: user.to_owned(),
            action: action.to_owned(),
            outcome: outcome.to_owned(),
        };
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((path, file)) = &mut entries.file {
            let line = serde_json::to_string(&entry).unwrap_or_default() + "\n";
            if let Err(error) = file.write_all(line.as_bytes()) {
                tracing::error!(path = %path.display(), %error, user, action, outcome, "cannot write the audit log");
            }
        }
        if entries.latest.len() == MAX_ENTRIES {
            entries.latest.pop_front();
        }
        entries.latest.push_back(entry);
    }

    /// Returns the latest entries about an execution, the newest first.
    pub(crate) fn about(&self, execution: JobExecutionId) -> Vec<Entry> {
        let execution = execution.to_string();
        let all = self.latest().into_iter();
        all.filter(|entry| entry.is_about(&execution)).collect()
    }

    /// Returns the latest entries, the newest first.
    pub(crate) fn latest(&self) -> Vec<Entry> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.latest.iter().rev().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: CON-12
    #[test]
    fn actions_are_about_executions() {
        let entry = |action: &str, outcome: &str| Entry {
            time: Timestamp(0),
            user: "alice".into(),
            action: action.into(),
            outcome: outcome.into(),
        };
        for (action, outcome, expected) in [
            ("stop execution 5", "stop requested", true),
            ("restart execution 5 day=1", "execution 6", true),
            ("launch payroll day=1", "execution 5", true),
            ("stop execution 55", "stopped", false),
            ("launch payroll x=a execution 5", "execution 9", false),
        ] {
            assert_eq!(entry(action, outcome).is_about("5"), expected, "{action}");
        }
    }
}
