//! A program with jobs that the console shows: they succeed, fail, skip, wait, and have partitions, splits and decisions.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use batch_runtime::prelude::*;
use {batch_batchlets as _, batch_items as _};

/// The polling interval for a gate.
const POLL: Duration = Duration::from_millis(20);

/// Reads numbers up to `count`. Before the item `gate.at` it waits until the file `gate` exists.
#[derive(BatchArtifact)]
struct Numbers {
    #[batch_property(name = "count", value = "30")]
    count: u64,
    #[batch_property(name = "gate")]
    gate: Option<PathBuf>,
    #[batch_property(name = "gate.at", value = "15")]
    gate_at: u64,
    next: u64,
}

#[item_reader("Numbers")]
impl Numbers {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.next = checkpoint.unwrap_or(0);
        tracing::info!(from = self.next, "opened");
    }

    #[get_item_count]
    fn count(&self) -> Option<u64> {
        Some(self.count)
    }

    #[read_item]
    fn read(&mut self) -> Option<u64> {
        if self.next >= self.count {
            return None;
        }
        while self.next == self.gate_at
            && let Some(gate) = &self.gate
            && !gate.exists()
        {
            thread::sleep(POLL);
        }
        self.next += 1;
        Some(self.next)
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.next
    }
}

/// Fails at the item `fail.at`, with a message of choice.
#[derive(BatchArtifact)]
struct Check {
    #[batch_property(name = "fail.at", value = "0")]
    fail_at: u64,
    #[batch_property(name = "message", value = "the account is locked")]
    message: String,
}

#[item_processor("Check")]
impl Check {
    #[process_item]
    fn process(&mut self, item: &u64) -> Result<Option<u64>, BatchError> {
        match *item == self.fail_at {
            true => {
                tracing::warn!(item, message = self.message, "rejected");
                Err(BatchError::msg(self.message.clone()))
            }
            false => Ok(Some(*item)),
        }
    }
}

#[derive(BatchArtifact)]
struct Nowhere {}

#[item_writer("Nowhere")]
impl Nowhere {
    #[open]
    fn open(&mut self, _: Option<u64>) {}

    #[write_items]
    fn write(&mut self, items: &[u64]) {
        tracing::warn!(items = items.len(), "wrote");
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        0
    }
}

/// Does nothing, with an exit status of choice.
#[derive(BatchArtifact)]
struct Done {
    #[batch_property(name = "exit.status", value = "COMPLETED")]
    exit_status: String,
}

#[batchlet("Done")]
impl Done {
    #[process]
    fn process(&self) -> String {
        self.exit_status.clone()
    }

    #[cancel]
    fn cancel(&self) {}
}

fn main() -> ExitCode {
    batch_cli::main()
}
