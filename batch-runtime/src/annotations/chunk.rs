//! Annotations: the parts of a chunk step.

/// Makes a type an item reader: the source of the items of a chunk step. Section 5.1.1.1 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`.
///
/// | method | required | |
/// |---|---|---|
/// | [`open`] | yes | positions at the checkpoint; at the start for `None` |
/// | [`read_item`] | yes | the next item; `None` at the end |
/// | [`get_checkpoint_info`] | yes | the position, stored with each checkpoint |
/// | [`close`] | no | cleanup, also after a failure |
/// | [`get_item_count`] | no | how many items there are in all, for a bar of progress; an extension of the draft |
///
/// ```
/// use batch_runtime::prelude::*;
///
/// /// Counts up; a restart goes on after the last number that was committed.
/// #[derive(BatchArtifact)]
/// struct Numbers {
///     #[batch_property(name = "limit", value = "10")]
///     limit: u64,
///     next: u64,
/// }
///
/// #[item_reader("Numbers")]
/// impl Numbers {
///     #[open]
///     fn open(&mut self, checkpoint: Option<u64>) {
///         self.next = checkpoint.unwrap_or(0);
///     }
///
///     #[read_item]
///     fn read(&mut self) -> Result<Option<u64>, std::io::Error> {
///         self.next += 1;
///         Ok((self.next <= self.limit).then_some(self.next))
///     }
///
///     #[get_checkpoint_info]
///     fn checkpoint(&self) -> u64 {
///         self.next.min(self.limit)
///     }
/// }
/// ```
///
/// Spec: READ-01 to READ-10, ART-01, ART-02
#[doc(inline)]
pub use batch_macros::item_reader;

/// Makes a type an item processor: transforms or filters one item at a time. Section 5.1.1.2 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`.
///
/// | method | required | |
/// |---|---|---|
/// | [`process_item`] | yes | the result; `None` filters the item |
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Squares;
///
/// #[item_processor]
/// impl Squares {
///     /// `&u64`, or `u64` by value where the item is `Clone`.
///     #[process_item]
///     fn square(&mut self, number: &u64) -> Result<Option<u64>, BatchError> {
///         let square = number.checked_mul(*number);
///         Ok(Some(square.ok_or_else(|| BatchError::msg("too large"))?))
///     }
/// }
/// ```
///
/// Spec: PROC-01 to PROC-04, ART-01, ART-02
#[doc(inline)]
pub use batch_macros::item_processor;

/// Makes a type an item writer: writes the results of a chunk step, a list at a time. Section 5.1.1.3 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`, `buffered = false` for one item per
/// call.
///
/// | method | required | |
/// |---|---|---|
/// | [`open`] | yes | positions at the checkpoint; at the start for `None` |
/// | [`write_items`] | yes | writes a list, which is never empty; with a second parameter `tx: &mut ChunkTransaction` in the transaction of the checkpoint, exactly once |
/// | [`get_checkpoint_info`] | yes | the position, stored with each checkpoint |
/// | [`close`] | no | cleanup, also after a failure |
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Print;
///
/// // `buffered = false` would give it one item per call.
/// #[item_writer("Print", buffered = true)]
/// impl Print {
///     #[open]
///     fn open(&mut self, _checkpoint: Option<()>) {}
///
///     #[write_items]
///     fn print(&mut self, squares: &[u64]) {
///         println!("{squares:?}");
///     }
///
///     #[get_checkpoint_info]
///     fn checkpoint(&self) {}
/// }
/// ```
///
/// Spec: WRITE-01 to WRITE-09, ART-01, ART-02, D-10
#[doc(inline)]
pub use batch_macros::item_writer;

