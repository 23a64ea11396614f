//! The bodies of fuzz targets for the readers of files: see `fuzz/README.md`. Each accepts any input, terminates, and panics only on a
//! fault of the reader. The tests run them with the corpus and with mutations of it.
//!
//! The first byte of an input chooses the properties of the reader; the rest is its file.

use std::fs;

use batch_runtime::__private::{ContextScope, InjectError, InjectionScope, Properties};
use batch_runtime::BatchArtifact;
use batch_runtime::prelude::*;
use tempfile::NamedTempFile;

use crate::error::{RecordError, ResourceError};
use crate::file::{FileItemReader, Format, Items, ReadPosition};
use crate::record::Record;

/// The most events of a file that are compared. A compressed or columnar file may have any number of records.
const MAX_EVENTS: usize = 500;

/// The most checkpoints of a file that a run resumes from.
const MAX_CHECKPOINTS: usize = 10;

/// Declares a fuzz target: its function, its reader, and the properties that the first byte chooses from.
macro_rules! target {
    ($(#[$attribute:meta])* $target:ident = $reader:ident, [$($choice:literal),+ $(,)?]) => {
        /// A file of this format.
        ///
        /// # Panics
        /// If the reader is at fault.
        $(#[$attribute])*
        #[doc(hidden)]
        pub fn $target(data: &[u8]) {
            check(data, &[$($choice),+], <crate::$reader<Record>>::inject);
        }
    };
}

target! { csv = DelimitedItemReader, [
    "",
    "header=false\nraw.field=raw\nencoding=windows-1252",
    "encoding=utf-16\nraw.field=raw",
    "delimiter=tab\nquote=none\nstrict=false\nskip.lines=1",
    "escape=\\\ncomment=#\ntrim=true\nline.field=line",
    "delimiter=;\nencoding=shift_jis\nmax.record.length=40\nrecord.field=number",
    "columns=a,b\nstrict=false\nencoding=windows-1252\nraw.field=raw",
] }
target! { fixed_width = FixedWidthItemReader, [
    "columns=a 1-3, b 4-8, c 9-10",
    "columns=a 1-3, b 4-8, c 9-10\nencoding=shift_jis\nstrict=false\ntrim=false\nraw.field=raw",
    "columns=a 1, b 3-4\nencoding=utf-16\ncomment=#\nblank.lines=read",
] }
target! { pattern = PatternItemReader, [
    "pattern=(?<a>[^ ]*) (?<b>.*)",
    "pattern=(?<a>\\d+)(?<b>;\\w+)?\nif.no.match=skip\nraw.field=raw",
    "pattern=(?<a>.+)\nencoding=utf-16\nskip.lines=1\ncomment=#",
] }
target! { json_lines = JsonLinesItemReader, [
    "",
    "encoding=utf-16\nraw.field=raw",
    "max.record.length=60\nskip.lines=1\nline.field=line",
] }
target! { json_array = JsonArrayItemReader, [
    "",
    "encoding=utf-16\nraw.field=raw",
    "max.record.length=60\nrecord.field=number",
] }
target! { xml = XmlItemReader, [
    "element=row",
    "element=row\nencoding=utf-16",
    "element=row\nraw.field=raw\nmax.record.length=200",
] }
target! { gzip = JsonLinesItemReader, [
    "compression=gzip",
    "compression=gzip\nmax.record.length=60\nskip.lines=1\nraw.field=raw",
] }
target! {
    #[cfg(feature = "zstd")]
    zstd = JsonLinesItemReader, [
        "compression=zstd",
        "compression=zstd\nmax.record.length=60\nskip.lines=1\nraw.field=raw",
    ]
}
target! {
    #[cfg(feature = "parquet")]
    parquet = ParquetItemReader, ["", "record.field=number"]
}
target! {
    #[cfg(feature = "parquet")]
    arrow = ArrowItemReader, ["", "record.field=number"]
}
target! {
    #[cfg(feature = "xlsx")]
    xlsx = XlsxItemReader, [
        "max.unpacked.size=1000000",
        "max.unpacked.size=1000000\nheader=false\ntrim=true\nskip.rows=1\nif.no.result=empty\nraw.field=raw",
    ]
}

/// A sheet of a workbook: a mutation of a workbook mostly ends at the checksum of its archive.
///
/// # Panics
/// If the reader is at fault.
#[cfg(feature = "xlsx")]
#[doc(hidden)]
pub fn sheet(data: &[u8]) {
    if let Some((choice, sheet)) = data.split_first() {
        let workbook = workbook(sheet).unwrap_or_else(|error| panic!("{error}"));
        xlsx(&[&[*choice], &*workbook].concat());
    }
}

#[cfg(feature = "xlsx")]
fn workbook(sheet: &[u8]) -> zip::result::ZipResult<Vec<u8>> {
    use std::io::{Cursor, Write};

    let files: [(&str, &[u8]); 5] = [
        (
            "xl/workbook.xml",
            b"<workbook><sheets><sheet name=\"a\" sheetId=\"1\" r:id=\"r1\"/></sheets></workbook>",
        ),
        (
            "xl/_rels/workbook.xml.rels",
            b"<Relationships><Relationship Id=\"r1\" Target=\"worksheets/a.xml\" \
              Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet\"/></Relationships>",
        ),
        (
            "xl/sharedStrings.xml",
            b"<sst><si><t>id</t></si><si><r><t>a</t></r><r><t> b</t></r></si></sst>",
        ),
        (
            "xl/styles.xml",
            b"<styleSheet><cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"14\"/><xf numFmtId=\"21\"/></cellXfs></styleSheet>",
        ),
        ("xl/worksheets/a.xml", sheet),
    ];
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        archive.start_file(name, zip::write::SimpleFileOptions::default())?;
        archive.write_all(content)?;
    }
    Ok(archive.finish()?.into_inner())
}

/// Checks that a file that is read again gives the same, and from a checkpoint the rest.
// Spec: INPUT-01, INPUT-04, INPUT-06
fn check<F>(
    data: &[u8],
    choices: &[&str],
    inject: fn(&InjectionScope<'_>) -> Result<FileItemReader<F, Record>, InjectError>,
) where
    F: Format + BatchArtifact,
    F::Records: Items<Record>,
{
    let Some((choice, content)) = data.split_first() else {
        return;
    };
    let choice = choices[usize::from(choice.wrapping_sub(b'0')) % choices.len()];
    let file = NamedTempFile::new().unwrap_or_else(|error| panic!("{error}"));
    fs::write(&file, content).unwrap_or_else(|error| panic!("{error}"));
    let properties = properties(&file.path().display().to_string(), choice);
    let reader = inject(&InjectionScope::new(&properties, &ContextScope::default()));
    let mut reader = reader.unwrap_or_else(|error| panic!("{error}"));

    let (events, positions) = read(&mut reader, None);
    let (again, _) = read(&mut reader, None);
    assert!(again == events, "first {events:?}, then {again:?}");
    let distance = positions.len() / MAX_CHECKPOINTS + 1;
    for (count, position) in positions.into_iter().enumerate().step_by(distance) {
        let (rest, _) = read(&mut reader, Some(position.clone()));
        let expected = &events[count..];
        let compared = rest.len().min(expected.len());
        assert!(
            rest[..compared] == expected[..compared]
                && (compared == expected.len() || events.len() > MAX_EVENTS),
            "after {count} events, at {position:?}: {rest:?} instead of {expected:?}"
        );
    }
}

/// Returns the properties of a reader: its file, and `name=value` lines.
fn properties(file: &str, lines: &str) -> Properties {
    let given = lines.lines().filter_map(|line| line.split_once('='));
    let xml = given.chain([("resource", file)]);
    Properties {
        xml: xml
            .map(|(name, value)| (name.to_owned(), value.to_owned(), String::new()))
            .collect(),
        ..Properties::default()
    }
}

/// Returns the events of a file from a checkpoint to its end, and the position before each: items, the messages of rejected records, and
/// last the end or the error of the file. As texts: there NaN equals itself and the zeros differ.
fn read<F>(
    reader: &mut FileItemReader<F, Record>,
    checkpoint: Option<ReadPosition>,
) -> (Vec<String>, Vec<ReadPosition>)
where
    F: Format + BatchArtifact,
    F::Records: Items<Record>,
{
    let (mut events, mut positions) = (Vec::new(), Vec::new());
    if let Err(error) = reader.open(checkpoint) {
        return (vec![failure(&error)], positions);
    }
    while events.len() <= MAX_EVENTS {
        positions.push(reader.checkpoint());
        match reader.read() {
            Ok(Some(item)) => events.push(format!("{item:?}")),
            Ok(None) => {
                events.push("the end".to_owned());
                break;
            }
            Err(error) if error.downcast_ref::<RecordError>().is_some() => {
                events.push(error.to_string());
            }
            Err(error) => {
                events.push(failure(&error));
                break;
            }
        }
    }
    (events, positions)
}

/// Returns the message of an error of the file.
fn failure(error: &BatchError) -> String {
    assert!(error.downcast_ref::<ResourceError>().is_some(), "{error}");
    error.to_string()
}

#[cfg(test)]
#[path = "../../fuzz/src/mutate.rs"]
mod mutate;

#[cfg(test)]
mod tests {
    use super::mutate::replay;

    // Spec: INPUT-01, INPUT-02, INPUT-03, INPUT-04
    #[test]
    fn delimited_rows_are_read_again_from_each_checkpoint() {
        replay("csv", 1_000, super::csv);
    }

    // Spec: INPUT-01, INPUT-02, INPUT-03, INPUT-04
    #[test]
    fn lines_of_fixed_widths_are_read_again_from_each_checkpoint() {
        replay("fixed_width", 1_000, super::fixed_width);
    }

    // Spec: INPUT-01, INPUT-02, INPUT-03, INPUT-04
    #[test]
    fn lines_of_a_pattern_are_read_again_from_each_checkpoint() {
        replay("pattern", 50, super::pattern);
    }

    // Spec: INPUT-01, INPUT-02, INPUT-03, INPUT-04
    #[test]
    fn json_lines_are_read_again_from_each_checkpoint() {
        replay("json_lines", 500, super::json_lines);
    }

    // Spec: INPUT-01, INPUT-03, INPUT-04
    #[test]
    fn a_json_array_is_read_again_from_each_checkpoint() {
        replay("json_array", 300, super::json_array);
    }

    // Spec: INPUT-01, INPUT-03, INPUT-04
    #[test]
    fn xml_elements_are_read_again_from_each_checkpoint() {
        replay("xml", 300, super::xml);
    }

    // Spec: INPUT-01, INPUT-03
    #[test]
    fn gzip_is_read_again_from_each_checkpoint() {
        replay("gzip", 300, super::gzip);
    }

    // Spec: INPUT-01, INPUT-03
    #[cfg(feature = "zstd")]
    #[test]
    fn zstd_is_read_again_from_each_checkpoint() {
        replay("zstd", 300, super::zstd);
    }

    // Spec: INPUT-01, INPUT-06
    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_is_read_again_from_each_checkpoint() {
        replay("parquet", 200, super::parquet);
    }

    // Spec: INPUT-01, INPUT-06
    #[cfg(feature = "parquet")]
    #[test]
    fn arrow_is_read_again_from_each_checkpoint() {
        replay("arrow", 300, super::arrow);
    }

    // Spec: INPUT-01, INPUT-06
    #[cfg(feature = "xlsx")]
    #[test]
    fn workbooks_are_read_again_from_each_checkpoint() {
        replay("xlsx", 200, super::xlsx);
    }

    // Spec: INPUT-01, INPUT-06
    #[cfg(feature = "xlsx")]
    #[test]
    fn sheets_are_read_again_from_each_checkpoint() {
        replay("sheet", 300, super::sheet);
    }
}
