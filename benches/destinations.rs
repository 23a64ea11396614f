//! What a marker costs: CSV rows to a second PostgreSQL database, beside the same job in the transaction of the chunk; and by sqlx and
//! ODBC, beside the same statements by hand.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::time::{Duration, Instant};

use batch_bench::person::{Person, write_input};
use batch_bench::{Program, head, in_turn, ratio, report};
use batch_items::{DelimitedItemReader, TableItemWriter};
use batch_odbc::OdbcTableWriter;
use batch_runtime::destination::block_on;
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus, JobParameters};
use batch_sqlx::SqlxDestination;
use batch_test_servers::{Kind, Server};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use odbc_api::parameter::InputParameter;
use odbc_api::{ConnectionOptions, IntoParameter, environment};
use sqlx::{PgPool, PgTransaction, Postgres};

const ROWS: u32 = 200_000;

const TABLE: &str =
    "CREATE TABLE person (id BIGINT, first TEXT, last TEXT, email TEXT, amount FLOAT8, date TEXT)";

#[item_reader("File")]
type FileReader = DelimitedItemReader<Person>;
#[item_writer("Table")]
type TableWriter = TableItemWriter<Person>;
#[item_writer("Odbc")]
type OdbcWriter = OdbcTableWriter<Person>;

#[derive(BatchArtifact)]
struct Sqlx {
    #[batch_property]
    url: String,
}

#[item_writer("Sqlx")]
impl Sqlx {
    #[destination]
    fn there(&self) -> Result<SqlxDestination<Postgres>, BatchError> {
        Ok(SqlxDestination::new(block_on(async {
            PgPool::connect_lazy(&self.url)
        })?))
    }

    #[write_items]
    async fn write(&mut self, people: &[Person], tx: &mut PgTransaction<'static>) -> Result<(), sqlx::Error> {
        insert_by_sqlx(people, tx).await
    }
}

