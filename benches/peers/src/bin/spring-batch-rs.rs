//! The jobs on spring-batch-rs, which keeps no repository: the writers commit each chunk.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark")]

use std::time::Instant;

use peers::{CHUNK, Person, Task, report};
use spring_batch_rs::BatchError;
use spring_batch_rs::core::item::{ItemProcessor, ItemWriter};
use spring_batch_rs::core::job::{Job, JobBuilder};
use spring_batch_rs::core::step::StepBuilder;
use spring_batch_rs::item::csv::csv_reader::CsvItemReaderBuilder;
use spring_batch_rs::item::csv::csv_writer::CsvItemWriterBuilder;
use spring_batch_rs::item::rdbc::RdbcItemWriterBuilder;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

struct Process;

impl ItemProcessor<Person, Person> for Process {
    fn process(&self, person: Person) -> Result<Option<Person>, BatchError> {
        Ok(Some(person.processed()))
    }
}

fn run(task: &Task, writer: &impl ItemWriter<Person>) {
    let reader = CsvItemReaderBuilder::<Person>::new()
        .has_headers(true)
        .from_path(task.input());
    let step = StepBuilder::new("rows")
        .chunk(CHUNK.try_into().unwrap())
        .reader(&reader)
        .processor(&Process)
        .writer(writer)
        .build();
    // Its database writers block inside an asynchronous runtime.
    tokio::task::block_in_place(|| JobBuilder::new().start(&step).build().run()).unwrap();
}

fn table() -> RdbcItemWriterBuilder<Person> {
    RdbcItemWriterBuilder::new()
        .table("person")
        .column("id", |p: &Person| p.id.into())
        .column("first", |p: &Person| p.first.as_str().into())
        .column("last", |p: &Person| p.last.as_str().into())
        .column("email", |p: &Person| p.email.as_str().into())
        .column("amount", |p: &Person| p.amount.into())
        .column("date", |p: &Person| p.date.as_str().into())
}

#[derive(Clone, Copy)]
enum Target {
    File,
    Sqlite,
    Postgres,
}

const JOBS: [(&str, Target); 3] = [
    ("csv-csv", Target::File),
    ("csv-sqlite", Target::Sqlite),
    ("csv-postgres", Target::Postgres),
];

async fn job(task: &Task) {
    match task.job(&JOBS) {
        Target::File => {
            let writer = CsvItemWriterBuilder::<Person>::new()
                .has_headers(true)
                .from_path(task.output());
            run(task, &writer);
        }
        Target::Sqlite => {
            let options = SqliteConnectOptions::new()
                .filename(task.value("file"))
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full);
            let pool = SqlitePoolOptions::new()
                .max_connections(1)
                .connect_with(options)
                .await
                .unwrap();
            run(task, &table().sqlite(&pool).build_sqlite());
            pool.close().await;
        }
        Target::Postgres => {
            let pool = sqlx::PgPool::connect(&task.postgres()).await.unwrap();
            run(task, &table().postgres(&pool).build_postgres());
            pool.close().await;
        }
    }
}

fn main() {
    let task = Task::of_process();
    let begin = Instant::now();
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    tokio.block_on(async { job(&task).await });
    let time = begin.elapsed();
    report(&task, task.value("expected").parse().unwrap(), time);
}
