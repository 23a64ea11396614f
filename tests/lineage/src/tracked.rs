//! A program whose jobs load files into tables, fail and wait to be stopped or killed.
#![allow(missing_docs, reason = "a program for tests")]

use std::path::Path;
use std::process::ExitCode;
use std::thread;

// Links the batchlets that the job names.
use batch_batchlets as _;
use batch_items::Record;
use batch_runtime::BatchStatus;
use batch_runtime::observer::{Dataset, DatasetRole};
use batch_runtime::prelude::*;

/// Passes records on. At the id `hold` it reports so, and waits until the step is stopped, unless there is a file `go`.
#[derive(BatchArtifact)]
struct Hold {
    #[batch_property(value = "")]
    hold: String,
    #[batch_context]
    step: StepContext,
}

#[item_processor]
impl Hold {
    #[process_item]
    fn process(&mut self, record: Record) -> Option<Record> {
        let id = record.get("id").map(|id| id.to_string());
        if id.as_deref() == Some(&self.hold) && !Path::new("go").exists() {
            eprintln!("waiting");
            while self.step.batch_status() != BatchStatus::Stopping {
                thread::yield_now();
            }
        }
        Some(record)
    }
}

/// Ends, or fails with a message. Reports a dataset whose name may be a secret.
#[derive(BatchArtifact)]
struct Task {
    #[batch_property(value = "")]
    fail: String,
    #[batch_property(value = "")]
    dataset: String,
    #[batch_context]
    step: StepContext,
}

#[batchlet]
impl Task {
    #[process]
    fn run(&self) -> Result<String, BatchError> {
        if !self.dataset.is_empty() {
            let dataset = Dataset::new(DatasetRole::Output, "api", &self.dataset);
            self.step.report_dataset(dataset);
        }
        match self.fail.as_str() {
            "" => Ok("DONE".into()),
            message => Err(BatchError::msg(message)),
        }
    }
    #[cancel]
    fn cancel(&self) {}
}

fn main() -> ExitCode {
    batch_cli::main()
}
