//! Shows that each checker notices a fault of its kind.

use std::fs::File;

use batch_tests::database::Database;

use crate::case::{Case, Chunk, Element, Fault, FaultKind, FaultTime};
use crate::invariants;
use crate::plant::Plant;
use crate::run::{self, Tally};
use crate::violation::{Checked, Invariant};
use crate::world::{Databases, World};

/// A planted fault, and the checkers of which one has to notice it.
type Planted = (Plant, &'static [Invariant]);

/// Returns statements: the insert of a step execution, and what follows.
macro_rules! with_step {
    ($name:literal, $ended:literal, $status:literal, commits $commits:literal, read_skips $skips:literal; $then:literal) => {
        concat!(
            "INSERT INTO BATCH_STEP_EXECUTION (STEP_EXECUTION_ID, VERSION, STEP_NAME, JOB_EXECUTION_ID, START_TIME, END_TIME, STATUS, \
             COMMIT_COUNT, READ_COUNT, FILTER_COUNT, WRITE_COUNT, READ_SKIP_COUNT, WRITE_SKIP_COUNT, PROCESS_SKIP_COUNT, ROLLBACK_COUNT) \
             SELECT 9999, 1, '", $name, "', JOB_EXECUTION_ID, START_TIME, ", $ended, ", '", $status, "', ", $commits,
            ", 0, 0, 0, ", $skips, ", 0, 0, 0 FROM BATCH_JOB_EXECUTION;", $then
        )
    };
}

const PLANTED: [Planted; 18] = [
    (Plant::OutsideOfTransaction, &[Invariant::I1, Invariant::I3]),
    (Plant::LostRow, &[Invariant::I3]),
    (Plant::DoubledRow, &[Invariant::I3]),
    (Plant::LateCheckpoint, &[Invariant::I1]),
    (Plant::NotClosed, &[Invariant::I12]),
    (Plant::Hang, &[Invariant::I14]),
    (Plant::OtherCause, &[Invariant::I15]),
    (Plant::Locked, &[Invariant::I13]),
    (
        Plant::Row("UPDATE written SET undone = 1 WHERE n = 2"),
        &[Invariant::I1],
    ),
    (
        Plant::Row(with_step!("other", "NULL", "STARTED", commits 0, read_skips 0;
            "UPDATE BATCH_STEP_EXECUTION SET READ_COUNT = 1, VERSION = 2 WHERE STEP_EXECUTION_ID = 9999")),
        &[Invariant::I2],
    ),
    (
        Plant::Row(with_step!("load", "END_TIME", "FAILED", commits 7, read_skips 0; "")),
        &[Invariant::I4],
    ),
    (
        Plant::Row(with_step!("other", "NULL", "STARTED", commits 0, read_skips 0;
            "UPDATE BATCH_STEP_EXECUTION SET VERSION = 3 WHERE STEP_EXECUTION_ID = 9999")),
        &[Invariant::I5],
    ),
    (
        Plant::Row("UPDATE BATCH_JOB_EXECUTION SET STATUS = 'FAILED', VERSION = VERSION + 1"),
        &[Invariant::I6],
    ),
    (
        Plant::Row(with_step!("other", "NULL", "FAILED", commits 0, read_skips 0; "")),
        &[Invariant::I7],
    ),
    (
        Plant::Row(
            "INSERT INTO BATCH_JOB_EXECUTION (JOB_EXECUTION_ID, VERSION, JOB_INSTANCE_ID, CREATE_TIME, STATUS) \
             SELECT 9998, 0, JOB_INSTANCE_ID, CREATE_TIME, 'STARTED' FROM BATCH_JOB_EXECUTION UNION ALL \
             SELECT 9999, 0, JOB_INSTANCE_ID, CREATE_TIME, 'STARTED' FROM BATCH_JOB_EXECUTION",
        ),
        &[Invariant::I8],
    ),
    (
        Plant::Row(with_step!("other", "NULL", "STARTED", commits 3, read_skips 0;
            "UPDATE BATCH_STEP_EXECUTION SET COMMIT_COUNT = 2, VERSION = 2 WHERE STEP_EXECUTION_ID = 9999")),
        &[Invariant::I9],
    ),
    (
        Plant::Row("UPDATE BATCH_JOB_INSTANCE_LEASE SET FENCE = FENCE - 1"),
        &[Invariant::I10],
    ),
    (
        Plant::Row(with_step!("load", "END_TIME", "FAILED", commits 0, read_skips 1; "")),
        &[Invariant::I11],
    ),
];

/// A step that fails once, as planned, and is killed once.
fn case(plant: Plant) -> Case {
    let is_row = matches!(plant, Plant::Row(_) | Plant::Locked);
    let chunk = Chunk {
        id: "load".to_owned(),
        items: 20,
        interval: 4,
        chunk_size: 4,
        processors: 1,
        filter: 7,
        fails_at: (!is_row).then_some(10),
        ..Chunk::default()
    };
    // Before and after the calls of the writer and its checkpoints.
    let kills = [11, 12, 13].map(|call| Fault {
        kind: FaultKind::Kill,
        time: FaultTime::Call(call),
    });
    Case {
        seed: 0,
        elements: vec![Element::Chunk(chunk)],
        faults: match plant {
            Plant::OutsideOfTransaction => kills.to_vec(),
            _ => Vec::new(),
        },
    }
}

/// Runs a case with each planted fault. Returns those that no checker, or the wrong one, has noticed.
pub(crate) fn run(databases: &Databases) -> Vec<String> {
    let mut missed = Vec::new();
    let mut noticed = Vec::new();
    for (plant, expected) in PLANTED {
        if plant == Plant::Locked && databases.kind != Database::Sqlite {
            continue;
        }
        match run::case(databases, &case(plant), Some(plant), &mut Tally::default()) {
            Err(violation) if expected.contains(&violation.invariant) => {
                println!("{:?} notices {plant:?}", violation.invariant);
                noticed.push(violation.invariant);
            }
            Err(violation) => missed.push(format!("{plant:?} was taken for {violation}")),
            Ok(()) => missed.push(format!("{plant:?} was not noticed")),
        }
    }
    let is_possible = |one: &Invariant| databases.kind == Database::Sqlite || *one != Invariant::I13;
    let all = Invariant::ALL.into_iter().filter(is_possible);
    let untested = all.filter(|one| !noticed.contains(one));
    missed.extend(untested.map(|one| format!("no planted fault breaks {one:?}")));
    missed
}

/// Changes a row of a complete instance, or keeps a lock.
pub(crate) fn plant_in_repository(world: &World<'_>, plant: Plant) -> Checked {
    match plant {
        Plant::Row(statement) => match world.outside().execute(statement) {
            Ok(()) => Ok(()),
            Err(error) => {
                invariants::rejection(&error.to_string()).map_or_else(|| panic!("{statement}: {error}"), Err)
            }
        },
        Plant::Locked => {
            let owners = world.path().join("batch.db-owners");
            std::fs::create_dir_all(&owners).unwrap();
            let file = File::create(owners.join("planted.lock")).unwrap();
            file.lock().unwrap();
            // Until the process ends.
            std::mem::forget(file);
            Ok(())
        }
        _ => Ok(()),
    }
}
