//! `start`, `launch` and `restart`: checks the whole definition first, and writes nothing if it is not valid.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use batch_xml::Diagnostic;

use super::definitions::{Wanted, find_dispatcher, rejecting};
use super::{JobOperator, JobOperatorError, Result, Shared, StartError};
use crate::deadline::Deadline;
use crate::dispatch::{DEFAULT_QUEUE, LOCAL};
use crate::engine::{BoundJob, Dispatch, JobRunner, Running, forget_partitions};
use crate::execution::JobExecution;
use crate::ids::{JobExecutionId, LaunchId};
use crate::observer::{JobEventKind, JobEvents, JobTrace, ObservedOuter, outer_of};
use crate::parameters::JobParameters;
use crate::repository::{Claim, ClaimError, ClaimRequest, DatabaseKind, Ending, RepositoryError, Target};
use crate::secret::Secrets;
use crate::status::BatchStatus;
use crate::thread;

/// A job whose definition is valid.
pub(super) struct Prepared {
    pub(super) job: BoundJob,
    pub(super) location: String,
    dispatch: Option<Dispatch>,
}

/// An instance that is to run, with the parameters of its execution.
pub(super) struct Wish {
    pub(super) target: Target,
    pub(super) parameters: JobParameters,
    pub(super) crash_limit: Option<u32>,
    /// The launch that this worker has taken.
    pub(super) launch: Option<LaunchId>,
}

impl Wish {
    pub(super) fn request<'a>(&self, prepared: &'a Prepared) -> ClaimRequest<'a> {
        ClaimRequest {
            job_name: &prepared.job.id,
            target: self.target.clone(),
            parameters: self.parameters.clone(),
            restartable: prepared.job.restartable,
            location: &prepared.location,
            crash_limit: self.crash_limit,
            launch: self.launch,
            concurrency: prepared.job.concurrency,
            deadline: prepared.job.deadline.clone(),
            traceparent: None,
        }
    }
}

impl JobOperator {
    /// Starts a new instance of a job, even if one with the same parameters exists, and returns while it runs.
    ///
    /// # Errors
    /// `NoSuchJob`, or `JobStart` with everything that is wrong with the job's definition or parameters.
    // Spec: OP-07 to OP-11, ID-03, D-56
    pub fn start(&self, job: &str, parameters: impl Into<JobParameters>) -> Result<JobExecutionId> {
        self.start_new(Wanted::Id(job), parameters.into())
    }

    /// Starts a new instance of the job in a file of the job path, as Jakarta Batch does: `file` is its name, with or without
    /// `.xml`, and the id of the job may differ from it. A restart of the execution uses the same file, even if other files have a
    /// job with the same id.
    ///
    /// # Errors
    /// `NoSuchJob` if there is no such file; else as [`JobOperator::start`].
    // Spec: JAK-36
    pub fn start_xml(&self, file: &str, parameters: impl Into<JobParameters>) -> Result<JobExecutionId> {
        self.start_new(Wanted::File(file), parameters.into())
    }

    fn start_new(&self, wanted: Wanted<'_>, parameters: JobParameters) -> Result<JobExecutionId> {
        let reject = rejecting(wanted.name());
        parameters
            .validate_for_launch(self.shared.repository.format().layout)
            .map_err(|error| reject(StartError::Parameter(error)))?;
        let prepared = self.prepare(wanted, &parameters, &parameters, &reject)?;
        let wish = Wish {
            target: Target::New,
            parameters,
            crash_limit: None,
            launch: None,
        };
        self.claim_and_run(prepared, wish, &reject)
    }

    /// Runs the instance that the job and its identifying parameters identify, and returns while it runs. The first launch
    /// creates the instance; a later one resumes it from its last checkpoint, also after its process was killed. Schedulers and
    /// containers that may be restarted call it.
    ///
    /// If the lease of a dead process has expired and its liveness cannot be checked, it watches the lease for a whole lease time
    /// before it takes the instance over.
    ///
    /// # Errors
    /// `JobExecutionAlreadyRunning`, `JobInstanceAlreadyComplete`; else as [`JobOperator::start`].
    // Spec: OP-36, D-56
    pub fn launch(&self, job: &str, parameters: impl Into<JobParameters>) -> Result<JobExecutionId> {
        let (prepared, wish) = self.prepare_launch(job, &parameters.into())?;
        self.claim_and_run(prepared, wish, &rejecting(job))
    }

