//! The program `tracked` in its own folder, with a receiver.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use batch_tests::http::{ACCEPTS, Manner};
use batch_tests::process;
use tempfile::TempDir;

use crate::receiver::Receiver;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tracked");

/// A step that creates the table `payment`.
pub(crate) const CREATE: &str = r#"<step id="create" next="load">
  <batchlet ref="sqlScript"><properties>
    <property name="sql" value="CREATE TABLE IF NOT EXISTS payment (id INTEGER, amount REAL)"/>
  </properties></batchlet>
</step>"#;

/// A folder with a job, and the receiver of its processes.
pub(crate) struct Tracked {
    folder: TempDir,
    pub(crate) receiver: Receiver,
}

impl Tracked {
    pub(crate) fn new(job: &str) -> Self {
        Self::with(job, ACCEPTS)
    }

    pub(crate) fn with(job: &str, manner: Manner) -> Self {
        let tracked = Self {
            folder: tempfile::tempdir().unwrap(),
            receiver: Receiver::that(manner),
        };
        let job = format!(r#"<job id="job">{job}</job>"#);
        fs::write(tracked.path().join("job.xml"), job).unwrap();
        tracked
    }

    /// Writes a file of payments with these ids.
    pub(crate) fn with_payments(self, file: &str, ids: std::ops::RangeInclusive<u32>) -> Self {
        let rows: String = ids.map(|id| format!("{id},{id}.5\n")).collect();
        fs::write(self.path().join(file), format!("id,amount\n{rows}")).unwrap();
        self
    }

    /// Returns the folder, as processes in it see it.
    pub(crate) fn path(&self) -> PathBuf {
        Path::new(self.folder.path()).canonicalize().unwrap()
    }

    /// Returns a command of the program that sends events to the receiver, without the variables of the test's environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = process::configured_alone(PROGRAM, &self.path(), arguments);
        command.env("OPENLINEAGE_URL", self.receiver.url());
        command
    }

    /// Launches the job with further variables; it must end with this exit code. Returns its standard error.
    pub(crate) fn launch(&self, code: i32, variables: &[(&str, &str)]) -> String {
        self.run(code, &["launch", "job"], variables)
    }

    /// Runs a command with further variables; it must end with this exit code. Returns its standard error.
    pub(crate) fn run(&self, code: i32, arguments: &[&str], variables: &[(&str, &str)]) -> String {
        let mut command = self.command(arguments);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        process::ended(code, &output).1
    }
}
