//! Items as rows of typed cells.

use std::fmt::{Display, Write};
use std::ops::Range;

use serde::Serialize;

use super::serialize::Row;

/// The rows of a chunk. Its memory is used again for the next one.
#[derive(Default)]
pub(crate) struct Rows {
    /// The names of the fields; those of a tuple are empty.
    pub(super) names: Vec<String>,
    /// The cells, row by row.
    pub(super) cells: Vec<Cell>,
    pub(super) bytes: Vec<u8>,
    pub(super) count: usize,
    /// True while the first item is appended, which defines the names.
    pub(super) is_first: bool,
}

/// A value. Text and bytes are a range of `Rows::bytes`.
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
    Text,
    Bytes,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Bool => "a boolean",
            Self::Int => "an integer",
            Self::Float => "a number",
            Self::Text => "a text",
            Self::Bytes => "bytes",
        }
    }
}

impl Rows {
    pub(crate) fn clear(&mut self) {
        self.cells.clear();
        self.bytes.clear();
        self.count = 0;
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Appends an item.
    pub(crate) fn push<T: Serialize>(&mut self, item: &T) -> Result<(), String> {
        let start = self.cells.len();
        self.is_first = self.names.is_empty();
        item.serialize(Row::of(self)).map_err(|error| error.to_string())?;
        let fields = self.cells.len() - start;
        if !self.is_first && fields != self.names.len() {
            return Err(format!(
                "the item has {fields} fields, but the one before has {}",
                self.names.len()
            ));
        }
        self.count += 1;
        Ok(())
    }

    pub(crate) fn cell(&self, row: usize, field: usize) -> &Cell {
        &self.cells[row * self.names.len() + field]
    }

    /// Returns a cell as text, empty for null. `scratch` holds the text of a number.
    pub(crate) fn shown<'s>(&'s self, row: usize, field: usize, scratch: &'s mut String) -> &'s str {
        scratch.clear();
        // Writing to a `String` cannot fail.
        let _ = match self.cell(row, field) {
            Cell::Null => Ok(()),
            Cell::Bool(value) => write!(scratch, "{value}"),
            Cell::Int(value) => write!(scratch, "{value}"),
            // With an exponent, if that is shorter.
            Cell::Float(value) => write!(scratch, "{value:?}"),
            Cell::Text(range) => return self.text(range),
            Cell::Bytes(range) => self.bytes[range.clone()]
                .iter()
                .try_for_each(|byte| write!(scratch, "{byte:02x}")),
        };
        scratch
    }

    pub(crate) fn text(&self, range: &Range<usize>) -> &str {
        // Ranges of text are written by `write_text` only.
        std::str::from_utf8(&self.bytes[range.clone()]).unwrap_or_default()
    }

    pub(crate) fn slice(&self, range: &Range<usize>) -> &[u8] {
        &self.bytes[range.clone()]
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
            let index = row * self.names.len() + field;
            let converted = self.converted(&self.cells[index], kind);
            match converted {
                Ok(None) => {}
                Ok(Some(Converted::Cell(cell))) => self.cells[index] = cell,
                Ok(Some(Converted::Text(text))) => self.cells[index] = self.write_text(&text),
                Err(found) => {
                    return Err((
                        row,
                        format!(
                            "field `{}`: expected {}, found {found}",
                            self.names[field],
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
            (Kind::Text, Cell::Int(value)) => return Ok(Some(Converted::Text(value.to_string()))),
            (Kind::Text, Cell::Float(value)) => return Ok(Some(Converted::Text(format!("{value:?}")))),
            (Kind::Bytes, Cell::Text(range)) => Cell::Bytes(range.clone()),
            (_, Cell::Text(range)) => {
                let text = self.text(range);
                let parsed = match kind {
                    Kind::Bool => parse_bool(text).map(Cell::Bool),
                    Kind::Int => text.parse().ok().map(Cell::Int),
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

    fn write_text(&mut self, value: impl Display) -> Cell {
        let start = self.bytes.len();
        // Writing to a `Vec` cannot fail.
        let _ = write!(Text(&mut self.bytes), "{value}");
        Cell::Text(start..self.bytes.len())
    }
}

enum Converted {
    Cell(Cell),
    Text(String),
}

/// Returns whether a float holds the integer exactly.
fn exact(value: i64) -> bool {
    value.unsigned_abs() <= 1 << 53
}

fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "t" | "1" => Some(true),
        "false" | "f" | "0" => Some(false),
        _ => None,
    }
}

pub(super) struct Text<'b>(pub(super) &'b mut Vec<u8>);

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
