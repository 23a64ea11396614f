//! A job of records alone that moves rows to another database, in a process that is killed at random statements of both.

use std::fs;

use batch_runtime::{BatchRuntime, BatchStatus};
use batch_tests::database::{Database, Place};
use batch_tests::moving;
use batch_tests::random::Random;
use batch_tests::slow::times;

const ROWS: i64 = 4_000;

const JOB: &str = r#"<job id="move"><step id="copy">
  <chunk reader="queryRecordReader" writer="recordTableWriter" commit-interval="50">
    <properties>
      <property name="query" value="SELECT number FROM number WHERE RANGE" target="reader"/>
      <property name="key" value="number" target="reader"/>
      <property name="table" value="number" target="writer"/>
      <property name="database" value="there" target="writer"/>
    </properties>
  </chunk>PARTITION
</step></job>"#;

/// Ranges of the key, on threads.
const PARTITION: &str = r#"
  <partition>
    <algorithm ref="keyRangePartitions">
      <properties>
        <property name="query" value="SELECT MIN(number), MAX(number) FROM number"/><property name="partitions" value="3"/>
      </properties>
    </algorithm>
  </partition>"#;

/// The source, the destination, and the folder of the program that copies one to the other.
struct Copy {
    folder: tempfile::TempDir,
    here: Place,
    there: Place,
}

impl Copy {
    fn new(repository: Database, destination: Database, is_partitioned: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("there");
        fs::create_dir(&elsewhere).unwrap();
        let here = Place::new(repository, folder.path());
        let there = Place::new(destination, &elsewhere);
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
        there
            .connect()
            .execute("CREATE TABLE number (number INTEGER)")
            .unwrap();
        let (range, partition) = match is_partitioned {
            true => ("number BETWEEN ${low} AND ${high}", PARTITION),
            false => ("number &gt; 0", ""),
        };
        let job = JOB.replace("RANGE", range).replace("PARTITION", partition);
        fs::write(folder.path().join("move.xml"), job).unwrap();
        let settings = format!(
            "repository = \"{}\"\njob-path = \".\"\nlease-time = 1\n[databases]\nthere = \"{}\"\n",
            here.url(),
            there.url()
        );
        fs::write(folder.path().join("batch.toml"), settings).unwrap();
        Self { folder, here, there }
    }

    fn check(&self, context: &str) {
        let mut there = self.there.connect();
        for (query, expected) in [
            ("SELECT COUNT(*) AS number FROM number", ROWS),
            ("SELECT COUNT(DISTINCT number) AS number FROM number", ROWS),
        ] {
            assert_eq!(there.number(query), expected, "{context}: {query}");
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
    for (repository, destination) in pairs {
        let program = env!("CARGO_BIN_EXE_writing");
        let mut kills = 0;
        while kills < times(3, 120) {
            let is_partitioned = random.below(2) == 1;
            let copy = Copy::new(repository, destination, is_partitioned);
            let context = format!(
                "{repository:?} to {destination:?}, partitions: {is_partitioned}, after {kills} kills"
            );
            while !moving::launch(program, copy.folder.path(), 1 + random.below(900)) {
                kills += 1;
            }
            copy.check(&context);
        }
        println!("{repository:?} to {destination:?}: {kills} kills");
    }
}