    /// Checks a job, and finds the parameters of its instance.
    pub(super) fn prepare_launch(&self, job: &str, parameters: &JobParameters) -> Result<(Prepared, Wish)> {
        let reject = rejecting(job);
        parameters
            .validate_for_launch(self.shared.repository.format().layout)
            .map_err(|error| reject(StartError::Parameter(error)))?;
        let format = self.shared.repository.format();
        let key = parameters
            .job_key_in(format)
            .map_err(|error| reject(StartError::Parameter(error)))?;
        let effective = match self.shared.repository.find_instance(job, &key)? {
            Some(instance) => {
                let original = self.shared.repository.original_parameters(instance.id)?;
                // If the recorded parameters do not give the key, some of them were deleted.
                if original.job_key_in(format).ok().as_ref() != Some(&instance.job_key) {
                    parameters.clone()
                } else if original.same_identity(parameters) {
                    original.overlaid(parameters)
                } else {
                    // The key is a digest of an unescaped text, so other parameters may have the same key.
                    return Err(reject(StartError::SameKey {
                        instance: instance.id,
                    }));
                }
            }
            None => parameters.clone(),
        };
        let prepared = self.prepare(Wanted::Id(job), parameters, &effective, &reject)?;
        let wish = Wish {
            target: Target::Identified(key),
            parameters: effective,
            crash_limit: Some(self.shared.limits.crash_limit),
            launch: None,
        };
        Ok((prepared, wish))
    }

    /// Resumes the instance of a failed or stopped execution from its last checkpoint, and returns while it runs. `parameters`
    /// add to those that the instance was started with, and override them.
    ///
    /// If the lease of a dead process has expired and its liveness cannot be checked, it watches the lease for a whole lease time
    /// before it takes the instance over.
    ///
    /// # Errors
    /// `NoSuchJobExecution`, `NoSuchJob`, `JobInstanceAlreadyComplete`, or `JobRestart` with the reason; in the dialect of Jakarta
    /// Batch also `JobExecutionNotMostRecent`.
    // Spec: OP-12 to OP-16, RESTART-01 to RESTART-03, D-57, D-58
    pub fn restart(
        &self,
        execution: JobExecutionId,
        parameters: impl Into<JobParameters>,
    ) -> Result<JobExecutionId> {
        self.restart_within(execution, parameters.into(), None)
    }

    /// As `restart`, unless the instance has crashed more often than `crash_limit`.
    pub(super) fn restart_within(
        &self,
        execution: JobExecutionId,
        parameters: JobParameters,
        crash_limit: Option<u32>,
    ) -> Result<JobExecutionId> {
        let repository = &self.shared.repository;
        let earlier = repository
            .job_execution(execution)?
            .ok_or(JobOperatorError::NoSuchJobExecution(execution))?;
        let reject = |cause| JobOperatorError::JobRestart { execution, cause };
        parameters
            .validate_for_launch(self.shared.repository.format().layout)
            .map_err(|error| reject(StartError::Parameter(error)))?;
        let effective = repository
            .original_parameters(earlier.instance_id)?
            .overlaid(&parameters);
        let prepared = self.prepare(Wanted::of(&earlier), &parameters, &effective, &reject)?;
        if prepared.job.dialect.restarts_latest_execution_only() {
            self.require_latest(&earlier)?;
        }
        let wish = Wish {
            target: Target::InstanceOf(execution),
            parameters: effective,
            crash_limit,
            launch: None,
        };
        self.claim_and_run(prepared, wish, &reject)
    }

    /// Rejects an execution that another one of its instance follows.
    // Spec: JAK-39
    fn require_latest(&self, execution: &JobExecution) -> Result<()> {
        let all = self.shared.repository.job_executions(execution.instance_id)?;
        match all.iter().map(|execution| execution.id).max() {
            Some(latest) if latest != execution.id => Err(JobOperatorError::JobExecutionNotMostRecent {
                execution: execution.id,
                latest,
            }),
            _ => Ok(()),
        }
    }

    /// Checks a job as [`start`](Self::start) does, without starting it, and returns the warnings.
    ///
    /// # Errors
    /// As [`JobOperator::start`].
    pub fn check(&self, job: &str, parameters: impl Into<JobParameters>) -> Result<Vec<Diagnostic>> {
        self.shared.definitions.check(job, &parameters.into())
    }

    /// Finds, substitutes, validates and binds a job.
    // Spec: JSL-DOC-13, RESTART-03
    fn prepare(
        &self,
        wanted: Wanted<'_>,
        given: &JobParameters,
        effective: &JobParameters,
        reject: &dyn Fn(StartError) -> JobOperatorError,
    ) -> Result<Prepared> {
        let secrets =
            Secrets::read(effective.secrets()).map_err(|error| reject(StartError::Secret(error)))?;
        let definitions = &self.shared.definitions;
        let mut checked = definitions.bind(wanted, given, effective, secrets, reject)?;
        definitions.check_nested(&mut checked, reject)?;
        checked.log_warnings();
        if let Some(writer) = checked.bound.transactional_writer
            && self.shared.url.database() == DatabaseKind::Memory
        {
            return Err(reject(StartError::NoChunkTransaction { writer }));
        }
        let dispatch = self.dispatch(&checked.bound.job, wanted, effective, reject)?;
        Ok(Prepared {
            dispatch,
            job: checked.bound.job,
            location: checked.document.source().name().to_owned(),
        })
    }

