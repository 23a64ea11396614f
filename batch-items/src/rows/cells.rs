//! Items as rows of typed cells.

use std::fmt::Write;
use std::ops::Range;

use serde::Serialize;

use super::kind::{Kind, MOST_EXACT};
use super::limit::Limit;
use super::names::Names;
use super::serialize::{FieldSink, FieldValue};
use crate::record::decimal;

/// The rows of a chunk. Its memory is used again for the next one.
#[derive(Default)]
pub struct Rows {
    names: Names,
    stored: Stored,
    count: usize,
}

/// The cells, row by row, with the memory of their texts and bytes.
#[derive(Default)]
struct Stored {
    cells: Vec<Cell>,
    /// The index of the first cell of the current row.
    row: usize,
    text: String,
    bytes: Vec<u8>,
}

impl FieldSink for Stored {
    #[inline]
    fn field(&mut self, index: usize, value: FieldValue<'_>) {
        let cell = match value {
            FieldValue::Null => Cell::Null,
            FieldValue::Bool(value) => Cell::Bool(value),
            FieldValue::Int(value) => Cell::Int(value),
            FieldValue::Float(value) => Cell::Float(value),
            FieldValue::Number(value) | FieldValue::Text(value) | FieldValue::Json(value) => {
                self.store_text(value)
            }
            FieldValue::Bytes(value) => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(value);
                Cell::Bytes(start..self.bytes.len())
            }
        };
        let at = self.row + index;
        if at < self.cells.len() {
            self.cells[at] = cell;
        } else {
            self.cells.resize(at, Cell::Null);
            self.cells.push(cell);
        }
    }
}

impl Stored {
    fn store_text(&mut self, text: &str) -> Cell {
        let start = self.text.len();
        self.text.push_str(text);
        Cell::Text(start..self.text.len())
    }
}

/// A value. A text is a range of `Rows::text`, bytes are one of `Rows::bytes`.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Range<usize>),
    Bytes(Range<usize>),
}

impl Rows {
    pub(crate) fn clear(&mut self) {
        self.stored.cells.clear();
        self.stored.text.clear();
        self.stored.bytes.clear();
        self.count = 0;
    }

    /// Returns the number of rows.
    #[expect(clippy::len_without_is_empty, reason = "a writer has rows")]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns the names of the fields; a tuple has empty ones.
    pub fn names(&self) -> &[String] {
        self.names.names()
    }

