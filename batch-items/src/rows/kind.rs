//! The type of the values of a column.

use super::temporal::{Dialect, Temporal};

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int,
    Float,
    /// Texts of numbers, with more digits than a float has.
    #[cfg_attr(
        not(any(feature = "mysql", feature = "postgres")),
        expect(dead_code, reason = "only servers have them")
    )]
    Decimal,
    /// The same, but not with more digits than a float has: SQLite would round them.
    #[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "only SQLite has them"))]
    ShortDecimal,
    /// The values as they are, with their types.
    #[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "only SQLite has them"))]
    Any,
    /// The same, in a column where SQLite stores a number for each text that looks like one.
    #[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "only SQLite has them"))]
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
