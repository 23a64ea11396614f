//! Runs a job, or one step of it, in a test.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use batch_runtime::parameters::ParameterValue;
use batch_runtime::prelude::*;
use batch_runtime::time::Clock;
use batch_runtime::{
    BatchRuntime, BatchRuntimeBuilder, JobExecutionId, JobOperator, JobOperatorError, JobParameters,
};
use tempfile::TempDir;

use crate::doubles::{BatchletDouble, Check, ItemList, ProcessorDouble, SkipCollector, WriterDouble};
use crate::job_run::{self, JobRun};
use crate::names;
use crate::{FailsAt, SkippedItems, WrittenItems};

/// The time limit of an execution, which is then stopped; the test fails.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The name of the listener of skips.
const SKIPS: &str = "batch-testing:skips";

/// Creates a double.
type MakeDouble = Arc<dyn Fn() -> LoadedArtifact + Send + Sync>;

/// A job, or one step of it, that a test runs.
///
/// The job is the one that programs run: the same file, the artifacts of all linked crates, the same engine. Its repository is
/// a new database in a temporary folder, unless [`repository`](Self::repository) names another one, so tests that run at the
/// same time do not disturb each other.
///
/// ```
/// use batch_testing::JobTest;
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Greet { #[batch_property(name = "name")] name: String }
/// # #[batchlet("Greet")]
/// # impl Greet {
/// #     #[process]
/// #     fn greet(&self) -> String { format!("HELLO {}", self.name) }
/// #     #[cancel]
/// #     fn cancel(&self) {}
/// # }
/// # let folder = tempfile::tempdir()?;
/// # std::fs::write(folder.path().join("hello.xml"), r#"<job id="hello"><step id="greet"><batchlet ref="Greet">
/// #   <properties><property name="name" value="${name}"/></properties></batchlet></step></job>"#)?;
///
/// # let path = folder.path().join("hello.xml");
/// let run = JobTest::new(path).parameter("name", "WORLD").launch();
/// run.assert_completed().step("greet").assert_exit_status("HELLO WORLD");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct JobTest {
    file: PathBuf,
    element: Option<String>,
    parameters: JobParameters,
    system: BTreeMap<String, String>,
    batch_xml: Vec<(String, String)>,
    schema: Option<String>,
    databases: BTreeMap<String, String>,
    doubles: BTreeMap<String, MakeDouble>,
    repository: Option<String>,
    clock: Option<Arc<dyn Clock>>,
    time_limit: Duration,
    lease_time: Option<Duration>,
    stage: OnceLock<Stage>,
}

/// The runtime and its files, created at the first launch.
struct Stage {
    operator: JobOperator,
    job: String,
    /// The reduced Job XML and the database, unless it is another one.
    folder: Arc<TempDir>,
}

