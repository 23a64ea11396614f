//! The parameters of statements.

use std::num::NonZeroUsize;

use batch_items::query::Key;
use batch_items::record::Value;
use odbc_api::parameter::{InputParameter, VarWCharBox, WithDataType};
use odbc_api::{Bit, DataType, IntoParameter};

use crate::dialect::{Dialect, Texts};

/// A parameter of a statement.
pub(crate) type Parameter<'v> = Box<dyn InputParameter + 'v>;

/// The longest text that is a VARCHAR for Oracle, in characters.
const MOST_OF_VARCHAR: usize = 2_000;

/// Returns a text as a parameter of a type; of a text, without one.
pub(crate) fn text<'v>(text: &'v str, data_type: Option<DataType>, dialect: &Dialect) -> Parameter<'v> {
    if dialect.texts == Texts::Narrow {
        return Box::new(text.into_parameter());
    }
    let length = NonZeroUsize::new(text.encode_utf16().count());
    let is_long = length.is_some_and(|length| length.get() > MOST_OF_VARCHAR);
    let of_text = match is_long {
        true => DataType::WLongVarchar { length },
        false => DataType::WVarchar { length },
    };
    let data_type = data_type.unwrap_or(of_text);
    Box::new(wide(text, data_type))
}

fn wide(text: &str, data_type: DataType) -> WithDataType<VarWCharBox> {
    WithDataType::new(VarWCharBox::from_str_slice(text), data_type)
}

/// Returns an integer as a parameter.
pub(crate) fn integer(value: i64, dialect: &Dialect) -> Parameter<'static> {
    // The driver of Oracle knows no integer of 64 bits.
    let digits = DataType::Decimal {
        precision: 19,
        scale: 0,
    };
    match dialect.is_typed {
        true => Box::new(wide(&value.to_string(), digits)),
        false => Box::new(value.into_parameter()),
    }
}

/// Returns the value of a query's parameter.
pub(crate) fn of_value<'v>(value: &'v Value, dialect: &Dialect) -> Parameter<'v> {
    match value {
        Value::Null => null_text(),
        Value::Bool(value) => Box::new(Bit::from_bool(*value).into_parameter()),
        Value::Int(value) => integer(*value, dialect),
        Value::Float(value) => Box::new(value.into_parameter()),
        Value::Decimal(value) | Value::Text(value) | Value::Json(value) => text(value, None, dialect),
        Value::Bytes(bytes) => Box::new(bytes.as_slice().into_parameter()),
    }
}

/// Returns a value of a key, whose column has this type.
pub(crate) fn of_key<'v>(key: &'v Key, data_type: DataType, dialect: &Dialect) -> Parameter<'v> {
    match key {
        Key::Null => null_text(),
        Key::Int(value) if data_type == DataType::Bit => {
            Box::new(Bit::from_bool(*value != 0).into_parameter())
        }
        Key::Int(value) => integer(*value, dialect),
        Key::Float(value) => Box::new(value.into_parameter()),
        Key::Text(value) | Key::Decimal(value) => text(value, typed(data_type, dialect), dialect),
        Key::Bytes(bytes) => Box::new(bytes.as_slice().into_parameter()),
    }
}

/// Returns null as a text, which most databases convert.
pub(crate) fn null_text() -> Parameter<'static> {
    Box::new(None::<String>.into_parameter())
}

/// Returns the type of a text that is passed with it, if the database should not convert it by itself.
pub(crate) fn typed(data_type: DataType, dialect: &Dialect) -> Option<DataType> {
    let is_converted = matches!(
        data_type,
        DataType::Numeric { .. }
            | DataType::Decimal { .. }
            | DataType::Date
            | DataType::Time { .. }
            | DataType::Timestamp { .. }
    );
    (dialect.is_typed && is_converted).then_some(data_type)
}
