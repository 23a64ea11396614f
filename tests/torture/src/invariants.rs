//! The checks after every launch, and of a complete instance.

use std::collections::BTreeMap;
use std::fs::File;

use batch_tests::database::Database;

use crate::artifacts::PLANNED;
use crate::case::{Case, Chunk, FaultKind, PART};
use crate::violation::{Checked, Invariant, Violation};
use crate::world::{Ended, World};

/// The messages of the triggers that reject a wrong row, each with what it breaks.
const REJECTIONS: [(&str, Invariant); 8] = [
    ("the item balance is broken", Invariant::I2),
    ("VERSION did not grow by one", Invariant::I5),
    ("an ended execution was changed", Invariant::I6),
    ("no edge of the status graph", Invariant::I6),
    ("END_TIME does not fit STATUS", Invariant::I7),
    ("two live executions", Invariant::I8),
    ("a count went back", Invariant::I9),
    ("the fence went back", Invariant::I10),
];

/// Returns the invariant that a rejected statement breaks.
pub(crate) fn rejection(output: &str) -> Option<Violation> {
    let found = REJECTIONS.iter().find(|(message, _)| output.contains(message));
    found.map(|(message, invariant)| Violation::new(*invariant, format!("{message}: {output}")))
}

/// Queries that are always empty, each with the meaning of its rows.
const NEVER: [(Invariant, &str, &str); 5] = [
    (
        Invariant::I2,
        "the item balance is broken",
        "SELECT STEP_NAME AS text FROM BATCH_STEP_EXECUTION
         WHERE READ_COUNT <> WRITE_COUNT + FILTER_COUNT + PROCESS_SKIP_COUNT + WRITE_SKIP_COUNT",
    ),
    (
        Invariant::I3,
        "a WRITE_COUNT that is not the number of rows",
        "SELECT STEP_NAME AS text FROM BATCH_STEP_EXECUTION S
         WHERE WRITE_COUNT <> (SELECT COUNT(*) FROM written W WHERE W.execution = S.STEP_EXECUTION_ID)",
    ),
    (
        Invariant::I7,
        "END_TIME does not fit STATUS, or times are out of order",
        "SELECT STATUS AS text FROM BATCH_JOB_EXECUTION
            WHERE (STATUS IN ('STARTING', 'STARTED', 'STOPPING')) <> (END_TIME IS NULL)
            OR CREATE_TIME > START_TIME OR START_TIME > END_TIME
         UNION ALL SELECT STEP_NAME FROM BATCH_STEP_EXECUTION
            WHERE (STATUS IN ('STARTING', 'STARTED', 'STOPPING')) <> (END_TIME IS NULL) OR START_TIME > END_TIME",
    ),
    (
        Invariant::I8,
        "two live executions",
        "SELECT CAST(JOB_INSTANCE_ID AS CHAR(20)) AS text FROM BATCH_JOB_EXECUTION WHERE END_TIME IS NULL
            GROUP BY JOB_INSTANCE_ID HAVING COUNT(*) > 1",
    ),
    (
        Invariant::I8,
        "completed twice, or more than one instance",
        "SELECT STATUS AS text FROM BATCH_JOB_EXECUTION WHERE STATUS = 'COMPLETED' GROUP BY STATUS HAVING COUNT(*) > 1
         UNION ALL SELECT JOB_NAME FROM BATCH_JOB_INSTANCE GROUP BY JOB_NAME HAVING COUNT(*) > 1",
    ),
];

