//! This version resumes what earlier versions have left: each folder of `tests/upgrade` has the repository and the files of failed jobs, as
//! the version of its name wrote them.
//!
//! `BATCH_LEAVE=1 cargo test --test operations left_by_earlier_versions` writes the folder of this version, with the program `sqlite3`: see
//! RELEASING.md.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use batch_tests::sqlite;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use tempfile::TempDir;

use super::operating::ends;

/// A job whose step `load` fails at the row `x7` of its input. Properties are separated by `;`.
struct Job {
    name: &'static str,
    reader: &'static str,
    reading: &'static str,
    writer: &'static str,
    writing: &'static str,
    /// Further elements of the step.
    more: &'static str,
}

const JOB: Job = Job {
    name: "",
    reader: "csvRecordReader",
    reading: "resource=in/rows-*.csv",
    writer: "recordTableWriter",
    writing: "table=written",
    more: "",
};

const JOBS: [Job; 10] = [
    Job {
        name: "delimited",
        writer: "recordCsvWriter",
        writing: "output=out/delimited.csv",
        ..JOB
    },
    Job {
        name: "fixed",
        reader: "fixedWidthRecordReader",
        reading: "resource=in/rows.txt;columns=id 1-4, name 5-12",
        writer: "recordFixedWidthWriter",
        writing: "output=out/fixed.txt;columns=id 1-4, name 5-12",
        ..JOB
    },
    Job {
        name: "lines",
        reader: "jsonlRecordReader",
        reading: "resource=in/rows.jsonl",
        writer: "recordJsonArrayWriter",
        writing: "output=out/lines.json",
        ..JOB
    },
    Job {
        name: "array",
        reader: "jsonArrayRecordReader",
        reading: "resource=in/rows.json",
        writer: "recordJsonlWriter",
        writing: "output=out/array.jsonl.gz",
        ..JOB
    },
    Job {
        name: "pattern",
        reader: "patternRecordReader",
        reading: "resource=in/rows.log;pattern=^(?<id>\\w+) (?<name>.*)$",
        ..JOB
    },
    Job {
        name: "query",
        reader: "queryRecordReader",
        reading: "query=SELECT n, id, name FROM source;key=n",
        writer: "recordCsvWriter",
        writing: "output=out/query.csv",
        ..JOB
    },
    Job {
        name: "groups",
        reader: "csvRecordGroupReader",
        reading: "resource=in/rows-*.csv;group=size 2",
        writer: "recordGroupTableWriter",
        ..JOB
    },
    Job {
        name: "parts",
        reading: "",
        more: "<partition><algorithm ref=\"filePartitions\"><properties>\
               <property name=\"resource\" value=\"in/rows-*.csv\"/></properties></algorithm></partition>",
        ..JOB
    },
    Job {
        name: "ledger",
        writing: "table=written;database=sqlite://ledger.db",
        ..JOB
    },
    Job {
        name: "rejects",
        reading: "resource=in/short.csv",
        writer: "recordCsvWriter",
        writing: "output=out/rejects.csv",
        more: "<listeners><listener ref=\"recordRejects\"><properties>\
               <property name=\"rejects.output\" value=\"out/rejected.csv\"/></properties></listener></listeners>",
        ..JOB
    },
];

/// The rows of the inputs: number, id, name.
fn rows() -> impl Iterator<Item = (u32, String, String)> {
    (1..=12).map(|number| {
        let id = if number == 7 {
            "x7".to_owned()
        } else {
            number.to_string()
        };
        (number, id, format!("Ada {number}"))
    })
}

fn text(row: impl Fn(u32, &str, &str) -> String) -> String {
    rows().map(|(number, id, name)| row(number, &id, &name)).collect()
}

fn properties(given: &str, target: &str) -> String {
    let pairs = given.split(';').filter_map(|pair| pair.split_once('='));
    let escaped = |value: &str| value.replace('<', "&lt;");
    let lines = pairs.map(|(name, value)| {
        format!(
            "<property name=\"{name}\" value=\"{}\" target=\"{target}\"/>",
            escaped(value)
        )
    });
    lines.collect()
}

