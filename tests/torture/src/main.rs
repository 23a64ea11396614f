//! The torture suite: random jobs under random faults, with every promise of the runtime checked after each launch.
//!
//! ```console
//! $ cargo run -p batch-torture -- --hours 0.5 --database postgres
//! ```
//!
//! A case that breaks a promise is made smaller and written to a file, which `--replay` runs again.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "small numbers"
)]

mod artifacts;
mod calls;
mod case;
mod faults;
mod generate;
mod invariants;
mod job_xml;
mod plant;
mod random;
mod reduce;
mod run;
mod self_test;
mod violation;
mod world;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use batch_tests::database::Database;
use clap::{Parser, ValueEnum};

use crate::case::{Case, FaultKind};
use crate::run::Tally;
use crate::violation::Violation;
use crate::world::{CHILD, Databases};

/// Random jobs under random faults, with every promise of the runtime checked after each launch.
#[derive(Parser)]
struct Arguments {
    /// How long to run.
    #[arg(long, default_value_t = 0.05)]
    hours: f64,
    /// How many cases to run, instead of a time.
    #[arg(long)]
    cases: Option<u64>,
    /// The seed of the first case; each case prints its own.
    #[arg(long)]
    seed: Option<u64>,
    #[arg(long, default_value = "sqlite")]
    database: DatabaseName,
    /// Runs the case in a file that an earlier run has written.
    #[arg(long)]
    replay: Option<PathBuf>,
    /// Makes system calls fail instead: all or `--cases` of them, in all jobs or the named one; or the call that an earlier run printed.
    #[arg(long, value_name = "INJECTION", num_args = 0..=1, default_missing_value = "")]
    calls: Option<String>,
    /// Shows that each checker notices a planted fault.
    #[arg(long)]
    self_test: bool,
    /// The folder for the cases that fail.
    #[arg(long, default_value = "torture-failures")]
    failures: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum DatabaseName {
    Sqlite,
    Postgres,
    Mysql,
}

fn main() -> ExitCode {
    if let Some(child) = std::env::var_os(CHILD) {
        let code = batch_cli::main();
        return if child == calls::EXITS {
            ExitCode::SUCCESS
        } else {
            code
        };
    }
    let arguments = Arguments::parse();
    let problems = match &arguments.calls {
        Some(injection) => calls::run(
            injection,
            arguments.self_test,
            arguments.cases,
            arguments.seed.unwrap_or(1),
        ),
        None => cases(&arguments),
    };
    problems.iter().for_each(|problem| eprintln!("{problem}"));
    match problems.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Runs random cases, one case, or planted faults. Returns the problems.
fn cases(arguments: &Arguments) -> Vec<String> {
    let databases = Databases::start(match arguments.database {
        DatabaseName::Sqlite => Database::Sqlite,
        DatabaseName::Postgres => Database::Postgres,
        DatabaseName::Mysql => Database::Mariadb,
    });
    if arguments.self_test {
        self_test::run(&databases)
    } else if let Some(file) = &arguments.replay {
        replay(&databases, file)
    } else {
        torture(&databases, arguments)
    }
}

/// Runs the case in a file.
fn replay(databases: &Databases, file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let case: Case =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    println!("{}", job_xml::of(&case));
    let end = run::case(databases, &case, None, &mut Tally::default());
    end.err().iter().map(ToString::to_string).collect()
}

/// Runs random cases for the given time. Returns the violations.
fn torture(databases: &Databases, arguments: &Arguments) -> Vec<String> {
    let first = arguments.seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.expect("after 1970").as_secs() * 1_000
    });
    let (begin, time) = (Instant::now(), Duration::from_secs_f64(arguments.hours * 3_600.0));
    let mut tally = Tally::default();
    let mut problems = Vec::new();
    for seed in first.. {
        let is_over = match arguments.cases {
            Some(cases) => tally.cases >= cases,
            None => begin.elapsed() >= time,
        };
        if is_over {
            break;
        }
        let case = generate::case(seed, databases.kind);
        println!(
            "seed {seed}: {} elements, {} faults",
            case.elements.len(),
            case.faults.len()
        );
        if let Err(violation) = run::case(databases, &case, None, &mut tally) {
            println!("seed {seed}: {violation}");
            problems.push(record(databases, arguments, case, violation));
        }
    }
    report(databases.kind, &mut tally, begin.elapsed(), &problems);
    problems
}

/// Makes a failing case smaller, and writes it to a file.
fn record(databases: &Databases, arguments: &Arguments, case: Case, violation: Violation) -> String {
    let seed = case.seed;
    fs::create_dir_all(&arguments.failures).unwrap();
    let write = |case: &Case, name: String| {
        let file = arguments.failures.join(name);
        fs::write(&file, serde_json::to_string_pretty(case).unwrap()).unwrap();
        file
    };
    write(&case, format!("{seed}-whole.json"));
    let (smallest, violation) = reduce::smallest(databases, case, violation);
    let file = write(&smallest, format!("{seed}.json"));
    format!("seed {seed}: {violation}\n  replay: --replay {}", file.display())
}

fn report(database: Database, tally: &mut Tally, time: Duration, problems: &[String]) {
    println!();
    println!("| | |\n|---|---|");
    println!("| time | {:.1} minutes |", time.as_secs_f64() / 60.0);
    println!("| cases | {} |", tally.cases);
    println!("| launches | {} |", tally.launches);
    for (kind, is_possible) in FaultKind::ALL.map(|kind| (kind, faults::is_possible(database, kind))) {
        tally.faults.entry(kind.name()).or_insert(0);
        if !is_possible {
            println!("| fault {} | not possible here |", kind.name());
        }
    }
    for (kind, count) in tally.faults.iter().filter(|(_, count)| **count > 0) {
        println!("| fault {kind} | {count} |");
    }
    println!("| violations | {} |", problems.len());
}
