//! What is written to which columns: the rules that all databases share.

use super::catalogue::{Table, is_same};
use super::settings::{RowsAffected, Settings, WriteMode};
use crate::rows::{Cell, Kind, Limit, Rows};

/// How many rows were changed for how many items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The number of rows that the database counts.
    pub rows: usize,
    /// The number of items that were written.
    pub items: usize,
}

impl Changed {
    /// Writes rows one by one. The first one that is not exactly one row of the table is the result.
    pub fn one_by_one<E>(items: usize, mut write: impl FnMut(usize) -> Result<usize, E>) -> Result<Self, E> {
        for row in 0..items {
            let rows = write(row)?;
            if rows != 1 {
                return Ok(Self { rows, items: 1 });
            }
        }
        Ok(Self { rows: items, items })
    }
}

/// A column that is written.
pub struct Column {
    /// The name.
    pub name: String,
    /// The type, in SQL.
    pub sql_type: String,
    /// The type of its values; `None` for any.
    pub kind: Option<Kind>,
    limit: Limit,
    /// The field of the item.
    pub field: usize,
    /// Whether it is part of the key.
    pub is_key: bool,
    /// Whether its value is added to the value of the row that exists.
    pub is_added: bool,
}

/// The columns that are written, in the order of the item's fields.
pub struct Plan {
    /// The table, which may have a schema.
    pub table: String,
    /// What is done with the items.
    pub mode: WriteMode,
    /// Whether as many rows as items have to change.
    pub rows_affected: RowsAffected,
    /// The columns.
    pub columns: Vec<Column>,
    /// Whether each row is written by one statement, whose count is checked: several rows of the table may have its key, so
    /// a sum of counts does not say that each item has a row.
    pub is_counted_alone: bool,
    /// Whether a row may collide with another one by a unique index that is not the key.
    pub may_collide: bool,
    holds_nan: bool,
}

impl Plan {
    /// Compares the fields of the items with the columns of the table, which takes what the settings describe.
    ///
    /// # Errors
    /// If the table does not take the fields.
    pub fn new(settings: &Settings<'_>, fields: &[String], table: &Table) -> Result<Self, String> {
        let unnamed = fields.iter().filter(|field| field.is_empty()).count();
        if unnamed > 0 {
            return Err(format!(
                "{unnamed} of {} fields of the items have no name; a tuple gets names by the property `columns`, and a file by a \
                 complete header",
                fields.len()
            ));
        }
        let names: Vec<&str> = fields.iter().map(String::as_str).collect();
        table.check_written(settings, &names)?;
        let column = |(field, name): (usize, &&str)| {
            let column = table.column(name)?;
            Ok(Column {
                name: column.name.clone(),
                sql_type: column.sql_type.clone(),
                kind: column.kind,
                limit: column.limit,
                field,
                is_key: settings.key.iter().any(|key| key.eq_ignore_ascii_case(name)),
                is_added: settings.add.iter().any(|add| add.eq_ignore_ascii_case(name)),
            })
        };
        let columns: Vec<Column> = names
            .iter()
            .enumerate()
            .map(column)
            .collect::<Result<_, String>>()?;
        let is_distinct = |name: &String| {
            let is_written = columns.iter().any(|column| column.name == *name);
            !is_written && table.column(name).is_ok_and(|column| column.is_distinct)
        };
        let in_key = |name: &String| settings.key.iter().any(|key| key.eq_ignore_ascii_case(name));
        let is_unique = table.unique.iter().any(|index| index.iter().all(in_key));
        let mut others = table.unique.iter().filter(|index| !is_same(index, settings.key));
        Ok(Self {
            table: settings.table.to_owned(),
            mode: settings.mode,
            rows_affected: settings.rows_affected,
            is_counted_alone: !is_unique
                && settings.rows_affected == RowsAffected::Check
                && matches!(settings.mode, WriteMode::Update | WriteMode::Delete),
            may_collide: table.has_unnamed_unique || others.any(|index| !index.iter().any(is_distinct)),
            holds_nan: table.holds_nan,
            columns,
        })
    }

    /// Returns the columns of the key.
    pub fn keys(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.is_key)
    }

    /// Returns the columns that are not part of the key.
    pub fn values(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.is_key)
    }

    /// Converts the values to the types of their columns, and returns those types. Fails with the row and the cause.
    pub(super) fn convert(&self, rows: &mut Rows) -> Result<Vec<Kind>, (usize, String)> {
        let convert = |column: &Column| {
            let kind = column.kind.unwrap_or_else(|| rows.kind(column.field));
            rows.convert(column.field, kind, column.limit)?;
            if matches!(kind, Kind::Float | Kind::Any | Kind::AnyNumeric) && !self.holds_nan {
                rows.reject_nan(column.field)?;
            }
            Ok(kind)
        };
        self.columns.iter().map(convert).collect()
    }

    /// Returns a column that must have a value, and is null in a row: no row of the table has such a key, and null cannot be added.
    pub(super) fn null_column(&self, rows: &Rows) -> Option<&Column> {
        let is_null =
            |column: &&Column| (0..rows.len()).any(|row| matches!(rows.cell(row, column.field), Cell::Null));
        self.columns
            .iter()
            .filter(|column| column.is_key || column.is_added)
            .find(is_null)
    }
}

/// Returns the name of a table, which may have a schema, with quotes around its parts.
pub fn quoted_table(name: &str, quote: char) -> String {
    let parts: Vec<_> = name.split('.').map(|part| quoted(part, quote)).collect();
    parts.join(".")
}

/// Returns a name with quotes around it.
pub fn quoted(name: &str, quote: char) -> String {
    format!(
        "{quote}{}{quote}",
        name.replace(quote, &format!("{quote}{quote}"))
    )
}

/// Returns the names with quotes around them, separated by commas.
pub(super) fn quoted_list<'c>(columns: impl Iterator<Item = &'c Column>, quote: char) -> String {
    let names: Vec<_> = columns.map(|column| quoted(&column.name, quote)).collect();
    names.join(", ")
}
