//! The jobs of the sweep: each kind of reader and writer, with the files of the batchlets and a table.

// Links the batchlets that the jobs name.
use batch_batchlets as _;
use batch_columnar::{ArrowItemReader, ParquetItemReader, ParquetItemWriter, XlsxItemReader};
use batch_items::{
    CompositeItemWriter, DelimitedItemReader, DelimitedItemWriter, JsonLinesItemWriter, Record,
    XmlItemReader, XmlItemWriter,
};
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

/// The item of the formats that have no records.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Entry {
    pub(super) id: u64,
    pub(super) name: String,
}

#[item_reader("entryCsvReader")]
type EntryCsvReader = DelimitedItemReader<Entry>;
#[item_writer("entryCsvWriter")]
type EntryCsvWriter = DelimitedItemWriter<Entry>;
#[item_reader("entryXmlReader")]
type EntryXmlReader = XmlItemReader<Entry>;
#[item_writer("entryXmlWriter")]
type EntryXmlWriter = XmlItemWriter<Entry>;
#[item_reader("entryParquetReader")]
type EntryParquetReader = ParquetItemReader<Entry>;
#[item_writer("entryParquetWriter")]
type EntryParquetWriter = ParquetItemWriter<Entry>;
#[item_reader("sheetReader")]
type SheetReader = XlsxItemReader<Record>;
#[item_reader("arrowReader")]
type ArrowReader = ArrowItemReader<Record>;
#[item_writer("entryCompositeWriter")]
type EntryCompositeWriter =
    CompositeItemWriter<Entry, DelimitedItemWriter<Entry>, JsonLinesItemWriter<Entry>>;

/// A job of a few steps.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// A chunk has `reader writer`, its properties, lines `name=value` or `name@target=value`, and XML before its end.
    pub(super) steps: &'static [(&'static str, &'static str, &'static str)],
    /// XML before the body of each step.
    pub(super) before: &'static str,
}

const fn kind(
    name: &'static str,
    steps: &'static [(&'static str, &'static str, &'static str)],
    before: &'static str,
) -> Kind {
    Kind { name, steps, before }
}

/// A job that writes a file with a format, and reads it in its second step; with further properties of the two steps.
macro_rules! through {
    ($name:literal, $file:literal, $write:literal, $read:literal $(, $writes:literal, $reads:literal)?) => {
        kind(
            $name,
            &[
                ($write, concat!("resource@reader=in.csv\noutput@writer=", $file $(, "\n", $writes)?), ""),
                ($read, concat!("output@writer=out/p.csv\nresource@reader=", $file $(, "\n", $reads)?), ""),
            ],
            "",
        )
    };
}

const CSV: &str = "csvRecordReader recordCsvWriter";
const SKIPS: &str =
    "<skippable-exception-classes><include class=\"RecordError\"/></skippable-exception-classes>";
const REJECTS: &str = "<listeners><listener ref=\"recordRejects\"><properties>
      <property name=\"rejects.output\" value=\"out/rejects.csv\"/>
      <property name=\"rejects.raw\" value=\"out/raw.csv\"/><property name=\"rejects.raw.header\" value=\"id,name\"/>
    </properties></listener></listeners>";
const PARTITIONS: &str = "<partition><algorithm ref=\"filePartitions\"><properties>
      <property name=\"resource\" value=\"in*.csv\"/></properties></algorithm></partition>";

