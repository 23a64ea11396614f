//! The time per record of each reader and writer at 10,000, 100,000 and 1,000,000 records, plain and compressed, with clean and with odd
//! content: it does not grow with the number of records.
//!
//! `cargo bench -p batch-bench --bench linear -- 100000` stops at that size, and a word selects the cases that contain it.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use batch_bench::{head, report};
use batch_columnar::{ParquetItemReader, ParquetItemWriter};
use batch_items::{XmlItemReader, XmlItemWriter};
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus};
use serde::{Deserialize, Serialize};

const SIZES: [u64; 3] = [10_000, 100_000, 1_000_000];
/// The time per record at the largest size, as a multiple of the time at the smallest one.
const GATE: f64 = 1.3;

#[derive(Deserialize, Serialize)]
struct Entry {
    id: i64,
    memo: String,
    amount: f64,
}

#[item_reader("xmlEntries")]
type XmlEntries = XmlItemReader<Entry>;
#[item_writer("entriesXml")]
type EntriesXml = XmlItemWriter<Entry>;
#[item_reader("parquetEntries")]
type ParquetEntries = ParquetItemReader<Entry>;
#[item_writer("entriesParquet")]
type EntriesParquet = ParquetItemWriter<Entry>;

/// The content of the rows: of 20, one is odd.
#[derive(Clone, Copy, PartialEq)]
enum Content {
    Clean,
    /// Quotes, line ends and markup within values.
    Odd,
    /// Records that cannot be read, which are skipped, with their texts in the rejects.
    Bad,
}

/// A format of input, as a text of each row.
struct Form {
    name: &'static str,
    reader: &'static str,
    properties: &'static [(&'static str, &'static str)],
    before: &'static str,
    after: &'static str,
    row: fn(u64, Content) -> String,
}

const MEMO: &str = "a memo of some length";

fn csv_row(id: u64, content: Content) -> String {
    match content {
        Content::Odd => format!("{id},\"says \"\"hi\"\"\nand goes\",1.5\n"),
        Content::Bad => format!("{id},\"{MEMO}\" x,1.5\n"),
        Content::Clean => format!("{id},{MEMO},1.5\n"),
    }
}

fn json_object(id: u64, content: Content) -> String {
    match content {
        Content::Odd => {
            format!("{{\"id\":{id},\"memo\":\"says \\\"hi\\\"\\nand \\u00fc {{goes}}\",\"amount\":1.5}}")
        }
        Content::Bad => format!("{{\"id\":{id},\"memo\":\"{MEMO},\"amount\":1.5}}"),
        Content::Clean => format!("{{\"id\":{id},\"memo\":\"{MEMO}\",\"amount\":1.5}}"),
    }
}

fn xml_element(id: u64, content: Content) -> String {
    let memo = match content {
        Content::Odd => "<![CDATA[says <hi>]]> &amp; goes",
        Content::Bad | Content::Clean => MEMO,
    };
    let amount = if content == Content::Bad { "much" } else { "1.5" };
    format!("<e><id>{id}</id><memo>{memo}</memo><amount>{amount}</amount></e>\n")
}

const FORMS: [Form; 6] = [
    Form {
        name: "csv",
        reader: "csvRecordReader",
        properties: &[],
        before: "id,memo,amount\n",
        after: "",
        row: csv_row,
    },
    Form {
        name: "fixed width",
        reader: "fixedWidthRecordReader",
        properties: &[("columns", "id 1-8, memo 9-32, amount 33-")],
        before: "",
        after: "",
        row: |id, content| match content {
            Content::Bad => format!("{id}\n"),
            _ => format!("{id:>8}{MEMO:<24}1.5\n"),
        },
    },
    Form {
        name: "pattern",
        reader: "patternRecordReader",
        properties: &[("pattern", "(?<id>[0-9]+) (?<memo>.*) (?<amount>[0-9.]+)")],
        before: "",
        after: "",
        row: |id, content| match content {
            Content::Bad => format!("{id} {MEMO}\n"),
            _ => format!("{id} {MEMO} 1.5\n"),
        },
    },
    Form {
        name: "json lines",
        reader: "jsonlRecordReader",
        properties: &[],
        before: "",
        after: "",
        row: |id, content| json_object(id, content) + "\n",
    },
    Form {
        name: "json array",
        reader: "jsonArrayRecordReader",
        properties: &[],
        before: "[",
        after: "{\"id\":0,\"memo\":\"\",\"amount\":0}]",
        row: |id, content| json_object(id, content) + ",\n",
    },
    Form {
        name: "xml",
        reader: "xmlEntries",
        properties: &[("element", "e")],
        before: "<r>",
        after: "</r>",
        row: xml_element,
    },
];

