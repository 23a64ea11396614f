//! Records to several tables and files, by the properties of each.

use std::fmt;
use std::path::Path;

use batch_runtime::destination::AnyDestination;
use batch_runtime::prelude::*;
use batch_runtime::{ConfigurationError, OutputPath};
use serde_json::Value as Json;

use super::traits::WriteItems;
use super::writers::write_part;
use crate::choices;
use crate::record::{Record, RecordProcessor};
use crate::{DelimitedItemWriter, JsonLinesItemWriter, TableItemWriter};

/// Writes records to up to four destinations, tables and files; registered as `recordRoutingWriter`.
///
/// | property | default | |
/// |---|---|---|
/// | `route` | `all` | `all`: a record goes to each destination whose `where` it meets; `first`: to the first of them |
/// | `if.unrouted` | `fail` | what a record is that goes to none: `fail`, an error of the class `UnroutedRecord`, or `filter` |
///
/// The properties of a destination have a prefix, from `1.` to `4.`. They are the properties of a [`RecordProcessor`], such as `1.where`,
/// `1.set` and `1.fields`, and those of one writer:
///
/// | property | writer |
/// |---|---|
/// | `1.table` | a [`TableItemWriter`]: `1.mode`, `1.key` .. |
/// | `1.output` | a [`DelimitedItemWriter`] or, with the extension `.jsonl` or `.ndjson`, a [`JsonLinesItemWriter`] |
///
/// If one destination rejects a record, no destination has it. A step that skips the error skips the record once.
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
    #[batch_property(name = "if.unrouted", value = "fail")]
    if_unrouted: IfUnrouted,
    #[batch_artifact(prefix = "1.")]
    first: Part,
    #[batch_artifact(prefix = "2.")]
    second: Part,
    #[batch_artifact(prefix = "3.")]
    third: Part,
    #[batch_artifact(prefix = "4.")]
    fourth: Part,
}

/// Which destinations take a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Route {
    All,
    First,
}

/// What a record is that no destination takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IfUnrouted {
    Fail,
    Filter,
}

choices! {
    Route { "all" => All, "first" => First }
    IfUnrouted { "fail" => Fail, "filter" => Filter }
}

/// A destination, and what it does to records.
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
    /// The one of the writers above that the properties name, when the step has opened it.
    writer: Option<Box<dyn RecordWriter>>,
    /// The records of the list that is written.
    records: Vec<Record>,
}

/// A writer of records, whatever its checkpoint is.
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
        let checkpoint = checkpoint.map(serde_json::from_value).transpose();
        let checkpoint = checkpoint.map_err(|error| {
            let cause = format!(
                "it was another kind of destination before the restart ({error}); restore its properties, or run `abandon` for this execution and \
                 `start` the job again"
            );
            ConfigurationError::new(cause)
        })?;
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
    /// Creates the writer that the properties name; `None` if there is no destination of this number.
    fn choose(&mut self) -> Result<Option<Box<dyn RecordWriter>>, &'static str> {
        let table = self.table.take();
        match (table, &self.output) {
            (None, None) if self.each.does_nothing() => Ok(None),
            (None, None) => Err("it has neither `table` nor `output`; set one of them"),
            (Some(_), Some(_)) => {
                Err("it has `table` and `output`; give one of them to a destination of another number")
            }
            (Some(table), None) => Ok(Some(Box::new(table))),
            (None, Some(output)) => Ok(match is_json_lines(output) {
                true => self.json_lines.take().map(|writer| Box::new(writer) as _),
                false => self.csv.take().map(|writer| Box::new(writer) as _),
            }),
        }
    }

    fn destination(&self) -> Result<Option<AnyDestination>, BatchError> {
        match (&self.writer, &self.table) {
            (Some(writer), _) => writer.destination(),
            (None, Some(table)) => WriteItems::destination(table),
            (None, None) => Ok(None),
        }
    }

    /// Opens the destination, at the position that a checkpoint has for it.
    fn open(&mut self, restarted: bool, position: Option<Json>) -> Result<(), BatchError> {
        if self.writer.is_none() {
            self.writer = self.choose().map_err(ConfigurationError::new)?;
        }
        match (&mut self.writer, restarted, position) {
            (None, _, None) => Ok(()),
            (Some(writer), false, _) => writer.open(None),
            (Some(writer), true, Some(position)) => writer.open(Some(position)),
            // It would lack the records, or they would be without it, that were written before.
            (Some(_), true, None) | (None, _, Some(_)) => Err(ConfigurationError::new(
                "it was added or removed after the step has written records; restore its properties, or run `abandon` for this execution and \
                 `start` the job again",
            )
            .into()),
        }
    }

    fn write(&mut self, tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let records: Vec<&Record> = self.records.iter().collect();
        match &mut self.writer {
            Some(writer) => writer.write(&records, tx),
            None => Ok(()),
        }
    }
}

