//! Converts the values of items to the types of columns. A value that a column cannot hold exactly is rejected; `serde_arrow` would round
//! or cut it.

use arrow_schema::{DataType, FieldRef, Fields};
use batch_items::record::{Record, Value, decimal};
use batch_items::rows::{FieldSink, FieldValue, bytes_of, parse_bool};
use serde::ser::{Serialize, Serializer};

use super::temporal::in_units;

/// A value that a column holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fitted {
    Null,
    Bool(bool),
    Int(i64),
    Unsigned(u64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Fitted>),
    /// The fields of a struct, in the order of its type.
    Fields(Vec<Fitted>),
    Map(Vec<(Fitted, Fitted)>),
}

impl Serialize for Fitted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Unsigned(value) => serializer.serialize_u64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) => serializer.serialize_bytes(bytes),
            Self::List(values) | Self::Fields(values) => serializer.collect_seq(values),
            Self::Map(entries) => serializer.collect_map(entries.iter().map(|(key, value)| (key, value))),
        }
    }
}

/// The values of an item for columns.
pub(super) struct Row<'c> {
    columns: &'c [FieldRef],
    values: Vec<Fitted>,
    error: Option<String>,
}

impl<'c> Row<'c> {
    /// Creates a row of nulls: a field that the item lacks is null.
    pub(super) fn new(columns: &'c [FieldRef]) -> Self {
        Self {
            columns,
            values: vec![Fitted::Null; columns.len()],
            error: None,
        }
    }

    /// Returns the values, or the first error.
    pub(super) fn values(self) -> Result<Fitted, String> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(Fitted::Fields(self.values)),
        }
    }
}

impl FieldSink for Row<'_> {
    fn field(&mut self, index: usize, value: FieldValue<'_>) {
        let column = &self.columns[index];
        let kind = column.data_type();
        match fitted(value, kind) {
            Some(value) => self.values[index] = value,
            None => {
                let (name, value, expected) = (column.name(), shown(value), expected(kind));
                let error =
                    format!("column `{name}` of type {kind}: it cannot hold {value} exactly{expected}");
                self.error.get_or_insert(error);
            }
        }
    }
}

fn shown(value: FieldValue<'_>) -> String {
    match value {
        FieldValue::Null => "null".to_owned(),
        FieldValue::Bool(value) => value.to_string(),
        FieldValue::Int(value) => value.to_string(),
        FieldValue::Float(value) => zmij::Buffer::new().format(value).to_owned(),
        FieldValue::Number(text) => text.to_owned(),
        FieldValue::Text(text) | FieldValue::Json(text) => format!("{text:?}"),
        FieldValue::Bytes(_) => "bytes".to_owned(),
    }
}

/// Returns the form of the texts of a type.
fn expected(kind: &DataType) -> &'static str {
    match kind {
        DataType::Date32 => "; expected a date such as 2026-11-26",
        DataType::Time32(_) | DataType::Time64(_) => "; expected a time such as 10:00:00",
        DataType::Timestamp(_, None) => "; expected a timestamp such as 2026-11-26T10:00:00",
        DataType::Timestamp(_, Some(_)) => {
            "; expected a timestamp with a time zone, such as 2026-11-26T10:00:00Z"
        }
        _ => "",
    }
}

/// Returns a value as one of a type; `None` if the type does not hold it exactly. Texts are converted as in columns of tables.
fn fitted(value: FieldValue<'_>, kind: &DataType) -> Option<Fitted> {
    if let FieldValue::Null = value {
        return Some(Fitted::Null);
    }
    match kind {
        DataType::Boolean => boolean(value),
        DataType::Int8 => integer(value, i8::MIN, i8::MAX),
        DataType::Int16 => integer(value, i16::MIN, i16::MAX),
        DataType::Int32 => integer(value, i32::MIN, i32::MAX),
        DataType::Int64 => integer(value, i64::MIN, i64::MAX),
        DataType::UInt8 => integer(value, u8::MIN, u8::MAX),
        DataType::UInt16 => integer(value, u16::MIN, u16::MAX),
        DataType::UInt32 => integer(value, u32::MIN, u32::MAX),
        DataType::UInt64 => integer(value, u64::MIN, u64::MAX),
        // The limits lie halfway: above the largest number, and between zero and the smallest.
        DataType::Float16 => float(value, 11, 65_520.0, 2_f64.powi(-25)),
        DataType::Float32 => {
            let too_large = 2_f64.powi(128) - 2_f64.powi(103);
            float(value, f32::MANTISSA_DIGITS, too_large, 2_f64.powi(-150))
        }
        DataType::Float64 => float(value, f64::MANTISSA_DIGITS, f64::INFINITY, 0.0),
        DataType::Decimal128(precision, scale) => decimal(value, *precision, *scale),
        DataType::Date32 | DataType::Time32(_) | DataType::Time64(_) | DataType::Timestamp(..) => match value
        {
            FieldValue::Text(text) => in_units(text, kind).map(Fitted::Int),
            // A number has no unit.
            _ => None,
        },
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => text(value),
        DataType::Dictionary(_, kind) => fitted(value, kind),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => bytes(value).map(Fitted::Bytes),
        DataType::FixedSizeBinary(length) => bytes(value)
            .filter(|bytes| i32::try_from(bytes.len()) == Ok(*length))
            .map(Fitted::Bytes),
        _ => match value {
            FieldValue::Text(json) | FieldValue::Json(json) => nested(json, kind),
            _ => None,
        },
    }
}