/// Checks what holds after every launch. `kind` is the fault that has happened; the first `killed` processes were also killed.
pub(crate) fn after_launch(
    world: &World<'_>,
    ended: &[Ended],
    kind: Option<FaultKind>,
    killed: usize,
) -> Checked {
    for (number, one) in ended.iter().enumerate() {
        if let Some(violation) = rejection(&one.output) {
            return Err(violation);
        }
        let may_lose = matches!(
            kind,
            Some(FaultKind::Freeze | FaultKind::Cut | FaultKind::ServerCrash)
        );
        if one.output.contains("has taken this execution over") && !may_lose {
            let what = format!("a live owner was replaced: {}", one.output);
            return Err(Violation::new(Invariant::I10, what));
        }
        if one.output.contains("the runtime itself failed") {
            return Err(Violation::new(Invariant::I15, one.output.clone()));
        }
        // A signal is a kill of the suite, or what a full disk gives.
        let may_die = number < killed || matches!(kind, Some(FaultKind::Kill | FaultKind::FullDisk));
        if !(one.has_documented_code() || one.code.is_none() && may_die) {
            let what = format!("a process ended with {:?}: {}", one.code, one.output);
            return Err(Violation::new(Invariant::I15, what));
        }
        if one.code == Some(0) && !world.is_complete() {
            return Err(Violation::new(Invariant::I14, "exit code 0 without COMPLETED"));
        }
        // On a full disk the calls cannot be recorded.
        if kind != Some(FaultKind::FullDisk) {
            in_order(one)?;
        }
    }
    let mut outside = world.outside();
    for (invariant, what, query) in NEVER {
        let rows = outside.rows(query);
        if !rows.is_empty() {
            return Err(Violation::new(invariant, format!("{what}: {rows:?}")));
        }
    }
    Ok(())
}

/// Checks what the commands beside a launch have printed, and how they ended.
pub(crate) fn after_commands(commands: &[Ended]) -> Checked {
    for command in commands {
        if let Some(violation) = rejection(&command.output) {
            return Err(violation);
        }
        if !command.has_documented_code() || command.output.contains("the runtime itself failed") {
            let what = format!("a command ended with {:?}: {}", command.code, command.output);
            return Err(Violation::new(Invariant::I15, what));
        }
    }
    Ok(())
}

/// Checks that what has been written so far is expected, and written once.
pub(crate) fn rows_so_far(world: &World<'_>, case: &Case) -> Checked {
    let (expected, found) = (expected_rows(case), written_rows(world));
    let doubled: Vec<&String> = found
        .windows(2)
        .filter(|two| two[0] == two[1])
        .map(|two| &two[0])
        .collect();
    let strange: Vec<&String> = found
        .iter()
        .filter(|row| expected.binary_search(row).is_err())
        .collect();
    match doubled.is_empty() && strange.is_empty() {
        true => Ok(()),
        false => Err(Violation::new(
            Invariant::I1,
            format!("doubled {doubled:?}, strange {strange:?}"),
        )),
    }
}

/// Checks the causes of the newest execution, which failed without a fault.
pub(crate) fn planned_cause(world: &World<'_>, ended: &Ended) -> Checked {
    let others = world.outside().rows(&format!(
        "SELECT CONCAT(STEP_NAME, ': ', EXIT_MESSAGE) AS text FROM BATCH_STEP_EXECUTION
         WHERE STATUS = 'FAILED' AND EXIT_CODE <> 'CRASHED' AND EXIT_MESSAGE NOT LIKE '%{PLANNED}%'
         AND JOB_EXECUTION_ID = (SELECT MAX(JOB_EXECUTION_ID) FROM BATCH_JOB_EXECUTION)"
    ));
    match others.is_empty() && ended.output.contains(PLANNED) {
        true => Ok(()),
        false => Err(Violation::new(
            Invariant::I15,
            format!("a failure without its cause: {others:?} {}", ended.output),
        )),
    }
}

/// Checks the calls of each reader and writer of a process.
fn in_order(ended: &Ended) -> Checked {
    let mut artifacts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in &ended.calls {
        if let Some((artifact, call)) = line.split_once(' ') {
            artifacts.entry(artifact).or_default().push(call);
        }
    }
    artifacts.remove("0");
    for calls in artifacts.values() {
        let is_open = calls.first().is_some_and(|call| call.starts_with("open"));
        let is_unclosed = calls.first().is_some_and(|call| call.starts_with("begin"))
            && calls.iter().skip(1).all(|call| !call.starts_with("begin"));
        let closes = calls.iter().filter(|call| **call == "close").count();
        let closes_last = closes == 1 && calls.last() == Some(&"close");
        // A process that dies closes nothing.
        let may_stay_open = ended.code.is_none() && closes == 0;
        if !is_unclosed && (!is_open || !(closes_last || may_stay_open)) {
            let what = format!("the calls of an artifact: {}", calls.join(", "));
            return Err(Violation::new(Invariant::I12, what));
        }
    }
    Ok(())
}

