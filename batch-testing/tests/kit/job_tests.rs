//! Whole jobs, single steps, doubles, and what failed assertions print.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use batch_testing::{JobTest, SkippedItems, WrittenItems, fails_at};

use super::panics::panic_of;

/// Doubles numbers, and rejects those over the limit.
#[derive(BatchArtifact)]
struct Double {
    #[batch_property(name = "limit", value = "1000")]
    limit: u64,
}

#[item_processor("Double")]
impl Double {
    #[process_item]
    fn process(&mut self, number: &u64) -> Result<Option<u64>, BatchError> {
        if *number > self.limit {
            return Err(BatchError::msg(format!("{number} is over the limit")));
        }
        Ok((!number.is_multiple_of(3)).then(|| number * 2))
    }
}

const JOB: &str = r#"<job id="numbers">
  <properties><property name="limit" value="${limit}"/></properties>
  <step id="clean" next="both"><batchlet ref="Clean"/></step>
  <flow id="both" next="report">
    <step id="double">
      <chunk reader="Numbers" processor="Double" writer="Table" commit-interval="2">
        <properties><property name="limit" value="${limit}" target="processor"/></properties>
        <skippable-exception-classes><include class="std::num::ParseIntError"/></skippable-exception-classes>
      </chunk>
    </step>
  </flow>
  <step id="report">
    <batchlet ref="Report"/>
    <end on="*" exit-status="DOUBLED"/>
  </step>
</job>"#;

/// A folder with the job.
fn job(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.xml");
    fs::write(&file, text).unwrap();
    (folder, file)
}

fn numbers(file: &PathBuf, written: &WrittenItems<u64>) -> JobTest {
    JobTest::new(file)
        .reader("Numbers", 1..=5_u64)
        .writer("Table", written)
        .batchlet("Clean", || Ok::<_, BatchError>("CLEAN".into()))
        .batchlet("Report", || Ok::<_, BatchError>("REPORTED".into()))
}

/// Doubles stand in for artifacts, and the program has the others.
#[test]
fn a_job_runs_with_doubles() {
    let (_folder, file) = job(JOB);
    let written = WrittenItems::new();
    let run = numbers(&file, &written).parameter("limit", 10).launch();
    run.assert_completed()
        .assert_exit_status("DOUBLED")
        .assert_steps(&["clean", "double", "report"]);
    run.step("double")
        .assert_status(BatchStatus::Completed)
        .assert_reads(5)
        .assert_filters(1)
        .assert_writes(4)
        .assert_commits(3)
        .assert_rollbacks(0)
        .assert_skips(0);
    run.step("report").assert_exit_status("REPORTED");
    assert_eq!(written.items(), [2, 4, 8, 10]);
}

/// A step runs alone, also one of a flow, with the properties of the job.
#[test]
fn a_step_runs_alone() {
    let (_folder, file) = job(JOB);
    let written = WrittenItems::new();
    let test = numbers(&file, &written).parameter("limit", 4);
    let run = test.step("double").launch();
    run.assert_failed("5 is over the limit").assert_steps(&["double"]);
    assert_eq!(written.items(), [2, 4, 8]);

    let run = numbers(&file, &written)
        .parameter("limit", 4)
        .step("report")
        .launch();
    run.assert_completed().assert_steps(&["report"]);
    let message = panic_of(|| {
        drop(
            numbers(&file, &written)
                .parameter("limit", 4)
                .step("doubel")
                .launch(),
        )
    });
    assert_eq!(
        message,
        "the job `numbers` has no step, flow or split `doubel`; did you mean `double`?"
    );
    let message = panic_of(|| drop(numbers(&file, &written).parameter("limit", 4).step("x").launch()));
    assert_eq!(
        message,
        "the job `numbers` has no step, flow or split `x`; it has `clean`, `both`, `double`, `report`"
    );
}

/// A second launch, and a restart, resume the instance.
#[test]
fn a_failed_job_resumes() {
    let (_folder, file) = job(JOB);
    let written = WrittenItems::new();
    let test = numbers(&file, &written).parameter("limit", 4);
    let failed = test.launch();
    failed
        .assert_failed("5 is over the limit")
        .step("double")
        .assert_commits(2)
        .assert_rollbacks(1);
    let again = test.restart(&failed, [("limit", "5")]);
    again.assert_completed().assert_steps(&["double", "report"]);
    again.step("double").assert_reads(1).assert_writes(1);
    assert_eq!(written.items(), [2, 4, 8, 10]);
    let message = test.launch_fails().to_string();
    assert!(message.contains("is complete"), "{message}");
}

