//! A job of records alone that moves rows to another database, in a process that is killed at random statements of both.

use std::fs;

use batch_runtime::{BatchRuntime, BatchStatus};
use batch_test_servers::{Kind, Server};
use batch_tests::database::{Database, Place};
use batch_tests::moving;
use batch_tests::random::Random;
use batch_tests::slow::times;

const ROWS: i64 = 4_000;

const JOB: &str = r#"<job id="move"><step id="copy">
  <chunk reader="queryRecordReader" writer="WRITER" commit-interval="50">
    <properties>
      <property name="query" value="SELECT number FROM number WHERE RANGE" target="reader"/>
      <property name="key" value="number" target="reader"/>TABLES
    </properties>
  </chunk>PARTITION
</step></job>"#;

const TABLE: &str = r#"
      <property name="table" value="number" target="writer"/>
      <property name="database" value="there" target="writer"/>"#;

/// In the transaction of the repository, too.
const TABLES: &str = r#"
      <property name="1.table" value="copy" target="writer"/>
      <property name="2.table" value="number" target="writer"/>
      <property name="2.database" value="there" target="writer"/>"#;

/// Ranges of the key, on threads.
const PARTITION: &str = r#"
  <partition>
    <algorithm ref="keyRangePartitions">
      <properties>
        <property name="query" value="SELECT MIN(number), MAX(number) FROM number"/><property name="partitions" value="3"/>
      </properties>
    </algorithm>
  </partition>"#;

/// How the rows are copied.
#[derive(Clone, Copy, Debug)]
struct Form {
    is_partitioned: bool,
    to_both: bool,
}

impl Form {
    fn any(random: &mut Random) -> Self {
        Self {
            is_partitioned: random.below(2) == 1,
            to_both: random.below(2) == 1,
        }
    }
}

/// The source, the destination, and the folder of the program that copies one to the other.
struct Copy {
    folder: tempfile::TempDir,
    here: Place,
    there: Place,
    form: Form,
}

impl Copy {
    fn new(repository: Database, destination: Database, form: Form) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("there");
        fs::create_dir(&elsewhere).unwrap();
        let there = Place::new(destination, &elsewhere);
        Self::to(folder, repository, there, form)
    }

    fn to(folder: tempfile::TempDir, repository: Database, there: Place, form: Form) -> Self {
        let here = Place::new(repository, folder.path());
        let mut source = here.connect();
        source
            .execute("CREATE TABLE number (number INTEGER PRIMARY KEY)")
            .unwrap();
        let numbers: Vec<i64> = (1..=ROWS).collect();
        for some in numbers.chunks(400) {
            let rows: Vec<String> = some.iter().map(|number| format!("({number})")).collect();
            source
                .execute(&format!("INSERT INTO number VALUES {}", rows.join(", ")))
                .unwrap();
        }
        // Without a key: a row that is there twice is two rows.
        source.execute("CREATE TABLE copy (number INTEGER)").unwrap();
        there
            .connect()
            .execute("CREATE TABLE number (number INTEGER)")
            .unwrap();
        let (writer, tables) = match form.to_both {
            true => ("RecordsToBoth", TABLES),
            false => ("recordTableWriter", TABLE),
        };
        let (range, partition) = match form.is_partitioned {
            true => ("number BETWEEN ${low} AND ${high}", PARTITION),
            false => ("number &gt; 0", ""),
        };
        let job = JOB.replace("RANGE", range).replace("PARTITION", partition);
        let job = job.replace("WRITER", writer).replace("TABLES", tables);
        fs::write(folder.path().join("move.xml"), job).unwrap();
        let settings = format!(
            "repository = \"{}\"\njob-path = \".\"\nlease-time = 1\n[databases]\nthere = \"{}\"\n",
            here.url(),
            there.url()
        );
        fs::write(folder.path().join("batch.toml"), settings).unwrap();
        Self {
            folder,
            here,
            there,
            form,
        }
    }

    fn check(&self, context: &str) {
        let context = &format!("{:?}, {context}", self.form);
        let mut outputs = vec![(&self.there, "number")];
        if self.form.to_both {
            outputs.push((&self.here, "copy"));
        }
        for (place, table) in outputs {
            for counted in ["*", "DISTINCT number"] {
                let query = format!("SELECT COUNT({counted}) AS number FROM {table}");
                assert_eq!(place.connect().number(&query), ROWS, "{context}: {query}");
            }
        }
        let runtime = BatchRuntime::builder()
            .repository(self.here.url())
            .build()
            .unwrap();
        let operator = runtime.job_operator();
        let instances = operator.job_instances("move", 0, 1).unwrap();
        let executions = operator.job_executions(instances[0].id).unwrap();
        let last = executions.iter().max_by_key(|execution| execution.id).unwrap();
        assert_eq!(last.status, BatchStatus::Completed, "{context}");
        let totals = operator.step_totals(last.id).unwrap();
        // Of the step, or of its partitions.
        let chunks = totals.iter().filter(|total| total.counters.reads > 0);
        let sums = chunks.fold((0, 0), |(reads, writes), total| {
            (reads + total.counters.reads, writes + total.counters.writes)
        });
        assert_eq!(sums, (ROWS, ROWS), "{context}");
    }
}

