//! A million people: the data of the database benchmarks.
#![allow(missing_docs, reason = "a benchmark")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use batch_items::{DelimitedItemReader, TableItemWriter};
use batch_runtime::prelude::*;
use csv::StringRecord;
use diesel::backend::Backend;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::serialize::ToSql;
use diesel::sql_types::{BigInt, Double, HasSqlType, Text};
use serde::{Deserialize, Serialize};

use crate::{closed, opened, run_whole_job};

#[item_reader("PeopleFile")]
type PeopleFile = DelimitedItemReader<Person>;

#[item_writer("PeopleTable")]
type PeopleTable = TableItemWriter<Person>;

pub const ROWS: u32 = 1_000_000;
pub const TABLE: &str =
    "CREATE TABLE person (id INTEGER, first TEXT, last TEXT, email TEXT, amount REAL, date TEXT)";

diesel::table! {
    person (id) {
        id -> BigInt,
        first -> Text,
        last -> Text,
        email -> Text,
        amount -> Double,
        date -> Text,
    }
}

#[derive(Clone, Deserialize, Serialize, Insertable)]
#[diesel(table_name = person, treat_none_as_default_value = false)]
pub struct Person {
    pub id: i64,
    pub first: String,
    pub last: String,
    pub email: String,
    pub amount: f64,
    pub date: String,
}

impl Person {
    #[must_use]
    pub fn processed(mut self) -> Self {
        self.last = self.last.to_uppercase();
        self.amount = (self.amount * 110.0).round() / 100.0;
        self
    }
}

/// Reads the rows of a file, from any position.
#[derive(BatchArtifact)]
struct PersonReader {
    #[batch_property(name = "input")]
    input: PathBuf,
    rows: Option<csv::Reader<File>>,
    header: StringRecord,
    row: StringRecord,
}

#[derive(Serialize, Deserialize)]
struct Position {
    byte: u64,
    line: u64,
    record: u64,
}

#[item_reader]
impl PersonReader {
    #[open]
    fn open(&mut self, checkpoint: Option<Position>) -> Result<(), csv::Error> {
        opened();
        let mut rows = csv::Reader::from_path(&self.input)?;
        self.header = rows.headers()?.clone();
        if let Some(Position { byte, line, record }) = checkpoint {
            rows.seek(
                csv::Position::new()
                    .set_byte(byte)
                    .set_line(line)
                    .set_record(record)
                    .clone(),
            )?;
        }
        self.rows = Some(rows);
        Ok(())
    }
    #[read_item]
    fn read(&mut self) -> Result<Option<Person>, csv::Error> {
        let Some(rows) = &mut self.rows else {
            return Ok(None);
        };
        if !rows.read_record(&mut self.row)? {
            return Ok(None);
        }
        self.row.deserialize(Some(&self.header)).map(Some)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Position {
        let position = self
            .rows
            .as_ref()
            .map_or_else(csv::Position::new, |rows| rows.position().clone());
        Position {
            byte: position.byte(),
            line: position.line(),
            record: position.record(),
        }
    }
    #[close]
    fn close(&mut self) {
        closed();
    }
}

#[derive(BatchArtifact)]
struct PersonProcessor {}

#[item_processor]
impl PersonProcessor {
    #[process_item]
    fn process(&mut self, person: Person) -> Option<Person> {
        Some(person.processed())
    }
}

/// Inserts people on one kind of connection.
macro_rules! insert {
    ($people:ident, $connection:expr) => {
        let connection = $connection;
        let (many, rest) = $people.as_chunks();
        for people in many {
            InsertMany(people).execute(connection)?;
        }
        for one in rest {
            diesel::insert_into(person::table)
                .values(one)
                .execute(connection)?;
        }
    };
}

#[derive(BatchArtifact)]
struct PersonWriter {}

#[item_writer]
impl PersonWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, people: &[Person], tx: &mut ChunkTransaction) -> QueryResult<()> {
        if let Ok(connection) = tx.sqlite() {
            insert!(people, connection);
        } else {
            insert!(people, tx.postgres()?);
        }
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// One statement for 20 rows, which diesel prepares once: the type is static, and so is its SQL.
struct InsertMany<'a>(&'a [Person; 20]);

