//! The artifacts of this runtime's jobs; `Jobs.java` contains the artifacts of Spring Batch.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use batch_runtime::prelude::*;

/// `skips`: twenty numbers by fours; one is skipped, one filtered, and one fails. `prepared`: completes or fails,
/// depending on the parameter `load`, and counts its runs. `waits`: waits until it is stopped.
pub(super) const JOBS: [(&str, &str); 4] = [
    (
        "skips",
        r#"<job id="skips">
          <step id="load">
            <chunk reader="Numbers" processor="Picky" writer="Nowhere" commit-interval="4" skip-limit="3">
              <skippable-exception-classes><include class="interop.Six"/></skippable-exception-classes>
            </chunk>
          </step>
        </job>"#,
    ),
    (
        "prepared",
        r#"<job id="prepared">
          <step id="prepare" next="load"><batchlet ref="Prepare"/></step>
          <step id="load"><batchlet ref="Load"/></step>
        </job>"#,
    ),
    (
        "keeps",
        r#"<job id="keeps"><step id="keep"><batchlet ref="Keep"/></step></job>"#,
    ),
    (
        "waits",
        r#"<job id="waits"><step id="wait"><batchlet ref="Patient"/></step></job>"#,
    ),
];

/// Longer than the column, and beyond Latin-1.
pub(super) fn message() -> String {
    "größer 漢字 😀 ".repeat(400)
}

#[derive(BatchArtifact)]
struct Numbers {
    last: u32,
}

#[item_reader("Numbers")]
impl Numbers {
    #[open]
    fn open(&mut self, checkpoint: Option<u32>) {
        self.last = checkpoint.unwrap_or(0);
    }
    #[read_item]
    fn read(&mut self) -> Option<u32> {
        (self.last < 20).then(|| {
            self.last += 1;
            self.last
        })
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u32 {
        self.last
    }
}

#[derive(Debug, BatchException)]
#[batch_exception(class = "interop.Six")]
struct Six;

impl fmt::Display for Six {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a six")
    }
}

impl std::error::Error for Six {}

#[derive(BatchArtifact)]
struct Picky;

#[item_processor("Picky")]
impl Picky {
    #[process_item]
    fn process(&mut self, number: u32) -> Result<Option<u32>, BatchError> {
        match number {
            6 => Err(Six.into()),
            18 => Err(BatchError::msg(message())),
            number => Ok((number != 11).then_some(number)),
        }
    }
}

#[derive(BatchArtifact)]
struct Nowhere {
    #[batch_context]
    step: StepContext,
}

#[item_writer("Nowhere")]
impl Nowhere {
    #[open]
    fn open(&mut self, _checkpoint: Option<String>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u32]) -> Result<(), BatchError> {
        self.step
            .set_persistent_user_data(&("größer 漢字 😀".to_owned(), numbers.to_vec()))
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> String {
        "größer 漢字 😀".into()
    }
}

#[derive(BatchArtifact)]
struct Prepare;

#[batchlet("Prepare")]
impl Prepare {
    #[process]
    fn process(&self) -> String {
        "COMPLETED".into()
    }
    #[cancel]
    fn cancel(&self) {}
}

#[derive(BatchArtifact)]
struct Load {
    #[batch_property(name = "load")]
    load: Option<String>,
    #[batch_context]
    step: StepContext,
}

#[batchlet("Load")]
impl Load {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        // The number of its runs so far.
        let before: Option<(String, u32)> = self.step.persistent_user_data()?;
        let times = before.map_or(0, |(_, times)| times) + 1;
        let kept = ("größer 漢字 😀".to_owned(), times);
        self.step.set_persistent_user_data(&kept)?;
        match self.load.as_deref() {
            Some("fail") => Err(BatchError::msg(message())),
            _ => Ok("COMPLETED".into()),
        }
    }
    #[cancel]
    fn cancel(&self) {}
}

/// Stores data of several types.
#[derive(BatchArtifact)]
struct Keep {
    #[batch_context]
    job: JobContext,
}

#[batchlet("Keep")]
impl Keep {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        self.job.set_persistent_data("text", "größer 漢字 😀")?;
        self.job.set_persistent_data("long", &5_i64)?;
        self.job.set_persistent_data("int", &7_i32)?;
        self.job.set_persistent_data("double", &0.5)?;
        self.job.set_persistent_data("flag", &true)?;
        self.job.set_persistent_data("nothing", &None::<String>)?;
        self.job.set_persistent_data("list", &("a", 2_i64, vec![0.5]))?;
        let map = BTreeMap::from([("größe", Some(1_i64)), ("none", None)]);
        self.job.set_persistent_data("map", &map)?;
        self.job.set_persistent_data("much", &message())?;
        Ok("COMPLETED".into())
    }
    #[cancel]
    fn cancel(&self) {}
}

/// The names of the waiting jobs.
static WAITING: (Mutex<Vec<String>>, Condvar) = (Mutex::new(Vec::new()), Condvar::new());

/// Returns when the job of this name waits, for the time after the last call.
pub(super) fn until_waiting(name: &str) {
    let waiting = WAITING.0.lock().unwrap();
    let is_none = |waiting: &mut Vec<String>| !waiting.iter().any(|one| one == name);
    let (mut waiting, limit) = WAITING
        .1
        .wait_timeout_while(waiting, Duration::from_secs(60), is_none)
        .unwrap();
    assert!(!limit.timed_out(), "{name} does not wait");
    waiting.retain(|one| one != name);
}

#[derive(BatchArtifact)]
struct Patient {
    #[batch_property(name = "name")]
    name: String,
    cancelled: Mutex<bool>,
    notified: Condvar,
}

#[batchlet("Patient")]
impl Patient {
    #[process]
    fn process(&self) -> String {
        WAITING.0.lock().unwrap().push(self.name.clone());
        WAITING.1.notify_all();
        let cancelled = self.cancelled.lock().unwrap();
        drop(
            self.notified
                .wait_while(cancelled, |cancelled| !*cancelled)
                .unwrap(),
        );
        "WAITED".into()
    }
    #[cancel]
    fn cancel(&self) {
        *self.cancelled.lock().unwrap() = true;
        self.notified.notify_all();
    }
}
