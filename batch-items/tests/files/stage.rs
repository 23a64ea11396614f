//! A folder with files, and a runtime whose jobs have one chunk step.

use std::fs;
use std::path::Path;

use batch_runtime::{BatchRuntime, BatchStatus, JobExecutionId, JobParameters};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;

/// A folder with files, and a repository in memory.
pub(crate) struct Stage {
    folder: tempfile::TempDir,
    runtime: BatchRuntime,
}

/// The end of a job.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) id: JobExecutionId,
    pub(crate) status: BatchStatus,
    pub(crate) message: String,
    /// The exit description of its last step.
    pub(crate) description: String,
    pub(crate) reads: i64,
    pub(crate) writes: i64,
    pub(crate) skips: i64,
}

impl Stage {
    /// Creates a stage with a job `job` of one chunk; `properties` are lines `name=value` or `name@target=value`, in which
    /// `${dir}` is the folder.
    pub(crate) fn new(chunk: &str, properties: &str) -> Self {
        Self::with_children(chunk, properties, "")
    }

    /// The same with further children of the chunk.
    pub(crate) fn with_children(chunk: &str, properties: &str, children: &str) -> Self {
        Self::with_steps("", "", chunk, properties, children)
    }

    /// The same with properties and listeners of the step.
    pub(crate) fn with_listeners(listeners: &str, chunk: &str, properties: &str, children: &str) -> Self {
        Self::with_steps("", listeners, chunk, properties, children)
    }

    /// The same with listeners of the job.
    pub(crate) fn with_job_listeners(listeners: &str, chunk: &str, properties: &str, children: &str) -> Self {
        Self::with_steps(listeners, "", chunk, properties, children)
    }

    /// The same after a step with a batchlet. The repository is a file, which [`number`](Self::number) reads.
    pub(crate) fn after_step(batchlet: &str, chunk: &str, properties: &str, children: &str) -> Self {
        let first = format!("<step id=\"first\" next=\"copy\"><batchlet ref=\"{batchlet}\"/></step>");
        Self::with_steps(&first, "", chunk, properties, children)
    }

    fn with_steps(first: &str, listeners: &str, chunk: &str, properties: &str, children: &str) -> Self {
        let properties: String = properties
            .lines()
            .filter_map(|line| line.trim().split_once('='))
            .map(|(name, value)| {
                let (name, target) = match name.split_once('@') {
                    Some((name, target)) => (name, format!(" target=\"{target}\"")),
                    None => (name, String::new()),
                };
                let value = value
                    .replace('&', "&amp;")
                    .replace('<', "&lt;")
                    .replace('"', "&quot;");
                format!("<property name=\"{name}\" value=\"{value}\"{target}/>\n")
            })
            .collect();
        let xml = format!(
            "<job id=\"job\">{first}<step id=\"copy\">{listeners}<chunk {chunk}><properties>\n{properties}</properties>\n{children}</chunk></step></job>"
        );
        Self::of_job(&xml, !first.is_empty())
    }

