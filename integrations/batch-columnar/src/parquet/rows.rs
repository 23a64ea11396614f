//! Rows of Arrow record batches as items.

use std::any::type_name;
use std::vec;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_schema::{DataType, Fields};
use arrow_select::take::take_record_batch;
use batch_items::file::{Items, Place, Records, Source};
use batch_items::rows::{fields_of, lacking};
use batch_items::{Origin, ReadError, Record};
use batch_runtime::xml::suggest::did_you_mean;
use serde::de::DeserializeOwned;
use serde_arrow::Deserializer;

use super::columns::{cause, cause_in};
use super::error::message;
use super::values::plain;
use crate::guard::guard;

/// Returns the names of all columns, and the columns that the fields of `T` name; `None` if `T` takes all columns.
pub(super) fn named_columns<T: DeserializeOwned>(
    columns: &Fields,
) -> Result<(Vec<String>, Option<Vec<usize>>), String> {
    let names: Vec<String> = columns.iter().map(|column| column.name().clone()).collect();
    let named = fields_of::<T>().map(|fields| {
        let is_named = |index: &usize| fields.contains(&names[*index].as_str());
        let named: Vec<usize> = (0..names.len()).filter(is_named).collect();
        match (&*named, fields.first()) {
            ([], Some(field)) => Err(missing(field, &names)),
            _ => Ok(named),
        }
    });
    let named = named.transpose()?;
    for (index, column) in columns.iter().enumerate() {
        let is_read = named.as_ref().is_none_or(|named| named.contains(&index));
        if let Some(kind) = unreadable(column.data_type()).filter(|_| is_read) {
            let name = column.name();
            return Err(format!(
                "column `{name}` has the type {kind}, which cannot be read; {REMEDY}"
            ));
        }
    }
    Ok((names, named))
}

/// What to do about a column that cannot be read.
const REMEDY: &str = "convert it, or read items of a type without a field for it";

