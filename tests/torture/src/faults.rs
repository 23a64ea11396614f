//! The faults, as they happen to a launch.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use batch_tests::database::Database;

use crate::artifacts::GO;
use crate::case::{Case, Fault, FaultKind, Moment};
use crate::violation::{Checked, Invariant, Violation};
use crate::world::{Ended, Extras, Process, World};

/// The file with the offset of the wall clock.
const CLOCK: &str = "clock";
/// Where Debian's package `faketime` has its library.
const FAKETIME: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
];

/// The end of a disturbed launch.
pub(crate) struct Disturbed {
    /// Whether the fault has happened.
    pub(crate) struck: bool,
    /// The launches, first the disturbed one.
    pub(crate) ended: Vec<Ended>,
}

/// Launches the job, and lets the fault happen.
pub(crate) fn launch(world: &World<'_>, case: &Case, fault: &Fault) -> Checked<Disturbed> {
    match fault.kind {
        kind if !is_possible(world, kind) => Ok(Disturbed {
            struck: false,
            ended: vec![world.launch()?],
        }),
        FaultKind::NoContext | FaultKind::EmptyContext | FaultKind::DamagedContext => {
            with_context(world, case, fault.kind)
        }
        FaultKind::ReadOnly => read_only(world),
        FaultKind::Race(processes) => race(world, processes),
        _ => while_it_runs(world, fault),
    }
}

/// Returns whether the machine and the database can have the fault.
pub(crate) fn is_possible(world: &World<'_>, kind: FaultKind) -> bool {
    let is_sqlite = world.databases.kind == Database::Sqlite;
    match kind {
        FaultKind::Clock(_) => faketime().is_some(),
        FaultKind::Cut | FaultKind::ServerCrash => !is_sqlite,
        FaultKind::FullDisk | FaultKind::NoLocks | FaultKind::ReadOnly => is_sqlite,
        _ => true,
    }
}

fn faketime() -> Option<&'static str> {
    FAKETIME.into_iter().find(|library| Path::new(library).exists())
}

