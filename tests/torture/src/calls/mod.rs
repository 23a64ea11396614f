//! A sweep over system calls: jobs of each kind of reader and writer, where one call on one file fails, once or from then on.
//!
//! ```console
//! $ cargo run -p batch-torture -- --calls
//! $ cargo run -p batch-torture -- --calls csv
//! $ cargo run -p batch-torture -- --calls 'csv out/o.csv.part write 3+ EIO'
//! ```
//!
//! After each one, the job has ended exact, or it has failed and the same launch, undisturbed, ends exact: with the files, rows and counts of a
//! run without a fault, and nothing beside.

mod careless;
mod jobs;
mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use self::jobs::{KINDS, Kind};
use self::stage::{Ended, Stage};
use crate::random::Random;

/// Seconds until a process counts as hanging.
const PATIENCE: u32 = 60;

/// A system call that fails.
#[derive(Clone)]
struct Injection {
    kind: &'static Kind,
    /// The file, below the folder of the job.
    path: String,
    call: String,
    /// Which of the calls of a thread on this file.
    number: u32,
    /// Whether all calls after it fail as well.
    persists: bool,
    error: &'static str,
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from_then_on = if self.persists { "+" } else { "" };
        let (kind, number) = (self.kind.name, self.number);
        write!(
            f,
            "{kind} {} {} {number}{from_then_on} {}",
            self.path, self.call, self.error
        )
    }
}

impl Injection {
    /// Returns the one that `Display` has printed.
    fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [kind, path, call, number, error] = words.try_into().ok()?;
        Some(Self {
            kind: KINDS
                .iter()
                .chain(careless::KINDS)
                .find(|known| known.name == kind)?,
            path: path.to_owned(),
            call: call.to_owned(),
            number: number.trim_end_matches('+').parse().ok()?,
            persists: number.ends_with('+'),
            error: ERRORS.into_iter().find(|known| *known == error)?,
        })
    }
}

/// `EOF` is the end of the file, as if it had been cut.
const ERRORS: [&str; 5] = ["EIO", "ENOSPC", "EMFILE", "EROFS", "EOF"];

/// Returns the errors that a call may have.
fn errors_of(call: &str, is_repository: bool) -> &'static [&'static str] {
    let reads_state = [
        "stat", "lseek", "fcntl", "flock", "getdents", "access", "readlink",
    ];
    match call {
        "open" | "openat" => &["EIO", "ENOSPC", "EMFILE", "EROFS"],
        "mmap" => &["EIO", "EMFILE"],
        "read" | "pread64" | "copy_file_range" | "sendfile" if !is_repository => &["EIO", "EOF"],
        "read" | "pread64" => &["EIO"],
        _ if reads_state.iter().any(|name| call.contains(name)) => &["EIO"],
        "fsync" | "fdatasync" => &["EIO", "ENOSPC"],
        _ => &["EIO", "ENOSPC", "EROFS"],
    }
}

/// The value of [`CHILD`](crate::world::CHILD) of a process that ends with exit code 0 in any case, the planted fault of `main`.
pub(crate) const EXITS: &str = "exits";

/// Runs the given injection, planted faults, or many injections. Returns the violations, or the faults that were not noticed.
pub(crate) fn run(injection: &str, self_test: bool, count: Option<u64>, seed: u64) -> Vec<String> {
    match injection {
        "" if self_test => careless::self_test(),
        "" => many(KINDS, count, seed),
        injection => match KINDS.iter().find(|kind| kind.name == injection) {
            Some(kind) => many(std::slice::from_ref(kind), count, seed),
            None => replay(injection),
        },
    }
}

/// Runs one injection, which `Display` has printed. Returns the violations.
fn replay(text: &str) -> Vec<String> {
    let Some(injection) = Injection::parse(text) else {
        return vec![format!(
            "`{text}` is not a valid injection: expected `KIND FILE CALL NUMBER[+] ERROR`"
        )];
    };
    println!("{}", injection.kind.xml());
    sweep(&[injection], PATIENCE)
}

