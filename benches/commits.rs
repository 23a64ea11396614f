//! The cost of a checkpoint on SQLite, beside the same statements written by hand with diesel (gate G7b); and that of one on `memory:`,
//! beside SQLite in memory.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::time::{Duration, Instant};

use batch_bench::{Program, head, in_turn, ratio, report, run};
use batch_runtime::BatchRuntime;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;

const COMMITS: u64 = 5_000;
/// Those on `memory:`, where one takes less than a microsecond.
const COMMITS_IN_MEMORY: u64 = 1_000_000;
const ROUNDS: usize = 5;

table! {
    batch_step_execution (step_execution_id) {
        step_execution_id -> BigInt,
        version -> BigInt,
        read_count -> BigInt,
        write_count -> BigInt,
        commit_count -> BigInt,
        last_updated -> BigInt,
    }
}

table! {
    batch_step_execution_context (step_execution_id) {
        step_execution_id -> BigInt,
        short_context -> Text,
    }
}

fn engine(url: &str, commits: u64) -> Duration {
    run(
        url,
        &[
            ("reader", "CommitReader"),
            ("commits", &commits.to_string()),
            ("processor", "CommitProcessor"),
            ("writer", "CommitWriter"),
            ("commit.interval", "1"),
            ("chunk.size", "1"),
        ],
    )
}

/// The same two updates in the same kind of transaction, on the rows of the engine's run.
fn by_hand(file: &str, synchronous: &str) -> Duration {
    use batch_step_execution::dsl as step;
    let mut connection = SqliteConnection::establish(file).unwrap();
    let settings =
        format!("PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA foreign_keys = ON;");
    connection.batch_execute(&settings).unwrap();
    let (id, first): (i64, i64) = step::batch_step_execution
        .select((step::step_execution_id, step::version))
        .first(&mut connection)
        .unwrap();
    let begin = Instant::now();
    for n in 0..i64::try_from(COMMITS).unwrap() {
        connection
            .immediate_transaction(|connection| {
                let row = step::batch_step_execution
                    .find(id)
                    .filter(step::version.eq(first + n));
                let changed = diesel::update(row)
                    .set((
                        step::version.eq(first + n + 1),
                        step::read_count.eq(n),
                        step::write_count.eq(n),
                        step::commit_count.eq(n),
                        step::last_updated.eq(n),
                    ))
                    .execute(connection)?;
                assert_eq!(changed, 1);
                let context =
                    format!("{{\"@class\":\"java.util.HashMap\",\"batch.reader.checkpoint\":\"{n}\"}}");
                diesel::update(batch_step_execution_context::table.find(id))
                    .set(batch_step_execution_context::short_context.eq(context))
                    .execute(connection)
            })
            .unwrap();
    }
    begin.elapsed()
}

fn micros(time: Duration, commits: u64) -> f64 {
    time.as_secs_f64() * 1e6 / commits as f64
}

/// The whole engine, on repositories without a disk: reading the item, its checkpoint as JSON, the commit.
fn in_memory() {
    head("Cost per checkpoint in memory, commits of one item");
    let mut programs: Vec<Program<'_>> = vec![
        ("memory:", Box::new(|| engine("memory:", COMMITS_IN_MEMORY))),
        (
            "SQLite in memory",
            Box::new(|| engine("sqlite://:memory:", COMMITS)),
        ),
    ];
    let [memory, sqlite] = in_turn(ROUNDS, &mut programs).try_into().unwrap();
    let (memory, sqlite) = (micros(memory, COMMITS_IN_MEMORY), micros(sqlite, COMMITS));
    report("`memory:`, engine", memory, "us", Some(1.0));
    report("SQLite in memory, engine", sqlite, "us", None);
    report("`memory:` / SQLite in memory", memory / sqlite, "x", Some(0.2));
}

fn main() {
    in_memory();
    head("Cost per checkpoint on SQLite, 5,000 commits of one item");
    for (synchronous, gate) in [("NORMAL", 2.0), ("FULL", 1.25)] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("batch.db").display().to_string();
        let url = format!("sqlite://{file}?synchronous={}", synchronous.to_lowercase());
        BatchRuntime::builder().repository(&url).build().unwrap();
        let mut programs: Vec<Program<'_>> = vec![
            ("engine", Box::new(|| engine(&url, COMMITS))),
            ("by hand", Box::new(|| by_hand(&file, synchronous))),
        ];
        let [ours, hand] = in_turn(ROUNDS, &mut programs).try_into().unwrap();
        let micros = |time| micros(time, COMMITS);
        report(
            &format!("{synchronous}, statements by hand with diesel"),
            micros(hand),
            "us",
            None,
        );
        report(&format!("{synchronous}, engine"), micros(ours), "us", None);
        report(
            &format!("{synchronous}, engine / by hand (G7b)"),
            ratio(ours, hand),
            "x",
            Some(gate),
        );
    }
}
