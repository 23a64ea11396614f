//! The last chunk of a partition, whose commit records its end.

use crate::artifacts::{assert_completed, assert_contains, completed_steps, first_step_execution};
use batch_runtime::prelude::*;
use batch_tests::stage::Stage;

#[derive(BatchArtifact)]
struct LastNumbers {
    read: u32,
}

#[item_reader]
impl LastNumbers {
    #[read_item]
    fn read(&mut self) -> Option<u32> {
        self.read += 1;
        Some(self.read).filter(|read| *read <= 3)
    }
}

/// Writes in the transaction of the chunk, and has nothing left to do after it.
#[item_writer("LastRows")]
fn last_rows(
    _numbers: &[u32],
    _tx: &mut ChunkTransaction,
    // The length of the exit status that it sets.
    #[batch_property] exit: usize,
    #[batch_context] step: &StepContext,
) {
    step.set_exit_status(Some(&"X".repeat(exit)));
    step.set_exit_description("rows", "three rows");
}

fn thrown() -> Result<(), BatchError> {
    Err(BatchError::msg("thrown after the commit"))
}

#[derive(BatchArtifact)]
struct ThrowsAfterCommit {}

#[checkpoint_listener]
impl ThrowsAfterCommit {
    #[after_checkpoint]
    fn after(&mut self) -> Result<(), BatchError> {
        thrown()
    }
}

#[sub_job_collector("ThrowsWhenCollecting")]
fn throws_when_collecting() -> Result<Option<u32>, BatchError> {
    thrown().map(|()| None)
}

/// The end of a partition is recorded with its last chunk if no artifact has to be called after it. If a later artifact fails, the partition is
/// FAILED, and its chunk stays committed. The payload of a collector is committed with the chunk, so its failure rolls the chunk back.
///
/// Spec: PART-32, CHUNK-LOOP-12, D-107, LOSS-07
#[test]
fn a_partition_ends_when_nothing_is_left_that_may_fail() {
    let listener = r#"<listeners><listener ref="ThrowsAfterCommit"/></listeners>"#;
    let collector = r#"<collector ref="ThrowsWhenCollecting"/>"#;
    for (exit, listeners, collector, message) in [
        ("2", "", "", "three rows"),
        ("2501", "", "", "set an exit status of 2501 characters"),
        ("2", listener, "", "thrown after the commit"),
        // It is called before the commit.
        ("2", "", collector, "thrown after the commit"),
    ] {
        let stage = Stage::new(&format!(
            r#"<job id="job"><properties><property name="batch.partition.threads" value="1"/></properties><step id="load">{listeners}
                 <chunk reader="LastNumbers" writer="LastRows" commit-interval="10">
                   <properties><property name="exit" value="{exit}"/></properties>
                 </chunk>
                 <partition instances="2">{collector}</partition>
               </step></job>"#
        ));
        let execution = stage.start("job", ());
        let steps = stage.operator().step_executions(execution).unwrap();
        let parts: Vec<_> = steps.iter().filter(|step| step.step_name != "load").collect();
        let (first, failed) = (parts[0], message != "three rows");
        let status = if failed { "FAILED" } else { "COMPLETED" };
        let exit_status = if exit == "2" { "XX" } else { "FAILED" };
        assert_eq!(
            (first.status.as_str(), &*first.exit_status),
            (status, exit_status),
            "{steps:?}"
        );
        assert_contains(&first.exit_message, message);
        assert_eq!(first.exit_message.contains("three rows"), !failed);
        let committed = if collector.is_empty() { (1, 3) } else { (0, 0) };
        assert_eq!(
            (first.counters.commits, first.counters.writes),
            committed,
            "{message}"
        );
        if !failed {
            completed_steps(&stage, execution);
            assert_eq!(parts.len(), 2);
        }
    }
}

/// Its third item panics when it is dropped.
struct Fragile(u32);

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(self.0 != 3 || std::thread::panicking(), "dropped");
    }
}

#[derive(BatchArtifact)]
struct FragileNumbers {
    read: u32,
}

#[item_reader]
impl FragileNumbers {
    #[read_item]
    fn read(&mut self) -> Option<Fragile> {
        self.read += 1;
        (self.read <= 3).then_some(Fragile(self.read))
    }
}

#[item_writer("FragileRows")]
fn fragile_rows(_items: &[Fragile], _tx: &mut ChunkTransaction) {}

