//! The conversion of the tables to another layout.
//!
//! On SQLite and PostgreSQL it is one transaction. MySQL commits each change of a table by itself: while the table `CONVERSION` exists, no
//! repository opens, and the next run completes the conversion. Its row, inserted once the backup is written, contains both layouts.
// Spec: REPO-91

use batch_migrations::Replacement;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;

use super::archive_store::archived_instance;
use super::conversion_plan::{NewKeys, plan};
use super::parameters::{PAGE, insert_parameters, parameters_of};
use super::schema::{job_context, job_execution, job_instance, step_context};
use super::{Connection, Db, Work, catalog};
use crate::ids::JobInstanceId;
use crate::repository::conversion::{Backup, LayoutConversion};
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::migrations::{Catalog, Failure, Name};
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::transaction_error::TransactionError;
use crate::repository::diesel::update::update;
use crate::repository::{RepositoryError, RepositoryFormat, RepositoryLayout, StoredContext};

/// Marks a conversion that is not complete.
const MARK: &str = "CREATE TABLE IF NOT EXISTS BATCH_CONVERSION (LAYOUTS VARCHAR(20) NOT NULL)";
const UNMARK: &str = "DROP TABLE BATCH_CONVERSION";
/// Undoes the first half of a replacement: a server that crashes may have renamed one of two tables.
const RESTORE: &str = "RENAME TABLE BATCH_REPLACED_JOB_EXECUTION_PARAMS TO BATCH_JOB_EXECUTION_PARAMS";

/// Converts the tables; without `backup`, only finds out what the conversion does. Programs cannot create executions until `lock_out` is
/// dropped.
pub(in crate::repository::diesel) fn run(
    mut connection: Connection,
    to: RepositoryLayout,
    backup: Option<Backup<'_>>,
    lock_out: Option<Connection>,
) -> Result<LayoutConversion, Failure> {
    match backup {
        Some(backup) => Db::convert(&mut connection, |connection| {
            let plan = convert(connection, to, backup)?;
            // The migrations change the table that it has locked.
            drop(lock_out);
            let converted = catalog(connection)?;
            Db::MIGRATIONS.run(connection, &converted)?;
            Ok(plan)
        }),
        None => {
            let found = catalog(&mut connection)?;
            if found.is_between_layouts() {
                return Err(
                    "a conversion of its tables was interrupted; run it again, without `--dry-run`".into(),
                );
            }
            plan(&mut connection, &found, to, None).map(|(plan, _)| plan)
        }
    }
}

fn convert(
    connection: &mut Connection,
    to: RepositoryLayout,
    backup: Backup<'_>,
) -> Result<LayoutConversion, Failure> {
    let interrupted_from = match Db::COMMITS_SCHEMA_CHANGES {
        true => interrupted_from(connection, to)?,
        false => None,
    };
    let found = catalog(connection)?;
    let (plan, keys) = match interrupted_from {
        Some(_) => {
            let planned = plan(connection, &found, to, interrupted_from)?;
            // Another program may have written since the interruption.
            reject_obstacles(&planned.0)?;
            planned
        }
        None => begin(connection, &found, to, backup)?,
    };
    replace_tables(connection, &found, to)?;
    in_own_transaction(connection, |connection| {
        replace_keys(connection, &keys)?;
        Ok(convert_contexts(connection, plan.from, to)?)
    })?;
    complete(connection, to)?;
    Ok(plan)
}

/// Returns the layout that an interrupted conversion started from; `None` if there is none. Repairs what a crash of the server has left.
fn interrupted_from(
    connection: &mut Connection,
    to: RepositoryLayout,
) -> Result<Option<RepositoryLayout>, Failure> {
    let found = catalog(connection)?;
    if found.is_half_replaced() {
        connection.run_script(RESTORE)?;
    }
    if !found.is_between_layouts() {
        return Ok(None);
    }
    let query = diesel::sql_query("SELECT LAYOUTS AS name FROM BATCH_CONVERSION");
    let rows: Vec<Name> = query.load(connection)?;
    let Some((from, interrupted_to)) = rows.first().and_then(|row| row.name.split_once(' ')) else {
        // Interrupted before its backup was complete: nothing was changed.
        connection.run_script(UNMARK)?;
        return Ok(None);
    };
    if interrupted_to != to.to_string() {
        return Err(format!(
            "a conversion to the layout of Spring Batch {interrupted_to} was interrupted; complete it first"
        )
        .into());
    }
    Ok(Some(from.parse()?))
}

