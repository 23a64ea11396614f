//! Tables as the catalogues of their databases describe them, and the rules for the items that a table takes.
//!
//! A writer asks once, when it opens: what it cannot write is an error of its settings. Afterwards only items can be at fault, unless the
//! table has changed since: after an error whose cause may be that, the catalogue is asked again.
// Spec: ITEM-TABLE-01, D-106

use batch_runtime::xml::suggest::did_you_mean;

use super::settings::{Settings, WriteMode};
use crate::rows::{Kind, Limit};

/// A table, as its database describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The schema of an unqualified name, on PostgreSQL.
    pub schema: Option<String>,
    /// None, if the table does not exist.
    pub columns: Vec<TableColumn>,
    /// Whether rows can be inserted: not into each view, and not with each user.
    pub inserts: bool,
    /// Whether rows can be updated.
    pub updates: bool,
    /// Whether rows can be deleted.
    pub deletes: bool,
    /// The columns of each unique index of all rows and values: `upsert` can use it, and at most one row has a key.
    pub unique: Vec<Vec<String>>,
    /// Whether there is a unique index of an expression, or of the beginning of a text, which `unique` cannot name.
    pub has_unnamed_unique: bool,
    /// Whether a column of floats holds `NaN`.
    pub holds_nan: bool,
    /// The storage engine, if it has no transactions.
    pub engine_without_transactions: Option<String>,
    /// The name of its database, if that is not the repository's.
    pub database: Option<String>,
}

/// A column of the table, as its database describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct TableColumn {
    /// The name.
    pub name: String,
    /// The type, in SQL.
    pub sql_type: String,
    /// The type of its values; `None` for any.
    pub kind: Option<Kind>,
    /// What it holds of these values.
    pub limit: Limit,
    /// True if a row must have a value for it: it is not null, without a default, and nothing computes it.
    pub needs_value: bool,
    /// True if the database computes it, so that nothing can be written.
    pub is_computed: bool,
    /// True if a row without a value for it has one that no other row has, or null.
    pub is_distinct: bool,
    /// True if the database adds its values without rounding.
    pub is_exact_number: bool,
}

