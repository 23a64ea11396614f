//! The role traits: object-safe, erased, implemented by the artifact attributes (`#[item_reader]` and so on). Users
//! write methods of any name; generated code adapts them to these.
//!
//! The `*_item_type` functions are not callable on a trait object: the loader asks them through the registration.

use crate::error::BatchError;
use crate::repository::ChunkTransaction;

use super::item::{Fill, FillEnd, FillError, ItemSink, ItemType, Items};
use crate::checkpoint::CheckpointInfo;

/// `#[item_reader]`: the source of items of a chunk step. Spec: READ-01
pub trait ItemReader: Send {
    /// `#[open]`: positions at the checkpoint, at the start for `None`. Spec: READ-02, READ-03
    ///
    /// # Errors
    /// The artifact's error, or a checkpoint that does not decode.
    fn open(&mut self, checkpoint: Option<&CheckpointInfo>) -> Result<(), BatchError>;

    /// `#[close]`. Spec: READ-05
    ///
    /// # Errors
    /// The artifact's error.
    fn close(&mut self) -> Result<(), BatchError>;

    /// `#[get_checkpoint_info]`: the current position. Spec: READ-08
    ///
    /// # Errors
    /// The artifact's error, or a checkpoint that does not encode.
    fn checkpoint_info(&mut self) -> Result<CheckpointInfo, BatchError>;

    /// `#[get_item_count]`, an extension of the draft: how many items there are in all, from the beginning of the input.
    /// Asked once, after the first `open` of a step execution. `None`, the default: nobody knows.
    ///
    /// # Errors
    /// The artifact's error, which is logged: progress is then shown without a bar.
    fn get_item_count(&mut self) -> Result<Option<u64>, BatchError> {
        Ok(None)
    }

    /// `#[read_item]`, in a loop. Spec: READ-06
    ///
    /// # Errors
    /// The first error of reader or processor.
    fn fill(&mut self, fill: &mut Fill<'_>) -> Result<FillEnd, FillError>;

    /// The type of the items.
    fn item_type() -> ItemType
    where
        Self: Sized;
}

/// The item types of a processor.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorItems {
    /// What it takes.
    pub input: ItemType,
    /// What it gives.
    pub output: ItemType,
}

/// `#[item_processor]`: transforms or filters items. Spec: PROC-01
pub trait ItemProcessor: Send {
    /// The processor as a sink for the reader's items; `#[process_item]` runs inside. Spec: PROC-02
    fn into_sink(self: Box<Self>) -> ItemSink;

    /// The types of the items.
    fn item_types() -> ProcessorItems
    where
        Self: Sized;
}

/// What the loader knows of a writer.
#[derive(Clone, Copy, Debug)]
pub struct WriterInfo {
    /// The type of the items.
    pub items: ItemType,
    /// `buffered = true`: chunks; `false`: one item per call. Spec: WRITE-02
    pub buffered: bool,
    /// Whether `#[write_items]` takes the chunk transaction, and so writes exactly once.
    pub transactional: bool,
}

/// `#[item_writer]`: takes chunks of items. Spec: WRITE-01
pub trait ItemWriter: Send {
    /// `#[open]`. Spec: WRITE-05
    ///
    /// # Errors
    /// The artifact's error, or a checkpoint that does not decode.
    fn open(&mut self, checkpoint: Option<&CheckpointInfo>) -> Result<(), BatchError>;

    /// `#[close]`. Spec: WRITE-06
    ///
    /// # Errors
    /// The artifact's error.
    fn close(&mut self) -> Result<(), BatchError>;

    /// `#[get_checkpoint_info]`. Spec: WRITE-08
    ///
    /// # Errors
    /// The artifact's error, or a checkpoint that does not encode.
    fn checkpoint_info(&mut self) -> Result<CheckpointInfo, BatchError>;

    /// `#[write_items]`: never called with an empty list. Spec: WRITE-07
    ///
    /// # Errors
    /// The artifact's error.
    fn write(&mut self, items: &Items<'_>, tx: &mut ChunkTransaction) -> Result<(), BatchError>;

    /// What the loader needs to know.
    fn info() -> WriterInfo
    where
        Self: Sized;
}

/// `#[batchlet]`: a task step. All methods take `&self`: `cancel` runs on another thread while `process` does.
/// Spec: BLET-01, BLET-06
pub trait Batchlet: Send + Sync {
    /// `#[begin_step]`. Spec: BLET-02
    ///
    /// # Errors
    /// The artifact's error.
    fn begin_step(&self) -> Result<(), BatchError>;

    /// `#[process]`: the exit status, not empty. Spec: BLET-03, BLET-04
    ///
    /// # Errors
    /// The artifact's error.
    fn process(&self) -> Result<String, BatchError>;

    /// `#[cancel]`. Spec: BLET-06
    ///
    /// # Errors
    /// The artifact's error, which is logged.
    fn cancel(&self) -> Result<(), BatchError>;

    /// `#[end_step]`. Spec: BLET-10
    ///
    /// # Errors
    /// The artifact's error.
    fn end_step(&self) -> Result<(), BatchError>;
}

/// `#[job_listener]`. Spec: LISTEN-JOB-01
pub trait JobListener: Send {
    /// `#[before_job]`. Spec: LISTEN-JOB-02
    ///
    /// # Errors
    /// The artifact's error; no step is then executed and the job ends FAILED.
    fn before_job(&mut self) -> Result<(), BatchError>;

    /// `#[after_job]`. Spec: LISTEN-JOB-03
    ///
    /// # Errors
    /// The artifact's error; the job then ends FAILED.
    fn after_job(&mut self) -> Result<(), BatchError>;

    /// `#[before_step]`. Spec: LISTEN-JOB-04
    ///
    /// # Errors
    /// The artifact's error; the step then ends FAILED without running.
    fn before_step(&mut self) -> Result<(), BatchError>;

    /// `#[after_step]`. Spec: LISTEN-JOB-05
    ///
    /// # Errors
    /// The artifact's error; the step then ends FAILED.
    fn after_step(&mut self) -> Result<(), BatchError>;
}

/// `#[checkpoint_algorithm]`. Spec: CKALG-01
pub trait CheckpointAlgorithm: Send {
    /// `#[get_checkpoint_timeout]`: seconds in, seconds out. Spec: CKALG-02 to CKALG-04
    ///
    /// # Errors
    /// The artifact's error.
    fn get_checkpoint_timeout(&mut self, timeout: i32) -> Result<i32, BatchError>;

    /// `#[begin_checkpoint]`. Spec: CKALG-05
    ///
    /// # Errors
    /// The artifact's error.
    fn begin_checkpoint(&mut self) -> Result<(), BatchError>;

    /// `#[is_ready_to_checkpoint]`. Spec: CKALG-06
    ///
    /// # Errors
    /// The artifact's error.
    fn is_ready_to_checkpoint(&mut self) -> Result<bool, BatchError>;

    /// `#[end_checkpoint]`. Spec: CKALG-07
    ///
    /// # Errors
    /// The artifact's error.
    fn end_checkpoint(&mut self) -> Result<(), BatchError>;
}

/// `#[decider]`. Spec: DECIDER-01
pub trait Decider: Send {
    /// `#[decide]`: the exit status, not empty. Spec: DECIDER-02
    ///
    /// # Errors
    /// The artifact's error; the job then ends FAILED. Spec: DEC-17
    fn decide(&mut self) -> Result<String, BatchError>;
}