    /// Creates a stage with a job. The repository is in memory, or a file.
    pub(crate) fn of_job(xml: &str, has_file: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("jobs")).unwrap();
        fs::write(folder.path().join("jobs/job.xml"), xml).unwrap();
        let runtime = BatchRuntime::builder()
            .job_path(folder.path().join("jobs").display().to_string())
            .repository(match has_file {
                false => "sqlite://:memory:".to_owned(),
                true => format!(
                    "sqlite://{}?synchronous=normal",
                    folder.path().join("batch.db").display()
                ),
            })
            .system_property("dir", folder.path().display().to_string())
            .build()
            .unwrap();
        Self { folder, runtime }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path().join(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// Reads a file, and removes the name of the folder from its text.
    pub(crate) fn read_relative(&self, name: &str) -> String {
        self.without_folder(&self.read(name))
    }

    fn without_folder(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.path().display()), "")
    }

    /// Runs a statement on the database.
    pub(crate) fn execute(&self, statement: &str) {
        self.connection().batch_execute(statement).unwrap();
    }

    /// Returns the number that a query selects.
    pub(crate) fn number(&self, query: &str) -> i64 {
        #[derive(QueryableByName)]
        struct Number {
            #[diesel(sql_type = diesel::sql_types::BigInt)]
            number: i64,
        }
        let query = format!("SELECT ({query}) AS number");
        let found: Number = diesel::sql_query(query)
            .get_result(&mut self.connection())
            .unwrap();
        found.number
    }

    fn connection(&self) -> SqliteConnection {
        SqliteConnection::establish(&self.path().join("batch.db").display().to_string()).unwrap()
    }

    /// Starts the job and waits for its end.
    pub(crate) fn start(&self, parameters: impl Into<JobParameters>) -> Ended {
        let operator = self.runtime.job_operator();
        let id = operator.start("job", parameters).unwrap();
        self.ended(id)
    }

    /// Returns the error of a job that cannot start.
    pub(crate) fn rejected(&self) -> String {
        self.runtime
            .job_operator()
            .start("job", ())
            .unwrap_err()
            .to_string()
    }

    /// Restarts a failed execution and waits for its end.
    pub(crate) fn restart(&self, ended: &Ended, parameters: impl Into<JobParameters>) -> Ended {
        let operator = self.runtime.job_operator();
        let id = operator.restart(ended.id, parameters).unwrap();
        self.ended(id)
    }

    fn ended(&self, id: JobExecutionId) -> Ended {
        let operator = self.runtime.job_operator();
        let execution = operator.wait(id).unwrap();
        let steps = operator.step_executions(id).unwrap();
        let last = steps.last();
        let counters = last.map(|step| step.counters).unwrap_or_default();
        let description = last.map_or("", |step| &step.exit_message);
        Ended {
            id,
            status: execution.status,
            message: self.without_folder(&execution.exit_message),
            description: self.without_folder(description),
            reads: counters.reads,
            writes: counters.writes,
            skips: counters.skips(),
        }
    }

    /// Runs a job that has to complete.
    pub(crate) fn completes(&self) -> Ended {
        let ended = self.start(());
        assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.message);
        ended
    }

    /// Runs a job that has to fail, and returns the message.
    pub(crate) fn fails(&self) -> String {
        let ended = self.start(());
        assert_eq!(ended.status, BatchStatus::Failed);
        ended.message
    }
}

/// Checks that a job writes `out`, whichever of its seven items it fails at and whatever the interval, after a restart that continues after the
/// last committed item. The function creates the job with a commit interval.
pub(crate) fn check_restarts(job: impl Fn(u32) -> Stage, expected: &str) {
    let undisturbed = job(2);
    assert_eq!(undisturbed.completes().writes, 7);
    assert_eq!(undisturbed.read_relative("out"), expected);
    for commit_interval in 1..=3 {
        for fail_at in 1..=7 {
            let stage = job(commit_interval);
            let failed = stage.start([("fail.at", fail_at.to_string())]);
            assert_eq!(failed.status, BatchStatus::Failed);
            let again = stage.restart(&failed, [("fail.at", "0")]);
            assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
            let output = stage.read_relative("out");
            assert_eq!(
                output, expected,
                "interval {commit_interval}, failed at {fail_at}"
            );
            assert_eq!(failed.writes + again.writes, 7);
        }
    }
}

/// Passes items on, and fails at the one of this number, if the property is set.
macro_rules! pass {
    ($name:ident: $item:ty) => {
        #[derive(BatchArtifact)]
        struct $name {
            #[batch_property(name = "fail.at", value = "0")]
            fail_at: u64,
            items: u64,
        }

        #[item_processor]
        impl $name {
            #[process_item]
            fn process(&mut self, item: $item) -> Result<Option<$item>, BatchError> {
                self.items += 1;
                if self.items == self.fail_at {
                    return Err(BatchError::msg("stopped by the test"));
                }
                Ok(Some(item))
            }
        }
    };
}

pub(crate) use pass;
