//! The program `traced` in its own folder, with a receiver.

use std::fs;
use std::path::Path;
use std::process::Command;

use batch_tests::http::{ACCEPTS, Manner};
use batch_tests::{process, sqlite};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use tempfile::TempDir;

use crate::receiver::Receiver;

const PROGRAM: &str = env!("CARGO_BIN_EXE_traced");

/// A folder with a job, and the collector of its processes.
pub(crate) struct Traced {
    pub(crate) folder: TempDir,
    pub(crate) receiver: Receiver,
}

impl Traced {
    pub(crate) fn new(job: &str) -> Self {
        Self::with(job, ACCEPTS)
    }

    pub(crate) fn with(job: &str, manner: Manner) -> Self {
        Self::to(job, Receiver::that(manner))
    }

    pub(crate) fn to(job: &str, receiver: Receiver) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("job.xml"), job).unwrap();
        Self { folder, receiver }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns a command of the program that sends everything to the receiver, without the variables of the test's environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = process::configured_alone(PROGRAM, self.path(), arguments);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", self.receiver.endpoint());
        command
    }

    /// Returns the trace context that a job execution has stored; an empty text without one.
    pub(crate) fn stored_trace(&self, execution: i64) -> String {
        #[derive(QueryableByName)]
        struct Context {
            #[diesel(sql_type = Text)]
            text: String,
        }
        let mut database = sqlite::open(&self.path().join("batch.db"));
        let query =
            "SELECT SHORT_CONTEXT AS text FROM BATCH_JOB_EXECUTION_CONTEXT WHERE JOB_EXECUTION_ID = ?";
        let query = diesel::sql_query(query).bind::<BigInt, _>(execution);
        let context: Context = query.get_result(&mut database).unwrap();
        let context: serde_json::Value = serde_json::from_str(&context.text).unwrap();
        context["batch.traceparent"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Launches the job with further variables; it must end with this exit code. Returns its standard error.
    pub(crate) fn launch(&self, code: i32, variables: &[(&str, &str)]) -> String {
        let mut command = self.command(&["launch", "job"]);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        process::ended(code, &output).1
    }
}
