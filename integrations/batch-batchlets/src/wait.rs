//! `waitForFile`: waits until files have arrived.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::PathBuf;
use std::time::{self, Instant, SystemTime};

use batch_runtime::prelude::*;

use super::cancel::Cancel;
use super::exit::{STOPPED, completed, counted};
use batch_items::ResourceError;
use batch_items::choices;
use batch_items::duration::Duration;
use batch_items::file::FilePattern;

/// The shortest interval of checks.
const SHORTEST: time::Duration = time::Duration::from_millis(10);

/// Waits until files exist. In Job XML: `waitForFile`.
///
/// ```xml
/// <step id="arrival">
///   <batchlet ref="waitForFile">
///     <properties>
///       <property name="resource" value="in/orders-*.csv"/>
///       <property name="stable.for" value="30s"/>
///       <property name="timeout" value="2h"/>
///       <property name="if.timeout" value="continue"/>
///     </properties>
///   </batchlet>
///   <end on="TIMEOUT" exit-status="NO ORDERS"/>
///   <next on="*" to="load"/>
/// </step>
/// ```
///
/// | property | default | meaning |
/// |---|---|---|
/// | `resource` | required | a path or pattern, as for [`CopyFiles`](super::CopyFiles) |
/// | `minimum.files` | `1` | the number of files to wait for |
/// | `stable.for` | `0s` | the time for which no file may change in size or time of modification |
/// | `poll.interval` | `5s` | the time between two checks; at least 10 ms |
/// | `timeout` | none | the maximum time to wait |
/// | `if.timeout` | `fail` | `fail`, or `continue` with the exit status `TIMEOUT` |
///
/// The step ends when at least `minimum.files` files match and none of them has changed for `stable.for`. Set that if files are written
/// under their final name; a program that renames a complete file does not need it. The exit description is the number of
/// files, such as `3 files`. A stop ends the wait at once, with the exit status `STOPPED`; a restart waits for the whole `timeout` again.
/// Each check is a [heartbeat](batch_runtime::context::StepContext::heartbeat).
#[derive(BatchArtifact)]
pub struct WaitForFile {
    #[batch_property(name = "resource")]
    resource: FilePattern,
    #[batch_property(name = "minimum.files", value = "1")]
    minimum_files: usize,
    #[batch_property(name = "stable.for", value = "0s")]
    stable_for: Duration,
    #[batch_property(name = "poll.interval", value = "5s")]
    poll_interval: Duration,
    #[batch_property(name = "timeout")]
    timeout: Option<Duration>,
    #[batch_property(name = "if.timeout", value = "fail")]
    if_timeout: IfTimeout,
    #[batch_context]
    step: StepContext,
    cancel: Cancel,
}

/// The reaction to the end of the time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IfTimeout {
    Fail,
    Continue,
}

choices! {
    IfTimeout { "fail" => Fail, "continue" => Continue }
}

#[batchlet("waitForFile")]
impl WaitForFile {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let started = Instant::now();
        let mut watch = Watch::new(self.stable_for.get());
        tracing::info!(target: "batch.wait", resource = self.resource.as_str(), "waiting for files");
        loop {
            self.step.heartbeat();
            let now = Instant::now();
            let count = watch.observe(now, self.files()?);
            let stable_in = watch.stable_in(now);
            if count >= self.minimum_files && stable_in.is_zero() {
                return Ok(completed(&self.step, counted(count, "file")));
            }
            let left = self
                .timeout
                .map(|timeout| timeout.get().saturating_sub(now.duration_since(started)));
            if left.is_some_and(|left| left.is_zero()) {
                return self.timed_out(count);
            }
            let mut pause = self.poll_interval.get();
            if !stable_in.is_zero() {
                pause = pause.min(stable_in);
            }
            // The last check is at the end of the time.
            let pause = pause.max(SHORTEST).min(left.unwrap_or(time::Duration::MAX));
            if self.cancel.pause(pause) {
                return Ok(STOPPED.into());
            }
        }
    }

    #[cancel]
    fn cancel(&self) {
        self.cancel.request();
    }
}

impl WaitForFile {
    /// Returns the files that exist now, with their states.
    fn files(&self) -> Result<Vec<(PathBuf, State)>, ResourceError> {
        let mut files = Vec::new();
        for file in self.resource.files()? {
            match fs::metadata(&file.path) {
                Ok(metadata) => files.push((file.path, State::of(&metadata))),
                // It has been removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(ResourceError::new(
                        format!("inspect {}", file.path.display()),
                        error,
                    ));
                }
            }
        }
        Ok(files)
    }

    fn timed_out(&self, count: usize) -> Result<String, BatchError> {
        match self.if_timeout {
            IfTimeout::Continue => Ok("TIMEOUT".into()),
            IfTimeout::Fail => Err(BatchError::msg(format!(
                "{count} of {} files match {} at the end of the `timeout`{}",
                self.minimum_files,
                self.resource.as_str(),
                match count >= self.minimum_files {
                    true => ", but some still change (`stable.for`)",
                    false => "",
                }
            ))),
        }
    }
}

/// The state of a file, which changes while it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    size: u64,
    modified: Option<SystemTime>,
}

impl State {
    fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}

/// The observed files, each with the time since which it has its state.
struct Watch {
    stable_for: time::Duration,
    seen: BTreeMap<PathBuf, (State, Instant)>,
}

impl Watch {
    fn new(stable_for: time::Duration) -> Self {
        Self {
            stable_for,
            seen: BTreeMap::new(),
        }
    }

    /// Records the files that exist now. Returns their number.
    fn observe(&mut self, now: Instant, files: Vec<(PathBuf, State)>) -> usize {
        let before = std::mem::take(&mut self.seen);
        for (path, state) in files {
            let since = before
                .get(&path)
                .filter(|(last, _)| *last == state)
                .map_or(now, |(_, since)| *since);
            self.seen.insert(path, (state, since));
        }
        self.seen.len()
    }

    /// Returns the time until all files are stable, if none changes.
    fn stable_in(&self, now: Instant) -> time::Duration {
        let left = |since: Instant| self.stable_for.saturating_sub(now.duration_since(since));
        let left = self.seen.values().map(|(_, since)| left(*since));
        left.max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: time::Duration = time::Duration::from_secs(1);

    fn file(name: &str, size: u64) -> (PathBuf, State) {
        let state = State { size, modified: None };
        (name.into(), state)
    }

    #[test]
    fn a_change_starts_the_time_of_stability_again() {
        let start = Instant::now();
        let mut watch = Watch::new(10 * SECOND);
        for (second, files, count, stable_in) in [
            (0, vec![], 0, 0),
            (1, vec![file("a", 1)], 1, 10),
            (5, vec![file("a", 1)], 1, 6),
            (6, vec![file("a", 2)], 1, 10),
            (8, vec![file("a", 2), file("b", 1)], 2, 10),
            (16, vec![file("a", 2), file("b", 1)], 2, 2),
            // The other one alone is stable.
            (17, vec![file("a", 2)], 1, 0),
            (18, vec![file("a", 2), file("b", 1)], 2, 10),
            (28, vec![file("a", 2), file("b", 1)], 2, 0),
        ] {
            let now = start + second * SECOND;
            assert_eq!(watch.observe(now, files), count, "{second}");
            assert_eq!(watch.stable_in(now), stable_in * SECOND, "{second}");
        }
    }
}
