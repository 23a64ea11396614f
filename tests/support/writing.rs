//! A job that writes files and tables, each in a step with another writer, and what each of its runs has written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use diesel::connection::SimpleConnection;

use crate::database::Outside;
use crate::{deadline, process, sqlite};

/// The environment variable that makes the program print its events.
pub const EVENTS: &str = "WRITING_EVENTS";
/// An event: an item that is read, or a statement.
pub const EVENT: &str = "event";
/// The environment variable of a step and a row in it, `delimited:17`: from there on rows are wrong and many, and the process
/// waits before it commits one.
pub const WRONG_FROM: &str = "WRITING_WRONG_FROM";
/// The event of a process that waits.
pub const WAITING: &str = "waiting";
/// The environment variable that makes the program print its peak of memory, and the beginning of that line.
pub const PEAK: &str = "WRITING_PEAK";

/// A step: its name, its processor and writer, and the properties of the writer.
#[derive(Clone, Copy)]
pub struct Step(
    pub &'static str,
    pub &'static str,
    pub &'static str,
    pub &'static [(&'static str, &'static str)],
);

/// A step for each kind of writer.
pub const STEPS: &[Step] = &[
    Step("delimited", "ToRow", "DelimitedRows", &[("output", "rows.csv")]),
    Step(
        "files",
        "ToRow",
        "DelimitedTotals",
        &[("output", "totals.csv"), ("max.items.per.file", "30")],
    ),
    Step(
        "gzip",
        "ToRow",
        "DelimitedTotals",
        &[("output", "totals.csv.gz"), ("sync", "never")],
    ),
    Step(
        "fixed-width",
        "ToPlain",
        "FixedWidthRows",
        &[
            ("output", "rows.dat"),
            ("columns", "id 1-6 zeros, name 7-30, cents 31-40 right"),
        ],
    ),
    Step(
        "lines",
        "ToText",
        "TextRows",
        &[("output", "new/folder/rows.txt")],
    ),
    Step(
        "append",
        "ToRow",
        "JsonLinesRows",
        &[("output", "appended.jsonl"), ("if.exists", "append")],
    ),
    Step(
        "array",
        "ToRow",
        "JsonArrayRows",
        &[("output", "rows.json"), ("sync", "finish")],
    ),
    Step(
        "arrays",
        "ToRow",
        "JsonArrayRows",
        &[("output", "rows.json.gz"), ("max.items.per.file", "50")],
    ),
    Step(
        "xml",
        "ToRow",
        "XmlRows",
        &[
            ("output", "rows.xml"),
            ("element", "row"),
            ("max.items.per.file", "64"),
        ],
    ),
    Step("table", "ToTableRow", "TableRows", &[("table", "written")]),
    Step("insertable", "ToTableRow", "InsertedRows", &[]),
];

/// The items of each step.
#[derive(Clone, Copy)]
pub struct Load {
    /// Their number.
    pub rows: u32,
    /// The additional characters in each.
    pub width: u32,
    /// The items of a chunk.
    pub interval: u32,
}

/// What a run has written: its files, by their path, and its rows.
#[derive(PartialEq, Eq)]
pub struct Written {
    files: BTreeMap<PathBuf, Vec<u8>>,
    rows: Vec<String>,
}

impl Written {
    /// Returns the first difference, if there is one.
    pub fn difference(&self, expected: &Self) -> Option<String> {
        let names = |written: &Self| written.files.keys().cloned().collect::<Vec<_>>();
        if names(self) != names(expected) {
            return Some(format!(
                "files {:?} instead of {:?}",
                names(self),
                names(expected)
            ));
        }
        for (name, content) in &self.files {
            if *content != expected.files[name] {
                let (found, expected) = (process::text(content), process::text(&expected.files[name]));
                return Some(format!("{}: {found}\ninstead of\n{expected}", name.display()));
            }
        }
        (self.rows != expected.rows).then(|| format!("rows {:?} instead of {:?}", self.rows, expected.rows))
    }

    /// Returns the files with their lengths.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&Path, usize)> {
        self.files
            .iter()
            .map(|(name, content)| (name.as_path(), content.len()))
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }
}

/// The folder of the job. Each run has a folder in it.
pub struct Writing {
    program: &'static str,
    folder: tempfile::TempDir,
}

