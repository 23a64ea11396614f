//! The settings of a writer of tables.

use crate::choices;

choices! {
    WriteMode { "insert" => Insert, "upsert" => Upsert, "update" => Update, "delete" => Delete }
    RowsAffected { "check" => Check, "ignore" => Ignore }
}

/// The settings of a writer.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// The table, which may have a schema.
    pub table: &'a str,
    /// The columns of the key.
    pub key: &'a [String],
    /// The columns whose values are added to the values of the table.
    pub add: &'a [String],
    /// What is done with the items.
    pub mode: WriteMode,
    /// Whether as many rows as items have to change.
    pub rows_affected: RowsAffected,
}

/// What a writer does with its items: the property `mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteMode {
    /// `insert`: adds rows. The default.
    #[default]
    Insert,
    /// `upsert`: adds rows, or updates those that have the key.
    Upsert,
    /// `update`: updates the rows that have the key.
    Update,
    /// `delete`: deletes the rows that have the key.
    Delete,
}

/// Whether as many rows as items have to change: the property `rows.affected`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowsAffected {
    /// `check`: another number is an error. The default.
    #[default]
    Check,
    /// `ignore`: any number is accepted.
    Ignore,
}

impl WriteMode {
    /// Returns the mode as a verb.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Upsert => "upsert",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}