/// Writes the jobs, their inputs and the tables that they need.
fn prepare(folder: &Path) {
    for name in ["in", "out"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    for Job {
        name,
        reader,
        reading,
        writer,
        writing,
        more,
    } in JOBS
    {
        let processor = match name {
            "groups" => "recordGroupProcessor",
            _ => "recordProcessor",
        };
        let (reading, writing) = (properties(reading, "reader"), properties(writing, "writer"));
        let job = format!(
            "<job id=\"{name}\"><step id=\"first\" next=\"load\"><batchlet ref=\"systemCommand\"><properties><property name=\"command\" value=\"true\"/></properties></batchlet></step>\
             <step id=\"load\">{more}<chunk reader=\"{reader}\" processor=\"{processor}\" writer=\"{writer}\" commit-interval=\"2\" skip-limit=\"${{skips}}\"><properties>\
             {reading}{writing}<property name=\"types\" value=\"id=int\" target=\"processor\"/></properties><skippable-exception-classes>\
             <include class=\"RecordError\"/><include class=\"MappingError\"/></skippable-exception-classes></chunk></step></job>"
        );
        fs::write(folder.join(format!("{name}.xml")), job).unwrap();
    }
    let csv = |from: u32, to: u32| {
        let some = rows().filter(|(number, ..)| (from..=to).contains(number));
        let lines = some.map(|(_, id, name)| format!("{id},{name}\n"));
        format!("id,name\n{}", lines.collect::<String>())
    };
    let array = text(|_, id, name| format!(",{{\"id\":\"{id}\",\"name\":\"{name}\"}}\n"));
    let inputs = [
        ("rows-1.csv", csv(1, 3)),
        ("rows-2.csv", csv(4, 12)),
        ("short.csv", csv(1, 12).replace("3,Ada 3", "3")),
        ("rows.txt", text(|_, id, name| format!("{id:4}{name:8}\n"))),
        (
            "rows.jsonl",
            text(|_, id, name| format!("{{\"id\":\"{id}\",\"name\":\"{name}\"}}\n")),
        ),
        ("rows.json", format!("[{}]", array.trim_start_matches(','))),
        ("rows.log", text(|_, id, name| format!("{id} {name}\n"))),
    ];
    for (name, content) in inputs {
        fs::write(folder.join("in").join(name), content).unwrap();
    }
    age(folder);
    ends(0, folder, &["db", "migrate"]);
    let source = text(|number, id, name| format!("INSERT INTO source VALUES ({number}, '{id}', '{name}');"));
    let tables = "CREATE TABLE written (id INTEGER NOT NULL, name TEXT NOT NULL); CREATE TABLE source (n INTEGER PRIMARY KEY, id TEXT, name TEXT);";
    sqlite::open(&folder.join("batch.db"))
        .batch_execute(&format!("{tables}{source}"))
        .unwrap();
    fs::File::create(folder.join("ledger.db")).unwrap();
    sqlite::open(&folder.join("ledger.db"))
        .batch_execute(tables)
        .unwrap();
}

/// Sets the time of the inputs' last change, which checkpoints contain.
fn age(folder: &Path) {
    for entry in fs::read_dir(folder.join("in")).unwrap() {
        let file = fs::File::options()
            .write(true)
            .open(entry.unwrap().path())
            .unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1_700_000_000))
            .unwrap();
    }
}

/// Lets each job fail at its bad row, after some commits.
fn fail(folder: &Path) {
    for Job { name, .. } in JOBS {
        let skips = if name == "rejects" { "-skips=1" } else { "-skips=0" };
        ends(1, folder, &["launch", name, skips]);
    }
}

/// Completes each job.
fn complete(folder: &Path) {
    for Job { name, .. } in JOBS {
        ends(0, folder, &["launch", name, "-skips=9"]);
    }
}

#[derive(QueryableByName)]
struct Text {
    #[diesel(sql_type = diesel::sql_types::Text)]
    text: String,
}

/// Returns the text that a query selects as `text`.
fn select(folder: &Path, database: &str, query: &str) -> String {
    let mut connection = sqlite::open(&folder.join(database));
    diesel::sql_query(query)
        .get_result::<Text>(&mut connection)
        .unwrap()
        .text
}

