//! A runtime with its own database and job path, and a log that artifacts write to.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use batch_runtime::{
    BatchRuntime, BatchRuntimeBuilder, JobExecutionId, JobInstanceId, JobOperator, JobParameters,
};
use diesel::prelude::*;

use crate::database::{Database, Outside, Place};
use crate::{deadline, sqlite};

/// The log of each stage, by the stage's name.
static LOGS: Mutex<Option<HashMap<String, Vec<String>>>> = Mutex::new(None);

/// Adds a line. Artifacts call it; `log` is the property of that name.
pub fn say(log: &str, what: impl Into<String>) {
    let mut logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner);
    logs.get_or_insert_default()
        .entry(log.to_owned())
        .or_default()
        .push(what.into());
}

/// Returns the lines in `log` since the last call.
pub fn said(log: &str) -> Vec<String> {
    let mut logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner);
    logs.get_or_insert_default().remove(log).unwrap_or_default()
}

/// Returns the last lines in `log`, which stay there.
fn last_said(log: &str) -> Vec<String> {
    const LINES: usize = 10;
    let logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = logs.as_ref().and_then(|logs| logs.get(log));
    let lines = lines.map(Vec::as_slice).unwrap_or_default();
    lines[lines.len().saturating_sub(LINES)..].to_vec()
}

/// Set in a process whose stages have repositories in memory.
pub const IN_MEMORY: &str = "BATCH_TESTS_IN_MEMORY";

/// The message of a test that cannot run there.
pub const NEEDS_DATABASE: &str = "this test needs a database";

/// A runtime with a job path and a repository that rejects wrong rows.
pub struct Stage {
    folder: tempfile::TempDir,
    log: String,
    /// `None` if its repository is in memory.
    place: Option<Place>,
    runtime: BatchRuntime,
}

impl Stage {
    /// Creates a stage whose job path holds `xml`.
    pub fn new(xml: &str) -> Self {
        Self::configured(xml, |builder| builder)
    }

    /// Creates a stage with an additional setting.
    pub fn configured(xml: &str, configure: impl FnOnce(BatchRuntimeBuilder) -> BatchRuntimeBuilder) -> Self {
        let in_memory = std::env::var_os(IN_MEMORY).is_some();
        Self::made((!in_memory).then_some(Database::Sqlite), xml, configure)
    }

    /// Creates a stage whose repository is on this database.
    pub fn on(database: Database, xml: &str) -> Self {
        Self::made(Some(database), xml, |builder| builder)
    }

    /// Creates a stage whose repository is in memory.
    pub fn in_memory(xml: &str) -> Self {
        Self::made(None, xml, |builder| builder)
    }

    fn made(
        database: Option<Database>,
        xml: &str,
        configure: impl FnOnce(BatchRuntimeBuilder) -> BatchRuntimeBuilder,
    ) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let folder = crate::folder::new();
        let log = format!("stage-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        fs::create_dir(folder.path().join("jobs")).expect("a folder");
        fs::write(folder.path().join("jobs/job.xml"), xml).expect("the job is written");
        let place = database.map(|database| Place::new(database, folder.path()));
        let (called, waited_for) = (log.clone(), xml.to_owned());
        deadline::waits_for(move || {
            format!(
                "a job of\n{waited_for}\nwhose artifacts last recorded {:#?}",
                last_said(&called)
            )
        });
        let runtime = build(folder.path(), place.as_ref(), &log, configure);
        if let Some(place) = &place {
            place.connect().reject_wrong_rows();
        }
        Self {
            folder,
            log,
            place,
            runtime,
        }
    }

    /// Returns the stage's folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the repository's file.
    pub fn database(&self) -> PathBuf {
        assert!(self.place.is_some(), "{NEEDS_DATABASE}");
        self.path().join("batch.db")
    }

    /// Replaces the job's file, for runtimes that are built afterwards.
    pub fn rewrite(&self, xml: &str) {
        fs::write(self.path().join("jobs/job.xml"), xml).expect("the job is written");
    }

    /// Returns a further runtime on the same repository, as in another process.
    pub fn another_runtime(&self) -> BatchRuntime {
        self.another_runtime_with(|builder| builder)
    }

    /// As `another_runtime`, with more settings.
    pub fn another_runtime_with(
        &self,
        configure: impl FnOnce(BatchRuntimeBuilder) -> BatchRuntimeBuilder,
    ) -> BatchRuntime {
        build(self.path(), Some(self.place()), &self.log, configure)
    }

