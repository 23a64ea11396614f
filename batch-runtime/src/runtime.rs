//! `BatchRuntime`: the repository, the job path, the artifacts and the running executions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use batch_xml::JobXmlErrors;
use crossbeam::channel::bounded;
use tracing::subscriber::NoSubscriber;

use crate::Dialect;
use crate::artifact::BatchArtifactLoader;
use crate::async_runtime::AsyncRuntime;
use crate::build_error::BuildError;
use crate::clock::{Clock, SystemClock};
use crate::dispatch::{
    CUSTOM, Dispatchers, PartitionDispatcher, PartitionTicket, PartitionTransport, REPOSITORY,
    RepositoryTransport,
};
use crate::ids::JobExecutionId;
use crate::job_path::{JobFiles, JobPath};
use crate::keeper::keep;
use crate::loader::{ArtifactSources, Artifacts};
use crate::named_database::NamedDatabase;
use crate::notify::{NotificationObserver, NotificationRules, NotificationTarget, Senders};
use crate::observer::{JobObserver, Observers};
use crate::operator::{
    CheckReport, ClaimPartitionError, Definitions, JobOperator, JobOperatorError, Limits, PartitionRun,
    Schema, Shared, SharedSettings, Wanted, check_targets,
};
use crate::parameters::JobParameters;
use crate::repository::{self, DatabaseKind, RepositoryConfig, RepositoryUrl};
use crate::system_properties;
use crate::thread;
use crate::time_zone::TimeZone;

/// A batch runtime: one repository, one job path, and the artifacts of all linked crates.
///
/// Cheap to clone. The runtime holds the leases of its executions as long as a clone, its operator or an execution lives.
///
/// ```
/// use batch_runtime::BatchRuntime;
/// let runtime = BatchRuntime::builder().repository("sqlite://:memory:").build()?;
/// assert!(runtime.job_operator().job_names()?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct BatchRuntime {
    shared: Arc<Shared>,
}

impl BatchRuntime {
    /// Returns a builder with the default configuration.
    pub fn builder() -> BatchRuntimeBuilder {
        BatchRuntimeBuilder::default()
    }

