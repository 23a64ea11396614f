//! The artifacts of all cases, and the case that runs now.

use std::sync::{Mutex, MutexGuard, PoisonError};

use batch_runtime::prelude::*;
use batch_runtime::{BatchError, ChunkTransaction, RepositoryConnection};
use diesel::RunQueryDsl;
use diesel::connection::SimpleConnection;
use diesel::sql_types::BigInt;

use super::case::{Case, Class, Phase, Plan, Thrown};
use super::model::Notified;
use crate::faults::{input_listeners, pipeline_listeners};

/// The running case.
pub(crate) struct World {
    pub(crate) case: Case,
    pub(crate) plan: Plan,
    pub(crate) log: Vec<String>,
    pub(crate) notified: Notified,
    /// The items of writers that do not write through the chunk transaction.
    pub(crate) delivered: Vec<u64>,
}

static WORLD: Mutex<Option<World>> = Mutex::new(None);
static CONNECTION: Mutex<Option<RepositoryConnection>> = Mutex::new(None);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a case.
pub(crate) fn begin(case: &Case) {
    *lock(&WORLD) = Some(World {
        case: case.clone(),
        plan: Plan::new(case),
        log: Vec::new(),
        notified: Notified::default(),
        delivered: Vec::new(),
    });
}

/// Reads or changes the running case.
pub(crate) fn with<T>(ask: impl FnOnce(&mut World) -> T) -> T {
    ask(lock(&WORLD).as_mut().expect("a case has started"))
}

/// Runs statements of the test on the database of the repository.
pub(crate) fn on_database<T>(run: impl FnOnce(&mut diesel::SqliteConnection) -> T) -> T {
    let mut connection = lock(&CONNECTION);
    let connection = connection.as_mut().expect("opened first");
    run(connection.sqlite().expect("SQLite"))
}

/// A call about one item, or about none.
fn record(call: &str, fault: Option<(Phase, u64)>) -> Result<(), BatchError> {
    let thrown = with(|world| {
        let thrown = fault.and_then(|(phase, item)| world.plan.throws(phase, item));
        world.log.push(shown(call, thrown, false));
        thrown
    });
    thrown.map_or(Ok(()), |thrown| Err(error(thrown.class)))
}

fn shown(call: &str, thrown: Option<Thrown>, named: bool) -> String {
    match thrown {
        None => call.to_owned(),
        Some(thrown) => format!("{call} !{}{}", if named { "@" } else { "" }, thrown.class),
    }
}

/// Panics are expected here, and their messages on standard error are suppressed.
fn error(class: Class) -> BatchError {
    if class == Class::Panic {
        std::panic::resume_unwind(Box::new("planned"));
    }
    class.into()
}

/// Gives the test a connection to the in-memory database, and creates the table.
#[batchlet("ModelConnects")]
fn model_connects(#[batch_context] job: &JobContext) -> Result<String, BatchError> {
    let mut connection = job.connect()?;
    let table = "CREATE TABLE line (item INTEGER NOT NULL)";
    connection.sqlite()?.batch_execute(table)?;
    *lock(&CONNECTION) = Some(connection);
    Ok("DONE".to_owned())
}

#[derive(BatchArtifact)]
struct ModelSource {
    last: u64,
}

#[item_reader]
impl ModelSource {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) -> Result<(), BatchError> {
        self.last = checkpoint.unwrap_or(0);
        record("open reader", None)
    }
    #[read_item]
    fn read(&mut self) -> Result<Option<u64>, BatchError> {
        let item = self.last + 1;
        let thrown = with(|world| {
            if item > world.case.items {
                world.log.push("read the end".to_owned());
                return Ok(None);
            }
            let thrown = world.plan.throws(Phase::Read, item);
            world.log.push(shown(&format!("read {item}"), thrown, false));
            match thrown {
                Some(thrown) => Err(thrown),
                None => Ok(Some(item)),
            }
        });
        let moves_on = match thrown {
            Ok(item) => item.is_some(),
            Err(thrown) => thrown.named,
        };
        self.last += u64::from(moves_on);
        thrown.map_err(|thrown| error(thrown.class))
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Result<u64, BatchError> {
        record("checkpoint reader", None)?;
        Ok(self.last)
    }
    #[close]
    fn close(&mut self) -> Result<(), BatchError> {
        record("close reader", None)
    }
}

#[item_processor("ModelShape")]
fn model_shape(item: u64) -> Result<Option<String>, BatchError> {
    record(&format!("process {item}"), Some((Phase::Process, item)))?;
    Ok(with(|world| !item.is_multiple_of(world.case.filter)).then(|| format!("n{item}")))
}

