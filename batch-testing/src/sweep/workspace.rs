//! The files of a sweep: a folder and a database for each run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use batch_runtime::{BatchRuntime, RepositoryConnection};
use diesel::prelude::*;
use tempfile::TempDir;

use crate::database::TestDatabase;

/// The folder of all runs of a sweep.
pub(super) struct Workspace {
    folder: TempDir,
    /// The names of the repository's tables.
    tables: Vec<String>,
    next: AtomicU32,
}

/// The files of one run, which are removed with it.
pub(super) struct Run {
    /// The folder of the run, with all other files.
    folder: PathBuf,
    url: String,
}

impl Workspace {
    pub(super) fn new() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("cannot create a folder: {error}"))?;
        // Each run gets a copy of a repository without executions.
        let template = folder.path().join("template.db");
        let url = format!("sqlite://{}", template.display());
        let built = BatchRuntime::builder().repository(url).build();
        built.map_err(|error| error.to_string())?;
        let tables = open(&template).table_names();
        Ok(Self {
            folder,
            tables,
            next: AtomicU32::new(0),
        })
    }

    /// Returns the names of the repository's tables.
    pub(super) fn tables(&self) -> &[String] {
        &self.tables
    }

    pub(super) fn run(&self) -> Result<Run, String> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().join(number.to_string());
        let database = folder.join("batch.db");
        let run = Run {
            // A crash of a process loses nothing; only one of the machine could.
            url: format!("sqlite://{}?synchronous=normal", database.display()),
            folder,
        };
        let template = self.folder.path().join("template.db");
        fs::create_dir_all(run.files())
            .and_then(|()| fs::create_dir(run.temporary()))
            .and_then(|()| fs::copy(template, database))
            .map_err(|error| format!("cannot create a folder: {error}"))?;
        Ok(run)
    }
}

impl Run {
    /// Returns the folder for files of the job, which are compared.
    pub(super) fn files(&self) -> PathBuf {
        self.folder.join("files")
    }

    /// Returns the folder for temporary files of the processes, which may leave some.
    pub(super) fn temporary(&self) -> PathBuf {
        self.folder.join("tmp")
    }

    /// Returns a file beside those of the job.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn database(&self) -> TestDatabase {
        open(&self.folder.join("batch.db"))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn open(file: &Path) -> TestDatabase {
    let connection = SqliteConnection::establish(&file.display().to_string());
    let connection = connection.unwrap_or_else(|error| panic!("cannot open the database: {error}"));
    TestDatabase::new(RepositoryConnection::from(connection))
}
