//! Reads job instances, executions and steps from the repository.

use std::collections::{BTreeMap, BTreeSet};

use super::{Definitions, JobOperator, JobOperatorError, Result};
use crate::execution::{JobExecution, JobInstance, StepExecution, StepTotal};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::job_data::PersistentData;
use crate::job_path::JobPathReport;
use crate::parameters::JobParameters;
use crate::repository::{ExecutionFilter, HolderState, RepositoryConnection, RepositoryUrl, rules};
use crate::status::BatchStatus;

impl JobOperator {
    /// Returns the ids of all jobs on the job path and in the repository.
    ///
    /// # Errors
    /// When the repository fails.
    // Spec: OP-21
    pub fn job_names(&self) -> Result<BTreeSet<String>> {
        self.shared.definitions.job_path.look_for_new_files();
        let mut names = self.shared.definitions.job_path.jobs();
        names.extend(self.shared.repository.job_names()?);
        Ok(names)
    }

    /// Returns the execution that this one waits for, because executions of its job run one at a time; `None` if it does not wait.
    ///
    /// # Errors
    /// When the repository fails.
    // Spec: TURN-03
    pub fn waits_for(&self, execution: JobExecutionId) -> Result<Option<JobExecutionId>> {
        Ok(self.shared.repository.waits_for(execution)?)
    }

    /// Returns the persistent data of a job execution, which its artifacts have stored by
    /// [`JobContext::set_persistent_data`](crate::context::JobContext::set_persistent_data); empty if the repository has no such execution.
    ///
    /// # Errors
    /// When the repository fails, or the context of the execution cannot be read.
    // Spec: DATA-02
    pub fn persistent_data(&self, execution: JobExecutionId) -> Result<PersistentData> {
        let state = self.shared.repository.job_state(execution)?;
        Ok(PersistentData::new(state.unwrap_or_default().other_entries))
    }

    /// Returns the URL of the repository, which displays without its password.
    pub fn repository_url(&self) -> &RepositoryUrl {
        &self.shared.url
    }

    /// Opens a new connection to the database of the repository, such as for a test or a report. It takes part in no chunk
    /// transaction.
    ///
    /// # Errors
    /// When the database cannot be opened.
    pub fn connect(&self) -> Result<RepositoryConnection> {
        Ok(self.shared.repository.connector().connect()?)
    }

    /// Reads the job path again and returns what is there.
    pub fn job_path(&self) -> JobPathReport {
        self.shared.definitions.job_path()
    }

    /// Returns the number of instances of a job; 0 if it was never started.
    ///
    /// # Errors
    /// `NoSuchJob`.
    // Spec: OP-03
    pub fn job_instance_count(&self, job: &str) -> Result<i64> {
        self.require_known(job)?;
        Ok(self.shared.repository.instance_count(job)?)
    }

    /// Returns instances of a job, newest first: at most `count` from position `start`, which counts from 0. Past the end
    /// there are none.
    ///
    /// # Errors
    /// `NoSuchJob`.
    // Spec: OP-04
    pub fn job_instances(&self, job: &str, start: u32, count: u32) -> Result<Vec<JobInstance>> {
        self.require_known(job)?;
        Ok(self
            .shared
            .repository
            .instances(job, start.into(), count.into())?)
    }

    /// Returns an instance; `None` if there is no such instance.
    ///
    /// # Errors
    /// When the repository fails.
    // Spec: OP-22
    pub fn job_instance(&self, instance: JobInstanceId) -> Result<Option<JobInstance>> {
        Ok(self.shared.repository.instance(instance)?)
    }

    /// Returns an instance's executions, newest first.
    ///
    /// # Errors
    /// `NoSuchJobInstance`.
    // Spec: OP-02, OP-23
    pub fn job_executions(&self, instance: JobInstanceId) -> Result<Vec<JobExecution>> {
        let executions = self.shared.repository.job_executions(instance)?;
        // An instance without executions is rare: a program of another kind left it.
        if executions.is_empty() && self.shared.repository.instance(instance)?.is_none() {
            return Err(JobOperatorError::NoSuchJobInstance(instance));
        }
        Ok(executions)
    }