/// Returns the type of a column, or a type in it, that `serde_arrow` does not read.
fn unreadable(kind: &DataType) -> Option<&DataType> {
    match kind {
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal256(..)
        | DataType::Interval(_)
        | DataType::RunEndEncoded(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Union(..)
        | DataType::FixedSizeBinary(..=0) => Some(kind),
        DataType::Dictionary(_, value) => unreadable(value),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => unreadable(field.data_type()),
        DataType::Struct(fields) => fields.iter().find_map(|field| unreadable(field.data_type())),
        _ => None,
    }
}

/// Returns whether items are records, whose values have no Rust types.
fn is_record<T>() -> bool {
    type_name::<T>() == type_name::<Record>()
}

fn missing(field: &str, columns: &[String]) -> String {
    let hint = did_you_mean(field, columns.iter().map(String::as_str));
    let columns: Vec<_> = columns.iter().map(|name| format!("`{name}`")).collect();
    format!("it has no column `{field}`, but {}{hint}", columns.join(", "))
}

/// The rows of a file.
pub struct Rows<T> {
    batches: Batches,
    /// The next rows of the batch.
    items: vec::IntoIter<Result<T, ReadError>>,
    current: Option<Result<T, ReadError>>,
    /// The names of all columns.
    names: Vec<String>,
    record: u64,
    /// The current batch and the row in it, if a restart seeks to a batch.
    batch: Option<(u64, u32)>,
    has_begun: bool,
    source: Source,
}

/// The batches of a file.
pub(super) type Batches = Box<dyn Iterator<Item = Result<RecordBatch, String>> + Send>;

impl<T: DeserializeOwned> Rows<T> {
    /// `names` are the names of all columns, and `record` is the number of rows before the batches.
    pub(super) fn new(batches: Batches, names: Vec<String>, record: u64, source: Source) -> Self {
        Self {
            batches,
            items: Vec::new().into_iter(),
            current: None,
            names,
            record,
            batch: None,
            has_begun: false,
            source,
        }
    }

    /// Counts the batches. The first one has this number, and so many of its rows come before the next one.
    pub(super) fn at_batch(mut self, number: u64, row: u32) -> Self {
        self.batch = Some((number, row));
        self
    }

    /// Returns the items of rows that have numbers from `first` on.
    fn items(&self, batch: &RecordBatch, first: u64) -> Result<Vec<Result<T, ReadError>>, ReadError> {
        match plain(batch, is_record::<T>()) {
            Ok(batch) => self.plain_items(&batch, first),
            Err(_) => self.items_of_rows(batch, first),
        }
    }

    /// Returns the items of rows with plain values.
    fn plain_items(&self, batch: &RecordBatch, first: u64) -> Result<Vec<Result<T, ReadError>>, ReadError> {
        let fail = |error: serde_arrow::Error| self.source.fail(cause(&error));
        let rows = Deserializer::from_record_batch(batch).map_err(fail)?;
        let mut items = Vec::with_capacity(rows.len());
        for (number, index) in (first..).zip(0..rows.len()) {
            let Some(row) = rows.get(index) else { break };
            let item = self.source.deserialize(row, number, number, "");
            items.push(item.map_err(|error| {
                let row = rows.get(index);
                let bad = row.and_then(|row| self.source.bad_field::<T, _>(row, number, number, ""));
                match bad {
                    Some((path, error)) => self.bad(number, &path, &error, batch),
                    None => fail(error).into(),
                }
            }));
        }
        Ok(items)
    }

    /// Returns the items of rows one by one, without what other rows and nulls contain, so that a bad value is an error of its row.
    fn items_of_rows(&self, batch: &RecordBatch, first: u64) -> Result<Vec<Result<T, ReadError>>, ReadError> {
        let mut items = Vec::with_capacity(batch.num_rows());
        for (number, index) in (first..).zip(0_u64..batch.num_rows() as u64) {
            let row = take_record_batch(batch, &UInt64Array::from(vec![index]));
            let row = row.map_err(|error| self.source.fail(message(&error)))?;
            match plain(&row, is_record::<T>()) {
                Ok(row) => items.append(&mut self.plain_items(&row, number)?),
                Err(error) => {
                    let error = self.source.bad_record(number, b"", message(&error));
                    items.push(Err(error.into()));
                }
            }
        }
        Ok(items)
    }

    fn bad(&self, number: u64, path: &str, error: &serde_arrow::Error, batch: &RecordBatch) -> ReadError {
        let message = cause(error);
        let field = message.strip_prefix("missing field `");
        if let (Some(field), ".") = (field.and_then(|rest| rest.strip_suffix('`')), path) {
            return self.source.fail(missing(field, &self.names)).into();
        }
        let cause = match path {
            "." => message,
            path => cause_in(path, batch.schema().fields(), error),
        };
        self.source.bad_record(number, b"", cause).into()
    }
}

impl<T: DeserializeOwned + Send> Records for Rows<T> {
    fn advance(&mut self) -> Result<bool, ReadError> {
        loop {
            if let Some(item) = self.items.next() {
                self.current = Some(item);
                self.record += 1;
                if let Some((_, row)) = &mut self.batch {
                    *row += 1;
                }
                return Ok(true);
            }
            let batch = guard(|| self.batches.next().transpose());
            let Some(mut batch) = batch.map_err(|cause| self.source.fail(cause))? else {
                return Ok(false);
            };
            match &mut self.batch {
                // The rest of the batch where a restart began.
                Some((_, row)) if !self.has_begun => {
                    let before = batch.num_rows().min(*row as usize);
                    batch = batch.slice(before, batch.num_rows() - before);
                }
                Some((number, row)) => (*number, *row) = (*number + 1, 0),
                None => {}
            }
            self.has_begun = true;
            let items =
                guard(|| Ok(self.items(&batch, self.record + 1))).map_err(|cause| self.source.fail(cause))?;
            self.items = items?.into_iter();
        }
    }

    fn place(&self) -> Place {
        let (byte, depth) = self.batch.unwrap_or_default();
        Place {
            byte,
            line: self.record + 1,
            record: self.record,
            depth,
        }
    }

    fn origin(&self) -> Origin<'_> {
        self.source.origin(self.record, b"")
    }
}

impl<T: DeserializeOwned + Send> Items<T> for Rows<T> {
    fn check(&self) -> Result<(), ReadError> {
        let lacking = lacking::<T>(self.names.iter().map(String::as_str), self.source.added_names());
        let cause = lacking.first().map(|field| missing(field, &self.names));
        cause.map_or(Ok(()), |cause| Err(self.source.fail(cause).into()))
    }

    fn item(&mut self) -> Result<T, ReadError> {
        let item = self.current.take();
        item.unwrap_or_else(|| Err(self.source.fail("there is no row").into()))
    }
}
