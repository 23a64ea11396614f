//! Where the runs of a sweep take place: a folder, and a database or schema of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use batch_runtime::{BatchRuntime, RepositoryConnection};
use diesel::prelude::*;
use tempfile::TempDir;

use crate::database::TestDatabase;

/// The folder of all runs of a sweep, and the server if it is not SQLite.
pub(super) struct Place {
    folder: TempDir,
    next: AtomicU32,
}

/// The place of one run. Its files are removed with it.
pub(super) struct Run {
    folder: PathBuf,
    database: PathBuf,
    url: String,
}

impl Place {
    pub(super) fn new(url: Option<&str>) -> Result<Self, String> {
        if let Some(url) = url {
            return Err(format!("a sweep cannot use {url} yet"));
        }
        let folder = tempfile::tempdir().map_err(|error| format!("cannot create a folder: {error}"))?;
        let place = Self {
            folder,
            next: AtomicU32::new(0),
        };
        // Each run gets a copy of a repository without executions.
        let url = format!("sqlite://{}", place.template().display());
        BatchRuntime::builder()
            .repository(url)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(place)
    }

    fn template(&self) -> PathBuf {
        self.folder.path().join("template.db")
    }

    pub(super) fn run(&self) -> Result<Run, String> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().join(number.to_string());
        let database = self.folder.path().join(format!("{number}.db"));
        let made = fs::create_dir(&folder).and_then(|()| fs::copy(self.template(), &database));
        made.map_err(|error| format!("cannot create a folder: {error}"))?;
        Ok(Run {
            // A crash of a process loses nothing; only one of the machine could.
            url: format!("sqlite://{}?synchronous=normal", database.display()),
            folder,
            database,
        })
    }
}

impl Run {
    /// Returns the folder for files of the job.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn database(&self) -> TestDatabase {
        let connection = SqliteConnection::establish(&self.database.display().to_string());
        let connection = connection.unwrap_or_else(|error| panic!("cannot open the database: {error}"));
        TestDatabase::new(RepositoryConnection::from(connection))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
        for suffix in ["", "-wal", "-shm", "-owners"] {
            let path = format!("{}{suffix}", self.database.display());
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
    }
}