fn boolean(value: FieldValue<'_>) -> Option<Fitted> {
    match value {
        FieldValue::Bool(value) => Some(Fitted::Bool(value)),
        FieldValue::Int(value @ (0 | 1)) => Some(Fitted::Bool(value == 1)),
        FieldValue::Text(text) => parse_bool(text).map(Fitted::Bool),
        _ => None,
    }
}

fn integer<I: Into<i128>>(value: FieldValue<'_>, least: I, largest: I) -> Option<Fitted> {
    let value = match value {
        FieldValue::Bool(value) => i128::from(value),
        FieldValue::Int(value) => value.into(),
        // JSON has 1.0 and 1e2 as floats, which are exact up to 2^53.
        FieldValue::Float(value) if value.fract() == 0.0 && value.abs() <= 2_f64.powi(53) => value as i128,
        FieldValue::Number(text) | FieldValue::Text(text) => text.parse().ok()?,
        _ => return None,
    };
    if !(least.into()..=largest.into()).contains(&value) {
        return None;
    }
    i64::try_from(value)
        .map(Fitted::Int)
        .or_else(|_| u64::try_from(value).map(Fitted::Unsigned))
        .ok()
}

/// Returns a float of `digits` binary digits. `too_large` and above would become infinite, `too_small` and below zero. A number
/// with a fraction is rounded to fewer digits than `f64` has, as every float is; an integer is exact.
fn float(value: FieldValue<'_>, digits: u32, too_large: f64, too_small: f64) -> Option<Fitted> {
    let has_digits = |float: f64| float.to_bits().trailing_zeros() >= f64::MANTISSA_DIGITS - digits;
    let is_integer = |float: f64| float.fract() == 0.0 && float.abs() <= 2_f64.powi(53);
    let fits = |float: f64| float == 0.0 || (float.abs() > too_small && float.abs() < too_large);
    let (float, is_held) = match value {
        FieldValue::Int(value) => {
            let float = value as f64;
            (
                float,
                float as i128 == value.into() && has_digits(float) && fits(float),
            )
        }
        // Infinity stays infinity.
        FieldValue::Float(value) => (
            value,
            !value.is_finite() || (fits(value) && (!is_integer(value) || has_digits(value))),
        ),
        FieldValue::Number(text) | FieldValue::Text(text) => {
            let float: f64 = text.parse().ok()?;
            let is_rounded = digits < f64::MANTISSA_DIGITS && !is_integer(float);
            let is_exact = || decimal::is_exactly(text, float) && (!is_integer(float) || has_digits(float));
            (
                float,
                decimal::names_infinity(text) || (fits(float) && (is_rounded || is_exact())),
            )
        }
        _ => return None,
    };
    is_held.then_some(Fitted::Float(float))
}

fn decimal(value: FieldValue<'_>, precision: u8, scale: i8) -> Option<Fitted> {
    let text = match value {
        FieldValue::Int(value) => value.to_string(),
        FieldValue::Float(value) => zmij::Buffer::new().format(value).to_owned(),
        FieldValue::Number(text) | FieldValue::Text(text) => text.to_owned(),
        _ => return None,
    };
    let unscaled = decimal::unscaled(&text, precision, scale)?;
    let sign = if unscaled < 0 { "-" } else { "" };
    let unscaled = unscaled.unsigned_abs();
    let zeros = usize::from(scale.unsigned_abs());
    let text = if scale <= 0 {
        format!("{sign}{unscaled}{}", "0".repeat(zeros))
    } else {
        let digits = format!("{unscaled:0width$}", width = zeros + 1);
        let (whole, fraction) = digits.split_at(digits.len() - zeros);
        format!("{sign}{whole}.{fraction}")
    };
    Some(Fitted::Text(text))
}

