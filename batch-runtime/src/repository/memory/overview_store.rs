//! Queries about many executions at once.

use std::collections::{BTreeMap, HashMap};

use super::MemoryRepository;
use crate::execution::{JobExecution, StepCounters, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::repository::{
    ExecutionFilter, Holder, HolderState, OperatorStore, OverviewStore, RepositorySize, Result,
};
use crate::status::BatchStatus;

impl OverviewStore for MemoryRepository {
    fn latest_executions(&self) -> Result<Vec<JobExecution>> {
        let tables = self.shared();
        let mut latest = BTreeMap::new();
        for execution in tables.executions.values() {
            latest.insert(&execution.row.job_name, &execution.row);
        }
        Ok(latest.into_values().cloned().collect())
    }

    fn latest_of_instances(
        &self,
        instances: &[JobInstanceId],
    ) -> Result<BTreeMap<JobInstanceId, JobExecutionId>> {
        let tables = self.shared();
        let latest = instances
            .iter()
            .filter_map(|instance| Some((*instance, tables.newest(*instance)?.row.id)));
        Ok(latest.collect())
    }

    fn holders(&self, instances: &[JobInstanceId]) -> Result<BTreeMap<JobInstanceId, Holder>> {
        let tables = self.shared();
        let holders = instances.iter().filter_map(|instance| {
            let lease = tables.lease_of(*instance)?;
            let owner = self.owner.name().to_owned();
            let state = match lease.is_held {
                true => HolderState::Alive,
                false => HolderState::Dead,
            };
            let execution = lease.execution;
            Some((
                *instance,
                Holder {
                    execution,
                    owner,
                    state,
                },
            ))
        });
        Ok(holders.collect())
    }

    fn waiting(&self) -> Result<BTreeMap<JobExecutionId, JobExecutionId>> {
        Ok(self.shared().waiting())
    }

    fn steps_of(
        &self,
        executions: &[JobExecutionId],
    ) -> Result<BTreeMap<JobExecutionId, Vec<StepExecution>>> {
        let mut found = BTreeMap::new();
        for execution in executions {
            let mut steps = self.step_executions(*execution)?;
            steps.retain(|step| !step.step_name.contains(':'));
            if !steps.is_empty() {
                found.insert(*execution, steps);
            }
        }
        Ok(found)
    }

    fn counters_of(
        &self,
        executions: &[JobExecutionId],
    ) -> Result<BTreeMap<JobExecutionId, Vec<(String, StepCounters)>>> {
        let mut found = BTreeMap::new();
        for execution in executions {
            let steps = self.step_executions(*execution)?.into_iter();
            let counters: Vec<_> = steps.map(|step| (step.step_name, step.counters)).collect();
            if !counters.is_empty() {
                found.insert(*execution, counters);
            }
        }
        Ok(found)
    }

    fn count_executions(&self, filter: &ExecutionFilter) -> Result<Vec<(BatchStatus, u64)>> {
        let all = ExecutionFilter {
            limit: None,
            ..filter.clone()
        };
        let mut counts: HashMap<BatchStatus, u64> = HashMap::new();
        for execution in self.find_executions(&all)? {
            *counts.entry(execution.status).or_default() += 1;
        }
        Ok(counts.into_iter().collect())
    }

    fn size(&self) -> Result<RepositorySize> {
        let tables = self.shared();
        let [job_instances, job_executions, step_executions] = [
            tables.instances.len(),
            tables.executions.len(),
            tables.executions.values().map(|found| found.steps.len()).sum(),
        ]
        .map(|count| count as u64);
        Ok(RepositorySize {
            job_instances,
            job_executions,
            step_executions,
        })
    }
}
