//! Parquet files.

use std::collections::BTreeMap;
use std::fs::{self, File};

use batch_columnar::{ParquetItemReader, ParquetItemWriter};
use batch_items::file::ReadPosition;
use batch_items::{CompositeItemWriter, LineItemReader};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde::{Deserialize, Serialize};

use super::happenings;
use super::stage::{Ended, Stage, check_restarts, pass};

/// A row with its place.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
struct Placed {
    id: u64,
    #[serde(default)]
    file: String,
    #[serde(default)]
    line: u64,
    #[serde(default)]
    record: u64,
}

/// A row of a file.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
struct Half {
    unused: String,
    id: u64,
    half: Option<f64>,
}

#[item_reader("NumberLines")]
type NumberLines = LineItemReader<u64>;
#[item_writer("HalfOut")]
type HalfOut = ParquetItemWriter<Half>;
#[item_reader("HalfRows")]
type HalfRows = ParquetItemReader<Half>;
#[item_reader("PlacedRows")]
type PlacedRows = ParquetItemReader<Placed>;
#[item_writer("PlacedLines")]
type PlacedLines = batch_items::JsonLinesItemWriter<Placed>;
#[item_writer("HalfJson")]
type HalfJson = batch_items::JsonLinesItemWriter<Half>;

pass!(PassPlacedRow: Placed);
pass!(PassHalf: Half);

#[derive(BatchArtifact)]
struct ToRow {
    #[batch_property(name = "fail.at", value = "0")]
    fail_at: u64,
}

#[item_processor("ToRow")]
impl ToRow {
    #[process_item]
    fn process(&mut self, id: u64) -> Result<Option<Half>, BatchError> {
        if id == self.fail_at {
            return Err(BatchError::msg("stopped by the test"));
        }
        Ok(Some(Half {
            unused: "x".repeat(5),
            id,
            half: (id % 2 == 1).then_some(id as f64 / 2.0),
        }))
    }
}

/// A job that writes so many numbers.
fn writing(count: u64, properties: &str) -> Stage {
    let stage = Stage::new(
        "reader=\"NumberLines\" processor=\"ToRow\" writer=\"HalfOut\" commit-interval=\"3\" chunk-size=\"2\"",
        &format!("resource=${{dir}}/in\noutput@writer=${{dir}}/out.parquet\n{properties}"),
    );
    let numbers: String = (1..=count).map(|number| format!("{number}\n")).collect();
    stage.write("in", numbers);
    stage
}

/// Returns a Parquet file with so many numbers.
fn file(count: u64, properties: &str) -> Vec<u8> {
    let stage = writing(count, properties);
    stage.completes();
    fs::read(stage.path().join("out.parquet")).unwrap()
}

/// Returns the files of the output, with their content.
fn files(stage: &Stage) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(stage.path()).unwrap();
    let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name.starts_with("out"))
        .map(|name| (name.clone(), fs::read(stage.path().join(name)).unwrap()))
        .collect()
}

/// Returns the rows of each row group of a file, as the Parquet library reads them, and their ids.
fn row_groups(stage: &Stage, name: &str) -> Vec<Vec<i64>> {
    let file = SerializedFileReader::new(File::open(stage.path().join(name)).unwrap()).unwrap();
    assert_eq!(
        file.metadata().file_metadata().num_rows(),
        file.metadata()
            .row_groups()
            .iter()
            .map(|group| group.num_rows())
            .sum::<i64>()
    );
    (0..file.num_row_groups())
        .map(|index| {
            let group = file.get_row_group(index).unwrap();
            assert_eq!(
                usize::try_from(group.metadata().ordinal().unwrap()).unwrap(),
                index
            );
            let rows = group.get_row_iter(None).unwrap();
            let id = |row: parquet::record::Row| {
                let mut columns = row.get_column_iter();
                let (_, id) = columns.find(|(name, _)| *name == "id").unwrap();
                id.to_string().parse().unwrap()
            };
            rows.map(|row| id(row.unwrap())).collect()
        })
        .collect()
}

