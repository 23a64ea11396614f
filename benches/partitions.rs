//! Gates G8 and G8c: one thread beside two partitions, or two processors, on two threads, if the work is computation, if it is reading and
//! writing files, and if all partitions write into one SQLite file. Then the cost of a partition.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use batch_bench::person::{Person, ROWS, TABLE, new_table, person, write_input};
use batch_bench::{Program, head, in_turn, ratio, report};
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus, JobParameters};
use batch_test_servers::Kind;
use csv::StringRecord;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;

const ROUNDS: usize = 7;
const NUMBERS: u64 = 3_000_000;
const ROUNDS_OF_WORK: u32 = 200;

/// Divides the numbers, or the rows of a file at ends of lines, into equal parts.
#[derive(BatchArtifact)]
struct Parts {
    #[batch_property(name = "parts")]
    parts: u64,
    #[batch_property(name = "input")]
    input: Option<PathBuf>,
}

#[partition_algorithm]
impl Parts {
    #[calculate_partitions]
    fn parts(&mut self) -> Result<PartitionPlan, std::io::Error> {
        let bounds = match &self.input {
            Some(input) => line_starts(input, self.parts)?,
            None => (0..=self.parts).map(|part| NUMBERS * part / self.parts).collect(),
        };
        Ok(PartitionPlan::with_properties(bounds.windows(2).enumerate().map(
            |(part, bounds)| {
                [
                    ("from", bounds[0].to_string()),
                    ("to", bounds[1].to_string()),
                    ("part", part.to_string()),
                ]
            },
        )))
    }
}

/// Returns positions of lines after the header, at about equal distances.
fn line_starts(input: &Path, parts: u64) -> Result<Vec<u64>, std::io::Error> {
    let mut file = BufReader::new(File::open(input)?);
    let length = file.get_ref().metadata()?.len();
    let mut line = String::new();
    let mut starts = Vec::new();
    for part in 0..parts {
        file.seek(SeekFrom::Start(length * part / parts))?;
        line.clear();
        file.read_line(&mut line)?;
        starts.push(file.stream_position()?);
    }
    starts.push(length);
    Ok(starts)
}

#[derive(BatchArtifact)]
struct Numbers {
    #[batch_property(name = "from", value = "0")]
    from: u64,
    #[batch_property(name = "to", value = "3000000")]
    to: u64,
}

#[item_reader]
impl Numbers {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.from = checkpoint.unwrap_or(self.from);
    }
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        let next = self.from;
        (next < self.to).then(|| {
            self.from += 1;
            next
        })
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.from
    }
    #[close]
    fn close(&mut self) {}
}

/// Arithmetic: about 1.2 ns for each round.
#[derive(BatchArtifact)]
struct Scramble {
    #[batch_property(name = "rounds", value = "200")]
    rounds: u32,
}

#[item_processor]
impl Scramble {
    #[process_item]
    fn process(&mut self, number: u64) -> Option<u64> {
        Some(scrambled(number, self.rounds))
    }
}

fn scrambled(number: u64, rounds: u32) -> u64 {
    let mut hash = number ^ 0x9E37_79B9_7F4A_7C15;
    for _ in 0..rounds {
        hash = (hash ^ (hash >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    hash
}

#[derive(BatchArtifact)]
struct Sum {
    sum: u64,
}

#[item_writer]
impl Sum {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.sum = checkpoint.unwrap_or(0);
    }
    #[write_items]
    fn write(&mut self, numbers: &[u64]) {
        self.sum = numbers
            .iter()
            .fold(self.sum, |sum, number| sum.wrapping_add(*number));
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.sum
    }
    #[close]
    fn close(&mut self) {}
}

/// Reads the rows that begin in its part of the file.
#[derive(BatchArtifact)]
struct PartReader {
    #[batch_property(name = "input")]
    input: PathBuf,
    #[batch_property(name = "from")]
    from: Option<u64>,
    #[batch_property(name = "to")]
    to: Option<u64>,
    rows: Option<csv::Reader<File>>,
    header: StringRecord,
    row: StringRecord,
}

impl PartReader {
    fn position(&self) -> u64 {
        self.rows.as_ref().map_or(0, |rows| rows.position().byte())
    }
}

#[item_reader]
impl PartReader {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) -> Result<(), csv::Error> {
        let mut rows = csv::Reader::from_path(&self.input)?;
        self.header = rows.headers()?.clone();
        if let Some(byte) = checkpoint.or(self.from) {
            rows.seek(csv::Position::new().set_byte(byte).clone())?;
        }
        self.rows = Some(rows);
        Ok(())
    }
    #[read_item]
    fn read(&mut self) -> Result<Option<Person>, csv::Error> {
        if self.to.is_some_and(|to| self.position() >= to) {
            return Ok(None);
        }
        let Some(rows) = &mut self.rows else {
            return Ok(None);
        };
        if !rows.read_record(&mut self.row)? {
            return Ok(None);
        }
        self.row.deserialize(Some(&self.header)).map(Some)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.position()
    }
    #[close]
    fn close(&mut self) {}
}

/// Writes the rows of a part to a separate file.
#[derive(BatchArtifact)]
struct FileWriter {
    #[batch_property(name = "output")]
    output: String,
    #[batch_property(name = "part", value = "0")]
    part: String,
    rows: Option<csv::Writer<BufWriter<File>>>,
}

#[item_writer]
impl FileWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<u64>) -> Result<(), std::io::Error> {
        let file = File::create(format!("{}.{}", self.output, self.part))?;
        self.rows = Some(csv::Writer::from_writer(BufWriter::new(file)));
        Ok(())
    }
    #[write_items]
    fn write(&mut self, people: &[Person]) -> Result<(), BatchError> {
        let Some(rows) = &mut self.rows else { return Ok(()) };
        for person in people {
            rows.serialize(person)?;
        }
        rows.flush()?;
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        0
    }
    #[close]
    fn close(&mut self) {
        self.rows = None;
    }
}

