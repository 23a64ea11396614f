//! Artifacts alone, skipped items, the clock and the failures.

use std::sync::Arc;
use std::time::Duration;

use batch_runtime::Timestamp;
use batch_runtime::prelude::*;
use batch_testing::{
    ArtifactTest, JobTest, SkippedItems, TestClock, WrittenItems, fails_at, reader_is_restartable,
};
use diesel::connection::SimpleConnection;

use crate::counter::Counter;
use crate::panics::panic_of;

#[test]
fn a_reader_is_read_to_its_end() {
    let items = ArtifactTest::new()
        .property("limit", 3)
        .read::<u64>(LoadedArtifact::of::<Counter>);
    assert_eq!(items.unwrap(), [1, 2, 3]);
}

#[test]
fn a_reader_continues_at_each_checkpoint() {
    reader_is_restartable(LoadedArtifact::of::<Counter>, 1..=5_u64);
    let message = |shift: i64| {
        let test = ArtifactTest::new().property("shift", shift);
        let message = panic_of(|| test.assert_restartable(LoadedArtifact::of::<Counter>, 1..=5_u64));
        message.lines().next().unwrap().to_owned()
    };
    assert_eq!(
        message(-1),
        "opened at the checkpoint after 1 of 5 items, the reader returned [1, 2, 3, 4, 5] instead of [2, 3, 4, 5]"
    );
    assert_eq!(
        message(1),
        "opened at the checkpoint after 1 of 5 items, the reader returned [3, 4, 5] instead of [2, 3, 4, 5]"
    );
    let message = panic_of(|| reader_is_restartable(LoadedArtifact::of::<Counter>, [1_u64, 2, 4]));
    assert!(
        message.contains("the reader returned [1, 2, 3, 4, 5] instead of [1, 2, 4]"),
        "{message}"
    );
}

/// Adds the number of the step's execution that user data holds, and a property of the step.
#[derive(BatchArtifact)]
struct WithContext {
    #[batch_context]
    job: Option<JobContext>,
    #[batch_context]
    step: Option<StepContext>,
}

#[item_processor("WithContext")]
impl WithContext {
    #[process_item]
    fn process(&mut self, text: &String) -> Result<Option<String>, BatchError> {
        let (Some(job), Some(step)) = (&self.job, &self.step) else {
            return Err(BatchError::msg("no context"));
        };
        let data: Option<u64> = step.persistent_user_data()?;
        let property = |properties: &std::collections::BTreeMap<String, String>, name: &str| {
            properties.get(name).cloned().unwrap_or_default()
        };
        Ok(Some(format!(
            "{text} {} {} {} {}",
            data.unwrap_or_default(),
            property(job.properties(), "country"),
            property(step.properties(), "town"),
            step.execution_id()
        )))
    }
}

#[test]
fn contexts_have_properties_data_and_ids() {
    let results = ArtifactTest::new()
        .job_property("country", "Austria")
        .step_property("town", "Linz")
        .before_step(|step| step.set_persistent_user_data(&42_u64))
        .process::<String, String>(LoadedArtifact::of::<WithContext>, ["a".to_owned()]);
    assert_eq!(results.unwrap(), ["a 42 Austria Linz 1"]);
}

#[test]
fn a_failure_has_its_message() {
    let failing = || LoadedArtifact::item_processor(Failing);
    let failure = ArtifactTest::new().process::<u64, u64>(failing, [1]).unwrap_err();
    assert!(failure.message().starts_with("1 is wrong"), "{failure}");
    assert!(failure.to_string().contains("step FAILED"), "{failure}");
}

#[derive(BatchArtifact)]
struct Failing;

#[item_processor("Failing")]
impl Failing {
    #[process_item]
    fn process(&mut self, number: &u64) -> Result<Option<u64>, BatchError> {
        Err(BatchError::msg(format!("{number} is wrong")))
    }
}

/// Inserts numbers in the transaction of the chunk.
#[derive(BatchArtifact)]
struct Insert;

