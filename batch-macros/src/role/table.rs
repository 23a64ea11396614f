//! THE table of roles. A row is an artifact attribute with its method attributes; everything that lists roles, here and
//! in `batch-runtime`, is generated from it: see `role_table!` and `__for_each_role!`.

/// Calls `$callback!` with every row:
///
/// ```text
/// /// The purpose of the artifact: the role's line in the index of the documentation.
/// attribute Trait { fields of `Role` } [
///     /// Documentation of the method attribute; none if an earlier row has the same one.
///     attribute | alias ("signature" or "the other signature") { fields of `Method` }
/// ]
/// ```
macro_rules! role_table {
    ($callback:ident) => { $callback! {
        /// Reads items one by one.
        item_reader ItemReader { fact: Some(("info", "ReaderInfo")), pipelined: true, rewindable: true, ..ROLE } [
            /// Positions the reader or writer at `checkpoint`, the value that `#[get_checkpoint_info]` returned for the
            /// last committed checkpoint; at the start for `None`. Also in [`macro@item_writer`].
            ///
            /// As an extension of the draft it may be left out, and `checkpoint` with it, if there is no `#[get_checkpoint_info]`: then
            /// a restart reads the input from the beginning, and a writer cannot know where its output ended. `check` reports both.
            open("fn open(&mut self, checkpoint: Option<C>) -> Result<(), E>" or "fn open(&mut self) -> Result<(), E>") { ..OPEN }
            /// Returns the next item, `None` at the end. Required.
            read_item("fn read(&mut self) -> Result<Option<Item>, E>") {
                shape: Shape::Read, required: true, usual_names: &["read", "next", "next_item"], ..NOTICE
            }
            /// Returns the position, of the type that `#[open]` takes. The runtime calls it before it commits a
            /// checkpoint. Required if `#[open]` takes a checkpoint, also in [`macro@item_writer`].
            get_checkpoint_info("fn checkpoint(&mut self) -> Result<C, E>") { ..GET_CHECKPOINT_INFO }
            /// Releases the resources of the reader or writer, also after a failure. Errors are logged. Optional, also in
            /// [`macro@item_writer`].
            close("fn close(&mut self) -> Result<(), E>") { ..NOTICE }
            /// Returns the number of items in the whole input, or `None`. Optional; an extension of the draft.
            ///
            /// With it, progress has a bar and a remaining time. The runtime calls it once per step execution (or
            /// partition), after `#[open]`, and not again when a rollback reopens the reader. Count from the beginning
            /// of the input even if `#[open]` was given a checkpoint: the runtime knows how many items earlier
            /// executions have read, so the bar resumes where it was. Items that a skipped read passed over count too.
            ///
            /// Nothing else depends on the number: a wrong one shows in the bar only, and an error or panic is logged
            /// as a warning. It should be cheap to determine, because no item is read before.
            get_item_count("fn item_count(&mut self) -> Result<Option<u64>, E>") { shape: Shape::Count, ..NOTICE }
            /// Returns where the last item comes from, such as `orders.csv:17`, or `None`. Optional; an extension of the draft.
            ///
            /// If an error of the processor or writer fails the step, its message then names the origin of the item that it is about, or of
            /// the first and last item of the list. The runtime does not call the method for each item. The reader must be
            /// `rewindable = true`: once the chunk is rolled back, another instance with the same contexts opens at the checkpoint, reads up to the
            /// item, and returns its origin. If that fails, the message has no origin. `#[open]` and `#[read_item]` must have no other effect.
            get_item_origin("fn item_origin(&mut self) -> Result<Option<String>, E>") { shape: Shape::Origin, ..NOTICE }
        ]

        /// Transforms an item, or filters it with `None`.
        item_processor ItemProcessor { fact: Some(("info", "ProcessorInfo")), pipelined: true, ..ROLE } [
            /// Transforms an item, or filters it with `None`. Takes the item by value if it is `Clone`. Required.
            process_item("fn process(&mut self, item: &In) -> Result<Option<Out>, E>"
                or "fn process(&mut self, item: In) -> Result<Option<Out>, E>")
            { shape: Shape::Process, required: true, usual_names: &["process", "transform"], ..NOTICE }
        ]

        /// Writes lists of results, never an empty one.
        item_writer ItemWriter { fact: Some(("info", "WriterInfo")), buffered: true, pipelined: true, rewindable: true, ..ROLE } [
            /// Returns the destination of the items: a database beside the job repository, which commits the items together with a
            /// marker of the checkpoint, so that they are written exactly once. `#[write_items]` then takes the transaction of the
            /// destination as its second parameter. Called once, before `#[open]`. Optional; an extension of the draft.
            destination("fn destination(&mut self) -> Result<D, E>") { shape: Shape::Destination, ..NOTICE }
            open("fn open(&mut self, checkpoint: Option<C>) -> Result<(), E>" or "fn open(&mut self) -> Result<(), E>") { ..OPEN }
            /// Writes a list, never an empty one. With the second parameter it writes in the transaction that commits
            /// the checkpoint, or in the destination's transaction, exactly once. Required.
            write_items("fn write(&mut self, items: &[Out]) -> Result<(), E>"
                or "fn write(&mut self, items: &[Out], tx: &mut ChunkTransaction) -> Result<(), E>")
            { shape: Shape::Write, required: true, usual_names: &["write"], ..NOTICE }
            get_checkpoint_info("fn checkpoint(&mut self) -> Result<C, E>") { ..GET_CHECKPOINT_INFO }
            /// Completes the output: writes a footer, gives a file its final name. Optional; an extension of the draft.
            ///
            /// The runtime calls it after the checkpoint of the last items was committed, and not if the step fails or
            /// is stopped before. An error fails the step. If the process dies meanwhile, or the call fails, a restart
            /// opens the writer at the last checkpoint and calls it again, so it has to be repeatable.
            finish("fn finish(&mut self) -> Result<(), E>") { ..NOTICE }
            close("fn close(&mut self) -> Result<(), E>") { ..NOTICE }
        ]

        /// Decides when a checkpoint is due.
        checkpoint_algorithm CheckpointAlgorithm { ..ROLE } [
            /// Returns the timeout of the next checkpoint's transaction, in seconds. Called only for steps configured
            /// for global transactions. Optional.
            get_checkpoint_timeout("fn timeout(&mut self, timeout: i32) -> Result<i32, E>") {
                shape: Shape::Timeout, usual_names: &["checkpoint_timeout"], ..NOTICE
            }
            /// Runs after a checkpoint's transaction has started, before any item. Optional.
            begin_checkpoint("fn begin_checkpoint(&mut self) -> Result<(), E>") { ..NOTICE }
            /// Returns whether a checkpoint is due. Called after each processed item. Required.
            is_ready_to_checkpoint("fn is_ready(&mut self) -> Result<bool, E>") {
                shape: Shape::Flag, required: true, usual_names: &["is_ready", "ready", "ready_to_checkpoint"], ..NOTICE
            }
            /// Runs after the last write, right before the transaction commits. Optional.
            end_checkpoint("fn end_checkpoint(&mut self) -> Result<(), E>") { ..NOTICE }
        ]

        /// Decides which errors are skipped.
        skip_policy SkipPolicy { ..ROLE } [
            /// Returns whether an error is skipped, as if its class was in `skippable-exception-classes`. Required.
            should_skip("fn should_skip(&mut self, failed: &FailedItem<'_>) -> Result<bool, E>") {
                shape: Shape::Judge, required: true, usual_names: &["skips", "is_skippable"], ..NOTICE
            }
        ]

        /// Does one thing.
        batchlet Batchlet { ..ROLE } [
            /// Runs before `#[process]`. Optional.
            begin_step("fn begin_step(&self) -> Result<(), E>") { receiver: Receiver::Shared, ..NOTICE }
            /// Does the work and returns the exit status of the step, not empty. Required. As an extension of the draft it may return
            /// nothing: the exit status is then COMPLETED.
            process("fn process(&self) -> Result<String, E>") {
                shape: Shape::Text, receiver: Receiver::Shared, required: true, usual_names: &["run", "execute"]
            }
            /// Requests `#[process]` to return. Called on another thread while it runs. As an extension of the draft it may be left out: a
            /// stop then waits until `#[process]` returns.
            cancel("fn cancel(&self) -> Result<(), E>") {
                receiver: Receiver::Shared, usual_names: &["stop"], ..NOTICE
            }
            /// Runs after `#[process]`, also if it failed or was cancelled. Optional.
            end_step("fn end_step(&self) -> Result<(), E>") { receiver: Receiver::Shared, ..NOTICE }
        ]

        /// Listens to a job and to all of its steps.
        job_listener JobListener { places: Some(&[Place::Job]), ..ROLE } [
            /// Runs before the job. Optional.
            before_job("fn before_job(&mut self) -> Result<(), E>") { ..NOTICE }
            /// Runs after the job. Optional.
            after_job("fn after_job(&mut self) -> Result<(), E>") { ..NOTICE }
            /// Runs before the step; in a job listener before each step. Optional, also in [`macro@step_listener`].
            before_step("fn before_step(&mut self) -> Result<(), E>") { ..NOTICE }
            /// Runs after the step, also if it failed; in a job listener after each step. Optional, also in
            /// [`macro@step_listener`].
            after_step("fn after_step(&mut self) -> Result<(), E>") { ..NOTICE }
        ]

        /// Listens to a step.
        step_listener StepListener { places: Some(&[Place::Chunk, Place::Batchlet]), ..ROLE } [
            before_step("fn before_step(&mut self) -> Result<(), E>") { ..NOTICE }
            after_step("fn after_step(&mut self) -> Result<(), E>") { ..NOTICE }
        ]

        /// Listens to the checkpoints of a chunk step.
        checkpoint_listener CheckpointListener { places: Some(&[Place::Chunk]), ..ROLE } [
            /// Runs before the positions of reader and writer are collected. Optional.
            before_checkpoint("fn before_checkpoint(&mut self) -> Result<(), E>") { ..NOTICE }
            /// Runs after the checkpoint's transaction has committed. Optional.
            after_checkpoint("fn after_checkpoint(&mut self) -> Result<(), E>") { ..NOTICE }
        ]

        /// Listens to the chunks of a chunk step: what is read, processed and written between two checkpoints.
        chunk_listener ChunkListener { places: Some(&[Place::Chunk]), ..ROLE } [
            /// Runs in the transaction of a chunk, before its first item is read. Optional.
            before_chunk("fn before_chunk(&mut self) -> Result<(), E>") { ..NOTICE }
            /// Runs in the transaction of a chunk, after its last write and before the checkpoint. Optional.
            after_chunk("fn after_chunk(&mut self) -> Result<(), E>") { ..NOTICE }
            /// Runs after an error, before the chunk is rolled back: for a retry, or because the step fails. Optional.
            on_chunk_error("fn on_chunk_error(&mut self, ex: &BatchError) -> Result<(), E>") {
                shape: Shape::Notice(&[ParamKind::Error]), ..NOTICE
            }
        ]

        /// Listens to the calls of the reader.
        item_read_listener ItemReadListener { places: Some(&[Place::Chunk]), ..ITEM_LISTENER } [
            /// Runs before each call of the reader. Optional.
            before_read("fn before_read(&mut self) -> Result<(), E>") { ..NOTICE }
            /// Runs after an item was read; not at the end. Optional.
            after_read("fn after_read(&mut self, item: &In) -> Result<(), E>"
                or "fn after_read(&mut self, item: &dyn Any) -> Result<(), E>")
            { shape: Shape::Notice(&[INPUT]), ..NOTICE }
            /// Runs after the reader failed. Optional.
            on_read_error("fn on_read_error(&mut self, ex: &BatchError) -> Result<(), E>") {
                shape: Shape::Notice(&[ParamKind::Error]), ..NOTICE
            }
        ]

        /// Listens to the calls of the processor.
        item_process_listener ItemProcessListener { places: Some(&[Place::Chunk]), ..ITEM_LISTENER } [
            /// Runs before each call of the processor. Optional.
            before_process("fn before_process(&mut self, item: &In) -> Result<(), E>"
                or "fn before_process(&mut self, item: &dyn Any) -> Result<(), E>")
            { shape: Shape::Notice(&[INPUT]), ..NOTICE }
            /// Runs after an item was processed; `result` is `None` if it was filtered. Optional.
            after_process | after_processor("fn after_process(&mut self, item: &In, result: Option<&Out>) -> Result<(), E>"
                or "fn after_process(&mut self, item: &dyn Any, result: Option<&dyn Any>) -> Result<(), E>")
            { shape: Shape::Notice(&[INPUT, ParamKind::Result]), ..NOTICE }
            /// Runs after the processor failed. Optional.
            on_process_error("fn on_process_error(&mut self, ex: &BatchError, item: &In) -> Result<(), E>"
                or "fn on_process_error(&mut self, ex: &BatchError, item: &dyn Any) -> Result<(), E>")
            { shape: Shape::Notice(&[ParamKind::Error, INPUT]), ..NOTICE }
        ]

        /// Listens to the calls of the writer.
        item_write_listener ItemWriteListener { places: Some(&[Place::Chunk]), ..ITEM_LISTENER } [
            /// Runs before each call of the writer. Optional.
            before_write("fn before_write(&mut self, items: &[Out]) -> Result<(), E>"
                or "fn before_write(&mut self, items: ChunkItems<'_>) -> Result<(), E>")
            { shape: Shape::Notice(&[ParamKind::List]), ..NOTICE }
            /// Runs after a list was written. Optional.
            after_write("fn after_write(&mut self, items: &[Out]) -> Result<(), E>"
                or "fn after_write(&mut self, items: ChunkItems<'_>) -> Result<(), E>")
            { shape: Shape::Notice(&[ParamKind::List]), ..NOTICE }
            /// Runs after the writer failed. Optional.
            on_write_error("fn on_write_error(&mut self, ex: &BatchError, items: &[Out]) -> Result<(), E>"
                or "fn on_write_error(&mut self, ex: &BatchError, items: ChunkItems<'_>) -> Result<(), E>")
            { shape: Shape::Notice(&[ParamKind::Error, ParamKind::List]), ..NOTICE }
        ]

        /// Listens to skipped items.
        skip_listener SkipListener { places: Some(&[Place::Job, Place::Chunk]), ..ITEM_LISTENER } [
            /// Runs after an error of the reader was skipped. Optional.
            on_skip_in_read("fn on_skip_in_read(&mut self, ex: &BatchError) -> Result<(), E>") {
                shape: Shape::Notice(&[ParamKind::Error]), ..NOTICE
            }
            /// Runs after an item was skipped because the processor failed. Optional.
            on_skip_in_process("fn on_skip_in_process(&mut self, ex: &BatchError, item: &In) -> Result<(), E>"
                or "fn on_skip_in_process(&mut self, ex: &BatchError, item: &dyn Any) -> Result<(), E>")
            { shape: Shape::Notice(&[ParamKind::Error, INPUT]), ..NOTICE }
            /// Runs after items were skipped because the writer failed: once for each item, or once with the list. Optional.
            on_skip_in_write("fn on_skip_in_write(&mut self, ex: &BatchError, item: &Out) -> Result<(), E>"
                or "fn on_skip_in_write(&mut self, ex: &BatchError, items: &[Out]) -> Result<(), E>")
            { shape: Shape::Notice(&[ParamKind::Error, ParamKind::Each]), ..NOTICE }
        ]

        /// Listens to retries.
        retry_listener RetryListener { places: Some(&[Place::Job, Place::Chunk]), ..ITEM_LISTENER } [
            /// Runs after the reader failed with an error that is retried, in the transaction that failed. Optional.
            on_retry_read_exception("fn on_retry_read_exception(&mut self, ex: &BatchError) -> Result<(), E>") {
                shape: Shape::Notice(&[ParamKind::Error]), ..NOTICE
            }
            /// Runs after the processor failed with an error that is retried, in the transaction that failed. Optional.
            on_retry_process_exception("fn on_retry_process_exception(&mut self, ex: &BatchError, item: &In) -> Result<(), E>"
                or "fn on_retry_process_exception(&mut self, ex: &BatchError, item: &dyn Any) -> Result<(), E>")
            { shape: Shape::Notice(&[ParamKind::Error, INPUT]), ..NOTICE }
            /// Runs after the writer failed with an error that is retried, in the transaction that failed: once for each item, or once with
            /// the list. If this method fails, the whole chunk is rolled back and retried. Optional.
            on_retry_exception | on_retry_write_exception
            ("fn on_retry_exception(&mut self, ex: &BatchError, item: &Out) -> Result<(), E>"
                or "fn on_retry_exception(&mut self, ex: &BatchError, items: &[Out]) -> Result<(), E>")
            { shape: Shape::Notice(&[ParamKind::Error, ParamKind::Each]), ..NOTICE }
            /// Runs right before an item is written again. Optional.
            on_retry_item("fn on_retry_item(&mut self, ex: &BatchError, item: &Out) -> Result<(), E>"
                or "fn on_retry_item(&mut self, ex: &BatchError, item: &dyn Any) -> Result<(), E>")
            { shape: Shape::Notice(&[ParamKind::Error, OUTPUT]), ..NOTICE }
        ]

        /// Plans the partitions of a step or flow.
        partition_algorithm PartitionAlgorithm { ..ROLE } [
            /// Returns the number of partitions and the properties of each. Called once, at the beginning. Required.
            calculate_partitions("fn calculate(&mut self) -> Result<PartitionPlan, E>") {
                shape: Shape::Plan, required: true, usual_names: &["calculate", "partitions", "plan"], ..NOTICE
            }
        ]

        /// Makes subjobs one unit of work.
        logical_tx LogicalTX { fact: Some(("compensates", "bool")), ..ROLE } [
            /// Runs before the partition algorithm and the subjobs. Optional.
            logical_tx_begin("fn begin(&mut self) -> Result<(), E>") { ..NOTICE }
            /// Runs when all subjobs have completed. Optional.
            logical_tx_before_completion("fn before_completion(&mut self) -> Result<(), E>") { ..NOTICE }
            /// Undoes the work of the subjobs. No subjob is running. Optional.
            logical_tx_rollback("fn rollback(&mut self) -> Result<(), E>") { shape: Shape::Compensation, ..NOTICE }
            /// Runs at the end; `status` is `COMMIT` or `ROLLBACK`. Optional.
            logical_tx_after_completion("fn after_completion(&mut self, status: &str) -> Result<(), E>") {
                shape: Shape::Notice(&[ParamKind::Status]), ..NOTICE
            }
        ]

        // No `listeners` element accepts it, but it outlives a step as listeners do: its contexts are set again.
        /// Sends data of a subjob to the analyzer.
        sub_job_collector SubJobCollector { fact: Some(("payload_type", "ItemType")), places: Some(&[]), ..ROLE } [
            /// Returns the payload for the analyzer; `None` sends nothing. Called with each checkpoint, and at the end,
            /// on the thread of the subjob. Required.
            collect_sub_job_data("fn collect(&mut self) -> Result<Option<P>, E>") {
                shape: Shape::Collect, required: true, usual_names: &["collect", "collect_data"], ..NOTICE
            }
        ]

        /// Receives the data and the exit statuses of subjobs.
        sub_job_analyzer SubJobAnalyzer { fact: Some(("payload_type", "Option<ItemType>")), ..ROLE } [
            /// Receives one payload, on the main thread. Optional.
            analyze_collector_data("fn analyze(&mut self, data: P) -> Result<(), E>") { shape: Shape::Analyze, ..NOTICE }
            /// Receives the exit status of one subjob, on the main thread; with the first parameter its batch status, too. Optional.
            analyze_exit_status("fn analyze_exit_status(&mut self, exit_status: &str) -> Result<(), E>"
                or "fn analyze_exit_status(&mut self, batch_status: BatchStatus, exit_status: &str) -> Result<(), E>")
            { shape: Shape::AnalyzeStatus, ..NOTICE }
        ]

        /// Selects the transition that a job takes.
        decider Decider { ..ROLE } [
            /// Returns the exit status that selects the transition, not empty. With the parameter it sees the executions of the steps that
            /// ended last: of the step or flow before the decision, or of each flow of the split. Required.
            decide("fn decide(&mut self) -> Result<String, E>"
                or "fn decide(&mut self, steps: &[StepExecution]) -> Result<String, E>")
            {
                shape: Shape::Decide, required: true, usual_names: &["decision"], ..NOTICE
            }
        ]
    }};
}

