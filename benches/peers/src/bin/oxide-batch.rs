//! The jobs on oxide-batch, with its PostgreSQL repository: it has no other durable one.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark")]

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oxide_batch::item_components::{
    DelimitedDialect, DelimitedRecord, PostgresBatchMode, delimited_file_reader, delimited_writer,
    postgres_batch_writer,
};
use oxide_batch::*;
use peers::{CHUNK, ITEMS, PARTITIONS, Person, Task, report};

/// A row with its amount as text, because a value of a statement is a text, a number without fraction, a flag or bytes.
#[derive(Clone)]
struct Row {
    person: Person,
    amount: String,
}

impl Row {
    fn new(person: Person) -> Self {
        let amount = person.amount.to_string();
        Self { person, amount }
    }
}

impl From<Row> for DelimitedRecord {
    fn from(row: Row) -> Self {
        let Person {
            id,
            first,
            last,
            email,
            date,
            ..
        } = row.person;
        Self::new(vec![id.to_string(), first, last, email, row.amount, date])
    }
}

struct ProcessPeople {
    fail_at: Option<i64>,
}

impl ItemProcessor<DelimitedRecord, Row> for ProcessPeople {
    async fn process<'a>(
        &'a self,
        record: &'a DelimitedRecord,
        _: ProcessContext<'a>,
    ) -> Result<ProcessOutcome<Row>, ProcessorError> {
        let [id, first, last, email, amount, date] = record.fields() else {
            return Err(ProcessorError::new());
        };
        let person = Person {
            id: id.parse().map_err(ProcessorError::from_error)?,
            first: first.clone(),
            last: last.clone(),
            email: email.clone(),
            amount: amount.parse().map_err(ProcessorError::from_error)?,
            date: date.clone(),
        };
        if self.fail_at == Some(person.id) {
            return Err(ProcessorError::new());
        }
        Ok(ProcessOutcome::Item(Row::new(person.processed())))
    }
}

/// The state of the job; the positions of the reader and the writer are in their own.
fn state() -> ChunkCommitReceipt {
    let state = |kind: &str| {
        let text = r#"{"format":"oxide-batch.KIND","format_version":1,"schema":"peers","schema_version":1,"payload":{}}"#;
        text.replace("KIND", kind).into_bytes()
    };
    let limits = StateLimits::default();
    ChunkCommitReceipt::new(
        Checkpoint::from_json(&state("checkpoint"), limits).unwrap(),
        ExecutionContext::from_json(&state("execution-context"), limits).unwrap(),
    )
}

fn revision(name: &str) -> ComponentRevision {
    ComponentRevision::new(name).unwrap()
}

/// What a job needs beside its own components.
struct Batch<'a> {
    task: &'a Task,
    repository: PostgresJobRepository,
}

type Builder<W, R> = ChunkPipelineBuilder<DelimitedRecord, Row, R, ProcessPeople, W>;

