//! The readers and writers of batch-items with a million rows, beside programs written by hand and spring-batch-rs: CSV to
//! CSV, and a restart at row 900,000.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use batch_bench::person::{Person, ROWS, write_input};
use batch_bench::{Program, head, in_turn, ratio, report};
use batch_items::{DelimitedItemReader, DelimitedItemWriter};
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus, JobParameters};
use csv::StringRecord;
use spring_batch_rs::BatchError as RivalError;
use spring_batch_rs::core::item::ItemProcessor as RivalProcess;
use spring_batch_rs::core::job::{Job, JobBuilder};
use spring_batch_rs::core::step::StepBuilder;
use spring_batch_rs::item::csv::csv_reader::CsvItemReaderBuilder;
use spring_batch_rs::item::csv::csv_writer::CsvItemWriterBuilder;

const ROUNDS: usize = 5;

#[item_reader("PeopleReader")]
type PeopleReader = DelimitedItemReader<Person>;

#[item_writer("PeopleWriter")]
type PeopleWriter = DelimitedItemWriter<Person>;

#[derive(BatchArtifact)]
struct ProcessPeople {
    #[batch_property(name = "fail.at")]
    fail_at: Option<i64>,
}

#[item_processor("ProcessPeople")]
impl ProcessPeople {
    #[process_item]
    fn process(&mut self, person: Person) -> Result<Option<Person>, BatchError> {
        if Some(person.id) == self.fail_at {
            return Err(BatchError::msg("stopped"));
        }
        Ok(Some(person.processed()))
    }
}

/// A runtime on a repository in `file`.
fn runtime(file: &Path, synchronous: &str) -> BatchRuntime {
    BatchRuntime::builder()
        .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/jobs"))
        .repository(format!("sqlite://{}?synchronous={synchronous}", file.display()))
        .build()
        .unwrap()
}

/// Runs the job, and returns the time from its start to its end.
fn engine(runtime: &BatchRuntime, parameters: &[(&str, &str)]) -> Duration {
    let parameters = parameters.iter().copied().chain([
        ("reader", "PeopleReader"),
        ("processor", "ProcessPeople"),
        ("commit.interval", "1000"),
        ("chunk.size", "1000"),
    ]);
    let operator = runtime.job_operator();
    let begin = Instant::now();
    let execution = operator
        .start("bench", parameters.collect::<JobParameters>())
        .unwrap();
    let ended = operator.wait(execution).unwrap();
    let time = begin.elapsed();
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    time
}

/// What a checkpoint survives: `synchronous` of the repository, and `sync` of the file.
#[derive(Clone, Copy)]
struct Survives(&'static str, &'static str);

const A_CRASH: Survives = Survives("normal", "finish");
/// The defaults.
const A_LOSS_OF_POWER: Survives = Survives("full", "checkpoint");

fn csv_by_engine(
    folder: &Path,
    input: &str,
    Survives(synchronous, sync): Survives,
    pipeline: &str,
) -> Duration {
    let repository = folder.join("repository.db");
    let _ = fs::remove_file(&repository);
    let output = folder.join("engine.csv").display().to_string();
    let runtime = runtime(&repository, synchronous);
    engine(
        &runtime,
        &[
            ("writer", "PeopleWriter"),
            ("resource", input),
            ("output", &output),
            ("sync", sync),
            ("batch.chunk.pipeline", pipeline),
        ],
    )
}

/// A loop over chunks of 1000 rows, flushed one by one. It keeps no checkpoint.
fn csv_by_hand(folder: &Path, input: &str) -> Duration {
    let begin = Instant::now();
    let mut rows = csv::Reader::from_path(input).unwrap();
    let (header, mut row) = (rows.headers().unwrap().clone(), StringRecord::new());
    let mut output = csv::Writer::from_writer(BufWriter::new(File::create(folder.join("hand.csv")).unwrap()));
    let mut chunk = Vec::with_capacity(1000);
    loop {
        chunk.clear();
        while chunk.len() < 1000 && rows.read_record(&mut row).unwrap() {
            chunk.push(row.deserialize::<Person>(Some(&header)).unwrap().processed());
        }
        if chunk.is_empty() {
            break;
        }
        chunk.iter().for_each(|person| output.serialize(person).unwrap());
        output.flush().unwrap();
    }
    output.into_inner().unwrap().flush().unwrap();
    begin.elapsed()
}

