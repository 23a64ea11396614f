//! A format of text that is not of this crate: it has the public API alone.

use std::ops::Range;

use batch_items::file::{Bytes, FileItemReader, Format, Items, NextLine, OpenFile, Place, Records, Source};
use batch_items::{Origin, ReadError, Record};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;

use super::stage::Stage;

/// Lines with a word.
#[derive(BatchArtifact)]
struct Words;

#[item_reader("WordReader")]
type WordReader = FileItemReader<Words, Record>;

impl Format for Words {
    type Records = WordLines;

    fn start(&self, file: OpenFile<'_>) -> Result<WordLines, ReadError> {
        let source = file.source();
        let (bytes, record) = file.bytes(&source)?;
        Ok(WordLines {
            place: bytes.place(record),
            bytes,
            line: 0,
            current: 0..0,
            source,
        })
    }

    fn other_lines(&self) -> Option<u64> {
        Some(0)
    }
}

struct WordLines {
    bytes: Bytes,
    /// After the current line.
    place: Place,
    /// The number of the current line.
    line: u64,
    current: Range<usize>,
    source: Source,
}

impl Records for WordLines {
    fn advance(&mut self) -> Result<bool, ReadError> {
        self.line = self.place.line;
        let next = self.bytes.next_line(self.source.max_record_length());
        let next = next.map_err(|error| self.source.fail(error))?;
        self.place = self
            .bytes
            .place(self.place.record + u64::from(next != NextLine::End));
        match next {
            NextLine::End => Ok(false),
            NextLine::TooLong => {
                self.current = 0..0;
                Err(self.source.bad_record(self.line, b"", "it is too long").into())
            }
            NextLine::Line(line) => {
                self.current = line;
                Ok(true)
            }
        }
    }

    fn place(&self) -> Place {
        self.place
    }

    fn origin(&self) -> Origin<'_> {
        self.source.origin(self.line, self.bytes.slice(&self.current))
    }
}

impl Items<Record> for WordLines {
    fn item(&mut self) -> Result<Record, ReadError> {
        let bytes = self.bytes.slice(&self.current);
        let bad = |cause| self.source.bad_record(self.line, bytes, cause);
        let mut record = Record::new();
        record.set("word", self.source.text(bytes).map_err(bad)?);
        self.source
            .add_fields(&mut record, self.line, self.place.record, bytes)?;
        Ok(record)
    }
}

fn stage(properties: &str, content: &[u8]) -> Stage {
    let stage = Stage::with_listeners(
        "<listeners><listener ref=\"recordRejects\"><properties>\
         <property name=\"rejects.output\" value=\"${dir}/rejects.csv\"/></properties></listener></listeners>",
        "reader=\"WordReader\" writer=\"recordJsonlWriter\" skip-limit=\"9\"",
        &format!("resource=${{dir}}/in\noutput@writer=${{dir}}/out\n{properties}"),
        "<skippable-exception-classes><include class=\"RecordError\"/></skippable-exception-classes>",
    );
    stage.write("in", content);
    stage
}

/// The encoding, the byte-order mark and the skipped lines are the work of the reader, and what is added has the record's line and text.
///
/// Spec: INPUT-26
#[test]
fn a_format_of_another_crate_has_the_properties_of_file_readers() {
    let stage = stage(
        "encoding=windows-1252\nskip.lines@reader=1\nline.field@reader=line\nrecord.field@reader=number\nraw.field@reader=raw",
        b"words\ncaf\xe9\r\nb",
    );
    stage.completes();
    assert_eq!(
        stage.read("out"),
        "{\"word\":\"café\",\"line\":2,\"number\":1,\"raw\":\"café\"}\n{\"word\":\"b\",\"line\":3,\"number\":2,\"raw\":\"b\"}\n"
    );
    let stage = stage_of_utf8(b"\xef\xbb\xbfa\n");
    stage.completes();
    assert_eq!(stage.read("out"), "{\"word\":\"a\"}\n");
}

fn stage_of_utf8(content: &[u8]) -> Stage {
    stage("", content)
}

/// A record whose text is not valid is rejected with its line, and the next one is read.
///
/// Spec: INPUT-04, INPUT-26
#[test]
fn a_bad_record_of_another_format_is_rejected() {
    let stage = stage_of_utf8(b"a\n\xff\nc\n");
    let ended = stage.completes();
    assert_eq!(ended.status, BatchStatus::Completed);
    assert_eq!(stage.read("out"), "{\"word\":\"a\"}\n{\"word\":\"c\"}\n");
    let rejects = stage.read("rejects.csv");
    assert!(rejects.contains("in:2: the text is not valid UTF-8"), "{rejects}");
}

/// An added field replaces no value.
///
/// Spec: INPUT-26
#[test]
fn an_added_field_with_the_name_of_another_one_fails_the_step() {
    let message = stage("file.field@reader=word", b"a\n").fails();
    assert!(
        message.contains("it has a column `word` already; choose another name for the added field"),
        "{message}"
    );
}
