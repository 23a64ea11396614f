//! Runs a case: launches with faults, then launches until the instance is complete, with all checks.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::case::{Case, FaultKind};
use crate::faults;
use crate::invariants;
use crate::plant::Plant;
use crate::violation::{Checked, Invariant, Violation};
use crate::world::{Databases, World};

/// The counts of a run of cases.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) cases: u64,
    pub(crate) launches: u64,
    /// The faults that injected, by kind.
    pub(crate) faults: BTreeMap<String, u64>,
}

impl Tally {
    fn count(&mut self, kind: FaultKind) {
        *self.faults.entry(kind.name()).or_default() += 1;
    }
}

/// The time limit for an instance to complete after the last fault.
const LIVENESS: Duration = Duration::from_secs(60);

/// Runs a case. A panic of the suite is a violation, too: the case is not lost.
pub(crate) fn case(databases: &Databases, case: &Case, plant: Option<Plant>, tally: &mut Tally) -> Checked {
    let world = World::new(databases, case, plant);
    let run = AssertUnwindSafe(|| in_world(&world, case, plant, tally));
    let end = catch_unwind(run).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Violation::new(Invariant::I14, text.unwrap_or_default()))
    });
    world.drop_database();
    end
}

fn in_world(world: &World<'_>, case: &Case, plant: Option<Plant>, tally: &mut Tally) -> Checked {
    tally.cases += 1;
    for fault in &case.faults {
        if world.is_complete() {
            break;
        }
        let disturbed = faults::launch(world, case, fault)?;
        tally.launches += disturbed.ended.len() as u64;
        let kind = disturbed.injected.then_some(fault.kind);
        kind.into_iter().for_each(|kind| tally.count(kind));
        invariants::after_launch(world, &disturbed.ended, kind, usize::from(disturbed.killed))?;
        invariants::after_commands(&disturbed.commands)?;
        invariants::rows_so_far(world, case)?;
    }
    until_complete(world, case, tally)?;
    if let Some(plant) = plant {
        crate::self_test::plant_in_repository(world, plant)?;
    }
    let again = world.launch()?;
    if again.code != Some(10) {
        let what = format!(
            "a complete instance was launched again: {:?} {}",
            again.code, again.output
        );
        return Err(Violation::new(Invariant::I8, what));
    }
    invariants::after_launch(world, &[again], None, 0)?;
    invariants::complete(world, case)
}

/// Launches until the instance is complete. Each launch may only fail as planned.
fn until_complete(world: &World<'_>, case: &Case, tally: &mut Tally) -> Checked {
    let begin = Instant::now();
    let mut failures = 0;
    while !world.is_complete() {
        let ended = match world.newest().filter(|_| failures % 2 == 1) {
            Some(failed) => world.operate(&["restart", &failed])?,
            None => world.launch()?,
        };
        tally.launches += 1;
        match ended.code {
            Some(1) => {
                failures += 1;
                invariants::planned_cause(world, &ended)?;
            }
            Some(0) => {}
            // The lease of a dead owner has not expired.
            Some(11) if ended.is_rejected_as_running() => std::thread::sleep(Duration::from_millis(50)),
            code => {
                let what = format!("an undisturbed launch ended with {code:?}: {}", ended.output);
                return Err(Violation::new(Invariant::I14, what));
            }
        }
        if failures > case.planned_failures() || begin.elapsed() > LIVENESS {
            let what = format!("not complete after {failures} failures: {}", ended.output);
            return Err(Violation::new(Invariant::I14, what));
        }
        invariants::after_launch(world, &[ended], None, 0)?;
    }
    Ok(())
}