#[derive(BatchArtifact)]
struct Tiny;

#[batchlet]
impl Tiny {
    #[process]
    fn process(&self) -> String {
        String::from("DONE")
    }
    #[cancel]
    fn cancel(&self) {}
}

/// A job from its start to its end.
fn run(job: &str, repository: &str, parameters: &[(&str, &str)]) -> Duration {
    let runtime = BatchRuntime::builder()
        .repository(repository)
        .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/jobs"))
        .build()
        .unwrap();
    let operator = runtime.job_operator();
    let parameters: JobParameters = parameters.iter().copied().collect();
    let begin = Instant::now();
    let execution = operator
        .start(job, parameters)
        .unwrap_or_else(|error| panic!("{error}"));
    let ended = operator.wait(execution).unwrap();
    let time = begin.elapsed();
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    time
}

/// The work of the processor by hand, without a checkpoint: the maximum gain on the machine.
fn hand_written(threads: u64) -> Duration {
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for part in 0..threads {
            scope.spawn(move || {
                let part = NUMBERS * part / threads..NUMBERS * (part + 1) / threads;
                std::hint::black_box(part.fold(0, |sum: u64, number| {
                    sum.wrapping_add(scrambled(number, ROUNDS_OF_WORK))
                }))
            });
        }
    });
    begin.elapsed()
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let input = file("input.csv");
    write_input(Path::new(&input), ROWS);

    let memory = "sqlite://:memory:";
    let numbers = [
        ("reader", "Numbers"),
        ("processor", "Scramble"),
        ("writer", "Sum"),
    ];
    let cpu = |job: &'static str, parts: &'static str| -> Program<'_> {
        let parameters: Vec<_> = numbers.iter().copied().chain([("parts", parts)]).collect();
        let name = match (job, parts) {
            ("plain", _) => "a plain step",
            (_, "1") => "one partition",
            _ => "two partitions",
        };
        (name, Box::new(move || run(job, memory, &parameters)))
    };
    // A quarter as many numbers, with four times as much work for each.
    let microseconds =
        |name: &'static str, processors: &'static str, pipeline: &'static str| -> Program<'_> {
            let more = [
                ("to", "750000"),
                ("rounds", "800"),
                ("batch.chunk.processors", processors),
                ("batch.chunk.pipeline", pipeline),
            ];
            let parameters: Vec<_> = numbers.iter().copied().chain(more).collect();
            (name, Box::new(move || run("plain", memory, &parameters)))
        };
    let two_processors = {
        let more = [("batch.chunk.processors", "2")];
        let parameters: Vec<_> = numbers.iter().copied().chain(more).collect();
        let program: Program<'_> = (
            "two processors",
            Box::new(move || run("plain", memory, &parameters)),
        );
        program
    };
    let by_hand = |threads: u64| -> Program<'_> {
        let name = if threads == 1 {
            "one thread by hand"
        } else {
            "two threads by hand"
        };
        (name, Box::new(move || hand_written(threads)))
    };
    let cpu = in_turn(
        ROUNDS,
        &mut [
            cpu("plain", ""),
            cpu("partitioned", "1"),
            cpu("partitioned", "2"),
            by_hand(1),
            by_hand(2),
            two_processors,
            microseconds("1 us, one processor", "1", "false"),
            microseconds("1 us, two processors", "2", "false"),
            microseconds("1 us, two processors in a pipeline", "2", "true"),
        ],
    );

    let output = file("output.csv");
    let copy = |parts: &'static str| -> Program<'_> {
        let (input, output) = (input.as_str(), output.as_str());
        (
            parts,
            Box::new(move || {
                let parameters = [
                    ("reader", "PartReader"),
                    ("processor", "PersonProcessor"),
                    ("writer", "FileWriter"),
                    ("input", input),
                    ("output", output),
                    ("parts", parts),
                ];
                run("partitioned", memory, &parameters)
            }),
        )
    };
    let copies = in_turn(ROUNDS, &mut [copy("1"), copy("2")]);

    let load = |parts: &'static str, synchronous: &'static str| -> Program<'_> {
        let (input, folder) = (input.as_str(), folder.path());
        (
            parts,
            Box::new(move || {
                let target = new_table(folder);
                let parameters = [
                    ("reader", "PartReader"),
                    ("processor", "PersonProcessor"),
                    ("writer", "PersonWriter"),
                    ("input", input),
                    ("parts", parts),
                ];
                let url = format!("sqlite://{}?synchronous={synchronous}", target.display());
                let time = run("partitioned", &url, &parameters);
                let rows: u32 = rusqlite::Connection::open(&target)
                    .unwrap()
                    .query_row("SELECT COUNT(*) FROM person", [], |row| row.get(0))
                    .unwrap();
                assert_eq!(rows, ROWS);
                time
            }),
        )
    };
    let normal = in_turn(ROUNDS, &mut [load("1", "normal"), load("2", "normal")]);
    let full = in_turn(ROUNDS, &mut [load("1", "full"), load("2", "full")]);

    let server = batch_test_servers::Server::start(Kind::Postgres);
    let serve = |parts: &'static str| -> Program<'_> {
        let (input, server) = (input.as_str(), &server);
        (
            parts,
            Box::new(move || {
                let url = server.new_database();
                let mut target = PgConnection::establish(&url).unwrap();
                target
                    .batch_execute(&TABLE.replace("INTEGER", "BIGINT").replace("REAL", "FLOAT8"))
                    .unwrap();
                let parameters = [
                    ("reader", "PartReader"),
                    ("processor", "PersonProcessor"),
                    ("writer", "PersonWriter"),
                    ("input", input),
                    ("parts", parts),
                ];
                let time = run("partitioned", &url, &parameters);
                let rows: i64 = person::table.count().get_result(&mut target).unwrap();
                assert_eq!(rows, i64::from(ROWS));
                target.batch_execute("TRUNCATE person").unwrap();
                time
            }),
        )
    };
    let served = in_turn(3, &mut [serve("1"), serve("2")]);

    let tiny = |synchronous: &'static str| -> Program<'_> {
        let target = folder.path().join("tiny.db");
        (
            synchronous,
            Box::new(move || {
                for suffix in ["", "-wal", "-shm"] {
                    let _ = std::fs::remove_file(format!("{}{suffix}", target.display()));
                }
                run(
                    "tiny",
                    &format!("sqlite://{}?synchronous={synchronous}", target.display()),
                    &[],
                )
            }),
        )
    };
    let tiny = in_turn(3, &mut [tiny("normal"), tiny("full")]);

    let processors = std::thread::available_parallelism().unwrap();
    head(&format!("Partitions, on {processors} processors"));
    report(
        "a step of one partition, per plain step",
        ratio(cpu[1], cpu[0]),
        "x",
        Some(1.05),
    );
    report(
        "work of the processor: two partitions, per one",
        ratio(cpu[2], cpu[1]),
        "x",
        Some(0.54),
    );
    for (what, time, one, gate) in [
        ("two processors, per one, 0.25 us each", cpu[5], cpu[0], None),
        ("two processors, per one, 1 us each", cpu[7], cpu[6], Some(0.556)),
        ("the same in a pipeline", cpu[8], cpu[6], Some(0.556)),
    ] {
        report(what, ratio(time, one), "x", gate);
    }
    report(
        "the same by hand: two threads, per one",
        ratio(cpu[4], cpu[3]),
        "x",
        None,
    );
    report(
        "CSV to CSV: two partitions, per one",
        ratio(copies[1], copies[0]),
        "x",
        Some(0.625),
    );
    report(
        "CSV to one SQLite file, NORMAL: two partitions, per one",
        ratio(normal[1], normal[0]),
        "x",
        Some(1.05),
    );
    report(
        "CSV to one SQLite file, FULL: two partitions, per one",
        ratio(full[1], full[0]),
        "x",
        Some(1.05),
    );
    report(
        "CSV to PostgreSQL on the same machine: two partitions, per one",
        ratio(served[1], served[0]),
        "x",
        Some(0.87),
    );
    for (synchronous, time) in [("NORMAL", tiny[0]), ("FULL", tiny[1])] {
        let each = time.as_secs_f64();
        report(
            &format!("one of 1,000 tiny partitions, {synchronous}"),
            each,
            "ms",
            Some(1.0),
        );
    }
}
