//! What is written to which columns: the rules that all databases share.

use crate::choices::choices;
use crate::nearest::did_you_mean;
use crate::rows::{Kind, Rows};

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

/// Whether the number of changed rows has to be that of the items: the property `rows.affected`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowsAffected {
    /// `check`: another number is an error. The default.
    #[default]
    Check,
    /// `ignore`: any number is accepted.
    Ignore,
}

choices! {
    WriteMode { "insert" => Insert, "upsert" => Upsert, "update" => Update, "delete" => Delete }
    RowsAffected { "check" => Check, "ignore" => Ignore }
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

/// The properties of a writer.
pub(super) struct Settings<'a> {
    pub(super) table: &'a str,
    pub(super) columns: &'a [String],
    pub(super) key: &'a [String],
    pub(super) mode: WriteMode,
}

/// A table, as its database describes it.
#[derive(Default)]
pub(crate) struct TableColumns {
    /// The schema in which an unqualified name is found, on PostgreSQL.
    pub(crate) schema: Option<String>,
    /// None, if the table does not exist.
    pub(crate) columns: Vec<TableColumn>,
}

impl TableColumns {
    /// Returns the names of the columns with their types.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (String, Option<String>)> {
        let columns = self.columns.iter();
        columns.map(|column| (column.name.clone(), Some(column.sql_type.clone())))
    }
}

/// A column of the table, as its database describes it.
#[derive(Clone)]
pub(crate) struct TableColumn {
    pub(super) name: String,
    /// The type, in SQL.
    pub(super) sql_type: String,
    /// The type of its values; `None` for any.
    pub(super) kind: Option<Kind>,
    /// True if a row must have a value for it: it is not null, without a default, and nothing computes it.
    pub(super) needs_value: bool,
}

/// A column that is written.
pub(super) struct Column {
    pub(super) name: String,
    /// The type, in SQL.
    #[cfg_attr(
        not(any(feature = "postgres", feature = "mysql")),
        expect(dead_code, reason = "only servers cast")
    )]
    pub(super) sql_type: String,
    pub(super) kind: Option<Kind>,
    /// The field of the item.
    pub(super) field: usize,
    pub(super) is_key: bool,
}

/// The columns that are written, in the order of the item's fields.
pub(super) struct Plan {
    pub(super) table: String,
    pub(super) mode: WriteMode,
    pub(super) columns: Vec<Column>,
    /// The columns of the table that are not written.
    pub(super) unwritten: Vec<TableColumn>,
}

impl Plan {
    /// Compares the fields of the items with the columns of the table.
    pub(super) fn new(
        settings: &Settings<'_>,
        fields: &[String],
        table: &[TableColumn],
    ) -> Result<Self, String> {
        if table.is_empty() {
            return Err(
                "the table does not exist; create it by `schema_sql`, or by a step with the batchlet `sqlScript`"
                    .to_owned(),
            );
        }
        if fields.iter().any(String::is_empty) {
            return Err("the items are tuples; a struct or a record has names for its fields".to_owned());
        }
        let mut columns: Vec<Column> = Vec::new();
        for (field, name) in fields.iter().enumerate() {
            if !settings.columns.is_empty() && !settings.columns.contains(name) {
                continue;
            }
            let column = table.iter().find(|column| column.name.eq_ignore_ascii_case(name));
            let column = column.ok_or_else(|| {
                let hint = did_you_mean(name, table.iter().map(|column| column.name.as_str()));
                format!("it has no column `{name}`{hint}; the property `columns` selects fields of the item")
            })?;
            columns.push(Column {
                name: column.name.clone(),
                sql_type: column.sql_type.clone(),
                kind: column.kind,
                field,
                is_key: settings.key.iter().any(|key| key.eq_ignore_ascii_case(name)),
            });
        }
        let missing = settings.columns.iter().chain(settings.key).find(|name| {
            let is_column = |column: &Column| column.name.eq_ignore_ascii_case(name);
            !columns.iter().any(is_column)
        });
        if let Some(name) = missing {
            let hint = did_you_mean(name, fields.iter().map(String::as_str));
            return Err(format!("the items have no field `{name}`{hint}"));
        }
        let keys = columns.iter().filter(|column| column.is_key).count();
        match settings.mode {
            WriteMode::Insert => {}
            _ if keys == 0 => return Err(format!("set the property `key` to {} rows", settings.mode.verb())),
            WriteMode::Update if keys == columns.len() => {
                return Err("all columns are part of the key; there is nothing to update".to_owned());
            }
            _ => {}
        }
        let is_unwritten = |column: &&TableColumn| columns.iter().all(|written| written.name != column.name);
        Ok(Self {
            table: settings.table.to_owned(),
            mode: settings.mode,
            unwritten: table.iter().filter(is_unwritten).cloned().collect(),
            columns,
        })
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.is_key)
    }

    /// Returns the columns that are not part of the key.
    pub(super) fn values(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.is_key)
    }

    /// Converts the values to the types of their columns, and returns those types. Fails with the row and the cause.
    pub(super) fn convert(&self, rows: &mut Rows) -> Result<Vec<Kind>, (usize, String)> {
        let convert = |column: &Column| {
            let kind = column.kind.unwrap_or_else(|| rows.kind(column.field));
            rows.convert(column.field, kind)?;
            Ok(kind)
        };
        self.columns.iter().map(convert).collect()
    }
}

/// Returns the name of a table, which may have a schema, with quotes around its parts.
pub(super) fn quoted_table(name: &str, quote: char) -> String {
    let parts: Vec<_> = name.split('.').map(|part| quoted(part, quote)).collect();
    parts.join(".")
}

/// Returns a name with quotes around it.
pub(super) fn quoted(name: &str, quote: char) -> String {
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
