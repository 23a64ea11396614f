//! Items as rows of typed cells.

use std::fmt::Write;
use std::ops::Range;

use serde::Serialize;

use super::serialize::{FieldSink, FieldValue, Names};

/// The rows of a chunk. Its memory is used again for the next one.
#[derive(Default)]
pub(crate) struct Rows {
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
            FieldValue::Number(value) | FieldValue::Text(value) => self.store_text(value),
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
pub(crate) enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Range<usize>),
    Bytes(Range<usize>),
}

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int,
    Float,
    /// Texts of numbers, with more digits than a float has.
    #[cfg_attr(
        not(any(feature = "sqlite", feature = "mysql")),
        expect(dead_code, reason = "PostgreSQL checks the texts itself")
    )]
    Decimal,
    Text,
    Bytes,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Bool => "a boolean",
            Self::Int => "an integer",
            Self::Float => "a number",
            Self::Decimal => "a decimal number",
            Self::Text => "a text",
            Self::Bytes => "bytes",
        }
    }
}

impl Rows {
    pub(crate) fn clear(&mut self) {
        self.stored.cells.clear();
        self.stored.text.clear();
        self.stored.bytes.clear();
        self.count = 0;
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Returns the names of the fields; those of a tuple are empty.
    pub(crate) fn names(&self) -> &[String] {
        self.names.names()
    }

    /// Selects fields, as [`Names::select`].
    pub(crate) fn select<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        self.names.select(names);
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

    pub(crate) fn cell(&self, row: usize, field: usize) -> &Cell {
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

    pub(crate) fn text(&self, range: &Range<usize>) -> &str {
        &self.stored.text[range.clone()]
    }

    pub(crate) fn slice(&self, range: &Range<usize>) -> &[u8] {
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

    /// Converts all values of a field. Fails with the row and the cause.
    pub(crate) fn convert(&mut self, field: usize, kind: Kind) -> Result<(), (usize, String)> {
        for row in 0..self.count {
            let index = row * self.names().len() + field;
            let converted = self.converted(&self.stored.cells[index], kind);
            match converted {
                Ok(None) => {}
                Ok(Some(Converted::Cell(cell))) => self.stored.cells[index] = cell,
                Ok(Some(Converted::Text(text))) => self.stored.cells[index] = self.stored.store_text(&text),
                Ok(Some(Converted::Bytes(range))) => {
                    let Stored {
                        cells, text, bytes, ..
                    } = &mut self.stored;
                    let start = bytes.len();
                    bytes.extend_from_slice(text[range].as_bytes());
                    cells[index] = Cell::Bytes(start..bytes.len());
                }
                Err(found) => {
                    return Err((
                        row,
                        format!(
                            "field `{}`: expected {}, found {found}",
                            self.names()[field],
                            kind.name()
                        ),
                    ));
                }
            }
        }
        Ok(())
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
            (Kind::Float, Cell::Int(value)) if exact(*value) => Cell::Float(*value as f64),
            (Kind::Text, Cell::Bool(value)) => return Ok(Some(Converted::Text(value.to_string()))),
            (Kind::Decimal, Cell::Text(range)) if is_decimal(self.text(range)) => return Ok(None),
            (Kind::Decimal | Kind::Text, Cell::Int(value)) => {
                return Ok(Some(Converted::Text(value.to_string())));
            }
            (Kind::Decimal, Cell::Float(value)) if !value.is_finite() => return Err(value.to_string()),
            (Kind::Decimal | Kind::Text, Cell::Float(value)) => {
                return Ok(Some(Converted::Text(
                    zmij::Buffer::new().format(*value).to_owned(),
                )));
            }
            (Kind::Bytes, Cell::Text(range)) => return Ok(Some(Converted::Bytes(range.clone()))),
            (_, Cell::Text(range)) => {
                let text = self.text(range);
                let parsed = match kind {
                    Kind::Bool => parse_bool(text).map(Cell::Bool),
                    Kind::Int => text.parse().ok().map(Cell::Int),
                    Kind::Decimal => None,
                    _ => text.parse().ok().map(Cell::Float),
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
    /// The bytes of a text.
    Bytes(Range<usize>),
}

/// Returns whether a float holds the integer exactly.
fn exact(value: i64) -> bool {
    value.unsigned_abs() <= 1 << 53
}

/// Returns whether a text is a decimal number. `NaN` and `inf`, which parse as floats, are not.
fn is_decimal(text: &str) -> bool {
    let text = text.trim();
    let is_digits = |byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    text.bytes().all(is_digits) && text.parse::<f64>().is_ok()
}

fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "t" | "1" => Some(true),
        "false" | "f" | "0" => Some(false),
        _ => None,
    }
}
