//! Records to several tables and files, by the properties of each.

use std::fmt;
use std::path::Path;

use batch_runtime::destination::AnyDestination;
use batch_runtime::prelude::*;
use batch_runtime::{ConfigurationError, OutputPath};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::traits::WriteItems;
use super::writers::write_part;
use crate::choices;
use crate::record::{Record, RecordProcessor};
use crate::{DelimitedItemWriter, JsonLinesItemWriter, TableItemWriter};

/// Writes records to up to four parts, tables and files; registered as `recordRoutingWriter`.
///
/// | property | default | |
/// |---|---|---|
/// | `route` | `all` | `all`: each part whose `where` a record meets takes it; `first`: only the first of them |
///
/// The properties of a part have a prefix, from `1.` to `4.`. They are the properties of a [`RecordProcessor`], such as `1.where`, `1.set` and
/// `1.fields`, and those of one writer:
///
/// | property | writer |
/// |---|---|
/// | `1.table` | a [`TableItemWriter`]: `1.mode`, `1.key` .. |
/// | `1.output` | a [`DelimitedItemWriter`] or, with the extension `.jsonl` or `.ndjson`, a [`JsonLinesItemWriter`] |
///
/// A record that no part takes is an error of the class `UnroutedRecord`. If one part rejects a record, no part has it. A step that skips the error skips the record once.
///
/// ```xml
/// <chunk reader="csvRecordReader" writer="recordRoutingWriter">
///   <properties>
///     <property name="1.table" value="posting"/>
///     <property name="2.table" value="balance"/>
///     <property name="2.fields" value="account, cents"/>
///     <property name="2.mode" value="upsert"/>
///     <property name="2.key" value="account"/>
///     <property name="2.add" value="cents"/>
///     <property name="3.where" value="cents > 1000000"/>
///     <property name="3.output" value="out/large.csv"/>
///   </properties>
/// </chunk>
/// ```
#[derive(BatchArtifact)]
pub struct RecordRoutingWriter {
    #[batch_property(name = "route", value = "all")]
    route: Route,
    #[batch_artifact(prefix = "1.")]
    first: Part,
    #[batch_artifact(prefix = "2.")]
    second: Part,
    #[batch_artifact(prefix = "3.")]
    third: Part,
    #[batch_artifact(prefix = "4.")]
    fourth: Part,
}

/// The parts that take a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Route {
    All,
    First,
}

choices! {
    Route { "all" => All, "first" => First }
}

/// A table or file, and the mapping of its records.
#[derive(BatchArtifact)]
struct Part {
    #[batch_artifact]
    each: RecordProcessor,
    #[batch_artifact]
    table: Option<TableItemWriter<Record>>,
    /// The file, instead of a table; its extension sets the format.
    #[batch_property(name = "output")]
    output: Option<OutputPath>,
    #[batch_artifact]
    csv: Option<DelimitedItemWriter<Record>>,
    #[batch_artifact]
    json_lines: Option<JsonLinesItemWriter<Record>>,
    #[batch_artifact]
    of_rows: Option<RowProperties>,
    /// The writer that the properties name; `None` until the step opens it.
    writer: Option<Box<dyn RecordWriter>>,
    kind: Option<WriterKind>,
    /// The records of the current list.
    records: Vec<Record>,
}

/// The properties of rows with a delimiter, which JSON Lines do not have.
#[derive(BatchArtifact)]
struct RowProperties {
    /// They have an effect only with it.
    #[batch_property(name = "output")]
    _output: OutputPath,
    /// The fields that are written.
    #[batch_property]
    columns: Option<String>,
    /// Whether the first line has the names of the fields.
    #[batch_property]
    header: Option<String>,
    /// The fields that are quoted.
    #[batch_property]
    quotes: Option<String>,
    /// The character between two fields.
    #[batch_property]
    delimiter: Option<String>,
    /// The character around a field.
    #[batch_property]
    quote: Option<String>,
    /// The character before a quote within quotes.
    #[batch_property]
    escape: Option<String>,
    /// The encoding of the text.
    #[batch_property]
    encoding: Option<String>,
    /// The end of a line.
    #[batch_property(name = "line.end")]
    line_end: Option<String>,
}

