//! The columns of results, and their values.
// Spec: ODBC-03

use batch_items::record::Value;
use odbc_api::buffers::{AnyColumnBufferSlice, BufferDesc};
use odbc_api::{Bit, ColumnDescription, CursorRow, DataType, Nullable, ResultSetMetadata};

use crate::connection::{text_of, utf8, utf16};
use crate::dialect::{Declared, Dialect, Lossy, Texts};
use crate::error::OdbcError;

/// A column of a result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    kind: Kind,
}

/// The type of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    Int,
    Float,
    /// A float, as a text; other numbers among them keep their digits.
    FloatAsText,
    /// A boolean, as a text of one byte.
    BoolAsText,
    /// Digits, as a text.
    Decimal,
    Text,
    Bytes,
}

/// The longest value that has a place in a block, in characters or bytes. Longer ones are fetched row by row.
const MOST_IN_BLOCK: usize = 4_000;

impl Column {
    pub(crate) fn new(name: impl Into<String>, data_type: DataType, dialect: &Dialect) -> Self {
        let kind = match (kind_of(data_type), dialect.declared) {
            // Its driver calls money a float, too.
            (Kind::Float, Some(Declared::Postgres)) => Kind::FloatAsText,
            // It returns a byte.
            (Kind::Bool, Some(Declared::Mysql)) => Kind::BoolAsText,
            (kind, _) => kind,
        };
        Self {
            name: name.into(),
            kind,
            data_type,
        }
    }

    /// Returns the type that the driver would change, if it does.
    pub(crate) fn lossy(&self, dialect: &Dialect) -> Option<&'static str> {
        let lossy = match self.data_type {
            DataType::Date | DataType::Timestamp { .. } => Lossy::Temporal,
            DataType::Other { .. } => Lossy::Other,
            _ => return None,
        };
        let found = dialect.lossy.iter().find(|(found, _)| *found == lossy);
        found.map(|(_, cast)| *cast)
    }

    /// Returns the place of its values in a block; `None` if they may be too long.
    pub(crate) fn in_block(&self, texts: Texts) -> Option<BufferDesc> {
        let longest = match self.kind {
            Kind::Bool => return Some(BufferDesc::Bit { nullable: true }),
            Kind::Float => return Some(BufferDesc::F64 { nullable: true }),
            Kind::Int | Kind::FloatAsText | Kind::BoolAsText => 32,
            Kind::Bytes => self.data_type.column_size()?.get(),
            // With sign and point.
            Kind::Decimal => self.data_type.column_size()?.get() + 8,
            Kind::Text => match texts {
                Texts::Narrow => self
                    .data_type
                    .utf8_len()
                    .or_else(|| self.data_type.display_size())?
                    .get(),
                Texts::Wide => self
                    .data_type
                    .utf16_len()
                    .or_else(|| self.data_type.display_size())?
                    .get(),
            },
        };
        let max_str_len = Some(longest).filter(|longest| *longest <= MOST_IN_BLOCK)?;
        Some(match (self.kind, texts) {
            (Kind::Bytes, _) => BufferDesc::Binary {
                max_bytes: max_str_len,
            },
            (_, Texts::Narrow) => BufferDesc::Text { max_str_len },
            (_, Texts::Wide) => BufferDesc::WText { max_str_len },
        })
    }
}

/// Returns the columns of a result.
pub(crate) fn columns_of(
    result: &mut impl ResultSetMetadata,
    dialect: &Dialect,
) -> Result<Vec<Column>, OdbcError> {
    let count = u16::try_from(result.num_result_cols()?).unwrap_or_default();
    let mut columns: Vec<Column> = Vec::new();
    for number in 1..=count {
        let (name, data_type) = described(result, number)?;
        if columns.iter().any(|column| column.name == name) {
            return Err(OdbcError::new(format!(
                "the query has two columns `{name}`; name one of them by AS"
            )));
        }
        columns.push(Column::new(name, data_type, dialect));
    }
    Ok(columns)
}

/// Returns the name and the type of a column. The driver of SQLite has other types as its attributes.
pub(crate) fn described(
    result: &mut impl ResultSetMetadata,
    number: u16,
) -> Result<(String, DataType), OdbcError> {
    let mut column = ColumnDescription::default();
    result.describe_col(number, &mut column)?;
    let name = column.name_to_string();
    let name = name.map_err(|_| OdbcError::new("the name of a column is not UTF-8"))?;
    Ok((name, column.data_type))
}

fn kind_of(data_type: DataType) -> Kind {
    match data_type {
        DataType::Bit => Kind::Bool,
        DataType::TinyInt | DataType::SmallInt | DataType::Integer | DataType::BigInt => Kind::Int,
        DataType::Real | DataType::Double | DataType::Float { .. } => Kind::Float,
        DataType::Numeric { .. } | DataType::Decimal { .. } => Kind::Decimal,
        DataType::Binary { .. } | DataType::Varbinary { .. } | DataType::LongVarbinary { .. } => Kind::Bytes,
        _ => Kind::Text,
    }
}

