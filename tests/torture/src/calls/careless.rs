//! Jobs with planted faults, which the sweep has to notice.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;

use batch_runtime::prelude::*;

use super::jobs::{Entry, Kind};

/// Writes lines, with a fault.
#[derive(BatchArtifact)]
struct Careless {
    #[batch_property(name = "fault")]
    fault: String,
    #[batch_property(name = "output")]
    output: PathBuf,
    file: Option<File>,
}

#[item_writer("carelessWriter")]
impl Careless {
    fn part(&self) -> PathBuf {
        self.output.with_extension("csv.part")
    }

    #[open]
    fn open(&mut self, checkpoint: Option<u64>) -> Result<(), BatchError> {
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.part())?;
        if self.fault != "doubles" {
            file.set_len(checkpoint.unwrap_or(0))?;
        }
        file.seek(SeekFrom::End(0))?;
        self.file = Some(file);
        Ok(())
    }

    #[write_items]
    fn write(&mut self, entries: &[Entry]) -> Result<(), BatchError> {
        let file = self.file.as_mut().expect("it is open");
        for entry in entries {
            let line = format!("{},{}\n", entry.id, entry.name);
            let mut written = file.write_all(line.as_bytes());
            while self.fault == "hangs" && written.is_err() {
                written = file.write_all(line.as_bytes());
            }
            match self.fault.as_str() {
                "ignores" => {}
                "panics" => written.expect("it is written"),
                _ => written?,
            }
        }
        Ok(())
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Result<u64, BatchError> {
        Ok(self.file.as_mut().expect("it is open").stream_position()?)
    }
}

/// Gives the file its name when the step ends, with a fault.
#[derive(BatchArtifact)]
struct CarelessEnd {
    #[batch_property(name = "fault")]
    fault: String,
}

#[step_listener("carelessEnd")]
impl CarelessEnd {
    #[after_step]
    fn publish(&mut self) -> Result<(), BatchError> {
        let (part, output) = ("out/o.csv.part", "out/o.csv");
        match (fs::rename(part, output), self.fault.as_str()) {
            (Err(_), "forgets") => {}
            (Err(_), "leaves") => drop(fs::copy(part, output)?),
            (renamed, _) => renamed?,
        }
        Ok(())
    }
}

macro_rules! careless {
    ($($fault:literal),*) => {
        &[$(Kind {
            name: $fault,
            steps: &[("entryCsvReader carelessWriter", concat!("resource=in.csv\noutput=out/o.csv\nfault=", $fault), "")],
            before: concat!(
                "<listeners><listener ref=\"carelessEnd\"><properties><property name=\"fault\" value=\"", $fault,
                "\"/></properties></listener></listeners>"
            ),
        }),*]
    };
}

/// A fault in the writer, in the listener, or in `main`.
pub(super) const KINDS: &[Kind] = careless![
    "ignores", "panics", "hangs", "doubles", "forgets", "leaves", "exits"
];

/// A call that fails, and the sweep's report of it.
const NOTICED: [(&str, &str); 8] = [
    ("ignores out/o.csv.part write 3 ENOSPC", "out/o.csv is"),
    ("ignores out/o.csv.part write 3+ EIO", "out/o.csv is"),
    ("panics out/o.csv.part write 3 EIO", "a panic"),
    ("hangs out/o.csv.part write 3+ EIO", "hangs"),
    ("doubles out/o.csv.part write 6 EIO", "out/o.csv is"),
    ("forgets out/o.csv.part rename 1 EIO", "out/o.csv is None"),
    ("leaves out/o.csv.part rename 1 EROFS", "out/o.csv.part is Some"),
    (
        "exits out/o.csv.part write 3+ EIO",
        "exit code 0, but the status is FAILED",
    ),
];

/// Shows that the sweep notices each planted fault. Returns those that it does not.
pub(super) fn self_test() -> Vec<String> {
    let mut missed = Vec::new();
    for (text, expected) in NOTICED {
        let injection = super::Injection::parse(text).expect("a valid injection");
        let violations = super::sweep(&[injection], 10);
        match violations.first() {
            Some(violation) if violation.contains(expected) => println!("{text} is noticed"),
            Some(violation) => missed.push(format!("{text} was taken for {violation}")),
            None => missed.push(format!("{text} was not noticed")),
        }
    }
    missed
}