    /// Returns the runtime of this process, with the defaults of [`builder`](Self::builder). The first call builds it; later
    /// calls return the same one.
    ///
    /// # Errors
    /// As [`BatchRuntimeBuilder::build`]; the next call tries again.
    // Spec: ENV-04
    pub fn get_runtime() -> Result<Self, BuildError> {
        static RUNTIME: Mutex<Option<BatchRuntime>> = Mutex::new(None);
        let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
        match &*runtime {
            Some(runtime) => Ok(runtime.clone()),
            None => Ok(runtime.insert(Self::builder().build()?).clone()),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns the operator of this runtime's jobs.
    // Spec: ENV-04
    pub fn job_operator(&self) -> JobOperator {
        JobOperator::new(Arc::clone(&self.shared))
    }

    /// Stops the jobs of this runtime before the process ends: requests all executions that run in it to stop, also those that start
    /// meanwhile, and waits until they have ended, at most `limit`; 0 does not wait. Returns those that still run. They stop like after a
    /// crash when the process ends: the next launch resumes them from their last checkpoint, as it resumes those that have stopped.
    ///
    /// A program calls it after it has stopped to launch jobs, for example when it receives SIGTERM. Workers have their own
    /// [`Worker::drain`](crate::worker::Worker::drain).
    ///
    /// ```
    /// # use batch_runtime::BatchRuntime;
    /// use std::time::Duration;
    ///
    /// let runtime = BatchRuntime::builder().repository("memory:").build()?;
    /// let running = runtime.shutdown(Duration::from_secs(30));
    /// assert!(running.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    // Spec: CLI-07
    pub fn shutdown(&self, limit: Duration) -> Vec<JobExecutionId> {
        self.job_operator().shutdown(limit)
    }

    /// Claims the partition of a ticket for this process: its row becomes STARTED, and this runtime holds and renews a lease of
    /// it until the [`PartitionRun`] has run or is dropped. A ticket that arrives twice is claimed once. See
    /// [`partition`](crate::partition).
    ///
    /// The worker needs the artifacts, the Job XML, the system properties and the repository of the coordinator. Listeners of
    /// the job that listen to items are instances of this process.
    ///
    /// # Errors
    /// See [`ClaimPartitionError`]. Nothing was changed.
    // Spec: PART-32, PART-33
    pub fn claim_partition(&self, ticket: &PartitionTicket) -> Result<PartitionRun, ClaimPartitionError> {
        self.job_operator().claim_partition(ticket)
    }
}

/// The default number of concurrent partitions per processor.
const THREADS_PER_PROCESSOR: usize = 4;

/// Configuration of a [`BatchRuntime`].
#[derive(Clone)]
pub struct BatchRuntimeBuilder {
    repository: String,
    files: JobFiles,
    system: BTreeMap<String, String>,
    sources: ArtifactSources,
    stop_timeout: Duration,
    partition_threads: usize,
    crash_limit: u32,
    dispatchers: Dispatchers,
    lease_time: Duration,
    time_zone: TimeZone,
    clock: Arc<dyn Clock>,
    observers: Vec<Arc<dyn JobObserver>>,
    notifications: Vec<NotificationTarget>,
    async_runtime: AsyncRuntime,
    schema: Option<String>,
    databases: BTreeMap<String, String>,
}

impl Default for BatchRuntimeBuilder {
    fn default() -> Self {
        Self {
            repository: "sqlite://batch.db".into(),
            files: JobFiles::default(),
            observers: Vec::new(),
            notifications: Vec::new(),
            async_runtime: AsyncRuntime::default(),
            schema: None,
            databases: BTreeMap::new(),
            system: system_properties::platform(),
            sources: ArtifactSources::default(),
            stop_timeout: Duration::from_secs(5),
            partition_threads: std::thread::available_parallelism()
                .map_or(THREADS_PER_PROCESSOR, |processors| {
                    processors.get() * THREADS_PER_PROCESSOR
                }),
            crash_limit: 3,
            dispatchers: Dispatchers::default(),
            lease_time: Duration::from_secs(30),
            time_zone: TimeZone::UTC,
            clock: Arc::new(SystemClock),
        }
    }
}

impl fmt::Debug for BatchRuntimeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Omits the repository's URL and the system properties, which may contain passwords.
        f.debug_struct("BatchRuntimeBuilder")
            .field("job_path", &self.files.directories)
            .field("artifacts", &self.sources)
            .finish_non_exhaustive()
    }
}

impl BatchRuntimeBuilder {
    /// Sets the repository's URL. Default: `sqlite://batch.db`.
    ///
    /// - `sqlite://PATH`, or `sqlite://:memory:` for one that lives as long as the runtime. With `?synchronous=normal`,
    ///   commits survive a crash of the process but may be lost, the last ones first and whole, when the machine loses
    ///   power; the default is `full`. Feature `sqlite`, a default one.
    /// - `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with libpq's options after a `?`. Feature `postgres`.
    /// - `memory:`, without a database, for jobs that need no restart by another process: it is empty when the runtime is built, lives
    ///   as long as the runtime, and belongs to it alone. Not for production: when the process ends, nothing is left that could be
    ///   resumed or looked up. Workers, writers that take the chunk transaction, and connections of artifacts need a database; see
    ///   [`DatabaseKind::Memory`](crate::repository::DatabaseKind::Memory).
    /// - `mysql://USER:PASSWORD@HOST:PORT/DATABASE`, or `mariadb://...`, with `unix_socket`, `ssl_mode`, `ssl_ca`,
    ///   `ssl_cert` and `ssl_key` after a `?`. Feature `mysql`.
    ///
    /// The database must exist; the tables are created, or upgraded if Spring Batch (2.1 to 4.3) created them. No
    /// message contains the password; libpq also takes it from `~/.pgpass`. With `?table_prefix=ORDERS_` the tables
    /// are named `ORDERS_JOB_INSTANCE` and so on, instead of `BATCH_JOB_INSTANCE`; the prefix has at most 30 letters,
    /// digits and underscores. On PostgreSQL, MySQL and MariaDB, `?table_prefix=batch.BATCH_` puts them into the
    /// existing schema `batch`; both parts have at most 36 characters. Unqualified names of the program are not affected. The list of applied
    /// migrations, `__diesel_schema_migrations`, is created where unqualified names are found. Several repositories can share a
    /// database, each with its own prefix or schema.
    // Spec: REPO-04, REPO-06, REPO-84, MEM-01
    #[must_use]
    pub fn repository(mut self, url: impl Into<String>) -> Self {
        self.repository = url.into();
        self
    }