fn text(value: FieldValue<'_>) -> Option<Fitted> {
    match value {
        FieldValue::Number(text) | FieldValue::Text(text) | FieldValue::Json(text) => {
            Some(Fitted::Text(text.to_owned()))
        }
        FieldValue::Bytes(_) => None,
        value => Some(Fitted::Text(shown(value))),
    }
}

fn bytes(value: FieldValue<'_>) -> Option<Vec<u8>> {
    match value {
        FieldValue::Bytes(bytes) => Some(bytes.to_vec()),
        FieldValue::Text(text) => bytes_of(text),
        // A `Vec<u8>` is a list of numbers.
        FieldValue::Json(json) => serde_json::from_str(json).ok(),
        _ => None,
    }
}

/// Returns a list or an object, which fields have as JSON.
fn nested(json: &str, kind: &DataType) -> Option<Fitted> {
    match kind {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            let values: Vec<Value> = serde_json::from_str(json).ok()?;
            let values = values
                .iter()
                .map(|value| fitted(field_value(value), field.data_type()));
            values.collect::<Option<_>>().map(Fitted::List)
        }
        DataType::Struct(fields) => structure(&serde_json::from_str(json).ok()?, fields).map(Fitted::Fields),
        DataType::Map(entry, _) => {
            let DataType::Struct(entry) = entry.data_type() else {
                return None;
            };
            let [key, value] = [entry.first()?.data_type(), entry.get(1)?.data_type()];
            let record: Record = serde_json::from_str(json).ok()?;
            let entries = record.iter().map(|(name, field)| {
                let key = fitted(FieldValue::Text(name), key)?;
                Some((key, fitted(field_value(field), value)?))
            });
            entries.collect::<Option<_>>().map(Fitted::Map)
        }
        _ => None,
    }
}

/// Returns the values of a struct. It has no other fields than its type, and a field that it lacks is null.
fn structure(record: &Record, fields: &Fields) -> Option<Vec<Fitted>> {
    let is_known = |name: &str| fields.iter().any(|field| field.name() == name);
    if !record.iter().all(|(name, _)| is_known(name)) {
        return None;
    }
    let value = |field: &FieldRef| {
        let value = record.get(field.name()).map_or(FieldValue::Null, field_value);
        fitted(value, field.data_type())
    };
    fields.iter().map(value).collect()
}

