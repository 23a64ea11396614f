//! Claims of the guide about the runtime that no other test proves.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;

use batch_runtime::BatchStatus;
use batch_runtime::execution::MetricName;
use batch_runtime::prelude::*;
use batch_tests::stage::{Stage, say};

/// One, two, and then the end; the second is an error.
#[derive(BatchArtifact)]
struct OneBad {
    read: u64,
}

#[item_reader]
impl OneBad {
    #[open]
    fn open(&mut self, _checkpoint: Option<u64>) {}
    #[read_item]
    fn read(&mut self) -> Result<Option<u64>, std::fmt::Error> {
        self.read += 1;
        match self.read {
            1 => Ok(Some(1)),
            2 => Err(std::fmt::Error),
            _ => Ok(None),
        }
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.read
    }
}

#[derive(BatchArtifact)]
struct AsItIs;

#[item_processor]
impl AsItIs {
    #[process_item]
    fn process(&mut self, number: u64) -> Option<u64> {
        Some(number)
    }
}

/// A writer that is also a listener.
#[derive(BatchArtifact)]
struct WriterAndListener {
    #[batch_property]
    log: String,
    written: usize,
}

#[item_writer]
impl WriterAndListener {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u64]) {
        self.written += numbers.len();
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {
        say(&self.log, format!("as writer {}", self.written));
    }
}

#[step_listener]
impl WriterAndListener {
    #[after_step]
    fn after(&mut self) {
        say(&self.log, format!("as listener {}", self.written));
    }
}

/// A listener in three roles.
#[derive(BatchArtifact)]
struct CountSkips {
    #[batch_property]
    log: String,
    waiting: u32,
    committed: u32,
}

#[skip_listener]
impl CountSkips {
    #[on_skip_in_read]
    fn skipped(&mut self, _ex: &BatchError) {
        self.waiting += 1;
    }
}

#[checkpoint_listener]
impl CountSkips {
    #[after_checkpoint]
    fn committed(&mut self) {
        self.committed += std::mem::take(&mut self.waiting);
    }
}

#[step_listener]
impl CountSkips {
    #[after_step]
    fn after(&mut self) {
        say(&self.log, format!("skipped {}", self.committed));
    }
}

/// artifacts.md: "one for each `<listener>` and execution of the step, in all its roles", and "a type that is a writer and
/// a listener is two instances".
///
/// Spec: ART-08, LISTEN-SKIP-02, LISTEN-CKPT-03
#[test]
fn a_listener_is_one_instance_in_all_its_roles() {
    let stage = Stage::new(
        r#"<job id="roles"><step id="one">
             <listeners><listener ref="CountSkips"/><listener ref="WriterAndListener"/></listeners>
             <chunk reader="OneBad" processor="AsItIs" writer="WriterAndListener">
               <skippable-exception-classes><include class="std::fmt::Error"/></skippable-exception-classes>
             </chunk>
           </step></job>"#,
    );
    stage.start("roles", ());
    assert_eq!(stage.log(), ["as writer 1", "skipped 1", "as listener 0"]);
}

/// Sends a payload, and then fails.
#[derive(BatchArtifact)]
struct SendAndFail;

#[batchlet]
impl SendAndFail {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        Err(BatchError::msg("too bad"))
    }
    #[cancel]
    fn cancel(&self) {}
}

#[derive(BatchArtifact)]
struct Stored {
    #[batch_context]
    step: StepContext,
}

#[sub_job_analyzer]
impl Stored {
    #[analyze_exit_status]
    fn ended(&mut self, _exit_status: &str) {
        self.step.set_exit_status(Some("1 STORED"));
    }
}

#[derive(BatchArtifact)]
struct OnlyIfComplete {
    #[batch_context]
    step: StepContext,
}

#[step_listener]
impl OnlyIfComplete {
    #[after_step]
    fn end(&mut self) {
        if self.step.batch_status() != BatchStatus::Completed {
            self.step.set_exit_status(None);
        }
    }
}

#[derive(BatchArtifact)]
struct Report;

#[batchlet]
impl Report {
    #[process]
    fn process(&self) -> String {
        "REPORTED".into()
    }
    #[cancel]
    fn cancel(&self) {}
}

fn analyzed(listeners: &str) -> Vec<String> {
    let stage = Stage::new(&format!(
        r#"<job id="analyzed">
             <step id="store">
               {listeners}
               <partition instances="1"><analyzer ref="Stored"/></partition>
               <batchlet ref="SendAndFail"/>
               <next on="*STORED" to="report"/>
               <fail on="*"/>
             </step>
             <step id="report"><batchlet ref="Report"/></step>
           </job>"#
    ));
    let execution = stage.start("analyzed", ());
    let steps = stage.operator().step_executions(execution).unwrap();
    let line = |step: &batch_runtime::execution::StepExecution| {
        format!("{} {} {}", step.step_name, step.status, step.exit_status)
    };
    let mut steps: Vec<String> = steps.iter().map(line).collect();
    steps.sort();
    steps
}

