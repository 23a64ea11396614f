//! A sweep under way.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use batch_runtime::parameters::ParameterValue;

use super::difference::{Difference, Part, Snapshot};
use super::events::{Event, Events};
use super::task::{ChildTask, Crash, Fault, TASK};
use super::workspace::{Run, Workspace};
use super::{Check, CrashSweep, locked};

/// The time beyond the limit of an execution, for the start and the end of its process.
const MARGIN: Duration = Duration::from_secs(10);

/// A sweep under way.
pub(super) struct Sweeping<'c> {
    sweep: CrashSweep,
    workspace: Workspace,
    /// The name of the test.
    name: String,
    location: (String, u32),
    check: Option<&'c Check<'c>>,
}

/// A process that has ended.
struct Ended {
    status: ExitStatus,
    output: String,
    events: Option<Events>,
}

/// The undisturbed run.
struct Undisturbed {
    result: Snapshot,
    events: Events,
}

impl<'c> Sweeping<'c> {
    pub(super) fn new(
        mut sweep: CrashSweep,
        name: String,
        location: (String, u32),
        check: Option<&'c Check<'c>>,
    ) -> Result<Self, String> {
        let url = sweep.repository.take().map(|url| url());
        Ok(Self {
            sweep,
            workspace: Workspace::new(url)?,
            name,
            location,
            check,
        })
    }

