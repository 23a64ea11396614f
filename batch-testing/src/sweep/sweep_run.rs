//! The runs of a sweep: without a fault, and then with one at each event.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use batch_runtime::parameters::ParameterValue;

use super::difference::{Difference, Kind, Part, Snapshot};
use super::events::{Event, Events};
use super::settings::{Check, SweepSettings, locked};
use super::task::{ChildTask, Fault, Injection, TASK};
use super::workspace::{Run, Workspace};
use crate::JobTest;

/// The time beyond the limit of an execution, for the start and the end of its process.
const MARGIN: Duration = Duration::from_secs(10);

/// The runs of a sweep.
pub(super) struct SweepRun<'c> {
    sweep: SweepSettings,
    workspace: Workspace,
    /// The name of the test.
    name: String,
    location: (String, u32),
    check: Option<&'c Check<'c>>,
}

/// A process that has ended.
struct ProcessResult {
    /// `None`: it had to be killed after the limit.
    status: Option<ExitStatus>,
    output: String,
    events: Option<Events>,
}

/// The undisturbed run.
struct Baseline {
    result: Snapshot,
    events: Events,
}

impl ProcessResult {
    fn is_completed(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }
}

/// The number of processes on servers at the same time, of all sweeps of this program. Most of them wait for the end of a dead one's lease,
/// and each has some connections; servers accept a hundred by default.
const SERVER_PROCESSES: usize = 16;

/// The permission to run a process on a server.
struct Permit;

static PERMITS: (Mutex<usize>, Condvar) = (Mutex::new(SERVER_PROCESSES), Condvar::new());