    /// Names a database beside the repository, which artifacts find by [`JobContext::database`](crate::context::JobContext::database),
    /// and readers and writers of `batch-items` by their property `database`. The URL has the form of [`repository`](Self::repository), or
    /// of a [`ConnectionString`](crate::destination::ConnectionString) of `batch-odbc`. The program creates its tables.
    // Spec: MARK-13
    #[must_use]
    pub fn database(mut self, name: impl Into<String>, url: impl Into<String>) -> Self {
        self.databases.insert(name.into(), url.into());
        self
    }

    /// Sets the directories of Job XML files, separated by `:` (`;` on Windows). Default: the system property
    /// `javax.jobpath`, else the current directory, or none if the program embeds jobs.
    // Spec: PATH-02 to PATH-04, EMBED-02
    #[must_use]
    pub fn job_path(mut self, directories: impl Into<String>) -> Self {
        self.files.directories = Some(directories.into());
        self
    }

    /// Adds the Job XML files that [`embed_jobs!`](crate::embed_jobs) has compiled into the program, or others, each with its name.
    /// The program needs no directory then. See [`job_xml`](Self::job_xml).
    // Spec: EMBED-01
    #[must_use]
    pub fn jobs(self, files: &[(&str, &str)]) -> Self {
        files
            .iter()
            .fold(self, |builder, (name, text)| builder.job_xml(*name, *text))
    }

    /// Adds the text of a Job XML file: a job, or a step, flow or split that others inherit. Messages refer to it by `name`, and
    /// executions record the name. It is used like a file of the [job path](Self::job_path). If a file of the job path has the same id,
    /// that file is used, with a warning; two embedded files with the same id are an error of each start.
    ///
    /// [`JobBuilder::to_xml`](crate::xml::builder::JobBuilder::to_xml) makes such a text in Rust:
    ///
    /// ```
    /// use batch_runtime::prelude::*;
    /// use batch_runtime::xml::builder::{ArtifactBuilder, JobBuilder, StepBuilder};
    /// use batch_runtime::{BatchRuntime, BatchStatus};
    ///
    /// #[derive(BatchArtifact)]
    /// struct Greet {}
    ///
    /// #[batchlet("Greet")]
    /// impl Greet {
    ///     #[process]
    ///     fn greet(&self) -> String {
    ///         "GREETED".into()
    ///     }
    ///     #[cancel]
    ///     fn cancel(&self) {}
    /// }
    ///
    /// let job = JobBuilder::new("hello").element(StepBuilder::batchlet("greet", ArtifactBuilder::new("Greet")));
    /// let runtime = BatchRuntime::builder().repository("memory:").job_xml("hello.xml", job.to_xml()).build()?;
    /// let operator = runtime.job_operator();
    /// let ended = operator.wait(operator.start("hello", ())?)?;
    /// assert_eq!(ended.status, BatchStatus::Completed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    // Spec: EMBED-01, EMBED-02
    #[must_use]
    pub fn job_xml(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.files.embedded.push((name.into(), text.into()));
        self
    }