    /// Returns the numbers of events and crashes.
    pub(super) fn run(&self) -> Result<(usize, usize), String> {
        let expected = self.undisturbed()?;
        let has_server = self.workspace.has_server();
        let crashes = (1..).zip(&expected.events.all).flat_map(|(event, what)| {
            let faults = Fault::at(&what.text, has_server).into_iter();
            faults.map(move |fault| Crash { fault, event })
        });
        let crashes = Mutex::new(crashes.collect::<VecDeque<_>>());
        let (problems, count) = (Mutex::new(Vec::new()), Mutex::new(0));
        // On a server, most processes wait for the end of a dead one's lease.
        let per_core = if has_server { 8 } else { 1 };
        let threads = thread::available_parallelism().map_or(1, usize::from) * per_core;
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    // The lock must not be held during the crash.
                    let next = || locked(&crashes).pop_front();
                    while let Some(crash) = next() {
                        match self.crash_caught(crash, &expected) {
                            Ok(happened) => *locked(&count) += usize::from(happened),
                            Err(problem) => {
                                locked(&problems).push((crash.event, problem));
                                // The first problem is reported: later events need not be tried.
                                locked(&crashes).clear();
                            }
                        }
                    }
                });
            }
        });
        let mut problems = problems.into_inner().unwrap_or_else(PoisonError::into_inner);
        problems.sort_by_key(|(event, _)| *event);
        match problems.into_iter().next() {
            Some((_, problem)) => Err(problem),
            None => Ok((expected.events.all.len(), *locked(&count))),
        }
    }

    fn undisturbed(&self) -> Result<Undisturbed, String> {
        let run = self.workspace.run()?;
        self.prepare(&run);
        let ended = self.launch(&run, "first", None)?;
        let Some(events) = ended.events else {
            return Err(format!(
                "the test program ran no sweep as test `{}`; set the full name of the test with `test_name`\n{}",
                self.name, ended.output
            ));
        };
        if !ended.status.success() {
            return Err(format!("the undisturbed run did not complete\n{}", ended.output));
        }
        Ok(Undisturbed {
            result: self.snapshot(&run),
            events,
        })
    }

    /// As `crash`; a panic of a function of the test is a problem.
    fn crash_caught(&self, crash: Crash, expected: &Undisturbed) -> Result<bool, String> {
        catch_unwind(AssertUnwindSafe(|| self.crash(crash, expected))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!(
                "the check after event {} panicked: {}",
                crash.event,
                text.unwrap_or_default()
            ))
        })
    }

    /// Crashes at one event, launches again, and compares. Returns `false` if the run had fewer events.
    fn crash(&self, crash: Crash, expected: &Undisturbed) -> Result<bool, String> {
        let run = self.workspace.run()?;
        self.prepare(&run);
        let first = self.launch(&run, "first", Some(crash))?;
        let events = first.events.map_or_else(Vec::new, |events| events.all);
        let Some(event) = events.get(crash.event - 1) else {
            return Ok(false);
        };
        let second = self.launch(&run, "second", None)?;
        let about = || format!("{}\n{}", self.crashed(crash, event), self.interrupted(&run));
        if !second.status.success() {
            return Err(format!(
                "{}the second launch did not complete the job\n{}\nthe first launch:\n{}",
                about(),
                second.output,
                first.output
            ));
        }
        let found = self.snapshot(&run);
        match Difference::between(&expected.result, &found) {
            None => Ok(true),
            Some(difference) => Err(format!(
                "{}after a second launch the result differs from that of an undisturbed run:\n{difference}{}the second \
                 launch:\n{}",
                about(),
                advice(&difference, &expected.events),
                second.output
            )),
        }
    }

    fn prepare(&self, run: &Run<'_>) {
        if let Some(prepare) = &self.sweep.prepare {
            prepare(&mut run.database());
        }
    }

    fn snapshot(&self, run: &Run<'_>) -> Snapshot {
        let mut database = run.database();
        match self.check {
            Some(check) => Snapshot::of_check(check(&mut database)),
            None => Snapshot::of(
                database.tables(self.workspace.tables(), &self.sweep.ignored),
                &run.files(),
            ),
        }
    }

    /// Runs the job in a process of its own. Its output and its events are in files with this name.
    fn launch(&self, run: &Run<'_>, name: &str, crash: Option<Crash>) -> Result<Ended, String> {
        let mut parameters: Vec<(String, ParameterValue, bool)> = self.sweep.test.given_parameters();
        for (name, file) in &self.sweep.outputs {
            let path = run.files().join(file).display().to_string();
            parameters.push((name.clone(), ParameterValue::String(path), true));
        }
        let (events, output) = (
            run.beside(&format!("{name}.events")),
            run.beside(&format!("{name}.txt")),
        );
        let task = ChildTask {
            location: self.location.0.clone(),
            ordinal: self.location.1,
            repository: run.url().to_owned(),
            events: events.display().to_string(),
            tables: self.workspace.tables().to_vec(),
            parameters,
            crash,
        };
        let failed = |error: &dyn std::fmt::Display| format!("cannot start the test program again: {error}");
        let task = serde_json::to_string(&task).map_err(|error| failed(&error))?;
        let program = std::env::current_exe().map_err(|error| failed(&error))?;
        let file = File::create(&output).map_err(|error| failed(&error))?;
        let stdout = file.try_clone().map_err(|error| failed(&error))?;
        let child = Command::new(program)
            .args([
                self.name.as_str(),
                "--exact",
                "--nocapture",
                "--include-ignored",
                "--test-threads=1",
            ])
            .env(TASK, task)
            .env("RUST_BACKTRACE", "0")
            // Processes that die leave their temporary files.
            .envs(["TMPDIR", "TMP", "TEMP"].map(|name| (name, run.temporary())))
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(file)
            .spawn()
            .map_err(|error| failed(&error))?;
        let status = wait(child, self.sweep.test.given_time_limit() + MARGIN);
        let output = fs::read_to_string(&output).unwrap_or_default();
        match status {
            Some(status) => Ok(Ended {
                status,
                output,
                events: Events::read(&events),
            }),
            None => Err(format!("a launch has not ended within the time limit\n{output}")),
        }
    }

    /// Returns what happened at an event.
    fn crashed(&self, crash: Crash, event: &Event) -> String {
        let what = match crash.fault {
            Fault::Death => "the process died",
            Fault::Panic if event.text.starts_with("after") => "the acknowledgement was lost",
            Fault::Panic => "the statement panicked",
            Fault::Error if self.workspace.has_server() => "all connections were lost",
            Fault::Error => "the transaction failed",
        };
        format!(
            "event {}: {what} {}, {} commits after the start",
            crash.event, event.text, event.commits
        )
    }

    /// Returns the step that the crash interrupted, with its artifacts.
    fn interrupted(&self, run: &Run<'_>) -> String {
        let prefix = self.workspace.prefix();
        let Some(step) = run.database().last_step_of_first_execution(prefix) else {
            return "before the first step\n".to_owned();
        };
        let artifacts = self.sweep.test.artifacts_of(&step).unwrap_or_default();
        format!("in step `{step}`: {artifacts}\n")
    }
}

/// Returns the rule that the job probably breaks.
fn advice(difference: &Difference, undisturbed: &Events) -> String {
    match difference.first() {
        Some(Part::Table(name)) if undisturbed.is_outside(name) => format!(
            "`{name}` is written outside of the transaction that commits the checkpoint; a writer with `tx: &mut \
             ChunkTransaction` writes inside of it\n"
        ),
        Some(Part::Table(name)) => format!(
            "`{name}` is written in the transaction that commits the checkpoint, so a checkpoint does not fit the items: \
             `open` of the reader has to continue after the last item before `get_checkpoint_info`, and a writer must not keep \
             items over a commit\n"
        ),
        Some(Part::File(name)) => format!(
            "`{name}` is not part of the transaction: a writer truncates its file to the length in the checkpoint when it is \
             opened, and a listener has no checkpoint\n"
        ),
        _ => String::new(),
    }
}

/// Waits for the end of a process; `None` if it had to be killed after the limit.
fn wait(mut child: Child, limit: Duration) -> Option<ExitStatus> {
    let begin = Instant::now();
    while begin.elapsed() < limit {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        // The standard library cannot wait for a process with a limit.
        thread::sleep(Duration::from_millis(1));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}