/// A failed assertion says what was found, and prints the execution.
#[test]
fn a_failed_assertion_prints_the_execution() {
    let (_folder, file) = job(JOB);
    let written = WrittenItems::new();
    let run = numbers(&file, &written).parameter("limit", 4).launch();
    let message = panic_of(|| {
        run.assert_completed();
    });
    assert!(
        message.starts_with("the job is FAILED, not COMPLETED\nnumbers:1:1 FAILED\n"),
        "{message}"
    );
    assert!(message.contains("  clean COMPLETED `CLEAN`\n"), "{message}");
    assert!(
        message.contains("  double FAILED: read 4, filtered 1, written 3, commits 2, rollbacks 1\n    | "),
        "{message}"
    );
    let first_line = |test: &dyn Fn()| panic_of(test).lines().next().unwrap().to_owned();
    assert_eq!(
        first_line(&|| {
            run.step("double").assert_writes(4);
        }),
        "step `double`: the number of items written is 3, not 4"
    );
    assert_eq!(
        first_line(&|| {
            run.step("report");
        }),
        "the step `report` was not executed"
    );
    assert_eq!(
        first_line(&|| {
            run.assert_failed("another message");
        }),
        "no message contains \"another message\""
    );
    assert_eq!(
        first_line(&|| {
            run.step("clean").assert_exit_status("x");
        }),
        "the exit status of step `clean` is `CLEAN`, not `x`"
    );
    assert_eq!(
        first_line(&|| {
            run.assert_steps(&["clean"]);
        }),
        "the executed steps are [\"clean\", \"double\"], not [\"clean\"]"
    );
}

/// A job that does not end fails its test, and is stopped.
#[test]
fn a_job_that_does_not_end_is_stopped() {
    let (_folder, file) = job(JOB);
    let (release, released) = mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let test = numbers(&file, &WrittenItems::new())
        // The next step may start before the stop is seen; it must not fail.
        .parameter("limit", 100)
        .batchlet("Clean", move || {
            let _ = released.lock().unwrap().recv();
            Ok::<_, BatchError>("CLEAN".into())
        })
        .time_limit(Duration::from_millis(50));
    let message = panic_of(|| drop(test.launch()));
    assert!(
        message.starts_with("execution 1 has not ended after 50ms; its stop was requested\nnumbers:1:1 ST"),
        "{message}"
    );
    let id = batch_runtime::JobExecutionId(1);
    let status = || test.operator().job_execution(id).unwrap().unwrap().status;
    while status() != BatchStatus::Stopping {
        std::thread::yield_now();
    }
    drop(release);
    let ended = test.operator().wait(batch_runtime::JobExecutionId(1)).unwrap();
    assert_eq!(ended.status, BatchStatus::Stopped, "{}", ended.exit_message);
}

/// Tests in one process have separate databases: the same job completes in each.
#[test]
fn tests_do_not_disturb_each_other() {
    let (_folder, file) = job(JOB);
    std::thread::scope(|scope| {
        for place in 0..8 {
            let file = &file;
            scope.spawn(move || {
                let written = WrittenItems::new();
                let test = numbers(file, &written).parameter("limit", 10);
                let test = if place % 2 == 0 { test.in_memory() } else { test };
                test.launch().assert_completed();
                assert_eq!(written.items(), [2, 4, 8, 10]);
            });
        }
    });
}

/// A processor double may be any function, and an artifact double any artifact.
#[test]
fn any_artifact_has_a_double() {
    #[derive(BatchArtifact)]
    struct Triple;

    #[item_processor("Triple")]
    impl Triple {
        #[process_item]
        fn process(&mut self, number: &u64) -> Option<u64> {
            Some(number * 3)
        }
    }

    let (_folder, file) = job(JOB);
    let written = WrittenItems::new();
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let run = numbers(&file, &written)
        .parameter("limit", 10)
        .processor("Double", move |number: &u64| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok::<_, BatchError>(Some(number + 100))
        })
        .step("double")
        .launch();
    run.assert_completed();
    assert_eq!(
        (calls.load(Ordering::Relaxed), written.items()),
        (5, vec![101, 102, 103, 104, 105])
    );

    let run = numbers(&file, &written)
        .parameter("limit", 10)
        .artifact("Double", LoadedArtifact::of::<Triple>)
        .step("double")
        .launch();
    run.assert_completed();
    // A new run of the step replaces the items.
    assert_eq!(written.items(), [3, 6, 9, 12, 15]);

    // A double of another type is rejected like any artifact that does not fit.
    let message = numbers(&file, &written)
        .parameter("limit", 10)
        .reader("Numbers", ["text"])
        .step("double")
        .launch_fails()
        .to_string();
    assert!(message.contains("&str") && message.contains("u64"), "{message}");
}