    /// Sets a system property: it overrides properties of the same name in Job XML.
    // Spec: OVR-04, D-37
    #[must_use]
    pub fn system_property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.system.insert(name.into(), value.into());
        self
    }

    /// Adds an embedded batch.xml, for example from `include_str!`. It is merged with the files `META-INF/batch.xml`
    /// under the directories of the system property `batch.classpath` (default: the current directory, then the
    /// directory of the executable). Messages refer to it by `name`.
    // Spec: PKG-02, LOADER-09 to LOADER-15
    #[must_use]
    pub fn batch_xml(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.sources.embedded.push((name.into(), text.into()));
        self
    }

    /// Sets the preferred artifact loader, which is called first for every artifact; a second call replaces it.
    /// Building the runtime fails if batch.xml names a loader too. Default: the loader of batch.xml, if it names one.
    // Spec: LOADER-03
    #[must_use]
    pub fn artifact_loader(mut self, loader: impl BatchArtifactLoader + 'static) -> Self {
        self.sources.loader = Some(Arc::new(loader));
        self
    }

    /// Sets a loader that is called before the preferred one, even one of batch.xml. Tests replace artifacts with it. A second call
    /// replaces it.
    // Spec: LOADER-03
    #[must_use]
    pub fn artifact_replacements(mut self, loader: impl BatchArtifactLoader + 'static) -> Self {
        self.sources.replacements = Some(Arc::new(loader));
        self
    }

    /// Sets statements, separated by `;`, that create the tables of the program in the database of the repository. Each process executes
    /// them before its first start of a job, so that they must not fail if the tables exist: `CREATE TABLE IF NOT EXISTS`. Commands that
    /// start nothing create nothing. If they fail, the start fails.
    // Spec: SCHEMA-01
    #[must_use]
    pub fn schema_sql(mut self, statements: impl Into<String>) -> Self {
        self.schema = Some(statements.into());
        self
    }

    /// Sets the tokio runtime that runs `async` methods of artifacts; it needs several threads. All methods of artifacts, `async` or not,
    /// are called within it, so that they can use clients that were made on it, and spawn tasks. Without it, `async` methods run on a
    /// runtime that the first of them starts. Feature `tokio`.
    ///
    /// It must outlive the jobs: call [`shutdown_async`](BatchRuntime::shutdown_async) before it ends.
    // Spec: ASYNC-02
    #[cfg(feature = "tokio")]
    #[must_use]
    pub fn tokio_handle(mut self, handle: tokio::runtime::Handle) -> Self {
        self.async_runtime = AsyncRuntime::new(handle);
        self
    }

    /// Sets the maximum time that `stop` waits for the execution to stop; 0 does not wait. Default: 5 seconds.
    // Spec: D-60
    #[must_use]
    pub fn stop_timeout(mut self, limit: Duration) -> Self {
        self.stop_timeout = limit;
        self
    }

    /// Sets how many times in a row `launch` and `recover` take over an instance from a dead process without a new
    /// checkpoint in between, so that an item that kills its process cannot do so forever. `restart` always takes
    /// over, and resets the count. 0 is unlimited. Default: 3.
    // Spec: OP-35
    #[must_use]
    pub fn crash_limit(mut self, limit: u32) -> Self {
        self.crash_limit = limit;
        self
    }

    /// Sets the maximum number of concurrent partitions of a step or flow, and of concurrent flows of a split, each on its own thread. The
    /// property `batch.partition.threads` of a step, or of a job for all its elements, overrides it for partitions, `batch.split.threads`
    /// of a job for flows. Default: four per processor; at least 1.
    // Spec: PART-04, SPLIT-06
    #[must_use]
    pub fn partition_threads(mut self, threads: usize) -> Self {
        self.partition_threads = threads.max(1);
        self
    }

    /// Sets a dispatcher of the program that carries partitions to worker processes, see [`partition`](crate::partition). It has
    /// the name `custom`, and becomes the default.
    // Spec: PART-34
    #[must_use]
    pub fn partition_dispatcher(mut self, dispatcher: impl PartitionDispatcher + 'static) -> Self {
        self.dispatchers.custom = Some(Arc::new(dispatcher));
        self.dispatchers.default = Some(CUSTOM.into());
        self
    }

    /// Adds a transport between coordinators and workers, such as the one in the crate `batch-nats`, under the name that
    /// [`dispatch`](Self::dispatch) and the property `batch.dispatch` choose it by. The transport `repository` is always there.
    // Spec: PART-34
    #[must_use]
    pub fn partition_transport(
        mut self,
        name: impl Into<String>,
        transport: impl PartitionTransport + 'static,
    ) -> Self {
        self.dispatchers
            .transports
            .insert(name.into(), Arc::new(transport));
        self
    }

    /// Sets where partitions run: `local`, on threads of the process that runs their job; `repository`, on
    /// [workers](BatchRuntime::worker) that take them from a table of the repository; or the name of a
    /// [`partition_transport`](Self::partition_transport). The property `batch.dispatch` of a step or job overrides it. Default: `local`.
    // Spec: PART-34
    #[must_use]
    pub fn dispatch(mut self, name: impl Into<String>) -> Self {
        self.dispatchers.default = Some(name.into());
        self
    }

    /// Sets the lease time: how long a runtime may fail to respond before another host can take over its executions.
    /// The lease is renewed every third of that time. Default: 30 seconds; at least 1 second.
    #[must_use]
    pub fn lease_time(mut self, time: Duration) -> Self {
        self.lease_time = time.max(Duration::from_secs(1));
        self
    }

    /// Sets the time zone of the wall-clock times in the TIMESTAMP columns of PostgreSQL and MySQL. Default: UTC. Spring
    /// Batch uses the zone of its JVM (`-Duser.timezone`); for a shared repository, set the same zone here, or times are
    /// off by hours and a date parameter identifies another instance. SQLite stores points in time, regardless of the zone.
    ///
    /// The hour that occurs twice when clocks are set back is always read as the second one, as in Spring Batch. UTC
    /// has no such hour.
    // Spec: REPO-33, REPO-43
    #[must_use]
    pub fn repository_time_zone(mut self, zone: TimeZone) -> Self {
        self.time_zone = zone;
        self
    }

    /// Sets the clock for the times in the repository. Default: the operating system's clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Adds an observer of all jobs and partitions that this runtime runs. See [`observer`](crate::observer).
    // Spec: OBS-01
    #[must_use]
    pub fn observer(mut self, observer: impl JobObserver + 'static) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Adds a target of notifications about jobs. See [`notify`](crate::notify). Add the same targets in worker processes: each worker
    /// sends the notifications about the steps that it runs.
    // Spec: NOTIFY-01
    #[must_use]
    pub fn notify(mut self, target: NotificationTarget) -> Self {
        self.notifications.push(target);
        self
    }

    /// Sets the dialect of all Job XML files. Default: the dialect of each file, recognized by the namespace of its root.
    // Spec: JAK-02
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.files.dialect = Some(dialect);
        self
    }

    /// Checks every job of the job path against the artifacts, as at its start, with these job parameters. Starts
    /// nothing and opens no repository. [`check_jobs!`](crate::check_jobs) turns this into a test.
    // Spec: OP-11, LOADER-08, ART-09, CHUNK-LOOP-17
    pub fn check(self, parameters: impl Into<JobParameters>) -> CheckReport {
        self.report(None, &parameters.into())
    }

    /// Checks as `check` does, and takes any name of a database: a test does not know an installation's databases.
    #[doc(hidden)]
    pub fn check_anywhere(self, parameters: impl Into<JobParameters>) -> CheckReport {
        self.report_with(None, None, &parameters.into())
    }

    /// Checks one job of the job path, see [`check`](Self::check).
    pub fn check_job(self, job: &str, parameters: impl Into<JobParameters>) -> CheckReport {
        self.report(Some(job), &parameters.into())
    }

    fn report(self, job: Option<&str>, parameters: &JobParameters) -> CheckReport {
        let names = Some(names(&self.databases));
        self.report_with(names, job, parameters)
    }

    fn report_with(
        self,
        databases: Option<BTreeSet<String>>,
        job: Option<&str>,
        parameters: &JobParameters,
    ) -> CheckReport {
        let in_memory = is_in_memory(&self.repository);
        let report = match definitions(self.files, self.system, self.sources, databases, in_memory) {
            Ok(definitions) => CheckReport::of(&definitions, job, parameters),
            Err(errors) => CheckReport::broken(errors),
        };
        match check_targets(&self.notifications) {
            Ok(()) => report,
            Err(problem) => report.and_failed(problem),
        }
    }

    /// Checks what [`JobOperator::launch`] and [`JobOperator::start`] check before they use the repository: parameters, their secrets, the
    /// job and its artifacts. Starts nothing, logs nothing and opens no repository, which building a runtime would create.
    ///
    /// # Errors
    /// As [`JobOperator::launch`]. A batch.xml that is not valid is reported by [`build`](Self::build), before it opens the repository.
    // Spec: CLI-01
    pub fn check_start(
        self,
        job: &str,
        parameters: impl Into<JobParameters>,
    ) -> Result<(), JobOperatorError> {
        self.check_wanted(Wanted::Id(job), &parameters.into())
    }

    /// As [`check_start`](Self::check_start), for [`JobOperator::start_xml`].
    ///
    /// # Errors
    /// As [`check_start`](Self::check_start).
    pub fn check_start_xml(
        self,
        file: &str,
        parameters: impl Into<JobParameters>,
    ) -> Result<(), JobOperatorError> {
        self.check_wanted(Wanted::File(file), &parameters.into())
    }

    fn check_wanted(self, wanted: Wanted<'_>, parameters: &JobParameters) -> Result<(), JobOperatorError> {
        let layout = repository::layout_of(&self.repository);
        // The start logs the same again.
        tracing::subscriber::with_default(NoSubscriber::new(), || {
            let databases = names_if_any(&self.databases);
            let in_memory = is_in_memory(&self.repository);
            let Ok(definitions) = definitions(self.files, self.system, self.sources, databases, in_memory)
            else {
                return Ok(());
            };
            definitions.check_start(wanted, parameters, layout, &self.dispatchers)
        })
    }

    /// Collects the artifacts and reads the job path. Opens no repository.
    ///
    /// # Errors
    /// When a batch.xml is invalid.
    pub fn definitions(self) -> Result<Definitions, JobXmlErrors> {
        let databases = names_if_any(&self.databases);
        let in_memory = is_in_memory(&self.repository);
        let definitions = definitions(self.files, self.system, self.sources, databases, in_memory)?;
        definitions.log_problems();
        Ok(definitions)
    }

    /// Collects the artifacts, reads the job path and opens the repository.
    ///
    /// # Errors
    /// When a batch.xml is invalid, the repository cannot be opened, or its tables are of another version.
    pub fn build(self) -> Result<BatchRuntime, BuildError> {
        let databases = names_if_any(&self.databases);
        let in_memory = is_in_memory(&self.repository);
        let definitions = definitions(self.files, self.system, self.sources, databases, in_memory)
            .map_err(BuildError::BatchXml)?;
        definitions.log_problems();
        // Before the repository, which opening may create.
        let url: RepositoryUrl = self.repository.parse()?;
        check_dispatchers(&self.dispatchers, url.database())?;
        check_targets(&self.notifications).map_err(BuildError::NotificationTarget)?;
        let databases = named_databases(self.databases)?;
        if self.async_runtime.has_one_thread() {
            return Err(BuildError::CurrentThreadRuntime);
        }
        let rules = NotificationRules::new(&self.notifications);
        let config = RepositoryConfig {
            clock: Arc::clone(&self.clock),
            lease_time: self.lease_time,
            zone: self.time_zone,
            notifications: rules.clone(),
        };
        let repository = repository::open(&self.repository, config)?;
        let mut dispatchers = self.dispatchers;
        let of_repository = RepositoryTransport(Arc::clone(&repository));
        dispatchers
            .transports
            .insert(REPOSITORY.into(), Arc::new(of_repository));
        let notifications = Arc::new(Senders::new(self.notifications, &repository, &self.clock));
        let observer = NotificationObserver::of(rules, &repository, &notifications);
        let observers = self.observers.into_iter().chain(observer);
        let observers = Observers::start(self.clock, observers).map_err(BuildError::Observer)?;
        let limits = Limits {
            stop_timeout: self.stop_timeout,
            partition_threads: self.partition_threads,
            crash_limit: self.crash_limit,
        };
        let settings = SharedSettings {
            url,
            definitions,
            limits,
            async_runtime: self.async_runtime,
            schema: Schema::new(self.schema),
            databases,
        };
        let (keeper, ended) = bounded(0);
        let shared = Arc::new(Shared::new(
            settings,
            repository,
            observers,
            notifications,
            dispatchers,
            keeper,
        ));
        let weak = Arc::downgrade(&shared);
        let spawned = thread::start("batch-keeper", move || keep(&weak, &ended));
        if let Err(error) = spawned {
            // Runners renew their leases at commits; only stop requests of other processes are not seen.
            tracing::error!(%error, "cannot start the keeper thread");
        }
        Ok(BatchRuntime { shared })
    }
}