fn field_value(value: &Value) -> FieldValue<'_> {
    match value {
        Value::Null => FieldValue::Null,
        Value::Bool(value) => FieldValue::Bool(*value),
        Value::Int(value) => FieldValue::Int(*value),
        Value::Float(value) => FieldValue::Float(*value),
        Value::Decimal(digits) => FieldValue::Number(digits),
        Value::Text(text) => FieldValue::Text(text),
        Value::Json(json) => FieldValue::Json(json),
        Value::Bytes(bytes) => FieldValue::Bytes(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: &str, held: &[(&str, &str)], rejected: &[&str]) {
        let kind: DataType = kind.parse().unwrap();
        let fitted = |json: &str| {
            let value: Value = serde_json::from_str(json).unwrap();
            fitted(field_value(&value), &kind)
        };
        for (json, expected) in held {
            let found = fitted(json).map(|value| format!("{value:?}"));
            assert_eq!(found.as_deref(), Some(*expected), "{kind} {json}");
        }
        for json in rejected {
            assert_eq!(fitted(json), None, "{kind} {json}");
        }
    }

    // Spec: ITEM-VALUE-02, ITEM-VALUE-10
    #[test]
    fn numbers_are_exact() {
        check(
            "Int8",
            &[
                ("-128", "Int(-128)"),
                ("\"127\"", "Int(127)"),
                ("null", "Null"),
                ("1.0", "Int(1)"),
                ("1e2", "Int(100)"),
            ],
            &["128", "-129", "1.5", "1e3", "\"\"", "\" 1\"", "\"x\"", "[1]"],
        );
        check(
            "Int64",
            &[("-9007199254740992.0", "Int(-9007199254740992)")],
            &["9007199254740994.0", "1e300"],
        );
        check(
            "UInt64",
            &[("18446744073709551615", "Unsigned(18446744073709551615)")],
            &["18446744073709551616", "-1"],
        );
        check(
            "Float64",
            &[
                ("9007199254740992", "Float(9007199254740992.0)"),
                ("-9223372036854775808", "Float(-9.223372036854776e18)"),
                ("18446744073709551616", "Float(1.8446744073709552e19)"),
                ("0.1", "Float(0.1)"),
                ("\"0.10000000000000001\"", "Float(0.1)"),
                ("\"1e22\"", "Float(1e22)"),
                ("\"0.000\"", "Float(0.0)"),
                ("\"-inf\"", "Float(-inf)"),
                ("\"NaN\"", "Float(NaN)"),
            ],
            &[
                "9007199254740993",
                "9223372036854775807",
                "12345678901234567890123",
                "1234567890123456.78",
                "\"9007199254740993\"",
                "\"12345678901234567000\"",
                "\"1e400\"",
                "\"-1e400\"",
                "\"1e-400\"",
                "\"1,5\"",
                "\"\"",
                "true",
            ],
        );
        check(
            "Float32",
            &[
                ("16777216", "Float(16777216.0)"),
                ("16777218", "Float(16777218.0)"),
                ("0.1", "Float(0.1)"),
                ("\"0.123456789012345678\"", "Float(0.12345678901234568)"),
                ("3.4028235e38", "Float(3.4028235e38)"),
                ("1e-45", "Float(1e-45)"),
            ],
            &[
                "16777217",
                "16777217.0",
                "\"16777217\"",
                "\"16777217.0\"",
                "1e300",
                "\"1e39\"",
                "1e-50",
                "\"1e-400\"",
                "\"-1e400\"",
            ],
        );
        check(
            "Float16",
            &[("2048", "Float(2048.0)"), ("65504", "Float(65504.0)")],
            &["2049", "65520", "65536", "\"65536\"", "1e-9"],
        );
        check(
            "Decimal128(4, 2)",
            &[
                ("99.99", "Text(\"99.99\")"),
                ("-0.05", "Text(\"-0.05\")"),
                ("0", "Text(\"0.00\")"),
                ("\"1e1\"", "Text(\"10.00\")"),
            ],
            &["1.234", "100", "true", "\"\""],
        );
        check(
            "Decimal128(2, -2)",
            &[("-1200", "Text(\"-1200\")"), ("0", "Text(\"000\")")],
            &["120"],
        );
    }

    // Spec: ITEM-VALUE-10
    #[test]
    fn other_values_are_of_the_type() {
        check(
            "Boolean",
            &[
                ("true", "Bool(true)"),
                ("0", "Bool(false)"),
                ("\"t\"", "Bool(true)"),
            ],
            &["2", "1.0", "\"yes\"", "\"\""],
        );
        check(
            "Utf8",
            &[
                ("1.50", "Text(\"1.5\")"),
                ("\"\"", "Text(\"\")"),
                ("[1]", "Text(\"[1]\")"),
            ],
            &[],
        );
        check(
            "Binary",
            &[
                (r#""\\xdead""#, "Bytes([222, 173])"),
                ("\"A\"", "Bytes([65])"),
                ("[222, 173]", "Bytes([222, 173])"),
            ],
            &[r#""\\xdea""#, "5", "[256]", "{}"],
        );
        check("FixedSizeBinary(2)", &[("\"AB\"", "Bytes([65, 66])")], &["\"A\""]);
        check("Dictionary(Int32, Utf8)", &[("\"x\"", "Text(\"x\")")], &[]);
        for kind in ["Date32", "Time64(ns)", "Timestamp(ms)"] {
            check(kind, &[], &["5", "1.5", "true", "\"\"", "\"5\""]);
        }
    }

    // Spec: ITEM-VALUE-10
    #[test]
    fn values_in_lists_and_structs_are_of_the_type() {
        check(
            "List(Float64)",
            &[("[1, null, \"2.5\"]", "List([Float(1.0), Null, Float(2.5)])")],
            &["[9007199254740993]", "5", "\"[\"", "{}"],
        );
        check(
            "List(Binary)",
            &[("[[1], \"A\"]", "List([Bytes([1]), Bytes([65])])")],
            &["[[1, -1]]"],
        );
        check(
            "Struct(\"a\": Int8, \"b\": List(Date32))",
            &[
                (
                    r#"{"b":["1970-01-03"],"a":1}"#,
                    "Fields([Int(1), List([Int(2)])])",
                ),
                ("{}", "Fields([Null, Null])"),
            ],
            &[r#"{"a":300}"#, r#"{"c":1}"#],
        );
    }
}
