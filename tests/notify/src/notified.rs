//! A program whose jobs skip, fail, hang and wait to be killed.
#![allow(missing_docs, reason = "a program for tests")]

use std::fmt;
use std::process::ExitCode;
use std::thread;

use batch_runtime::prelude::*;

/// Reads the numbers to `count`.
#[derive(BatchArtifact)]
struct Numbers {
    #[batch_property(value = "5")]
    count: u64,
    next: u64,
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
        self.next += 1;
        (number <= self.count).then_some(number)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.next
    }
}

/// A number that is not even.
#[derive(Debug, BatchException)]
struct Odd;

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("odd")
    }
}

impl std::error::Error for Odd {}

/// Accepts even numbers.
#[derive(BatchArtifact)]
struct EvenOnly;

#[item_processor]
impl EvenOnly {
    #[process_item]
    fn process(&mut self, number: u64) -> std::result::Result<Option<u64>, Odd> {
        match number % 2 {
            0 => Ok(Some(number)),
            _ => Err(Odd),
        }
    }
}

#[derive(BatchArtifact)]
struct Discard;

#[item_writer]
impl Discard {
    #[open]
    fn open(&mut self, _: Option<()>) {}
    #[write_items]
    fn write(&mut self, _: &[u64]) {}
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// Completes, fails with a message, or waits until it is stopped or killed.
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
                while self.step.batch_status() != batch_runtime::BatchStatus::Stopping {
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