    /// Returns what the partitions of the job need to run on workers; `None` if none of them does.
    fn dispatch(
        &self,
        job: &BoundJob,
        wanted: Wanted<'_>,
        parameters: &JobParameters,
        reject: &dyn Fn(StartError) -> JobOperatorError,
    ) -> Result<Option<Dispatch>> {
        let dispatchers = &self.shared.dispatchers;
        let mut is_remote = false;
        for partition in job.elements.partitions() {
            let name = find_dispatcher(dispatchers, partition.dispatcher.as_deref()).map_err(reject)?;
            if name != LOCAL {
                is_remote = true;
                let queue = partition.queue.as_deref().unwrap_or(DEFAULT_QUEUE);
                self.check_queue(queue)
                    .map_err(|problem| reject(StartError::Remote(problem)))?;
            }
        }
        Ok(match is_remote {
            false => None,
            true => Some(Dispatch {
                dispatchers: dispatchers.clone(),
                fingerprint: self.fingerprint(wanted, parameters)?,
                crash_limit: self.shared.limits.crash_limit,
            }),
        })
    }

    pub(super) fn claim_and_run(
        &self,
        prepared: Prepared,
        wish: Wish,
        reject: &dyn Fn(StartError) -> JobOperatorError,
    ) -> Result<JobExecutionId> {
        self.create_schema().map_err(reject)?;
        self.shared.warn_of_java_contexts();
        let restarting = matches!(wish.target, Target::InstanceOf(_));
        let job_name = prepared.job.id.clone();
        let request = ClaimRequest {
            traceparent: self.shared.observers.trace_job(&job_name),
            ..wish.request(&prepared)
        };
        let (asked, claim) = loop {
            let asked = Instant::now();
            match self.shared.repository.claim(&request) {
                Err(ClaimError::Running { execution, .. }) if self.await_certainty(execution)? => {}
                Err(ClaimError::NotItsTurn { execution }) if self.pass_turn(execution)? => {}
                claim => break (asked, claim),
            }
        };
        // A rejected claim may have closed an execution too.
        self.shared.notifications.wake();
        if let Err(ClaimError::CrashLoop { execution, .. }) = &claim {
            self.shared.observe_closed(&[*execution]);
        }
        let claim = claim.map_err(|error| match error {
            ClaimError::Running { execution, owner } if restarting => {
                reject(StartError::Running { execution, owner })
            }
            other => self.rejection(&job_name, other, reject),
        })?;
        self.note_takeover(&claim);
        self.shared.observe_claim(&claim);
        if let Some(Deadline::At(deadline)) = &prepared.job.deadline
            && *deadline <= claim.execution.created
        {
            tracing::warn!(execution = %claim.execution.id, "the deadline of the job, {deadline}, is in the past: it is overdue");
        }
        let trace = JobTrace {
            context: request.traceparent,
            previous: claim.previous_traceparent.clone(),
        };
        let outer = match self.shared.observers.are_any() {
            true => outer_of(&*self.shared.repository, &wish.parameters),
            false => None,
        };
        self.run(prepared, claim, trace, outer, asked)
            .map_err(|error| reject(StartError::Thread(error)))
    }

    /// Explains why an instance cannot be run.
    pub(super) fn rejection(
        &self,
        job: &str,
        error: ClaimError,
        reject: &dyn Fn(StartError) -> JobOperatorError,
    ) -> JobOperatorError {
        match error {
            ClaimError::Running { execution, owner } => JobOperatorError::JobExecutionAlreadyRunning {
                job: job.to_owned(),
                execution,
                owner,
            },
            ClaimError::Complete { execution } => JobOperatorError::JobInstanceAlreadyComplete {
                job: job.to_owned(),
                execution,
            },
            ClaimError::NotRestartable { execution } => reject(StartError::NotRestartable { execution }),
            ClaimError::Abandoned { execution } => JobOperatorError::JobInstanceAbandoned {
                job: job.to_owned(),
                execution,
            },
            ClaimError::UnknownStatus { execution } => reject(StartError::UnknownStatus { execution }),
            ClaimError::CrashLoop { execution, crashes } => reject(StartError::CrashLoop {
                execution,
                crashes,
                place: self.place_of(execution),
            }),
            ClaimError::NotItsTurn { execution } => reject(StartError::OneAtATime { execution }),
            ClaimError::TakenOver => reject(StartError::TakenOver),
            ClaimError::NoSuchExecution(id) => JobOperatorError::NoSuchJobExecution(id),
            ClaimError::Repository(error) => error.into(),
        }
    }