/// Makes a type a checkpoint algorithm: decides when a chunk step with `checkpoint-policy="custom"` takes a
/// checkpoint. Section 5.1.1.4 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`.
///
/// | method | required | |
/// |---|---|---|
/// | [`is_ready_to_checkpoint`] | yes | asked after each item was processed |
/// | [`begin_checkpoint`] | no | after the transaction began, before any item |
/// | [`end_checkpoint`] | no | after the last write, right before the commit |
/// | [`get_checkpoint_timeout`] | no | the seconds of the next transaction; only with global transactions |
///
/// ```
/// use batch_runtime::prelude::*;
///
/// /// A checkpoint whenever the customer changes would be another; this one counts.
/// #[derive(BatchArtifact)]
/// struct EveryTenth {
///     items: u32,
/// }
///
/// #[checkpoint_algorithm]
/// impl EveryTenth {
///     #[begin_checkpoint]
///     fn begin(&mut self) {
///         self.items = 0;
///     }
///
///     #[is_ready_to_checkpoint]
///     fn is_ready(&mut self) -> bool {
///         self.items += 1;
///         self.items == 10
///     }
/// }
/// ```
///
/// Spec: CKALG-01 to CKALG-08, ART-01, ART-02
#[doc(inline)]
pub use batch_macros::checkpoint_algorithm;

/// In a reader or writer, required: positions at `checkpoint`, the value that `#[get_checkpoint_info]` returned for
/// the last checkpoint that was committed; at the start for `None`. Sections 5.1.1.1.1, 5.1.1.3.1 of the draft; see
/// [`item_reader`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[item_reader]
/// impl Sample {
///     #[open]
///     fn open(&mut self, checkpoint: Option<u64>) {}
/// #     #[read_item]
/// #     fn read(&mut self) -> Option<u64> {
/// #         None
/// #     }
/// #     #[get_checkpoint_info]
/// #     fn checkpoint(&mut self) -> u64 {
/// #         0
/// #     }
/// }
/// ```
///
/// Spec: READ-02, READ-03, WRITE-05
#[doc(inline)]
pub use batch_macros::open;

/// In a reader or writer: cleanup, also after a failure. An error is logged. Sections 5.1.1.1.2, 5.1.1.3.2 of the
/// draft; see [`item_reader`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[item_reader]
/// impl Sample {
///     #[close]
///     fn close(&mut self) {}
/// #     #[open]
/// #     fn open(&mut self, checkpoint: Option<u64>) {}
/// #     #[read_item]
/// #     fn read(&mut self) -> Option<u64> {
/// #         None
/// #     }
/// #     #[get_checkpoint_info]
/// #     fn checkpoint(&mut self) -> u64 {
/// #         0
/// #     }
/// }
/// ```
///
/// Spec: READ-05, WRITE-06
#[doc(inline)]
pub use batch_macros::close;

/// In a reader, required: the next item, `None` at the end. Section 5.1.1.1.3 of the draft; see [`item_reader`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[item_reader]
/// impl Sample {
///     #[read_item]
///     fn read(&mut self) -> Option<u64> {
///         None
///     }
/// #     #[open]
/// #     fn open(&mut self, checkpoint: Option<u64>) {}
/// #     #[get_checkpoint_info]
/// #     fn checkpoint(&mut self) -> u64 {
/// #         0
/// #     }
/// }
/// ```
///
/// Spec: READ-06
#[doc(inline)]
pub use batch_macros::read_item;

/// In a reader or writer, required: the position, of the type that `#[open]` takes. Called before each checkpoint
/// is committed. Sections 5.1.1.1.4, 5.1.1.3.4 of the draft; see [`item_reader`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[item_reader]
/// impl Sample {
///     #[get_checkpoint_info]
///     fn checkpoint(&mut self) -> u64 {
///         0
///     }
/// #     #[open]
/// #     fn open(&mut self, checkpoint: Option<u64>) {}
/// #     #[read_item]
/// #     fn read(&mut self) -> Option<u64> {
/// #         None
/// #     }
/// }
/// ```
///
/// Spec: READ-08, WRITE-08
#[doc(inline)]
pub use batch_macros::get_checkpoint_info;