pub(crate) use role_table;

use super::{Method, ParamKind, Place, Receiver, Role, Shape, Side};

macro_rules! statics {
    ($(
        $(#[doc = $summary:literal])+
        $role:ident $trait_name:ident { $($role_fields:tt)* } [$(
            $(#[doc = $doc:literal])*
            $method:ident $(| $alias:ident)? ($signature:literal $(or $alternative:literal)?) { $($fields:tt)* }
        )*]
    )*) => {
        /// Every role, in the order of the table.
        pub(crate) static ROLES: &[Role] = &[$(Role {
            attribute: stringify!($role),
            trait_name: stringify!($trait_name),
            summary: concat!($($summary),+),
            methods: &[$(Method {
                attribute: stringify!($method),
                doc: concat!($($doc, "\n"),*),
                alias: optional!($(stringify!($alias))?),
                signature: $signature,
                alternative: optional!($($alternative)?),
                $($fields)*
            }),*],
            $($role_fields)*
        }),*];
    };
}

macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

role_table!(statics);

/// The fields that most roles share.
const ROLE: Role = Role {
    attribute: "",
    trait_name: "",
    summary: "",
    methods: &[],
    buffered: false,
    pipelined: false,
    rewindable: false,
    fact: None,
    places: None,
};

/// A listener whose methods take items, whose types the loader compares.
const ITEM_LISTENER: Role = Role {
    fact: Some(("items", "ListenerItems")),
    ..ROLE
};

/// A method without parameters and result; a row names what differs.
const NOTICE: Method = Method {
    attribute: "",
    doc: "",
    alias: None,
    shape: Shape::Notice(&[]),
    receiver: Receiver::Any,
    required: false,
    signature: "",
    alternative: None,
    usual_names: &[],
};

const OPEN: Method = Method {
    shape: Shape::Open,
    ..NOTICE
};

const GET_CHECKPOINT_INFO: Method = Method {
    shape: Shape::Checkpoint,
    usual_names: &["checkpoint", "checkpoint_info"],
    ..NOTICE
};

const INPUT: ParamKind = ParamKind::Item(Side::Input);
const OUTPUT: ParamKind = ParamKind::Item(Side::Output);
