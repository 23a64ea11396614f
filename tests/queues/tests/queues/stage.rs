//! A folder with a job and its repository, whose database has the table `item`.

use std::fs;
use std::path::Path;

use batch_items as _;
use batch_runtime::{BatchRuntime, BatchStatus, JobExecutionId, JobOperator, JobParameters};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};

use super::Item;

/// A folder with a job.
pub(crate) struct Stage {
    folder: tempfile::TempDir,
    runtime: BatchRuntime,
}

/// The end of an execution.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) id: JobExecutionId,
    pub(crate) status: BatchStatus,
    pub(crate) message: String,
    pub(crate) reads: i64,
    pub(crate) skips: i64,
}

/// Properties of an artifact.
pub(crate) type Properties = Vec<(&'static str, String)>;

/// Returns the XML of properties.
pub(crate) fn properties(properties: &Properties, target: &str) -> String {
    let lines = properties.iter().map(|(name, value)| {
        let value = value
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('"', "&quot;");
        format!("<property name=\"{name}\" value=\"{value}\" target=\"{target}\"/>")
    });
    lines.collect()
}

/// The step of a job: its reader and writer, with their properties.
pub(crate) struct Step<'s> {
    pub(crate) reader: (&'s str, Properties),
    pub(crate) writer: (&'s str, Properties),
    /// Attributes of the chunk, and its further children.
    pub(crate) attributes: &'s str,
    pub(crate) children: &'s str,
}

impl Step<'_> {
    pub(crate) fn xml(&self) -> String {
        let (reader, of_reader) = &self.reader;
        let (writer, of_writer) = &self.writer;
        format!(
            "<step id=\"step\"><chunk reader=\"{reader}\" processor=\"Pass\" writer=\"{writer}\" {}><properties>\
             <property name=\"fail.at\" value=\"0\" target=\"processor\"/>{}{}</properties>{}</chunk></step>",
            self.attributes,
            properties(of_reader, "reader"),
            properties(of_writer, "writer"),
            self.children
        )
    }
}

/// Returns a step that loads the table.
pub(crate) fn loading(reader: (&str, Properties)) -> Step<'_> {
    Step {
        reader,
        writer: ("ToTable", vec![("table", "item".to_owned())]),
        attributes: "commit-interval=\"7\"",
        children: "",
    }
}

impl Stage {
    /// Creates a job of one step.
    pub(crate) fn new(step: &Step<'_>) -> Self {
        Self::of(&step.xml())
    }

    /// Creates a job of these elements.
    pub(crate) fn of(elements: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let xml = format!("<job id=\"job\">{elements}</job>");
        fs::write(folder.path().join("job.xml"), xml).unwrap();
        let runtime = runtime(folder.path());
        let stage = Self { folder, runtime };
        let table = "CREATE TABLE item (id INTEGER, text TEXT, part INTEGER, place INTEGER, source TEXT)";
        stage.connection().batch_execute(table).unwrap();
        stage
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn operator(&self) -> JobOperator {
        self.runtime.job_operator()
    }

    fn connection(&self) -> SqliteConnection {
        SqliteConnection::establish(&self.path().join("batch.db").display().to_string()).unwrap()
    }

    /// Returns the rows of the table, by their numbers.
    pub(crate) fn rows(&self) -> Vec<Item> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = BigInt)]
            id: i64,
            #[diesel(sql_type = Text)]
            text: String,
            #[diesel(sql_type = Nullable<BigInt>)]
            part: Option<i64>,
            #[diesel(sql_type = Nullable<BigInt>)]
            place: Option<i64>,
            #[diesel(sql_type = Nullable<Text>)]
            source: Option<String>,
        }
        let rows = diesel::sql_query("SELECT * FROM item ORDER BY id, part, place");
        let rows: Vec<Row> = rows.load(&mut self.connection()).unwrap();
        let items = rows.into_iter().map(|row| Item {
            id: row.id,
            text: row.text,
            part: row.part,
            place: row.place,
            source: row.source,
        });
        items.collect()
    }

    /// Starts the job and waits for its end.
    pub(crate) fn start(&self, parameters: impl Into<JobParameters>) -> Ended {
        let id = self.operator().start("job", parameters).unwrap();
        self.ended(id)
    }

    /// Restarts an execution and waits for its end.
    pub(crate) fn restart(&self, ended: &Ended, parameters: impl Into<JobParameters>) -> Ended {
        let id = self.operator().restart(ended.id, parameters).unwrap();
        self.ended(id)
    }

    pub(crate) fn ended(&self, id: JobExecutionId) -> Ended {
        let operator = self.operator();
        let execution = operator.wait(id).unwrap();
        let steps = operator.step_executions(id).unwrap();
        let counters = steps.last().map(|step| step.counters).unwrap_or_default();
        Ended {
            id,
            status: execution.status,
            message: execution.exit_message,
            reads: counters.reads,
            skips: counters.skips(),
        }
    }
}

impl Ended {
    /// Checks that the job has completed.
    #[track_caller]
    pub(crate) fn completed(self) -> Self {
        assert_eq!(self.status, BatchStatus::Completed, "{}", self.message);
        self
    }

    /// Checks that the job has failed, with a message that has these parts.
    #[track_caller]
    pub(crate) fn failed(self, parts: &[&str]) -> Self {
        assert_eq!(self.status, BatchStatus::Failed, "{self:?}");
        for part in parts {
            assert!(self.message.contains(part), "{}\nlacks {part}", self.message);
        }
        self
    }
}

/// Returns a runtime for the job of a folder.
pub(crate) fn runtime(folder: &Path) -> BatchRuntime {
    let repository = format!(
        "sqlite://{}?synchronous=normal",
        folder.join("batch.db").display()
    );
    BatchRuntime::builder()
        .job_path(folder.display().to_string())
        .repository(repository)
        // A process that is killed at random may die several times without progress.
        .crash_limit(0)
        .build()
        .unwrap()
}
