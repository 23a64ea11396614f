//! The faults, as they happen to a launch.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use batch_tests::database::Database;

use crate::artifacts::GO;
use crate::case::{Case, Fault, FaultKind, FaultTime};
use crate::plant::Plant;
use crate::violation::{Checked, Invariant, Violation};
use crate::world::{Ended, Extras, LEASE, Process, World};

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
    pub(crate) injected: bool,
    /// Whether the disturbed launch was also killed.
    pub(crate) killed: bool,
    /// The launches, first the disturbed one.
    pub(crate) ended: Vec<Ended>,
    /// The commands beside them.
    pub(crate) commands: Vec<Ended>,
}

impl Disturbed {
    /// A launch that no fault has disturbed, because the machine, the database or the state of the job does not allow it.
    fn not(ended: Ended) -> Self {
        Self {
            injected: false,
            killed: false,
            ended: vec![ended],
            commands: Vec::new(),
        }
    }

    fn by(ended: Vec<Ended>) -> Self {
        Self {
            injected: true,
            killed: false,
            ended,
            commands: Vec::new(),
        }
    }
}

/// The processes beside a disturbed launch.
#[derive(Default)]
struct Beside {
    launches: Vec<Ended>,
    commands: Vec<Ended>,
    /// False if the fault has turned out to be none.
    injected: bool,
}

/// Launches the job, and lets the fault happen.
pub(crate) fn launch(world: &World<'_>, case: &Case, fault: &Fault) -> Checked<Disturbed> {
    until_lease_has_expired(world);
    match fault.kind {
        kind if !is_possible(world.databases.kind, kind) => Ok(Disturbed::not(world.launch()?)),
        FaultKind::NoContext | FaultKind::EmptyContext | FaultKind::DamagedContext => {
            with_context(world, case, fault.kind)
        }
        FaultKind::ReadOnly => read_only(world),
        FaultKind::Race(processes) => race(world, processes),
        _ => while_it_runs(world, fault),
    }
}

/// Waits for the lease of a dead owner, which nothing but time shows to be dead: before, no launch would get to its fault.
fn until_lease_has_expired(world: &World<'_>) {
    let open = "SELECT STATUS AS text FROM BATCH_JOB_EXECUTION WHERE END_TIME IS NULL";
    if world.databases.kind != Database::Sqlite && !world.outside().rows(open).is_empty() {
        thread::sleep(LEASE + Duration::from_millis(100));
    }
}

