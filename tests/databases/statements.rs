//! The statement budget: the statements of the repository per chunk and per launch.

use std::sync::Mutex;

use batch_runtime::prelude::*;
use batch_tests::database::Database;
use batch_tests::stage::Stage;
use diesel::connection::{Instrumentation, InstrumentationEvent, set_default_instrumentation};

/// The database whose statements are counted, by its address, and the statements so far.
static COUNTED: Mutex<(String, Vec<String>)> = Mutex::new((String::new(), Vec::new()));

/// One for each connection of the process.
#[derive(Default)]
struct Recorder {
    url: String,
}

impl Instrumentation for Recorder {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        match event {
            InstrumentationEvent::StartEstablishConnection { url, .. } => url.clone_into(&mut self.url),
            InstrumentationEvent::StartQuery { query, .. } => {
                let (database, statements) = &mut *COUNTED.lock().unwrap();
                // The keeper's statements are timed, independent of the job.
                let is_keeper = std::thread::current().name() == Some("batch-keeper");
                if is_address_of(database, &self.url) && !is_keeper {
                    statements.push(query.to_string());
                }
            }
            _ => {}
        }
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

/// Returns the statements of one whole job.
fn statements_of(stage: &Stage, limit: u32, run: u32) -> Vec<String> {
    COUNTED.lock().unwrap().1.clear();
    let (limit, run) = (limit.to_string(), run.to_string());
    stage.launch("count", [("limit", limit.as_str()), ("run", run.as_str())]);
    let mut statements = std::mem::take(&mut COUNTED.lock().unwrap().1);
    // One more connection, if the keeper uses the other one at that moment.
    statements.retain(|statement| {
        ![
            "PRAGMA busy_timeout",
            "PRAGMA journal_mode",
            "SET lock_timeout",
            "SET SESSION ",
        ]
        .iter()
        .any(|set| statement.starts_with(set))
    });
    statements
}

fn metadata(statements: &[String]) -> usize {
    let words = ["BEGIN", "START TRANSACTION", "SET TRANSACTION", "COMMIT"];
    let transaction = |statement: &&String| words.iter().any(|word| statement.starts_with(word));
    statements
        .iter()
        .filter(|statement| !transaction(statement))
        .count()
}

/// Two metadata statements per chunk, one on PostgreSQL (three are allowed), in one transaction; the number per launch
/// does not grow with the history.
///
/// Spec: REPO-62, CHUNK-LOOP-12
#[test]
fn a_chunk_costs_few_statements_and_a_launch_a_constant_number() {
    // Connections are recorded from their creation.
    set_default_instrumentation(recorder).unwrap();
    for database in Database::ALL {
        check(database);
        check_transactions(database);
    }
}

fn check(database: Database) {
    let stage = Stage::on(database, JOB);
    COUNTED.lock().unwrap().0 = stage.place().address().to_owned();
    statements_of(&stage, 5, 0);
    let short = statements_of(&stage, 5, 1);
    let long = statements_of(&stage, 1_005, 2);
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
    let first = short.len();
    for run in 3..30 {
        assert_eq!(
            statements_of(&stage, 5, run).len(),
            first,
            "{database:?}, run {run}"
        );
    }
}

/// A job of steps, and one of partitions that run one after the other.
fn few_or_many(count: usize) -> [String; 2] {
    let step = |number| {
        let next = if number < count {
            format!(" next='step{}'", number + 1)
        } else {
            String::new()
        };
        format!("<step id='step{number}'{next}><batchlet ref='CountedNothing'/></step>")
    };
    let steps: String = (1..=count).map(step).collect();
    [
        format!("<job id='steps{count}'>{steps}</job>"),
        format!(
            "<job id='partitions{count}'>
               <step id='all'>
                 <properties><property name='batch.partition.threads' value='1'/></properties>
                 <batchlet ref='CountedNothing'/>
                 <partition instances='{count}'/>
               </step>
             </job>"
        ),
    ]
}

#[derive(BatchArtifact)]
struct CountedNothing {}

#[batchlet]
impl CountedNothing {
    #[process]
    fn process(&self) -> String {
        "COMPLETED".into()
    }
    #[cancel]
    fn cancel(&self) {}
}

/// A step and a partition have one transaction at the begin and one at the end, and none that only reads.
///
/// Spec: D-102
fn check_transactions(database: Database) {
    for (few, many) in few_or_many(1).into_iter().zip(few_or_many(11)) {
        let transactions = [few, many].map(|xml| {
            let stage = Stage::on(database, &xml);
            let job = xml.split('\'').nth(1).unwrap();
            COUNTED.lock().unwrap().0 = stage.place().address().to_owned();
            COUNTED.lock().unwrap().1.clear();
            stage.launch(job, [("run", "1")]);
            let statements = std::mem::take(&mut COUNTED.lock().unwrap().1);
            let commits = statements.iter().filter(|statement| *statement == "COMMIT");
            commits.count()
        });
        assert_eq!(
            transactions[1] - transactions[0],
            20,
            "{database:?}: {transactions:?}"
        );
    }
}