/// Returns what the jobs have written: the files by their names, and the tables.
fn results(folder: &Path) -> Vec<(String, String)> {
    let files = fs::read_dir(folder.join("out")).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = String::from_utf8(fs::read(path).unwrap());
        (
            name,
            text.unwrap_or_else(|binary| format!("{:?}", binary.as_bytes())),
        )
    });
    let mut found: Vec<_> = files.collect();
    let rows = "SELECT group_concat(id || ' ' || name, x'0a') AS text FROM (SELECT * FROM written ORDER BY id, name)";
    found.extend(
        ["batch.db", "ledger.db"].map(|database| (database.to_owned(), select(folder, database, rows))),
    );
    found.sort();
    found
}

/// Returns the number of items that the last execution of a job has read.
fn last_reads(folder: &Path, job: &str) -> u64 {
    let reads = format!(
        "SELECT CAST(SUM(READ_COUNT) AS TEXT) AS text FROM BATCH_STEP_EXECUTION WHERE JOB_EXECUTION_ID = (SELECT MAX(JOB_EXECUTION_ID)
         FROM BATCH_JOB_EXECUTION JOIN BATCH_JOB_INSTANCE USING (JOB_INSTANCE_ID) WHERE JOB_NAME = '{job}')"
    );
    select(folder, "batch.db", &reads).parse().unwrap()
}

/// The databases of a folder, as SQL.
const DATABASES: [(&str, &str); 2] = [("batch.db", "batch.sql"), ("ledger.db", "ledger.sql")];

/// Writes what this version leaves.
fn leave(target: &Path) {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    fail(folder.path());
    let _ = fs::remove_dir_all(target);
    for name in ["in", "out"] {
        fs::create_dir_all(target.join(name)).unwrap();
        copy(&folder.path().join(name), &target.join(name));
    }
    for Job { name, .. } in JOBS {
        let job = format!("{name}.xml");
        fs::copy(folder.path().join(&job), target.join(&job)).unwrap();
    }
    // Instead of the name of this host.
    let owner = "UPDATE BATCH_JOB_INSTANCE_LEASE SET OWNER = 'host' || substr(OWNER, instr(OWNER, '/'))";
    sqlite::open(&folder.path().join("batch.db"))
        .batch_execute(owner)
        .unwrap();
    for (database, script) in DATABASES {
        let output = Command::new("sqlite3")
            .arg(folder.path().join(database))
            .arg(".dump")
            .output()
            .unwrap();
        assert!(output.status.success());
        fs::write(target.join(script), output.stdout).unwrap();
    }
}

/// Copies the files of a folder, not those of its folders.
fn copy(from: &Path, to: &Path) {
    let files = fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path());
    for file in files.filter(|file| file.is_file()) {
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}

/// Returns a folder as a version has left it.
fn restore(left: &Path) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["in", "out"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        copy(&left.join(name), &folder.path().join(name));
    }
    copy(left, folder.path());
    age(folder.path());
    for (database, script) in DATABASES {
        let script = fs::read_to_string(left.join(script)).unwrap();
        fs::File::create(folder.path().join(database)).unwrap();
        sqlite::open(&folder.path().join(database))
            .batch_execute(&script)
            .unwrap();
    }
    folder
}

/// Each job resumes from the checkpoint of the earlier version, and writes what an undisturbed run writes.
///
/// Spec: UPGRADE-01
#[test]
fn what_is_left_by_earlier_versions_is_resumed() {
    let versions = Path::new(env!("CARGO_MANIFEST_DIR")).join("upgrade");
    if std::env::var_os("BATCH_LEAVE").is_some() {
        leave(&versions.join(env!("CARGO_PKG_VERSION")));
    }
    let undisturbed = tempfile::tempdir().unwrap();
    prepare(undisturbed.path());
    complete(undisturbed.path());
    let expected = results(undisturbed.path());
    let left: Vec<PathBuf> = fs::read_dir(versions)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(!left.is_empty());
    for left in left {
        let folder = restore(&left);
        complete(folder.path());
        assert_eq!(results(folder.path()), expected, "{}", left.display());
        for Job { name, .. } in JOBS {
            let (reads, all) = (
                last_reads(folder.path(), name),
                last_reads(undisturbed.path(), name),
            );
            assert!(
                reads < all,
                "{}: {name} read {reads} of {all} items",
                left.display()
            );
        }
    }
}