impl Table {
    /// Returns the names of the columns with their types.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (String, Option<String>)> {
        let columns = self.columns.iter();
        columns.map(|column| (column.name.clone(), Some(column.sql_type.clone())))
    }

    /// Returns a column by its name, or by one in another case, which most databases do not tell apart.
    pub(super) fn column(&self, name: &str) -> Result<&TableColumn, String> {
        let exact = self.columns.iter().find(|column| column.name == name);
        // PostgreSQL has both, if they were created in quotes.
        let mut same = self
            .columns
            .iter()
            .filter(|column| column.name.eq_ignore_ascii_case(name));
        exact.or_else(|| same.next()).ok_or_else(|| {
            let hint = did_you_mean(name, self.columns.iter().map(|column| column.name.as_str()));
            format!("it has no column `{name}`{hint}")
        })
    }

    /// Checks the settings without an item. Fails with the cause.
    pub(super) fn check(&self, settings: &Settings<'_>) -> Result<(), String> {
        let Settings { key, mode, .. } = settings;
        if self.columns.is_empty() {
            return Err(match &self.database {
                None => "the table does not exist; create it by `schema_sql`, or by a step with the batchlet `sqlScript`".to_owned(),
                Some(database) => format!(
                    "the table does not exist in the database `{database}`; create it there, for example by a step with the batchlet \
                     `sqlScript` and the same `database`"
                ),
            });
        }
        if let Some(engine) = &self.engine_without_transactions {
            return Err(format!(
                "its engine {engine} has no transactions: after a crash, rows of the last chunk would be there twice; change it by \
                 `ALTER TABLE {} ENGINE = InnoDB`",
                settings.table
            ));
        }
        let takes = match mode {
            WriteMode::Insert => self.inserts,
            WriteMode::Upsert => self.inserts && self.updates,
            WriteMode::Update => self.updates,
            WriteMode::Delete => self.deletes,
        };
        if !takes {
            return Err(format!(
                "it takes no {}; it may be a view, or the user of the database lacks the right",
                mode.verb()
            ));
        }
        if *mode != WriteMode::Insert && key.is_empty() {
            return Err(format!("set the property `key` to {} rows", mode.verb()));
        }
        for (index, name) in key.iter().enumerate() {
            self.column(name)?;
            if key[..index].iter().any(|other| other.eq_ignore_ascii_case(name)) {
                return Err(format!("`key` has the column `{name}` twice"));
            }
        }
        if *mode == WriteMode::Upsert && !self.unique.iter().any(|index| is_same(index, key)) {
            return Err(self.without_unique_index(key));
        }
        self.check_added(settings)
    }

    /// Checks the property `add`. Fails with the cause.
    fn check_added(&self, settings: &Settings<'_>) -> Result<(), String> {
        let Settings { key, add, mode, .. } = settings;
        if !add.is_empty() && !matches!(mode, WriteMode::Upsert | WriteMode::Update) {
            return Err(format!(
                "`add` needs the mode `upsert` or `update`, not `{}`",
                mode.verb()
            ));
        }
        for name in *add {
            let column = self.column(name)?;
            if key.iter().any(|key| key.eq_ignore_ascii_case(name)) {
                return Err(format!(
                    "`add` names the column `{name}` of the key; remove it from `add`"
                ));
            }
            if !column.is_exact_number {
                return Err(format!(
                    "`add` has the column `{}` of the type `{}`, whose values cannot be added exactly; it takes integers, and decimals on \
                     PostgreSQL and MySQL, and nothing by ODBC",
                    column.name, column.sql_type
                ));
            }
        }
        Ok(())
    }

    fn without_unique_index(&self, key: &[String]) -> String {
        let indexes: Vec<_> = self
            .unique
            .iter()
            .map(|index| format!("`{}`", index.join(",")))
            .collect();
        let there = match indexes.len() {
            0 => "it has none".to_owned(),
            _ => format!("the indexes of the table have {}", indexes.join(", ")),
        };
        format!(
            "`upsert` needs a unique index of exactly the columns of `key`, `{}`, but {there}",
            key.join(",")
        )
    }

    /// Checks the columns that are written. Fails with the cause.
    pub(super) fn check_written(&self, settings: &Settings<'_>, written: &[&str]) -> Result<(), String> {
        let Settings { key, mode, .. } = settings;
        let is_key = |name: &str| key.iter().any(|key| key.eq_ignore_ascii_case(name));
        for (index, name) in written.iter().enumerate() {
            let column = self.column(name)?;
            let is_set = match mode {
                WriteMode::Insert | WriteMode::Upsert => true,
                WriteMode::Update => !is_key(name),
                WriteMode::Delete => false,
            };
            if is_set && column.is_computed {
                return Err(format!(
                    "the database computes the column `{}`; leave it out by the property `columns`",
                    column.name
                ));
            }
            if let Some(other) = written[..index]
                .iter()
                .find(|other| other.eq_ignore_ascii_case(name))
            {
                return Err(format!(
                    "the items have two fields for the column `{}`, `{other}` and `{name}`; select one by the property `columns`",
                    column.name
                ));
            }
        }
        let is_written = |name: &str| written.iter().any(|written| written.eq_ignore_ascii_case(name));
        if let Some(name) = key.iter().find(|name| !is_written(name)) {
            let hint = did_you_mean(name, written.iter().copied());
            return Err(format!("the items have no field `{name}` of the key{hint}"));
        }
        if let Some(name) = settings.add.iter().find(|name| !is_written(name)) {
            let hint = did_you_mean(name, written.iter().copied());
            return Err(format!("the items have no field `{name}` of `add`{hint}"));
        }
        if *mode == WriteMode::Update && written.iter().all(|name| is_key(name)) {
            return Err("all columns are part of the key; there is nothing to update".to_owned());
        }
        if matches!(mode, WriteMode::Insert | WriteMode::Upsert) {
            self.check_unwritten(is_written)?;
        }
        Ok(())
    }

    /// Checks that a row has all values that it needs. Fails with the cause.
    pub(super) fn check_unwritten(&self, is_written: impl Fn(&str) -> bool) -> Result<(), String> {
        let missing = |column: &&TableColumn| column.needs_value && !is_written(&column.name);
        match self.columns.iter().find(missing) {
            Some(column) => Err(format!(
                "the column `{}` needs a value, and the writer does not write it; write it, or give it a default",
                column.name
            )),
            None => Ok(()),
        }
    }
}

/// Returns whether two lists have the same columns, in any order.
pub(super) fn is_same(index: &[String], key: &[String]) -> bool {
    let is_in = |name: &String| key.iter().any(|key| key.eq_ignore_ascii_case(name));
    index.len() == key.len() && index.iter().all(is_in)
}

/// Returns the columns of each index, from pairs of index and column that are ordered by index; `None` is an expression, which no column is.
#[cfg(any(feature = "sqlite", feature = "mysql"))]
pub(super) fn grouped(pairs: impl Iterator<Item = (String, Option<String>)>) -> Vec<Vec<String>> {
    let mut indexes: Vec<(String, Option<Vec<String>>)> = Vec::new();
    for (index, column) in pairs {
        if indexes.last().is_none_or(|(last, _)| *last != index) {
            indexes.push((index, Some(Vec::new())));
        }
        if let Some((_, columns)) = indexes.last_mut() {
            *columns = columns.take().zip(column).map(|(mut columns, column)| {
                columns.push(column);
                columns
            });
        }
    }
    indexes.into_iter().filter_map(|(_, columns)| columns).collect()
}
