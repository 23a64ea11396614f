//! The statement budget: the statements of the repository per chunk and per launch, each prepared once for a connection.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use batch_runtime::BatchStatus;
use batch_runtime::observer::{JobEvent, JobObserver};
use batch_runtime::prelude::*;
use batch_tests::database::Database;
use batch_tests::stage::Stage;
use diesel::connection::{Instrumentation, InstrumentationEvent, set_default_instrumentation};

/// The statements of one database.
struct Counted {
    /// The address of the database.
    database: String,
    statements: Vec<String>,
    /// The number of commits: of transactions, and of statements that write outside of one.
    commits: usize,
    /// Those that a connection has prepared before.
    prepared_again: Vec<String>,
}

impl Counted {
    const fn new() -> Self {
        Self {
            database: String::new(),
            statements: Vec::new(),
            commits: 0,
            prepared_again: Vec::new(),
        }
    }
}

static COUNTED: Mutex<Counted> = Mutex::new(Counted::new());

/// The tests of this file, one after the other.
static ONE: Mutex<()> = Mutex::new(());

/// One for each connection of the process.
#[derive(Default)]
struct Recorder {
    url: String,
    is_in_transaction: bool,
    prepared: HashSet<String>,
    /// The statements of `prepared` that the connection keeps.
    kept: HashSet<String>,
}

impl Instrumentation for Recorder {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        match event {
            InstrumentationEvent::StartEstablishConnection { url, .. } => url.clone_into(&mut self.url),
            InstrumentationEvent::StartQuery { query, .. } => {
                let commits = self.commits(&query.to_string());
                let counted = &mut *COUNTED.lock().unwrap();
                if is_address_of(&counted.database, &self.url) {
                    let query = query.to_string();
                    let text = query.split(" -- binds:").next().unwrap();
                    if !is_transaction(text)
                        && !self.kept.contains(text)
                        && !self.prepared.insert(text.to_owned())
                    {
                        counted.prepared_again.push(text.to_owned());
                    }
                    // The keeper's statements are timed, independent of the job.
                    if std::thread::current().name() != Some("batch-keeper") {
                        counted.statements.push(query);
                        counted.commits += usize::from(commits);
                    }
                }
            }
            // Follows the start of the query that is prepared.
            InstrumentationEvent::CacheQuery { sql, .. } => {
                self.kept.insert(sql.to_owned());
            }
            _ => {}
        }
    }
}

impl Recorder {
    /// Returns whether a statement of the connection commits.
    fn commits(&mut self, query: &str) -> bool {
        let query = query.to_uppercase();
        match query.split_whitespace().next().unwrap_or_default() {
            "BEGIN" | "START" => self.is_in_transaction = true,
            "COMMIT" => return std::mem::take(&mut self.is_in_transaction),
            "ROLLBACK" => self.is_in_transaction = false,
            "INSERT" | "UPDATE" | "DELETE" | "WITH" => return !self.is_in_transaction,
            _ => {}
        }
        false
    }
}

fn is_address_of(database: &str, url: &str) -> bool {
    let after = url.split_once(database).map(|(_, after)| after);
    !database.is_empty() && after.is_some_and(|after| !after.starts_with(|next: char| next.is_ascii_digit()))
}

fn recorder() -> Option<Box<dyn Instrumentation>> {
    Some(Box::new(Recorder::default()))
}

const JOB: &str = r#"<job id="count">
  <step id="count"><chunk reader="CountedNumbers" processor="CountedSame" writer="CountedNowhere" commit-interval="10"/></step>
</job>"#;

#[derive(BatchArtifact)]
struct CountedNumbers {
    #[batch_property(name = "limit")]
    limit: u32,
    next: u32,
}

