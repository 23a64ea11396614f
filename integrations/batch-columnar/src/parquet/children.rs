//! Columns with other columns in them: lists, structs and maps.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, make_array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use arrow_select::nullif::nullif;

/// Returns the columns in a column. What a null struct or a null list of a fixed size has in them is null, too.
pub(super) fn children(column: &ArrayRef) -> Result<Vec<ArrayRef>, ArrowError> {
    let data = column.to_data();
    let children = data.child_data().iter().cloned().map(make_array);
    let length = match column.data_type() {
        DataType::Struct(_) => 1,
        DataType::FixedSizeList(_, length) => usize::try_from(*length).unwrap_or_default(),
        _ => 0,
    };
    if length == 0 || column.null_count() == 0 {
        return Ok(children.collect());
    }
    let is_hidden = |row: usize| std::iter::repeat_n(Some(column.is_null(row)), length);
    let is_hidden: BooleanArray = (0..column.len()).flat_map(is_hidden).collect();
    children.map(|child| nullif(&child, &is_hidden)).collect()
}

/// Returns a column with other columns in it, which may have other types.
pub(super) fn with_children(column: &ArrayRef, children: Vec<ArrayRef>) -> Result<ArrayRef, ArrowError> {
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
        (kind, _) => {
            return Err(ArrowError::CastError(format!(
                "the values in a {kind} cannot be read"
            )));
        }
    };
    let children = children.iter().map(|child| child.to_data()).collect();
    let data = column
        .to_data()
        .into_builder()
        .data_type(kind)
        .child_data(children);
    Ok(make_array(data.build()?))
}

pub(super) fn retyped(field: &FieldRef, kind: &DataType) -> FieldRef {
    Arc::new(Field::clone(field).with_data_type(kind.clone()))
}