/// Returns whether the machine and the database can have the fault.
pub(crate) fn is_possible(database: Database, kind: FaultKind) -> bool {
    let is_sqlite = database == Database::Sqlite;
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
    if let FaultTime::Call(call) = fault.time {
        extras.hold = Some(call);
    }
    match fault.kind {
        FaultKind::Clock(_) => extras.variables = clock_variables(world, 0),
        // A signal would end it; an error is what a full disk gives.
        FaultKind::FullDisk => extras.wrapper = vec!["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""],
        _ => {}
    }
    let mut process = world.start(&["launch", "job"], &extras);
    let is_there = match fault.time {
        FaultTime::Call(_) => process.is_held(world),
        FaultTime::Micros(micros) => {
            thread::sleep(Duration::from_micros(micros));
            process.runs()
        }
    };
    if !is_there {
        return Ok(Disturbed::not(process.ends(world)?));
    }
    if let Some(Plant::Beside(statement)) = world.plant {
        world.outside().execute(statement).unwrap();
    }
    let beside = inject(world, fault, &mut process);
    let _ = File::create(world.path().join(GO));
    if let Some(micros) = fault.killed_after {
        thread::sleep(Duration::from_micros(micros));
        process.signal("KILL");
    }
    let ended = process.ends(world)?;
    let killed = fault.killed_after.is_some() && ended.code.is_none();
    let Beside {
        launches,
        commands,
        injected,
    } = beside?;
    // A signal may come too late.
    let injected = injected && (fault.kind != FaultKind::Kill || ended.code.is_none());
    let ended = std::iter::once(ended).chain(launches).collect();
    Ok(Disturbed {
        injected,
        killed,
        ended,
        commands,
    })
}

/// Lets the fault happen to a process.
fn inject(world: &World<'_>, fault: &Fault, process: &mut Process) -> Checked<Beside> {
    let is_held = matches!(fault.time, FaultTime::Call(_));
    match fault.kind {
        FaultKind::Kill => process.signal("KILL"),
        FaultKind::Freeze => return frozen(world, process, is_held),
        FaultKind::Clock(seconds) => {
            let variables = clock_variables(world, seconds);
            let extras = Extras {
                variables,
                ..Extras::default()
            };
            return launch_beside(world, fault, &extras);
        }
        FaultKind::NoLocks => {
            let _ = fs::remove_dir_all(world.path().join("batch.db-owners"));
            return launch_beside(world, fault, &Extras::default());
        }
        FaultKind::Cut => cut(world),
        FaultKind::ServerCrash => {
            if let Some(server) = &world.databases.server {
                server.borrow_mut().crash();
            }
        }
        FaultKind::FullDisk => {
            let limit = format!("prlimit --fsize=4096:4096 --pid {}", process.child.id());
            let limited = std::process::Command::new("sh").args(["-c", &limit]).status();
            return Ok(Beside {
                injected: limited.is_ok_and(|status| status.success()),
                ..Beside::default()
            });
        }
        _ => return operate_beside(world, fault, is_held),
    }
    Ok(Beside {
        injected: true,
        ..Beside::default()
    })
}

/// Launches the job in another process.
fn launch_beside(world: &World<'_>, fault: &Fault, extras: &Extras) -> Checked<Beside> {
    let other = world
        .start_beside(&["launch", "job"], extras)
        .ends_beside(world)?;
    let launches: Vec<Ended> = other.into_iter().collect();
    if matches!(fault.time, FaultTime::Call(_)) {
        launches
            .iter()
            .try_for_each(|ended| must_be_rejected(fault.kind, ended))?;
    }
    Ok(Beside {
        launches,
        injected: true,
        ..Beside::default()
    })
}

/// Runs a command of the operator in another process. Only a stop has an effect on a running execution.
fn operate_beside(world: &World<'_>, fault: &Fault, is_held: bool) -> Checked<Beside> {
    let Some(execution) = world.newest() else {
        return Ok(Beside::default());
    };
    let command: &[&str] = match fault.kind {
        FaultKind::Stop => &["stop", &execution],
        FaultKind::Abandon if is_held => &["abandon", &execution],
        FaultKind::Restart => &["restart", &execution],
        FaultKind::Purge => &["purge", "--keep", if is_held { "0" } else { "1" }],
        // An abandoned instance would never complete, so an execution that may have ended is not abandoned.
        _ => &["recover"],
    };
    let process = world.start_beside(command, &Extras::default());
    if fault.kind == FaultKind::Stop {
        let _ = File::create(world.path().join(GO));
    }
    let ended: Vec<Ended> = process.ends_beside(world)?.into_iter().collect();
    if is_held && matches!(fault.kind, FaultKind::Abandon | FaultKind::Restart) {
        ended
            .iter()
            .try_for_each(|ended| must_be_rejected(fault.kind, ended))?;
    }
    if fault.kind == FaultKind::Purge && world.newest().is_none() {
        let what = "the instance of a running execution was purged";
        return Err(Violation::new(Invariant::I8, what));
    }
    // A restart that is not rejected runs the job.
    let (launches, commands) = match fault.kind {
        FaultKind::Restart => (ended, Vec::new()),
        _ => (Vec::new(), ended),
    };
    Ok(Beside {
        launches,
        commands,
        injected: true,
    })
}

/// A live owner is never replaced, and its execution cannot be changed.
fn must_be_rejected(kind: FaultKind, ended: &Ended) -> Checked {
    match ended.is_rejected_as_running() {
        true => Ok(()),
        false => Err(Violation::new(
            Invariant::I8,
            format!(
                "{kind:?}: a command beside a running execution ended with {:?}: {}",
                ended.code, ended.output
            ),
        )),
    }
}

/// Suspends the process while others launch its job, until one has taken it over or it is clear that none will.
fn frozen(world: &World<'_>, process: &mut Process, is_owner: bool) -> Checked<Beside> {
    process.signal("STOP");
    let begin = Instant::now();
    let mut launches = Vec::new();
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
            .is_some_and(|ended| !ended.is_rejected_as_running());
        launches.extend(ended);
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
            format!(
                "a frozen process of this host was replaced: {:?}",
                launches.last()
            ),
        )),
        false => Ok(Beside {
            launches,
            injected: taken_over || world.databases.kind == Database::Sqlite,
            ..Beside::default()
        }),
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