/// Whichever item a job fails at, the restart ends with the files of an undisturbed run. Before, there is no final file.
#[test]
fn a_restart_ends_with_the_same_file() {
    for properties in [
        "",
        "row.group.size=2",
        "codec=gzip\nsync=never",
        "max.items.per.file=4",
        "max.items.per.file=2\nrow.group.size=1",
    ] {
        let undisturbed = writing(10, properties);
        undisturbed.completes();
        let expected = files(&undisturbed);
        for fail_at in 1..=10 {
            let stage = writing(10, properties);
            let failed = stage.start([("fail.at", fail_at.to_string())]);
            assert_eq!(failed.status, BatchStatus::Failed);
            assert!(files(&stage).keys().all(|name| name.ends_with(".part")));
            let again = stage.restart(&failed, [("fail.at", "0")]);
            assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
            assert!(files(&stage) == expected, "{properties} {fail_at}");
        }
        let names: Vec<_> = expected.keys().cloned().collect();
        let ids: Vec<i64> = names
            .iter()
            .flat_map(|name| row_groups(&undisturbed, name).concat())
            .collect();
        assert_eq!(ids, (1..=10).collect::<Vec<_>>(), "{properties}");
    }
}

#[test]
fn row_groups_end_at_their_size_and_at_checkpoints() {
    let groups = |count, properties: &str, name: &str| {
        let stage = writing(count, properties);
        stage.completes();
        row_groups(&stage, name)
    };
    assert_eq!(
        groups(7, "", "out.parquet"),
        [vec![1, 2, 3], vec![4, 5, 6], vec![7]]
    );
    assert_eq!(
        groups(7, "row.group.size=2", "out.parquet"),
        [vec![1, 2], vec![3], vec![4, 5], vec![6], vec![7]]
    );
    assert_eq!(
        groups(7, "max.items.per.file=5", "out-0001.parquet"),
        [vec![1, 2, 3], vec![4, 5]]
    );
    assert_eq!(
        groups(7, "max.items.per.file=5", "out-0002.parquet"),
        [vec![6], vec![7]]
    );
    assert_eq!(groups(0, "", "out.parquet"), [[0; 0]; 0]);
    let empty = writing(0, "if.empty=delete");
    empty.completes();
    assert_eq!(files(&empty), BTreeMap::new());
}