    /// Closes an execution that has the turn of its job, if its process is dead. Returns whether the turn may be free.
    // Spec: TURN-02
    fn pass_turn(&self, execution: JobExecutionId) -> Result<bool> {
        self.await_certainty(execution)?;
        let closed = self.shared.repository.pass_turn(execution)?;
        let dead = closed.as_deref().unwrap_or_default();
        for dead in dead {
            tracing::warn!(execution = %dead, "closed an execution whose owner is dead, which had the turn of the job");
        }
        self.shared.observe_closed(dead);
        forget_partitions(&*self.shared.repository, dead);
        Ok(closed.is_some())
    }

    fn note_takeover(&self, claim: &Claim) {
        for dead in &claim.taken_over {
            tracing::warn!(execution = %dead, by = %claim.execution.id, "took over an execution whose owner is dead");
        }
        forget_partitions(&*self.shared.repository, &claim.taken_over);
    }

    /// Describes where an execution was when its process died.
    fn place_of(&self, execution: JobExecutionId) -> String {
        match self.shared.repository.step_executions(execution) {
            Ok(steps) => steps.last().map_or_else(
                || "before its first step".to_owned(),
                |step| {
                    let (reads, commits) = (step.counters.reads, step.counters.commits);
                    format!(
                        "in step `{}` after {reads} items and {commits} commits",
                        step.step_name
                    )
                },
            ),
            Err(error) => format!("at an unknown place ({error})"),
        }
    }

    fn run(
        &self,
        prepared: Prepared,
        claim: Claim,
        trace: JobTrace,
        outer: Option<Box<ObservedOuter>>,
        asked: Instant,
    ) -> std::io::Result<JobExecutionId> {
        let repository = Arc::clone(&self.shared.repository);
        let job = &claim.execution.job_name;
        let events = JobEvents::new(&self.shared.observers, job, &claim.lease, trace, outer);
        for dead in &claim.taken_over {
            events.emit(JobEventKind::TookOver { dead: *dead });
        }
        let running = Arc::new(Running::new(claim.lease, repository.lease_time(), asked, events));
        let id = claim.execution.id;
        self.shared.running().insert(id, Arc::clone(&running));
        let runner = JobRunner {
            job: prepared.job,
            dispatch: prepared.dispatch,
            is_first: claim.is_first,
            execution: claim.execution.clone(),
            repository,
            running: Arc::clone(&running),
            partition_threads: self.shared.limits.partition_threads,
            runtime: Shared::as_runtime(&self.shared),
        };
        let shared = Arc::clone(&self.shared);
        let body = move || {
            let async_runtime = shared.async_runtime.clone();
            let _entered = async_runtime.enter();
            let _guard = running.end_guard();
            let result = run_to_end(runner, &shared);
            // A waiting thread may exit the process, so the runtime is dropped before it is notified.
            drop(shared);
            running.set_ended(result);
        };
        if let Err(error) = thread::start(format!("batch-job-{id}"), body) {
            self.shared.running().remove(&id);
            let ending = Ending {
                status: BatchStatus::Failed,
                exit_status: BatchStatus::Failed.to_string(),
                message: error.to_string(),
                restart: None,
            };
            let mut execution = claim.execution;
            if let Err(unrecorded) = self
                .shared
                .repository
                .end_job(&claim.lease, &mut execution, &ending)
            {
                tracing::error!(execution = %id, error = %unrecorded, "cannot record the failed start");
            }
            return Err(error);
        }
        Ok(id)
    }
}

/// The body of a job's thread. Fails if the end could not be recorded.
fn run_to_end(runner: JobRunner, shared: &Shared) -> std::result::Result<(), String> {
    let running = Arc::clone(&runner.running);
    let id = running.lease.execution_id;
    // A panic of the runtime itself must not leave waiting threads blocked.
    let result = catch_unwind(AssertUnwindSafe(|| runner.run())).unwrap_or(Err(RepositoryError::Fault));
    if let Ok(execution) = &result {
        shared.callbacks.job_ended(execution);
    }
    // An execution whose end could not be recorded stays, so that `wait` returns the reason.
    if result.is_ok() {
        shared.running().remove(&id);
    }
    result.map(drop).map_err(|error| {
        tracing::error!(execution = %id, %error, "cannot record the end of the execution");
        let cause = error.to_string();
        running.announce_no_stop();
        running.events.emit(JobEventKind::JobLost { cause });
        // So the next launch need not wait until the lease expires.
        shared.release_lease(running.release());
        error.to_string()
    })
}
