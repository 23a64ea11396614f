//! A program whose jobs wait to be operated: stopped, killed, crashed.
#![allow(missing_docs, reason = "a program for tests")]

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use {batch_batchlets as _, batch_items as _};

/// Reports that it waits, and waits until it is cancelled; a stubborn one ignores that.
#[derive(BatchArtifact)]
struct Patient {
    #[batch_property(value = "false")]
    stubborn: bool,
    cancelled: AtomicBool,
}

#[batchlet]
impl Patient {
    #[process]
    fn wait(&self) -> String {
        eprintln!("waiting");
        while self.stubborn || !self.cancelled.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        String::from("WAITED")
    }
    #[cancel]
    fn cancel(&self) {
        eprintln!("cancelled");
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

/// Reads the numbers to ten. At the third it reports so, and waits until it is stopped, unless there is a file `go`.
#[derive(BatchArtifact)]
struct Numbers {
    next: u64,
    #[batch_context]
    step: StepContext,
}

#[item_reader]
impl Numbers {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.next = checkpoint.unwrap_or(1);
        eprintln!("from {}", self.next);
    }
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        let number = self.next;
        if number == 3 && !Path::new("go").exists() {
            eprintln!("waiting");
            while self.step.batch_status() != BatchStatus::Stopping {
                thread::yield_now();
            }
        }
        self.next += 1;
        (number <= 10).then_some(number)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.next
    }
    #[close]
    fn close(&mut self) {}
}

/// Reads as many numbers as it announces. At one of them it waits until there is a file `go`, or it is stopped.
#[derive(BatchArtifact)]
struct Gated {
    #[batch_property(value = "100")]
    count: u64,
    #[batch_property(value = "0")]
    hold: u64,
    next: u64,
    #[batch_context]
    step: StepContext,
}