impl Form {
    /// Writes a file of rows, every twentieth with the content.
    fn write(&self, path: &Path, rows: u64, content: Content) {
        let mut text = self.before.to_owned();
        for id in 1..=rows {
            let content = if id % 20 == 0 { content } else { Content::Clean };
            text.push_str(&(self.row)(id, content));
        }
        text.push_str(self.after);
        fs::write(path, text).unwrap();
    }
}

/// Packs a file by the extension of the other one.
fn pack(file: &Path, packed: &Path) {
    let text = fs::read(file).unwrap();
    let output = fs::File::create(packed).unwrap();
    if packed.extension().is_some_and(|extension| extension == "gz") {
        let mut encoder = flate2::write::GzEncoder::new(output, flate2::Compression::fast());
        encoder.write_all(&text).unwrap();
        encoder.finish().unwrap();
    } else {
        zstd::stream::copy_encode(&*text, output, 1).unwrap();
    }
}

/// A chunk with its properties, in a folder with the input.
struct Chunk<'c> {
    folder: &'c Path,
    reader: &'c str,
    writer: &'c str,
    of_reader: Vec<(&'c str, String)>,
    of_writer: Vec<(&'c str, String)>,
    rejects: bool,
}

impl Chunk<'_> {
    /// Runs the job, and returns the time.
    fn run(&self) -> Duration {
        let folder = self.folder.display();
        let mut properties = String::new();
        for (target, given) in [("reader", &self.of_reader), ("writer", &self.of_writer)] {
            for (name, value) in given {
                let value = value
                    .replace('&', "&amp;")
                    .replace('<', "&lt;")
                    .replace('"', "&quot;");
                let _ = write!(
                    properties,
                    "<property name=\"{name}\" value=\"{value}\" target=\"{target}\"/>"
                );
            }
        }
        let rejects = match (self.rejects, self.reader) {
            (false, _) | (_, "xmlEntries") => String::new(),
            _ => format!(
                "<listeners><listener ref=\"recordRejects\"><properties>\
                 <property name=\"rejects.output\" value=\"{folder}/rejects.jsonl\"/>\
                 <property name=\"rejects.raw\" value=\"{folder}/rejects.raw\"/></properties></listener></listeners>"
            ),
        };
        let (reader, writer) = (self.reader, self.writer);
        let job = format!(
            "<job id=\"linear\"><step id=\"copy\">{rejects}<chunk reader=\"{reader}\" writer=\"{writer}\" commit-interval=\"1000\" \
             chunk-size=\"1000\"><properties>{properties}</properties><skippable-exception-classes><include class=\"RecordError\"/>\
             </skippable-exception-classes></chunk></step></job>"
        );
        let jobs = self.folder.join("jobs");
        let _ = fs::remove_dir_all(&jobs);
        fs::create_dir(&jobs).unwrap();
        fs::write(jobs.join("linear.xml"), job).unwrap();
        let database = self.folder.join("batch.db");
        let runtime = BatchRuntime::builder()
            .job_path(jobs.display().to_string())
            .repository(format!("sqlite://{}?synchronous=normal", database.display()))
            .build()
            .unwrap();
        let operator = runtime.job_operator();
        let begin = Instant::now();
        let execution = operator
            .start("linear", [("n", begin_number())])
            .unwrap_or_else(|error| panic!("{error}"));
        let ended = operator.wait(execution).unwrap();
        let time = begin.elapsed();
        assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
        let _ = fs::remove_file(self.folder.join("rejects.jsonl"));
        let _ = fs::remove_file(self.folder.join("rejects.raw"));
        time
    }
}

