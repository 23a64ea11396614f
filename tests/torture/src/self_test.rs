//! Shows that each checker notices a fault of its kind.

use std::fs::File;

use batch_runtime::repository::RepositoryLayout;
use batch_tests::database::Database;

use crate::case::{Batchlet, Case, Chunk, Element, Fault, FaultKind, FaultTime};
use crate::plant::Plant;
use crate::run::{self, Tally};
use crate::violation::{Checked, Invariant};
use crate::world::{Databases, World};
use crate::{faults, invariants};

/// A planted fault, and the checkers; one of them has to notice it.
struct Planted {
    plant: Plant,
    /// The faults of the first launches, each at the same call of an artifact.
    faults: &'static [FaultKind],
    fails: bool,
    notices: &'static [Invariant],
}

/// Whether the first execution fails as planned.
const FAILS: bool = true;
const COMPLETES: bool = false;

const fn planted(
    plant: Plant,
    faults: &'static [FaultKind],
    fails: bool,
    notices: &'static [Invariant],
) -> Planted {
    Planted {
        plant,
        faults,
        fails,
        notices,
    }
}

/// A statement that changes rows of a complete instance.
const fn row(statement: &'static str, notices: &'static [Invariant]) -> Planted {
    planted(Plant::Row(statement), &[], COMPLETES, notices)
}

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

/// Ends the running execution, as a program would that ignores leases.
macro_rules! ends_as {
    ($status:literal) => {
        concat!(
            "UPDATE BATCH_JOB_EXECUTION SET STATUS = '",
            $status,
            "', END_TIME = START_TIME, VERSION = VERSION + 1; \
             DELETE FROM BATCH_JOB_INSTANCE_LEASE"
        )
    };
}

