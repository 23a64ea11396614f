//! Random failures in random chunk steps against a model of the rules.
//!
//! The model (`chunk_model/model.rs`) is written from the catalogue. The engine must produce the status, the counters,
//! the written items and the calls of skip and retry listeners that it predicts, also with several processors and in a pipeline. Without them, the
//! order of calls must conform to Appendix B.2.

mod case;
mod model;
mod world;

use self::case::{Case, RULES, case};
use self::model::{Model, Notified, Outcome};
use batch_runtime::{BatchRuntime, BatchStatus, JobExecutionId, JobOperator, JobParameters};
use batch_tests::order::Order;
use batch_tests::{deadline, slow};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// Returns the id of the job for these flags, which no parameter can set.
fn id_of([listened, custom, skips, retries]: [bool; 4]) -> String {
    let flags = [(listened, 'l'), (custom, 'c'), (skips, 's'), (retries, 'r')];
    let flags = flags.map(|(flag, yes)| if flag { yes } else { '-' });
    format!("job{}", String::from_iter(flags))
}

fn job_of(case: &Case) -> String {
    let (skips, retries) = (case.skip_limit.is_some(), case.retry_limit.is_some());
    id_of([case.listened, case.custom, skips, retries])
}

/// Writes the jobs of all cases, and the job that connects to the database.
fn write_jobs(folder: &std::path::Path) {
    let connect = r#"<job id="connect"><step id="one"><batchlet ref="ModelConnects"/></step></job>"#;
    std::fs::write(folder.join("connect.xml"), connect).unwrap();
    for bits in 0..16u32 {
        let flags = [1, 2, 4, 8].map(|bit| bits & bit != 0);
        let [listened, custom, skips, retries] = flags;
        let id = id_of(flags);
        let when = |flag: bool, text: &'static str| if flag { text } else { "" };
        let properties = r#"<properties><property name="batch.chunk.processors" value="${processors}"/>
            <property name="batch.chunk.pipeline" value="${pipelined}"/></properties>"#;
        let properties = when(!custom, properties);
        let listeners = when(
            listened,
            r#"<listeners><listener ref="${listener}"/></listeners>"#,
        );
        let policy = when(custom, r#"checkpoint-policy="custom""#);
        let algorithm = when(custom, r#"<checkpoint-algorithm ref="ModelCounts"/>"#);
        let skips = when(skips, r#"skip-limit="${skips}""#);
        let retries = when(retries, r#"retry-limit="${retries}""#);
        let xml = format!(
            r#"<job id="{id}"><step id="copy">{properties}{listeners}
              <chunk reader="ModelSource" processor="ModelShape" writer="${{writer}}" chunk-size="${{size}}"
                buffer-reads="${{buffer}}" commit-interval="${{interval}}" {policy} {skips} {retries}>{algorithm}{RULES}</chunk>
            </step></job>"#
        );
        std::fs::write(folder.join(format!("{id}.xml")), xml).unwrap();
    }
}

fn parameters(case: &Case) -> JobParameters {
    let writer = match (case.transactional, case.buffered) {
        (true, true) => "Inserts",
        (true, false) => "InsertsEach",
        (false, true) => "Delivers",
        (false, false) => "DeliversEach",
    };
    let listener = match case.pipelined {
        true => "ModelPipelineListeners",
        false => "ModelListener",
    };
    let number = |number: Option<u32>| number.unwrap_or(0).to_string();
    JobParameters::from([("writer", writer), ("listener", listener)])
        .with("size", case.chunk_size.to_string())
        .with("interval", case.commit_interval.to_string())
        .with("processors", case.processors.to_string())
        .with("pipelined", case.pipelined.to_string())
        .with("buffer", case.buffer_reads.to_string())
        .with("skips", number(case.skip_limit))
        .with("retries", number(case.retry_limit))
}

/// The step execution, as stored in the repository.
fn outcome(operator: &JobOperator, execution: JobExecutionId) -> Outcome {
    let status = operator.wait(execution).unwrap().status;
    let step = operator.step_executions(execution).unwrap().remove(0);
    assert_eq!(status, step.status, "of job and step");
    let c = step.counters;
    Outcome {
        completed: status == BatchStatus::Completed,
        reads: c.reads,
        writes: c.writes,
        filters: c.filters,
        commits: c.commits,
        rollbacks: c.rollbacks,
        read_skips: c.read_skips,
        process_skips: c.process_skips,
        write_skips: c.write_skips,
    }
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = BigInt)]
    item: i64,
}

/// Returns the rows of the table in the order of writing, and empties it.
fn take_lines() -> Vec<u64> {
    world::on_database(|connection| {
        let lines = diesel::sql_query("SELECT item FROM line ORDER BY rowid");
        let lines: Vec<Line> = lines.load(connection).unwrap();
        diesel::sql_query("DELETE FROM line").execute(connection).unwrap();
        let items = lines.iter().map(|line| u64::try_from(line.item).unwrap());
        items.collect()
    })
}

/// Returns whether a writer without transaction has written each committed item once, in order. After a failure it may
/// have written more, which the next `open` would remove.
fn delivers(committed: &[u64], delivered: &[u64], executions: &[Outcome]) -> bool {
    let completed = executions.last().is_some_and(|last| last.completed);
    delivered.starts_with(committed) && (delivered.len() == committed.len() || !completed)
}

/// Runs the case, restarts it once if it fails, and compares.
fn agrees(operator: &JobOperator, case: &Case) -> Result<(), TestCaseError> {
    let mut model = Model::new(case);
    let mut expected = vec![model.execute()];
    if !expected[0].completed && !model.endless {
        expected.push(model.execute());
    }
    if model.endless {
        return Err(TestCaseError::reject("too many retries to wait for"));
    }

    world::begin(case);
    let running = case.clone();
    deadline::waits_for(move || format!("{running:#?}"));
    let first = operator.start(&job_of(case), parameters(case)).unwrap();
    let mut actual = vec![outcome(operator, first)];
    if !actual[0].completed {
        let again = operator.restart(first, JobParameters::new()).unwrap();
        actual.push(outcome(operator, again));
    }

    let (log, notified, delivered) = world::with(|world| {
        let log = std::mem::take(&mut world.log);
        (log, world.notified, std::mem::take(&mut world.delivered))
    });
    let lines = take_lines();
    let problem = if actual != expected {
        Some(format!("expected {expected:#?}, found {actual:#?}"))
    } else if case.listened && notified != model.notified {
        Some(format!("expected {:?}, found {notified:?}", model.notified))
    } else if !case.listened && notified != Notified::default() {
        Some("a listener was called that is not there".to_owned())
    } else if case.transactional && lines != model.written {
        Some(format!("expected lines {:?}, found {lines:?}", model.written))
    } else if !case.transactional && !delivers(&model.written, &delivered, &actual) {
        let committed = &model.written;
        Some(format!(
            "{committed:?} are committed, {delivered:?} were delivered"
        ))
    } else if case.processors == 1 && !case.pipelined {
        let order = Order::listening(case.listened, case.custom);
        order.check(&log).err()
    } else {
        None
    };
    match problem {
        None => Ok(()),
        Some(problem) => Err(TestCaseError::fail(format!("{problem}\n{}", log.join("\n")))),
    }
}

/// 500 random cases, or 10,000 in the slow tier, match the model. `BATCH_SEED` chooses other cases, `BATCH_CASES`
/// more.
///
/// Spec: CHUNK-SKIP-02, CHUNK-SKIP-06, CHUNK-SKIP-07, CHUNK-SKIP-08, CHUNK-SKIP-09, CHUNK-SKIP-10, CHUNK-SKIP-11,
/// Spec: CHUNK-SKIP-12, CHUNK-RETRY-02, CHUNK-RETRY-04, CHUNK-RETRY-05, CHUNK-RETRY-06, CHUNK-RETRY-08, CHUNK-RETRY-11,
/// Spec: CHUNK-RETRY-12, CHUNK-RETRY-13, CHUNK-RETRY-14, CHUNK-NORB-02, CHUNK-NORB-03, LISTEN-RETRY-04, LISTEN-RETRY-09,
/// Spec: LISTEN-RETRY-10, CHUNK-LOOP-04, CHUNK-LOOP-05, CHUNK-LOOP-06, CHUNK-LOOP-09, CHUNK-LOOP-13, CHUNK-LOOP-16, D-99, D-100, MEM-01
#[test]
fn random_failures_end_as_the_rules_say() {
    let folder = tempfile::tempdir().unwrap();
    write_jobs(folder.path());
    let operator = |url: &str| {
        let builder = BatchRuntime::builder().repository(url);
        let runtime = builder.job_path(folder.path().display().to_string()).build();
        runtime.unwrap().job_operator()
    };
    let (operator, in_memory) = (operator("sqlite://:memory:"), operator("memory:"));
    let connected = operator.start("connect", JobParameters::new()).unwrap();
    assert_eq!(operator.wait(connected).unwrap().status, BatchStatus::Completed);

    let given = |name: &str, usual: u64| std::env::var(name).map_or(usual, |value| value.parse().unwrap());
    let usual = slow::times(500, 10_000);
    let (seed, cases) = (given("BATCH_SEED", 1), given("BATCH_CASES", usual));
    println!("BATCH_SEED={seed} BATCH_CASES={cases}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases: u32::try_from(cases).unwrap(),
        failure_persistence: None,
        max_global_rejects: u32::MAX,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let repository_of = |case: &Case| match case.transactional || case.buffer_reads {
        true => &operator,
        false => &in_memory,
    };
    if let Err(failure) = runner.run(&case(), |case| agrees(repository_of(&case), &case)) {
        panic!("BATCH_SEED={seed}: {failure}");
    }
}