impl RowProperties {
    /// Returns the first property that is set.
    fn first(&self) -> Option<&'static str> {
        let all = [
            ("columns", &self.columns),
            ("header", &self.header),
            ("quotes", &self.quotes),
            ("delimiter", &self.delimiter),
            ("quote", &self.quote),
            ("escape", &self.escape),
            ("encoding", &self.encoding),
            ("line.end", &self.line_end),
        ];
        all.iter()
            .find(|(_, value)| value.is_some())
            .map(|(name, _)| *name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WriterKind {
    Table,
    Csv,
    JsonLines,
}

/// The position of a part. Positions of different writers may look the same.
#[derive(Debug, Serialize, Deserialize)]
pub struct PartPosition {
    kind: WriterKind,
    position: Json,
}

/// A writer of records whose checkpoint is JSON.
trait RecordWriter: Send {
    fn destination(&self) -> Result<Option<AnyDestination>, BatchError>;
    fn open(&mut self, checkpoint: Option<Json>) -> Result<(), BatchError>;
    fn write(&mut self, records: &[&Record], tx: &mut ChunkTransaction) -> Result<(), BatchError>;
    fn mark(&mut self);
    fn undo(&mut self) -> bool;
    fn position(&mut self) -> Result<Json, BatchError>;
    fn finish(&mut self) -> Result<(), BatchError>;
    fn close(&mut self);
}

impl<W: WriteItems<Record>> RecordWriter for W {
    fn destination(&self) -> Result<Option<AnyDestination>, BatchError> {
        WriteItems::destination(self)
    }

    fn open(&mut self, checkpoint: Option<Json>) -> Result<(), BatchError> {
        let checkpoint = checkpoint.map(serde_json::from_value).transpose()?;
        WriteItems::open(self, checkpoint)
    }

    fn write(&mut self, records: &[&Record], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        write_part(self, records, tx)
    }

    fn mark(&mut self) {
        WriteItems::mark(self);
    }

    fn undo(&mut self) -> bool {
        WriteItems::undo(self)
    }

    fn position(&mut self) -> Result<Json, BatchError> {
        Ok(serde_json::to_value(WriteItems::position(self)?)?)
    }

    fn finish(&mut self) -> Result<(), BatchError> {
        WriteItems::finish(self)
    }

    fn close(&mut self) {
        WriteItems::close(self);
    }
}

impl Part {
    /// Creates the writer that the properties name, unless there is no part of this number.
    fn create_writer(&mut self) -> Result<(), String> {
        let (writer, kind): (Option<Box<dyn RecordWriter>>, _) = match (self.table.take(), &self.output) {
            (None, None) if self.each.does_nothing() => return Ok(()),
            (None, None) => return Err("it has neither `table` nor `output`; set one of them".to_owned()),
            (Some(_), Some(_)) => {
                return Err(
                    "it has `table` and `output`; give one of them to a part of another number".to_owned(),
                );
            }
            (Some(table), None) => (Some(Box::new(table)), WriterKind::Table),
            (None, Some(output)) => match format_of(output)? {
                WriterKind::JsonLines => {
                    if let Some(name) = self.of_rows.as_ref().and_then(RowProperties::first) {
                        return Err(format!(
                            "`{name}` has no effect on JSON Lines; remove it, and select fields by `fields`"
                        ));
                    }
                    let writer = self.json_lines.take();
                    (writer.map(|writer| Box::new(writer) as _), WriterKind::JsonLines)
                }
                kind => (self.csv.take().map(|writer| Box::new(writer) as _), kind),
            },
        };
        (self.writer, self.kind) = (writer, Some(kind));
        Ok(())
    }

    fn destination(&self) -> Result<Option<AnyDestination>, BatchError> {
        match (&self.writer, &self.table) {
            (Some(writer), _) => writer.destination(),
            (None, Some(table)) => WriteItems::destination(table),
            (None, None) => Ok(None),
        }
    }

    /// Opens the part. `checkpoint` has its position in a restart, or `None` if there was no such part.
    fn open(&mut self, checkpoint: Option<Option<PartPosition>>) -> Result<(), BatchError> {
        if self.writer.is_none() {
            self.create_writer().map_err(ConfigurationError::new)?;
        }
        let kind = self.kind;
        match (&mut self.writer, checkpoint) {
            (None, None | Some(None)) => Ok(()),
            (Some(writer), None) => writer.open(None),
            (Some(writer), Some(Some(position))) if kind == Some(position.kind) => writer.open(Some(position.position)),
            // Else it would lack earlier records, or earlier records would be missing from the others.
            (Some(_), Some(_)) | (None, Some(Some(_))) => Err(ConfigurationError::new(
                "it was added, removed or of another kind after the step has written records; restore its properties, or run `abandon` for \
                 this execution and `start` the job again",
            )
            .into()),
        }
    }

    fn position(&mut self) -> Result<Option<PartPosition>, BatchError> {
        let (Some(writer), Some(kind)) = (&mut self.writer, self.kind) else {
            return Ok(None);
        };
        let position = writer.position()?;
        Ok(Some(PartPosition { kind, position }))
    }

    fn write(&mut self, tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let records: Vec<&Record> = self.records.iter().collect();
        match &mut self.writer {
            Some(writer) => writer.write(&records, tx),
            None => Ok(()),
        }
    }
}

/// Extensions of formats that a part does not have: a delimited file of such a name would be taken for another one.
const OTHER_FORMATS: [&str; 12] = [
    "arrow", "avro", "bz2", "feather", "json", "orc", "parquet", "xls", "xlsx", "xml", "xz", "zip",
];

/// Returns the format of an output by its extension, without the extension of a compression.
fn format_of(output: &OutputPath) -> Result<WriterKind, String> {
    let name = output.as_str();
    // The writer knows these in lower case.
    let name = name
        .strip_suffix(".gz")
        .or(name.strip_suffix(".zst"))
        .unwrap_or(name);
    let extension = Path::new(name)
        .extension()
        .and_then(|extension| extension.to_str());
    let extension = extension.unwrap_or_default().to_ascii_lowercase();
    match extension.as_str() {
        "jsonl" | "ndjson" => Ok(WriterKind::JsonLines),
        "gz" | "zst" => Err(format!(
            "the extension of `{name}` is in upper case, so the file would not be compressed; write it in lower case"
        )),
        other if OTHER_FORMATS.contains(&other) => Err(format!(
            "its file would be delimited or JSON Lines, and not what the extension of `{name}` says; give it another one"
        )),
        _ => Ok(WriterKind::Csv),
    }
}

/// Names the part in an error.
fn in_part(number: usize, error: BatchError) -> BatchError {
    error.with_context(format_args!("part `{number}.`"))
}

/// A record that no part takes.
#[derive(Debug, BatchException)]
struct UnroutedRecord(Option<String>);

impl UnroutedRecord {
    fn of(record: &Record) -> Self {
        Self(record.first_field(""))
    }
}

impl fmt::Display for UnroutedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no part takes the record")?;
        if let Some(first) = &self.0 {
            write!(f, " with {first}")?;
        }
        f.write_str("; add a part without `where`, or filter such records by the processor `recordProcessor`")
    }
}

