//! The operations of the runners of jobs and steps.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::execution::{JobExecution, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::repository::{
    ChunkCommit, ChunkTransaction, Claim, ClaimError, ClaimRequest, Connector, DataChanges, ElementState,
    EndOfStep, Ending, Inserted, KeptState, Lease, NewStepExecution, RepositoryFormat, Result, SideWrites,
    Signals, StepHistory, StepState, TurnOutcome,
};

/// The operations of the runner of a job execution, and of the keeper of its lease.
pub(crate) trait JobStore: Send + Sync {
    /// Creates an execution: instance (if new), execution, parameters, job context and lease, together. Closes the
    /// executions of the instance whose owner is dead first. A crash afterwards leaves an execution STARTING whose owner
    /// is dead: the next claim takes it over.
    // Spec: REPO-86, OP-34, OP-35
    fn claim(&self, request: &ClaimRequest<'_>) -> Result<Claim, ClaimError>;

    /// Takes the turn of a job whose executions run one at a time, unless another execution has it or waits longer. Closes the execution
    /// of a dead owner that has the turn. The end of the execution gives it to the next. A crash afterwards leaves an execution with the
    /// turn whose owner is dead, which the next one closes.
    // Spec: TURN-02
    fn take_turn(&self, lease: &Lease, job_name: &str) -> Result<TurnOutcome>;

    /// Closes an execution that has the turn of its job if its owner is dead. Returns what was closed; `None` if the owner is alive.
    // Spec: TURN-02
    fn pass_turn(&self, execution: JobExecutionId) -> Result<Option<Vec<JobExecutionId>>>;

    /// Changes STARTING to STARTED. Returns `false` if a stop was requested first; `execution` then shows STOPPING.
    fn begin_job(&self, lease: &Lease, execution: &mut JobExecution) -> Result<bool>;

    /// Writes the end of a job execution and releases the lease. Returns `false`, and writes nothing, if a stop was
    /// requested that the runner does not know of; `execution` then shows STOPPING. A crash before it leaves an execution
    /// that the next claim closes; its steps keep what they have recorded.
    fn end_job(&self, lease: &Lease, execution: &mut JobExecution, ending: &Ending) -> Result<bool>;

    /// Returns what the executions of an instance have left for the one that runs.
    // Spec: RESTART-04
    fn kept_state(&self, lease: &Lease) -> Result<KeptState>;

    /// Changes the data of a job execution, outside of its steps. A crash before it leaves the data as it was.
    // Spec: DATA-01
    fn save_job_data(&self, lease: &Lease, changes: &DataChanges) -> Result<()>;

    /// Stores the state of one parallel element with this execution. A crash before it leaves the state stored before.
    fn save_element_state(&self, lease: &Lease, element: &str, state: &ElementState) -> Result<()>;

    /// Extends a lease. Returns `false` if it is lost.
    fn renew_lease(&self, lease: &Lease) -> Result<bool>;

    /// Releases a lease without an end of the execution: the next claim closes the execution at once.
    fn release_lease(&self, lease: &Lease) -> Result<()>;

    /// Records why the process of this runtime is about to end while it runs executions: closing them adds it to their exit
    /// messages. A crash before it leaves executions without a cause.
    fn record_exit(&self, cause: &str) -> Result<()> {
        // A repository in memory ends with the process.
        let _ = cause;
        Ok(())
    }

    /// Releases what shows other runtimes that this one is alive. It claims nothing afterwards.
    fn close(&self) {}

    /// Returns how long a lease lasts.
    fn lease_time(&self) -> Duration;

    /// Returns the name of this process as an owner of leases.
    fn owner_name(&self) -> &str;

    /// Returns which of these job executions and partitions are requested to stop.
    fn signals(&self, executions: &[JobExecutionId], partitions: &[StepExecutionId]) -> Result<Signals>;

    /// Returns the source of connections for artifacts.
    fn connector(&self) -> Connector;

    /// Returns how it identifies instances and cuts texts.
    fn format(&self) -> &RepositoryFormat;
}

/// The operations of the runner of a step or partition.
pub(crate) trait StepStore: Send + Sync {
    /// Returns the earlier executions of a step. With `since`, ignores earlier job executions, except in the number of
    /// starts.
    fn step_history(
        &self,
        instance: JobInstanceId,
        step_name: &str,
        since: Option<i64>,
    ) -> Result<StepHistory>;

    /// Reads the history of a step and, if `decide` returns a state for it, inserts its execution with that state as its context, in one
    /// transaction. `decide` may be called again, must not use the repository, and returns nothing for a step that this job execution has
    /// already. A crash of the process afterwards counts as a start of the step; after a loss of power the row may be missing.
    fn insert_step(
        &self,
        lease: &Lease,
        new: &NewStepExecution<'_>,
        decide: &dyn Fn(&StepHistory) -> Option<StepState>,
    ) -> Result<Inserted>;

    /// Changes STARTING to STARTED, by VERSION. A call that is repeated after a lost connection recognizes its own change. A crash
    /// afterwards leaves a STARTED row, which the next claim closes.
    fn begin_step(&self, step: &mut StepExecution) -> Result<()>;

    /// Inserts the executions of many partitions that have never run, as STARTING, by few statements.
    fn create_partitions(&self, lease: &Lease, names: &[String]) -> Result<Vec<StepExecution>>;

    /// Returns the names that the instance has step executions of.
    fn names_with_history(&self, instance: JobInstanceId, names: &[String]) -> Result<BTreeSet<String>>;

    /// Returns step executions with their stored states; none for an unknown id.
    fn steps(&self, ids: &[StepExecutionId]) -> Result<Vec<(StepExecution, StepState)>>;

    /// Returns the latest step execution of a job execution.
    fn latest_step(&self, execution: JobExecutionId) -> Result<Option<StepExecutionId>>;

    /// Returns a step execution and its stored state.
    fn step(&self, id: StepExecutionId) -> Result<Option<(StepExecution, StepState)>> {
        Ok(self.steps(&[id])?.pop())
    }

    /// Returns a transaction for a chunk. Writes nothing yet.
    fn begin_chunk(&self) -> ChunkTransaction;

    /// Commits a chunk: what the writer wrote through `tx`, and all of `commit`, together. Any error rolls everything back. VERSION grows by
    /// one, with the end of the step execution by two. After a crash before the commit the chunk is processed again; after the commit of
    /// an end, the step execution is complete.
    // Spec: CHUNK-LOOP-12, REPO-62, D-107
    fn commit_chunk(
        &self,
        tx: &mut ChunkTransaction,
        step: &mut StepExecution,
        commit: ChunkCommit<'_>,
    ) -> Result<()>;

    /// Writes the end of a step execution with its counters, its state if given, and `side_writes`. If it is the partition
    /// that the lease is for, releases that lease. In the same transaction, makes the row of the next partition STARTED, if neither row
    /// has changed meanwhile.
    fn end_step(
        &self,
        lease: &Lease,
        step: &mut StepExecution,
        end: EndOfStep<'_>,
        state: Option<&StepState>,
        side_writes: &SideWrites,
    ) -> Result<()>;
}
