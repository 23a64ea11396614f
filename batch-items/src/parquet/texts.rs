//! Dates, times and durations as texts, for records.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, downcast_temporal_array, make_array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, TimeUnit};

/// Returns the batch with texts for the dates, times and durations of its columns, also in lists and structs. A record shows no type that
/// would ask for them: it would get the numbers that Arrow stores.
pub(super) fn with_texts(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let (mut fields, mut columns): (Vec<FieldRef>, Vec<ArrayRef>) = Default::default();
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let column = texts(column)?.unwrap_or_else(|| Arc::clone(column));
        fields.push(retyped(field, column.data_type()));
        columns.push(column);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn retyped(field: &FieldRef, kind: &DataType) -> FieldRef {
    Arc::new(Field::clone(field).with_data_type(kind.clone()))
}

/// Returns the values as texts of ISO 8601; `None` if they are neither dates, times nor durations, and contain none.
fn texts(column: &ArrayRef) -> Result<Option<ArrayRef>, ArrowError> {
    let kind = column.data_type().clone();
    if let DataType::Duration(unit) = kind {
        return Ok(Some(durations(column, unit)));
    }
    if !kind.is_temporal() {
        return texts_inside(column);
    }
    let column: &dyn Array = column;
    let texts: StringArray = downcast_temporal_array!(
        column => {
            let text = |index: usize| {
                if column.is_null(index) {
                    return Ok(None);
                }
                let text = match &kind {
                    DataType::Date32 | DataType::Date64 => column.value_as_date(index).map(|date| format!("{date:?}")),
                    DataType::Time32(_) | DataType::Time64(_) => column.value_as_time(index).map(|time| format!("{time:?}")),
                    // All zones are UTC.
                    DataType::Timestamp(_, Some(_)) => column.value_as_datetime(index).map(|time| format!("{time:?}Z")),
                    _ => column.value_as_datetime(index).map(|time| format!("{time:?}")),
                };
                let unknown = || ArrowError::CastError(format!("{:?} is not a value of {kind}", column.value(index)));
                text.map(Some).ok_or_else(unknown)
            };
            (0..column.len()).map(text).collect::<Result<_, ArrowError>>()?
        }
        _ => return Ok(None),
    );
    Ok(Some(Arc::new(texts)))
}

/// Returns a list or a struct with texts.
fn texts_inside(column: &ArrayRef) -> Result<Option<ArrayRef>, ArrowError> {
    let data = column.to_data();
    let children: Vec<ArrayRef> = data.child_data().iter().cloned().map(make_array).collect();
    let converted: Vec<Option<ArrayRef>> = children.iter().map(texts).collect::<Result<_, _>>()?;
    if converted.iter().all(Option::is_none) {
        return Ok(None);
    }
    let converted = converted.into_iter().zip(children);
    let children: Vec<ArrayRef> = converted.map(|(texts, child)| texts.unwrap_or(child)).collect();
    let kinds = || children.iter().map(|child| child.data_type());
    let kind = match (column.data_type(), kinds().next()) {
        (DataType::List(field), Some(kind)) => DataType::List(retyped(field, kind)),
        (DataType::LargeList(field), Some(kind)) => DataType::LargeList(retyped(field, kind)),
        (DataType::FixedSizeList(field, length), Some(kind)) => {
            DataType::FixedSizeList(retyped(field, kind), *length)
        }
        (DataType::Map(field, is_sorted), Some(kind)) => DataType::Map(retyped(field, kind), *is_sorted),
        (DataType::Struct(fields), _) => {
            let fields = fields.iter().zip(kinds());
            DataType::Struct(fields.map(|(field, kind)| retyped(field, kind)).collect())
        }
        (DataType::Dictionary(key, _), Some(kind)) => {
            DataType::Dictionary(key.clone(), Box::new(kind.clone()))
        }
        (kind, _) => {
            return Err(ArrowError::CastError(format!(
                "dates or times in a {kind} cannot be read"
            )));
        }
    };
    let children = children.iter().map(|child| child.to_data()).collect();
    let data = data.into_builder().data_type(kind).child_data(children).build()?;
    Ok(Some(make_array(data)))
}

fn durations(column: &ArrayRef, unit: TimeUnit) -> ArrayRef {
    let (counts, digits): (Vec<Option<i64>>, usize) = match unit {
        TimeUnit::Second => (column.as_primitive::<DurationSecondType>().iter().collect(), 0),
        TimeUnit::Millisecond => (
            column.as_primitive::<DurationMillisecondType>().iter().collect(),
            3,
        ),
        TimeUnit::Microsecond => (
            column.as_primitive::<DurationMicrosecondType>().iter().collect(),
            6,
        ),
        TimeUnit::Nanosecond => (
            column.as_primitive::<DurationNanosecondType>().iter().collect(),
            9,
        ),
    };
    let texts = counts
        .iter()
        .map(|count| count.map(|count| duration(count, digits)));
    Arc::new(texts.collect::<StringArray>())
}

/// Returns a duration such as `PT5.5S`; the last `digits` digits of the number are after the point.
fn duration(count: i64, digits: usize) -> String {
    let sign = if count < 0 { "-" } else { "" };
    let number = format!("{:0width$}", count.unsigned_abs(), width = digits + 1);
    let (seconds, fraction) = number.split_at(number.len() - digits);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}PT{seconds}{point}{fraction}S")
}

#[cfg(test)]
mod tests {
    use super::duration;

    /// Spec: ITEM-VALUE-11
    #[test]
    fn durations_are_iso_8601() {
        for (count, digits, expected) in [
            (0, 0, "PT0S"),
            (-90, 0, "-PT90S"),
            (5500, 3, "PT5.5S"),
            (-1, 6, "-PT0.000001S"),
            (3_000_000_000, 9, "PT3S"),
            (i64::MIN, 9, "-PT9223372036.854775808S"),
        ] {
            assert_eq!(duration(count, digits), expected);
        }
    }
}