/// Returns whether an output has JSON Lines, by its extension before that of a compression.
fn is_json_lines(output: &OutputPath) -> bool {
    let path = Path::new(output.as_str());
    let is = |path: &Path, extensions: &[&str]| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|found| extensions.iter().any(|known| found.eq_ignore_ascii_case(known)))
    };
    let stem = path.file_stem().map(Path::new);
    let name = stem.filter(|_| is(path, &["gz", "zst"])).unwrap_or(path);
    is(name, &["jsonl", "ndjson"])
}

/// A record that no destination takes.
#[derive(Debug, BatchException)]
struct UnroutedRecord(Option<String>);

impl UnroutedRecord {
    /// Names the record by its first field: all of them may be confidential.
    fn of(record: &Record) -> Self {
        let first = record.iter().next();
        Self(first.map(|(name, value)| format!("`{name}` {:?}", value.to_string())))
    }
}

impl fmt::Display for UnroutedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no destination takes the record")?;
        if let Some(first) = &self.0 {
            write!(f, " with {first}")?;
        }
        f.write_str(
            "; add a destination without `where`, or set `if.unrouted` to `filter` to leave such records out",
        )
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

    /// Opens the destinations, at the checkpoint.
    #[open]
    pub fn open(&mut self, checkpoint: Option<Vec<Option<Json>>>) -> Result<(), BatchError> {
        let restarted = checkpoint.is_some();
        let mut positions = checkpoint.unwrap_or_default().into_iter();
        for (part, number) in self.parts().into_iter().zip(1..) {
            let position = positions.next().flatten();
            part.open(restarted, position).map_err(|error| {
                let message = format!("destination `{number}.`: {}", error.chain());
                match error.is_configuration_error() {
                    true => ConfigurationError::new(message).into(),
                    false => BatchError::msg(message),
                }
            })?;
        }
        match self.parts().iter().any(|part| part.writer.is_some()) {
            true => Ok(()),
            false => {
                Err(ConfigurationError::new("no destination is set; set `1.table` or `1.output`").into())
            }
        }
    }

    /// Writes records. If one of the destinations fails, the others write nothing.
    #[write_items]
    pub fn write(&mut self, records: &[Record], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        self.parts().into_iter().for_each(|part| part.records.clear());
        for (index, record) in records.iter().enumerate() {
            // No record is written yet.
            self.distribute(record)
                .map_err(|error| BatchError::about_item(index, error))?;
        }
        let mut writers: Vec<_> = self
            .parts()
            .into_iter()
            .filter(|part| part.writer.is_some())
            .collect();
        for part in &mut writers {
            part.writer.iter_mut().for_each(|writer| writer.mark());
        }
        let written = writers.iter_mut().try_for_each(|part| part.write(tx));
        written.map_err(|error| {
            let error = error.without_item_index();
            let mut undone = true;
            for writer in writers.iter_mut().filter_map(|part| part.writer.as_mut()) {
                undone &= writer.undo();
            }
            match undone {
                true => error,
                false => BatchError::with_rollback(error),
            }
        })
    }

    /// Returns the positions of the destinations.
    #[get_checkpoint_info]
    pub fn checkpoint(&mut self) -> Result<Vec<Option<Json>>, BatchError> {
        let positions = self.parts().into_iter().map(|part| {
            let writer = part.writer.as_mut();
            writer.map(|writer| writer.position()).transpose()
        });
        positions.collect()
    }

    /// Completes the files.
    #[finish]
    pub fn finish(&mut self) -> Result<(), BatchError> {
        let mut writers = self.parts().into_iter().filter_map(|part| part.writer.as_mut());
        writers.try_for_each(|writer| writer.finish())
    }

    /// Closes the destinations.
    #[close]
    pub fn close(&mut self) {
        for writer in self.parts().into_iter().filter_map(|part| part.writer.as_mut()) {
            writer.close();
        }
    }

    fn parts(&mut self) -> [&mut Part; 4] {
        [
            &mut self.first,
            &mut self.second,
            &mut self.third,
            &mut self.fourth,
        ]
    }

    /// Gives a record to its destinations.
    fn distribute(&mut self, record: &Record) -> Result<(), BatchError> {
        let (route, if_unrouted) = (self.route, self.if_unrouted);
        let mut is_routed = false;
        for part in self.parts().into_iter().filter(|part| part.writer.is_some()) {
            if let Some(mapped) = part.each.process(record.clone())? {
                part.records.push(mapped);
                is_routed = true;
                if route == Route::First {
                    break;
                }
            }
        }
        match is_routed || if_unrouted == IfUnrouted::Filter {
            true => Ok(()),
            false => Err(UnroutedRecord::of(record).into()),
        }
    }
}
