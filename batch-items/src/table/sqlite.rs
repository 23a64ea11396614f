//! Writing to tables of SQLite.

use diesel::prelude::*;

use super::catalogue::{Table, TableColumn};
use super::declared::sqlite_kind;
use super::plan::{Changed, Plan};
use super::template::{Limits, StatementSyntax, template, write_in_parts};
use crate::rows::{Kind, Limit, Rows};

const SYNTAX: StatementSyntax = StatementSyntax {
    // Whatever the table says of conflicts: `ON CONFLICT REPLACE` would delete other rows.
    insert: "INSERT OR ABORT INTO",
    update: "UPDATE OR ABORT",
    quote: '"',
    values: "VALUES ",
    key_cast: |_| None,
    add,
};

const LIMITS: Limits = Limits {
    rows: 100,
    values: 32_766,
};

/// Returns the texts around a value that is added to a column. SQLite would change a sum that is too large to a float, and count a text as 0.
fn add(column: &str) -> (String, String) {
    // A column of this name would hide it.
    let new = match column.eq_ignore_ascii_case("\"batch_added\"") {
        true => "batch_new",
        false => "batch_added",
    };
    let before = format!(
        "(SELECT CASE WHEN typeof({column}) IN ('integer', 'null') AND typeof(COALESCE({column}, 0) + {new}) = 'integer' \
         THEN COALESCE({column}, 0) + {new} ELSE abs(-9223372036854775808 + 0 * {new}) END FROM (SELECT "
    );
    (before, format!(" AS {new}))"))
}

/// Returns a table as SQLite describes it; without columns, if it does not exist.
pub(super) fn describe(connection: &mut SqliteConnection, table: &str) -> QueryResult<Table> {
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = diesel::sql_types::Text)]
        name: String,
        #[diesel(sql_type = diesel::sql_types::Text)]
        kind: String,
        #[diesel(sql_type = diesel::sql_types::Bool)]
        needs_value: bool,
        #[diesel(sql_type = diesel::sql_types::Bool)]
        is_computed: bool,
        #[diesel(sql_type = diesel::sql_types::Bool)]
        is_key: bool,
        /// A view has triggers only in place of statements, and takes none without.
        #[diesel(sql_type = diesel::sql_types::Bool)]
        takes_rows: bool,
    }
    let (schema, table) = table.split_once('.').unwrap_or(("main", table));
    let schema_name = super::plan::quoted(schema, '"');
    // SQLite generates a key only if it is the row id, and only such a primary key has no index.
    let found: Vec<Found> = diesel::sql_query(format!(
        "SELECT name, type AS kind, dflt_value IS NULL AND hidden = 0 AND CASE WHEN pk = 0 THEN \"notnull\" = 1 \
         ELSE EXISTS (SELECT 1 FROM pragma_index_list(arguments.relation, arguments.place) AS list WHERE list.origin = 'pk') END AS needs_value, \
         hidden > 1 AS is_computed, \
         pk > 0 AS is_key, NOT EXISTS (SELECT 1 FROM {schema_name}.sqlite_schema AS found WHERE found.name = arguments.relation COLLATE NOCASE \
         AND found.type = 'view' AND NOT EXISTS (SELECT 1 FROM {schema_name}.sqlite_schema AS triggers WHERE triggers.type = 'trigger' \
         AND triggers.tbl_name = found.name COLLATE NOCASE)) AS takes_rows \
         FROM (SELECT ? AS relation, ? AS place) AS arguments, pragma_table_xinfo(arguments.relation, arguments.place) WHERE hidden <> 1"
    ))
    .bind::<diesel::sql_types::Text, _>(table)
    .bind::<diesel::sql_types::Text, _>(schema)
    .load(connection)?;
    let takes_rows = found.iter().all(|column| column.takes_rows);
    let key: Vec<String> = found
        .iter()
        .filter(|column| column.is_key)
        .map(|column| column.name.clone())
        .collect();
    let mut unique = unique_indexes(connection, schema, table)?;
    if !key.is_empty() && !unique.contains(&key) {
        unique.push(key);
    }
    let columns = found.into_iter().map(|found| TableColumn {
        name: found.name,
        kind: Some(sqlite_kind(&found.kind)),
        // It stores each value as it is.
        limit: Limit::None,
        needs_value: found.needs_value,
        is_computed: found.is_computed,
        is_distinct: false,
        is_exact_number: sqlite_kind(&found.kind) == Kind::Int,
        sql_type: found.kind,
    });
    Ok(Table {
        columns: columns.collect(),
        inserts: takes_rows,
        updates: takes_rows,
        deletes: takes_rows,
        unique,
        ..Table::default()
    })
}

/// Returns the columns of each unique index of all rows. One of an expression has no name for it.
fn unique_indexes(
    connection: &mut SqliteConnection,
    schema: &str,
    table: &str,
) -> QueryResult<Vec<Vec<String>>> {
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = diesel::sql_types::Text)]
        index: String,
        #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::Text>)]
        name: Option<String>,
    }
    let found: Vec<Found> = diesel::sql_query(
        "SELECT list.name AS \"index\", info.name AS name FROM pragma_index_list(?, ?) AS list, pragma_index_info(list.name, ?) AS info \
         WHERE list.\"unique\" = 1 AND list.partial = 0 ORDER BY list.name, info.seqno",
    )
    .bind::<diesel::sql_types::Text, _>(table)
    .bind::<diesel::sql_types::Text, _>(schema)
    .bind::<diesel::sql_types::Text, _>(schema)
    .load(connection)?;
    Ok(super::catalogue::grouped(
        found.into_iter().map(|found| (found.index, found.name)),
    ))
}

/// Runs the statement for the rows, and returns how many were changed.
pub(super) fn execute(
    connection: &mut SqliteConnection,
    plan: &Plan,
    kinds: &[Kind],
    rows: &Rows,
) -> QueryResult<Changed> {
    let template = template(plan, kinds, &SYNTAX, |keys, values| {
        if values.is_empty() {
            // An update, so that it counts.
            let first = keys.split(", ").next().unwrap_or_default();
            return format!(" ON CONFLICT ({keys}) DO UPDATE SET {first} = {first}");
        }
        let set = SYNTAX.assignments(values, |name| format!("excluded.{name}"));
        format!(" ON CONFLICT ({keys}) DO UPDATE SET {}", set.join(", "))
    });
    write_in_parts(connection, &template, plan, rows, &LIMITS)
}