fn while_it_runs(world: &World<'_>, fault: &Fault) -> Checked<Disturbed> {
    let mut extras = Extras::default();
    if let Moment::Call(call) = fault.moment {
        extras.hold = Some(call);
    }
    match fault.kind {
        FaultKind::Clock(_) => extras.variables = clock_variables(world, 0),
        // A signal would end it; an error is what a full disk gives.
        FaultKind::FullDisk => extras.wrapper = vec!["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""],
        _ => {}
    }
    let mut process = world.start(&["launch", "job"], &extras);
    let is_there = match fault.moment {
        Moment::Call(_) => process.is_held(world),
        Moment::Micros(micros) => {
            thread::sleep(Duration::from_micros(micros));
            process.runs()
        }
    };
    if !is_there {
        return Ok(Disturbed {
            struck: false,
            ended: vec![process.ends(world)?],
        });
    }
    let others = happen(world, fault, &mut process);
    let _ = File::create(world.path().join(GO));
    let mut ended = vec![process.ends(world)?];
    ended.extend(others?);
    Ok(Disturbed { struck: true, ended })
}

/// Lets the fault happen to a process. Returns the ends of other launches.
fn happen(world: &World<'_>, fault: &Fault, process: &mut Process) -> Checked<Vec<Ended>> {
    let is_held = matches!(fault.moment, Moment::Call(_));
    let refused = |other: Option<Ended>| {
        let others = other.into_iter();
        match is_held {
            true => others.map(|ended| must_be_refused(fault.kind, ended)).collect(),
            false => Ok(others.collect()),
        }
    };
    match fault.kind {
        FaultKind::Kill => process.signal("KILL"),
        FaultKind::Freeze => return frozen(world, process, is_held),
        FaultKind::Clock(seconds) => {
            let variables = clock_variables(world, seconds);
            let extras = Extras {
                variables,
                ..Extras::default()
            };
            return refused(
                world
                    .start_beside(&["launch", "job"], &extras)
                    .ends_beside(world)?,
            );
        }
        FaultKind::Cut => cut(world),
        FaultKind::ServerCrash => {
            if let Some(server) = &world.databases.server {
                server.borrow_mut().crash();
            }
        }
        FaultKind::FullDisk => {
            let limit = format!("prlimit --fsize=4096:4096 --pid {}", process.child.id());
            let _ = std::process::Command::new("sh").args(["-c", &limit]).status();
        }
        FaultKind::NoLocks => {
            let _ = fs::remove_dir_all(world.path().join("batch.db-owners"));
            return refused(
                world
                    .start_beside(&["launch", "job"], &Extras::default())
                    .ends_beside(world)?,
            );
        }
        FaultKind::Stop => {
            if let Some(execution) = world.newest() {
                let stop = world.start_beside(&["stop", &execution], &Extras::default());
                let _ = File::create(world.path().join(GO));
                stop.ends(world)?;
            }
        }
        FaultKind::Abandon | FaultKind::Restart => {
            let verb = if fault.kind == FaultKind::Abandon {
                "abandon"
            } else {
                "restart"
            };
            if let Some(execution) = world.newest() {
                let command = world.start_beside(&[verb, &execution], &Extras::default());
                return refused(command.ends_beside(world)?).map(|_| Vec::new());
            }
        }
        FaultKind::Purge => {
            // A process that is not held may complete before, and its instance would rightly be removed.
            let keep = if is_held { "0" } else { "1" };
            let purge = world.start_beside(&["purge", "--keep", keep], &Extras::default());
            purge.ends_beside(world)?;
        }
        FaultKind::Recover => {
            world
                .start_beside(&["recover"], &Extras::default())
                .ends_beside(world)?;
        }
        FaultKind::Race(_)
        | FaultKind::NoContext
        | FaultKind::EmptyContext
        | FaultKind::DamagedContext
        | FaultKind::ReadOnly => {}
    }
    Ok(Vec::new())
}

/// A live owner is never replaced, and nothing can be done to its execution.
fn must_be_refused(kind: FaultKind, ended: Ended) -> Checked<Ended> {
    match ended.code {
        Some(2) if ended.said.contains("is running") => Ok(ended),
        code => Err(Violation::new(
            Invariant::I8,
            format!(
                "{kind:?}: a command beside a running execution ended with {code:?}: {}",
                ended.said
            ),
        )),
    }
}

/// Suspends the process while others launch its job, until one has taken it over or it is clear that none will.
fn frozen(world: &World<'_>, process: &mut Process, is_owner: bool) -> Checked<Vec<Ended>> {
    process.signal("STOP");
    let begin = Instant::now();
    let mut others = Vec::new();
    let taken_over = loop {
        let ended = world
            .start_beside(&["launch", "job"], &Extras::default())
            .ends_beside(world);
        let ended = match ended {
            Ok(ended) => ended,
            Err(violation) => {
                process.signal("CONT");
                return Err(violation);
            }
        };
        let runs = ended
            .as_ref()
            .is_some_and(|ended| !(ended.code == Some(2) && ended.said.contains("is running")));
        others.extend(ended);
        if runs {
            break true;
        }
        if begin.elapsed() > Duration::from_secs(3) {
            break false;
        }
        thread::sleep(Duration::from_millis(50));
    };
    process.signal("CONT");
    match taken_over && is_owner && world.databases.kind == Database::Sqlite {
        // Its lock shows that the process lives.
        true => Err(Violation::new(
            Invariant::I8,
            format!("a frozen process of this host was replaced: {:?}", others.last()),
        )),
        false => Ok(others),
    }
}

fn clock_variables(world: &World<'_>, seconds: i64) -> Vec<(&'static str, String)> {
    let file = world.path().join(CLOCK);
    fs::write(&file, format!("{seconds:+}\n")).unwrap();
    vec![
        ("LD_PRELOAD", faketime().unwrap_or_default().to_owned()),
        ("FAKETIME_TIMESTAMP_FILE", file.display().to_string()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ]
}

/// Cuts all connections to the database of the case.
fn cut(world: &World<'_>) {
    let mut outside = world.outside();
    match world.databases.kind {
        Database::Sqlite => {}
        Database::Postgres => {
            let _ = outside.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()",
            );
        }
        Database::Mariadb => {
            let sessions = outside.rows(
                "SELECT CAST(ID AS CHAR(20)) AS text FROM information_schema.PROCESSLIST
                 WHERE DB = DATABASE() AND ID <> CONNECTION_ID()",
            );
            for session in sessions {
                // It may have ended by itself.
                let _ = outside.execute(&format!("KILL {session}"));
            }
        }
    }
}

/// Several processes launch the job at the same moment.
fn race(world: &World<'_>, processes: u32) -> Checked<Disturbed> {
    let started: Vec<Process> = (0..processes)
        .map(|_| world.start_beside(&["launch", "job"], &Extras::default()))
        .collect();
    let ended: Checked<Vec<Ended>> = started.into_iter().map(|process| process.ends(world)).collect();
    Ok(Disturbed {
        struck: true,
        ended: ended?,
    })
}

/// Launches while nothing in the folder can be written, by this user or, because root may write everything, by another.
fn read_only(world: &World<'_>) -> Checked<Disturbed> {
    let set = |mode: u32| fs::set_permissions(world.path(), fs::Permissions::from_mode(mode)).unwrap();
    let file = world.path().join("batch.db");
    let before = fs::metadata(&file).unwrap().permissions();
    let is_root = File::options().append(true).open("/proc/self/mem").is_ok()
        && fs::metadata("/proc/self").is_ok_and(|about| std::os::unix::fs::MetadataExt::uid(&about) == 0);
    let mut extras = Extras::default();
    set(0o555);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    if is_root {
        extras.wrapper = vec!["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    }
    let ended = world.start_beside(&["launch", "job"], &extras).ends(world);
    set(0o700);
    fs::set_permissions(&file, before).unwrap();
    let ended = ended?;
    match ended.code {
        Some(0) => Err(Violation::new(Invariant::I14, "a job completed without writing")),
        None => Err(Violation::new(Invariant::I14, format!("died: {}", ended.said))),
        Some(_) => Ok(Disturbed {
            struck: true,
            ended: vec![ended],
        }),
    }
}

/// An interrupted step, by the id of its newest execution, with its context.
struct Interrupted {
    id: String,
    context: String,
}

/// Finds a step that has to resume at its checkpoint in the next launch.
fn interrupted(world: &World<'_>, case: &Case) -> Option<Interrupted> {
    let rows = world.outside().rows(
        "SELECT CONCAT(CAST(S.STEP_EXECUTION_ID AS CHAR(20)), ' ', S.STEP_NAME) AS text FROM BATCH_STEP_EXECUTION S
         WHERE S.STATUS <> 'COMPLETED' AND S.COMMIT_COUNT > 0 AND S.STEP_EXECUTION_ID =
            (SELECT MAX(T.STEP_EXECUTION_ID) FROM BATCH_STEP_EXECUTION T WHERE T.STEP_NAME = S.STEP_NAME)
         ORDER BY S.STEP_EXECUTION_ID DESC",
    );
    let undone = undone_steps(case);
    let id = rows.iter().find_map(|row| {
        let mut words = row.split_whitespace();
        let (id, name) = (words.next()?, words.next()?);
        let resumes = !undone
            .iter()
            .any(|id| name.split(['/', ':']).any(|part| part == *id));
        resumes.then(|| id.to_owned())
    })?;
    let context = world.outside().rows(&format!(
        "SELECT SHORT_CONTEXT AS text FROM BATCH_STEP_EXECUTION_CONTEXT
         WHERE STEP_EXECUTION_ID = {id} AND SERIALIZED_CONTEXT IS NULL"
    ));
    Some(Interrupted {
        id,
        context: context.into_iter().next()?,
    })
}

/// Returns the elements that start anew after an interruption.
fn undone_steps(case: &Case) -> Vec<&str> {
    use crate::case::Element;
    fn of<'c>(elements: &'c [Element], found: &mut Vec<&'c str>) {
        for element in elements {
            match element {
                Element::Chunk(chunk) if chunk.logical_tx => found.push(&chunk.id),
                Element::Flow {
                    id, logical_tx: true, ..
                } => found.push(id),
                Element::Flow { elements, .. } => of(elements, found),
                Element::Split { flows, .. } => flows.iter().for_each(|flow| of(flow, found)),
                Element::Chunk(_) | Element::Batchlet(_) | Element::Decision { .. } => {}
            }
        }
    }
    let mut found = Vec::new();
    of(&case.elements, &mut found);
    found
}

/// Launches with a damaged context, which must not count as "from the beginning", and restores it.
fn with_context(world: &World<'_>, case: &Case, kind: FaultKind) -> Checked<Disturbed> {
    let Some(Interrupted { id, context }) = interrupted(world, case) else {
        return Ok(Disturbed {
            struck: false,
            ended: vec![world.launch()?],
        });
    };
    let set = |text: &str| {
        format!(
            "UPDATE BATCH_STEP_EXECUTION_CONTEXT SET SHORT_CONTEXT = '{}' WHERE STEP_EXECUTION_ID = {id}",
            text.replace('\'', "''").replace(
                '\\',
                match world.databases.kind {
                    Database::Mariadb => "\\\\",
                    _ => "\\",
                }
            )
        )
    };
    let damage = match kind {
        FaultKind::NoContext => {
            format!("DELETE FROM BATCH_STEP_EXECUTION_CONTEXT WHERE STEP_EXECUTION_ID = {id}")
        }
        FaultKind::EmptyContext => set("{}"),
        _ => set("garbage {"),
    };
    world.outside().execute(&damage).unwrap();
    let ended = world.launch()?;
    let restore = match kind {
        FaultKind::NoContext => format!(
            "INSERT INTO BATCH_STEP_EXECUTION_CONTEXT (STEP_EXECUTION_ID, SHORT_CONTEXT) VALUES ({id}, '')"
        ),
        _ => "SELECT 1".to_owned(),
    };
    let mut outside = world.outside();
    if kind == FaultKind::NoContext {
        outside.execute(&restore).unwrap();
    }
    outside.execute(&set(&context)).unwrap();
    match ended.code {
        Some(0) => Err(Violation::new(
            Invariant::I9,
            format!(
                "{kind:?} of step execution {id}: the next launch completed: {}",
                ended.said
            ),
        )),
        _ => Ok(Disturbed {
            struck: true,
            ended: vec![ended],
        }),
    }
}