/// Several processes launch the job, restart it, stop it, recover and purge at the same time.
fn race(world: &World<'_>, processes: u32) -> Checked<Disturbed> {
    let newest = world.newest();
    let start = |number| {
        let command: &[&str] = match (number % 6, &newest) {
            (1, Some(execution)) => &["restart", execution],
            (2, Some(execution)) => &["stop", execution],
            (4, Some(_)) => &["recover"],
            (5, Some(_)) => &["purge", "--keep", "1"],
            _ => &["launch", "job"],
        };
        let runs = matches!(command[0], "launch" | "restart");
        (runs, world.start_beside(command, &Extras::default()))
    };
    let started: Vec<(bool, Process)> = (0..processes).map(start).collect();
    let mut disturbed = Disturbed::by(Vec::new());
    for (runs, process) in started {
        let ended = process.ends(world)?;
        match runs {
            true => disturbed.ended.push(ended),
            false => disturbed.commands.push(ended),
        }
    }
    Ok(disturbed)
}

/// Launches while nothing in the folder can be written, by this user or, because root may write everything, by another.
fn read_only(world: &World<'_>) -> Checked<Disturbed> {
    let set = |mode: u32| fs::set_permissions(world.path(), fs::Permissions::from_mode(mode)).unwrap();
    let file = world.path().join("batch.db");
    let before = fs::metadata(&file).unwrap().permissions();
    let is_root = File::options().append(true).open("/proc/self/mem").is_ok()
        && fs::metadata("/proc/self").is_ok_and(|about| std::os::unix::fs::MetadataExt::uid(&about) == 0);
    let mut extras = Extras::default();
    let is_planted = world.plant == Some(Plant::Undamaged);
    if !is_planted {
        set(0o555);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    }
    if is_root && !is_planted {
        extras.wrapper = vec!["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    }
    let ended = world.start_beside(&["launch", "job"], &extras).ends(world);
    set(0o700);
    fs::set_permissions(&file, before).unwrap();
    let ended = ended?;
    match ended.code {
        Some(0) => Err(Violation::new(Invariant::I14, "a job completed without writing")),
        None => Err(Violation::new(Invariant::I14, format!("died: {}", ended.output))),
        // That user cannot run the program at all.
        Some(126 | 127) => Ok(Disturbed::not(world.launch()?)),
        Some(_) => Ok(Disturbed::by(vec![ended])),
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
    let id = rows.iter().find_map(|row| {
        let (id, name) = row.trim().split_once(' ')?;
        let step = name.trim().rsplit('/').next()?.split(':').next()?;
        // What may be undone starts from the beginning.
        (!case.is_undone(step)).then(|| id.to_owned())
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

/// Launches with a damaged context, which must not count as "from the beginning", and restores it.
fn with_context(world: &World<'_>, case: &Case, kind: FaultKind) -> Checked<Disturbed> {
    let Some(Interrupted { id, context }) = interrupted(world, case) else {
        return Ok(Disturbed::not(world.launch()?));
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
    if world.plant != Some(Plant::Undamaged) {
        world.outside().execute(&damage).unwrap();
    }
    let mut ended = world.launch()?;
    let begin = Instant::now();
    // An owner that has died without its lock file is dead when its lease has expired.
    while ended.is_rejected_as_running() && begin.elapsed() < LEASE * 10 {
        thread::sleep(LEASE / 20);
        ended = world.launch()?;
    }
    let mut outside = world.outside();
    if kind == FaultKind::NoContext && world.plant.is_none() {
        let insert = "INSERT INTO BATCH_STEP_EXECUTION_CONTEXT (STEP_EXECUTION_ID, SHORT_CONTEXT) VALUES";
        outside.execute(&format!("{insert} ({id}, '')")).unwrap();
    }
    outside.execute(&set(&context)).unwrap();
    let names_it = ["context", "checkpoint"]
        .iter()
        .any(|word| ended.output.contains(word));
    match ended.code {
        Some(1 | 2) if names_it => Ok(Disturbed::by(vec![ended])),
        code => Err(Violation::new(
            Invariant::I9,
            format!(
                "{kind:?} of step execution {id}: the next launch ended with {code:?}: {}",
                ended.output
            ),
        )),
    }
}