/// All kinds.
pub(super) const KINDS: &[Kind] = &[
    through!(
        "csv",
        "out/o.csv",
        "csvRecordReader recordCsvWriter",
        "csvRecordReader recordCsvWriter"
    ),
    through!(
        "gzip",
        "out/o.csv.gz",
        "csvRecordReader recordCsvWriter",
        "csvRecordReader recordCsvWriter"
    ),
    through!(
        "zstd",
        "out/o.csv.zst",
        "csvRecordReader recordCsvWriter",
        "csvRecordReader recordCsvWriter"
    ),
    through!(
        "fixed-width",
        "out/o.txt",
        "csvRecordReader recordFixedWidthWriter",
        "fixedWidthRecordReader recordCsvWriter",
        "columns@writer=id 1-4, name 5-14",
        "columns@reader=id 1-4, name 5-14"
    ),
    through!(
        "json-lines",
        "out/o.jsonl",
        "csvRecordReader recordJsonlWriter",
        "jsonlRecordReader recordCsvWriter"
    ),
    through!(
        "json-array",
        "out/o.json",
        "csvRecordReader recordJsonArrayWriter",
        "jsonArrayRecordReader recordCsvWriter"
    ),
    through!(
        "xml",
        "out/o.xml",
        "entryCsvReader entryXmlWriter",
        "entryXmlReader entryCsvWriter",
        "element=entry",
        "element=entry"
    ),
    through!(
        "parquet",
        "out/o.parquet",
        "entryCsvReader entryParquetWriter",
        "entryParquetReader entryCsvWriter"
    ),
    through!(
        "xlsx",
        "out/o.xlsx",
        "csvRecordReader recordXlsxWriter",
        "sheetReader recordCsvWriter",
        "columns@writer=id number, name",
        "sheet@reader=Sheet1"
    ),
    kind(
        "readers",
        &[
            (
                "sheetReader recordCsvWriter",
                "resource@reader=in.xlsx\noutput@writer=out/x.csv",
                "",
            ),
            (
                "arrowReader recordCsvWriter",
                "resource@reader=in.arrow\noutput@writer=out/a.csv",
                "",
            ),
            (
                "patternRecordReader recordCsvWriter",
                "resource@reader=in.csv\npattern=(?&lt;id>[^,]*),(?&lt;name>.*)\noutput@writer=out/p.csv",
                "",
            ),
        ],
        "",
    ),
    kind(
        "rolling",
        &[(
            CSV,
            "resource@reader=in*.csv\noutput@writer=out/o.csv\nmax.items.per.file=5",
            "",
        )],
        "",
    ),
    kind(
        "append",
        &[(
            CSV,
            "resource@reader=in.csv\noutput@writer=out/existing.csv\nif.exists=append",
            "",
        )],
        "",
    ),
    kind(
        "composite",
        &[(
            "entryCsvReader entryCompositeWriter",
            "resource@reader=in.csv\n1.output=out/o.csv.gz\n2.output=out/o.jsonl",
            "",
        )],
        "",
    ),
    kind(
        "rejects",
        &[(CSV, "resource@reader=bad.csv\noutput@writer=out/o.csv", SKIPS)],
        REJECTS,
    ),
    kind(
        "partitions",
        &[(
            CSV,
            "resource@reader=${resource}\noutput@writer=out/${file.name}",
            "",
        )],
        PARTITIONS,
    ),
    kind(
        "table",
        &[
            (
                "csvRecordReader recordTableWriter",
                "resource@reader=in.csv\ntable=entry",
                "",
            ),
            (
                "queryRecordReader recordCsvWriter",
                "query=SELECT id, name FROM entry\nkey=id\npage.size=5\noutput@writer=out/p.csv",
                "",
            ),
        ],
        "",
    ),
    kind(
        "batchlets",
        &[
            ("copyFiles", "resource=in*.csv\ntarget=out/", ""),
            ("compressFiles", "resource=out/in*.csv\ntarget=out/packed/", ""),
            (
                "checksumFiles",
                "resource=out/packed/*.gz\ntarget=out/packed/SHA256SUMS",
                "",
            ),
            ("checksumFiles", "resource=out/packed/SHA256SUMS\nmode=verify", ""),
            ("sqlScript", "resource=script.sql", ""),
            ("moveFiles", "resource=out/in*.csv\ntarget=out/moved/", ""),
            ("deleteFiles", "resource=out/packed/in2*", ""),
        ],
        "",
    ),
];

impl Kind {
    /// Returns whether the files of the repository are swept too. Its calls hardly depend on the kind.
    pub(super) fn sweeps_repository(&self) -> bool {
        self.name == "table"
    }

    /// Returns the Job XML.
    pub(super) fn xml(&self) -> String {
        let mut xml = "<job id=\"job\">\n".to_owned();
        for (index, (artifacts, properties, children)) in self.steps.iter().enumerate() {
            let next = match index + 1 < self.steps.len() {
                true => format!(" next=\"s{}\"", index + 1),
                false => String::new(),
            };
            let properties = properties_of(properties);
            let limit = if children.is_empty() {
                ""
            } else {
                " skip-limit=\"9\""
            };
            let body = match artifacts.split_once(' ') {
                Some((reader, writer)) => format!(
                    "<chunk reader=\"{reader}\" writer=\"{writer}\" commit-interval=\"4\" chunk-size=\"2\"{limit}>\
                     {properties}{children}</chunk>"
                ),
                None => format!("<batchlet ref=\"{artifacts}\">{properties}</batchlet>"),
            };
            let before = self.before;
            xml += &format!("  <step id=\"s{index}\"{next}>{before}{body}</step>\n");
        }
        xml + "</job>\n"
    }
}

fn properties_of(lines: &str) -> String {
    let property = |line: &str| {
        let (name, value) = line.split_once('=').expect("a property");
        let (name, target) = match name.split_once('@') {
            Some((name, target)) => (name, format!(" target=\"{target}\"")),
            None => (name, String::new()),
        };
        format!("<property name=\"{name}\" value=\"{value}\"{target}/>")
    };
    let properties: String = lines.lines().map(property).collect();
    format!("<properties>{properties}</properties>")
}