/// The process may die after the file has got its final name, and before the step is recorded as completed.
#[test]
fn a_file_that_was_finished_is_finished_again() {
    let undisturbed = writing(6, "");
    undisturbed.completes();
    let stage = writing(7, "");
    let failed = stage.start([("fail.at", "7")]);
    stage.write("in", "1\n2\n3\n4\n5\n6\n");
    fs::remove_file(stage.path().join("out.parquet.part")).unwrap();
    fs::copy(
        undisturbed.path().join("out.parquet"),
        stage.path().join("out.parquet"),
    )
    .unwrap();
    let again = stage.restart(&failed, [("fail.at", "0"), ("if.changed", "resume")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert!(files(&stage) == files(&undisturbed));
}

fn first_line(ended: &Ended) -> &str {
    assert_eq!(ended.status, BatchStatus::Failed);
    ended.message.lines().next().unwrap()
}

/// Types that Parquet has as bare numbers, or that no item fits, with the remedy.
const UNWRITABLE: [(&str, &str, &str); 13] = [
    ("Date64", "Date64", "use `Date32` or `Timestamp(ms)`"),
    ("Timestamp(s)", "Timestamp(s)", "use `Timestamp(ms)`"),
    (
        "Struct(\"at\": Timestamp(s, \"UTC\"))",
        "Timestamp(s, \"UTC\")",
        "use `Timestamp(ms, \"UTC\")`",
    ),
    ("List(Time32(s))", "Time32(s)", "use `Time32(ms)`"),
    ("Duration(ms)", "Duration(ms)", "use `Utf8`"),
    ("Null", "Null", "it has no values"),
    ("LargeList(Null)", "Null", "it has no values"),
    ("FixedSizeBinary(0)", "FixedSizeBinary(0)", "it has no values"),
    (
        "FixedSizeList(0 x Int64)",
        "FixedSizeList(0 x Int64)",
        "it has no values",
    ),
    (
        "Dictionary(Int32, Int64)",
        "Dictionary(Int32, Int64)",
        "use the type of its values",
    ),
    (
        "Dictionary(Int32, Duration(s))",
        "Dictionary(Int32, Duration(s))",
        "use the type of its values",
    ),
    (
        "Dictionary(Utf8, Utf8)",
        "Dictionary(Utf8, Utf8)",
        "use `Dictionary(Int32, Utf8)`",
    ),
    (
        "List(Dictionary(UInt8, LargeUtf8))",
        "Dictionary(UInt8, LargeUtf8)",
        "use `Dictionary(Int32, Utf8)`",
    ),
];

/// Spec: ITEM-VALUE-10
#[test]
fn what_cannot_be_written_is_an_error() {
    let fails = |properties: &str| first_line(&writing(7, properties).start(())).to_owned();
    assert_eq!(
        fails("if.exists=append"),
        "cannot write `out.parquet`: this format cannot be appended to; set `if.exists` to `overwrite`"
    );
    assert_eq!(
        fails("compression@writer=gzip"),
        "cannot write `out.parquet`: a Parquet file cannot be compressed as a whole; set `codec`, and `compression` to `none`"
    );
    assert_eq!(
        fails("columns=id UInt8, unused Int32"),
        "cannot write item 1 of the file to `out.parquet`: column `unused` of type Int32: it cannot hold \"xxxxx\" exactly"
    );
    assert_eq!(
        fails("columns=id Int64, halff Float64"),
        "cannot write `out.parquet`: the items have no field for the column `halff`; did you mean `half`?"
    );
    assert_eq!(
        fails("columns=id Interval(YearMonth)"),
        "cannot write `out.parquet`: column `id`: a file cannot have the type `Interval(YearMonth)`"
    );
    for (column, kind, remedy) in UNWRITABLE {
        assert_eq!(
            fails(&format!("columns=id {column}")),
            format!(
                "cannot write `out.parquet`: column `id`: a file cannot have the type `{kind}`; {remedy}"
            )
        );
    }
    if !cfg!(feature = "zstd") {
        assert_eq!(
            fails("codec=zstd"),
            "cannot write `out.parquet`: the feature `zstd` of batch-columnar is not enabled"
        );
    }
    for (property, expected) in [
        ("codec=lzo", "expected `none`, `snappy`, `gzip` or `zstd`"),
        (
            "columns=id",
            "expected a name and a type of Arrow, such as `day Date32`, found `id`",
        ),
        (
            "columns=id Int64, price Decimal(1, 2)",
            "column `price`: `Decimal(1, 2)` is not a type of Arrow, such as `Int64`, `Utf8` or `Date32`",
        ),
        ("columns=id Int64, id Utf8", "there are two columns `id`"),
        ("row.group.size=0", "`row.group.size`"),
    ] {
        let error = writing(1, property).rejected();
        assert!(error.contains(expected), "{property}: {error}");
    }
}

/// After a rollback, the rows since the last checkpoint are written again, without the bad one, also if files were complete.
#[test]
fn an_item_that_cannot_be_written_is_skipped() {
    let several: &[_] = &["out-0001.parquet", "out-0002.parquet", "out-0003.parquet"];
    for (chunk, more, files) in [
        ("commit-interval=\"9\" chunk-size=\"2\"", "", &["out.parquet"][..]),
        ("commit-interval=\"3\"", "", &["out.parquet"]),
        ("commit-interval=\"20\"", "max.items.per.file=4", several),
    ] {
        let stage = Stage::with_children(
            &format!("reader=\"NumberLines\" processor=\"ToRow\" writer=\"HalfOut\" {chunk}"),
            &format!(
                "resource=${{dir}}/in\noutput=${{dir}}/out.parquet\ncolumns=id UInt8, half Float64\n{more}"
            ),
            r#"<skippable-exception-classes><include class="EncodeError"/></skippable-exception-classes>"#,
        );
        stage.write("in", "1\n2\n3\n4\n500\n5\n600\n6\n7\n8\n9\n10\n");
        let ended = stage.completes();
        assert_eq!((ended.writes, ended.skips), (10, 2));
        let ids = files.iter().flat_map(|name| row_groups(&stage, name).concat());
        assert_eq!(ids.collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>(), "{chunk}");
    }
}

#[item_writer("HalfTwice")]
type HalfTwice = CompositeItemWriter<Half, batch_items::JsonLinesItemWriter<Half>, ParquetItemWriter<Half>>;

/// The rows of a row group cannot be removed: the interval is rolled back, and both files are truncated.
///
/// Spec: LOSS-12
#[test]
fn an_item_that_a_part_cannot_write_is_in_no_file() {
    let stage = Stage::with_children(
        "reader=\"NumberLines\" processor=\"ToRow\" writer=\"HalfTwice\" commit-interval=\"9\" chunk-size=\"2\"",
        "resource=${dir}/in\n1.output=${dir}/out.jsonl\n2.output=${dir}/out.parquet\n2.columns=id UInt8, half Float64",
        r#"<skippable-exception-classes><include class="EncodeError"/></skippable-exception-classes>"#,
    );
    stage.write("in", "1\n2\n3\n500\n4\n600\n5\n6\n7\n8\n9\n10\n");
    let ended = stage.completes();
    assert_eq!((ended.writes, ended.skips), (10, 2));
    let ids = row_groups(&stage, "out.parquet").concat();
    assert_eq!(ids, (1..=10).collect::<Vec<_>>());
    assert_eq!(stage.read("out.jsonl").lines().count(), 10);
}

/// A file has the columns of its first row group.
#[test]
fn other_columns_after_a_restart_are_an_error() {
    let stage = writing(7, "columns=#{jobParameters['columns']}");
    let failed = stage.start([("fail.at", "7"), ("columns", "id Int64, half Float64")]);
    assert_eq!(failed.status, BatchStatus::Failed);
    let again = stage.restart(&failed, [("fail.at", "0"), ("columns", "id Int64, unused Utf8")]);
    assert_eq!(
        first_line(&again),
        "cannot write `out.parquet`: the columns of the items are not those that were written before the restart; launch \
         the job with other parameters"
    );
    let again = stage.restart(&again, [("fail.at", "0"), ("columns", "id Int64, half Float64")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert_eq!(row_groups(&stage, "out.parquet").len(), 3);
}

/// A job that reads numbers with their places.
fn placed(commit_interval: u32) -> Stage {
    let stage = Stage::new(
        &format!(
            "reader=\"PlacedRows\" processor=\"PassPlacedRow\" writer=\"PlacedLines\" commit-interval=\"{commit_interval}\""
        ),
        "resource=${dir}/in-*\noutput=${dir}/out\nfile.field=file\nline.field=line\nrecord.field=record",
    );
    stage.write("in-0", file(4, "row.group.size=2"));
    stage.write("in-1", file(0, ""));
    stage.write("in-2", file(3, "row.group.size=3\ncodec=none"));
    stage
}

/// Whichever item a job fails at, the restart continues after the last committed one, with the same places.
#[test]
fn a_restart_continues_after_the_last_committed_row() {
    let places = [
        ("in-0", 1),
        ("in-0", 2),
        ("in-0", 3),
        ("in-0", 4),
        ("in-2", 1),
        ("in-2", 2),
        ("in-2", 3),
    ];
    let expected: String = places
        .map(|(file, line)| {
            format!("{{\"id\":{line},\"file\":\"{file}\",\"line\":{line},\"record\":{line}}}\n")
        })
        .concat();
    check_restarts(placed, &expected);
}

#[test]
fn a_changed_file_is_an_error() {
    let stage = placed(2);
    let failed = stage.start([("fail.at", "4")]);
    stage.write("in-0", file(1, ""));
    let again = stage.restart(&failed, [("fail.at", "0")]);
    assert!(
        first_line(&again).contains("it has changed since the checkpoint"),
        "{}",
        again.message
    );
    let again = stage.restart(&again, [("if.changed", "resume")]);
    assert_eq!(
        first_line(&again),
        "cannot read `in-0`: it has 1 rows, but 2 were read before the checkpoint"
    );
    stage.write("in-0", file(5, ""));
    let again = stage.restart(&again, [("fail.at", "0"), ("if.changed", "resume")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert_eq!(stage.read("out").lines().count(), 8);
}

/// Reads the number of rows, from the footers.
#[derive(BatchArtifact)]
struct RowCount {
    #[batch_artifact]
    rows: ParquetItemReader<Placed>,
    counted: bool,
}

#[item_reader("RowCount")]
impl RowCount {
    #[open]
    fn open(&mut self, checkpoint: Option<ReadPosition>) -> Result<(), BatchError> {
        self.rows.open(checkpoint)
    }
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        let counted = std::mem::replace(&mut self.counted, true);
        self.rows.item_count().filter(|_| !counted)
    }
    #[get_checkpoint_info]
    fn checkpoint(&self) -> ReadPosition {
        self.rows.checkpoint()
    }
}

#[item_writer("NumberOut")]
type NumberOut = batch_items::LineItemWriter<u64>;
pass!(PassNumber: u64);

#[test]
fn the_number_of_rows_is_known() {
    let stage = Stage::new(
        "reader=\"RowCount\" processor=\"PassNumber\" writer=\"NumberOut\"",
        "resource=${dir}/in-*\noutput=${dir}/out",
    );
    stage.write("in-0", file(4, ""));
    stage.write("in-1", file(3, ""));
    stage.completes();
    assert_eq!(stage.read("out"), "7\n");
}

/// An item whose fields have other types than the columns.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Narrow {
    id: u8,
    half: f64,
}

#[item_reader("NarrowRows")]
type NarrowRows = ParquetItemReader<Narrow>;
#[item_writer("NarrowJson")]
type NarrowJson = batch_items::JsonLinesItemWriter<Narrow>;
pass!(PassNarrow: Narrow);

/// An item with a field that has the name of a column of another type.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Texts {
    id: String,
}

#[item_reader("TextsRows")]
type TextsRows = ParquetItemReader<Texts>;
#[item_writer("TextsJson")]
type TextsJson = batch_items::JsonLinesItemWriter<Texts>;
pass!(PassTexts: Texts);

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Misspelt {
    id: u64,
    halfs: Option<f64>,
}

#[item_reader("MisspeltRows")]
type MisspeltRows = ParquetItemReader<Misspelt>;
#[item_writer("MisspeltJson")]
type MisspeltJson = batch_items::JsonLinesItemWriter<Misspelt>;
pass!(PassMisspelt: Misspelt);

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Other {
    name: Option<String>,
}

#[item_reader("OtherRows")]
type OtherRows = ParquetItemReader<Other>;
#[item_writer("OtherJson")]
type OtherJson = batch_items::JsonLinesItemWriter<Other>;
pass!(PassOther: Other);

pub(crate) fn reading(item: &str, content: impl AsRef<[u8]>, properties: &str) -> Stage {
    let stage = Stage::with_children(
        &format!(
            "reader=\"{item}Rows\" processor=\"Pass{item}\" writer=\"{item}Json\" commit-interval=\"2\""
        ),
        &format!("resource=${{dir}}/in.parquet\noutput=${{dir}}/out\n{properties}"),
        r#"<skippable-exception-classes><include class="RecordError"/></skippable-exception-classes>"#,
    );
    stage.write("in.parquet", content);
    stage
}

/// A wrong file is not a wrong row: it is not skipped.
///
/// Spec: INPUT-23
#[test]
fn a_wrong_file_fails_the_step() {
    let fails = |item: &str, content: &[u8]| first_line(&reading(item, content, "").start(())).to_owned();
    let good = file(7, "");
    assert_eq!(
        fails("Narrow", b"id;half\n1;0.5\n"),
        "cannot read `in.parquet`: Invalid Parquet file. Corrupt footer"
    );
    assert_eq!(
        fails("Narrow", b""),
        "cannot read `in.parquet`: Parquet file too small. Size is 0 but need 8"
    );
    assert_eq!(
        fails("Narrow", &good[..good.len() - 1]),
        "cannot read `in.parquet`: Invalid Parquet file. Corrupt footer"
    );
    assert_eq!(
        fails("Misspelt", &good),
        "cannot read `in.parquet`: it has no column `halfs`, but `unused`, `id`, `half`; did you mean `half`?"
    );
    assert_eq!(
        fails("Other", &good),
        "cannot read `in.parquet`: it has no column `name`, but `unused`, `id`, `half`"
    );
    let mut broken = good.clone();
    broken[4..60].fill(0xFF);
    let message = fails("Half", &broken);
    assert!(message.starts_with("cannot read `in.parquet`: "), "{message}");
    assert_eq!(
        first_line(&reading("Narrow", &good, "compression@reader=gzip").start(())),
        "cannot read `in.parquet`: a file of this format cannot be compressed as a whole; decompress it first"
    );
}

#[test]
fn a_bad_row_is_named_and_can_be_skipped() {
    let numbers: String = (0..40).map(|number| format!("{}\n", number * 10 + 1)).collect();
    let stage = writing(0, "");
    stage.write("in", numbers);
    stage.completes();
    let content = fs::read(stage.path().join("out.parquet")).unwrap();
    let stage = reading("Narrow", &content, "");
    let ended = stage.completes();
    assert_eq!((ended.reads, ended.skips), (26, 14));
    let message = |item: &str, content: &[u8]| {
        let stage = Stage::new(
            &format!("reader=\"{item}Rows\" processor=\"Pass{item}\" writer=\"{item}Json\""),
            "resource=${dir}/in.parquet\noutput=${dir}/out",
        );
        stage.write("in.parquet", content);
        first_line(&stage.start(())).to_owned()
    };
    assert_eq!(
        message("Narrow", &content),
        "in.parquet:27: column `id` of type UInt64: integer conversion failed: out of range integral type conversion attempted"
    );
    assert_eq!(
        message("Narrow", &file(2, "")),
        "in.parquet:2: column `half` of type Float64: it is null; a field of type `Option` accepts that"
    );
    assert_eq!(
        message("Texts", &file(2, "")),
        "in.parquet:1: column `id` of type UInt64: a field of type string cannot have its values"
    );
}

#[item_writer("happeningParquet")]
type HappeningOut = ParquetItemWriter<happenings::Entry>;

/// Spec: LOSS-01
#[test]
fn nothing_that_happens_to_a_file_loses_items() {
    happenings::check(&[(
        "happeningParquet",
        "output=${dir}/out/o.parquet",
        "o.parquet.part",
    )]);
}