/// Marks the conversion and writes the backup. Removes the mark if the conversion cannot be done.
fn begin(
    connection: &mut Connection,
    found: &Catalog,
    to: RepositoryLayout,
    backup: Backup<'_>,
) -> Result<(LayoutConversion, NewKeys), Failure> {
    if !Db::COMMITS_SCHEMA_CHANGES {
        return plan_and_back_up(connection, found, to, backup);
    }
    connection.run_script(MARK)?;
    let planned = plan_and_back_up(connection, found, to, backup);
    let Ok((plan, keys)) = planned else {
        // The first error is the cause. A mark without a row is removed by the next run.
        let _ = connection.run_script(UNMARK);
        return planned;
    };
    // After the backup: a mark without this row tells the next run that nothing was changed.
    let from = plan.from;
    let layouts = format!("INSERT INTO BATCH_CONVERSION (LAYOUTS) VALUES ('{from} {to}')");
    connection.run_script(&layouts)?;
    Ok((plan, keys))
}

fn plan_and_back_up(
    connection: &mut Connection,
    found: &Catalog,
    to: RepositoryLayout,
    backup: Backup<'_>,
) -> Result<(LayoutConversion, NewKeys), Failure> {
    let (plan, keys) = plan(connection, found, to, None)?;
    reject_obstacles(&plan)?;
    write_backup(connection, backup)?;
    Ok((plan, keys))
}

fn reject_obstacles(plan: &LayoutConversion) -> Result<(), Failure> {
    if plan.obstacles.is_empty() {
        return Ok(());
    }
    let obstacles = plan.obstacles.join("\n  ");
    let to = plan.to;
    Err(format!("its tables cannot be converted to the layout of Spring Batch {to}:\n  {obstacles}").into())
}

/// Replaces the table of parameters and the sequences, as far as that is left to do.
fn replace_tables(connection: &mut Connection, found: &Catalog, to: RepositoryLayout) -> Result<(), Failure> {
    let conversion = &Db::MIGRATIONS.0.conversion;
    let is_typed = found.layout().is_some_and(RepositoryLayout::has_typed_parameters);
    if is_typed != to.has_typed_parameters() {
        let replacement = replacement_for(to);
        connection.run_script(replacement.prepare)?;
        if !found.has_creation() {
            connection.run_script(conversion.creation)?;
        }
        in_own_transaction(connection, |connection| copy_parameters(connection, to))?;
        connection.run_script(replacement.replace)?;
    }
    match (to, found.has_instance_sequence_of_6()) {
        (RepositoryLayout::V6, false) => connection.run_script(conversion.to_6)?,
        (RepositoryLayout::V4_3 | RepositoryLayout::V5, true) => connection.run_script(conversion.from_6)?,
        _ => {}
    }
    Ok(Db::convert_sequences(connection, to)?)
}

/// Removes what was replaced.
fn complete(connection: &mut Connection, to: RepositoryLayout) -> Result<(), Failure> {
    if catalog(connection)?.is_replaced() {
        connection.run_script(replacement_for(to).complete)?;
    }
    // Last: until the mark is removed no repository opens, and an interrupted conversion can be repeated.
    if Db::COMMITS_SCHEMA_CHANGES {
        connection.run_script(UNMARK)?;
    }
    Ok(())
}

