//! The repository `memory:`: the requirements of the other modules hold on it, too, and what needs a database is rejected.

use std::process::Command;

use batch_runtime::partition::{
    DispatchError, PartitionChannel, PartitionDispatcher, PartitionSource, PartitionTransport,
};
use batch_runtime::repository::{DatabaseKind, MigrationStatus, RepositoryUrl};
use batch_runtime::{BatchRuntime, JobExecutionId, JobOperatorError};
use batch_tests::deadline;
use batch_tests::stage::{IN_MEMORY, NEEDS_DATABASE, Stage};

use super::artifacts::{
    assert_completed, assert_failed, assert_matches, chunk_job, first_step_execution, job, plain, refused,
    restart_with,
};
use super::parallel::partitioned;

/// The least number of tests that need no database.
const TESTS_WITHOUT_DATABASE: usize = 300;

/// Runs the other tests of this program again, on `memory:`. They pass, except those that look at the tables, write to them, or use the
/// repository from a second runtime.
///
/// Spec: MEM-01
#[test]
fn the_other_tests_pass_on_it() {
    deadline::waits_for(|| "the other tests in a process with repositories in memory".into());
    let mut tests = Command::new(std::env::current_exe().unwrap());
    for module in ["in_memory::", "chunk_model::", "get_runtime::", "delivery::"] {
        tests.args(["--skip", module]);
    }
    tests.envs([(IN_MEMORY, "1"), ("INSTA_UPDATE", "no"), ("RUST_BACKTRACE", "0")]);
    let tests = deadline::of_child(&mut tests).output().unwrap();
    let output = String::from_utf8_lossy(&tests.stdout);
    let errors = String::from_utf8_lossy(&tests.stderr);
    assert!(!errors.contains("` hangs"), "{errors}");
    let passed = output.lines().filter(|line| line.ends_with(" ... ok")).count();
    assert!(passed >= TESTS_WITHOUT_DATABASE, "only {passed} pass\n{output}");
    let reasons = [NEEDS_DATABASE, "NoChunkTransaction", "its writer `", "InMemory"];
    let needs_database = |story: &str| reasons.iter().any(|reason| story.contains(reason));
    let stories = output.split("\n---- ").skip(1);
    let wrong: Vec<&str> = stories.filter(|story| !needs_database(story)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n---- "));
}

/// A failed execution, looked up and restarted by the same runtime.
///
/// Spec: MEM-01, MEM-04
#[test]
fn it_lives_as_long_as_its_runtime_and_belongs_to_it_alone() {
    let stage = Stage::in_memory(&chunk_job(r#"commit-interval="2""#));
    let execution = stage.launch("job", [("fail", "write n3 n4"), ("items", "5")]);
    assert_failed(&stage, execution, "cannot write n3 n4");
    let again = restart_with(&stage, execution, [("fail", "")]);
    assert_completed(&stage, again);
    let step = first_step_execution(&stage, again);
    assert_eq!((step.counters.reads, step.counters.commits), (3, 2));
    let complete = stage.operator().restart(execution, ()).unwrap_err();
    assert_matches!(complete, JobOperatorError::JobInstanceAlreadyComplete { .. });
    let other = BatchRuntime::builder().repository("memory:").build().unwrap();
    assert!(other.job_operator().job_execution(execution).unwrap().is_none());
}

/// Spec: MEM-03
#[test]
fn a_writer_that_takes_the_chunk_transaction_is_rejected_at_the_start() {
    let chunk = r#"<chunk reader="Numbers" processor="Labels" writer="TableLines"/>"#;
    let in_flow = format!(r#"<flow id="flow"><step id="copy">{chunk}</step></flow>"#);
    let in_partitions = format!(r#"<step id="copy">{chunk}<partition instances="2"/></step>"#);
    let alone = format!(r#"<step id="copy">{chunk}</step>"#);
    let expected = "cannot start job `job`: its writer `TableLines` writes in the transaction of the checkpoint, but the repository \
                    `memory:` has no database; use `sqlite://:memory:`, or a writer without `tx: &mut ChunkTransaction`";
    for elements in [&alone, &in_flow, &in_partitions] {
        let stage = Stage::in_memory(&job(elements));
        assert_eq!(refused(&stage, "job", ()), expected, "{elements}");
        assert_eq!(stage.operator().job_instance_count("job").unwrap(), 0);
    }
}

/// Spec: MEM-03
#[test]
fn no_program_connects_to_it() {
    let stage = Stage::in_memory(&job(r#"<step id="one"><batchlet ref="Task"/></step>"#));
    let expected = "the repository `memory:` has no database that artifacts can connect to; use `sqlite://PATH`, PostgreSQL or MySQL";
    let error = stage.operator().connect().err().unwrap();
    assert_eq!(plain(&stage, &error), expected);
    let url: RepositoryUrl = "memory:".parse().unwrap();
    assert_eq!(url.connect().err().unwrap().to_string(), expected);
    let expected = (DatabaseKind::Memory, "memory:".into());
    assert_eq!((url.database(), url.to_string()), expected);
    assert_eq!(url.migration_status().unwrap(), MigrationStatus::UpToDate);
    assert_eq!(url.schema(url.database()), "");
}

/// Spec: MEM-01
#[test]
fn its_url_has_no_path_and_no_options() {
    for url in ["memory:x", "memory://", "memory:?table_prefix=A_"] {
        let error = url.parse::<RepositoryUrl>().unwrap_err();
        let problem =
            format!("unsupported repository `{url}`: expected `memory:`, without a path or options");
        assert_eq!(error.to_string(), problem);
    }
}

/// A transport that is never used.
struct Unused;

impl PartitionDispatcher for Unused {
    fn open(&self, _: JobExecutionId, _: &str) -> Result<Box<dyn PartitionChannel>, DispatchError> {
        Err(DispatchError::new("not reached"))
    }
}

impl PartitionTransport for Unused {
    fn connect_worker(&self, _: &str) -> Result<Box<dyn PartitionSource>, DispatchError> {
        Err(DispatchError::new("not reached"))
    }
}

/// Spec: MEM-02
#[test]
fn a_runtime_that_gives_work_to_other_processes_is_not_built() {
    let builder = || BatchRuntime::builder().repository("memory:");
    for (builder, name) in [
        (builder().dispatch("repository"), "repository"),
        (builder().partition_dispatcher(Unused), "custom"),
        (builder().partition_transport("queue", Unused), "queue"),
    ] {
        let error = builder.build().err().unwrap().to_string();
        let expected = format!(
            "the dispatcher `{name}` gives work to other processes, which cannot see the repository `memory:`; use `sqlite://PATH`, \
             PostgreSQL or MySQL"
        );
        assert_eq!(error, expected);
    }
    builder().dispatch("local").build().unwrap();
}

/// Spec: MEM-02
#[test]
fn work_for_other_processes_is_rejected_before_it_starts() {
    let property = r#"<properties><property name="batch.dispatch" value="repository"/></properties>"#;
    let partitioned = partitioned("one", "", "Task", r#"instances="2""#);
    let stage = Stage::in_memory(&job(&format!("{property}{partitioned}")));
    let expected = "the repository `memory:` is in the memory of this process, so no other process can see its work; use \
                    `sqlite://PATH`, PostgreSQL or MySQL";
    let operator = stage.operator();
    for error in [
        operator.start("job", ()).unwrap_err(),
        operator.launch("job", ()).unwrap_err(),
        operator.launch_remote("job", (), "default").unwrap_err(),
    ] {
        assert!(error.to_string().ends_with(expected), "{error}");
    }
    assert_eq!(operator.job_instance_count("job").unwrap(), 0);
    assert!(operator.workers().unwrap().is_empty() && operator.launches().unwrap().is_empty());
    let runtime = BatchRuntime::builder().repository("memory:").build().unwrap();
    let error = runtime.worker().start().err().unwrap();
    assert!(error.to_string().ends_with(expected), "{error}");
}