/// The program that runs the jobs.
const PROGRAM: &str = env!("CARGO_BIN_EXE_writing");

/// Copies between each pair until there were as many faults; `copy` returns how many there were in a run.
fn until(
    faults: &str,
    most: usize,
    pairs: impl IntoIterator<Item = (Database, Database)>,
    mut copy: impl FnMut(Database, Database, &str) -> usize,
) {
    for (repository, destination) in pairs {
        let mut count = 0;
        while count < most {
            let context = format!("{repository:?} to {destination:?}, after {count} {faults}");
            count += copy(repository, destination, &context);
        }
        println!("{repository:?} to {destination:?}: {count} {faults}");
    }
}

/// Spec: MARK-04 to MARK-06
#[test]
fn rows_are_moved_once_by_a_process_that_is_killed() {
    let mut random = Random::new("kills of a job with a destination");
    let pairs = [
        (Database::Postgres, Database::Postgres),
        (Database::Sqlite, Database::Postgres),
        (Database::Mariadb, Database::Sqlite),
        (Database::Postgres, Database::Mariadb),
    ];
    until(
        "kills",
        times(3, 125),
        pairs,
        |repository, destination, context| {
            let copy = Copy::new(repository, destination, Form::any(&mut random));
            let mut kills = 0;
            while !moving::launch(PROGRAM, copy.folder.path(), 1 + random.below(900)) {
                kills += 1;
            }
            copy.check(context);
            kills
        },
    );
}

/// A process that is suspended at a random statement of both databases, and wakes up when another has completed its job, commits nothing.
///
/// Spec: MARK-05, MARK-11
#[test]
#[cfg(unix)]
fn rows_are_moved_once_beside_a_suspended_process() {
    let mut random = Random::new("a suspended process with a destination");
    let pairs = [
        (Database::Postgres, Database::Postgres),
        (Database::Mariadb, Database::Postgres),
        (Database::Postgres, Database::Mariadb),
        (Database::Mariadb, Database::Mariadb),
    ];
    until(
        "suspended processes",
        times(1, 50),
        pairs,
        |repository, destination, context| {
            let copy = Copy::new(repository, destination, Form::any(&mut random));
            let folder = copy.folder.path();
            // A process that is suspended while it creates the tables keeps all others out.
            let builder = BatchRuntime::builder().repository(copy.here.url());
            drop(builder.build().unwrap());
            // Before its step begins, it has no lease that could expire.
            let statements = 120 + random.below(700);
            let Some(first) = moving::suspend(PROGRAM, folder, statements) else {
                return 0;
            };
            while !moving::launch(PROGRAM, folder, u64::MAX) {}
            first.wake_up();
            copy.check(&format!("{context}, suspended at {statements}"));
            1
        },
    );
}

/// A destination whose server is killed at a random statement: the step waits for it, or fails and is started again.
///
/// Spec: MARK-05, MARK-08
#[test]
fn rows_are_moved_once_although_the_server_crashes() {
    let mut random = Random::new("crashes of the server of a destination");
    for (kind, database) in [
        (Kind::Postgres, Database::Postgres),
        (Kind::Mariadb, Database::Mariadb),
    ] {
        let mut server = Server::start(kind);
        let pairs = [(Database::Sqlite, database)];
        until(
            "crashes",
            times(2, 50),
            pairs,
            |repository, destination, context| {
                let there = Place::existing(destination, server.new_database());
                let form = Form::any(&mut random);
                let copy = Copy::to(tempfile::tempdir().unwrap(), repository, there, form);
                let mut crashes = 0;
                loop {
                    let statements = 1 + random.below(900);
                    let crash = || server.crash();
                    let (has_crashed, is_complete) =
                        moving::beside(PROGRAM, copy.folder.path(), statements, crash);
                    crashes += usize::from(has_crashed);
                    if is_complete {
                        break;
                    }
                }
                copy.check(context);
                crashes
            },
        );
    }
}

