//! The conversion of the tables to another layout.
//!
//! On SQLite and PostgreSQL it is one transaction. MySQL commits each change of a table by itself: an interrupted conversion leaves a table
//! `CONVERTED_JOB_EXECUTION_PARAMS` or `REPLACED_JOB_EXECUTION_PARAMS`, with which no repository opens, and the next conversion completes it.
//!
//! Spec: REPO-91

use std::collections::BTreeSet;

use batch_migrations::Replacement;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;

use super::archive_store::archived_instance;
use super::closing::OPEN;
use super::executions::{execution_ids, executions, load_executions};
use super::parameters::{insert_parameters, load_parameters};
use super::rows::ExecutionRow;
use super::schema::{job_context, job_execution, job_instance, launch, step_context, worker};
use super::{Connection, Db, Work, catalog, rejected};
use crate::execution::JobExecution;
use crate::ids::JobInstanceId;
use crate::parameters::{JobParameters, ParameterValue};
use crate::repository::conversion::{Backup, LayoutConversion};
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::migrations::{Catalog, Failure};
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::transaction_error::TransactionError;
use crate::repository::diesel::update::update;
use crate::repository::{RepositoryError, RepositoryFormat, RepositoryLayout, StoredContext};

/// The number of rows that are read together.
const PAGE: i64 = 500;

/// The keys of instances that get another one.
type NewKeys = Vec<(i64, String)>;

/// Converts the tables; without `backup`, only finds out what the conversion does.
pub(in crate::repository::diesel) fn run(
    mut connection: Connection,
    to: RepositoryLayout,
    backup: Option<Backup<'_>>,
) -> Result<LayoutConversion, Failure> {
    match backup {
        Some(backup) => Db::convert(&mut connection, |connection| convert(connection, to, backup)),
        None => {
            let found = catalog(&mut connection)?;
            prepare(&mut connection, &found, to).map(|(plan, _)| plan)
        }
    }
}

fn convert(
    connection: &mut Connection,
    to: RepositoryLayout,
    backup: Backup<'_>,
) -> Result<LayoutConversion, Failure> {
    let mut found = catalog(connection)?;
    if found.is_half_replaced() {
        execute(connection, RESTORE)?;
        found = catalog(connection)?;
    }
    let (plan, keys) = prepare(connection, &found, to)?;
    if !plan.obstacles.is_empty() {
        return Err(format!(
            "its tables cannot be converted to the layout of Spring Batch {to}:\n  {}",
            plan.obstacles.join("\n  ")
        )
        .into());
    }
    // An interrupted conversion has written it.
    if !found.is_between_layouts() {
        write_backup(connection, backup)?;
    }
    let is_typed = |layout: RepositoryLayout| layout.has_typed_parameters();
    if is_typed(plan.from) != is_typed(to) {
        replace_parameters(connection, &found, to)?;
    } else if Db::COMMITS_SCHEMA_CHANGES && !found.is_replaced() {
        execute(connection, MARK)?;
    }
    let conversion = &Db::MIGRATIONS.0.conversion;
    match (to, found.has_instance_sequence_of_6()) {
        (RepositoryLayout::V6, false) => execute(connection, conversion.to_6)?,
        (RepositoryLayout::V4_3 | RepositoryLayout::V5, true) => execute(connection, conversion.from_6)?,
        _ => {}
    }
    Db::convert_sequences(connection, to)?;
    together(connection, |connection| {
        replace_keys(connection, &keys)?;
        // An interrupted conversion may have converted them.
        let from = (!found.is_between_layouts()).then_some(plan.from);
        Ok(convert_contexts(connection, from, to)?)
    })?;
    if catalog(connection)?.is_replaced() {
        execute(connection, replacement_for(to).complete)?;
    } else if Db::COMMITS_SCHEMA_CHANGES {
        execute(connection, UNMARK)?;
    }
    let converted = catalog(connection)?;
    Db::MIGRATIONS.run(connection, &converted)?;
    Ok(plan)
}