/// What fails after the end was recorded, because items or artifacts are dropped, changes neither this partition nor the one that has started
/// with its end.
///
/// Spec: PART-33, D-105, D-107
#[test]
fn a_late_panic_does_not_change_a_recorded_end() {
    let stage = Stage::new(
        r#"<job id="job"><step id="load">
             <properties><property name="batch.partition.threads" value="1"/></properties>
             <chunk reader="FragileNumbers" writer="FragileRows" commit-interval="10">
               <skippable-exception-classes><include class="Keeps.Items.Until.Commit"/></skippable-exception-classes>
             </chunk>
             <partition instances="3"/>
           </step></job>"#,
    );
    let execution = stage.start("job", ());
    assert_completed(&stage, execution);
    assert_eq!(completed_steps(&stage, execution).len(), 4);
}

/// In a worker process the end has a separate transaction, which releases the lease of the partition.
///
/// Spec: PART-32, DISP-05, D-107
#[test]
fn a_partition_in_a_worker_releases_its_lease_with_its_end() {
    let stage = Stage::new(
        r#"<job id="job"><step id="load">
             <properties><property name="batch.dispatch" value="repository"/></properties>
             <chunk reader="LastNumbers" writer="LastRows" commit-interval="10">
               <properties><property name="exit" value="2"/></properties>
             </chunk>
             <partition instances="2"/>
           </step></job>"#,
    );
    let worker = stage.another_runtime().worker().slots(1).start().unwrap();
    let execution = stage.launch("job", ());
    worker.drain();
    worker.wait().unwrap();
    assert_eq!(completed_steps(&stage, execution).len(), 3);
    let leases = "SELECT COUNT(*) FROM BATCH_PARTITION_LEASE WHERE EXPIRES_AT = -1";
    assert_eq!(stage.place().connect().number(leases), 2);
}

/// Describes an attempt that fails. The next one succeeds, and describes nothing.
#[derive(BatchArtifact)]
struct DescribesFailure {
    attempts: u32,
    #[batch_context]
    step: StepContext,
}

#[item_writer]
impl DescribesFailure {
    #[write_items]
    fn write(&mut self, _numbers: &[u32]) -> Result<(), std::io::Error> {
        self.attempts += 1;
        if self.attempts > 1 {
            return Ok(());
        }
        self.step.set_exit_description("attempt", "the first attempt");
        self.step.set_records_written(3_000);
        Err(std::io::Error::other("try again"))
    }
}

/// The exit description has nothing of an interval that was rolled back.
///
/// Spec: LOSS-07
#[test]
fn a_rollback_takes_back_the_description() {
    let stage = Stage::new(
        r#"<job id="job"><step id="load"><chunk reader="LastNumbers" writer="DescribesFailure">
             <retryable-exception-classes><include class="std::io::Error"/></retryable-exception-classes>
           </chunk></step></job>"#,
    );
    let execution = stage.start("job", ());
    assert_completed(&stage, execution);
    let step = &first_step_execution(&stage, execution);
    assert_eq!((step.counters.rollbacks, step.counters.writes), (1, 3));
    assert_eq!(step.exit_message, "");
}

/// Describes its first checkpoint, after two items.
#[derive(BatchArtifact)]
struct DescribesPosition {
    read: u32,
    #[batch_context]
    step: StepContext,
}

#[item_reader]
impl DescribesPosition {
    #[open]
    fn open(&mut self, position: Option<u32>) {
        self.read = position.unwrap_or_default();
    }

    #[get_checkpoint_info]
    fn position(&mut self) -> u32 {
        if self.read == 2 {
            self.step.set_exit_description("position", "two items");
        }
        self.read
    }

    #[read_item]
    fn read(&mut self) -> Option<u32> {
        self.read += 1;
        Some(self.read).filter(|read| *read <= 3)
    }
}

/// A retry that keeps the items keeps what their reader has described, also where the next interval is read meanwhile.
///
/// Spec: LOSS-07, D-100
#[test]
fn a_retry_keeps_the_description_of_the_reader() {
    for pipeline in [false, true] {
        let stage = Stage::new(&format!(
            r#"<job id="job"><step id="load">
                 <properties><property name="batch.chunk.pipeline" value="{pipeline}"/></properties>
                 <chunk reader="DescribesPosition" writer="DescribesFailure" commit-interval="2">
                   <retryable-exception-classes><include class="std::io::Error"/></retryable-exception-classes>
                 </chunk>
               </step></job>"#
        ));
        let execution = stage.start("job", ());
        let step = &first_step_execution(&stage, execution);
        assert_eq!((step.counters.writes, step.counters.rollbacks), (3, 1));
        assert_eq!(step.exit_message, "two items", "pipeline: {pipeline}");
    }
}
