//! The artifacts of all cases, and the case that runs now.

use std::sync::{Mutex, MutexGuard, PoisonError};

use batch_runtime::prelude::*;
use batch_runtime::{BatchError, ChunkTransaction, RepositoryConnection};
use diesel::RunQueryDsl;
use diesel::connection::SimpleConnection;
use diesel::sql_types::BigInt;

use super::case::{Case, Class, Phase, Plan, Thrown};
use super::model::Heard;

/// The running case.
pub(crate) struct World {
    pub(crate) case: Case,
    pub(crate) plan: Plan,
    pub(crate) log: Vec<String>,
    pub(crate) heard: Heard,
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
        heard: Heard::default(),
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
    run(connection
        .as_mut()
        .expect("opened first")
        .sqlite()
        .expect("SQLite"))
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

fn class(error: &BatchError) -> String {
    if error.is_panic() {
        "Panic".to_owned()
    } else {
        error.to_string()
    }
}

/// Gives the test a connection to the in-memory database, and creates the table.
#[derive(BatchArtifact)]
struct ModelConnects {
    #[batch_context]
    job: JobContext,
}

#[batchlet]
impl ModelConnects {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let mut connection = self.job.connect()?;
        connection
            .sqlite()?
            .batch_execute("CREATE TABLE line (item INTEGER NOT NULL)")?;
        *lock(&CONNECTION) = Some(connection);
        Ok("DONE".to_owned())
    }
    #[cancel]
    fn cancel(&self) {}
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
        if thrown
            .as_ref()
            .map_or_else(|thrown| thrown.named, Option::is_some)
        {
            self.last = item;
        }
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

#[derive(BatchArtifact)]
struct ModelShape {}

#[item_processor]
impl ModelShape {
    #[process_item]
    fn process(&mut self, item: u64) -> Result<Option<u64>, BatchError> {
        record(&format!("process {item}"), Some((Phase::Process, item)))?;
        Ok(with(|world| !item.is_multiple_of(world.case.filter)).then_some(item))
    }
}

fn list(items: &[u64]) -> String {
    let items: Vec<_> = items.iter().map(|item| format!("n{item}")).collect();
    items.join(" ")
}

/// Writes the items before the failing one if the writer names it, else all; of those it delivers none.
fn write(items: &[u64], insert: &mut dyn FnMut(u64) -> Result<(), BatchError>) -> Result<(), BatchError> {
    let failed = with(|world| {
        let failed = world.plan.write(items);
        let thrown = failed.map(|(thrown, _)| thrown);
        let named = thrown.is_some_and(|thrown| thrown.named);
        world
            .log
            .push(shown(&format!("write {}", list(items)), thrown, named));
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
            fn write(&mut self, items: &[u64] $(, $tx: &mut $chunk)?) -> Result<(), BatchError> {
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

/// The listeners that may accompany a pipelined step.
macro_rules! pipeline_listeners {
    ($name:ident) => {
        #[derive(BatchArtifact)]
        struct $name {}

        #[checkpoint_listener]
        impl $name {
            #[before_checkpoint]
            fn before_checkpoint(&mut self) -> Result<(), BatchError> {
                record("before checkpoint", None)
            }
            #[after_checkpoint]
            fn after_checkpoint(&mut self) -> Result<(), BatchError> {
                record("after checkpoint", None)
            }
        }

        #[item_write_listener]
        impl $name {
            #[before_write]
            fn before_write(&mut self, items: &[u64]) -> Result<(), BatchError> {
                record(&format!("before write {}", list(items)), None)
            }
            #[after_write]
            fn after_write(&mut self, items: &[u64]) -> Result<(), BatchError> {
                record(&format!("after write {}", list(items)), None)
            }
            #[on_write_error]
            fn on_write_error(&mut self, error: &BatchError, items: &[u64]) -> Result<(), BatchError> {
                record(
                    &format!("on write error {} {}", class(error), list(items)),
                    None,
                )
            }
        }

        #[skip_listener]
        impl $name {
            #[on_skip_in_read]
            fn on_skip_in_read(&mut self, error: &BatchError) -> Result<(), BatchError> {
                with(|world| world.heard.skips_in_read += 1);
                record(&format!("on skip in read {}", class(error)), None)
            }
            #[on_skip_in_process]
            fn on_skip_in_process(&mut self, error: &BatchError, item: &u64) -> Result<(), BatchError> {
                with(|world| world.heard.skips_in_process += 1);
                record(&format!("on skip in process {} {item}", class(error)), None)
            }
            #[on_skip_in_write]
            fn on_skip_in_write(&mut self, error: &BatchError, item: &u64) -> Result<(), BatchError> {
                with(|world| world.heard.skips_in_write += 1);
                record(&format!("on skip in write {} n{item}", class(error)), None)
            }
        }

        #[retry_listener]
        impl $name {
            #[on_retry_exception]
            fn on_retry_exception(&mut self, error: &BatchError, item: &u64) -> Result<(), BatchError> {
                with(|world| world.heard.retry_exceptions += 1);
                let call = format!("on retry exception {} n{item}", class(error));
                record(&call, Some((Phase::OnRetryException, *item)))
            }
            #[on_retry_item]
            fn on_retry_item(&mut self, error: &BatchError, item: &u64) -> Result<(), BatchError> {
                with(|world| world.heard.retry_items += 1);
                let call = format!("on retry item {} n{item}", class(error));
                record(&call, Some((Phase::OnRetryItem, *item)))
            }
        }
    };
}

pipeline_listeners!(ModelEars);
pipeline_listeners!(ModelPipelineListeners);

#[item_read_listener]
impl ModelEars {
    #[before_read]
    fn before_read(&mut self) -> Result<(), BatchError> {
        record("before read", None)
    }
    #[after_read]
    fn after_read(&mut self, item: &u64) -> Result<(), BatchError> {
        record(&format!("after read {item}"), None)
    }
    #[on_read_error]
    fn on_read_error(&mut self, error: &BatchError) -> Result<(), BatchError> {
        record(&format!("on read error {}", class(error)), None)
    }
}

#[item_process_listener]
impl ModelEars {
    #[before_process]
    fn before_process(&mut self, item: &u64) -> Result<(), BatchError> {
        record(&format!("before process {item}"), None)
    }
    #[after_process]
    fn after_process(&mut self, item: &u64, result: Option<&u64>) -> Result<(), BatchError> {
        record(&format!("after process {item} {result:?}"), None)
    }
    #[on_process_error]
    fn on_process_error(&mut self, error: &BatchError, item: &u64) -> Result<(), BatchError> {
        record(&format!("on process error {} {item}", class(error)), None)
    }
}