impl Batch<'_> {
    fn builder<W: ItemWriter<Row>>(
        &self,
        writer: W,
        delivery: ChunkDeliveryMode,
    ) -> Builder<W, impl ItemReader<DelimitedRecord> + 'static> {
        let identity = ComponentStreamIdentity::new("input").unwrap();
        let dialect = DelimitedDialect::csv().with_headers(true);
        let (reader, stream, contract) =
            delimited_file_reader::<DelimitedRecord>(self.task.input(), dialect, identity.clone()).unwrap();
        let (schema, version) = (
            StateSchemaId::new("peers").unwrap(),
            StateSchemaVersion::new(1).unwrap(),
        );
        let restart = ChunkRestartContract::new(schema.clone(), version, schema, version, delivery);
        let provider = |_: ExecutionCounts, _: ChunkCounts| Ok(state());
        let transactions = PostgresChunkTransactionManager::new(self.repository.clone(), Arc::new(provider));
        let processor = ProcessPeople {
            fail_at: self.task.fail_at(),
        };
        ChunkPipelineBuilder::new(
            StepName::new("rows").unwrap(),
            ChunkSize::new(CHUNK.try_into().unwrap()).unwrap(),
            reader,
            revision("reader"),
            processor,
            revision("processor"),
            writer,
            revision("writer"),
            revision("checkpoint"),
            restart,
            Arc::new(transactions),
        )
        .with_stream(identity, stream, contract, revision("input"))
    }

    async fn launch<W: ItemWriter<Row> + 'static>(
        &self,
        builder: Builder<W, impl ItemReader<DelimitedRecord> + 'static>,
    ) -> u64 {
        let (name, definition) = (
            JobName::new("rows").unwrap(),
            DefinitionRevision::new("1").unwrap(),
        );
        let mut job = builder.build_chunk_job(name, definition).unwrap();
        let (_source, stop) = StopSource::new();
        let ids = SequentialIdGenerator::new(NonZeroU64::MIN);
        // A launch with the same parameters restarts the failed job.
        let launched = JobLauncher::new(&self.repository, &SystemClock, &ids)
            .launch_chunk(&mut job, &JobParameters::new(), &stop)
            .await
            .unwrap();
        let chunks = launched.chunk().unwrap();
        if self.task.fail_at().is_some() {
            assert!(matches!(chunks.outcome(), ChunkExecutionOutcome::Failed(_)));
        } else {
            assert_eq!(chunks.outcome(), ChunkExecutionOutcome::Completed, "{launched:?}");
        }
        chunks.committed_counts().written().get()
    }

    async fn csv_to_csv(&self) -> u64 {
        let identity = ComponentStreamIdentity::new("output").unwrap();
        let (writer, stream, contract) =
            delimited_writer(self.task.output(), DelimitedDialect::csv(), identity.clone()).unwrap();
        let builder = self.builder(writer, ChunkDeliveryMode::AtLeastOnce);
        self.launch(builder.with_stream(identity, stream, contract, revision("output")))
            .await
    }

    async fn csv_to_postgres(&self) -> u64 {
        // Only a writer of single rows knows which one was rejected.
        let mode = if self.task.verb == "skip" {
            PostgresBatchMode::PerRowStatements
        } else {
            PostgresBatchMode::MultiRowValues {
                max_parameters_per_statement: 6 * CHUNK,
            }
        };
        let writer = postgres_batch_writer(
            "INSERT INTO person SELECT id, first, last, email, amount::float8, date FROM (VALUES",
            Some(") AS row (id, first, last, email, amount, date)"),
            6,
            mode,
            |row: &Row| {
                let person = &row.person;
                let text = BusinessValue::text;
                let (first, last) = (text(&person.first), text(&person.last));
                let (email, amount) = (text(&person.email), text(&row.amount));
                vec![
                    BusinessValue::i64(person.id),
                    first,
                    last,
                    email,
                    amount,
                    text(&person.date),
                ]
            },
        )
        .unwrap();
        let builder = self.builder(writer, ChunkDeliveryMode::AtomicSameResource);
        if self.task.verb == "skip" {
            self.launch(builder.with_fault_runtime(self.skipping())).await
        } else {
            self.launch(builder).await
        }
    }

    fn skipping(&self) -> FaultRuntime {
        let action = FaultAction::skip(RollbackDisposition::Rollback);
        let rule = FaultRule::new(FaultPhase::Write, FailureCategory::UserComponent, action).unwrap();
        let policy = FaultPolicy::new(
            FaultClassifier::new(ClassifierRevision::new("rejected").unwrap(), [rule]).unwrap(),
            RetryLimit::NONE,
            RetryStateLimit::new(256).unwrap(),
            SkipLimit::new(1_000_000),
            BackoffPolicy::none(),
        )
        .unwrap();
        let state = PostgresFaultState::new(self.repository.clone(), &policy);
        let delivery = ChunkDeliveryMode::AtomicSameResource;
        FaultRuntime::new(policy, Arc::new(NoBackoff), Arc::new(state), delivery).unwrap()
    }

    async fn cold(&self) -> u64 {
        let step = TaskletStep::new(StepName::new("nothing").unwrap(), Arc::new(Nothing));
        let (name, definition) = (
            JobName::new("cold").unwrap(),
            DefinitionRevision::new("1").unwrap(),
        );
        let job = TaskletJob::new(name, step, definition, &revision("nothing")).unwrap();
        let (_source, stop) = StopSource::new();
        let ids = SequentialIdGenerator::new(NonZeroU64::MIN);
        let launched = JobLauncher::new(&self.repository, &SystemClock, &ids)
            .launch(&job, &JobParameters::new(), &stop)
            .await
            .unwrap();
        assert_eq!(launched.outcome(), TaskletExecutionOutcome::Completed);
        0
    }

    async fn partitions(&self) -> u64 {
        let pool = sqlx::postgres::PgPoolOptions::new().max_connections(2);
        let pool = pool.connect(&self.task.postgres()).await.unwrap();
        let job = partitioned_job(pool);
        let (_source, stop) = StopSource::new();
        let ids = SequentialIdGenerator::new(NonZeroU64::MIN);
        let launched = FlowLauncher::new(&self.repository, &SystemClock, &ids)
            .launch(&job, &JobParameters::new(), &stop)
            .await
            .unwrap();
        assert_eq!(*launched.outcome(), FlowExecutionOutcome::Completed);
        (PARTITIONS * ITEMS).cast_unsigned()
    }
}

struct NoBackoff;

impl BackoffSleeper for NoBackoff {
    fn sleep<'a>(&'a self, _: Duration, _: &'a StopToken) -> BoxFuture<'a, BackoffOutcome> {
        Box::pin(async { BackoffOutcome::Elapsed })
    }
}

struct Nothing;

impl Tasklet for Nothing {
    fn execute<'a>(&'a self, _: TaskletContext<'a>) -> BoxFuture<'a, Result<TaskletOutcome, TaskletError>> {
        Box::pin(async { Ok(TaskletOutcome::Completed) })
    }
}