impl std::error::Error for UnroutedRecord {}

#[item_writer("recordRoutingWriter")]
impl RecordRoutingWriter {
    /// Returns the database of the tables, if it is not the repository's.
    #[destination]
    pub fn destination(&self) -> Result<Option<AnyDestination>, BatchError> {
        let Self {
            first,
            second,
            third,
            fourth,
            ..
        } = self;
        Ok(AnyDestination::of_parts([
            first.destination()?,
            second.destination()?,
            third.destination()?,
            fourth.destination()?,
        ])?)
    }

    /// Opens the parts, at the checkpoint.
    #[open]
    pub fn open(&mut self, checkpoint: Option<Vec<Option<PartPosition>>>) -> Result<(), BatchError> {
        let mut positions = checkpoint.map(Vec::into_iter);
        for (part, number) in self.parts().into_iter().zip(1..) {
            let position = positions.as_mut().map(|positions| positions.next().flatten());
            part.open(position).map_err(|error| in_part(number, error))?;
        }
        match self.parts().iter().any(|part| part.writer.is_some()) {
            true => Ok(()),
            false => Err(ConfigurationError::new("no part is set; set `1.table` or `1.output`").into()),
        }
    }

    /// Writes records. If one of the parts fails, the others write nothing.
    #[write_items]
    pub fn write(&mut self, records: &[Record], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        self.parts().into_iter().for_each(|part| part.records.clear());
        for (index, record) in records.iter().enumerate() {
            // No record is written yet.
            self.distribute(record)
                .map_err(|error| BatchError::about_item(index, error))?;
        }
        for writer in self.writers() {
            writer.mark();
        }
        self.write_parts(tx).map_err(|error| {
            let error = error.without_item_index();
            let mut undone = true;
            for writer in self.writers() {
                undone &= writer.undo();
            }
            match undone {
                true => error,
                false => BatchError::with_rollback(error),
            }
        })
    }

    /// Returns the positions of the parts.
    #[get_checkpoint_info]
    pub fn checkpoint(&mut self) -> Result<Vec<Option<PartPosition>>, BatchError> {
        let parts = self.parts().into_iter().zip(1..);
        parts
            .map(|(part, number)| part.position().map_err(|error| in_part(number, error)))
            .collect()
    }

    /// Completes the files.
    #[finish]
    pub fn finish(&mut self) -> Result<(), BatchError> {
        let mut parts = self.parts().into_iter().zip(1..);
        parts.try_for_each(|(part, number)| match &mut part.writer {
            Some(writer) => writer.finish().map_err(|error| in_part(number, error)),
            None => Ok(()),
        })
    }

    /// Closes the parts.
    #[close]
    pub fn close(&mut self) {
        self.writers().for_each(|writer| writer.close());
    }

    fn writers(&mut self) -> impl Iterator<Item = &mut Box<dyn RecordWriter>> {
        self.parts().into_iter().filter_map(|part| part.writer.as_mut())
    }

    fn write_parts(&mut self, tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let mut parts = self.parts().into_iter().zip(1..);
        parts.try_for_each(|(part, number)| part.write(tx).map_err(|error| in_part(number, error)))
    }

    fn parts(&mut self) -> [&mut Part; 4] {
        [
            &mut self.first,
            &mut self.second,
            &mut self.third,
            &mut self.fourth,
        ]
    }

    /// Gives a record to its parts.
    fn distribute(&mut self, record: &Record) -> Result<(), BatchError> {
        let route = self.route;
        let mut is_routed = false;
        let parts = self.parts().into_iter().zip(1..);
        for (part, number) in parts.filter(|(part, _)| part.writer.is_some()) {
            let mapped = part.each.process(record.clone());
            if let Some(mapped) = mapped.map_err(|error| in_part(number, error))? {
                part.records.push(mapped);
                is_routed = true;
                if route == Route::First {
                    break;
                }
            }
        }
        match is_routed {
            true => Ok(()),
            false => Err(UnroutedRecord::of(record).into()),
        }
    }
}