#[item_reader]
impl CountedNumbers {
    #[open]
    fn open(&mut self, checkpoint: Option<u32>) {
        self.next = checkpoint.unwrap_or(0);
    }
    #[read_item]
    fn read(&mut self) -> Option<u32> {
        assert_ne!(self.limit, 13, "the reader fails");
        (self.next < self.limit).then(|| {
            self.next += 1;
            self.next
        })
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u32 {
        self.next
    }
}

#[derive(BatchArtifact)]
struct CountedSame {}

#[item_processor]
impl CountedSame {
    #[process_item]
    fn same(&mut self, number: u32) -> Option<u32> {
        Some(number)
    }
}

#[derive(BatchArtifact)]
struct CountedNowhere {}

#[item_writer]
impl CountedNowhere {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, _numbers: &[u32]) {}
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// A writer in the transaction of the chunk, whose methods have nothing left to do after the last commit.
#[derive(BatchArtifact)]
struct CountedRows {}

#[item_writer]
impl CountedRows {
    #[write_items]
    fn write(&mut self, _numbers: &[u32], _tx: &mut ChunkTransaction) {}
}

#[derive(BatchArtifact)]
struct CountedAndClosed {}

#[item_writer]
impl CountedAndClosed {
    #[write_items]
    fn write(&mut self, _numbers: &[u32], _tx: &mut ChunkTransaction) {}
    #[close]
    fn close(&mut self) {}
}

/// Counts the statements of another database from now on.
fn count_statements_of(stage: &Stage) {
    *COUNTED.lock().unwrap() = Counted {
        database: stage.place().address().to_owned(),
        ..Counted::new()
    };
}

/// Returns the statements of one whole job.
fn statements_of(stage: &Stage, limit: u32, run: u32) -> Vec<String> {
    COUNTED.lock().unwrap().statements.clear();
    let (limit, run) = (limit.to_string(), run.to_string());
    stage.launch("count", [("limit", limit.as_str()), ("run", run.as_str())]);
    let mut statements = std::mem::take(&mut COUNTED.lock().unwrap().statements);
    // One more connection, if the keeper uses the other one at that moment.
    statements.retain(|statement| {
        ![
            "PRAGMA busy_timeout",
            "PRAGMA journal_mode",
            "SELECT set_config(",
            "SET SESSION ",
        ]
        .iter()
        .any(|set| statement.starts_with(set))
    });
    statements
}

/// Returns whether a statement begins or ends a transaction. Databases do not prepare these.
fn is_transaction(statement: &str) -> bool {
    let words = [
        "BEGIN",
        "START TRANSACTION",
        "SET TRANSACTION",
        "COMMIT",
        "PRAGMA synchronous",
    ];
    words.iter().any(|word| statement.starts_with(word))
}

fn metadata(statements: &[String]) -> usize {
    let repository = |statement: &&String| !is_transaction(statement);
    statements.iter().filter(repository).count()
}

/// Two metadata statements per chunk, one on PostgreSQL (three are allowed), in one transaction; the number per launch
/// does not grow with the history.
///
/// Spec: REPO-62, CHUNK-LOOP-12
#[test]
fn a_chunk_costs_few_statements_and_a_launch_a_constant_number() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Connections are recorded from their creation.
    set_default_instrumentation(recorder).unwrap();
    for database in Database::ALL {
        check(database);
    }
}

fn check(database: Database) {
    let stage = Stage::on(database, JOB);
    count_statements_of(&stage);
    statements_of(&stage, 5, 0);
    // The shortest of several runs, because a run on a busy machine may have more statements, such as a renewal of the lease.
    let least = |limit: u32, runs: std::ops::Range<u32>| {
        let all = runs.map(|run| statements_of(&stage, limit, run));
        all.min_by_key(Vec::len).unwrap()
    };
    let (short, long) = (least(5, 1..4), least(1_005, 4..6));
    // 100 more intervals.
    let each = if database == Database::Postgres { 1 } else { 2 };
    assert_eq!(
        metadata(&long) - metadata(&short),
        100 * each,
        "{database:?} {:#?}",
        &long[long.len() - 20..]
    );
    assert_eq!(
        long.len() - short.len(),
        100 * (each + 2),
        "{database:?}: these, BEGIN and COMMIT"
    );
    let mut others = 0;
    for run in 6..33 {
        let these = statements_of(&stage, 5, run);
        if these.len() != short.len() {
            others += 1;
            println!("{database:?}, run {run}: {these:#?} instead of {short:#?}");
        }
    }
    // A run that the machine holds up for seconds may renew its lease.
    assert!(others <= 1, "{database:?}: {others} launches cost another number");
}

/// Chooses a trace for each job execution.
struct Tracing;

impl JobObserver for Tracing {
    fn on_event(&self, _: &JobEvent) {}
    fn trace_job(&self, _: &str) -> Option<String> {
        Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into())
    }
}

/// A trace is stored by the statements that there are anyway, and read by them at the next execution.
///
/// Spec: OTEL-03
#[test]
fn a_trace_costs_no_statement() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    set_default_instrumentation(recorder).unwrap();
    let counts = |stage: &Stage| {
        count_statements_of(stage);
        statements_of(stage, 5, 0);
        let launch = statements_of(stage, 15, 1).len();
        let failed = stage.operator().launch("count", [("limit", "13"), ("run", "2")]);
        let failed = stage.operator().wait(failed.unwrap()).unwrap();
        assert_eq!(failed.status, BatchStatus::Failed);
        COUNTED.lock().unwrap().statements.clear();
        let again = stage.operator().restart(failed.id, [("limit", "5")]).unwrap();
        stage.operator().wait(again).unwrap();
        (launch, COUNTED.lock().unwrap().statements.len())
    };
    // Any observer gets the end of the execution before a restart, which is read.
    let untraced = counts(&Stage::configured(JOB, |builder| {
        builder.observer(|_: &JobEvent| {})
    }));
    let traced = counts(&Stage::configured(JOB, |builder| builder.observer(Tracing)));
    assert_eq!(traced, untraced);
}