    /// Returns an execution; `None` if there is no such execution.
    ///
    /// # Errors
    /// When the repository fails.
    // Spec: OP-24
    pub fn job_execution(&self, execution: JobExecutionId) -> Result<Option<JobExecution>> {
        Ok(self.shared.repository.job_execution(execution)?)
    }

    /// Returns the executions of all jobs that match `filter`, newest first.
    ///
    /// # Errors
    /// When the repository fails.
    pub fn find_executions(&self, filter: &ExecutionFilter) -> Result<Vec<JobExecution>> {
        Ok(self.shared.repository.find_executions(filter)?)
    }

    /// Summarizes an execution in one line: name, statuses, times.
    ///
    /// # Errors
    /// `NoSuchJobExecution`.
    // Spec: OP-19
    pub fn summary(&self, execution: JobExecutionId) -> Result<String> {
        let found = self.shared.repository.job_execution(execution)?;
        found
            .map(|found| found.to_string())
            .ok_or(JobOperatorError::NoSuchJobExecution(execution))
    }

    /// Summarizes each step execution of a job execution in one line: name, statuses, times, counters.
    ///
    /// # Errors
    /// `NoSuchJobExecution`.
    // Spec: OP-20
    pub fn step_execution_summaries(
        &self,
        execution: JobExecutionId,
    ) -> Result<BTreeMap<StepExecutionId, String>> {
        let steps = self.step_executions(execution)?;
        Ok(steps
            .into_iter()
            .map(|step| (step.id, step.to_string()))
            .collect())
    }

    /// Returns the totals of the steps of a job instance up to an execution, in the order of their first start: for each step, the sums
    /// over this execution and the earlier ones since the step last completed. A step that this execution skipped as complete keeps its
    /// totals at completion.
    ///
    /// # Errors
    /// `NoSuchJobExecution`.
    pub fn step_totals(&self, execution: JobExecutionId) -> Result<Vec<StepTotal>> {
        let repository = &self.shared.repository;
        let this = repository
            .job_execution(execution)?
            .ok_or(JobOperatorError::NoSuchJobExecution(execution))?;
        let mut executions = repository.job_executions(this.instance_id)?;
        executions.retain(|earlier| earlier.id <= execution);
        executions.sort_unstable_by_key(|execution| execution.id);
        let mut totals: BTreeMap<String, (StepTotal, bool)> = BTreeMap::new();
        let mut order = Vec::new();
        for execution in &executions {
            for step in &repository.step_executions(execution.id)? {
                let (total, is_complete) = totals.entry(step.step_name.clone()).or_insert_with(|| {
                    order.push(step.step_name.clone());
                    (StepTotal::new(&step.step_name), false)
                });
                if *is_complete {
                    *total = StepTotal::new(&step.step_name);
                }
                total.add(step);
                *is_complete = step.status == BatchStatus::Completed;
            }
        }
        let shown = order.iter().filter_map(|step| totals.remove(step));
        Ok(shown.map(|(total, _)| total).collect())
    }

    /// Returns a step execution of a job execution; `None` if there is no such step execution.
    ///
    /// # Errors
    /// When the repository fails.
    // Spec: OP-25
    pub fn step_execution(
        &self,
        job: JobExecutionId,
        step: StepExecutionId,
    ) -> Result<Option<StepExecution>> {
        let steps = self.with_user_data(job)?;
        Ok(steps.into_iter().find(|found| found.id == step))
    }

    /// Returns the instances of a job with an execution that has not ended; none for an unknown job.
    ///
    /// # Errors
    /// When the repository fails.
    // Spec: OP-26
    pub fn running_job_instances(&self, job: &str) -> Result<Vec<JobInstance>> {
        let running = self.open_executions(job)?;
        let ids: BTreeSet<JobInstanceId> = running.iter().map(|execution| execution.instance_id).collect();
        let instances = ids
            .into_iter()
            .filter_map(|id| self.shared.repository.instance(id).transpose());
        Ok(instances.collect::<std::result::Result<_, _>>()?)
    }