async fn insert_by_sqlx(people: &[Person], tx: &mut PgTransaction<'static>) -> Result<(), sqlx::Error> {
    fn column<'a, T>(people: &'a [Person], of: impl Fn(&'a Person) -> T) -> Vec<T> {
        people.iter().map(of).collect()
    }
    sqlx::query("INSERT INTO person SELECT * FROM UNNEST($1::bigint[], $2::text[], $3::text[], $4::text[], $5::float8[], $6::text[])")
        .bind(column(people, |person| person.id))
        .bind(column(people, |person| person.first.as_str()))
        .bind(column(people, |person| person.last.as_str()))
        .bind(column(people, |person| person.email.as_str()))
        .bind(column(people, |person| person.amount))
        .bind(column(people, |person| person.date.as_str()))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

const JOB: &str = r#"<job id="load"><step id="load">
  <chunk reader="File" writer="WRITER" commit-interval="1000">
    <properties><property name="resource" value="${input}" target="reader"/>PROPERTIES</properties>
  </chunk>
</step></job>"#;

const TO_TABLE: &str = r#"<property name="table" value="person" target="writer"/>"#;
const THERE: &str = r#"<property name="database" value="there" target="writer"/>"#;

/// Two databases of one server, and the file.
struct Scene {
    here: String,
    there: String,
    odbc: String,
    input: String,
}

impl Scene {
    fn job(&self, writer: &str, properties: &str, database: &str) -> Duration {
        let job = JOB.replace("WRITER", writer).replace("PROPERTIES", properties);
        let runtime = BatchRuntime::builder()
            .repository(&self.here)
            .database("there", database)
            .job_xml("load.xml", job)
            .build()
            .unwrap();
        let operator = runtime.job_operator();
        let parameters = JobParameters::new().with("input", &self.input);
        let begin = Instant::now();
        let execution = operator.start("load", parameters).unwrap();
        let ended = operator.wait(execution).unwrap();
        let time = begin.elapsed();
        assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
        self.empty();
        time
    }

    fn people(&self) -> impl Iterator<Item = Vec<Person>> {
        let mut rows = csv::Reader::from_path(&self.input)
            .unwrap()
            .into_deserialize::<Person>();
        std::iter::from_fn(move || {
            let chunk: Vec<Person> = rows.by_ref().take(1000).map(Result::unwrap).collect();
            Some(chunk).filter(|chunk| !chunk.is_empty())
        })
    }

    /// The statements of the writer, and the move of a marker in each transaction.
    fn by_sqlx(&self) -> Duration {
        let begin = Instant::now();
        block_on(async {
            let pool = PgPool::connect_lazy(&self.there).unwrap();
            for (people, n) in self.people().zip(1_i64..) {
                let mut tx = pool.begin().await.unwrap();
                insert_by_sqlx(&people, &mut tx).await.unwrap();
                sqlx::query("UPDATE moved SET n = $1")
                    .bind(n)
                    .execute(&mut *tx)
                    .await
                    .unwrap();
                tx.commit().await.unwrap();
            }
        });
        let time = begin.elapsed();
        self.empty();
        time
    }

    fn by_odbc(&self) -> Duration {
        let begin = Instant::now();
        let string = self.odbc.trim_start_matches("odbc:");
        let options = ConnectionOptions::default();
        let connection = environment()
            .unwrap()
            .connect_with_connection_string(string, options)
            .unwrap();
        let run = |statement: &str| drop(connection.execute(statement, (), None).unwrap());
        for (people, n) in self.people().zip(1_i64..) {
            run("BEGIN");
            insert_by_odbc(&people, &connection);
            connection
                .execute("UPDATE moved SET n = ?", &n.into_parameter(), None)
                .unwrap();
            run("COMMIT");
        }
        let time = begin.elapsed();
        self.empty();
        time
    }

    fn empty(&self) {
        let mut count = 0;
        for url in [&self.here, &self.there] {
            let mut connection = PgConnection::establish(url).unwrap();
            count += diesel::sql_query("DELETE FROM person")
                .execute(&mut connection)
                .unwrap();
            connection.batch_execute("TRUNCATE person; CHECKPOINT").unwrap();
        }
        assert_eq!(count, ROWS as usize);
    }
}

fn insert_by_odbc(people: &[Person], connection: &odbc_api::Connection<'_>) {
    let rows = vec!["(?, ?, ?, ?, ?, ?)"; 100].join(", ");
    let mut insert = connection
        .prepare(&format!("INSERT INTO person VALUES {rows}"))
        .unwrap();
    for people in people.chunks(100) {
        let mut values: Vec<Box<dyn InputParameter>> = Vec::with_capacity(600);
        for person in people {
            values.push(Box::new(person.id.into_parameter()));
            for text in [&person.first, &person.last, &person.email] {
                values.push(Box::new(text.clone().into_parameter()));
            }
            values.push(Box::new(person.amount.into_parameter()));
            values.push(Box::new(person.date.clone().into_parameter()));
        }
        insert.execute(values.as_slice()).unwrap();
    }
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("people.csv");
    write_input(&input, ROWS);
    let server = Server::start(Kind::Postgres);
    let socket = server.socket();
    let scene = Scene {
        here: server.new_database(),
        there: server.new_database(),
        odbc: format!(
            "odbc:Driver=/usr/lib/x86_64-linux-gnu/odbc/psqlodbcw.so;Servername={};Database=test_1;UID=postgres;BoolsAsChar=0",
            socket.parent().unwrap().display()
        ),
        input: input.display().to_string(),
    };
    for url in [&scene.here, &scene.there] {
        let mut connection = PgConnection::establish(url).unwrap();
        connection.batch_execute(TABLE).unwrap();
        connection
            .batch_execute("CREATE TABLE moved (n BIGINT); INSERT INTO moved VALUES (0)")
            .unwrap();
        connection
            .batch_execute("ALTER SYSTEM SET autovacuum = off")
            .unwrap();
        connection.batch_execute("SELECT pg_reload_conf()").unwrap();
    }

    head("CSV rows to PostgreSQL, whole jobs, the repository in another database of the server");
    let sqlx = format!(
        r#"<property name="url" value="{}" target="writer"/>"#,
        scene.there.replace('&', "&amp;")
    );
    let there = format!("{TO_TABLE}{THERE}");
    let mut programs: Vec<Program<'_>> = vec![
        ("chunk", Box::new(|| scene.job("Table", TO_TABLE, &scene.there))),
        ("marker", Box::new(|| scene.job("Table", &there, &scene.there))),
        ("sqlx", Box::new(|| scene.job("Sqlx", &sqlx, &scene.there))),
        ("sqlx by hand", Box::new(|| scene.by_sqlx())),
        ("odbc", Box::new(|| scene.job("Odbc", &there, &scene.odbc))),
        ("odbc by hand", Box::new(|| scene.by_odbc())),
    ];
    let [chunk, marker, sqlx, sqlx_by_hand, odbc, odbc_by_hand] =
        in_turn(9, &mut programs).try_into().unwrap();
    let nanos = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(ROWS);
    report("in the transaction of the chunk", nanos(chunk), "ns/row", None);
    report("ODBC, by hand", nanos(odbc_by_hand), "ns/row", None);
    report(
        "a second database / in the transaction of the chunk",
        ratio(marker, chunk),
        "x",
        Some(1.15),
    );
    report(
        "sqlx / by hand, with a statement for a marker",
        ratio(sqlx, sqlx_by_hand),
        "x",
        Some(1.25),
    );
    report(
        "ODBC / by hand, with a statement for a marker",
        ratio(odbc, odbc_by_hand),
        "x",
        Some(1.25),
    );
}
