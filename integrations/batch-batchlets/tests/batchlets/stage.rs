//! A runtime with a job, a folder for its files, and the log of the process.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use batch_batchlets as _;
use batch_runtime::{BatchRuntime, BatchStatus, JobExecutionId, JobOperator, JobParameters};

/// A runtime whose only job is `job`. The system property `folder` is the folder of its files.
pub(crate) struct Stage {
    folder: tempfile::TempDir,
    repository: String,
    runtime: BatchRuntime,
}

/// The end of an execution.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) id: JobExecutionId,
    pub(crate) status: BatchStatus,
    /// The exit status of the last step.
    pub(crate) exit_status: String,
    /// What the last step has done, or the error of the job.
    pub(crate) message: String,
}

impl Ended {
    /// Returns what a step has done that is COMPLETED, and so is its exit status.
    #[track_caller]
    pub(crate) fn completed(&self) -> &str {
        self.completed_as("COMPLETED");
        &self.message
    }

    /// Checks that a step is complete, with this exit status.
    #[track_caller]
    pub(crate) fn completed_as(&self, exit_status: &str) {
        assert_eq!(self.status, BatchStatus::Completed, "{}", self.message);
        assert_eq!(self.exit_status, exit_status, "{}", self.message);
    }

    /// Returns the message of a step that has failed.
    #[track_caller]
    pub(crate) fn failed(&self) -> &str {
        assert_eq!(self.status, BatchStatus::Failed, "{self:?}");
        &self.message
    }
}

/// Returns a step with one batchlet. Line breaks in values are kept.
pub(crate) fn step(id: &str, batchlet: &str, properties: &[(&str, &str)]) -> String {
    let mut xml = format!("<step id=\"{id}\"><batchlet ref=\"{batchlet}\"><properties>");
    for (name, value) in properties {
        let value = value
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('"', "&quot;")
            .replace('\n', "&#10;");
        xml += &format!("<property name=\"{name}\" value=\"{value}\"/>");
    }
    xml + "</properties></batchlet></step>"
}

impl Stage {
    /// Creates a job with one step.
    pub(crate) fn new(batchlet: &str, properties: &[(&str, &str)]) -> Self {
        Self::of(&step("step", batchlet, properties))
    }

    /// Creates a job with these steps.
    pub(crate) fn of(steps: &str) -> Self {
        Self::on(steps, None)
    }

    /// Creates a job whose repository is at this URL, by default in a file.
    pub(crate) fn on(steps: &str, repository: Option<String>) -> Self {
        log_to_memory();
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("job.xml"),
            format!("<job id=\"job\">{steps}</job>"),
        )
        .unwrap();
        let file = || format!("sqlite://{}", folder.path().join("batch.db").display());
        let repository = repository.unwrap_or_else(file);
        let runtime = runtime(folder.path(), &repository);
        Self {
            folder,
            repository,
            runtime,
        }
    }

    pub(crate) fn operator(&self) -> JobOperator {
        self.runtime.job_operator()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the path as text.
    pub(crate) fn name(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Writes a file, and creates its directories.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Returns the names of the files in a directory, sorted, without plans.
    pub(crate) fn list(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.starts_with(".moved-"))
            .collect();
        names.sort();
        names
    }

    /// Starts the job.
    #[track_caller]
    pub(crate) fn start(&self, parameters: impl Into<JobParameters>) -> JobExecutionId {
        self.operator()
            .start("job", parameters)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs the job to its end.
    #[track_caller]
    pub(crate) fn run(&self) -> Ended {
        self.wait(self.start(()))
    }

    /// Restarts an execution and waits for the end.
    #[track_caller]
    pub(crate) fn restart(&self, execution: JobExecutionId, parameters: impl Into<JobParameters>) -> Ended {
        let id = self.operator().restart(execution, parameters);
        self.wait(id.unwrap_or_else(|error| panic!("{error}")))
    }

    /// Starts the job, and stops it once the work has started.
    #[track_caller]
    pub(crate) fn start_and_stop(&self, has_started: impl FnMut() -> bool) -> Ended {
        let id = self.start(());
        until(has_started);
        self.stop(id)
    }

    /// Stops an execution.
    #[track_caller]
    pub(crate) fn stop(&self, id: JobExecutionId) -> Ended {
        assert!(self.operator().stop(id).unwrap(), "it is still running");
        self.wait(id)
    }

    /// Waits for the end of an execution.
    pub(crate) fn wait(&self, id: JobExecutionId) -> Ended {
        let operator = self.operator();
        let job = operator.wait(id).unwrap();
        let last = operator.step_executions(id).unwrap().pop();
        let (exit_status, done) = last
            .map(|step| (step.exit_status, step.exit_message))
            .unwrap_or_default();
        Ended {
            id,
            status: job.status,
            exit_status,
            message: match job.status {
                BatchStatus::Completed => done,
                _ => job.exit_message,
            },
        }
    }

    /// Returns the URL of the repository.
    pub(crate) fn repository(&self) -> &str {
        &self.repository
    }
}

/// Waits for another thread or process.
#[track_caller]
pub(crate) fn until(mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(60), "it has not happened");
        thread::yield_now();
    }
}

/// Returns a runtime whose jobs are in a folder.
pub(crate) fn runtime(folder: &Path, repository: &str) -> BatchRuntime {
    BatchRuntime::builder()
        .repository(repository)
        .job_path(folder.display().to_string())
        .system_property("folder", folder.display().to_string())
        // Far more than any stop takes; one that hangs fails its test.
        .stop_timeout(Duration::from_secs(60))
        .build()
        .unwrap_or_else(|error| panic!("{error}"))
}

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Returns the lines of the log that contain a text.
pub(crate) fn log_with(text: &str) -> Vec<String> {
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let log = String::from_utf8_lossy(&log);
    log.lines()
        .filter(|line| line.contains(text))
        .map(str::to_owned)
        .collect()
}

fn log_to_memory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .without_time()
            .with_writer(|| Memory)
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
}

struct Memory;

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
