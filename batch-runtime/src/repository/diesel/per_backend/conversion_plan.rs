//! The plan of a conversion to another layout: what it changes, and the obstacles.
// Spec: REPO-91

use std::collections::{BTreeMap, BTreeSet};

use diesel::prelude::*;

use super::closing::OPEN;
use super::executions::{executions, load_executions};
use super::parameters::{PAGE, parameters_of};
use super::rows::ExecutionRow;
use super::schema::{job_execution, job_instance, job_params, launch, step_execution, typed_params, worker};
use super::{Connection, Db, Work, rejected};
use crate::clock::Timestamp;
use crate::execution::JobExecution;
use crate::parameters::{JobParameters, ParameterValue};
use crate::repository::conversion::LayoutConversion;
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::migrations::{Catalog, Failure, Name};
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::transaction_error::TransactionError;
use crate::repository::{RepositoryError, RepositoryFormat, RepositoryLayout};

const PARAMETER_COLUMNS: [&str; 11] = [
    job_params::job_execution_id::NAME,
    job_params::type_cd::NAME,
    job_params::key_name::NAME,
    job_params::string_val::NAME,
    job_params::date_val::NAME,
    job_params::long_val::NAME,
    job_params::double_val::NAME,
    job_params::identifying::NAME,
    typed_params::parameter_name::NAME,
    typed_params::parameter_type::NAME,
    typed_params::parameter_value::NAME,
];
const STEP_COLUMNS: [&str; 19] = [
    step_execution::step_execution_id::NAME,
    step_execution::version::NAME,
    step_execution::step_name::NAME,
    step_execution::job_execution_id::NAME,
    "CREATE_TIME",
    step_execution::start_time::NAME,
    step_execution::end_time::NAME,
    step_execution::status::NAME,
    step_execution::commit_count::NAME,
    step_execution::read_count::NAME,
    step_execution::filter_count::NAME,
    step_execution::write_count::NAME,
    step_execution::read_skip_count::NAME,
    step_execution::write_skip_count::NAME,
    step_execution::process_skip_count::NAME,
    step_execution::rollback_count::NAME,
    step_execution::exit_code::NAME,
    step_execution::exit_message::NAME,
    step_execution::last_updated::NAME,
];

/// The instances that get a new key, and the key.
pub(super) type NewKeys = Vec<(i64, String)>;

/// Returns the effects and obstacles of the conversion. Once its parameters are replaced, an interrupted conversion has no obstacles.
pub(super) fn plan(
    connection: &mut Connection,
    found: &Catalog,
    to: RepositoryLayout,
    interrupted_from: Option<RepositoryLayout>,
) -> Result<(LayoutConversion, NewKeys), Failure> {
    let Some(from) = interrupted_from.or(found.layout()) else {
        return Err("it has no tables".into());
    };
    connection.adopt(found);
    if interrupted_from.is_none() && !Db::MIGRATIONS.are_applied(connection, found)? {
        return Err("its tables are not up to date; run `db migrate` first".into());
    }
    let mut plan = LayoutConversion::new(from, to);
    let failed = |error: TransactionError<RepositoryError>| error.into_error("read the repository");
    // After an interruption, `recover` and `stop` cannot open the repository.
    if interrupted_from.is_none() {
        add_open_work(connection, &mut plan).map_err(failed)?;
        if from.has_typed_parameters() != to.has_typed_parameters() {
            add_dependent_objects(connection, found, &mut plan)?;
        }
    }
    let keys = new_keys(connection, &mut plan).map_err(failed)?;
    if interrupted_from.is_some() && found.layout() != interrupted_from {
        plan.obstacles.clear();
    }
    Ok((plan, keys))
}

/// Adds open executions, running workers and open launches as obstacles.
fn add_open_work(connection: &mut Connection, plan: &mut LayoutConversion) -> Work<()> {
    let open = executions!().filter(job_execution::status.eq_any(OPEN));
    let open: Vec<JobExecution> = load_executions!(open, connection)?;
    for execution in open {
        let id = execution.id;
        plan.add_obstacle(format!(
            "job execution {id} of `{}` is {}: stop it; if its process is dead, close it by `recover`, one of Spring Batch by \
             `recover --declare-dead {id}`",
            execution.job_name, execution.status
        ));
    }
    let now: i64 = diesel::select(Db::now()).get_result(connection)?;
    let workers: Vec<(String, i64)> = worker::table
        .filter(worker::expires_at.ge(now))
        .select((worker::worker_name, worker::expires_at))
        .load(connection)?;
    for (worker, expires) in workers {
        plan.add_obstacle(format!(
            "worker {worker} is registered: stop it; if it is dead, its registration expires at {}",
            Timestamp(expires)
        ));
    }
    let launches: Vec<i64> = launch::table
        .filter(launch::is_open.is_not_null())
        .select(launch::launch_id)
        .load(connection)?;
    for launch in launches {
        plan.add_obstacle(format!(
            "launch {launch} is open: withdraw it by `stop`, or let a worker run it"
        ));
    }
    Ok(())
}

/// Reports objects that the program added to replaced tables as obstacles.
fn add_dependent_objects(
    connection: &mut Connection,
    found: &Catalog,
    plan: &mut LayoutConversion,
) -> QueryResult<()> {
    let prefix = connection.settings().prefix.clone();
    let mut objects = Vec::new();
    for table in Db::REPLACED_TABLES {
        let added = found.columns_of(table).filter(|column| !is_column(table, column));
        objects.extend(added.map(|column| format!("column {column} of {}", prefix.rename(table))));
    }
    let others: Vec<Name> = diesel::sql_query(Db::ADDITIONS).load(connection)?;
    objects.extend(others.into_iter().map(|other| other.name));
    for object in objects {
        plan.add_obstacle(format!(
            "{object} does not survive the conversion: save its values if it has any, drop it, and add it again afterwards"
        ));
    }
    Ok(())
}