/// A parameter that makes each run another instance.
fn begin_number() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed).to_string()
}

/// A case, and the time of a job with a number of records.
type Case<'c> = (String, Box<dyn Fn(u64) -> Duration + 'c>);

fn sink(folder: &Path) -> (&'static str, Vec<(&'static str, String)>) {
    (
        "recordJsonlWriter",
        vec![("output", folder.join("out.jsonl").display().to_string())],
    )
}

/// A file of each format, plain and compressed, to a plain file.
fn readers(folder: &Path) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for form in &FORMS {
        for (shown, content) in [
            ("clean", Content::Clean),
            ("odd", Content::Odd),
            ("bad", Content::Bad),
        ] {
            // A JSON array with a damaged object has no further objects.
            if form.name == "json array" && content == Content::Bad {
                continue;
            }
            for extension in ["txt", "gz", "zst"] {
                let run = move |rows| {
                    let plain = folder.join("in.txt");
                    form.write(&plain, rows, content);
                    let input = folder.join(format!("in.{extension}"));
                    if extension != "txt" {
                        pack(&plain, &input);
                    }
                    let mut of_reader: Vec<_> = form
                        .properties
                        .iter()
                        .map(|(name, value)| (*name, (*value).to_owned()))
                        .collect();
                    of_reader.push(("resource", input.display().to_string()));
                    let (writer, of_writer) = match form.name {
                        "xml" => ("entriesXml", {
                            let output = folder.join("out.xml").display().to_string();
                            vec![("output", output), ("element", "e".to_owned())]
                        }),
                        _ => sink(folder),
                    };
                    let chunk = Chunk {
                        folder,
                        reader: form.reader,
                        writer,
                        of_reader,
                        of_writer,
                        rejects: content == Content::Bad,
                    };
                    chunk.run()
                };
                cases.push((format!("read {} {extension} {shown}", form.name), Box::new(run)));
            }
        }
    }
    cases
}

/// A CSV file to a file of each format, plain, compressed and in several files; to a table, and from one.
fn writers(folder: &Path) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    let rolling = ("max.items.per.file", "5000");
    let fixed = ("columns", "id 1-8, memo 9-40, amount 41-48");
    for (writer, file, more) in [
        ("recordCsvWriter", "out.csv", None),
        ("recordCsvWriter", "out.csv.gz", None),
        ("recordCsvWriter", "out.csv.zst", None),
        ("recordCsvWriter", "out.csv", Some(rolling)),
        ("recordFixedWidthWriter", "out.txt", Some(fixed)),
        ("recordJsonlWriter", "out.jsonl", None),
        ("recordJsonlWriter", "out.jsonl.gz", Some(rolling)),
        ("recordJsonArrayWriter", "out.json", None),
        ("recordTableWriter", "", None),
    ] {
        let run = move |rows| {
            let input = folder.join("in.txt");
            let content = if writer == "recordFixedWidthWriter" {
                Content::Clean
            } else {
                Content::Odd
            };
            FORMS[0].write(&input, rows, content);
            let mut of_writer: Vec<_> = more
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect();
            match writer {
                "recordTableWriter" => {
                    create_table(folder);
                    of_writer.push(("table", "entry".to_owned()));
                }
                _ => of_writer.push(("output", folder.join("out").join(file).display().to_string())),
            }
            let chunk = Chunk {
                folder,
                reader: "csvRecordReader",
                writer,
                of_reader: vec![("resource", input.display().to_string())],
                of_writer,
                rejects: false,
            };
            let time = chunk.run();
            let _ = fs::remove_dir_all(folder.join("out"));
            time
        };
        let several = if more == Some(rolling) {
            " several files"
        } else {
            ""
        };
        cases.push((format!("write {writer} {file}{several}"), Box::new(run)));
    }
    for key in ["", "id"] {
        let run = move |rows| query(folder, rows, key);
        let shown = if key.is_empty() { "" } else { " by key" };
        cases.push((format!("read query{shown}"), Box::new(run)));
    }
    cases.push((
        "read and write parquet".to_owned(),
        Box::new(move |rows| parquet(folder, rows)),
    ));
    cases
}

