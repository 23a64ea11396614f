//! A program whose jobs skip, retry, fail and wait to be killed. The tests of notifications use it too.
#![allow(missing_docs, reason = "a program for tests")]

use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;

/// Reads the numbers to `count`. At `hold` it reports so, and waits until it is stopped, unless there is a file `go`.
#[derive(BatchArtifact)]
struct Numbers {
    #[batch_property(value = "5")]
    count: u64,
    #[batch_property(value = "0")]
    hold: u64,
    next: u64,
    #[batch_context]
    step: StepContext,
}

#[item_reader]
impl Numbers {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.next = checkpoint.unwrap_or(1);
    }
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        let number = self.next;
        if number == self.hold && !Path::new("go").exists() {
            eprintln!("waiting");
            while self.step.batch_status() != BatchStatus::Stopping {
                thread::yield_now();
            }
        }
        self.next += 1;
        (number <= self.count).then_some(number)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.next
    }
}

/// An item that cannot be processed.
#[derive(Debug, BatchException)]
struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("refused")
    }
}

impl std::error::Error for Refused {}

/// A resource that is busy for a moment.
#[derive(Debug, BatchException)]
struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("busy")
    }
}

impl std::error::Error for Busy {}

/// Refuses some numbers.
#[derive(BatchArtifact)]
struct Choosy {
    #[batch_property(value = "0")]
    refused: Vec<u64>,
}

#[item_processor]
impl Choosy {
    #[process_item]
    fn process(&mut self, number: u64) -> std::result::Result<Option<u64>, Refused> {
        match self.refused.contains(&number) {
            true => Err(Refused),
            false => Ok(Some(number)),
        }
    }
}

/// Is busy at the first attempt to write the number `busy`.
#[derive(BatchArtifact)]
struct Moody {
    #[batch_property(value = "0")]
    busy: u64,
    was_busy: bool,
}

#[item_writer]
impl Moody {
    #[open]
    fn open(&mut self, _: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u64]) -> std::result::Result<(), Busy> {
        if numbers.contains(&self.busy) && !std::mem::replace(&mut self.was_busy, true) {
            return Err(Busy);
        }
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// Completes, waits until it is stopped or killed, or fails with a message.
#[derive(BatchArtifact)]
struct Task {
    #[batch_property(value = "complete")]
    then: String,
    #[batch_context]
    step: StepContext,
}

#[batchlet]
impl Task {
    #[process]
    fn run(&self) -> std::result::Result<String, BatchError> {
        match self.then.as_str() {
            "complete" => Ok("DONE".into()),
            "wait" => {
                eprintln!("waiting");
                while self.step.batch_status() != BatchStatus::Stopping {
                    thread::yield_now();
                }
                Ok("STOPPED".into())
            }
            message => Err(BatchError::msg(message)),
        }
    }
    #[cancel]
    fn cancel(&self) {}
}

fn main() -> ExitCode {
    batch_cli::main()
}