/// Marks a conversion that replaces no parameters as not complete.
const MARK: &str =
    "CREATE TABLE IF NOT EXISTS BATCH_CONVERTED_JOB_EXECUTION_PARAMS (JOB_EXECUTION_ID BIGINT)";
const UNMARK: &str = "DROP TABLE IF EXISTS BATCH_CONVERTED_JOB_EXECUTION_PARAMS";

/// Undoes the first half of a replacement: a server that crashes may have renamed one of two tables.
const RESTORE: &str = "RENAME TABLE BATCH_REPLACED_JOB_EXECUTION_PARAMS TO BATCH_JOB_EXECUTION_PARAMS";

/// Returns the scripts that replace the parameters.
fn replacement_for(to: RepositoryLayout) -> &'static Replacement {
    match to.has_typed_parameters() {
        true => &Db::MIGRATIONS.0.conversion.to_5,
        false => &Db::MIGRATIONS.0.conversion.to_4_3,
    }
}

/// Copies the parameters into a new table, which then replaces the old one.
fn replace_parameters(
    connection: &mut Connection,
    found: &Catalog,
    to: RepositoryLayout,
) -> Result<(), Failure> {
    let replacement = replacement_for(to);
    execute(connection, replacement.prepare)?;
    if !found.has_creation() {
        execute(connection, Db::MIGRATIONS.0.conversion.creation)?;
    }
    together(connection, |connection| copy_parameters(connection, to))?;
    Ok(execute(connection, replacement.replace)?)
}

/// Runs a script with the prefix of the repository.
fn execute(connection: &mut Connection, script: &str) -> QueryResult<()> {
    let statements = connection.settings().prefix.rename_all(script);
    connection.batch_execute(&statements)
}

/// Runs `work` in a transaction, where the whole conversion is not one.
fn together(
    connection: &mut Connection,
    work: impl FnOnce(&mut Connection) -> Work<()>,
) -> Result<(), Failure> {
    let failed = |error: TransactionError<RepositoryError>| error.into_error("convert the tables");
    if !Db::COMMITS_SCHEMA_CHANGES {
        return Ok(work(connection).map_err(failed)?);
    }
    connection.batch_execute("START TRANSACTION")?;
    work(connection).map_err(failed)?;
    Ok(connection.batch_execute("COMMIT")?)
}

/// Finds out what the conversion does, and what prevents it.
fn prepare(
    connection: &mut Connection,
    found: &Catalog,
    to: RepositoryLayout,
) -> Result<(LayoutConversion, NewKeys), Failure> {
    let Some(from) = found.layout() else {
        return Err("it has no tables".into());
    };
    connection.adopt(found);
    if found.is_replaced() && from.has_typed_parameters() != to.has_typed_parameters() {
        return Err(format!(
            "a conversion to the layout of Spring Batch {from} was interrupted; complete it before"
        )
        .into());
    }
    if !found.is_between_layouts() && !Db::MIGRATIONS.are_applied(connection, found)? {
        return Err("its tables are not up to date; run `db migrate` before".into());
    }
    let mut plan = LayoutConversion::new(from, to);
    let failed = |error: TransactionError<RepositoryError>| error.into_error("read the repository");
    find_running(connection, &mut plan).map_err(failed)?;
    let keys = new_keys(connection, &mut plan).map_err(failed)?;
    Ok((plan, keys))
}

/// Adds what runs, or waits to run.
fn find_running(connection: &mut Connection, plan: &mut LayoutConversion) -> Work<()> {
    let open = executions!().filter(job_execution::status.eq_any(OPEN));
    let open: Vec<JobExecution> = load_executions!(open, connection)?;
    for execution in open {
        plan.add_obstacle(format!(
            "job execution {} of `{}` is {}: stop it, or resume it until it ends",
            execution.id, execution.job_name, execution.status
        ));
    }
    let now: i64 = diesel::select(Db::now()).get_result(connection)?;
    let workers: Vec<String> = worker::table
        .filter(worker::expires_at.ge(now))
        .select(worker::worker_name)
        .load(connection)?;
    for worker in workers {
        plan.add_obstacle(format!("worker {worker} is running: end it"));
    }
    let launches: Vec<i64> = launch::table
        .filter(launch::is_open.is_not_null())
        .select(launch::launch_id)
        .load(connection)?;
    for launch in launches {
        plan.add_obstacle(format!(
            "launch {launch} is queued: withdraw it by `stop`, or let a worker run it"
        ));
    }
    Ok(())
}