    /// Returns the operator.
    pub fn operator(&self) -> JobOperator {
        self.runtime.job_operator()
    }

    /// Returns the ids of an instance's executions, newest first.
    pub fn executions(&self, instance: JobInstanceId) -> Vec<JobExecutionId> {
        let executions = self.operator().job_executions(instance).unwrap();
        executions.iter().map(|execution| execution.id).collect()
    }

    /// Starts `job` and waits for its end.
    pub fn start(&self, job: &str, parameters: impl Into<JobParameters>) -> JobExecutionId {
        let execution = self
            .operator()
            .start(job, parameters)
            .unwrap_or_else(|error| panic!("{error}"));
        self.operator()
            .wait(execution)
            .unwrap_or_else(|error| panic!("{error}"));
        execution
    }

    /// Launches `job` and waits for its end.
    pub fn launch(&self, job: &str, parameters: impl Into<JobParameters>) -> JobExecutionId {
        let execution = self
            .operator()
            .launch(job, parameters)
            .unwrap_or_else(|error| panic!("{error}"));
        self.operator()
            .wait(execution)
            .unwrap_or_else(|error| panic!("{error}"));
        execution
    }

    /// Restarts an execution and waits for the end of the new one.
    pub fn restart(&self, execution: JobExecutionId) -> JobExecutionId {
        let again = self
            .operator()
            .restart(execution, JobParameters::new())
            .unwrap_or_else(|error| panic!("{error}"));
        self.operator()
            .wait(again)
            .unwrap_or_else(|error| panic!("{error}"));
        again
    }

    /// Returns the name of the log, the system property `log`.
    pub fn log_name(&self) -> &str {
        &self.log
    }

    /// Returns the log lines of the artifacts since the last call.
    pub fn log(&self) -> Vec<String> {
        said(&self.log)
    }

    /// Returns an execution as a tree: statuses, counters, messages. No ids, no times.
    pub fn tree(&self, execution: JobExecutionId) -> String {
        let job = self
            .operator()
            .job_execution(execution)
            .expect("readable")
            .expect("there is one");
        let mut text = format!(
            "job {} {} {}\n",
            job.job_name,
            job.status,
            shown(&job.exit_status)
        );
        push_message(&mut text, "  ", &job.exit_message);
        for step in self.operator().step_executions(execution).expect("readable") {
            let c = step.counters;
            text.push_str(&format!(
                "  step {} {} {}",
                step.step_name,
                step.status,
                shown(&step.exit_status)
            ));
            text.push_str(&format!(
                " read {} filter {} write {} commit {} rollback {}",
                c.reads, c.filters, c.writes, c.commits, c.rollbacks
            ));
            let skips = [
                ("read", c.read_skips),
                ("process", c.process_skips),
                ("write", c.write_skips),
            ];
            for (phase, skips) in skips.into_iter().filter(|(_, skips)| *skips != 0) {
                text.push_str(&format!(" {phase} skip {skips}"));
            }
            text.push('\n');
            push_message(&mut text, "    ", &step.exit_message);
        }
        text
    }

    /// Returns the folder of its repository.
    pub fn place(&self) -> &Place {
        self.place.as_ref().expect(NEEDS_DATABASE)
    }

    /// Returns the stage's database, of any kind, as a tool beside the runtime sees it.
    pub fn outside(&self) -> Outside {
        self.place().connect()
    }

    /// Returns the stage's database file, as a tool beside the runtime sees it.
    pub fn connection(&self) -> SqliteConnection {
        sqlite::open(&self.database())
    }
}

fn build(
    folder: &Path,
    place: Option<&Place>,
    log: &str,
    configure: impl FnOnce(BatchRuntimeBuilder) -> BatchRuntimeBuilder,
) -> BatchRuntime {
    let builder = BatchRuntime::builder()
        .repository(place.map_or("memory:", Place::url))
        .job_path(folder.join("jobs").display().to_string())
        .system_property("log", log)
        .system_property("folder", folder.display().to_string());
    configure(builder)
        .build()
        .unwrap_or_else(|error| panic!("{error}"))
}

fn shown(exit_status: &str) -> String {
    if exit_status.len() <= 40 {
        exit_status.to_owned()
    } else {
        format!("({} characters)", exit_status.chars().count())
    }
}

/// Line numbers are removed, so that a snapshot does not change with every edit.
fn push_message(text: &mut String, indent: &str, message: &str) {
    for line in message.lines() {
        let line = line.split(" (").next().unwrap_or_default();
        text.push_str(&format!("{indent}| {line}\n"));
    }
}