/// Partitions write to one list, and a partition that is rolled back or restarted removes only its own items.
#[test]
fn partitions_share_the_written_items() {
    let text = r#"<job id="numbers"><step id="double">
      <chunk reader="Numbers" processor="Double" writer="Table" commit-interval="2"/>
      <partition instances="2"/>
    </step></job>"#;
    let (_folder, file) = job(text);
    let (written, fault) = (WrittenItems::<u64>::new(), fails_at(4_u64, 1));
    let test = JobTest::new(&file)
        .reader("Numbers", 1..=5_u64)
        .writer("Table", &written)
        .processor("Double", move |number: &u64| {
            fault.check(number)?;
            Ok::<_, BatchError>(Some(*number))
        });
    test.launch()
        .assert_failed("of item processor `Double` (the artifact loader)");
    test.launch().assert_completed();
    let mut all = written.items();
    all.sort_unstable();
    assert_eq!(all, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
}

/// A read of the item fails once, and the next read returns the next item; a write with it fails each time.
#[test]
fn doubles_of_readers_and_writers_fail_at_an_item() {
    let text = r#"<job id="numbers"><step id="copy">
      <chunk reader="Numbers" processor="Double" writer="Table" commit-interval="2">
        <skippable-exception-classes><include class="batch_testing::faults::SimulatedFailure"/></skippable-exception-classes>
      </chunk></step></job>"#;
    let (_folder, file) = job(text);
    let (written, skipped) = (WrittenItems::<u64>::new(), SkippedItems::<u64>::new());
    let run = JobTest::new(&file)
        .failing_reader("Numbers", 1..=5_u64, &fails_at(2, 1))
        .processor("Double", |number: &u64| Ok::<_, BatchError>(Some(number * 2)))
        .failing_writer("Table", &written, &fails_at(8, u32::MAX))
        .skipped(&skipped)
        .launch();
    run.assert_completed();
    run.step("copy").assert_reads(4).assert_writes(3);
    assert_eq!((written.items(), skipped.items()), (vec![2, 6, 10], vec![8]));
    assert_eq!(
        skipped.errors(),
        ["simulated failure at 2", "simulated failure at 8"]
    );
}

/// A double of the wrong role says which one the job needs.
#[test]
fn a_double_has_the_role_of_what_it_replaces() {
    let (_folder, file) = job(JOB);
    let message = numbers(&file, &WrittenItems::new())
        .parameter("limit", 10)
        .artifact("Clean", || LoadedArtifact::item_processor(Double { limit: 1 }))
        .step("clean")
        .launch_fails()
        .to_string();
    assert!(
        message.contains("use `LoadedArtifact::batchlet`")
            && message.contains("`LoadedArtifact::item_processor`"),
        "{message}"
    );
}

/// A double that replaces nothing would let the real artifact run.
#[test]
fn a_misspelt_double_is_reported() {
    let (_folder, file) = job(JOB);
    let test = numbers(&file, &WrittenItems::new())
        .parameter("limit", 10)
        .batchlet("Claen", || Ok::<_, BatchError>(String::new()));
    let message = panic_of(|| drop(test.launch()));
    assert_eq!(
        message,
        "the job `numbers` has no artifact `Claen` to replace; did you mean `Clean`?"
    );
}

/// Variants of a job may be in one folder.
#[test]
fn other_files_with_the_same_job_are_left_out() {
    let (folder, file) = job(r#"<job id="numbers"><step id="one"><batchlet ref="Clean"/></step></job>"#);
    fs::write(folder.path().join("other.xml"), JOB).unwrap();
    let run = JobTest::new(file)
        .batchlet("Clean", || Ok::<_, BatchError>("CLEAN".to_owned()))
        .launch();
    run.assert_completed().assert_steps(&["one"]);
}