impl Permit {
    fn take() -> Self {
        let (free, released) = &PERMITS;
        let free = released.wait_while(locked(free), |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        Self
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let (free, released) = &PERMITS;
        *locked(free) += 1;
        released.notify_one();
    }
}

impl<'c> SweepRun<'c> {
    pub(super) fn new(
        mut sweep: SweepSettings,
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

    /// Returns the numbers of events and of injected faults.
    pub(super) fn run(&self) -> Result<(usize, usize), String> {
        let baseline = self.baseline()?;
        let has_server = self.workspace.has_server();
        let injections = (1..).zip(&baseline.events.all).flat_map(|(event, what)| {
            let faults = Fault::at(&what.text, has_server).into_iter();
            faults.map(move |fault| Injection { fault, event })
        });
        let injections = Mutex::new(self.sampled(injections.collect()));
        let (problems, count) = (Mutex::new(Vec::new()), Mutex::new(0));
        let threads = match has_server {
            true => SERVER_PROCESSES,
            false => thread::available_parallelism().map_or(1, usize::from),
        };
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    // The lock must not be held during a run.
                    let next = || locked(&injections).pop_front();
                    while let Some(injection) = next() {
                        let _permit = has_server.then(Permit::take);
                        match self.inject_caught(injection, &baseline) {
                            Ok(struck) => *locked(&count) += usize::from(struck),
                            Err(problem) => {
                                locked(&problems).push((injection.event, problem));
                                // The first problem is reported: later events need not be tried.
                                locked(&injections).clear();
                            }
                        }
                    }
                });
            }
        });
        let mut problems = problems.into_inner().unwrap_or_else(PoisonError::into_inner);
        problems.sort_by_key(|(event, _)| *event);
        match (problems.into_iter().next(), *locked(&count)) {
            (Some((_, problem)), _) => Err(problem),
            (None, 0) => Err(
                "no fault could be injected: does an artifact set the default instrumentation of diesel?"
                    .to_owned(),
            ),
            (None, count) => Ok((baseline.events.all.len(), count)),
        }
    }

    /// Returns all injections, or one at random from each of as many equal parts as the sample has faults.
    fn sampled(&self, all: Vec<Injection>) -> VecDeque<Injection> {
        let is_whole = std::env::var("BATCH_SWEEP").is_ok_and(|what| what == "all");
        let count = self.sweep.sample.filter(|_| !is_whole).unwrap_or(all.len());
        let count = count.min(all.len());
        let random = RandomState::new();
        let parts = (0..count).map(|part| part * all.len() / count..(part + 1) * all.len() / count);
        parts
            .map(|part| all[part.start + random.hash_one(part.start) as usize % part.len()])
            .collect()
    }

    /// Runs the job without a fault.
    fn baseline(&self) -> Result<Baseline, String> {
        let run = self.workspace.run()?;
        self.prepare(&run)?;
        let ended = self.launch(&run, "first", None)?;
        let is_completed = ended.is_completed();
        let Some(events) = ended.events else {
            return Err(format!(
                "the test program ran no sweep as test `{}`; set the full name of the test with `test_name`\n{}",
                self.name, ended.output
            ));
        };
        if !is_completed {
            return Err(format!("the undisturbed run did not complete\n{}", ended.output));
        }
        if self.check.is_none() {
            run.database()?.check_ignored(&self.sweep.ignored);
        }
        let result = self.snapshot(&run)?;
        self.compare_undisturbed(&result)?;
        if result.is_empty() {
            return Err(
                "the job left no rows in tables, and no files in the folder of its run, so there is nothing to compare; \
                 set the path of its file by `output`, or use `check`"
                    .to_owned(),
            );
        }
        Ok(Baseline { result, events })
    }

    /// Runs the job without a fault again: what differs then differs for another reason than a crash.
    fn compare_undisturbed(&self, result: &Snapshot) -> Result<(), String> {
        let run = self.workspace.run()?;
        self.prepare(&run)?;
        let ended = self.launch(&run, "first", None)?;
        if !ended.is_completed() {
            return Err(format!(
                "the job did not complete when it ran undisturbed again\n{}",
                ended.output
            ));
        }
        match Difference::between(result, &self.snapshot(&run)?) {
            None => Ok(()),
            Some(difference) => Err(format!(
                "two undisturbed runs differ:\n{difference}exclude values that differ in each run by `ignore_column`, `ignore_table` or \
                 `normalize_files`, or compare the result of a `check`\n"
            )),
        }
    }

    /// Runs [`inject`](Self::inject), and reports a panic of the test's functions as a problem.
    fn inject_caught(&self, injection: Injection, baseline: &Baseline) -> Result<bool, String> {
        catch_unwind(AssertUnwindSafe(|| self.inject(injection, baseline))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!(
                "a function of the test panicked in the run for event {}: {}",
                injection.event,
                text.unwrap_or_default()
            ))
        })
    }

    /// Injects a fault, launches again, and compares. Returns whether the fault has happened: a run may have fewer events than the
    /// undisturbed one, and a transaction may write nothing.
    fn inject(&self, injection: Injection, baseline: &Baseline) -> Result<bool, String> {
        let run = self.workspace.run()?;
        self.prepare(&run)?;
        let first = self.launch(&run, "first", Some(injection))?;
        let events = first.events.as_ref();
        let has_server = self.workspace.has_server();
        // An error may happen at a later event.
        let is_place = |(_, event): &(usize, &Event)| {
            injection.fault != Fault::Error || Fault::at(&event.text, has_server).contains(&Fault::Error)
        };
        let numbered = events.map(|events| (1..).zip(&events.all).skip(injection.event - 1));
        let Some((number, event)) = numbered.and_then(|mut events| events.find(is_place)) else {
            return Ok(false);
        };
        let about = || {
            let what = self.described(injection.fault, number, event);
            format!("{what}\n{}", self.interrupted(&run))
        };
        if first.status.is_none() {
            return Err(format!(
                "{}the launch has not ended within the time limit\n{}",
                about(),
                first.output
            ));
        }
        let second = self.launch(&run, "second", None)?;
        if !second.is_completed() {
            let what = match second.status {
                None => "the second launch has not ended within the time limit",
                Some(_) => "the second launch did not complete the job",
            };
            return Err(format!(
                "{}{what}\n{}{}\nthe first launch:\n{}",
                about(),
                advice_on_failure(&second.output),
                second.output,
                first.output
            ));
        }
        let found = self.snapshot(&run)?;
        match Difference::between(&baseline.result, &found) {
            None => Ok(events.is_some_and(|events| events.struck)),
            Some(difference) => Err(format!(
                "{}after a second launch the result differs from that of an undisturbed run:\n{difference}{}the second \
                 launch:\n{}",
                about(),
                advice(&difference, &baseline.events),
                second.output
            )),
        }
    }

    fn prepare(&self, run: &Run<'_>) -> Result<(), String> {
        if let Some(prepare) = &self.sweep.prepare {
            prepare(&mut run.database()?);
        }
        Ok(())
    }

    fn snapshot(&self, run: &Run<'_>) -> Result<Snapshot, String> {
        let mut database = run.database()?;
        Ok(match self.check {
            Some(check) => Snapshot::of_check(check(&mut database)),
            None => Snapshot::of(
                database.tables(self.workspace.tables(), &self.sweep.ignored),
                &run.files(),
                self.sweep.normalize.as_deref(),
            ),
        })
    }

    /// Runs the job in a separate process. Its output and its events are in files with this name.
    fn launch(
        &self,
        run: &Run<'_>,
        name: &str,
        injection: Option<Injection>,
    ) -> Result<ProcessResult, String> {
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
            system: self.sweep.test.given_system().clone(),
            injection,
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
        let limit = self.sweep.test.given_time_limit() + JobTest::PATIENCE + MARGIN;
        Ok(ProcessResult {
            status: wait(child, limit),
            output: without_noise(&fs::read_to_string(&output).unwrap_or_default(), &self.name),
            events: Events::read(&events),
        })
    }

    /// Returns what happened at the event with this number.
    fn described(&self, fault: Fault, number: usize, event: &Event) -> String {
        let what = match fault {
            Fault::Death => "the process died",
            Fault::Panic if event.text.starts_with("after") => "the acknowledgement was lost",
            Fault::Panic => "the statement panicked",
            Fault::Error if self.workspace.has_server() => "all connections were lost",
            Fault::Error => "a write of the repository failed in the transaction that begins",
        };
        format!(
            "event {number}: {what} {}, {} commits after the start",
            event.text, event.commits
        )
    }

    /// Returns the step that the crash interrupted, with its artifacts.
    fn interrupted(&self, run: &Run<'_>) -> String {
        let prefix = self.workspace.prefix();
        let step = run
            .database()
            .ok()
            .and_then(|mut database| database.last_step_of_first_execution(prefix));
        let Some(step) = step else {
            return "before the first step\n".to_owned();
        };
        let artifacts = self.sweep.test.artifacts_of(&step).unwrap_or_default();
        format!("in step `{step}`: {artifacts}\n")
    }
}