/// parallel.md: the exit status that an analyzer sets stays when the step fails, unless a step listener resets it.
///
/// Spec: PART-26, PART-27, SEQ-23, D-82
#[test]
fn an_analyzers_exit_status_stays_when_the_step_fails() {
    assert_eq!(
        analyzed(""),
        [
            "report COMPLETED REPORTED",
            "store FAILED 1 STORED",
            "store:1 FAILED FAILED"
        ]
    );
    let taken_back = analyzed(r#"<listeners><listener ref="OnlyIfComplete"/></listeners>"#);
    assert_eq!(taken_back, ["store FAILED FAILED", "store:1 FAILED FAILED"]);
}

/// Reads the numbers to ten, as texts.
#[derive(BatchArtifact)]
struct TenLines {
    last: u64,
}

#[item_reader]
impl TenLines {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.last = checkpoint.unwrap_or(0);
    }
    #[read_item]
    fn read(&mut self) -> Option<String> {
        (self.last < 10).then(|| {
            self.last += 1;
            self.last.to_string()
        })
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.last
    }
}

/// Fails at the given line.
#[derive(BatchArtifact)]
struct FailAt {
    #[batch_property(value = "")]
    fail: String,
}

#[item_processor]
impl FailAt {
    #[process_item]
    fn process(&mut self, line: String) -> Result<Option<String>, BatchError> {
        if line == self.fail {
            return Err(BatchError::msg("too bad"));
        }
        Ok(Some(line))
    }
}

/// The writer of transactions.md.
#[derive(BatchArtifact)]
struct LineWriter {
    #[batch_property(name = "out.file")]
    path: PathBuf,
    file: Option<File>,
}

#[item_writer]
impl LineWriter {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) -> io::Result<()> {
        let end = checkpoint.unwrap_or(0);
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&self.path)?;
        if file.metadata()?.len() < end {
            return Err(io::Error::other(
                "the file is shorter than it was at the last checkpoint",
            ));
        }
        file.set_len(end)?;
        file.seek(SeekFrom::End(0))?;
        self.file = Some(file);
        Ok(())
    }
    #[write_items]
    fn write(&mut self, lines: &[String]) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        lines.iter().try_for_each(|line| writeln!(file, "{line}"))
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> io::Result<u64> {
        let Some(file) = &mut self.file else {
            return Ok(0);
        };
        file.sync_all()?;
        file.stream_position()
    }
}

/// transactions.md: a file is truncated to the checkpoint, so that it contains every line once; a shorter file cannot
/// be resumed.
///
/// Spec: WRITE-05, WRITE-08, RESTART-07
#[test]
fn a_file_is_truncated_to_its_checkpoint() {
    let stage = Stage::new(
        r#"<job id="lines"><step id="write">
             <chunk reader="TenLines" processor="FailAt" writer="LineWriter" commit-interval="4" chunk-size="2">
               <properties><property name="out.file" value="${folder}/lines.txt"/></properties>
             </chunk>
           </step></job>"#,
    );
    let file = stage.path().join("lines.txt");
    let lines = |count: u64| (1..=count).map(|line| format!("{line}\n")).collect::<String>();
    // Four are committed, and two more are written.
    let failed = stage.start("lines", [("fail", "7")]);
    assert_eq!(fs::read_to_string(&file).unwrap(), lines(6));
    let operator = stage.operator();
    let again = operator.restart(failed, [("fail", "")]).unwrap();
    assert_eq!(operator.wait(again).unwrap().status, BatchStatus::Completed);
    assert_eq!(fs::read_to_string(&file).unwrap(), lines(10));

    let failed = stage.start("lines", [("fail", "7")]);
    fs::write(&file, "1\n").unwrap();
    let again = stage.restart(failed);
    let ended = operator.job_execution(again).unwrap().unwrap();
    assert!(
        ended.exit_message.contains("the file is shorter"),
        "{}",
        ended.exit_message
    );
}

/// Reports skips, as in migrating-from-spring-batch.md.
#[derive(BatchArtifact)]
struct WithSkips {
    #[batch_property]
    log: String,
    #[batch_context]
    step: Option<StepContext>,
}

#[decider]
impl WithSkips {
    #[decide]
    fn decide(&mut self) -> String {
        let metrics = self.step.as_ref().map(StepContext::metrics).unwrap_or_default();
        let skips = metrics
            .iter()
            .find(|metric| metric.name == MetricName::ReadSkipCount);
        let decided = match skips {
            Some(skips) if skips.value > 0 => "WITH SKIPS",
            _ => "WITHOUT",
        };
        say(&self.log, decided);
        decided.into()
    }
}

/// A decider sees the counters of the step before it, even if a restart skipped that step.
///
/// Spec: CTX-30, DEC-12, DEC-19
#[test]
fn a_decider_sees_the_counters_of_a_skipped_step() {
    let stage = Stage::new(
        r#"<job id="counted">
             <step id="one" next="skips">
               <chunk reader="OneBad" processor="AsItIs" writer="WriterAndListener">
                 <skippable-exception-classes><include class="std::fmt::Error"/></skippable-exception-classes>
               </chunk>
             </step>
             <decision id="skips" decider="WithSkips"><next on="*" to="fails"/></decision>
             <step id="fails"><batchlet ref="SendAndFail"/></step>
           </job>"#,
    );
    let failed = stage.start("counted", ());
    stage.restart(failed);
    let decided: Vec<String> = stage
        .log()
        .into_iter()
        .filter(|line| line.starts_with("WITH"))
        .collect();
    assert_eq!(decided, ["WITH SKIPS", "WITH SKIPS"]);
}
