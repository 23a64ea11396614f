//! Functions as artifacts without state: their injected parameters are fields, the others the method's.
//!
//! Spec: ART-15
#![deny(warnings)]

use std::fmt;
use std::path::Path;

use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use batch_tests::stage::{Stage, say};

use super::registered;

#[derive(Debug, BatchException)]
struct Odd(u64);

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is odd", self.0)
    }
}

impl std::error::Error for Odd {}

/// Doubles even numbers.
#[item_processor("Doubled")]
fn doubled(number: &u64, #[batch_property(value = "2")] factor: u64) -> Result<Option<u64>, Odd> {
    match number % 2 {
        0 => Ok(Some(number * factor)),
        _ => Err(Odd(*number)),
    }
}

#[item_writer]
fn written(numbers: &[u64], #[batch_property] log: &str, _tx: &mut ChunkTransaction) {
    say(log, format!("{numbers:?}"));
}

#[skip_policy]
pub(super) fn skips_odd_numbers(failed: &batch_runtime::FailedItem<'_>) -> bool {
    failed.item::<u64>().is_some()
}

#[decider("Enough")]
fn enough(
    #[batch_property(name = "at.least", value = "1")] least: i64,
    #[batch_context] step: &StepContext,
) -> &'static str {
    if step.counters().skips() >= least {
        "MANY"
    } else {
        "FEW"
    }
}

/// What is nested in a function.
#[derive(BatchArtifact)]
struct Ending {
    #[batch_property(value = "!")]
    ending: String,
}

#[batchlet("Greeting")]
fn greet(
    #[batch_property] log: String,
    #[batch_property(value = "Hello")] greeting: &str,
    #[batch_property(value = "a,b")] names: &[String],
    #[batch_property(value = "/tmp/x")] file: &Path,
    #[batch_artifact] ending: &Ending,
    #[batch_context] job: &JobContext,
) -> Result<String, BatchError> {
    let names = names.join(" and ");
    say(
        &log,
        format!(
            "{greeting} {names} {} {}{}",
            file.display(),
            job.name(),
            ending.ending
        ),
    );
    Ok("GREETED".into())
}

#[partition_algorithm]
fn months(#[batch_property(value = "12")] count: u32) -> PartitionPlan {
    PartitionPlan::with_properties((1..=count).map(|month| [("month", month.to_string())]))
}

#[checkpoint_algorithm]
fn always() -> bool {
    true
}

#[sub_job_collector]
fn rows(#[batch_context] step: &StepContext) -> Option<i64> {
    Some(step.counters().reads)
}

#[derive(BatchArtifact)]
struct OneToFive(u64);

#[item_reader]
impl OneToFive {
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        self.0 += 1;
        (self.0 < 6).then_some(self.0)
    }
}

const JOB: &str = r#"<job id="job">
  <step id="double" next="enough">
    <properties><property name="batch.skip.policy" value="skips_odd_numbers"/></properties>
    <chunk reader="OneToFive" processor="Doubled" writer="written">
      <properties><property name="factor" value="3" target="processor"/></properties>
    </chunk>
  </step>
  <decision id="enough" ref="Enough">
    <properties><property name="at.least" value="3"/></properties>
    <next on="MANY" to="greet"/>
    <fail on="*"/>
  </decision>
  <step id="greet"><batchlet ref="Greeting"/></step>
</job>"#;

#[test]
fn functions_run_with_what_is_injected() {
    let names: Vec<&str> = registered(module_path!()).iter().map(|(_, name)| *name).collect();
    assert_eq!(
        names,
        [
            "Doubled",
            "written",
            "skips_odd_numbers",
            "Enough",
            "Greeting",
            "months",
            "always",
            "rows",
            "OneToFive"
        ]
    );
    let stage = Stage::new(JOB);
    let execution = stage.start("job", ());
    let ended = stage.operator().wait(execution).unwrap();
    assert_eq!(ended.status, BatchStatus::Completed, "{}", stage.tree(execution));
    assert_eq!(stage.log(), ["[6, 12]", "Hello a and b /tmp/x job!"]);
    // Elsewhere they are functions.
    assert_eq!(doubled(&4, 1).unwrap(), Some(4));
}

#[cfg(any())]
#[batchlet]
fn left_out(_: Missing) {}
