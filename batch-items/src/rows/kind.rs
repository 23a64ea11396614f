//! The type of the values of a column.

use super::temporal::{Dialect, Temporal};

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int,
    Float,
    /// Texts of numbers, with more digits than a float has.
    Decimal,
    /// The same, but not with more digits than a float has: SQLite would round them.
    ShortDecimal,
    /// The values as they are, with their types.
    Any,
    /// The same, in a column where SQLite stores a number for each text that looks like one.
    AnyNumeric,
    /// Texts of dates and times.
    Temporal(Temporal, Dialect),
    Text,
    Bytes,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bool => "a boolean",
            Self::Int => "an integer",
            Self::Float => "a number",
            Self::Decimal => "a decimal number",
            Self::ShortDecimal => "a decimal number of at most 15 digits, or a column of texts",
            Self::Any => "a value",
            Self::AnyNumeric => "a value that SQLite does not change, or a column of the type TEXT",
            Self::Temporal(kind, _) => kind.name(),
            Self::Text => "a text",
            Self::Bytes => "bytes, such as `\\x0AFF`,",
        }
    }
}

/// Floats hold each integer up to this one.
pub(super) const MOST_EXACT: u64 = 1 << 53;
