//! The examples of batch-runtime: one directory each, with its Job XML. One test checks all their jobs; in a program of
//! your own, place it beside the artifacts. Code that several examples share is beside this file.

#[cfg(test)]
extern crate self as batch_examples;

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

pub mod money;

/// A file that cannot be opened.
#[derive(Debug)]
pub struct OpenError {
    file: PathBuf,
    source: csv::Error,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read `{}`: {}", self.file.display(), self.source)
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // Its own message is part of this one.
        self.source.source()
    }
}

/// Opens a CSV file. Adds the name of the file to the error, because the error of the operating system lacks it.
///
/// # Errors
/// If the file cannot be opened.
pub fn open_csv(file: &Path) -> Result<csv::Reader<File>, OpenError> {
    csv::Reader::from_path(file).map_err(|source| OpenError {
        file: file.to_owned(),
        source,
    })
}

/// Returns the folder of the input files: the one in this crate if cargo runs the program; otherwise it is expected in the current
/// directory, which may be the root of the repository. `-Ddata=FOLDER` names another one, for a copy of the program elsewhere.
pub fn data_folder() -> String {
    match std::env::var("CARGO_MANIFEST_DIR") {
        Ok(root) => format!("{root}/data"),
        Err(_) if std::path::Path::new("examples/data").is_dir() => "examples/data".to_owned(),
        Err(_) => "data".to_owned(),
    }
}

#[cfg(test)]
#[path = "custom-loader/main.rs"]
#[expect(dead_code, reason = "`main` is not called")]
mod custom_loader;
#[cfg(test)]
#[path = "flights/main.rs"]
#[expect(dead_code, reason = "`main` is not called")]
mod flights;
#[cfg(test)]
#[path = "flow/main.rs"]
#[expect(dead_code, reason = "`main` is not called")]
mod flow;
#[cfg(test)]
#[path = "hello/main.rs"]
#[expect(dead_code, reason = "`main` is not called")]
mod hello;
#[cfg(test)]
#[path = "load/main.rs"]
#[expect(dead_code, reason = "`main` is not called")]
mod load;
#[cfg(test)]
#[path = "operator/main.rs"]
#[expect(dead_code, reason = "`main` is not called")]
mod operator;
#[cfg(test)]
#[path = "partitions/main.rs"]
#[expect(dead_code, reason = "`main` is not called")]
mod partitions;
#[cfg(test)]
#[path = "payroll/main.rs"]
#[expect(dead_code, reason = "`main` is not called")]
mod payroll;
#[cfg(test)]
#[path = "skip-retry/main.rs"]
#[expect(dead_code, reason = "`main` is not called")]
mod skip_retry;

#[cfg(test)]
mod tests {
    #[test]
    fn jobs_fit_their_artifacts() {
        batch_runtime::check_jobs!("hello");
        batch_runtime::check_jobs!(deny_warnings, "load", data = "data");
        batch_runtime::check_jobs!(deny_warnings, "flights", data = "data");
        batch_runtime::check_jobs!(deny_warnings, "partitions", data = "data");
        batch_runtime::check_jobs!(deny_warnings, "payroll");
        batch_runtime::check_jobs!(deny_warnings, "skip-retry", data = "data");
        batch_runtime::check_jobs!(deny_warnings, "flow", data = "data");
        batch_runtime::check_jobs!(deny_warnings, "operator");
    }

    /// Jobs that need more than parameters: here a batch.xml with a loader.
    #[test]
    fn jobs_of_a_loader_fit_its_artifacts() {
        batch_runtime::BatchRuntime::builder()
            .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/custom-loader"))
            .batch_xml("batch.xml", include_str!("custom-loader/batch.xml"))
            .check([("data", "data")])
            .deny_warnings()
            .assert_ok();
    }
}
