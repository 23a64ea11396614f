//! The context of a job.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::element::{ElementState, ShowsStop, element_methods, lock, shows_stop};
use crate::checkpoint::UserDataError;
use crate::context_gate;
use crate::error::BatchError;
use crate::execution::{Metric, MetricName};
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::job_data::JobData;
use crate::repository::{Connector, RepositoryConnection, RepositoryError};
use crate::status::BatchStatus;

/// The context of a running job.
// Spec: CTX-06, CTX-13 to CTX-19
#[derive(Clone)]
pub struct JobContext(Arc<JobShared>);

struct JobShared {
    id: String,
    instance_id: JobInstanceId,
    execution_id: JobExecutionId,
    properties: BTreeMap<String, String>,
    began: Instant,
    connector: Connector,
    data: JobData,
    runtime: RuntimeRef,
    element: Mutex<ElementState>,
}

/// The runtime that runs a job. Contexts do not know its type, and do not keep it.
pub(crate) type RuntimeRef = Weak<dyn Any + Send + Sync>;

impl JobContext {
    pub(crate) fn new(
        id: &str,
        instance_id: JobInstanceId,
        execution_id: JobExecutionId,
        properties: BTreeMap<String, String>,
        connector: Connector,
        data: JobData,
        runtime: RuntimeRef,
    ) -> Self {
        Self(Arc::new(JobShared {
            id: id.to_owned(),
            instance_id,
            execution_id,
            properties,
            began: Instant::now(),
            connector,
            data,
            runtime,
            element: Mutex::default(),
        }))
    }

    /// Returns the job's id in its Job XML.
    // Spec: CTX-13
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Returns the job's name, which is its id.
    // Spec: CTX-13
    pub fn name(&self) -> &str {
        self.id()
    }

    /// Returns the unique name of the execution, `{JobId}:{InstanceId}:{ExecutionId}`.
    // Spec: ID-01
    pub fn execution_name(&self) -> String {
        format!("{}:{}:{}", self.0.id, self.0.instance_id, self.0.execution_id)
    }

    /// Returns the id of the job instance.
    pub fn instance_id(&self) -> JobInstanceId {
        self.0.instance_id
    }

    /// Returns the id of the job execution.
    pub fn execution_id(&self) -> JobExecutionId {
        self.0.execution_id
    }

    /// Returns the job-level properties with their effective values.
    // Spec: CTX-14
    pub fn properties(&self) -> &BTreeMap<String, String> {
        &self.0.properties
    }

    /// Returns the job-level metrics: the elapsed time.
    // Spec: CTX-19
    pub fn metrics(&self) -> Vec<Metric> {
        let elapsed = i64::try_from(self.0.began.elapsed().as_millis()).unwrap_or(i64::MAX);
        vec![Metric {
            name: MetricName::ElapsedMillis,
            value: elapsed,
        }]
    }

    /// Opens a new connection to the database of the job repository, for artifacts that keep their data there. It is
    /// *not* part of the chunk transaction; writers take a `ChunkTransaction` for that.
    ///
    /// # Errors
    /// When the database cannot be opened.
    pub fn connect(&self) -> Result<RepositoryConnection, RepositoryError> {
        self.0.connector.connect()
    }

    /// Returns the URL of the job repository, with `***` in place of its password.
    pub fn repository_url(&self) -> String {
        self.0.connector.url()
    }

    /// Returns a value of the persistent data of the job, which an artifact has stored by
    /// [`set_persistent_data`](Self::set_persistent_data) in this or an earlier execution of the instance, or which Spring Batch has stored
    /// in the execution context of the job; `None` if nothing has this name. The changes of this step, or flow of a split, that are not
    /// committed yet are included.
    ///
    /// # Errors
    /// If the value has another type.
    // Spec: DATA-01
    pub fn persistent_data<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, UserDataError> {
        let _ = context_gate::wait();
        self.0.data.get(name)
    }

    /// Stores a value for later steps, deciders and executions of the instance. It is committed with the chunk that stores it, or else with
    /// the end of the step; what a rolled back chunk has stored is undone. What job listeners and deciders store is committed when they
    /// have returned.
    ///
    /// A value that is `null` in JSON, such as `None`, removes the entry, because Spring Batch has no such values.
    ///
    /// The value is stored as an entry of the execution context of the job that Spring Batch can read: an `i64` as `Long`, an `i32` as
    /// `Integer`, a sequence as `ArrayList`, a struct or map as `HashMap`. Its JSON has at most 1 MiB.
    ///
    /// Processors that run on several threads (`batch.chunk.processors`) share the data: between a read and a write of one, another one may
    /// store a value, which is lost. Count in the reader or writer instead.
    ///
    /// # Errors
    /// In a partition, which cannot change the data of the job; if the name is empty, `@class`, or begins with `batch.`; if the value cannot
    /// be stored as JSON with Java types, for example because of a number of more than 64 bits, or is too large.
    // Spec: DATA-01, DATA-03
    pub fn set_persistent_data<T: Serialize + ?Sized>(
        &self,
        name: &str,
        value: &T,
    ) -> Result<(), BatchError> {
        let stored = self.0.data.encode(name, value)?;
        if context_gate::wait() {
            self.0.data.change(name, stored);
        }
        Ok(())
    }

    /// Removes a value, as [`set_persistent_data`](Self::set_persistent_data) stores one.
    ///
    /// # Errors
    /// In a partition, and if the name is reserved.
    pub fn remove_persistent_data(&self, name: &str) -> Result<(), BatchError> {
        self.0.data.check(name)?;
        if context_gate::wait() {
            self.0.data.change(name, None);
        }
        Ok(())
    }

    pub(crate) fn runtime(&self) -> &RuntimeRef {
        &self.0.runtime
    }

    pub(crate) fn data(&self) -> &JobData {
        &self.0.data
    }

    /// Returns the context of a subjob: the job's context without the data that artifacts stored in it. A partition cannot change the
    /// persistent data.
    // Spec: CTX-06, D-67, DATA-01
    pub(crate) fn for_subjob(&self, is_partition: bool) -> Self {
        let job = &self.0;
        let element = ElementState {
            batch_status: self.batch_status(),
            ..ElementState::default()
        };
        Self(Arc::new(JobShared {
            id: job.id.clone(),
            instance_id: job.instance_id,
            execution_id: job.execution_id,
            properties: job.properties.clone(),
            began: job.began,
            connector: job.connector.clone(),
            data: job.data.for_subjob(is_partition),
            runtime: job.runtime.clone(),
            element: Mutex::new(element),
        }))
    }

    element_methods!("job");
}

impl fmt::Debug for JobContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobContext({})", self.name())
    }
}

shows_stop!(JobContext);