/// Returns the new keys of instances, and adds what the new layout cannot store.
fn new_keys(connection: &mut Connection, plan: &mut LayoutConversion) -> Work<NewKeys> {
    let format = RepositoryFormat {
        layout: plan.to,
        ..connection.settings().format.clone()
    };
    let instances: Vec<(i64, String, String)> = job_instance::table
        .order(job_instance::job_instance_id.asc())
        .select((
            job_instance::job_instance_id,
            job_instance::job_name,
            job_instance::job_key,
        ))
        .load(connection)?;
    let (mut keys, mut known) = (Vec::new(), BTreeSet::new());
    for (id, job, key) in instances {
        plan.instances += 1;
        let mut original = None;
        for execution in execution_ids(connection, JobInstanceId(id))? {
            let parameters = load_parameters(connection, execution.0)?;
            find_losses(&parameters, plan, execution.0);
            original.get_or_insert(parameters);
        }
        let new = original.and_then(|parameters| parameters.key_instead_of(&key, &format));
        match &new {
            None => plan.kept_keys += 1,
            Some(new) if *new != key => {
                plan.replaced_keys += 1;
                keys.push((id, new.clone()));
            }
            Some(_) => {}
        }
        if !known.insert((job.clone(), new.unwrap_or(key))) {
            plan.add_obstacle(format!(
                "job instance {id} of `{job}` would have the key of another one, whose parameters differ only in their types"
            ));
        }
    }
    Ok(keys)
}

/// Adds the parameters of an execution that the new layout cannot store.
fn find_losses(parameters: &JobParameters, plan: &mut LayoutConversion, execution: i64) {
    let is_null = |value: &ParameterValue| matches!(value, ParameterValue::Null(_));
    plan.parameters += parameters.iter().count() as u64;
    plan.null_parameters += parameters
        .iter()
        .filter(|(_, parameter)| is_null(&parameter.value))
        .count() as u64;
    let others = parameters
        .iter()
        .filter(|(_, parameter)| !is_null(&parameter.value));
    let others = others.fold(JobParameters::new(), |all, (name, parameter)| {
        all.with_parameter(name, parameter.value.clone(), parameter.identifying)
    });
    if let Err(problem) = others.without_run_id().validate(plan.to) {
        plan.add_obstacle(format!("job execution {execution}: {problem}"));
    }
}

/// Writes all instances, each as a line that `import` reads.
fn write_backup(connection: &mut Connection, backup: Backup<'_>) -> Result<(), Failure> {
    let instances: Vec<i64> = job_instance::table
        .order(job_instance::job_instance_id.asc())
        .select(job_instance::job_instance_id)
        .load(connection)?;
    for id in instances {
        let archived = archived_instance(connection, JobInstanceId(id));
        let archived = archived.map_err(|error| error.into_error("read a job instance"))?;
        writeln!(backup, "{}", serde_json::to_string(&archived)?)?;
    }
    Ok(backup.flush()?)
}

/// Copies the parameters of all executions into the new table.
fn copy_parameters(connection: &mut Connection, to: RepositoryLayout) -> Work<()> {
    let executions: Vec<i64> = job_execution::table
        .order(job_execution::job_execution_id.asc())
        .select(job_execution::job_execution_id)
        .load(connection)?;
    for id in executions {
        let parameters = load_parameters(connection, id)?;
        connection.on_converted_tables(to, Db::HAS_LOWER_CASE_NAMES, |connection| {
            insert_parameters(connection, id, &parameters)
        })?;
    }
    Ok(())
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
    from: Option<RepositoryLayout>,
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