/// Returns the scripts that replace the parameters.
fn replacement_for(to: RepositoryLayout) -> &'static Replacement {
    match to.has_typed_parameters() {
        true => &Db::MIGRATIONS.0.conversion.to_5,
        false => &Db::MIGRATIONS.0.conversion.to_4_3,
    }
}

/// Runs `work` in a transaction, unless the whole conversion is one.
fn in_own_transaction(
    connection: &mut Connection,
    work: impl FnOnce(&mut Connection) -> Work<()>,
) -> Result<(), Failure> {
    let failed = |error: TransactionError<RepositoryError>| error.into_error("convert the tables");
    if !Db::COMMITS_SCHEMA_CHANGES {
        return Ok(work(connection).map_err(failed)?);
    }
    connection.batch_execute("START TRANSACTION")?;
    // After an error the conversion ends and its connection is closed, which rolls back.
    work(connection).map_err(failed)?;
    Ok(connection.batch_execute("COMMIT")?)
}

/// Writes all instances, each as a line that `import` reads.
fn write_backup(connection: &mut Connection, backup: Backup<'_>) -> Result<(), Failure> {
    let instances: Vec<i64> = job_instance::table
        .order(job_instance::job_instance_id.asc())
        .select(job_instance::job_instance_id)
        .load(connection)?;
    for id in instances {
        let archived = archived_instance(connection, JobInstanceId(id));
        if let Some(archived) = archived.map_err(|error| error.into_error("read a job instance"))? {
            writeln!(backup, "{}", serde_json::to_string(&archived)?)?;
        }
    }
    Ok(backup.flush()?)
}

/// Copies the parameters of all executions into the new table.
fn copy_parameters(connection: &mut Connection, to: RepositoryLayout) -> Work<()> {
    let mut last = i64::MIN;
    loop {
        let page: Vec<i64> = job_execution::table
            .filter(job_execution::job_execution_id.gt(last))
            .order(job_execution::job_execution_id.asc())
            .limit(PAGE)
            .select(job_execution::job_execution_id)
            .load(connection)?;
        let (Some(first), Some(end)) = (page.first(), page.last()) else {
            return Ok(());
        };
        let parameters = parameters_of(connection, *first, *end)?;
        last = *end;
        connection.on_converted_tables(to, Db::HAS_LOWER_CASE_NAMES, |connection| {
            parameters
                .iter()
                .try_for_each(|(id, parameters)| insert_parameters(connection, *id, parameters))
        })?;
    }
}

fn replace_keys(connection: &mut Connection, keys: &NewKeys) -> QueryResult<()> {
    for (id, key) in keys {
        update(job_instance::table.find(id))
            .set(job_instance::job_key.eq(key))
            .execute(connection)?;
    }
    Ok(())
}

/// Converts the contexts of a table.
macro_rules! convert_contexts_of {
    ($table:ident, $id:ident, $connection:expr, $from:expr, $to:expr) => {{
        let mut last = i64::MIN;
        loop {
            let page: Vec<(i64, String, Option<String>)> = $table::table
                .filter($table::$id.gt(last))
                .order($table::$id.asc())
                .limit(PAGE)
                .select(($table::$id, $table::short_context, $table::serialized_context))
                .load($connection)?;
            let Some((id, ..)) = page.last() else { break };
            last = *id;
            for (id, short, serialized) in page {
                let Some(context) = (StoredContext { short, serialized }).converted($from, $to) else {
                    continue;
                };
                update($table::table.find(id))
                    .set((
                        $table::short_context.eq(&context.short),
                        $table::serialized_context.eq(&context.serialized),
                    ))
                    .execute($connection)?;
            }
        }
    }};
}

fn convert_contexts(
    connection: &mut Connection,
    from: RepositoryLayout,
    to: RepositoryLayout,
) -> QueryResult<()> {
    let to = &RepositoryFormat {
        layout: to,
        ..connection.settings().format.clone()
    };
    convert_contexts_of!(step_context, step_execution_id, connection, from, to);
    convert_contexts_of!(job_context, job_execution_id, connection, from, to);
    Ok(())
}
