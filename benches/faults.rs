//! The cost of skip and retry rules without failures (at most a tenth more), and of one bad item in each chunk.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::fmt;
use std::hint::black_box;
use std::time::Duration;

use batch_bench::{Program, closed, head, in_turn, opened, ratio, report, run_job};
use batch_runtime::prelude::*;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;

const IN_MEMORY: u64 = 5_000_000;
const ROWS: u64 = 200_000;
const ROUNDS: usize = 7;

#[derive(Debug, BatchException)]
enum Trouble {
    Bad,
    #[expect(dead_code, reason = "named by a rule, but never thrown")]
    Busy,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Trouble {}

table! {
    row (number) {
        number -> BigInt,
    }
}

#[derive(BatchArtifact)]
struct Numbers {
    #[batch_property(name = "items")]
    items: u64,
    next: u64,
}

#[item_reader]
impl Numbers {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.next = checkpoint.unwrap_or(0);
        opened();
    }
    #[read_item]
    fn read(&mut self) -> Result<Option<u64>, Trouble> {
        if self.next == self.items {
            return Ok(None);
        }
        self.next = black_box(self.next + 1);
        Ok(Some(self.next))
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.next
    }
    #[close]
    fn close(&mut self) {
        closed();
    }
}

#[derive(BatchArtifact)]
struct Halves {}

#[item_processor]
impl Halves {
    #[process_item]
    fn process(&mut self, item: u64) -> Result<Option<u64>, Trouble> {
        Ok(black_box(&item).is_multiple_of(2).then_some(item))
    }
}

#[derive(BatchArtifact)]
struct Same {}

#[item_processor]
impl Same {
    #[process_item]
    fn process(&mut self, item: u64) -> Result<Option<u64>, Trouble> {
        Ok(Some(item))
    }
}

#[derive(BatchArtifact)]
struct Nowhere {}

#[item_writer]
impl Nowhere {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, items: &[u64]) -> Result<(), Trouble> {
        black_box(items);
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// Writes rows through the chunk transaction, but not every `bad`th.
#[derive(BatchArtifact)]
struct Rows {
    #[batch_property(name = "bad")]
    bad: u64,
}

#[item_writer]
impl Rows {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, items: &[u64], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let connection = tx.sqlite()?;
        for item in items {
            if self.bad > 0 && item % self.bad == 700 {
                return Err(Trouble::Bad.into());
            }
            diesel::insert_into(row::table)
                .values(row::number.eq(i64::try_from(*item)?))
                .execute(connection)?;
        }
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

#[derive(BatchArtifact)]
struct SkipCounter {
    skips: u64,
}

#[skip_listener]
impl SkipCounter {
    #[on_skip_in_write]
    fn skipped(&mut self, _error: &BatchError, _item: &u64) {
        self.skips += 1;
    }
}

fn in_memory(job: &str) -> Duration {
    let items = IN_MEMORY.to_string();
    let parameters = [
        ("reader", "Numbers"),
        ("processor", "Halves"),
        ("writer", "Nowhere"),
        ("commit.interval", "1000"),
        ("chunk.size", "1000"),
        ("items", &items),
    ];
    run_job(job, "sqlite://:memory:", &parameters)
}

fn into_sqlite(job: &str, bad: &str) -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").display().to_string();
    let table = "PRAGMA journal_mode = WAL; CREATE TABLE row (number BIGINT NOT NULL)";
    let made = SqliteConnection::establish(&file).unwrap().batch_execute(table);
    made.unwrap();
    let database = format!("sqlite://{file}?synchronous=normal");
    let rows = ROWS.to_string();
    let parameters = [
        ("reader", "Numbers"),
        ("processor", "Same"),
        ("writer", "Rows"),
        ("commit.interval", "1000"),
        ("chunk.size", "1000"),
        ("items", &rows),
        ("bad", bad),
    ];
    run_job(job, &database, &parameters)
}

fn per(time: Duration, items: u64) -> f64 {
    time.as_secs_f64() * 1e9 / items as f64
}

fn main() {
    let mut programs: Vec<Program<'_>> = vec![
        ("memory, no rules", Box::new(|| in_memory("bench"))),
        ("memory, rules", Box::new(|| in_memory("bench-faults"))),
        ("memory, listener", Box::new(|| in_memory("bench-listened"))),
        ("SQLite, no rules", Box::new(|| into_sqlite("bench", "0"))),
        ("SQLite, rules", Box::new(|| into_sqlite("bench-faults", "0"))),
        (
            "SQLite, a bad item in each chunk",
            Box::new(|| into_sqlite("bench-faults", "1000")),
        ),
    ];
    let times = in_turn(ROUNDS, &mut programs);
    let [plain, rules, listened, rows, ruled_rows, bad_rows] = times.try_into().unwrap();

    head("Skip and retry, chunks of 1000, a commit in each");
    report("in memory, no rules", per(plain, IN_MEMORY), "ns/item", None);
    report(
        "in memory, rules, nothing fails",
        per(rules, IN_MEMORY),
        "ns/item",
        None,
    );
    report("rules / no rules, in memory", ratio(rules, plain), "x", Some(1.1));
    report(
        "in memory, with a skip listener",
        per(listened, IN_MEMORY),
        "ns/item",
        None,
    );
    report("rows into SQLite, no rules", per(rows, ROWS), "ns/row", None);
    report("rules / no rules, rows", ratio(ruled_rows, rows), "x", Some(1.1));
    report(
        "a bad item in each chunk / none, rows",
        ratio(bad_rows, ruled_rows),
        "x",
        None,
    );
}