struct RivalProcessor;
impl RivalProcess<Person, Person> for RivalProcessor {
    fn process(&self, person: Person) -> Result<Option<Person>, RivalError> {
        Ok(Some(person.processed()))
    }
}

fn csv_by_rival(folder: &Path, input: &str) -> Duration {
    let begin = Instant::now();
    let reader = CsvItemReaderBuilder::<Person>::new()
        .has_headers(true)
        .from_path(input);
    let writer = CsvItemWriterBuilder::<Person>::new()
        .has_headers(true)
        .from_path(folder.join("rival.csv"));
    let step = StepBuilder::new("step")
        .chunk(1000)
        .reader(&reader)
        .processor(&RivalProcessor)
        .writer(&writer)
        .build();
    JobBuilder::new().start(&step).build().run().unwrap();
    begin.elapsed()
}

/// Returns the times of a whole run, and of the restart of one that failed at row 900,000, without the 100,000 rows after it: the
/// median of several.
fn restart(folder: &Path, input: &str) -> (Duration, Duration) {
    let repository = folder.join("restart.db");
    let _ = fs::remove_file(&repository);
    let output = folder.join("restart.csv").display().to_string();
    let runtime = runtime(&repository, "normal");
    let parameters = [
        ("writer", "PeopleWriter"),
        ("resource", input),
        ("output", output.as_str()),
        ("sync", "finish"),
    ];
    let whole = engine(&runtime, &parameters);
    let operator = runtime.job_operator();
    // Fails at the first row after a commit, again and again: the later executions only open, seek, and read one row.
    let failing = parameters.into_iter().chain([
        ("reader", "PeopleReader"),
        ("processor", "ProcessPeople"),
        ("commit.interval", "1000"),
        ("chunk.size", "1000"),
        ("fail.at", "900001"),
    ]);
    let mut execution = operator
        .start("bench", failing.collect::<JobParameters>())
        .unwrap();
    let mut restarts: Vec<_> = (0..=ROUNDS)
        .map(|_| {
            assert_eq!(operator.wait(execution).unwrap().status, BatchStatus::Failed);
            let begin = Instant::now();
            execution = operator.restart(execution, ()).unwrap();
            assert_eq!(operator.wait(execution).unwrap().status, BatchStatus::Failed);
            let time = begin.elapsed();
            eprintln!("  restart: {time:.2?}");
            time
        })
        .collect();
    restarts.sort_unstable();
    (whole, restarts[ROUNDS / 2])
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("people.csv");
    write_input(&input, ROWS);
    let (folder, input) = (folder.path(), input.display().to_string());
    let by_engine = |survives, pipeline| csv_by_engine(folder, &input, survives, pipeline);
    let mut programs: [Program<'_>; 6] = [
        ("csv by hand", Box::new(|| csv_by_hand(folder, &input))),
        ("csv by batch-items", Box::new(|| by_engine(A_CRASH, "false"))),
        ("csv in a pipeline", Box::new(|| by_engine(A_CRASH, "true"))),
        ("durable csv", Box::new(|| by_engine(A_LOSS_OF_POWER, "false"))),
        (
            "durable csv in a pipeline",
            Box::new(|| by_engine(A_LOSS_OF_POWER, "true")),
        ),
        (
            "csv by spring-batch-rs",
            Box::new(|| csv_by_rival(folder, &input)),
        ),
    ];
    let times = in_turn(ROUNDS, &mut programs);
    let [by_hand, plain, pipeline, durable, durable_pipeline, by_rival] = times.try_into().unwrap();
    let (whole, restarted) = restart(folder, &input);

    head("batch-items");
    let rows = [
        (
            "CSV to CSV, checkpoints that survive a crash of the process",
            plain,
            1.15,
            None,
        ),
        ("the same in a pipeline", pipeline, 1.0, None),
        (
            "CSV to CSV, checkpoints that survive a loss of power",
            durable,
            1.7,
            None,
        ),
        ("the same in a pipeline", durable_pipeline, 1.15, Some(0.65)),
    ];
    for (what, time, gate, rival) in rows {
        report(
            &format!("{what} / by hand without"),
            ratio(time, by_hand),
            "x",
            Some(gate),
        );
        report(
            &format!("{what} / spring-batch-rs"),
            ratio(time, by_rival),
            "x",
            rival,
        );
    }
    report(
        "restart at row 900,000 / a whole run",
        ratio(restarted, whole),
        "x",
        Some(0.01),
    );
}
