//! What survives a loss of power, at any moment of a job.

use std::fs;
use std::path::Path;

use batch_tests::operated;
use batch_tests::power::{Trace, set_modified};
use batch_tests::process;
use batch_tests::random::Random;
use batch_tests::slow;
use batch_tests::writing::{Load, STEPS, Step, Writing};

const PROGRAM: &str = env!("CARGO_BIN_EXE_writing");
const LOAD: Load = Load {
    rows: 40,
    width: 0,
    interval: 7,
};

/// Those steps whose output is on the disk at each checkpoint.
fn durable_steps() -> Vec<Step> {
    let steps = STEPS
        .iter()
        .filter(|Step(.., properties)| !properties.iter().any(|(name, _)| *name == "sync"));
    steps.copied().collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copied = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &copied),
            false => {
                fs::copy(&path, &copied).unwrap();
                set_modified(&copied, fs::metadata(&path).unwrap().modified().unwrap());
            }
        }
    }
}

/// A folder before a run, which is restored before each loss of power.
struct Before {
    folder: tempfile::TempDir,
}

impl Before {
    fn of(writing: &Writing) -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(writing.path(), &folder.path().join("before"));
        Self { folder }
    }

    fn restore(&self, writing: &Writing) {
        fs::remove_dir_all(writing.path()).unwrap();
        copy(&self.folder.path().join("before"), writing.path());
    }
}

/// Launches the run again. Returns why it did not complete.
fn resume(writing: &Writing, run: u32) -> Result<(), String> {
    let output = writing.launch(run).env("BATCH_LEASE_TIME", "1").output().unwrap();
    let (out, err) = (process::text(&output.stdout), process::text(&output.stderr));
    match output.status.code() {
        Some(0) => Ok(()),
        Some(10) if err.contains("ended COMPLETED") => Ok(()),
        _ => Err(format!("{out}\n{err}")),
    }
}

/// Wherever the power fails, with any part of the writes that no one has waited for, the next launch resumes, and files and rows equal
/// an undisturbed run's: also where only the last checkpoint of a step has waited for the disk.
///
/// Spec: D-103, CHUNK-LOOP-12, CHUNK-LOOP-16, RESTART-07, REPO-62
#[test]
fn a_loss_of_power_leaves_the_files_and_rows_of_an_undisturbed_run() {
    let writing = Writing::new(PROGRAM, &durable_steps(), LOAD);
    writing.completes(0);
    let expected = writing.written(0);
    let mut random = Random::new("losses of power");
    // One with the next chunk read ahead, and one without.
    for run in [1, 2] {
        let launch = writing.launch(run);
        let before = Before::of(&writing);
        let trace = Trace::of(&launch, writing.path());
        for _ in 0..slow::times(40, 1_000) {
            let calls = usize::try_from(random.below(trace.calls() as u64 + 1)).unwrap();
            before.restore(&writing);
            trace.lose_power(writing.path(), calls, &mut random);
            let place = format!("run {run}, after {calls} of {} calls", trace.calls());
            resume(&writing, run).unwrap_or_else(|problem| panic!("{place}: {problem}"));
            if let Some(difference) = writing.written(run).difference(&expected) {
                panic!("{place}: {difference}");
            }
        }
    }
}

/// A job that was reported as COMPLETED stays COMPLETED, with its files, if nothing is left but what the process has waited for.
///
/// Spec: D-103, REPO-62
#[test]
fn a_job_that_was_reported_as_complete_stays_complete() {
    let writing = Writing::new(PROGRAM, &durable_steps(), LOAD);
    writing.completes(0);
    let launch = writing.launch(1);
    let before = Before::of(&writing);
    let trace = Trace::of(&launch, writing.path());
    before.restore(&writing);
    trace.lose_all(writing.path());
    let again = writing.launch(1).output().unwrap();
    let reason = process::text(&again.stderr);
    assert!(reason.contains("ended COMPLETED"), "{reason}");
    assert_eq!(writing.written(1).difference(&writing.written(0)), None);
}

const COPY_AND_REJECT: &str = r#"<job id="job">
  <step id="copy" next="load"><batchlet ref="copyFiles"><properties>
    <property name="resource" value="in.csv"/><property name="target" value="copied.csv"/>
  </properties></batchlet></step>
  <step id="load">
    <listeners><listener ref="recordRejects"><properties>
      <property name="rejects.output" value="rejects.jsonl"/><property name="rejects.raw" value="rejected.csv"/>
    </properties></listener></listeners>
    <chunk reader="csvRecordReader" writer="recordCsvWriter"><properties>
      <property name="resource" value="in.csv"/><property name="output" value="out.csv"/>
    </properties><skippable-exception-classes><include class="RecordError"/></skippable-exception-classes></chunk>
  </step>
</job>"#;

/// The same for the files of batchlets and of rejects.
///
/// Spec: D-103
#[test]
fn copies_and_rejects_of_a_complete_job_are_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("job.xml"), COPY_AND_REJECT).unwrap();
    fs::write(folder.path().join("in.csv"), "id,amount\n1,1\n2\n").unwrap();
    let before = tempfile::tempdir().unwrap();
    copy(folder.path(), &before.path().join("before"));
    let mut launch = operated::command(env!("CARGO_BIN_EXE_operated"), folder.path(), &["launch", "job"]);
    // In the same file system, its commits would make the names durable.
    let repository = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", repository.path().join("batch.db").display());
    launch.env("BATCH_REPOSITORY", url);
    let trace = Trace::of(&launch, folder.path());
    let files = ["copied.csv", "out.csv", "rejects.jsonl", "rejected.csv"];
    let content = || files.map(|file| fs::read_to_string(folder.path().join(file)).unwrap_or_default());
    let written = content();
    assert!(written[0].ends_with("2\n") && written[3] == "2\n", "{written:?}");
    fs::remove_dir_all(folder.path()).unwrap();
    copy(&before.path().join("before"), folder.path());
    trace.lose_all(folder.path());
    assert_eq!(content(), written);
}

/// The commits of a step with a rewindable reader and writer wait for the disk once, however many there are; with a table each of them
/// waits.
///
/// Spec: D-103
#[test]
fn only_the_last_commit_of_a_rewindable_step_waits_for_the_disk() {
    let waits = |name: &str, interval| {
        let step = STEPS.iter().find(|Step(step, ..)| *step == name).unwrap();
        let writing = Writing::new(PROGRAM, &[*step], Load { interval, ..LOAD });
        let mut launch = writing.launch(0);
        // A renewal of the lease would wait for the disk, too.
        launch.env("BATCH_LEASE_TIME", "3600");
        Trace::of(&launch, writing.path()).waits(".db-wal")
    };
    // A commit more at the end of the input.
    assert_eq!(waits("delimited", 4), waits("delimited", 40));
    assert_eq!(waits("table", 4), waits("table", 40) + 9);
}

/// The check finds files that were not on the disk when their checkpoint was.
///
/// Spec: D-103
#[test]
fn the_check_finds_what_was_not_written_in_time() {
    let never = &[("output", "rows.csv"), ("sync", "never")];
    let writing = Writing::new(
        PROGRAM,
        &[Step("delimited", "ToRow", "DelimitedRows", never)],
        LOAD,
    );
    writing.completes(0);
    let launch = writing.launch(1);
    let before = Before::of(&writing);
    let trace = Trace::of(&launch, writing.path());
    before.restore(&writing);
    trace.lose_all(writing.path());
    let complete = resume(&writing, 1);
    let difference = writing.written(1).difference(&writing.written(0));
    assert!(complete.is_err() || difference.is_some());
}