const PLANTED: &[Planted] = &[
    planted(Plant::LostRow, &[], FAILS, &[Invariant::I3]),
    planted(Plant::DoubledRow, &[], FAILS, &[Invariant::I3]),
    planted(Plant::LateCheckpoint, &[], FAILS, &[Invariant::I1]),
    planted(Plant::NotClosed, &[], FAILS, &[Invariant::I12]),
    planted(Plant::Hang, &[], FAILS, &[Invariant::I14]),
    planted(Plant::OtherCause, &[], FAILS, &[Invariant::I15]),
    planted(
        Plant::OutsideOfTransaction,
        &[FaultKind::Kill; 3],
        COMPLETES,
        &[Invariant::I1, Invariant::I3],
    ),
    planted(
        Plant::Beside("UPDATE BATCH_JOB_INSTANCE_LEASE SET OWNER = 'planted', FENCE = FENCE + 1"),
        &[FaultKind::Stop],
        COMPLETES,
        &[Invariant::I10],
    ),
    planted(
        Plant::Beside(ends_as!("FAILED")),
        &[FaultKind::Restart],
        COMPLETES,
        &[Invariant::I8],
    ),
    planted(
        Plant::Beside(ends_as!("FAILED")),
        &[FaultKind::Clock(3_600)],
        COMPLETES,
        &[Invariant::I8],
    ),
    planted(
        Plant::Beside(ends_as!("FAILED")),
        &[FaultKind::Freeze],
        COMPLETES,
        &[Invariant::I8],
    ),
    planted(
        Plant::Beside(ends_as!("COMPLETED")),
        &[FaultKind::Purge],
        COMPLETES,
        &[Invariant::I8],
    ),
    planted(
        Plant::Undamaged,
        &[FaultKind::DamagedContext; 2],
        FAILS,
        &[Invariant::I9],
    ),
    planted(
        Plant::Undamaged,
        &[FaultKind::ReadOnly; 2],
        FAILS,
        &[Invariant::I14],
    ),
    planted(
        Plant::Script(r#""$0" "$@"; exit 0"#),
        &[],
        FAILS,
        &[Invariant::I14],
    ),
    planted(
        Plant::Script(r#""$0" "$@"; exit 3"#),
        &[],
        FAILS,
        &[Invariant::I14],
    ),
    planted(
        Plant::Script(r#""$0" "$@" || exit 9"#),
        &[FaultKind::Recover],
        FAILS,
        &[Invariant::I15],
    ),
    planted(
        Plant::Script(r#"case "$*" in *recover*) exit 9; esac; exec "$0" "$@""#),
        &[FaultKind::Recover],
        FAILS,
        &[Invariant::I15],
    ),
    planted(
        Plant::Script(r#""$0" "$@"; exit 0"#),
        &[],
        COMPLETES,
        &[Invariant::I8],
    ),
    planted(Plant::Locked, &[], COMPLETES, &[Invariant::I13]),
    planted(Plant::Session, &[], COMPLETES, &[Invariant::I13]),
    row("UPDATE written SET undone = 1 WHERE n = 2", &[Invariant::I1]),
    row("DELETE FROM ran", &[Invariant::I1]),
    row(
        with_step!("other", "NULL", "STARTED", commits 0, read_skips 0;
            "UPDATE BATCH_STEP_EXECUTION SET READ_COUNT = 1, VERSION = 2 WHERE STEP_EXECUTION_ID = 9999"),
        &[Invariant::I2],
    ),
    row(
        with_step!("load", "END_TIME", "FAILED", commits 7, read_skips 0; ""),
        &[Invariant::I4],
    ),
    row(
        with_step!("other", "NULL", "STARTED", commits 0, read_skips 0;
            "UPDATE BATCH_STEP_EXECUTION SET VERSION = 3 WHERE STEP_EXECUTION_ID = 9999"),
        &[Invariant::I5],
    ),
    row(
        "UPDATE BATCH_JOB_EXECUTION SET STATUS = 'FAILED', VERSION = VERSION + 1",
        &[Invariant::I6],
    ),
    row(
        with_step!("other", "NULL", "FAILED", commits 0, read_skips 0; ""),
        &[Invariant::I7],
    ),
    row(
        with_step!("other", "NULL", "STARTED", commits 0, read_skips 0; ""),
        &[Invariant::I7],
    ),
    row(
        "INSERT INTO BATCH_JOB_EXECUTION (JOB_EXECUTION_ID, VERSION, JOB_INSTANCE_ID, CREATE_TIME, STATUS) \
         SELECT 9998, 0, JOB_INSTANCE_ID, CREATE_TIME, 'STARTED' FROM BATCH_JOB_EXECUTION UNION ALL \
         SELECT 9999, 0, JOB_INSTANCE_ID, CREATE_TIME, 'STARTED' FROM BATCH_JOB_EXECUTION",
        &[Invariant::I8],
    ),
    row(
        with_step!("other", "NULL", "STARTED", commits 3, read_skips 0;
            "UPDATE BATCH_STEP_EXECUTION SET COMMIT_COUNT = 2, VERSION = 2 WHERE STEP_EXECUTION_ID = 9999"),
        &[Invariant::I9],
    ),
    row(
        "UPDATE BATCH_JOB_INSTANCE_LEASE SET FENCE = FENCE - 1",
        &[Invariant::I10],
    ),
    row(
        with_step!("load", "END_TIME", "FAILED", commits 0, read_skips 1; ""),
        &[Invariant::I11],
    ),
];

/// The first call of an artifact that fails; the next ones are between two checkpoints.
const FIRST_CALL: u32 = 11;

/// A chunk step and a batchlet, with the faults.
fn case(planted: &Planted) -> Case {
    let chunk = Chunk {
        id: "load".to_owned(),
        items: 20,
        interval: 4,
        chunk_size: 4,
        processors: 1,
        filter: 7,
        fails_at: planted.fails.then_some(10),
        ..Chunk::default()
    };
    let task = Batchlet {
        id: "task".to_owned(),
        parts: 0,
        fails: false,
    };
    let fault = |(at, kind): (u32, &FaultKind)| Fault {
        kind: *kind,
        time: FaultTime::Call(FIRST_CALL + at),
        killed_after: None,
    };
    Case {
        seed: 0,
        layout: RepositoryLayout::default(),
        elements: vec![Element::Chunk(chunk), Element::Batchlet(task)],
        faults: (0..).zip(planted.faults).map(fault).collect(),
    }
}

/// Returns whether the database can have the planted fault.
fn is_possible(database: Database, planted: &Planted) -> bool {
    let is_sqlite = database == Database::Sqlite;
    let freezes = planted.faults.contains(&FaultKind::Freeze);
    match planted.plant {
        Plant::Locked => is_sqlite,
        Plant::Session => !is_sqlite,
        // On a server a frozen process may be replaced.
        _ if freezes => is_sqlite,
        _ => planted
            .faults
            .iter()
            .all(|kind| faults::is_possible(database, *kind)),
    }
}

/// Runs a case with each planted fault. Returns those that no checker, or the wrong one, has noticed.
pub(crate) fn run(databases: &Databases) -> Vec<String> {
    let mut missed = Vec::new();
    let mut noticed = Vec::new();
    for planted in PLANTED
        .iter()
        .filter(|planted| is_possible(databases.kind, planted))
    {
        let what = format!("{:?} {:?}", planted.plant, planted.faults);
        match run::case(
            databases,
            &case(planted),
            Some(planted.plant),
            &mut Tally::default(),
        ) {
            Err(violation) if planted.notices.contains(&violation.invariant) => {
                println!("{:?} notices {what}", violation.invariant);
                noticed.push(violation.invariant);
            }
            Err(violation) => missed.push(format!("{what} was taken for {violation}")),
            Ok(()) => missed.push(format!("{what} was not noticed")),
        }
    }
    let untested = Invariant::ALL.into_iter().filter(|one| !noticed.contains(one));
    missed.extend(untested.map(|one| format!("no planted fault breaks {one:?}")));
    missed
}

/// Changes a row of a complete instance, or keeps a lock or session.
pub(crate) fn plant_in_repository(world: &World<'_>, plant: Plant) -> Checked {
    match plant {
        Plant::Row(statement) => match world.outside().execute(statement) {
            Ok(()) => Ok(()),
            Err(error) => {
                invariants::rejection(&error.to_string()).map_or_else(|| panic!("{statement}: {error}"), Err)
            }
        },
        Plant::Session => {
            let mut session = world.outside();
            if world.databases.kind == Database::Postgres {
                session.execute("SET application_name = 'planted'").unwrap();
            }
            std::mem::forget(session);
            Ok(())
        }
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
