//! Timestamps of Spark, Hive and Impala, which Parquet has as a day and nanoseconds in 96 bits.
//!
//! Arrow has 64 bits: nanoseconds wrap before 1677 and after 2262, and seconds have no fraction. Both together are the exact value.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::timestamp_s_to_datetime;
use arrow_array::types::{TimestampNanosecondType, TimestampSecondType};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, FieldRef, Schema, TimeUnit};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::Type as PhysicalType;
use parquet::errors::ParquetError;

use super::children::{children, retyped, with_children};
use super::error::message;

const NANOS_OF_SECOND: i64 = 1_000_000_000;

/// Returns the metadata that read such timestamps as nanoseconds and as seconds; `None` if a file has none.
pub(super) fn units(file: &ArrowReaderMetadata) -> Result<Option<[ArrowReaderMetadata; 2]>, ParquetError> {
    let columns = || {
        let columns = file.parquet_schema().columns().iter();
        columns.map(|column| column.physical_type())
    };
    if columns().all(|kind| kind != PhysicalType::INT96) {
        return Ok(None);
    }
    let with_unit = |unit| {
        let (schema, mut columns) = (file.schema(), columns());
        let fields = schema.fields().iter();
        let fields: Vec<_> = fields
            .map(|field| field_with_unit(field, &mut columns, unit))
            .collect();
        let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
        ArrowReaderMetadata::try_new(Arc::clone(file.metadata()), options)
    };
    Ok(Some([
        with_unit(TimeUnit::Nanosecond)?,
        with_unit(TimeUnit::Second)?,
    ]))
}

fn field_with_unit(
    field: &FieldRef,
    columns: &mut dyn Iterator<Item = PhysicalType>,
    unit: TimeUnit,
) -> FieldRef {
    let mut inner = |field| field_with_unit(field, columns, unit);
    let kind = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        DataType::List(field) => DataType::List(inner(field)),
        DataType::LargeList(field) => DataType::LargeList(inner(field)),
        DataType::FixedSizeList(field, length) => DataType::FixedSizeList(inner(field), *length),
        DataType::ListView(field) => DataType::ListView(inner(field)),
        DataType::LargeListView(field) => DataType::LargeListView(inner(field)),
        DataType::Map(field, is_sorted) => DataType::Map(inner(field), *is_sorted),
        kind => match (columns.next(), kind) {
            (Some(PhysicalType::INT96), DataType::Timestamp(_, zone)) => {
                DataType::Timestamp(unit, zone.clone())
            }
            (Some(PhysicalType::INT96), _) => DataType::Timestamp(unit, None),
            _ => kind.clone(),
        },
    };
    retyped(field, &kind)
}

/// Returns a batch of nanoseconds, which wrap, with exact texts. `seconds` has the columns with such timestamps.
pub(super) fn exact(nanos: &RecordBatch, seconds: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let mut fields = Vec::with_capacity(nanos.num_columns());
    let mut columns = Vec::with_capacity(nanos.num_columns());
    for (field, column) in nanos.schema().fields().iter().zip(nanos.columns()) {
        let column = match seconds.column_by_name(field.name()) {
            Some(seconds) => exact_column(column, seconds).map_err(|error| {
                let (name, cause) = (field.name(), message(&error));
                ArrowError::CastError(format!("column `{name}`: {cause}"))
            })?,
            None => Arc::clone(column),
        };
        fields.push(retyped(field, column.data_type()));
        columns.push(column);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn exact_column(nanos: &ArrayRef, seconds: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if nanos.data_type() == seconds.data_type() {
        return Ok(Arc::clone(nanos));
    }
    let DataType::Timestamp(_, zone) = nanos.data_type() else {
        let pairs = children(nanos)?.into_iter().zip(children(seconds)?);
        let exact = pairs.map(|(nanos, seconds)| exact_column(&nanos, &seconds));
        return with_children(nanos, exact.collect::<Result<_, _>>()?);
    };
    let zone = if zone.is_some() { "Z" } else { "" };
    let pairs = nanos.as_primitive::<TimestampNanosecondType>().iter();
    let pairs = pairs.zip(seconds.as_primitive::<TimestampSecondType>());
    let texts = pairs.map(|(nanos, seconds)| {
        let Some((nanos, seconds)) = nanos.zip(seconds) else {
            return Ok(None);
        };
        let unknown = || ArrowError::CastError(format!("the INT96 of second {seconds} is not a timestamp"));
        let text = text(nanos, seconds).ok_or_else(unknown)?;
        Ok(Some(format!("{text}{zone}")))
    });
    Ok(Arc::new(texts.collect::<Result<StringArray, ArrowError>>()?))
}

/// Returns a timestamp as text. The nanoseconds have lost multiples of 2^64.
fn text(nanos: i64, seconds: i64) -> Option<String> {
    let nanos = nanos.wrapping_sub(seconds.wrapping_mul(NANOS_OF_SECOND));
    let nanos = (0..NANOS_OF_SECOND).contains(&nanos).then_some(nanos)?;
    let fraction = match nanos {
        0 => String::new(),
        _ if nanos % 1_000_000 == 0 => format!(".{:03}", nanos / 1_000_000),
        _ if nanos % 1000 == 0 => format!(".{:06}", nanos / 1000),
        _ => format!(".{nanos:09}"),
    };
    Some(format!("{:?}{fraction}", timestamp_s_to_datetime(seconds)?))
}