#[item_reader]
impl Gated {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.next = checkpoint.unwrap_or(1);
    }
    #[get_item_count]
    fn item_count(&self) -> std::result::Result<Option<u64>, BatchError> {
        match self.count {
            0 => Err(BatchError::msg("no count")),
            count => Ok(Some(count)),
        }
    }
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        let number = self.next;
        if number == self.hold {
            while self.step.batch_status() != BatchStatus::Stopping && !Path::new("go").exists() {
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

/// Prints the items that it writes, on both outputs.
#[derive(BatchArtifact)]
struct Loud;

#[item_writer]
impl Loud {
    #[open]
    fn open(&mut self, _: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u64]) {
        println!("wrote {} numbers, the first one is {}", numbers.len(), numbers[0]);
        // In one call, so that no output of another thread comes in between.
        let said = format!("said on the other output, {}\n", numbers[0]);
        let _ = std::io::stderr().write_all(said.as_bytes());
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

#[derive(BatchArtifact)]
struct Same;

#[item_processor]
impl Same {
    #[process_item]
    fn process(&mut self, number: u64) -> Option<u64> {
        Some(number)
    }
}

/// The error of [`Choosy`].
#[derive(Debug, BatchException)]
struct Refused;

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not this number")
    }
}

impl std::error::Error for Refused {}

/// Filters the multiples of four, cannot process seven, and cannot write nine.
#[derive(BatchArtifact)]
struct Choosy;

#[item_processor]
impl Choosy {
    #[process_item]
    fn process(&mut self, number: u64) -> std::result::Result<Option<u64>, Refused> {
        if number == 7 {
            return Err(Refused);
        }
        Ok((!number.is_multiple_of(4)).then_some(number))
    }
}

#[item_writer]
impl Choosy {
    #[open]
    fn open(&mut self, _: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u64]) -> std::result::Result<(), Refused> {
        match numbers.contains(&9) {
            true => Err(Refused),
            false => Ok(()),
        }
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

#[derive(BatchArtifact)]
struct Nowhere;

#[item_writer]
impl Nowhere {
    #[open]
    fn open(&mut self, _: Option<u64>) {}
    #[write_items]
    fn write(&mut self, _: &[u64]) {}
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        0
    }
    #[close]
    fn close(&mut self) {}
}

/// Inserts the numbers in the transaction of the checkpoint. In the third chunk, unless there is a file `go`, it ends its process
/// with code 0, or reports that it writes and waits for the file.
#[derive(BatchArtifact)]
struct RowsUntil {
    /// `exit` or `wait`.
    #[batch_property]
    then: String,
}

#[item_writer]
impl RowsUntil {
    #[open]
    fn open(&mut self, _: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u64], tx: &mut ChunkTransaction) -> std::result::Result<(), BatchError> {
        for number in numbers {
            batch_tests::database::execute(tx, &format!("INSERT INTO written VALUES ({number})"))?;
        }
        let may_go = || Path::new("go").exists();
        if numbers.contains(&25) && !may_go() {
            if self.then == "exit" {
                std::process::exit(0);
            }
            eprintln!("writing");
            while !may_go() {
                thread::yield_now();
            }
        }
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// Kills its process at the number, like a fault in a library; not if there is a file `fixed`.
#[derive(BatchArtifact)]
struct Poison {
    #[batch_property(value = "5")]
    at: u64,
}

#[item_processor]
impl Poison {
    #[process_item]
    fn process(&mut self, number: u64) -> Option<u64> {
        if number == self.at && !Path::new("fixed").exists() {
            std::process::abort();
        }
        Some(number)
    }
}

/// Kills its process, unless it has done so before.
#[derive(BatchArtifact)]
struct DiesOnce {
    #[batch_property]
    step: u32,
}

#[batchlet]
impl DiesOnce {
    #[process]
    fn die(&self) -> std::result::Result<String, BatchError> {
        let mark = format!("died-{}", self.step);
        if Path::new(&mark).exists() {
            return Ok("DONE".into());
        }
        std::fs::write(mark, "")?;
        std::process::abort();
    }
    #[cancel]
    fn cancel(&self) {}
}

/// Compares the password that it is given, in three ways, with the password in the file `expected`; then it fails if requested.
#[derive(BatchArtifact)]
struct Keeper {
    #[batch_property]
    password: String,
    /// With the password in the middle.
    #[batch_property]
    url: String,
    #[batch_property]
    pin: Option<u32>,
    #[batch_property(value = "false")]
    fail: bool,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
}

#[batchlet]
impl Keeper {
    #[process]
    fn compare(&self) -> std::result::Result<String, BatchError> {
        let Self { password, url, .. } = self;
        self.step
            .set_exit_description("login", format!("compared {password}"));
        if self.fail {
            return Err(BatchError::msg(format!("cannot log in by {url} with {password}")));
        }
        let expected = std::fs::read_to_string("expected")?;
        let of_context = self.job.properties().get("password.of.job").cloned();
        let received = *password == expected
            && *url == format!("db://me:{expected}@host/{expected}")
            && of_context.as_ref() == Some(&expected);
        Ok(match (received, self.pin) {
            (true, Some(907_060_504)) => "PASSWORD AND PIN".into(),
            (true, _) => "PASSWORD".into(),
            (false, _) => "NEITHER".into(),
        })
    }
    #[cancel]
    fn cancel(&self) {}
}

/// Panics at the number 3.
#[item_processor("CarelessAt3")]
fn careless_at_3(number: u64) -> Option<u64> {
    assert!(number != 3, "3 is wrong");
    Some(number)
}

/// Panics.
#[derive(BatchArtifact)]
struct Careless;

#[batchlet]
impl Careless {
    #[process]
    fn fall(&self) -> String {
        panic!("nobody looked");
    }
    #[cancel]
    fn cancel(&self) {}
}

/// Ends with the exit status of a property.
#[derive(BatchArtifact)]
struct Result {
    #[batch_property(value = "DONE")]
    result: String,
}

#[batchlet]
impl Result {
    #[process]
    fn process(&self) -> String {
        self.result.clone()
    }
    #[cancel]
    fn cancel(&self) {}
}

/// Writes its number to the file `turns`, and waits until there is a file of this number, or it is cancelled. Writes `two at once`
/// if another process does the same.
#[derive(BatchArtifact)]
struct TurnTaker {
    #[batch_property]
    number: String,
    cancelled: AtomicBool,
}

#[batchlet]
impl TurnTaker {
    #[process]
    fn take_turn(&self) -> std::result::Result<String, BatchError> {
        let append = std::fs::OpenOptions::new().create(true).append(true).clone();
        // The kernel unlocks it when the process is killed.
        let lock = append.open("turns.lock")?;
        let is_alone = lock.try_lock().is_ok();
        let said = if is_alone {
            self.number.as_str()
        } else {
            "two at once"
        };
        append.open("turns")?.write_all(format!("{said}\n").as_bytes())?;
        while !Path::new(&self.number).exists() && !self.cancelled.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        Ok("DONE".into())
    }
    #[cancel]
    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

fn main() -> ExitCode {
    batch_cli::main()
}
