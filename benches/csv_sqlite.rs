//! Gates G5 and G5b: a million CSV rows into SQLite, in transactions of 1000, with a checkpoint in each, beside a
//! hand-written rusqlite program with the same commit interval (which keeps no checkpoint) and spring-batch-rs (neither).
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::path::Path;
use std::time::{Duration, Instant};

use batch_bench::person::{
    Person, ROWS, count, into_sqlite_by_hand, into_table_by_items, new_table, write_input,
};
use batch_bench::{Program, head, in_turn, ratio, report, run};
use spring_batch_rs::BatchError as RivalError;
use spring_batch_rs::core::item::ItemProcessor as RivalProcess;
use spring_batch_rs::core::job::{Job, JobBuilder};
use spring_batch_rs::core::step::StepBuilder;
use spring_batch_rs::item::csv::csv_reader::CsvItemReaderBuilder;
use spring_batch_rs::item::rdbc::RdbcItemWriterBuilder;

const ROUNDS: usize = 5;

fn url(file: &Path, synchronous: &str) -> String {
    format!(
        "sqlite://{}?synchronous={}",
        file.display(),
        synchronous.to_lowercase()
    )
}

fn engine(folder: &Path, input: &str, synchronous: &str) -> Duration {
    let file = new_table(folder);
    let time = run(
        &url(&file, synchronous),
        &[
            ("reader", "PersonReader"),
            ("processor", "PersonProcessor"),
            ("writer", "PersonWriter"),
            ("commit.interval", "1000"),
            ("chunk.size", "1000"),
            ("input", input),
        ],
    );
    count(&file);
    time
}

fn items(folder: &Path, input: &str, synchronous: &str, pipeline: bool) -> Duration {
    let file = new_table(folder);
    let time = into_table_by_items(&url(&file, synchronous), input, pipeline);
    count(&file);
    time
}

struct RivalProcessor;
impl RivalProcess<Person, Person> for RivalProcessor {
    fn process(&self, person: Person) -> Result<Option<Person>, RivalError> {
        Ok(Some(person.processed()))
    }
}

fn rival(folder: &Path, input: &str, synchronous: &str, tokio: &tokio::runtime::Runtime) -> Duration {
    let file = new_table(folder);
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&file)
        .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal)
        .synchronous(match synchronous {
            "FULL" => sqlx::sqlite::SqliteSynchronous::Full,
            _ => sqlx::sqlite::SqliteSynchronous::Normal,
        });
    // The writer blocks inside an asynchronous runtime, so it runs on one of its threads.
    let time = tokio.block_on(async {
        let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
        let begin = Instant::now();
        let reader = CsvItemReaderBuilder::<Person>::new()
            .has_headers(true)
            .from_path(input);
        let writer = RdbcItemWriterBuilder::<Person>::new()
            .sqlite(&pool)
            .table("person")
            .column("id", |p: &Person| p.id.into())
            .column("first", |p: &Person| p.first.as_str().into())
            .column("last", |p: &Person| p.last.as_str().into())
            .column("email", |p: &Person| p.email.as_str().into())
            .column("amount", |p: &Person| p.amount.into())
            .column("date", |p: &Person| p.date.as_str().into())
            .build_sqlite();
        let step = StepBuilder::new("step")
            .chunk(1000)
            .reader(&reader)
            .processor(&RivalProcessor)
            .writer(&writer)
            .build();
        tokio::task::block_in_place(|| JobBuilder::new().start(&step).build().run()).unwrap();
        let time = begin.elapsed();
        pool.close().await;
        time
    });
    count(&file);
    time
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("people.csv");
    write_input(&input, ROWS);
    let (folder, input) = (folder.path(), input.display().to_string());
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();

    head("A million CSV rows into SQLite, commits of 1000");
    for synchronous in ["NORMAL", "FULL"] {
        let mut programs: Vec<Program<'_>> = vec![
            ("engine", Box::new(|| engine(folder, &input, synchronous))),
            (
                "by hand (rusqlite)",
                Box::new(|| into_sqlite_by_hand(folder, &input, synchronous)),
            ),
            (
                "spring-batch-rs",
                Box::new(|| rival(folder, &input, synchronous, &tokio)),
            ),
            (
                "batch-items",
                Box::new(|| items(folder, &input, synchronous, false)),
            ),
            (
                "in a pipeline",
                Box::new(|| items(folder, &input, synchronous, true)),
            ),
        ];
        let [engine, hand, rival, items, pipeline] = in_turn(ROUNDS, &mut programs).try_into().unwrap();
        let nanos = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(ROWS);
        for (what, time) in [
            ("by hand with rusqlite, no checkpoint", hand),
            ("engine, checkpoint in each commit", engine),
            ("spring-batch-rs, no checkpoint", rival),
        ] {
            report(&format!("{synchronous}, {what}"), nanos(time), "ns/row", None);
        }
        for (what, time, other, gate) in [
            ("engine / by hand (G5)", engine, hand, 1.30),
            ("engine / spring-batch-rs (G5b)", engine, rival, 0.55),
            ("batch-items / by hand", items, hand, 1.20),
            ("batch-items in a pipeline / by hand", pipeline, hand, 0.85),
            ("batch-items / spring-batch-rs", items, rival, 0.50),
            (
                "batch-items in a pipeline / spring-batch-rs",
                pipeline,
                rival,
                0.50,
            ),
        ] {
            report(
                &format!("{synchronous}, {what}"),
                ratio(time, other),
                "x",
                Some(gate),
            );
        }
    }
}