    /// Selects fields, as [`Names::select`].
    pub(crate) fn select<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        self.names.select(names);
    }

    /// Returns the fields for the checkpoint, as [`Names::shown_by_record`].
    pub(crate) fn shown_by_record(&self) -> &[String] {
        self.names.shown_by_record()
    }

    /// Takes the fields of a checkpoint, as [`Names::resume`].
    pub(crate) fn resume(&mut self, fields: Vec<String>) {
        self.names.resume(fields);
    }

    /// Takes the fields of the first item, as [`Names::learn`].
    pub(crate) fn learn<T: Serialize>(&mut self, item: &T) -> Result<(), String> {
        self.names.learn(item)
    }

    /// Appends an item. Its fields are found by name; those that it lacks are null.
    pub(crate) fn push<T: Serialize>(&mut self, item: &T) -> Result<(), String> {
        self.stored.row = self.stored.cells.len();
        let passed = self.names.fields_of(item, &mut self.stored);
        let end = self.stored.row + passed.map(|_| self.names.names().len())?;
        self.stored.cells.resize(end, Cell::Null);
        self.count += 1;
        Ok(())
    }

    pub fn cell(&self, row: usize, field: usize) -> &Cell {
        &self.stored.cells[row * self.names().len() + field]
    }

    /// Returns a cell as text, empty for null. `scratch` holds the text of a number.
    pub(crate) fn shown<'s>(&'s self, row: usize, field: usize, scratch: &'s mut String) -> &'s str {
        scratch.clear();
        match self.cell(row, field) {
            Cell::Null => {}
            Cell::Bool(value) => scratch.push_str(if *value { "true" } else { "false" }),
            Cell::Int(value) => scratch.push_str(itoa::Buffer::new().format(*value)),
            // With an exponent, if that is shorter.
            Cell::Float(value) => scratch.push_str(zmij::Buffer::new().format(*value)),
            Cell::Text(range) => return self.text(range),
            Cell::Bytes(range) => {
                // Writing to a `String` cannot fail.
                let bytes = &self.stored.bytes[range.clone()];
                let _ = bytes.iter().try_for_each(|byte| write!(scratch, "{byte:02x}"));
            }
        }
        scratch
    }

    pub fn text(&self, range: &Range<usize>) -> &str {
        &self.stored.text[range.clone()]
    }

    pub fn slice(&self, range: &Range<usize>) -> &[u8] {
        &self.stored.bytes[range.clone()]
    }

    /// Returns the type that holds all values of a field.
    pub(crate) fn kind(&self, field: usize) -> Kind {
        let mut kind = None;
        for row in 0..self.count {
            kind = match (kind, self.cell(row, field)) {
                (kind, Cell::Null) => kind,
                (None | Some(Kind::Bool), Cell::Bool(_)) => Some(Kind::Bool),
                (None | Some(Kind::Int), Cell::Int(_)) => Some(Kind::Int),
                (None | Some(Kind::Int | Kind::Float), Cell::Float(_))
                | (Some(Kind::Float), Cell::Int(_)) => Some(Kind::Float),
                (None | Some(Kind::Bytes), Cell::Bytes(_)) => Some(Kind::Bytes),
                _ => return Kind::Text,
            };
        }
        kind.unwrap_or(Kind::Text)
    }

    /// Converts all values of a field, whose column has a limit. Fails with the row and the cause.
    pub(crate) fn convert(&mut self, field: usize, kind: Kind, limit: Limit) -> Result<(), (usize, String)> {
        for row in 0..self.count {
            let index = row * self.names().len() + field;
            let converted = self.converted(&self.stored.cells[index], kind);
            match converted {
                Ok(None) => {}
                Ok(Some(Converted::Cell(cell))) => self.stored.cells[index] = cell,
                Ok(Some(Converted::Text(text))) => self.stored.cells[index] = self.stored.store_text(&text),
                Ok(Some(Converted::Bytes(converted))) => {
                    let Stored { cells, bytes, .. } = &mut self.stored;
                    let start = bytes.len();
                    bytes.extend_from_slice(&converted);
                    cells[index] = Cell::Bytes(start..bytes.len());
                }
                Err(found) => return Err((row, self.unexpected(field, kind.name(), &found))),
            }
            let beyond = match &self.stored.cells[index] {
                Cell::Text(range) if !limit.holds_text(self.text(range)) => {
                    format!("{:?}", self.text(range))
                }
                Cell::Float(value) if !limit.holds_float(*value) => value.to_string(),
                _ => continue,
            };
            return Err((row, self.unexpected(field, &limit.expected(kind), &beyond)));
        }
        Ok(())
    }

    fn unexpected(&self, field: usize, expected: &str, found: &str) -> String {
        format!(
            "field `{}`: expected {expected}, found {found}",
            self.names()[field]
        )
    }

    /// Fails with the row if a float of the field is not a number, which SQLite would store as null.
    pub(crate) fn reject_nan(&self, field: usize) -> Result<(), (usize, String)> {
        let is_nan = |row: &usize| matches!(self.cell(*row, field), Cell::Float(value) if value.is_nan());
        match (0..self.count).find(is_nan) {
            Some(row) => Err((row, self.unexpected(field, "a number", "NaN"))),
            None => Ok(()),
        }
    }

    /// Returns the cell as another type; `None` if it has the type already, and an error with the value if it cannot.
    fn converted(&self, cell: &Cell, kind: Kind) -> Result<Option<Converted>, String> {
        let cell = match (kind, cell) {
            (_, Cell::Null)
            | (Kind::Bool, Cell::Bool(_))
            | (Kind::Int, Cell::Int(_))
            | (Kind::Float, Cell::Float(_))
            | (Kind::Text, Cell::Text(_))
            | (Kind::Bytes, Cell::Bytes(_)) => return Ok(None),
            (Kind::Bool, Cell::Int(value @ (0 | 1))) => Cell::Bool(*value == 1),
            (Kind::Int, Cell::Bool(value)) => Cell::Int(i64::from(*value)),
            (Kind::Int, Cell::Float(value)) if is_integer(*value) => Cell::Int(*value as i64),
            (Kind::Float, Cell::Int(value)) if exact(*value) => Cell::Float(*value as f64),
            (Kind::Float, Cell::Int(value)) => return Err(format!("{value}{INEXACT}")),
            (Kind::Text, Cell::Bool(value)) => return Ok(Some(Converted::Text(value.to_string()))),
            (Kind::AnyNumeric, Cell::Text(range)) if is_changed(self.text(range)) => {
                return Err(format!("{:?}", self.text(range)));
            }
            (Kind::Any | Kind::AnyNumeric, _) => return Ok(None),
            (Kind::Temporal(kind, dialect), Cell::Text(range)) if kind.accepts(self.text(range), dialect) => {
                return Ok(None);
            }
            (Kind::Decimal, Cell::Text(range)) if is_decimal(self.text(range)) => return Ok(None),
            (Kind::ShortDecimal, Cell::Text(range)) if is_short(self.text(range)) => return Ok(None),
            (Kind::Decimal | Kind::ShortDecimal | Kind::Text, Cell::Int(value)) => {
                return Ok(Some(Converted::Text(value.to_string())));
            }
            (Kind::Decimal | Kind::ShortDecimal, Cell::Float(value)) if !value.is_finite() => {
                return Err(value.to_string());
            }
            (Kind::Decimal | Kind::ShortDecimal | Kind::Text, Cell::Float(value)) => {
                let text = zmij::Buffer::new().format(*value).to_owned();
                return Ok(Some(Converted::Text(text)));
            }
            (Kind::Bytes, Cell::Text(range)) => {
                let text = self.text(range);
                let bytes = bytes_of(text).ok_or_else(|| format!("{text:?}"))?;
                return Ok(Some(Converted::Bytes(bytes)));
            }
            (_, Cell::Text(range)) => {
                let text = self.text(range);
                let parsed = match kind {
                    Kind::Bool => parse_bool(text).map(Cell::Bool),
                    Kind::Int => text.parse().ok().map(Cell::Int),
                    Kind::Decimal | Kind::ShortDecimal | Kind::Temporal(..) => None,
                    _ => match decimal::float(text) {
                        Some(value) if !decimal::holds_integer(text, value) => {
                            return Err(format!("{text:?}{INEXACT}"));
                        }
                        float => float.map(Cell::Float),
                    },
                };
                parsed.ok_or_else(|| format!("{text:?}"))?
            }
            (_, Cell::Bool(value)) => return Err(value.to_string()),
            (_, Cell::Int(value)) => return Err(value.to_string()),
            (_, Cell::Float(value)) => return Err(value.to_string()),
            (_, Cell::Bytes(_)) => return Err("bytes".to_owned()),
        };
        Ok(Some(Converted::Cell(cell)))
    }
}

