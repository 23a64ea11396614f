//! Listeners of reads, processing and writes.

use std::any::Any;

use batch_runtime::ChunkItems;
use batch_runtime::prelude::*;

/// Compares the calls before and after an operation.
#[derive(Default)]
struct Calls {
    before: u32,
    after: u32,
}

impl Calls {
    /// Counts a call after the operation, and sets the exit status of the job.
    fn compare(&mut self, job: &JobContext, listener: &str) {
        self.after += 1;
        let verdict = if self.before == self.after { "GOOD" } else { "BAD" };
        job.set_exit_status(Some(&format!("{listener}: {verdict} STATUS")));
    }
}

/// Compares the calls around reads, and notes an error.
#[derive(BatchArtifact)]
struct ReadListener {
    #[batch_property(name = "app.listenertest", value = "")]
    tested: String,
    #[batch_context]
    job: JobContext,
    calls: Calls,
}

#[item_read_listener("myItemReadListenerImpl")]
impl ReadListener {
    #[before_read]
    fn before(&mut self) {
        self.calls.before += 1;
    }

    #[after_read]
    fn after(&mut self, _item: &dyn Any) {
        if self.tested == "READ" {
            self.calls.compare(&self.job, "MyItemReadListenerImpl");
        }
    }

    #[on_read_error]
    fn on_error(&mut self, _ex: &BatchError) {
        let text = "MyItemReadListenerImpl.onReadError";
        self.job.set_exit_status(Some(text));
    }
}

/// Compares the calls around the processor, and notes an error.
#[derive(BatchArtifact)]
struct ProcessListener {
    #[batch_property(name = "app.listenertest", value = "")]
    tested: String,
    #[batch_context]
    job: JobContext,
    calls: Calls,
}

#[item_process_listener("myItemProcessListenerImpl")]
impl ProcessListener {
    #[before_process]
    fn before(&mut self, _item: &dyn Any) {
        self.calls.before += 1;
    }

    #[after_process]
    fn after(&mut self, _item: &dyn Any, _result: Option<&dyn Any>) {
        if self.tested == "PROCESS" {
            self.calls.compare(&self.job, "MyItemProcessListenerImpl");
        }
    }

    #[on_process_error]
    fn on_error(&mut self, _ex: &BatchError, _item: &dyn Any) {
        let text = "MyItemProcessListenerImpl.onProcessError";
        self.job.set_exit_status(Some(text));
    }
}

/// Compares the calls around writes, and notes an error.
#[derive(BatchArtifact)]
struct WriteListener {
    #[batch_property(name = "app.listenertest", value = "")]
    tested: String,
    #[batch_context]
    job: JobContext,
    calls: Calls,
}

#[item_write_listener("myItemWriteListenerImpl")]
impl WriteListener {
    #[before_write]
    fn before(&mut self, _items: ChunkItems<'_>) {
        self.calls.before += 1;
    }

    #[after_write]
    fn after(&mut self, _items: ChunkItems<'_>) {
        if self.tested == "WRITE" {
            self.calls.compare(&self.job, "MyItemWriteListener");
        }
    }

    #[on_write_error]
    fn on_error(&mut self, _ex: &BatchError, _items: ChunkItems<'_>) {
        let text = "MyItemWriteListenerImpl.onWriteError";
        self.job.set_exit_status(Some(text));
    }
}

/// Sets the exit status of the job to the items that were not written.
#[derive(BatchArtifact)]
struct UnwrittenItems {
    #[batch_context]
    job: JobContext,
}

#[item_write_listener("ListenerOnErrorArtifacts.WL")]
impl UnwrittenItems {
    #[on_write_error]
    fn on_error(&mut self, _ex: &BatchError, items: &[i64]) {
        self.job.set_exit_status(Some(&format!("{items:?}")));
    }
}

/// Sets the exit status of the job to the item that was not processed.
#[derive(BatchArtifact)]
struct UnprocessedItem {
    #[batch_context]
    job: JobContext,
}

#[item_process_listener("ListenerOnErrorArtifacts.PL")]
impl UnprocessedItem {
    #[on_process_error]
    fn on_error(&mut self, _ex: &BatchError, item: &i64) {
        self.job.set_exit_status(Some(&item.to_string()));
    }
}