/// A partition. It is a tasklet, because oxide-batch has no partitions with chunks, and commits its rows by itself.
struct Part {
    part: i64,
    pool: sqlx::PgPool,
}

impl Tasklet for Part {
    fn execute<'a>(&'a self, _: TaskletContext<'a>) -> BoxFuture<'a, Result<TaskletOutcome, TaskletError>> {
        Box::pin(async {
            let ids = self.part * ITEMS..(self.part + 1) * ITEMS;
            let people: Vec<_> = ids.map(|id| Person::number(id).processed()).collect();
            let texts: [fn(&Person) -> &str; 4] = [|p| &p.first, |p| &p.last, |p| &p.email, |p| &p.date];
            let [first, last, email, date] = texts.map(|of| people.iter().map(of).collect::<Vec<_>>());
            sqlx::query("INSERT INTO person SELECT * FROM UNNEST($1::bigint[], $2::text[], $3::text[], $4::text[], $5::float8[], $6::text[])")
                .bind(people.iter().map(|p| p.id).collect::<Vec<_>>())
                .bind(first)
                .bind(last)
                .bind(email)
                .bind(people.iter().map(|p| p.amount).collect::<Vec<_>>())
                .bind(date)
                .execute(&self.pool)
                .await
                .map_err(TaskletError::from_error)?;
            Ok(TaskletOutcome::Completed)
        })
    }
}

fn partitioned_job(pool: sqlx::PgPool) -> FlowJob {
    let (name, node) = (JobName::new("partitions").unwrap(), NodeId::new("parts").unwrap());
    let part = StepName::new("part").unwrap();
    let components = StepComponents::Tasklet(revision("part"));
    let step = PartitionedStepNode::new(
        node.clone(),
        StepName::new("parts").unwrap(),
        StepNode::new(NodeId::new("part").unwrap(), part.clone(), components),
        revision("parts"),
        revision("sum"),
        PartitionCount::new(PARTITIONS.try_into().unwrap()).unwrap(),
        PartitionBudget::new(2, 10).unwrap(),
    );
    let plan = FlowGraph::new(node.clone())
        .with_node(FlowNode::partitioned_step(step))
        .with_sequence(node.clone(), FlowTarget::Terminal(TerminalKind::Complete))
        .unwrap()
        .compile(&name, DefinitionRevision::new("1").unwrap())
        .unwrap();
    let entries = PartitionPlanFactory::new(|_| {
        let entry = |part: i64| {
            let key = PartitionKey::new(format!("{part:04}")).unwrap();
            PartitionPlanEntry::new(key, state().execution_context().clone()).unwrap()
        };
        Ok((0..PARTITIONS).map(entry).collect())
    });
    let step_name = part.clone();
    let tasklets = PartitionTaskletFactory::new(part, move |input| {
        let (part, pool) = (input.key().as_str().parse().unwrap(), pool.clone());
        TaskletStep::new(step_name.clone(), Arc::new(Part { part, pool }))
    });
    FlowJob::new(name, plan)
        .unwrap()
        .with_partitioned_tasklet(node, entries, tasklets)
        .unwrap()
}

#[derive(Clone, Copy)]
enum Kind {
    CsvToCsv,
    CsvToPostgres,
    Cold,
    Partitions,
}

const JOBS: [(&str, Kind); 6] = [
    ("csv-csv", Kind::CsvToCsv),
    ("csv-postgres", Kind::CsvToPostgres),
    ("skip", Kind::CsvToPostgres),
    ("restart", Kind::CsvToPostgres),
    ("cold", Kind::Cold),
    ("partitions", Kind::Partitions),
];

async fn run(task: &Task) -> Option<u64> {
    let config = || {
        let url = task.postgres();
        // The encryption is not a part of its URLs.
        let url = url.split('?').next().unwrap_or_default();
        PostgresConfig::new(url)
            .unwrap()
            .with_tls_mode(TlsMode::Plaintext)
    };
    if task.verb == "prepare-postgres" {
        PostgresMigrator::migrate(&config()).await.unwrap();
        return None;
    }
    let kind = task.job(&JOBS);
    let repository = PostgresJobRepository::connect(config(), Arc::new(SystemClock))
        .await
        .unwrap();
    let batch = Batch { task, repository };
    let written = match kind {
        Kind::CsvToCsv => batch.csv_to_csv().await,
        Kind::CsvToPostgres => batch.csv_to_postgres().await,
        Kind::Cold => batch.cold().await,
        Kind::Partitions => batch.partitions().await,
    };
    batch.repository.close().await.unwrap();
    Some(written)
}

fn main() {
    let task = Task::of_process();
    let begin = Instant::now();
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let written = tokio.block_on(run(&task));
    let time = begin.elapsed();
    if let Some(written) = written {
        report(&task, written, time);
    }
}
