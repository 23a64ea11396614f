//! The jobs by hand: csv, rusqlite and postgres, with a checkpoint in the transaction of each chunk.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark")]

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use csv::{Position, StringRecord};
use peers::{CHUNK, ITEMS, PARTITIONS, Person, Task, report};
use postgres::{Client, NoTls, Statement, Transaction};
use rusqlite::{Connection, params};

const INSERT: &str = "INSERT INTO person SELECT * FROM UNNEST($1::bigint[], $2::text[], $3::text[], $4::text[], $5::float8[], $6::text[])";
const CHECKPOINT: &str = "UPDATE checkpoint SET byte = $2, line = $3, written = $4 WHERE part = $1";
/// SQLite numbers `$1` by its place in the statement.
const CHECKPOINT_SQLITE: &str = "UPDATE checkpoint SET byte = ?2, line = ?3, written = ?4 WHERE part = ?1";
const TABLE: &str = "CREATE TABLE checkpoint (part BIGINT PRIMARY KEY, byte BIGINT NOT NULL, line BIGINT NOT NULL, written BIGINT NOT NULL)";

/// The rows of the input, chunk by chunk.
struct Rows {
    csv: csv::Reader<File>,
    header: StringRecord,
    row: StringRecord,
    chunk: Vec<Person>,
    fail_at: Option<i64>,
}

impl Rows {
    fn open(task: &Task, from: Option<(i64, i64)>) -> Self {
        let mut csv = csv::Reader::from_path(task.input()).unwrap();
        let header = csv.headers().unwrap().clone();
        if let Some((byte, line)) = from.filter(|(byte, _)| *byte > 0) {
            let mut position = Position::new();
            position
                .set_byte(byte.try_into().unwrap())
                .set_line(line.try_into().unwrap());
            csv.seek(position).unwrap();
        }
        let (row, chunk) = (StringRecord::new(), Vec::with_capacity(CHUNK));
        Self {
            csv,
            header,
            row,
            chunk,
            fail_at: task.fail_at(),
        }
    }

    /// Reads the next chunk. A row that makes the job fail ends the process.
    fn next(&mut self) -> bool {
        self.chunk.clear();
        while self.chunk.len() < CHUNK && self.csv.read_record(&mut self.row).unwrap() {
            let person: Person = self.row.deserialize(Some(&self.header)).unwrap();
            if self.fail_at == Some(person.id) {
                std::process::exit(0);
            }
            self.chunk.push(person.processed());
        }
        !self.chunk.is_empty()
    }

    fn position(&self) -> (i64, i64) {
        let position = self.csv.position();
        (
            position.byte().try_into().unwrap(),
            position.line().try_into().unwrap(),
        )
    }
}

fn sqlite(task: &Task) -> Connection {
    let connection = Connection::open(task.value("file")).unwrap();
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
        .unwrap();
    connection
}

fn csv_to_csv(task: &Task) -> u64 {
    let connection = sqlite(task);
    let mut rows = Rows::open(task, None);
    let file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .open(task.output())
        .unwrap();
    let mut output = csv::Writer::from_writer(BufWriter::new(file));
    let mut written = 0;
    while rows.next() {
        rows.chunk
            .iter()
            .for_each(|person| output.serialize(person).unwrap());
        output.flush().unwrap();
        written += rows.chunk.len() as u64;
        let (byte, line) = rows.position();
        let mut update = connection.prepare_cached(CHECKPOINT_SQLITE).unwrap();
        assert_eq!(
            update
                .execute(params![0, byte, line, written.cast_signed()])
                .unwrap(),
            1
        );
    }
    let mut file = output.into_inner().unwrap().into_inner().unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    file.sync_all().unwrap();
    written
}

fn csv_to_sqlite(task: &Task) -> u64 {
    let mut connection = sqlite(task);
    let mut rows = Rows::open(task, None);
    let mut written = 0;
    while rows.next() {
        let tx = connection.transaction().unwrap();
        let mut insert = tx
            .prepare_cached("INSERT INTO person VALUES (?, ?, ?, ?, ?, ?)")
            .unwrap();
        for p in &rows.chunk {
            insert
                .execute(params![p.id, p.first, p.last, p.email, p.amount, p.date])
                .unwrap();
        }
        drop(insert);
        written += rows.chunk.len() as u64;
        let (byte, line) = rows.position();
        let changed = tx.prepare_cached(CHECKPOINT_SQLITE).unwrap().execute(params![
            0,
            byte,
            line,
            written.cast_signed()
        ]);
        assert_eq!(changed.unwrap(), 1);
        tx.commit().unwrap();
    }
    written
}

fn postgres(task: &Task) -> Client {
    Client::connect(&task.postgres(), NoTls).unwrap()
}

struct Statements {
    insert: Statement,
    checkpoint: Statement,
}