/// Checks a complete instance.
pub(crate) fn complete(world: &World<'_>, case: &Case) -> Checked {
    rows(world, case)?;
    for (chunk, parts) in case.chunks() {
        if !case.is_undone(&chunk.id) {
            counts(world, chunk, parts.len() as i64)?;
            commits(world, chunk)?;
        }
    }
    tasks(world, case)?;
    nothing_is_left(world)
}

impl Chunk {
    /// Returns whether an item is written.
    fn is_written(&self, item: u32) -> bool {
        let is_bad = [&self.bad_reads, &self.bad_results, &self.bad_writes];
        !is_bad.iter().any(|bad| bad.contains(&item)) && !item.is_multiple_of(self.filter)
    }

    fn is_filtered(&self, item: u32) -> bool {
        item.is_multiple_of(self.filter)
            && !self.bad_reads.contains(&item)
            && !self.bad_results.contains(&item)
    }
}

/// Returns the rows of the model, in order.
fn expected_rows(case: &Case) -> Vec<String> {
    let mut rows = Vec::new();
    for (chunk, parts) in case.chunks() {
        for part in parts {
            let items = (1..=chunk.items).filter(|item| chunk.is_written(*item));
            rows.extend(items.map(|item| format!("{} {}", chunk.id, part * PART + item)));
        }
    }
    rows.sort();
    rows
}

/// Returns the rows that were written and not undone, in order.
fn written_rows(world: &World<'_>) -> Vec<String> {
    let query = "SELECT CONCAT(step, ' ', CAST(n AS CHAR(20))) AS text FROM written WHERE undone = 0";
    let mut rows = world.outside().rows(query);
    rows.iter_mut().for_each(|row| *row = row.trim().to_owned());
    rows.sort();
    rows
}

/// Checks that all rows of the model are written, once.
fn rows(world: &World<'_>, case: &Case) -> Checked {
    rows_so_far(world, case)?;
    let (expected, found) = (expected_rows(case), written_rows(world));
    let missing: Vec<&String> = expected
        .iter()
        .filter(|row| found.binary_search(row).is_err())
        .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Violation::new(Invariant::I1, format!("missing {missing:?}"))),
    }
}

/// Returns the condition for the executions of a step, its partitions, and those in flows.
fn executions_of(id: &str) -> String {
    format!(
        "(STEP_NAME = '{id}' OR STEP_NAME LIKE '%/{id}' OR STEP_NAME LIKE '{id}:%' OR STEP_NAME LIKE '%/{id}:%')"
    )
}

/// Compares the counts of all executions of a step with the model.
fn counts(world: &World<'_>, chunk: &Chunk, parts: i64) -> Checked {
    let items = || 1..=chunk.items;
    let written = items().filter(|item| chunk.is_written(*item)).count() as i64;
    let filtered = items().filter(|item| chunk.is_filtered(*item)).count() as i64;
    let bad_results = chunk.bad_results.len() as i64;
    let bad_writes = chunk
        .bad_writes
        .iter()
        .filter(|item| !item.is_multiple_of(chunk.filter))
        .count() as i64;
    let bad_reads = chunk.bad_reads.len() as i64;
    let read = i64::from(chunk.items) - bad_reads;
    for (column, expected, invariant) in [
        ("READ_COUNT", read, Invariant::I2),
        ("WRITE_COUNT", written, Invariant::I2),
        ("FILTER_COUNT", filtered, Invariant::I2),
        ("READ_SKIP_COUNT", bad_reads, Invariant::I11),
        ("PROCESS_SKIP_COUNT", bad_results, Invariant::I11),
        ("WRITE_SKIP_COUNT", bad_writes, Invariant::I11),
    ] {
        let condition = executions_of(&chunk.id);
        let sum = world.outside().number(&format!(
            "SELECT COALESCE(SUM({column}), 0) FROM BATCH_STEP_EXECUTION WHERE {condition}"
        ));
        if sum != expected * parts {
            let what = format!(
                "{column} of {} is {sum} in all, and not {}",
                chunk.id,
                expected * parts
            );
            return Err(Violation::new(invariant, what));
        }
    }
    Ok(())
}