/// Returns the rule that the job probably breaks.
fn advice(difference: &Difference, baseline: &Events) -> String {
    match difference.first() {
        Some((Part::Table(name), _)) if baseline.is_outside(name) => format!(
            "`{name}` is written outside of the transaction that commits the checkpoint; a writer with `tx: &mut ChunkTransaction` writes \
             inside of it, and what a listener or a batchlet writes is repeated after a crash\n"
        ),
        Some((Part::Table(name) | Part::File(name), Kind::Values)) => format!(
            "`{name}` has other values: an artifact keeps state that is not in its checkpoint, or the value is a time, an id or random; \
             exclude such values by `ignore_column` or `normalize_files`\n"
        ),
        Some((Part::Table(name), _)) => format!(
            "`{name}` is written in the transaction that commits the checkpoint, so a checkpoint does not match the items: \
             `open` of the reader has to continue after the last item before `get_checkpoint_info`, and a writer must not keep \
             items across commits\n"
        ),
        Some((Part::File(name), Kind::Missing)) => format!(
            "`{name}` lacks lines: its writer has to flush before `get_checkpoint_info` returns, and the reader must not be ahead of the \
             last item in its checkpoint\n"
        ),
        Some((Part::File(name), _)) => format!(
            "`{name}` is not part of the transaction: a writer truncates its file to the length in the checkpoint when it is \
             opened, and what a listener writes is repeated after a crash\n"
        ),
        _ => String::new(),
    }
}

/// Returns the rule that a job probably breaks whose second launch fails.
fn advice_on_failure(output: &str) -> &'static str {
    const DUPLICATES: [&str; 3] = [
        "UNIQUE constraint failed",
        "duplicate key value",
        "Duplicate entry",
    ];
    match DUPLICATES.iter().any(|message| output.contains(message)) {
        true => {
            "a row of the first launch is there already: it was written outside of the transaction that commits the checkpoint, or the \
             reader returns it again\n"
        }
        false => "",
    }
}

/// Returns the output of a test program without what the test framework adds.
fn without_noise(output: &str, test: &str) -> String {
    let start = format!("test {test} ... ");
    let lines = output
        .lines()
        .filter(|line| !line.is_empty() && *line != "running 1 test");
    let lines = lines.map(|line| line.strip_prefix(&start).unwrap_or(line));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Waits for the end of a process; `None` if it had to be killed after the limit.
fn wait(mut child: Child, limit: Duration) -> Option<ExitStatus> {
    let begin = Instant::now();
    while begin.elapsed() < limit {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        // The standard library cannot wait for a process with a limit.
        thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}