/// Runs all injections, or a sample that contains each call with each error for each kind, and grows to `count`.
fn many(kinds: &'static [Kind], count: Option<u64>, seed: u64) -> Vec<String> {
    let all: Vec<Injection> = kinds.iter().flat_map(injections).collect();
    let chosen = match count {
        Some(count) => sample(&all, count, seed),
        None => all.clone(),
    };
    println!("seed {seed}: {} of {} injections", chosen.len(), all.len());
    sweep(&chosen, PATIENCE)
}

fn sample(all: &[Injection], count: u64, seed: u64) -> Vec<Injection> {
    let mut random = Random::new(seed);
    let mut left: Vec<(u64, &Injection)> = all.iter().map(|one| (random.next(), one)).collect();
    left.sort_by_key(|(place, _)| *place);
    let mut seen = BTreeSet::new();
    let (mut first, more): (Vec<_>, Vec<_>) = left
        .into_iter()
        .partition(|(_, one)| seen.insert((one.kind.name, &one.call, one.error)));
    let missing = (count as usize).saturating_sub(first.len());
    first.extend(more.into_iter().take(missing));
    first.into_iter().map(|(_, one)| one.clone()).collect()
}

/// Returns all injections of a kind, by the calls of an undisturbed run.
fn injections(kind: &'static Kind) -> Vec<Injection> {
    let stage = Stage::new(kind, PATIENCE);
    let ended = stage.launch(None);
    assert_eq!(ended.code, Some(0), "{}: {}", kind.name, ended.output);
    let mut all = Vec::new();
    for ((path, call), calls) in count_calls(&stage, &ended.trace) {
        let is_repository = path.starts_with("batch.db");
        // SQLite takes a lock that fails for one of another program, and waits for it for a minute. A failed unlock, which strace does not
        // execute, keeps the lock.
        let waits = path == "batch.db-shm" && call == "fcntl";
        if waits || is_repository && !kind.sweeps_repository() {
            continue;
        }
        for (number, persists) in (1..=calls).flat_map(|number| [(number, false), (number, true)]) {
            all.extend(errors_of(&call, is_repository).iter().map(|error| Injection {
                kind,
                path: path.clone(),
                call: call.clone(),
                number,
                persists,
                error,
            }));
        }
    }
    all
}

/// Counts the calls on each file; of several threads, as strace does, the calls of the thread that has most.
fn count_calls(stage: &Stage, trace: &str) -> BTreeMap<(String, String), u32> {
    let folder = format!("{}/", stage.path().canonicalize().unwrap().display());
    let mut of_threads: BTreeMap<_, u32> = BTreeMap::new();
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let Some((call, arguments)) = rest.trim_start().split_once('(') else {
            continue;
        };
        // `5</folder/file>` is an open file, `"file"` a name.
        let words = arguments
            .split(['"', '<', '>', ','])
            .map(|word| word.strip_prefix(&folder).unwrap_or(word));
        let files: BTreeSet<&str> = words.filter(|word| is_file(stage, word)).collect();
        for file in files {
            *of_threads.entry((file, call, thread)).or_default() += 1;
        }
    }
    let mut counts = BTreeMap::new();
    for ((file, call, _), count) in of_threads {
        let most = counts.entry((file.to_owned(), call.to_owned())).or_default();
        *most = count.max(*most);
    }
    counts
}

/// Returns whether a word of the trace is the name of a file of the job, the same in each run.
fn is_file(stage: &Stage, word: &str) -> bool {
    let is_relative = !word.is_empty() && !word.starts_with(['/', ' ', '{', '.']);
    let is_random = word.starts_with("batch.db-owners/");
    let name = word.split('/').next_back().unwrap_or_default();
    let is_below =
        word.starts_with("out") || stage.path().join(word).exists() || word.starts_with("batch.db");
    is_relative && !is_random && is_below && !name.is_empty()
}