const CHECKED: &str = r#"<job id="move"><step id="copy">
  <chunk reader="queryRecordReader" writer="recordTableWriter" commit-interval="COMMIT">
    <properties>
      <property name="query" value="SELECT number, name, cents, booked FROM posting" target="reader"/>
      <property name="key" value="number" target="reader"/>
      <property name="table" value="posting" target="writer"/>
      <property name="database" value="there" target="writer"/>
    </properties>
  </chunk>
</step></job>"#;

/// The number of rows and a sum over the contents of all of them.
fn checksum(place: &Place, sum: &str) -> (i64, i64) {
    let mut connection = place.connect();
    (
        connection.number("SELECT COUNT(*) AS number FROM posting"),
        connection.number(&format!("SELECT {sum} AS number FROM posting")),
    )
}

/// In the slow tier, 200,000 rows and 20 kills.
///
/// Spec: MARK-04 to MARK-06
#[test]
fn all_values_of_all_rows_arrive_once_in_another_kind_of_database() {
    let (rows, kills, interval) = times((10_000, 2, 100), (200_000, 20, 1000));
    let mut random = Random::new("kills of a job that moves whole rows");
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("there");
    fs::create_dir(&elsewhere).unwrap();
    let here = Place::new(Database::Postgres, folder.path());
    let there = Place::new(Database::Mariadb, &elsewhere);
    let mut source = here.connect();
    source
        .execute(
            "CREATE TABLE posting (number BIGINT PRIMARY KEY, name VARCHAR(60), cents NUMERIC(14, 2) NOT NULL, booked TIMESTAMP NOT NULL)",
        )
        .unwrap();
    source
        .execute(&format!(
            "INSERT INTO posting SELECT n, CASE WHEN n % 7 = 0 THEN NULL ELSE 'Zoë \"' || n || '\"; 😀, ''x'' ' END, n * 12.34 - 100000, \
             TIMESTAMP '2026-01-01' + n * INTERVAL '1.000001 second' FROM generate_series(1, {rows}) AS n"
        ))
        .unwrap();
    // Without a key: a row that is there twice is two rows.
    there
        .connect()
        .execute(
            "CREATE TABLE posting (number BIGINT, name VARCHAR(60) CHARACTER SET utf8mb4, cents DECIMAL(14, 2), booked DATETIME(6))",
        )
        .unwrap();
    let job = CHECKED.replace("COMMIT", &interval.to_string());
    fs::write(folder.path().join("move.xml"), job).unwrap();
    let settings = format!(
        "repository = \"{}\"\njob-path = \".\"\nlease-time = 1\n[databases]\nthere = \"{}\"\n",
        here.url(),
        there.url()
    );
    fs::write(folder.path().join("batch.toml"), settings).unwrap();

    let mut killed = 0;
    loop {
        // Early enough for all kills; then to the end.
        let statements = if killed < kills {
            1 + random.below(150)
        } else {
            u64::MAX
        };
        if moving::launch(PROGRAM, folder.path(), statements) {
            break;
        }
        killed += 1;
    }
    let texts = "number, COALESCE(name, '-'), cents";
    let of_postgres = format!(
        "SUM(('x' || SUBSTR(MD5(CONCAT_WS('|', {texts}, TO_CHAR(booked, 'YYYY-MM-DD HH24:MI:SS.US'))), 1, 8))::bit(32)::bigint)::bigint"
    );
    let of_mariadb = format!(
        "CAST(SUM(CONV(SUBSTR(MD5(CONCAT_WS('|', {texts}, DATE_FORMAT(booked, '%Y-%m-%d %H:%i:%s.%f'))), 1, 8), 16, 10)) AS SIGNED)"
    );
    let sent = checksum(&here, &of_postgres);
    assert_eq!(sent.0, i64::from(rows));
    assert_eq!(sent, checksum(&there, &of_mariadb), "after {killed} kills");
    assert!(killed >= kills, "only {killed} kills");
    println!("{rows} rows, {killed} kills, checksum {}", sent.1);
}
