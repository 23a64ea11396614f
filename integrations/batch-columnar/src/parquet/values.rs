//! The values of columns as items take them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date64Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, downcast_temporal_array, make_array};
use arrow_schema::{ArrowError, DataType, FieldRef, Schema, TimeUnit};
use arrow_select::take::take;

use super::children::{children, retyped, with_children};
use super::error::message;

const UTC: &str = "UTC";
const MILLIS_OF_DAY: i64 = 86_400_000;

/// Returns the batch with values that serde has, also in lists and structs: timestamps with a zone in UTC, and the values of dictionaries
/// other than texts. With `has_texts`, dates, times and durations are texts. A record shows no type that would ask for them: it would get
/// the numbers that Arrow stores.
pub(super) fn plain(batch: &RecordBatch, has_texts: bool) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut columns): (Vec<FieldRef>, Vec<ArrayRef>) = Default::default();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let other = converted(column, has_texts).map_err(|error| {
            let (name, cause) = (field.name(), message(&error));
            ArrowError::CastError(format!("column `{name}`: {cause}"))
        })?;
        let column = other.unwrap_or_else(|| Arc::clone(column));
        fields.push(retyped(field, column.data_type()));
        columns.push(column);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// Returns other values for a column; `None` if its values stay.
fn converted(column: &ArrayRef, has_texts: bool) -> Result<Option<ArrayRef>, ArrowError> {
    match column.data_type() {
        DataType::Dictionary(_, value) if !matches!(**value, DataType::Utf8 | DataType::LargeUtf8) => {
            let dictionary = column.as_any_dictionary();
            let values = take(dictionary.values(), dictionary.keys(), None)?;
            Ok(Some(converted(&values, has_texts)?.unwrap_or(values)))
        }
        DataType::Date64 => {
            let mut days = column.as_primitive::<Date64Type>().iter().flatten();
            if let Some(millis) = days.find(|millis| millis % MILLIS_OF_DAY != 0) {
                let cause = format!("{millis} ms is not a date, but has a time");
                return Err(ArrowError::CastError(cause));
            }
            has_texts.then(|| texts(column)).transpose()
        }
        // An instant: only its type changes.
        DataType::Timestamp(unit, Some(zone)) if **zone != *UTC => {
            let data = column.to_data().into_builder();
            let instants = data.data_type(DataType::Timestamp(*unit, Some(UTC.into())));
            let instants = make_array(instants.build()?);
            Ok(converted(&instants, has_texts)?.or(Some(instants)))
        }
        DataType::Duration(unit) if has_texts => Ok(Some(durations(column, *unit))),
        kind if kind.is_temporal() => has_texts.then(|| texts(column)).transpose(),
        _ => {
            let children = children(column)?;
            let converted = children.iter().map(|child| converted(child, has_texts));
            let converted: Vec<_> = converted.collect::<Result<_, _>>()?;
            if converted.iter().all(Option::is_none) {
                return Ok(None);
            }
            let children = converted.into_iter().zip(children);
            let children = children.map(|(other, child)| other.unwrap_or(child)).collect();
            with_children(column, children).map(Some)
        }
    }
}

/// Returns dates, times or timestamps as texts of ISO 8601.
fn texts(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let kind = column.data_type().clone();
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
        _ => return Err(ArrowError::CastError(format!("{kind} is not a date or time"))),
    );
    Ok(Arc::new(texts))
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

    // Spec: ITEM-VALUE-11
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
