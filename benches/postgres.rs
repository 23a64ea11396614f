//! PostgreSQL: CSV rows with a checkpoint in each transaction (gate G6), and the cost of a checkpoint alone (gate G7b),
//! beside the same statements by hand, which diesel prepares once. The server is on the same machine, and does not wait for its
//! disk, so the benchmark compares round trips.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::time::{Duration, Instant};

use batch_bench::person::{Person, into_table_by_items, write_input};
use batch_bench::{Program, head, in_turn, ratio, report, run};
use batch_runtime::BatchRuntime;
use batch_runtime::prelude::*;
use batch_test_servers::{Kind, Server};
use csv::StringRecord;
use diesel::connection::SimpleConnection;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::{Array, BigInt, Double, Text};

const COMMITS: u64 = 2_000;
/// So many that the launch of a job does not count. More would make the rounds vary: the server is on the same machine.
const ROWS: u32 = 300_000;

/// Reduces the server's background work, which runs at its own times.
const QUIET: [&str; 5] = [
    "ALTER SYSTEM SET autovacuum = off",
    "ALTER SYSTEM SET max_wal_size = '8GB'",
    "ALTER SYSTEM SET checkpoint_timeout = '1h'",
    "ALTER SYSTEM SET bgwriter_lru_maxpages = 0",
    "SELECT pg_reload_conf()",
];

const TABLE: &str =
    "CREATE TABLE person (id BIGINT, first TEXT, last TEXT, email TEXT, amount FLOAT8, date TEXT)";

#[derive(BatchArtifact)]
struct PeopleWriter {}

#[item_writer]
impl PeopleWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, people: &[Person], tx: &mut ChunkTransaction) -> QueryResult<()> {
        insert(tx.postgres()?, INSERT, people)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// The usual statement.
const INSERT: &str = "INSERT INTO person SELECT * FROM UNNEST($1, $2, $3, $4, $5, $6)";
/// The statement of batch-items.
const INSERT_ONE_BY_ONE: &str =
    "INSERT INTO person SELECT UNNEST($1), UNNEST($2), UNNEST($3), UNNEST($4), UNNEST($5), UNNEST($6)";

/// Writes all rows by one statement, with an array per column.
fn insert(connection: &mut PgConnection, statement: &str, people: &[Person]) -> QueryResult<()> {
    fn column<'a, T>(people: &'a [Person], of: impl Fn(&'a Person) -> T) -> Vec<T> {
        people.iter().map(of).collect()
    }
    diesel::sql_query(statement)
        .bind::<Array<BigInt>, _>(column(people, |p| p.id))
        .bind::<Array<Text>, _>(column(people, |p| p.first.as_str()))
        .bind::<Array<Text>, _>(column(people, |p| p.last.as_str()))
        .bind::<Array<Text>, _>(column(people, |p| p.email.as_str()))
        .bind::<Array<Double>, _>(column(people, |p| p.amount))
        .bind::<Array<Text>, _>(column(people, |p| p.date.as_str()))
        .execute(connection)
        .map(drop)
}

table! {
    batch_step_execution (step_execution_id) {
        step_execution_id -> BigInt,
        version -> BigInt,
    }
}

/// A checkpoint by hand: two updates, on the rows of the engine's run.
struct Checkpoints {
    id: i64,
    version: i64,
}

impl Checkpoints {
    fn new(connection: &mut PgConnection) -> Self {
        use batch_step_execution::dsl as step;
        let (id, version) = step::batch_step_execution
            .select((step::step_execution_id, step::version))
            .order(step::step_execution_id.desc())
            .first(connection)
            .unwrap();
        Self { id, version }
    }

    fn write(&mut self, connection: &mut PgConnection, n: i64) -> QueryResult<()> {
        let changed = UpdateStep {
            id: self.id,
            version: self.version,
            n,
        }
        .execute(connection)?;
        self.version += 1;
        assert_eq!(changed, 1);
        let context = format!("{{\"@class\":\"java.util.HashMap\",\"batch.reader.checkpoint\":\"{n}\"}}");
        UpdateContext { id: self.id, context }
            .execute(connection)
            .map(drop)
    }
}

/// Statements that are prepared once, and found by their types.
#[derive(QueryId)]
struct UpdateStep {
    id: i64,
    version: i64,
    n: i64,
}

#[derive(QueryId)]
struct UpdateContext {
    id: i64,
    context: String,
}

impl QueryFragment<Pg> for UpdateStep {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        pass.push_sql(
            "UPDATE batch_step_execution SET last_updated = now(), filter_count = 0, rollback_count = 0, read_skip_count = 0, \
             process_skip_count = 0, write_skip_count = 0, version = 1 + ",
        );
        pass.push_bind_param::<BigInt, _>(&self.version)?;
        for column in [", read_count = ", ", write_count = ", ", commit_count = "] {
            pass.push_sql(column);
            pass.push_bind_param::<BigInt, _>(&self.n)?;
        }
        pass.push_sql(" WHERE step_execution_id = ");
        pass.push_bind_param::<BigInt, _>(&self.id)?;
        pass.push_sql(" AND version = ");
        pass.push_bind_param::<BigInt, _>(&self.version)
    }
}

