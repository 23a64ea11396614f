//! The jobs on this runtime, with the readers and writers of batch-items.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark")]

use std::sync::OnceLock;
use std::time::Instant;

use batch_items::{DelimitedItemReader, DelimitedItemWriter, TableItemWriter};
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus, JobExecutionId, JobParameters};
use peers::{ITEMS, PARTITIONS, Person, Task, report};

#[item_reader("PeopleReader")]
type PeopleReader = DelimitedItemReader<Person>;

#[item_writer("PeopleFile")]
type PeopleFile = DelimitedItemWriter<Person>;

#[item_writer("PeopleTable")]
type PeopleTable = TableItemWriter<Person>;

/// The row that makes the job fail, which the restart does not have.
static FAIL_AT: OnceLock<i64> = OnceLock::new();

#[derive(BatchArtifact)]
struct ProcessPeople;

#[item_processor]
impl ProcessPeople {
    #[process_item]
    fn process(&mut self, person: Person) -> Result<Option<Person>, BatchError> {
        if FAIL_AT.get() == Some(&person.id) {
            return Err(BatchError::msg("the row at which the job fails"));
        }
        Ok(Some(person.processed()))
    }
}

#[derive(BatchArtifact)]
struct Nothing;

#[batchlet]
impl Nothing {
    #[process]
    fn process(&self) -> String {
        String::from("DONE")
    }
    #[cancel]
    fn cancel(&self) {}
}

#[derive(BatchArtifact)]
struct Parts;

#[partition_algorithm]
impl Parts {
    #[calculate_partitions]
    fn parts(&mut self) -> PartitionPlan {
        PartitionPlan::with_properties((0..PARTITIONS).map(|part| [("part", part.to_string())]))
    }
}

#[derive(BatchArtifact)]
struct PartReader {
    #[batch_property(name = "part")]
    part: i64,
    read: i64,
}

#[item_reader]
impl PartReader {
    #[open]
    fn open(&mut self, checkpoint: Option<i64>) {
        self.read = checkpoint.unwrap_or(0);
    }
    #[read_item]
    fn read(&mut self) -> Option<Person> {
        (self.read < ITEMS).then(|| {
            self.read += 1;
            Person::number(self.part * ITEMS + self.read - 1)
        })
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> i64 {
        self.read
    }
}

fn repository(task: &Task) -> String {
    if task.verb.ends_with("postgres")
        || !["csv-csv", "csv-sqlite", "prepare-sqlite"].contains(&task.verb.as_str())
    {
        task.postgres()
    } else {
        format!("sqlite://{}?synchronous=full", task.value("file"))
    }
}

fn parameters(task: &Task, pipeline: bool) -> JobParameters {
    let mut pairs = vec![("batch.chunk.pipeline", pipeline.to_string())];
    let mut add = |key, value: &str| pairs.push((key, value.to_owned()));
    match task.verb.as_str() {
        "cold" => return JobParameters::default(),
        "partitions" => add("table", "person"),
        "csv-csv" => {
            add("resource", task.value("input"));
            add("output", task.value("output"));
            add("writer", "PeopleFile");
        }
        _ => {
            add("resource", task.value("input"));
            add("table", "person");
            add("writer", "PeopleTable");
        }
    }
    pairs.into_iter().collect()
}

/// The jobs, with their files in `jobs`.
const JOBS: [(&str, &str); 7] = [
    ("csv-csv", "rows"),
    ("csv-sqlite", "rows"),
    ("csv-postgres", "rows"),
    ("skip", "skip"),
    ("restart", "rows"),
    ("cold", "cold"),
    ("partitions", "partitions"),
];

fn main() {
    let task = Task::of_process();
    let pipeline = std::env::var_os("PEERS_PIPELINE").is_some();
    let begin = Instant::now();
    let prepare = task.verb.starts_with("prepare");
    let job = if prepare { "" } else { task.job(&JOBS) };
    let runtime = BatchRuntime::builder()
        .repository(repository(&task))
        .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/jobs"))
        .build()
        .unwrap();
    if prepare {
        return;
    }
    if let Some(id) = task.fail_at() {
        FAIL_AT.set(id).unwrap();
    }
    let operator = runtime.job_operator();
    let execution = if task.verb == "restart" {
        // The only execution of its database.
        operator.restart(JobExecutionId(1), ()).unwrap()
    } else {
        operator
            .start(job, parameters(&task, pipeline))
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let ended = operator.wait(execution).unwrap();
    let time = begin.elapsed();
    if task.fail_at().is_some() {
        assert_eq!(ended.status, BatchStatus::Failed);
        return;
    }
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    let steps = operator.step_executions(execution).unwrap();
    // The row of a partitioned step counts nothing; the rows of its partitions do.
    let written = steps.iter().map(|step| step.counters.writes).sum::<i64>();
    report(&task, written.try_into().unwrap(), time);
}