fn definitions(
    files: JobFiles,
    system: BTreeMap<String, String>,
    sources: ArtifactSources,
    databases: Option<BTreeSet<String>>,
    in_memory: bool,
) -> Result<Definitions, JobXmlErrors> {
    let artifacts = Artifacts::assemble(sources, system.get("batch.classpath").map(String::as_str))?;
    Ok(Definitions {
        job_path: JobPath::new(files, system.get("javax.jobpath").map(String::as_str)),
        artifacts: Arc::new(artifacts),
        system: Arc::new(system),
        databases: databases.map(Arc::new),
        in_memory,
    })
}

fn is_in_memory(repository: &str) -> bool {
    DatabaseKind::named_in(repository) == Some(DatabaseKind::Memory)
}

fn names(databases: &BTreeMap<String, String>) -> BTreeSet<String> {
    databases.keys().cloned().collect()
}

/// Returns the names, or `None` if there are none: a process that only queues launches need not name databases.
fn names_if_any(databases: &BTreeMap<String, String>) -> Option<BTreeSet<String>> {
    Some(names(databases)).filter(|names| !names.is_empty())
}

/// Parses the URLs of the databases beside the repository.
fn named_databases(urls: BTreeMap<String, String>) -> Result<BTreeMap<String, NamedDatabase>, BuildError> {
    let parse = |(name, url): (String, String)| match url.parse() {
        // Each connection to one in memory would have tables of its own.
        Ok(NamedDatabase::Url(url))
            if url.database() == DatabaseKind::Memory || url.as_str().contains(":memory:") =>
        {
            Err(BuildError::NoDatabase(name))
        }
        Ok(database) => Ok((name, database)),
        Err(problem) => Err(BuildError::Database { name, problem }),
    };
    urls.into_iter().map(parse).collect()
}

/// Checks that the default dispatcher is one of the runtime, and that the processes that it gives work to can use the repository.
fn check_dispatchers(dispatchers: &Dispatchers, database: DatabaseKind) -> Result<(), BuildError> {
    let known = dispatchers.names();
    if let Some(name) = dispatchers.default.as_deref()
        && !known.contains(&name)
    {
        return Err(BuildError::UnknownDispatcher {
            name: name.to_owned(),
            known: known.into_iter().map(str::to_owned).collect(),
        });
    }
    let mut transports = dispatchers.transports.iter();
    match database {
        DatabaseKind::Memory => match dispatchers.remote() {
            Some(name) => Err(BuildError::InMemory(name.to_owned())),
            None => Ok(()),
        },
        DatabaseKind::Sqlite => match transports.find(|(_, transport)| transport.connects_hosts()) {
            Some((name, _)) => Err(BuildError::SqliteForHosts(name.clone())),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}