#[item_writer("Insert")]
impl Insert {
    #[open]
    fn open(&mut self, _: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u64], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        for number in numbers {
            let insert = format!("INSERT INTO number VALUES ({number}, {})", numbers.len());
            tx.sqlite()?.batch_execute(&insert)?;
        }
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

#[test]
fn a_writer_writes_in_transactions() {
    let test = ArtifactTest::new()
        .prepare(|database| database.execute("CREATE TABLE number (number INTEGER, of INTEGER)"));
    let mut database = test
        .write(LoadedArtifact::of::<Insert>, [1_u64, 2, 3], 2)
        .unwrap();
    assert_eq!(database.rows("number"), ["1, 2", "2, 2", "3, 1"]);
    assert_eq!(database.count("number"), 3);
}

const JOB: &str = r#"<job id="skipping"><step id="copy">
  <properties><property name="batch.retry.input" value="true"/></properties>
  <chunk reader="Reader" processor="Processor" writer="Writer" commit-interval="2" skip-limit="3" retry-limit="2">
    <skippable-exception-classes><include class="batch_testing::faults::SimulatedFailure"/></skippable-exception-classes>
    <retryable-exception-classes><include class="batch_testing::faults::SimulatedFailure"/></retryable-exception-classes>
  </chunk>
</step></job>"#;

/// Skipped items are collected, and a failure that ends is retried.
#[test]
fn skips_are_collected() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("skipping.xml");
    let job = |with_retry: bool| {
        let other = if with_retry { "<skippable" } else { "<retryable" };
        let lines = JOB.lines().filter(|line| !line.contains(other));
        std::fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
        let written = WrittenItems::<u64>::new();
        let skipped = SkippedItems::new();
        let fault = fails_at(3_u64, 2);
        let run = JobTest::new(&file)
            .reader("Reader", 1..=4_u64)
            .processor("Processor", move |number: &u64| {
                fault.check(number)?;
                Ok::<_, BatchError>(Some(*number))
            })
            .writer("Writer", &written)
            .skipped(&skipped)
            .launch();
        run.assert_completed();
        (written.items(), skipped.items(), skipped.errors(), run)
    };
    let (written, skipped, errors, run) = job(false);
    assert_eq!((written, skipped), (vec![1, 2, 4], vec![3_u64]));
    assert_eq!(errors, ["simulated failure at 3"]);
    run.step("copy").assert_process_skips(1).assert_skips(1);
    let (written, skipped, _, run) = job(true);
    assert_eq!((written, skipped), (vec![1, 2, 3, 4], Vec::<u64>::new()));
    run.step("copy").assert_skips(0);
}

/// The repository has the times of the clock.
#[test]
fn a_clock_is_moved_by_the_test() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clock.xml");
    std::fs::write(
        &file,
        r#"<job id="clock"><step id="wait"><batchlet ref="Wait"/></step></job>"#,
    )
    .unwrap();
    let begin: Timestamp = "2026-11-23T22:00".parse().unwrap();
    let clock = TestClock::at(begin);
    let of_batchlet = clock.clone();
    let run = JobTest::new(&file)
        .clock(Arc::new(clock))
        .batchlet("Wait", move || {
            of_batchlet.advance(Duration::from_secs(3_600));
            Ok::<_, BatchError>("WAITED".into())
        })
        .launch();
    let execution = run.assert_completed().execution();
    assert_eq!(execution.started, Some(begin));
    assert_eq!(execution.ended, Some("2026-11-23T23:00".parse().unwrap()));
}

/// In a job it is a warning.
#[test]
fn a_property_that_the_artifact_does_not_have_is_reported() {
    let message = panic_of(|| {
        let read = ArtifactTest::new()
            .property("limti", 2)
            .read::<u64>(LoadedArtifact::of::<Counter>);
        drop(read);
    });
    assert!(message.contains("`limti`"), "{message}");
}