impl Kind {
    /// Returns a text as a value.
    fn of_text(self, text: String) -> Value {
        match self {
            // One may be larger than `i64`.
            Self::Int => match text.trim().parse() {
                Ok(number) => Value::Int(number),
                Err(_) if is_digits(text.trim()) => Value::Decimal(text),
                Err(_) => Value::Text(text),
            },
            Self::FloatAsText => float_or_digits(text),
            Self::BoolAsText => match text.as_str() {
                "\0" | "0" => Value::Bool(false),
                "\u{1}" | "1" => Value::Bool(true),
                _ => Value::Text(text),
            },
            Self::Decimal => Value::Decimal(with_zero(text.trim())),
            _ => Value::Text(text),
        }
    }
}

/// Returns a float whose shortest text this is; another number keeps its digits.
fn float_or_digits(text: String) -> Value {
    let digits = |text: &str| {
        let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        digits.trim_matches('0').to_owned()
    };
    match text.parse::<f64>() {
        Ok(value) if !value.is_finite() || digits(&format!("{value:e}")) == digits(&text) => {
            Value::Float(value)
        }
        Ok(_) => Value::Decimal(text),
        Err(_) => Value::Text(text),
    }
}

fn is_digits(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
}

/// Returns a number with the zero before the point that Oracle and DB2 leave out.
fn with_zero(number: &str) -> String {
    match number.strip_prefix('-') {
        Some(rest) if rest.starts_with('.') => format!("-0{rest}"),
        None if number.starts_with('.') => format!("0{number}"),
        _ => number.to_owned(),
    }
}

impl Column {
    /// Appends the values of a block to its rows. Returns whether none of them is cut, which not every driver reports.
    pub(crate) fn append(
        &self,
        values: AnyColumnBufferSlice<'_>,
        rows: &mut [Vec<Value>],
    ) -> Result<bool, OdbcError> {
        let missing = || OdbcError::new("the block of the driver has another type");
        match self.kind {
            Kind::Bool => {
                let values = values.as_nullable_slice::<Bit>().ok_or_else(missing)?;
                push(rows, values, |value| Ok(Value::Bool(value.as_bool())))?;
            }
            Kind::Float => {
                let values = values.as_nullable_slice::<f64>().ok_or_else(missing)?;
                push(rows, values, |value| Ok(Value::Float(*value)))?;
            }
            Kind::Bytes => {
                let values = values.as_binary().ok_or_else(missing)?;
                if values.has_truncated_values().is_some() {
                    return Ok(false);
                }
                push(rows, values.iter(), |bytes| Ok(Value::Bytes(bytes.to_vec())))?;
            }
            Kind::Int | Kind::FloatAsText | Kind::BoolAsText | Kind::Decimal | Kind::Text => {
                let (narrow, wide) = (values.as_text(), values.as_wide_text());
                let cut = narrow.and_then(|values| values.has_truncated_values());
                if cut.or_else(|| wide?.has_truncated_values()).is_some() {
                    return Ok(false);
                }
                match (narrow, wide) {
                    (Some(values), _) => {
                        push(rows, values.iter(), |text| {
                            Ok(self.kind.of_text(utf8(text.to_vec())?))
                        })?;
                    }
                    (None, Some(values)) => {
                        push(rows, values.iter(), |text| {
                            Ok(self.kind.of_text(utf16(text.as_slice())?))
                        })?;
                    }
                    (None, None) => return Err(missing()),
                }
            }
        }
        Ok(true)
    }

    /// Returns the value of a row, of any length.
    pub(crate) fn value_in(
        &self,
        row: &mut CursorRow<'_>,
        number: u16,
        texts: Texts,
    ) -> Result<Value, OdbcError> {
        match self.kind {
            Kind::Bool => {
                let mut value = Nullable::<Bit>::null();
                row.get_data(number, &mut value)?;
                Ok(value
                    .into_opt()
                    .map_or(Value::Null, |value| Value::Bool(value.as_bool())))
            }
            Kind::Float => {
                let mut value = Nullable::<f64>::null();
                row.get_data(number, &mut value)?;
                Ok(value.into_opt().map_or(Value::Null, Value::Float))
            }
            Kind::Bytes => {
                let mut bytes = Vec::new();
                let is_there = row.get_binary(number, &mut bytes)?;
                Ok(if is_there {
                    Value::Bytes(bytes)
                } else {
                    Value::Null
                })
            }
            Kind::Int | Kind::FloatAsText | Kind::BoolAsText | Kind::Decimal | Kind::Text => {
                let text = text_of(row, number, texts)?;
                Ok(text.map_or(Value::Null, |text| self.kind.of_text(text)))
            }
        }
    }
}

/// Appends values to rows.
fn push<V>(
    rows: &mut [Vec<Value>],
    values: impl Iterator<Item = Option<V>>,
    value_of: impl Fn(V) -> Result<Value, OdbcError>,
) -> Result<(), OdbcError> {
    for (row, value) in rows.iter_mut().zip(values) {
        row.push(value.map_or(Ok(Value::Null), &value_of)?);
    }
    Ok(())
}
