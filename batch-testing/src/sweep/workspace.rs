//! The files of a sweep: a folder and a database for each run.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use batch_runtime::BatchRuntime;
use batch_runtime::destination::DatabaseDestination;
use batch_runtime::repository::RepositoryUrl;
use tempfile::TempDir;

use super::server::{RunDatabase, Server};
use crate::database::TestDatabase;

/// The folder of all runs of a sweep, and their server.
pub(super) struct Workspace {
    folder: TempDir,
    server: Option<Server>,
    /// The names of the repository's tables.
    tables: Vec<String>,
    next: AtomicU32,
}

/// The files and the database of one run, which are removed with it.
pub(super) struct Run<'w> {
    /// The folder of the run, with all other files.
    folder: PathBuf,
    url: RepositoryUrl,
    /// The database on a server, to remove it.
    _database: Option<RunDatabase<'w>>,
}

impl Workspace {
    /// Creates the folder. `url` is the URL of a server.
    pub(super) fn new(url: Option<String>) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("cannot create a folder: {error}"))?;
        let mut workspace = Self {
            server: url.as_deref().map(Server::new).transpose()?,
            folder,
            tables: Vec::new(),
            next: AtomicU32::new(0),
        };
        workspace.tables = match &workspace.server {
            None => {
                // Each run gets a copy of a repository without executions.
                let url = format!("sqlite://{}", workspace.template().display());
                create_tables(&url)?;
                TestDatabase::open(&parsed(&url)?)?.table_names()
            }
            Some(_) => workspace.run()?.database()?.table_names(),
        };
        Ok(workspace)
    }

    fn template(&self) -> PathBuf {
        self.folder.path().join("template.db")
    }

    /// Returns whether the runs are on a server.
    pub(super) fn has_server(&self) -> bool {
        self.server.is_some()
    }

    /// Returns the names of the repository's tables.
    pub(super) fn tables(&self) -> &[String] {
        &self.tables
    }

    /// Returns the prefix of the repository's tables.
    pub(super) fn prefix(&self) -> &str {
        const TABLE: &str = "JOB_EXECUTION_PARAMS";
        let prefix = |table: &String| {
            let length = table.len().checked_sub(TABLE.len())?;
            table[length..].eq_ignore_ascii_case(TABLE).then_some(length)
        };
        let found = self
            .tables
            .iter()
            .find_map(|table| Some(&table[..prefix(table)?]));
        found.unwrap_or("BATCH_")
    }

    pub(super) fn run(&self) -> Result<Run<'_>, String> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().join(number.to_string());
        let failed = |error| format!("cannot create a folder: {error}");
        fs::create_dir_all(folder.join(FILES))
            .and_then(|()| fs::create_dir(folder.join(TEMPORARY)))
            .map_err(failed)?;
        let (url, database) = match &self.server {
            None => {
                let file = folder.join("batch.db");
                fs::copy(self.template(), &file).map_err(failed)?;
                // A crash of a process loses nothing; only one of the machine could.
                let url = format!("sqlite://{}?synchronous=normal", file.display());
                (parsed(&url)?, None)
            }
            Some(server) => {
                let database = server.create(number)?;
                let url = database.url()?;
                create_tables(url.as_str())?;
                (url, Some(database))
            }
        };
        Ok(Run {
            folder,
            url,
            _database: database,
        })
    }
}

/// The folder for files of the job, within the run's folder.
const FILES: &str = "files";
/// The folder for temporary files.
const TEMPORARY: &str = "tmp";

fn parsed(url: &str) -> Result<RepositoryUrl, String> {
    url.parse().map_err(|error| format!("{error}"))
}

/// Creates the tables of the repository, and of the markers of a destination: neither is a result of the job.
fn create_tables(url: &str) -> Result<(), String> {
    let built = BatchRuntime::builder().repository(url).build();
    built.map_err(|error| error.to_string())?;
    let markers = DatabaseDestination::new(url).and_then(|mut destination| destination.create_table());
    markers.map_err(|error| error.chain())
}

impl Run<'_> {
    /// Returns the folder for files of the job, which are compared.
    pub(super) fn files(&self) -> PathBuf {
        self.folder.join(FILES)
    }

    /// Returns the folder for temporary files of the processes, which may leave some.
    pub(super) fn temporary(&self) -> PathBuf {
        self.folder.join(TEMPORARY)
    }

    /// Returns a file beside the job's files.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn url(&self) -> &str {
        self.url.as_str()
    }

    pub(super) fn database(&self) -> Result<TestDatabase, String> {
        TestDatabase::open(&self.url)
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