/// Runs injections on all processors. Returns the violations.
fn sweep(injections: &[Injection], patience: u32) -> Vec<String> {
    let begin = Instant::now();
    let mut expected = BTreeMap::new();
    for kind in injections.iter().map(|one| one.kind) {
        expected.entry(kind.name).or_insert_with(|| {
            let stage = Stage::new(kind, patience);
            let ended = stage.launch(None);
            assert_eq!(ended.code, Some(0), "{}: {}", kind.name, ended.output);
            stage.result()
        });
    }
    let (next, ends) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(injection) = injections.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let end = inject(injection, &expected[injection.kind.name], patience);
                    ends.lock().unwrap().count(injection, end);
                }
            });
        }
    });
    let tally = ends.into_inner().unwrap();
    tally.report(begin);
    tally.violations
}

/// What an injection led to.
enum End {
    /// No call failed, because the threads of this run had fewer.
    NotInjected,
    /// The job completed, exact.
    Completed,
    /// The job failed, and the next launch completed it, exact.
    Resumed,
    /// The process failed after the job was complete, exact.
    FailedComplete,
}

fn inject(injection: &Injection, expected: &stage::Result, patience: u32) -> Result<End, String> {
    let stage = Stage::new(injection.kind, patience);
    let ended = stage.launch(Some(injection));
    check_process(&ended)?;
    let (status, is_done) = (stage.status(), ended.code == Some(0));
    if is_done != (status == "COMPLETED") && is_done {
        return Err(format!(
            "exit code 0, but the status is {status}: {}",
            ended.output
        ));
    }
    if status == "COMPLETED" {
        check_result(&stage, expected, &ended)?;
    }
    let again = stage.launch(None);
    check_process(&again)?;
    let code = if status == "COMPLETED" { 10 } else { 0 };
    if again.code != Some(code) {
        let code = again.code;
        return Err(format!(
            "the next launch ended with {code:?}: {}\nafter {}",
            again.output, ended.output
        ));
    }
    check_result(&stage, expected, &ended)?;
    Ok(match (ended.trace.contains("(INJECTED)"), is_done, code) {
        (false, _, _) => End::NotInjected,
        (_, true, _) => End::Completed,
        (_, _, 10) => End::FailedComplete,
        _ => End::Resumed,
    })
}

fn check_process(ended: &Ended) -> Result<(), String> {
    match ended.code {
        None => Err(format!("hangs, or ended by a signal: {}", ended.output)),
        _ if ended.output.contains("panicked at") => Err(format!("a panic: {}", ended.output)),
        _ => Ok(()),
    }
}

fn check_result(stage: &Stage, expected: &stage::Result, ended: &Ended) -> Result<(), String> {
    let result = stage.result();
    let names: BTreeSet<_> = result.keys().chain(expected.keys()).collect();
    let differ = names
        .into_iter()
        .find(|name| result.get(*name) != expected.get(*name));
    differ.map_or(Ok(()), |name| {
        let (is, should) = (result.get(name), expected.get(name));
        Err(format!(
            "{name} is {is:?} instead of {should:?}\nafter {}",
            ended.output
        ))
    })
}

/// The counts of a sweep.
#[derive(Default)]
struct Tally {
    /// By kind: completed, resumed, failed after the job was complete, without a call that failed.
    kinds: BTreeMap<&'static str, [u32; 4]>,
    violations: Vec<String>,
}

impl Tally {
    fn count(&mut self, injection: &Injection, end: Result<End, String>) {
        let counts = self.kinds.entry(injection.kind.name).or_default();
        match end {
            Ok(end) => {
                counts[match end {
                    End::Completed => 0,
                    End::Resumed => 1,
                    End::FailedComplete => 2,
                    End::NotInjected => 3,
                }] += 1
            }
            Err(what) => {
                println!("{injection}: {what}");
                self.violations
                    .push(format!("{injection}: {what}\n  replay: --calls '{injection}'"));
            }
        }
    }

    fn report(&self, begin: Instant) {
        println!(
            "| kind | completed | failed, then completed | complete, but exit code not 0 | not reached |\n|---|---|---|---|---|"
        );
        for (kind, [completed, resumed, complete, not_reached]) in &self.kinds {
            println!("| {kind} | {completed} | {resumed} | {complete} | {not_reached} |");
        }
        println!(
            "{} violations in {:.0} s",
            self.violations.len(),
            begin.elapsed().as_secs_f64()
        );
    }
}
