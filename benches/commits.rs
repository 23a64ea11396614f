//! The cost of a checkpoint on SQLite, beside the same statements, prepared once, in a program with rusqlite (gate G7b); and that of one on `memory:`,
//! beside SQLite in memory.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::time::{Duration, Instant};

use batch_bench::{Program, head, in_turn, ratio, report, run};
use batch_runtime::BatchRuntime;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

const COMMITS: u64 = 5_000;
/// Those on `memory:`, where one takes less than a microsecond.
const COMMITS_IN_MEMORY: u64 = 1_000_000;
const ROUNDS: usize = 5;

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

const UPDATE_STEP: &str = "UPDATE batch_step_execution SET version = ?, read_count = ?, write_count = ?, filter_count = ?, \
     commit_count = ?, rollback_count = ?, read_skip_count = ?, process_skip_count = ?, write_skip_count = ?, last_updated = ? \
     WHERE step_execution_id = ? AND version = ?";

const UPDATE_CONTEXT: &str = "UPDATE batch_step_execution_context SET short_context = ?, serialized_context = ? \
     WHERE step_execution_id = ?";

/// The same two updates in the same kind of transaction, on the rows of the engine's run, by statements that are prepared once.
fn by_hand(file: &str, synchronous: &str) -> Duration {
    let connection = Connection::open(file).unwrap();
    let settings =
        format!("PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA foreign_keys = ON;");
    connection.execute_batch(&settings).unwrap();
    let (id, first): (i64, i64) = connection
        .query_row(
            "SELECT step_execution_id, version FROM batch_step_execution",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    let mut update_step = connection.prepare(UPDATE_STEP).unwrap();
    let mut update_context = connection.prepare(UPDATE_CONTEXT).unwrap();
    let begin = Instant::now();
    for n in 0..i64::try_from(COMMITS).unwrap() {
        let version = first + n;
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate).unwrap();
        let changed = update_step
            .execute(params![version + 1, n, n, 0, n, 0, 0, 0, 0, n, id, version])
            .unwrap();
        assert_eq!(changed, 1);
        let context = format!("{{\"@class\":\"java.util.HashMap\",\"batch.reader.checkpoint\":\"{n}\"}}");
        update_context
            .execute(params![context, None::<&str>, id])
            .unwrap();
        transaction.commit().unwrap();
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
    for (synchronous, gate) in [("NORMAL", 1.15), ("FULL", 1.25)] {
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
            &format!("{synchronous}, by hand with rusqlite, prepared"),
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