enum Converted {
    Cell(Cell),
    Text(String),
    Bytes(Vec<u8>),
}

/// Returns the bytes of a text: `\x` and hexadecimal digits are bytes; any other text is encoded in UTF-8. `None` if digits are wrong.
pub fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let Some(digits) = text.strip_prefix("\\x") else {
        return Some(text.as_bytes().to_vec());
    };
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some((digit(*high)? << 4) | digit(*low)?),
        _ => None,
    };
    pairs.map(byte).collect()
}

/// Returns the value of a hexadecimal digit.
fn digit(character: u8) -> Option<u8> {
    char::from(character)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

/// Returns whether SQLite stores a number of another form, such as 7 for `007`.
fn is_changed(text: &str) -> bool {
    let number = text.trim_ascii();
    let is_same = |value: i64| value.to_string() == text;
    is_decimal(number) && !number.parse().is_ok_and(is_same)
}

/// Returns whether SQLite keeps a number exactly.
fn is_short(text: &str) -> bool {
    text.parse::<i64>().is_ok() || (is_decimal(text) && decimal::is_float(text.trim_ascii()))
}

/// What is wrong with an integer in a column of floats, after its text.
const INEXACT: &str = ", which a float does not hold exactly";

/// Returns whether a float holds the integer exactly.
fn exact(value: i64) -> bool {
    value.unsigned_abs() <= MOST_EXACT
}

/// Returns whether a float is an integer that it holds exactly, such as `1.0` and `1e2` of JSON.
fn is_integer(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() <= MOST_EXACT as f64
}

fn is_decimal(text: &str) -> bool {
    decimal::is_number(text.trim_ascii())
}

pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "t" | "1" => Some(true),
        "false" | "f" | "0" => Some(false),
        _ => None,
    }
}