impl JobTest {
    /// Creates a test of the job in a file. Relative paths are resolved against the package's folder, where Cargo runs
    /// tests.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            element: None,
            parameters: JobParameters::new(),
            system: BTreeMap::new(),
            batch_xml: Vec::new(),
            schema: None,
            databases: BTreeMap::new(),
            doubles: BTreeMap::new(),
            repository: None,
            clock: None,
            time_limit: TIME_LIMIT,
            lease_time: None,
            stage: OnceLock::new(),
        }
    }

    /// Adds a job parameter.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.parameters = self.parameters.with(name, value.to_string());
        self
    }

    /// Adds job parameters of any type.
    #[must_use]
    pub fn parameters(mut self, parameters: impl Into<JobParameters>) -> Self {
        for (name, parameter) in parameters.into().iter() {
            let (value, identifying) = (parameter.value.clone(), parameter.identifying);
            self.parameters = self.parameters.with_parameter(name, value, identifying);
        }
        self
    }

    /// Sets a system property of the runtime.
    #[must_use]
    pub fn system_property(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.system.insert(name.into(), value.to_string());
        self
    }

    /// Adds an embedded batch.xml, see [`BatchRuntimeBuilder::batch_xml`].
    #[must_use]
    pub fn batch_xml(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.batch_xml.push((name.into(), text.into()));
        self
    }

    /// Sets statements that create the tables of the program, see [`BatchRuntimeBuilder::schema_sql`]. Use those that the
    /// program passes to its command line.
    #[must_use]
    pub fn schema_sql(mut self, statements: impl Into<String>) -> Self {
        self.schema = Some(statements.into());
        self
    }

    /// Names a database beside the repository, as `[databases]` of `batch.toml` does; see [`BatchRuntimeBuilder::database`]. The test creates the
    /// database and its tables, and removes them: a file of SQLite in a temporary folder suits most. A crash sweep takes none, because it could
    /// not reset it.
    #[must_use]
    pub fn database(mut self, name: impl Into<String>, url: impl Into<String>) -> Self {
        self.databases.insert(name.into(), url.into());
        self
    }

    /// Runs only one step of the job, or one flow or split. Nothing follows it.
    #[must_use]
    pub fn step(mut self, id: impl Into<String>) -> Self {
        self.element = Some(id.into());
        self
    }

    /// Sets the repository's URL, see [`BatchRuntimeBuilder::repository`]. Default: a new SQLite database.
    ///
    /// A job that completed cannot be launched again with the same parameters, so a database that is kept between test runs needs a
    /// parameter that differs.
    #[must_use]
    pub fn repository(mut self, url: impl Into<String>) -> Self {
        self.repository = Some(url.into());
        self
    }

    /// Sets the repository to a SQLite database in memory: faster, but only this runtime sees it. `repository("memory:")` is faster
    /// still, for jobs that need no database.
    #[must_use]
    pub fn in_memory(self) -> Self {
        self.repository("sqlite://:memory:")
    }

    /// Sets the clock of the times in the repository.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets the time limit of an execution. An execution that exceeds it is stopped, and the test fails. Default: 60 seconds.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Replaces a reader by one that returns these items. A restart continues after the last committed one. In a partitioned step,
    /// each partition reads all of them.
    #[must_use]
    pub fn reader<T>(self, name: impl Into<String>, items: impl IntoIterator<Item = T>) -> Self
    where
        T: Clone + Send + Sync + 'static,
    {
        let list = ItemList::new(items);
        self.artifact(name, move || LoadedArtifact::item_reader(list.clone()))
    }

    /// Replaces a reader as [`reader`](Self::reader) does. A read of the item of `fault` fails; the read after it returns the next
    /// item.
    #[must_use]
    pub fn failing_reader<T>(
        self,
        name: impl Into<String>,
        items: impl IntoIterator<Item = T>,
        fault: &FailsAt<T>,
    ) -> Self
    where
        T: Clone + PartialEq + fmt::Debug + Send + Sync + 'static,
    {
        let fault = fault.clone();
        let list = ItemList::new(items).failing(Arc::new(move |item| fault.check(item)));
        self.artifact(name, move || LoadedArtifact::item_reader(list.clone()))
    }

    /// Replaces a processor by a function. It may call the method of a real one after the check of a [`fails_at`](crate::fails_at).
    #[must_use]
    pub fn processor<I, O, E>(
        self,
        name: impl Into<String>,
        process: impl Fn(&I) -> Result<Option<O>, E> + Send + Sync + 'static,
    ) -> Self
    where
        I: Send + 'static,
        O: Send + 'static,
        E: Into<BatchError> + 'static,
    {
        let double = ProcessorDouble::new(move |item: &I| process(item).map_err(Into::into));
        self.artifact(name, move || LoadedArtifact::item_processor(double.clone()))
    }

    /// Replaces a writer by one that keeps the items.
    #[must_use]
    pub fn writer<T>(self, name: impl Into<String>, written: &WrittenItems<T>) -> Self
    where
        T: Clone + Send + 'static,
    {
        let written = written.clone();
        self.artifact(name, move || {
            LoadedArtifact::item_writer(WriterDouble::new(written.clone()))
        })
    }

    /// Replaces a writer as [`writer`](Self::writer) does. A write with the item of `fault` fails. The runtime then writes the items one by
    /// one to find the item, so one that is to be skipped has to fail [always](crate::always_fails_at), or at least twice.
    #[must_use]
    pub fn failing_writer<T>(
        self,
        name: impl Into<String>,
        written: &WrittenItems<T>,
        fault: &FailsAt<T>,
    ) -> Self
    where
        T: Clone + PartialEq + fmt::Debug + Send + Sync + 'static,
    {
        let (written, fault) = (written.clone(), fault.clone());
        let fault: Check<T> = Arc::new(move |item| fault.check(item));
        self.artifact(name, move || {
            LoadedArtifact::item_writer(WriterDouble::new(written.clone()).failing(Arc::clone(&fault)))
        })
    }

    /// Replaces a batchlet by a function, which returns the exit status.
    #[must_use]
    pub fn batchlet<E: Into<BatchError> + 'static>(
        self,
        name: impl Into<String>,
        process: impl Fn() -> Result<String, E> + Send + Sync + 'static,
    ) -> Self {
        let double = BatchletDouble::new(move || process().map_err(Into::into));
        self.artifact(name, move || LoadedArtifact::batchlet(double.clone()))
    }

    /// Collects the items of type `T` that are skipped, and the errors of all skips, by a listener of the job.
    #[must_use]
    pub fn skipped<T: Clone + Send + 'static>(self, skipped: &SkippedItems<T>) -> Self {
        let skipped = skipped.clone();
        self.artifact(SKIPS, move || {
            LoadedArtifact::skip_listener(SkipCollector::new(skipped.clone()))
        })
    }

    /// Replaces an artifact of any role. `make` creates an instance for each place, or names a type with
    /// [`LoadedArtifact::of`].
    #[must_use]
    pub fn artifact(
        mut self,
        name: impl Into<String>,
        make: impl Fn() -> LoadedArtifact + Send + Sync + 'static,
    ) -> Self {
        self.doubles.insert(name.into(), Arc::new(make));
        self
    }

    /// Sets the time until a silent lease holder counts as dead, see [`BatchRuntimeBuilder::lease_time`].
    #[must_use]
    pub(crate) fn lease_time(mut self, time: Duration) -> Self {
        self.lease_time = Some(time);
        self
    }

    /// Launches the job and waits for its end. A second launch resumes an instance that failed or was stopped.
    ///
    /// # Panics
    /// If the job does not start, or if it does not end within the time limit.
    #[track_caller]
    pub fn launch(&self) -> JobRun {
        let stage = self.stage();
        self.wait_for(stage.operator.launch(&stage.job, self.parameters.clone()))
    }

    /// Launches the job as [`launch`](Self::launch) does; `None` if its instance is complete. Waits while the instance counts as
    /// running: the lease of a process that died on a server has to expire first.
    pub(crate) fn resume(&self) -> Option<JobRun> {
        let stage = self.stage();
        let begin = Instant::now();
        loop {
            match stage.operator.launch(&stage.job, self.parameters.clone()) {
                Err(JobOperatorError::JobInstanceAlreadyComplete { .. }) => return None,
                Err(JobOperatorError::JobExecutionAlreadyRunning { .. })
                    if begin.elapsed() < Self::PATIENCE =>
                {
                    thread::sleep(Duration::from_millis(20));
                }
                started => return Some(self.wait_for(started)),
            }
        }
    }

    /// Restarts an execution, with further or other parameters, and waits for its end.
    ///
    /// # Panics
    /// As [`launch`](Self::launch).
    #[track_caller]
    pub fn restart(&self, run: &JobRun, parameters: impl Into<JobParameters>) -> JobRun {
        self.wait_for(self.stage().operator.restart(run.execution().id, parameters))
    }

    /// Returns the error of a job that must not start.
    ///
    /// # Panics
    /// If it starts.
    #[track_caller]
    pub fn launch_fails(&self) -> JobOperatorError {
        let stage = self.stage();
        match stage.operator.launch(&stage.job, self.parameters.clone()) {
            Ok(execution) => panic!("the job started as execution {execution}"),
            Err(error) => error,
        }
    }

    /// Returns the operator of the test's runtime.
    #[track_caller]
    pub fn operator(&self) -> JobOperator {
        self.stage().operator.clone()
    }

    /// Returns the parameters by name, with their values, and whether they identify.
    pub(crate) fn given_parameters(&self) -> Vec<(String, ParameterValue, bool)> {
        let parameters = self.parameters.iter();
        let parts = parameters.map(|(name, one)| (name.to_owned(), one.value.clone(), one.identifying));
        parts.collect()
    }

    /// The time that [`resume`](Self::resume) waits for the end of the lease of a process that died.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(12);

    pub(crate) fn given_system(&self) -> &BTreeMap<String, String> {
        &self.system
    }

    pub(crate) fn given_time_limit(&self) -> Duration {
        self.time_limit
    }

    pub(crate) fn has_databases(&self) -> bool {
        !self.databases.is_empty()
    }

    pub(crate) fn has_repository(&self) -> bool {
        self.repository.is_some()
    }

    #[track_caller]
    fn wait_for(&self, started: Result<JobExecutionId, JobOperatorError>) -> JobRun {
        let execution = match started {
            Ok(execution) => execution,
            // A closure would hide the line of the test.
            Err(error) => panic!("{error}"),
        };
        let stage = self.stage();
        job_run::wait(&stage.operator, &stage.folder, execution, self.time_limit)
    }

    #[track_caller]
    fn stage(&self) -> &Stage {
        if self.stage.get().is_none() {
            let stage = match self.build() {
                Ok(stage) => stage,
                Err(error) => panic!("{error}"),
            };
            // Another thread may have set it: its stage is used then.
            let _ = self.stage.set(stage);
        }
        match self.stage.get() {
            Some(stage) => stage,
            None => unreachable!("it is set above"),
        }
    }

    fn build(&self) -> Result<Stage, Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let mut directory = self.directory();
        if !self.file.is_file() {
            return Err(format!("the job `{}` is not a file", self.file.display()).into());
        }
        let job = self.job_name()?;
        if let Some(without) = self.without_others(&job, folder.path())? {
            directory = without;
        }
        self.check_doubles(&directory, &job)?;
        if self.element.is_some() || self.doubles.contains_key(SKIPS) {
            let text = self.rewritten(&directory, &job)?;
            directory = folder.path().join("jobs");
            fs::create_dir(&directory)?;
            fs::write(directory.join("job.xml"), text)?;
        }
        let url = match &self.repository {
            Some(url) => url.clone(),
            // Commits do not wait for the disk: the database ends with the test.
            None => format!(
                "sqlite://{}?synchronous=normal",
                folder.path().join("batch.db").display()
            ),
        };
        let mut builder = self.builder(&directory).repository(url);
        if let Some(statements) = &self.schema {
            builder = builder.schema_sql(statements);
        }
        if let Some(clock) = &self.clock {
            builder = builder.clock(Arc::clone(clock));
        }
        if let Some(time) = self.lease_time {
            builder = builder.lease_time(time);
        }
        Ok(Stage {
            operator: builder.build()?.job_operator(),
            job,
            folder: Arc::new(folder),
        })
    }

    /// Returns a builder for the jobs of a folder, without a repository.
    fn builder(&self, directory: &Path) -> BatchRuntimeBuilder {
        let mut builder = BatchRuntime::builder().job_path(directory.display().to_string());
        for (name, value) in &self.system {
            builder = builder.system_property(name, value);
        }
        for (name, url) in &self.databases {
            builder = builder.database(name, url);
        }
        for (name, text) in &self.batch_xml {
            builder = builder.batch_xml(name, text);
        }
        if self.doubles.is_empty() {
            return builder;
        }
        builder.artifact_replacements(Doubles(self.doubles.clone()))
    }

    /// Returns the artifacts of a step, such as ``reader `A`, writer `B` ``; `None` if the job has no such step.
    pub(crate) fn artifacts_of(&self, step: &str) -> Option<String> {
        let definitions = self.builder(&self.directory()).definitions().ok()?;
        let job = definitions
            .effective_job(&self.job_name().ok()?, &self.parameters)
            .ok()?;
        names::artifacts_of(&job, step)
    }

    /// Returns the folder of the job's file.
    fn directory(&self) -> PathBuf {
        match self.file.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        }
    }

    /// Fails if a double replaces nothing, because its name is misspelt. A job that is not valid is reported when it is launched.
    fn check_doubles(&self, directory: &Path, job: &str) -> Result<(), String> {
        let effective = self.builder(directory).definitions().and_then(|found| {
            found
                .effective_job(job, &self.parameters)
                .map_err(|_| Vec::new().into())
        });
        let Ok(effective) = effective else { return Ok(()) };
        let doubles = self.doubles.keys().filter(|name| *name != SKIPS);
        names::check_doubles(&effective, doubles.map(String::as_str))
    }

    /// Copies the folder of the job, without other files that define a job of the same id; `None` if there are none.
    fn without_others(
        &self,
        job: &str,
        folder: &Path,
    ) -> Result<Option<PathBuf>, Box<dyn std::error::Error>> {
        let own = fs::canonicalize(&self.file)?;
        let (mut kept, mut has_others) = (Vec::new(), false);
        for entry in fs::read_dir(self.directory())?.flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "xml") {
                continue;
            }
            let is_other = fs::canonicalize(&path)? != own && id_in(&path).is_ok_and(|id| id == job);
            match is_other {
                true => has_others = true,
                false => kept.push(path),
            }
        }
        if !has_others {
            return Ok(None);
        }
        let copies = folder.join("without-others");
        fs::create_dir(&copies)?;
        for path in kept {
            fs::copy(&path, copies.join(path.file_name().unwrap_or_default()))?;
        }
        Ok(Some(copies))
    }

    /// Returns the id of the job in the file.
    fn job_name(&self) -> Result<String, Box<dyn std::error::Error>> {
        id_in(&self.file)
    }

    /// Returns the job with one element only, and with the listener of skips.
    fn rewritten(&self, directory: &Path, job: &str) -> Result<String, Box<dyn std::error::Error>> {
        let definitions = self.builder(directory).definitions()?;
        let mut document = definitions.effective_document(job, &self.parameters)?;
        if self.doubles.contains_key(SKIPS) {
            document = document.with_listener(SKIPS);
        }
        let Some(element) = &self.element else {
            return Ok(document.to_xml());
        };
        if let Some(only) = document.only(element) {
            return Ok(only.to_xml());
        }
        let ids = names::ids(&definitions.effective_job(job, &self.parameters)?);
        let hint = match batch_runtime::xml::suggest::nearest(element, ids.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it has `{}`", ids.join("`, `")),
        };
        Err(format!("the job `{job}` has no step, flow or split `{element}`; {hint}").into())
    }
}

/// Returns the id of the document in a file.
fn id_in(file: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let text = fs::read_to_string(file)?;
    let source = batch_runtime::xml::Source::new(file.display().to_string(), text);
    let document = batch_runtime::xml::parse(&source, &batch_runtime::xml::Limits::default())?;
    Ok(document.id().value.clone())
}

/// Creates a test of the job in a file, as [`JobTest::new`] does.
impl From<&str> for JobTest {
    fn from(file: &str) -> Self {
        Self::new(file)
    }
}

/// Creates a test of the job in a file, as [`JobTest::new`] does.
impl From<PathBuf> for JobTest {
    fn from(file: PathBuf) -> Self {
        Self::new(file)
    }
}

/// Returns the doubles by the names of what they replace.
struct Doubles(BTreeMap<String, MakeDouble>);

impl BatchArtifactLoader for Doubles {
    fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError> {
        Ok(self.0.get(reference).map(|make| make()))
    }
}