/// Returns whether a replaced table has a column in any layout.
fn is_column(table: &str, column: &str) -> bool {
    let of_table: &[&str] = match table {
        "BATCH_STEP_EXECUTION" => &STEP_COLUMNS,
        _ => &PARAMETER_COLUMNS,
    };
    // MySQL may generate a primary key, for the new table too.
    column == "MY_ROW_ID" || of_table.iter().any(|known| known.eq_ignore_ascii_case(column))
}

/// The key of an instance before and after the conversion.
struct InstanceKey {
    job: String,
    key: String,
    /// `None` if the key is kept.
    new_key: Option<String>,
}

/// Returns the new keys, and reports parameters that the new layout cannot store. The oldest execution has the parameters of its instance.
fn new_keys(connection: &mut Connection, plan: &mut LayoutConversion) -> Work<NewKeys> {
    let format = RepositoryFormat {
        layout: plan.to,
        ..connection.settings().format.clone()
    };
    let mut instances = instances(connection)?;
    let mut last = i64::MIN;
    let mut seen = BTreeSet::new();
    loop {
        let page: Vec<(i64, i64)> = job_execution::table
            .filter(job_execution::job_execution_id.gt(last))
            .order(job_execution::job_execution_id.asc())
            .limit(PAGE)
            .select((job_execution::job_execution_id, job_execution::job_instance_id))
            .load(connection)?;
        let end = page.last().map_or(i64::MAX, |(end, _)| *end);
        let mut parameters = parameters_of(connection, last.saturating_add(1), end)?;
        last = end;
        for (execution, id) in &page {
            let parameters = parameters.remove(execution).unwrap_or_default();
            add_parameters(&parameters, connection, plan, *execution);
            if let Some(instance) = instances.get_mut(id)
                && seen.insert(*id)
            {
                instance.new_key = parameters.key_instead_of(&instance.key, &format);
            }
        }
        for execution in parameters.into_keys() {
            plan.add_obstacle(format!(
                "there are parameters of job execution {execution}, which does not exist: delete them"
            ));
        }
        if page.is_empty() {
            return Ok(changed_keys(instances, plan));
        }
    }
}

fn instances(connection: &mut Connection) -> QueryResult<BTreeMap<i64, InstanceKey>> {
    let rows: Vec<(i64, String, String)> = job_instance::table
        .select((
            job_instance::job_instance_id,
            job_instance::job_name,
            job_instance::job_key,
        ))
        .load(connection)?;
    let key = |(id, job, key)| {
        let new_key = None;
        (id, InstanceKey { job, key, new_key })
    };
    Ok(rows.into_iter().map(key).collect())
}

/// Counts the keys, and returns those that change. Reports instances that would have the same key.
fn changed_keys(instances: BTreeMap<i64, InstanceKey>, plan: &mut LayoutConversion) -> NewKeys {
    let (mut keys, mut known) = (Vec::new(), BTreeSet::new());
    for (id, InstanceKey { job, key, new_key }) in instances {
        plan.instances += 1;
        match &new_key {
            None => plan.kept_keys += 1,
            Some(new_key) if *new_key != key => {
                plan.replaced_keys += 1;
                keys.push((id, new_key.clone()));
            }
            Some(_) => {}
        }
        let key = (job, new_key.unwrap_or(key));
        if known.contains(&key) {
            plan.add_obstacle(format!(
                "job instance {id} of `{}` would have the key of another one: Spring Batch {} does not distinguish their parameters; \
                 archive and purge one of them first",
                key.0, plan.to
            ));
        }
        known.insert(key);
    }
    keys
}

/// Counts the parameters of an execution, and adds those that the new layout cannot store.
fn add_parameters(
    parameters: &JobParameters,
    connection: &Connection,
    plan: &mut LayoutConversion,
    execution: i64,
) {
    let is_null = |value: &ParameterValue| matches!(value, ParameterValue::Null(_));
    for (name, parameter) in parameters.iter() {
        plan.parameters += 1;
        plan.null_parameters += u64::from(is_null(&parameter.value));
        let settings = connection.settings();
        let is_changed = plan.to == RepositoryLayout::V4_3
            && match parameter.value {
                // A local time that the clocks show twice.
                ParameterValue::Date(time) => settings.to_time(settings.to_column(time)) != time,
                ParameterValue::Double(value) => {
                    value == 0.0 && value.is_sign_negative() && !Db::KEEPS_SIGN_OF_ZERO
                }
                _ => false,
            };
        if is_changed && plan.from != plan.to {
            let value = parameter.value.to_text();
            plan.add_obstacle(format!(
                "job execution {execution}: parameter `{name}`: Spring Batch 4.3 would read another value than {value}"
            ));
        }
    }
    if plan.from.has_typed_parameters() == plan.to.has_typed_parameters() {
        return;
    }
    // They are kept, although Spring Batch 5 and 6 cannot read them.
    let others = parameters.clone().without_run_id().without_nulls();
    if let Err(problem) = others.validate(Some(plan.to)) {
        plan.add_obstacle(format!("job execution {execution}: {problem}"));
    }
}
