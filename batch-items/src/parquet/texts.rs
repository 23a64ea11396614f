//! Dates and times as texts, for records.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, downcast_temporal_array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema};

/// Returns the batch with texts for the dates and times of its columns. A record shows no type that would ask for them: it would get the
/// numbers that Arrow stores.
pub(super) fn with_texts(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    if !schema
        .fields()
        .iter()
        .any(|field| field.data_type().is_temporal())
    {
        return Ok(batch);
    }
    let (mut fields, mut columns): (Vec<FieldRef>, Vec<ArrayRef>) = Default::default();
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let Some(texts) = texts(column)? else {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
            continue;
        };
        fields.push(Arc::new(Field::clone(field).with_data_type(DataType::Utf8)));
        columns.push(texts);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// Returns the values as texts of ISO 8601; `None` if they are neither dates nor times.
fn texts(column: &ArrayRef) -> Result<Option<ArrayRef>, ArrowError> {
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
        _ => return Ok(None),
    );
    Ok(Some(Arc::new(texts)))
}