/// In a reader, optional: how many items there are in all, or `None`. An extension of the draft; see [`item_reader`].
///
/// With it, progress has a bar and a time that is left. Called once in a step execution, or in that of a partition, after
/// `#[open]`; a reader that is opened again after a rollback is not asked again. What is meant is the whole input from its
/// beginning, also when `#[open]` was given a checkpoint: the runtime knows how many items earlier executions have read
/// up to there, so after a restart the bar goes on where it was. Items that a skipped read passed over are items too.
///
/// Nothing else depends on the number. One that is too small or too large is seen in the bar only, and an error or a panic
/// is logged as a warning. It should be cheap to find out: no item is read before it is known.
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample {
/// #     names: Vec<String>,
/// # }
/// #[item_reader]
/// impl Sample {
///     #[get_item_count]
///     fn item_count(&self) -> Option<u64> {
///         u64::try_from(self.names.len()).ok()
///     }
/// #     #[open]
/// #     fn open(&mut self, checkpoint: Option<u64>) {}
/// #     #[read_item]
/// #     fn read(&mut self) -> Option<u64> {
/// #         None
/// #     }
/// #     #[get_checkpoint_info]
/// #     fn checkpoint(&mut self) -> u64 {
/// #         0
/// #     }
/// }
/// ```
#[doc(inline)]
pub use batch_macros::get_item_count;

/// In a processor, required: transforms an item, or filters it by `None`. Section 5.1.1.2.1 of the draft; see
/// [`item_processor`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[item_processor]
/// impl Sample {
///     #[process_item]
///     fn process(&mut self, item: &u64) -> Option<String> {
///         (item % 2 == 0).then(|| item.to_string())
///     }
/// }
/// ```
///
/// Spec: PROC-02 to PROC-04
#[doc(inline)]
pub use batch_macros::process_item;

/// In a writer, required: writes a list, never an empty one. Takes `tx: &mut ChunkTransaction` as well to write in
/// the transaction of the checkpoint. Section 5.1.1.3.3 of the draft; see [`item_writer`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[item_writer]
/// impl Sample {
///     #[write_items]
///     fn write(&mut self, items: &[u64]) {}
/// #     #[open]
/// #     fn open(&mut self, checkpoint: Option<u64>) {}
/// #     #[get_checkpoint_info]
/// #     fn checkpoint(&mut self) -> u64 {
/// #         0
/// #     }
/// }
/// ```
///
/// Spec: WRITE-07, D-10
#[doc(inline)]
pub use batch_macros::write_items;

/// In a checkpoint algorithm: the time-out of the next transaction, in seconds. Called only where a step is
/// configured for global transactions. Section 5.1.1.4.1 of the draft; see [`checkpoint_algorithm`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[checkpoint_algorithm]
/// impl Sample {
///     #[get_checkpoint_timeout]
///     fn timeout(&mut self, timeout: i32) -> i32 {
///         timeout.max(60)
///     }
/// #     #[is_ready_to_checkpoint]
/// #     fn is_ready(&mut self) -> bool {
/// #         true
/// #     }
/// }
/// ```
///
/// Spec: CKALG-02 to CKALG-04
#[doc(inline)]
pub use batch_macros::get_checkpoint_timeout;

/// In a checkpoint algorithm: called when a transaction has begun, before any item. Section 5.1.1.4.2 of the draft;
/// see [`checkpoint_algorithm`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[checkpoint_algorithm]
/// impl Sample {
///     #[begin_checkpoint]
///     fn begin(&mut self) {}
/// #     #[is_ready_to_checkpoint]
/// #     fn is_ready(&mut self) -> bool {
/// #         true
/// #     }
/// }
/// ```
///
/// Spec: CKALG-05
#[doc(inline)]
pub use batch_macros::begin_checkpoint;

/// In a checkpoint algorithm, required: whether a checkpoint is due. Asked after each item was processed. Section
/// 5.1.1.4.3 of the draft; see [`checkpoint_algorithm`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[checkpoint_algorithm]
/// impl Sample {
///     #[is_ready_to_checkpoint]
///     fn is_ready(&mut self) -> bool {
///         true
///     }
/// }
/// ```
///
/// Spec: CKALG-06
#[doc(inline)]
pub use batch_macros::is_ready_to_checkpoint;

/// In a checkpoint algorithm: called when all items were written, right before the transaction commits. Section
/// 5.1.1.4.4 of the draft; see [`checkpoint_algorithm`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[checkpoint_algorithm]
/// impl Sample {
///     #[end_checkpoint]
///     fn end(&mut self) {}
/// #     #[is_ready_to_checkpoint]
/// #     fn is_ready(&mut self) -> bool {
/// #         true
/// #     }
/// }
/// ```
///
/// Spec: CKALG-07
#[doc(inline)]
pub use batch_macros::end_checkpoint;
