//! Claiming an instance: the checks, the execution that is inserted, the lease.

use super::MemoryRepository;
use super::tables::{Context, LeaseRow, Tables};
use super::turns::{check_turn, enter_turn};
use crate::execution::JobExecution;
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::parameters::JobParameters;
use crate::repository::{Claim, ClaimError, ClaimRequest, JobState, Lease, Result, Target, rules};
use crate::status::BatchStatus;

/// The instance that a claim is for.
struct Claimed {
    instance: JobInstanceId,
    parameters: JobParameters,
    taken_over: Vec<JobExecutionId>,
    context: JobState,
}

impl MemoryRepository {
    /// Implements `JobStore::claim`.
    pub(super) fn claim_instance(&self, request: &ClaimRequest<'_>) -> Result<Claim, ClaimError> {
        let mut tables = self.alone();
        let parameters = request.parameters.clone();
        let claimed = match &request.target {
            Target::New => {
                // Before the first change, because nothing is rolled back here.
                check_turn(&tables, request, None)?;
                new_instance(&mut tables, request)
            }
            Target::Identified(key) => match tables.instance_with(request.job_name, key) {
                Some(instance) => self.next_execution(&mut tables, request, instance)?,
                None => {
                    check_turn(&tables, request, None)?;
                    Claimed {
                        instance: tables.insert_instance(request.job_name, key),
                        parameters,
                        taken_over: Vec::new(),
                        context: JobState::default(),
                    }
                }
            },
            Target::InstanceOf(id) => {
                let execution = tables
                    .executions
                    .get(id)
                    .ok_or(ClaimError::NoSuchExecution(*id))?;
                let instance = execution.row.instance_id;
                let newest = tables.newest(instance).map(|newest| &newest.row);
                if !rules::may_continue(request, *id, newest) {
                    return Err(ClaimError::TakenOver);
                }
                self.next_execution(&mut tables, request, instance)?
            }
        };
        Ok(self.begin_execution(&mut tables, request, claimed))
    }

    /// Checks that an instance may run again, and closes the executions whose lease is not held.
    fn next_execution(
        &self,
        tables: &mut Tables,
        request: &ClaimRequest<'_>,
        instance: JobInstanceId,
    ) -> Result<Claimed, ClaimError> {
        let newest = tables.newest(instance).map(|newest| newest.row.clone());
        let running = self.running_execution(tables, instance);
        let executions = || -> Result<_, ClaimError> {
            let all = tables.executions_of(instance);
            Ok(all.map(|one| (one.row.id, one.row.status)).collect())
        };
        if let Some(rejection) = rules::rejection(running, executions, newest.as_ref(), request.restartable)?
        {
            return Err(rejection);
        }
        let readable = readable_state(tables, instance, newest.as_ref());
        // Damage is recorded with the end of the dead executions, even while another instance has the turn.
        if readable.is_ok() {
            check_turn(tables, request, Some(instance))?;
        }
        let (context, unreadable) = match readable {
            Ok(context) => (context, None),
            Err(damage) => (JobState::default(), Some(damage)),
        };
        let cause = unreadable.as_ref().map(ToString::to_string);
        let taken_over = tables.close_open_executions(instance, self.now(), cause.as_deref());
        // A process that crashes loses the repository.
        if let Some(rejection) = rules::recorded_rejection(request, newest.as_ref(), 0, unreadable) {
            self.notify_of_closed(tables, &taken_over);
            return Err(rejection);
        }
        Ok(Claimed {
            instance,
            parameters: request.parameters.clone(),
            taken_over,
            context,
        })
    }

    /// Returns the rejection if the instance is running: its lease is held, or it was imported while it ran.
    pub(super) fn running_execution(&self, tables: &Tables, instance: JobInstanceId) -> Option<ClaimError> {
        if let Some(execution) = tables.held_for(instance) {
            let owner = self.owner.name().to_owned();
            return Some(ClaimError::Running { execution, owner });
        }
        let lease_is_for = tables.lease_of(instance).map(|lease| lease.execution);
        let newest = tables.newest(instance).map(|newest| &newest.row);
        rules::running_without_lease(newest, lease_is_for)
    }

    /// Inserts the execution and acquires the lease for it.
    fn begin_execution(
        &self,
        tables: &mut Tables,
        request: &ClaimRequest<'_>,
        mut claimed: Claimed,
    ) -> Claim {
        let now = self.now();
        let row = JobExecution {
            id: JobExecutionId(0),
            instance_id: claimed.instance,
            job_name: request.job_name.to_owned(),
            created: now,
            started: None,
            ended: None,
            last_updated: now,
            status: BatchStatus::Starting,
            exit_status: "UNKNOWN".into(),
            exit_message: String::new(),
            version: 0,
            configuration_location: Some(request.location.to_owned()),
        };
        let traceparent = request.traceparent.clone();
        let previous_traceparent = std::mem::replace(&mut claimed.context.traceparent, traceparent);
        let context = Some(Context::State(claimed.context));
        let is_first = tables.newest(claimed.instance).is_none();
        let id = tables.insert_execution(row.clone(), claimed.parameters, context);
        enter_turn(tables, request, id);
        let mut fence = 1;
        if let Some(instance) = tables.instances.get_mut(&claimed.instance) {
            fence += instance.lease.as_ref().map_or(0, |lease| lease.fence);
            instance.lease = Some(LeaseRow {
                execution: id,
                fence,
                is_held: true,
            });
        }
        let execution = JobExecution { id, ..row };
        self.notify_of_claim(tables, request, &execution, &claimed.taken_over);
        Claim {
            execution,
            lease: Lease {
                instance_id: claimed.instance,
                execution_id: id,
                fence,
                partition: None,
            },
            taken_over: claimed.taken_over,
            is_first,
            previous_traceparent,
        }
    }
}

/// Inserts a new instance. Its id is also the value of the run parameter, which makes its key unique.
fn new_instance(tables: &mut Tables, request: &ClaimRequest<'_>) -> Claimed {
    loop {
        let parameters = request.parameters.clone().for_start(tables.last.instance + 1);
        let key = parameters.job_key();
        // An imported instance may have the same key.
        if tables.instance_with(request.job_name, &key).is_some() {
            tables.last.instance += 1;
            continue;
        }
        return Claimed {
            instance: tables.insert_instance(request.job_name, &key),
            parameters,
            taken_over: Vec::new(),
            context: JobState::default(),
        };
    }
}

/// Returns the state that the next execution of an instance begins with, with the trace context of the newest one, if all that it resumes from can be read. An imported context
/// may be damaged.
// Spec: OP-35, REPO-69
fn readable_state(
    tables: &Tables,
    instance: JobInstanceId,
    newest: Option<&JobExecution>,
) -> Result<JobState> {
    let Some(newest) = newest else {
        return Ok(JobState::default());
    };
    let state = tables.job_state(newest.id)?;
    let mut names = std::collections::BTreeMap::new();
    for execution in tables.executions_of(instance) {
        let latest = execution
            .by_name
            .iter()
            .filter_map(|(name, ids)| Some((name, *ids.last()?)));
        names.extend(latest);
    }
    for latest in names.into_values() {
        tables.step_state(latest)?;
    }
    Ok(JobState {
        other_entries: state.kept_entries(),
        traceparent: state.traceparent,
        ..JobState::default()
    })
}