impl Writing {
    /// Creates a folder with a job of these steps and an empty repository. `program` is the path of `writing`.
    pub fn new(program: &'static str, steps: &[Step], load: Load) -> Self {
        let steps: Vec<String> = (1..)
            .zip(steps)
            .map(|(number, step)| {
                let next = steps
                    .get(number)
                    .map(|Step(name, ..)| format!(" next=\"{name}\""));
                step_xml(step, &next.unwrap_or_default(), load)
            })
            .collect();
        Self::of_job(program, &format!("<job id=\"job\">\n{}</job>", steps.concat()))
    }

    /// Creates a folder with a job and an empty repository.
    pub fn of_job(program: &'static str, xml: &str) -> Self {
        // On the build's disk, wherever temporary files are: most kills should strike during a write, which in memory
        // takes no time.
        let folder = tempfile::tempdir_in(process::build_folder()).unwrap();
        fs::write(folder.path().join("job.xml"), xml).unwrap();
        let this = Self { program, folder };
        batch_runtime::BatchRuntime::builder()
            .repository(format!("sqlite://{}", this.database().display()))
            .build()
            .unwrap();
        for table in ["written", "inserted"] {
            let columns = "run INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT NOT NULL, cents INTEGER";
            sqlite::open(&this.database())
                .batch_execute(&format!("CREATE TABLE {table} ({columns})"))
                .unwrap();
        }
        sqlite::reject_wrong_rows(&this.database());
        this
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the repository's file.
    pub fn database(&self) -> PathBuf {
        self.path().join("batch.db")
    }

    /// Returns the folder of a run, which it creates with the file that a step appends to.
    pub fn folder(&self, run: u32) -> PathBuf {
        let folder = self.path().join(format!("run-{run}"));
        if !folder.exists() {
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("appended.jsonl"), "{\"existing\":true}\n").unwrap();
        }
        folder
    }

    /// Returns a launch of the run.
    pub fn launch(&self, run: u32) -> Command {
        let waited_for = self.folder(run);
        deadline::waits_for(move || format!("a launch in {}", waited_for.display()));
        let mut command = Command::new(self.program);
        command
            .args(["launch", "job", &format!("run={run}")])
            // Every other run reads the next chunk while one is written, and of these and of the others every other processes items on two
            // threads.
            .arg(format!("-batch.chunk.pipeline={}", run % 2 == 1))
            .arg(format!("-batch.chunk.processors={}", 1 + run / 2 % 2))
            .current_dir(self.path())
            .env_remove("BATCH_FAILPOINTS")
            .env_remove(EVENTS)
            // A process that is killed at random may die several times without progress.
            .env("BATCH_CRASH_LIMIT", "0")
            .stdin(Stdio::null());
        command
    }

    /// Runs a launch that has to complete.
    pub fn completes(&self, run: u32) {
        let output = self.launch(run).output().unwrap();
        let (out, err) = (process::text(&output.stdout), process::text(&output.stderr));
        assert!(output.status.success(), "{out}\n{err}");
    }

    /// Returns what the run has written.
    pub fn written(&self, run: u32) -> Written {
        let root = self.folder(run);
        let mut files = BTreeMap::new();
        let mut pending = vec![root.clone()];
        while let Some(path) = pending.pop() {
            if path.is_dir() {
                pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else {
                let name = path.strip_prefix(&root).unwrap().to_owned();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
        let rows = ["written", "inserted"].map(|table| {
            self.outside().rows(&format!(
                "SELECT '{table} ' || id || ' ' || name || ' ' || COALESCE(cents, '-') AS text FROM {table} \
                 WHERE run = {run} ORDER BY rowid"
            ))
        });
        Written {
            files,
            rows: rows.concat(),
        }
    }

    /// Opens the database as a tool beside the runtime would.
    pub fn outside(&self) -> Outside {
        Outside::Sqlite(sqlite::open(&self.database()))
    }
}

fn step_xml(step: &Step, next: &str, load: Load) -> String {
    let Load {
        rows,
        width,
        interval,
    } = load;
    let Step(name, processor, writer, properties) = step;
    let properties = properties.iter().map(|(name, value)| {
        let folder = if *name == "output" { "run-${run}/" } else { "" };
        format!("<property name=\"{name}\" value=\"{folder}{value}\" target=\"writer\"/>")
    });
    let properties: String = properties.collect();
    format!(
        r#"<step id="{name}"{next}><chunk reader="Rows" processor="{processor}" writer="{writer}" commit-interval="{interval}">
  <properties><property name="rows" value="{rows}" target="reader"/><property name="width" value="{width}" target="reader"/>{properties}</properties>
</chunk></step>
"#
    )
}