impl QueryFragment<Pg> for UpdateContext {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        pass.push_sql("UPDATE batch_step_execution_context SET serialized_context = NULL, short_context = ");
        pass.push_bind_param::<Text, _>(&self.context)?;
        pass.push_sql(" WHERE step_execution_id = ");
        pass.push_bind_param::<BigInt, _>(&self.id)
    }
}

impl RunQueryDsl<PgConnection> for UpdateStep {}
impl RunQueryDsl<PgConnection> for UpdateContext {}

fn commits_of_engine(url: &str) -> Duration {
    run(
        url,
        &[
            ("reader", "CommitReader"),
            ("commits", &COMMITS.to_string()),
            ("processor", "CommitProcessor"),
            ("writer", "CommitWriter"),
            ("commit.interval", "1"),
            ("chunk.size", "1"),
        ],
    )
}

fn commits_by_hand(url: &str) -> Duration {
    let mut connection = PgConnection::establish(url).unwrap();
    let mut checkpoints = Checkpoints::new(&mut connection);
    let begin = Instant::now();
    for n in 0..i64::try_from(COMMITS).unwrap() {
        let written: QueryResult<()> = connection.transaction(|connection| checkpoints.write(connection, n));
        written.unwrap();
    }
    begin.elapsed()
}

fn rows_of_engine(url: &str, input: &str) -> Duration {
    let time = run(
        url,
        &[
            ("reader", "PersonReader"),
            ("processor", "PersonProcessor"),
            ("writer", "PeopleWriter"),
            ("commit.interval", "1000"),
            ("chunk.size", "1000"),
            ("input", input),
        ],
    );
    empty(url);
    time
}

/// The reader and the writer of batch-items.
fn rows_of_items(url: &str, input: &str, pipeline: bool) -> Duration {
    let time = into_table_by_items(url, input, pipeline);
    empty(url);
    time
}

fn rows_by_hand(url: &str, input: &str, statement: &str) -> Duration {
    let mut connection = PgConnection::establish(url).unwrap();
    let mut checkpoints = Checkpoints::new(&mut connection);
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
        let byte = i64::try_from(rows.position().byte()).unwrap();
        let written: QueryResult<()> = connection.transaction(|connection| {
            insert(connection, statement, &chunk)?;
            checkpoints.write(connection, byte)
        });
        written.unwrap();
    }
    let time = begin.elapsed();
    empty(url);
    time
}

fn empty(url: &str) {
    let mut connection = PgConnection::establish(url).unwrap();
    let counted = diesel::sql_query("DELETE FROM person").execute(&mut connection);
    assert_eq!(counted.unwrap(), ROWS as usize);
    connection.batch_execute("TRUNCATE person; CHECKPOINT").unwrap();
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("people.csv");
    write_input(&input, ROWS);
    let input = input.display().to_string();
    let server = Server::start(Kind::Postgres);
    let url = server.new_database();
    BatchRuntime::builder().repository(&url).build().unwrap();
    let mut connection = PgConnection::establish(&url).unwrap();
    connection.batch_execute(TABLE).unwrap();
    for quiet in QUIET {
        connection.batch_execute(quiet).unwrap();
    }

    head("PostgreSQL on the same machine");
    let mut programs: Vec<Program<'_>> = vec![
        ("engine", Box::new(|| commits_of_engine(&url))),
        ("by hand", Box::new(|| commits_by_hand(&url))),
    ];
    let [ours, hand] = in_turn(15, &mut programs).try_into().unwrap();
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / COMMITS as f64;
    report(
        "a checkpoint, two statements by hand, prepared",
        micros(hand),
        "us",
        None,
    );
    report("a checkpoint, engine", micros(ours), "us", None);
    report(
        "a checkpoint, engine / by hand (G7b)",
        ratio(ours, hand),
        "x",
        Some(1.25),
    );

    let mut programs: Vec<Program<'_>> = vec![
        ("by hand", Box::new(|| rows_by_hand(&url, &input, INSERT))),
        (
            "by hand, as batch-items",
            Box::new(|| rows_by_hand(&url, &input, INSERT_ONE_BY_ONE)),
        ),
        ("engine", Box::new(|| rows_of_engine(&url, &input))),
        ("batch-items", Box::new(|| rows_of_items(&url, &input, false))),
        ("in a pipeline", Box::new(|| rows_of_items(&url, &input, true))),
    ];
    let [hand, best, engine, items, pipeline] = in_turn(11, &mut programs).try_into().unwrap();
    let nanos = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(ROWS);
    report(
        "rows, by hand with UNNEST, checkpoint in each commit",
        nanos(hand),
        "ns/row",
        None,
    );
    report(
        "rows, engine, checkpoint in each commit",
        nanos(engine),
        "ns/row",
        None,
    );
    report(
        "rows, by hand with the statement of batch-items",
        nanos(best),
        "ns/row",
        None,
    );
    for (what, time, gate) in [
        ("rows, engine / by hand (G6)", engine, 1.15),
        ("rows, reader and writer of batch-items / by hand", items, 1.10),
        ("the same in a pipeline", pipeline, 0.90),
    ] {
        report(what, ratio(time, hand), "x", Some(gate));
    }
    report(
        "the same in a pipeline / by hand with its statement",
        ratio(pipeline, best),
        "x",
        None,
    );
}