/// Writes the items before the failing one if the writer names it, else all; of those it delivers none.
fn write(names: &[String], insert: &mut dyn FnMut(u64) -> Result<(), BatchError>) -> Result<(), BatchError> {
    let items: Vec<u64> = names.iter().filter_map(|name| name[1..].parse().ok()).collect();
    let failed = with(|world| {
        let failed = world.plan.write(&items);
        let thrown = failed.map(|(thrown, _)| thrown);
        let named = thrown.is_some_and(|thrown| thrown.named);
        let call = format!("write {}", names.join(" "));
        world.log.push(shown(&call, thrown, named));
        failed
    });
    let until = match failed {
        Some((thrown, place)) if thrown.named => place,
        _ => items.len(),
    };
    let before = with(|world| world.delivered.len());
    items[..until].iter().try_for_each(|item| insert(*item))?;
    if matches!(failed, Some((thrown, _)) if !thrown.named) {
        with(|world| world.delivered.truncate(before));
    }
    match failed {
        None => Ok(()),
        Some((thrown, place)) if thrown.named => Err(BatchError::at_item(place, error(thrown.class))),
        Some((thrown, _)) => Err(error(thrown.class)),
    }
}

macro_rules! writers {
    ($($name:ident($($argument:tt)*) $(, $tx:ident: $chunk:ty)? => $insert:expr;)*) => {$(
        #[derive(BatchArtifact)]
        struct $name {}

        #[item_writer($($argument)*)]
        impl $name {
            #[open]
            fn open(&mut self, checkpoint: Option<usize>) -> Result<(), BatchError> {
                with(|world| world.delivered.truncate(checkpoint.unwrap_or(0)));
                record("open writer", None)
            }
            #[write_items]
            fn write(&mut self, items: &[String] $(, $tx: &mut $chunk)?) -> Result<(), BatchError> {
                let insert: fn(u64 $(, &mut $chunk)?) -> Result<(), BatchError> = $insert;
                write(items, &mut |item| insert(item $(, &mut *$tx)?))
            }
            #[get_checkpoint_info]
            fn checkpoint(&mut self) -> Result<usize, BatchError> {
                record("checkpoint writer", None)?;
                Ok(with(|world| world.delivered.len()))
            }
            #[close]
            fn close(&mut self) -> Result<(), BatchError> {
                record("close writer", None)
            }
        }
    )*};
}

fn deliver(item: u64) -> Result<(), BatchError> {
    with(|world| world.delivered.push(item));
    Ok(())
}

fn insert(item: u64, tx: &mut ChunkTransaction) -> Result<(), BatchError> {
    diesel::sql_query("INSERT INTO line (item) VALUES (?)")
        .bind::<BigInt, _>(i64::try_from(item)?)
        .execute(tx.sqlite()?)?;
    Ok(())
}

writers! {
    Delivers("Delivers") => deliver;
    DeliversEach("DeliversEach", buffered = false) => deliver;
    Inserts("Inserts"), tx: ChunkTransaction => insert;
    InsertsEach("InsertsEach", buffered = false), tx: ChunkTransaction => insert;
}

#[derive(BatchArtifact)]
struct ModelCounts {
    items: u32,
}

#[checkpoint_algorithm]
impl ModelCounts {
    #[begin_checkpoint]
    fn begin(&mut self) -> Result<(), BatchError> {
        self.items = 0;
        record("begin checkpoint", None)
    }
    #[is_ready_to_checkpoint]
    fn is_ready(&mut self) -> Result<bool, BatchError> {
        self.items += 1;
        record("ready?", None)?;
        Ok(with(|world| self.items >= world.case.commit_interval))
    }
    #[end_checkpoint]
    fn end(&mut self) -> Result<(), BatchError> {
        record("end checkpoint", None)
    }
}

/// Records and counts the call of a listener. A call about a retried item may be planned to fail.
fn listen(call: &str) -> Result<(), BatchError> {
    let item = call.rsplit(" n").next().and_then(|item| item.parse().ok());
    let phase = with(|world| {
        let notified = &mut world.notified;
        let counts = [
            ("on skip in read ", &mut notified.skips_in_read, None),
            ("on skip in process ", &mut notified.skips_in_process, None),
            ("on skip in write ", &mut notified.skips_in_write, None),
            (
                "on retry exception ",
                &mut notified.retry_exceptions,
                Some(Phase::OnRetryException),
            ),
            (
                "on retry item ",
                &mut notified.retry_items,
                Some(Phase::OnRetryItem),
            ),
        ];
        let (_, count, phase) = counts.into_iter().find(|(start, ..)| call.starts_with(start))?;
        *count += 1;
        phase
    });
    record(call, phase.zip(item))
}

macro_rules! listeners {
    ($($name:ident)*) => {$(
        #[derive(BatchArtifact)]
        struct $name {}

        impl $name {
            fn record(&self, call: &str) -> Result<(), BatchError> {
                listen(call)
            }
        }

        pipeline_listeners!($name);
    )*};
}

listeners!(ModelListener ModelPipelineListeners);
input_listeners!(ModelListener);
