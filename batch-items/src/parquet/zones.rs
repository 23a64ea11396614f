//! Timestamps with time zones.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema};

const UTC: &str = "UTC";

/// Returns the batch with all timestamps in UTC. A timestamp with a zone is an instant, so only its type changes.
pub(super) fn in_utc(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let Some(fields) = fields_in_utc(schema.fields()) else {
        return Ok(batch);
    };
    let columns = batch.columns().iter().zip(&fields);
    let columns: Result<Vec<ArrayRef>, _> = columns
        .map(|(column, field)| retyped(column, field.data_type()))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns?)
}

/// Returns the array as one of a type that differs in zones only.
fn retyped(array: &ArrayRef, kind: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == kind {
        return Ok(Arc::clone(array));
    }
    let data = array.to_data();
    let children = data.child_data().iter().zip(children_of(kind));
    let children: Result<Vec<_>, ArrowError> = children
        .map(|(child, kind)| Ok(retyped(&make_array(child.clone()), &kind)?.to_data()))
        .collect();
    let data = data
        .into_builder()
        .data_type(kind.clone())
        .child_data(children?)
        .build()?;
    Ok(make_array(data))
}

fn children_of(kind: &DataType) -> Vec<DataType> {
    match kind {
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type().clone()).collect(),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => vec![field.data_type().clone()],
        DataType::Dictionary(_, value) => vec![(**value).clone()],
        _ => Vec::new(),
    }
}

/// Returns the type without other zones than UTC; `None` if it has none.
fn type_in_utc(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::Timestamp(unit, Some(zone)) if **zone != *UTC => {
            Some(DataType::Timestamp(*unit, Some(UTC.into())))
        }
        DataType::Struct(fields) => Some(DataType::Struct(fields_in_utc(fields)?)),
        DataType::List(field) => Some(DataType::List(field_in_utc(field)?)),
        DataType::LargeList(field) => Some(DataType::LargeList(field_in_utc(field)?)),
        DataType::FixedSizeList(field, length) => {
            Some(DataType::FixedSizeList(field_in_utc(field)?, *length))
        }
        DataType::Map(field, is_sorted) => Some(DataType::Map(field_in_utc(field)?, *is_sorted)),
        DataType::Dictionary(key, value) => {
            Some(DataType::Dictionary(key.clone(), Box::new(type_in_utc(value)?)))
        }
        _ => None,
    }
}

fn field_in_utc(field: &FieldRef) -> Option<FieldRef> {
    let kind = type_in_utc(field.data_type())?;
    Some(Arc::new(Field::clone(field).with_data_type(kind)))
}

fn fields_in_utc(fields: &Fields) -> Option<Fields> {
    if !fields
        .iter()
        .any(|field| type_in_utc(field.data_type()).is_some())
    {
        return None;
    }
    let fields = fields
        .iter()
        .map(|field| field_in_utc(field).unwrap_or_else(|| Arc::clone(field)));
    Some(fields.collect())
}