fn create_table(folder: &Path) {
    let connection = rusqlite::Connection::open(folder.join("batch.db")).unwrap();
    let sql =
        "DROP TABLE IF EXISTS entry; CREATE TABLE entry (id INTEGER PRIMARY KEY, memo TEXT, amount REAL)";
    connection.execute_batch(sql).unwrap();
}

fn query(folder: &Path, rows: u64, key: &str) -> Duration {
    create_table(folder);
    let connection = rusqlite::Connection::open(folder.join("batch.db")).unwrap();
    let sql = "WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < ?) \
               INSERT INTO entry SELECT id, 'a memo of some length', 1.5 FROM n";
    connection.execute(sql, [i64::try_from(rows).unwrap()]).unwrap();
    let (writer, of_writer) = sink(folder);
    let order = if key.is_empty() { " ORDER BY id" } else { "" };
    let mut of_reader = vec![("query", format!("SELECT id, memo, amount FROM entry{order}"))];
    if !key.is_empty() {
        of_reader.push(("key", key.to_owned()));
    }
    let chunk = Chunk {
        folder,
        reader: "queryRecordReader",
        writer,
        of_reader,
        of_writer,
        rejects: false,
    };
    chunk.run()
}

/// XML to Parquet, and from there to XML.
fn parquet(folder: &Path, rows: u64) -> Duration {
    let input = folder.join("in.txt");
    FORMS[5].write(&input, rows, Content::Odd);
    let file = folder.join("out.parquet").display().to_string();
    let element = ("element", "e".to_owned());
    let chunk = |reader, writer, from: String, to: String| Chunk {
        folder,
        reader,
        writer,
        of_reader: vec![("resource", from)],
        of_writer: vec![("output", to)],
        rejects: false,
    };
    let mut first = chunk(
        "xmlEntries",
        "entriesParquet",
        input.display().to_string(),
        file.clone(),
    );
    first.of_reader.push(element.clone());
    let mut second = chunk(
        "parquetEntries",
        "entriesXml",
        file,
        folder.join("out.xml").display().to_string(),
    );
    second.of_writer.push(element);
    first.run() + second.run()
}

fn main() {
    let given: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let most = given
        .iter()
        .find_map(|word| word.parse().ok())
        .unwrap_or(SIZES[2]);
    let words: Vec<&String> = given.iter().filter(|word| word.parse::<u64>().is_err()).collect();
    let folder = tempfile::tempdir().unwrap();
    let mut cases = readers(folder.path());
    cases.extend(writers(folder.path()));
    cases.retain(|(name, _)| words.iter().all(|word| name.contains(word.as_str())));
    head("**The time per record at the largest number of records, as a multiple of that at the smallest**");
    for (name, run) in cases {
        let sizes: Vec<u64> = SIZES.into_iter().filter(|size| *size <= most).collect();
        let times = sizes.iter().map(|size| {
            // The smaller one of two: the first one may find a cold cache.
            let time = run(*size).min(run(*size));
            time.as_nanos() as f64 / *size as f64
        });
        let times: Vec<f64> = times.collect();
        eprintln!("  {name}: {times:.0?} ns per record");
        report(&name, times[times.len() - 1] / times[0], "x", Some(GATE));
    }
}