impl Statements {
    fn new(client: &mut Client) -> Self {
        let (insert, checkpoint) = (
            client.prepare(INSERT).unwrap(),
            client.prepare(CHECKPOINT).unwrap(),
        );
        Self { insert, checkpoint }
    }
}

fn insert(
    tx: &mut Transaction<'_>,
    statements: &Statements,
    people: &[Person],
) -> Result<(), postgres::Error> {
    fn column<'a, T>(people: &'a [Person], of: impl Fn(&'a Person) -> T) -> Vec<T> {
        people.iter().map(of).collect()
    }
    let (ids, amounts) = (column(people, |p| p.id), column(people, |p| p.amount));
    let texts: [fn(&Person) -> &str; 4] = [|p| &p.first, |p| &p.last, |p| &p.email, |p| &p.date];
    let [first, last, email, date] = texts.map(|of| column(people, of));
    tx.execute(
        &statements.insert,
        &[&ids, &first, &last, &email, &amounts, &date],
    )
    .map(drop)
}

/// Inserts the rows that the database accepts, by halving a list that it rejects; returns how many.
fn insert_good(tx: &mut Transaction<'_>, statements: &Statements, people: &[Person]) -> u64 {
    let mut savepoint = tx.transaction().unwrap();
    if insert(&mut savepoint, statements, people).is_ok() {
        savepoint.commit().unwrap();
        return people.len() as u64;
    }
    savepoint.rollback().unwrap();
    if people.len() == 1 {
        return 0;
    }
    let (left, right) = people.split_at(people.len() / 2);
    insert_good(tx, statements, left) + insert_good(tx, statements, right)
}

fn csv_to_postgres(task: &Task) -> u64 {
    let mut client = postgres(task);
    let statements = Statements::new(&mut client);
    let at = client
        .query_one("SELECT byte, line, written FROM checkpoint WHERE part = 0", &[])
        .unwrap();
    let mut rows = Rows::open(task, Some((at.get(0), at.get(1))));
    let before = at.get::<_, i64>(2).cast_unsigned();
    let mut written = before;
    while rows.next() {
        let mut tx = client.transaction().unwrap();
        if task.verb == "skip" {
            written += insert_good(&mut tx, &statements, &rows.chunk);
        } else {
            insert(&mut tx, &statements, &rows.chunk).unwrap();
            written += rows.chunk.len() as u64;
        }
        let (byte, line) = rows.position();
        tx.execute(
            &statements.checkpoint,
            &[&0_i64, &byte, &line, &written.cast_signed()],
        )
        .unwrap();
        tx.commit().unwrap();
    }
    written - before
}

/// One row of a run, made and ended, as a job without work needs.
fn cold(task: &Task) -> u64 {
    let mut client = postgres(task);
    client
        .execute("INSERT INTO checkpoint VALUES (1, 0, 0, 0)", &[])
        .unwrap();
    client
        .execute(CHECKPOINT, &[&1_i64, &1_i64, &1_i64, &0_i64])
        .unwrap();
    0
}

/// Two threads take the partitions in turn. A partition has its own row, and one transaction.
fn partitions(task: &Task) -> u64 {
    let next = AtomicI64::new(1);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = postgres(task);
                let statements = Statements::new(&mut client);
                loop {
                    let part = next.fetch_add(1, Ordering::Relaxed);
                    if part > PARTITIONS {
                        return;
                    }
                    let ids = (part - 1) * ITEMS..part * ITEMS;
                    let people: Vec<_> = ids.map(|id| Person::number(id).processed()).collect();
                    client
                        .execute("INSERT INTO checkpoint VALUES ($1, 0, 0, 0)", &[&part])
                        .unwrap();
                    let mut tx = client.transaction().unwrap();
                    insert(&mut tx, &statements, &people).unwrap();
                    tx.execute(&statements.checkpoint, &[&part, &ITEMS, &ITEMS, &ITEMS])
                        .unwrap();
                    tx.commit().unwrap();
                }
            });
        }
    });
    (PARTITIONS * ITEMS).cast_unsigned()
}

type Job = fn(&Task) -> u64;

const JOBS: [(&str, Job); 7] = [
    ("csv-csv", csv_to_csv),
    ("csv-sqlite", csv_to_sqlite),
    ("csv-postgres", csv_to_postgres),
    ("skip", csv_to_postgres),
    ("restart", csv_to_postgres),
    ("cold", cold),
    ("partitions", partitions),
];

fn main() {
    let task = Task::of_process();
    let begin = Instant::now();
    let first = format!("{TABLE}; INSERT INTO checkpoint VALUES (0, 0, 0, 0)");
    match task.verb.as_str() {
        "prepare-sqlite" => sqlite(&task).execute_batch(&first).unwrap(),
        "prepare-postgres" => postgres(&task).batch_execute(&first).unwrap(),
        _ => {
            let written = task.job(&JOBS)(&task);
            report(&task, written, begin.elapsed());
        }
    }
}