/// Each interval has its items, and the end of the input is found in one more.
fn commits(world: &World<'_>, chunk: &Chunk) -> Checked {
    // A retry commits item by item.
    if !chunk.transient.is_empty() {
        return Ok(());
    }
    let (interval, condition) = (chunk.interval, executions_of(&chunk.id));
    let whole = format!("((READ_COUNT - READ_COUNT % {interval}) / {interval})");
    let partitioned = match chunk.parts {
        0 => "",
        // The row of the step itself counts nothing.
        _ => " AND STEP_NAME LIKE '%:%'",
    };
    let wrong = world.outside().rows(&format!(
        "SELECT CONCAT(STEP_NAME, ' ', CAST(READ_COUNT AS CHAR(20)), ' ', CAST(COMMIT_COUNT AS CHAR(20))) AS text
         FROM BATCH_STEP_EXECUTION WHERE {condition}{partitioned}
         AND ((STATUS = 'COMPLETED' AND COMMIT_COUNT <> {whole} + 1)
            OR COMMIT_COUNT < {whole} OR COMMIT_COUNT > {whole} + 1)"
    ));
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Violation::new(
            Invariant::I4,
            format!("a COMMIT_COUNT that is not one for each interval of {interval}: {wrong:?}"),
        )),
    }
}

/// A batchlet runs at least once, in each part.
fn tasks(world: &World<'_>, case: &Case) -> Checked {
    for (id, parts) in case.tasks() {
        for part in parts {
            let from = part * PART;
            let count = format!("SELECT COUNT(*) FROM ran WHERE step = '{id}' AND part = {from}");
            if world.outside().number(&count) == 0 {
                return Err(Violation::new(
                    Invariant::I1,
                    format!("the batchlet {id} of part {part} did not run"),
                ));
            }
        }
    }
    Ok(())
}

/// Checks that no process has left a live row, a lock or a session.
fn nothing_is_left(world: &World<'_>) -> Checked {
    let open = world.outside().rows(
        "SELECT STATUS AS text FROM BATCH_JOB_EXECUTION WHERE END_TIME IS NULL
         UNION ALL SELECT STEP_NAME FROM BATCH_STEP_EXECUTION WHERE END_TIME IS NULL",
    );
    if !open.is_empty() {
        return Err(Violation::new(Invariant::I7, format!("not ended: {open:?}")));
    }
    let owners = world.path().join("batch.db-owners");
    for file in owners.read_dir().into_iter().flatten() {
        let file = file.unwrap().path();
        if !File::open(&file).is_ok_and(|file| file.try_lock().is_ok()) {
            return Err(Violation::new(
                Invariant::I13,
                format!("{} is locked", file.display()),
            ));
        }
    }
    let sessions = match world.databases.kind {
        Database::Sqlite => return Ok(()),
        Database::Postgres => {
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
             AND application_name <> ''"
        }
        Database::Mariadb => {
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> CONNECTION_ID()"
        }
    };
    // The server notices the end of a process a little later.
    let begin = std::time::Instant::now();
    loop {
        match world.outside().number(sessions) {
            0 => return Ok(()),
            left if begin.elapsed().as_secs() > 10 => {
                return Err(Violation::new(
                    Invariant::I13,
                    format!("{left} sessions are left"),
                ));
            }
            _ => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    }
}
