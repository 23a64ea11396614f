//! The program `notified` in its own folder.

use std::fs;
use std::path::Path;
use std::process::Command;

use batch_tests::http::Manner;
use batch_tests::process;
use serde_json::Value;
use tempfile::TempDir;

use crate::receiver::Receiver;

const PROGRAM: &str = env!("CARGO_BIN_EXE_notified");

/// A job that does what its parameter `then` names.
pub(crate) const TASK: &str = r#"<job id="job"><step id="only">
  <batchlet ref="Task"><properties><property name="then" value="complete"/></properties></batchlet>
</step></job>"#;

/// A folder with a job, and the server that its notifications go to.
pub(crate) struct Notified {
    pub(crate) folder: TempDir,
    pub(crate) receiver: Receiver,
}

impl Notified {
    /// `settings` are the settings of the target `ops`, besides its URL.
    pub(crate) fn new(job: &str, settings: &str, manner: Manner) -> Self {
        let receiver = Receiver::new(manner);
        let url = receiver.url();
        let notified = Self {
            folder: tempfile::tempdir().unwrap(),
            receiver,
        };
        notified.write("job.xml", job);
        notified.write(
            "batch.toml",
            &format!("[notify.ops]\nwebhook = \"{url}\"\n{settings}\n"),
        );
        notified
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        fs::write(self.path().join(file), text).unwrap();
    }

    /// Returns a command of the program, without the variables of the test's environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        process::configured_alone(PROGRAM, self.path(), arguments)
    }

    /// Runs a command that must end with this exit code. Returns its standard output, and its standard error.
    pub(crate) fn run(&self, code: i32, arguments: &[&str]) -> (String, String) {
        process::ended(code, &self.command(arguments).output().unwrap())
    }

    /// Returns what `notifications` lists.
    pub(crate) fn pending(&self) -> Vec<Value> {
        let (out, _) = self.run(0, &["notifications", "--json"]);
        serde_json::from_str::<Value>(&out)
            .unwrap()
            .as_array()
            .unwrap()
            .clone()
    }
}
