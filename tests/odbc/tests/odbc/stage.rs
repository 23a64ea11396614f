//! A database that is reached by ODBC, and jobs with it.

use std::path::Path;

use batch_runtime::{BatchRuntime, BatchStatus, JobOperator, JobParameters};
use batch_test_servers::{Kind, shared};
use batch_tests::database::{Database, Place};

/// A database, and a repository in a file beside it.
pub(crate) struct Stage {
    pub(crate) place: Place,
    pub(crate) folder: tempfile::TempDir,
}

impl Stage {
    /// Creates a new database, with tables.
    pub(crate) fn new(database: Database, tables: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Beside the file of the repository.
        let within = folder.path().join("data");
        std::fs::create_dir(&within).unwrap();
        let place = Place::new(database, &within).without_options();
        if database == Database::Mariadb {
            place
                .connect()
                .execute("ALTER DATABASE CHARACTER SET utf8mb4")
                .unwrap();
        }
        place.connect().execute(tables).unwrap();
        Self { place, folder }
    }

    /// Returns the connection string.
    pub(crate) fn string(&self) -> String {
        string_of(&self.place)
    }

    /// Runs statements by the client of diesel.
    pub(crate) fn execute(&self, statements: &str) {
        self.place.connect().execute(statements).unwrap();
    }

    /// Returns the texts in the column `text` of a query, by the client of diesel.
    pub(crate) fn rows(&self, query: &str) -> Vec<String> {
        self.place.connect().rows(query)
    }

    pub(crate) fn operator(&self, job: &str) -> JobOperator {
        let repository = format!("sqlite://{}", self.folder.path().join("repository.db").display());
        let runtime = BatchRuntime::builder()
            .repository(repository)
            .database("there", self.string())
            .job_xml("job.xml", job);
        runtime.build().unwrap().job_operator()
    }

    /// Runs a job, and returns how it ends, with its message.
    pub(crate) fn run(&self, job: &str, parameters: JobParameters) -> (BatchStatus, String) {
        let operator = self.operator(job);
        let execution = operator.launch("job", parameters).unwrap();
        let ended = operator.wait(execution).unwrap();
        (ended.status, ended.exit_message)
    }

    /// Runs a job to its end.
    #[track_caller]
    pub(crate) fn complete(&self, job: &str, parameters: JobParameters) {
        let (status, message) = self.run(job, parameters);
        assert_eq!(
            status,
            BatchStatus::Completed,
            "{:?}: {message}",
            self.place.database()
        );
    }

    /// Returns the message of a job that fails.
    #[track_caller]
    pub(crate) fn fail(&self, job: &str) -> String {
        let (status, message) = self.run(job, JobParameters::new());
        assert_eq!(
            status,
            BatchStatus::Failed,
            "{:?}: {message}",
            self.place.database()
        );
        message
    }

    /// Returns the path of a file beside the database.
    pub(crate) fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

/// Returns the connection string of a database.
pub(crate) fn string_of(place: &Place) -> String {
    const DRIVERS: &str = "/usr/lib/x86_64-linux-gnu/odbc";
    let driver = |name: &str| {
        let path = format!("{DRIVERS}/{name}");
        assert!(
            Path::new(&path).exists(),
            "{path} is not there: install odbc-postgresql, odbc-mariadb and libsqliteodbc"
        );
        path
    };
    let url = place.url();
    let name = url.split(['/', '?']).nth(3).unwrap_or_default();
    let socket = |kind| shared(kind).socket();
    match place.database() {
        Database::Postgres => {
            let folder = socket(Kind::Postgres).parent().unwrap().display().to_string();
            let driver = driver("psqlodbcw.so");
            format!("odbc:Driver={driver};Servername={folder};Database={name};UID=postgres;BoolsAsChar=0")
        }
        Database::Mariadb => {
            let (driver, socket) = (driver("libmaodbc.so"), socket(Kind::Mariadb));
            format!(
                "odbc:Driver={driver};Server=localhost;Socket={};Database={name};UID=root;OPTION=2",
                socket.display()
            )
        }
        Database::Sqlite => {
            let path = url
                .trim_start_matches("sqlite://")
                .split('?')
                .next()
                .unwrap_or_default();
            format!(
                "odbc:Driver={};Database={path};Timeout=60000;StepAPI=1",
                driver("libsqlite3odbc.so")
            )
        }
    }
}

/// Returns a job of one chunk step, whose artifacts have properties.
pub(crate) fn job(reader: &str, writer: &str, properties: &[(&str, &str, &str)]) -> String {
    let properties: String = properties
        .iter()
        .map(|(target, name, value)| {
            format!(
                r#"<property name="{name}" value="{}" target="{target}"/>"#,
                escaped(value)
            )
        })
        .collect();
    format!(
        r#"<job id="job"><step id="step"><chunk reader="{reader}" writer="{writer}" commit-interval="3">
             <properties>{properties}</properties></chunk></step></job>"#
    )
}

fn escaped(value: &str) -> String {
    value
        .replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;")
}