impl QueryId for InsertMany<'_> {
    type QueryId = InsertMany<'static>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<DB: Backend> QueryFragment<DB> for InsertMany<'_>
where
    i64: ToSql<BigInt, DB>,
    String: ToSql<Text, DB>,
    f64: ToSql<Double, DB>,
    DB: HasSqlType<BigInt> + HasSqlType<Text> + HasSqlType<Double>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("INSERT INTO person (id, first, last, email, amount, date) VALUES ");
        for (index, person) in self.0.iter().enumerate() {
            out.push_sql(if index == 0 { "(" } else { ",(" });
            out.push_bind_param::<BigInt, _>(&person.id)?;
            for text in [&person.first, &person.last, &person.email] {
                out.push_sql(",");
                out.push_bind_param::<Text, _>(text)?;
            }
            out.push_sql(",");
            out.push_bind_param::<Double, _>(&person.amount)?;
            out.push_sql(",");
            out.push_bind_param::<Text, _>(&person.date)?;
            out.push_sql(")");
        }
        Ok(())
    }
}

impl<C> RunQueryDsl<C> for InsertMany<'_> {}

pub fn write_input(path: &Path, rows: u32) {
    let mut out = BufWriter::new(File::create(path).unwrap());
    writeln!(out, "id,first,last,email,amount,date").unwrap();
    for n in 0..rows {
        let (cents, day) = (n % 100_000, n % 28 + 1);
        writeln!(
            out,
            "{n},First{n},Last{n},first{n}.last{n}@example.com,{}.{:02},2026-11-{day:02}",
            cents / 100,
            cents % 100
        )
        .unwrap();
    }
    out.flush().unwrap();
}

pub fn new_table(folder: &Path) -> PathBuf {
    let file = folder.join("target.db");
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(folder.join(format!("target.db{suffix}")));
    }
    SqliteConnection::establish(&file.display().to_string())
        .unwrap()
        .batch_execute(TABLE)
        .unwrap();
    file
}

/// Checks that the table has all rows.
pub fn count(file: &Path) {
    let rows: u32 = rusqlite::Connection::open(file)
        .unwrap()
        .query_row("SELECT COUNT(*) FROM person", [], |r| r.get(0))
        .unwrap();
    assert_eq!(rows, ROWS);
}

/// Writes the rows by the reader and the writer of batch-items.
pub fn into_table_by_items(url: &str, input: &str, pipeline: bool) -> Duration {
    run_whole_job(
        "bench",
        url,
        &[
            ("reader", "PeopleFile"),
            ("processor", "PersonProcessor"),
            ("writer", "PeopleTable"),
            ("commit.interval", "1000"),
            ("chunk.size", "1000"),
            ("resource", input),
            ("table", "person"),
            ("batch.chunk.pipeline", if pipeline { "true" } else { "false" }),
        ],
    )
}

/// Loads the rows with rusqlite, in transactions of 1000, without a checkpoint.
pub fn into_sqlite_by_hand(folder: &Path, input: &str, synchronous: &str) -> Duration {
    let file = new_table(folder);
    let mut connection = rusqlite::Connection::open(&file).unwrap();
    connection
        .execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous};"
        ))
        .unwrap();
    let begin = Instant::now();
    let mut rows = csv::Reader::from_path(input).unwrap();
    let (header, mut row) = (rows.headers().unwrap().clone(), StringRecord::new());
    let mut chunk = Vec::with_capacity(1000);
    loop {
        chunk.clear();
        while chunk.len() < 1000 && rows.read_record(&mut row).unwrap() {
            chunk.push(row.deserialize::<Person>(Some(&header)).unwrap().processed());
        }
        if chunk.is_empty() {
            break;
        }
        let transaction = connection.transaction().unwrap();
        let mut insert = transaction
            .prepare_cached("INSERT INTO person VALUES (?, ?, ?, ?, ?, ?)")
            .unwrap();
        for p in &chunk {
            insert
                .execute((p.id, &p.first, &p.last, &p.email, p.amount, &p.date))
                .unwrap();
        }
        drop(insert);
        transaction.commit().unwrap();
    }
    let time = begin.elapsed();
    count(&file);
    time
}