/// A job of steps, and three of partitions that run one after the other: of a batchlet, and of a chunk with one commit, whose artifacts have
/// no `#[close]`, or one.
fn few_or_many(count: usize) -> [String; 4] {
    let step = |number| {
        let next = if number < count {
            format!(" next='step{}'", number + 1)
        } else {
            String::new()
        };
        format!("<step id='step{number}'{next}><batchlet ref='CountedNothing'/></step>")
    };
    let steps: String = (1..=count).map(step).collect();
    let chunk = |writer| {
        format!(
            "<chunk reader='CountedNumbers' processor='CountedSame' writer='{writer}' commit-interval='10'/>"
        )
    };
    [
        format!("<job id='steps{count}'>{steps}</job>"),
        partitions("batchlets", "<batchlet ref='CountedNothing'/>", count),
        partitions("chunks", &chunk("CountedRows"), count),
        partitions("closed", &chunk("CountedAndClosed"), count),
    ]
}

fn partitions(name: &str, of: &str, count: usize) -> String {
    format!(
        "<job id='{name}{count}'>
           <step id='all'>
             <properties><property name='batch.partition.threads' value='1'/></properties>
             {of}
             <partition instances='{count}'/>
           </step>
         </job>"
    )
}

const KINDS: &str = r#"<job id="kinds">
  <step id="chunks" next="batchlet"><chunk reader="CountedNumbers" processor="CountedSame" writer="CountedNowhere" commit-interval="10"/></step>
  <step id="batchlet" next="partitions"><batchlet ref="CountedNothing"/></step>
  <step id="partitions">
    <properties><property name="batch.dispatch" value="${dispatch}"/></properties>
    <chunk reader="CountedNumbers" processor="CountedSame" writer="CountedNowhere" commit-interval="10"/>
    <partition instances="${partitions}"/>
  </step>
</job>"#;

#[derive(BatchArtifact)]
struct CountedNothing {}

#[batchlet]
impl CountedNothing {
    #[process]
    fn process(&self) -> String {
        "DONE".to_owned()
    }
    #[cancel]
    fn cancel(&self) {}
}

/// A step commits at its begin and at its end, and has no transaction that only reads. On MySQL the id comes from a separate transaction,
/// as in Spring Batch. The rows of up to 16 partitions are inserted by one transaction. A partition commits its end together with the
/// start of the next one; a partition of a chunk step together with its last chunk, if its artifacts have no `#[close]`.
///
/// Spec: D-102, D-105, D-107
#[test]
fn a_step_commits_twice_and_a_partition_with_its_last_chunk() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    set_default_instrumentation(recorder).unwrap();
    for database in Database::ALL {
        let of_step = if database == Database::Mariadb { 3 } else { 2 };
        let (few, many) = (few_or_many(1), few_or_many(11));
        for (at, commits) in [(0, of_step), (1, 1), (2, 1), (3, 2)] {
            let [few, many] = [&few[at], &many[at]].map(|xml| commits_of(database, xml));
            assert_eq!(many - few, 10 * commits, "{database:?}: {}", few_or_many(1)[at]);
        }
    }
}

/// Returns the number of commits of a job.
fn commits_of(database: Database, xml: &str) -> usize {
    let stage = Stage::on(database, xml);
    let job = xml.split('\'').nth(1).unwrap();
    count_statements_of(&stage);
    stage.launch(job, [("run", "1"), ("limit", "5")]);
    COUNTED.lock().unwrap().commits
}

/// Launches the job several times, and returns the statements that a connection has prepared more than once.
fn prepared_again(stage: &Stage, dispatch: &str, partitions: &str, first: u32) -> Vec<String> {
    for run in first..first + 3 {
        let run = run.to_string();
        let values = [
            ("dispatch", dispatch),
            ("partitions", partitions),
            ("run", run.as_str()),
            ("limit", "105"),
        ];
        let execution = stage.launch("kinds", values);
        let ended = stage.operator().job_execution(execution).unwrap().unwrap();
        assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    }
    std::mem::take(&mut COUNTED.lock().unwrap().prepared_again)
}

/// A connection prepares a statement once, for any number of chunks, steps, partitions and launches. The exception on servers
/// are statements about many partitions at once.
///
/// Spec: CHUNK-LOOP-12, REPO-62
#[test]
fn a_connection_prepares_a_statement_once() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    set_default_instrumentation(recorder).unwrap();
    for database in Database::ALL {
        let stage = Stage::on(database, KINDS);
        count_statements_of(&stage);
        let few = prepared_again(&stage, "local", "4", 0);
        let more = prepared_again(&stage, "local", "16", 10);
        let worker = stage.another_runtime().worker().slots(1).start().unwrap();
        let remote = prepared_again(&stage, "repository", "8", 20);
        worker.drain();
        worker.wait().unwrap();
        let again: Vec<String> = [few, more, remote].concat();
        let again: Vec<&String> = again
            .iter()
            .filter(|statement| !is_about_many(statement))
            .collect();
        assert!(again.is_empty(), "{database:?}: {again:#?}");
    }
}

/// Returns whether a statement reads or writes many rows: by a list of any length on PostgreSQL, or with several rows of values.
fn is_about_many(statement: &str) -> bool {
    statement.contains(" = ANY($") || statement.contains("), (")
}