    /// Returns the ids of the executions of a job that have not ended, newest first.
    ///
    /// # Errors
    /// `NoSuchJob`.
    // Spec: OP-05
    pub fn running_executions(&self, job: &str) -> Result<Vec<JobExecutionId>> {
        self.require_known(job)?;
        let running = self.open_executions(job)?.into_iter();
        Ok(running.map(|execution| execution.id).collect())
    }

    fn open_executions(&self, job: &str) -> Result<Vec<JobExecution>> {
        let open = ExecutionFilter {
            job: Some(job.to_owned()),
            statuses: rules::OPEN.to_vec(),
            ..ExecutionFilter::default()
        };
        Ok(self.shared.repository.find_executions(&open)?)
    }

    /// Returns the parameters of an execution; after a restart, the effective ones.
    ///
    /// # Errors
    /// `NoSuchJobExecution`.
    // Spec: OP-06
    pub fn parameters(&self, execution: JobExecutionId) -> Result<JobParameters> {
        self.require_execution(execution)?;
        Ok(self.shared.repository.parameters(execution)?.without_run_id())
    }

    /// Returns the exit code of a process whose job ended with these statuses: the one that the job's property
    /// `batch.exit.codes` maps the exit status to, such as `NOTHING TO DO=5, *SKIPS=4` (patterns as in `on`; the first that
    /// matches wins), else [`BatchStatus::exit_code`](crate::BatchStatus::exit_code).
    ///
    /// # Errors
    /// When the repository fails.
    pub fn exit_code(&self, ended: &JobExecution) -> Result<u8> {
        let parameters = self.parameters(ended.id)?;
        let codes = self.shared.definitions.exit_codes(ended, &parameters);
        Ok(codes.of(ended.status, &ended.exit_status))
    }

    /// Returns the step executions of a job execution, in the order of their start.
    ///
    /// # Errors
    /// `NoSuchJobExecution`.
    pub fn step_executions(&self, execution: JobExecutionId) -> Result<Vec<StepExecution>> {
        self.require_execution(execution)?;
        self.with_user_data(execution)
    }

    fn with_user_data(&self, execution: JobExecutionId) -> Result<Vec<StepExecution>> {
        let repository = &self.shared.repository;
        let mut steps = repository.step_executions(execution)?;
        let mut data = repository.user_data(execution)?;
        for step in &mut steps {
            step.user_data = data.remove(&step.id);
        }
        Ok(steps)
    }

    /// Reports whether an execution has not ended and its process is alive, as far as can be seen at once: if its process runs
    /// on another host, whether its lease has not expired. If it has not ended and its process is dead, the next launch or
    /// restart of its instance resumes it.
    ///
    /// # Errors
    /// When the repository fails.
    pub fn is_alive(&self, execution: JobExecutionId) -> Result<bool> {
        Ok(self.shared.repository.holder_state(execution)? == Some(HolderState::Alive))
    }

    fn require_execution(&self, execution: JobExecutionId) -> Result<()> {
        match self.shared.repository.job_execution(execution)? {
            Some(_) => Ok(()),
            None => Err(JobOperatorError::NoSuchJobExecution(execution)),
        }
    }

    // Spec: OP-32
    fn require_known(&self, job: &str) -> Result<()> {
        self.shared.definitions.job_path.look_for_new_files();
        if self.shared.definitions.job_path.jobs().contains(job)
            || self.shared.repository.instance_count(job)? > 0
        {
            return Ok(());
        }
        Err(JobOperatorError::NoSuchJob {
            job: job.to_owned(),
            help: String::new(),
        })
    }

    /// Returns the jobs and artifacts of this runtime, to check, explain and draw jobs.
    pub fn definitions(&self) -> &Definitions {
        &self.shared.definitions
    }
}
