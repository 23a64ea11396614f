//! Writing to tables of SQLite.

use diesel::prelude::*;

use super::fit::Run;
use super::plan::{Plan, TableColumn, TableColumns};
use super::template::{Limits, StatementSyntax, template};
use crate::rows::{Kind, Rows};

const SYNTAX: StatementSyntax = StatementSyntax {
    quote: '"',
    values: "VALUES ",
    key_cast: |_| None,
};

const LIMITS: Limits = Limits {
    rows: 100,
    values: 32_766,
};

/// Returns the columns of a table; none if it does not exist.
pub(super) fn columns(connection: &mut SqliteConnection, table: &str) -> QueryResult<TableColumns> {
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = diesel::sql_types::Text)]
        name: String,
        #[diesel(sql_type = diesel::sql_types::Text)]
        kind: String,
        #[diesel(sql_type = diesel::sql_types::Bool)]
        needs_value: bool,
    }
    let (schema, table) = table.split_once('.').unwrap_or(("main", table));
    let found: Vec<Found> = diesel::sql_query(
        "SELECT name, type AS kind, \"notnull\" = 1 AND dflt_value IS NULL AND pk = 0 AS needs_value FROM pragma_table_info(?, ?)",
    )
        .bind::<diesel::sql_types::Text, _>(table)
        .bind::<diesel::sql_types::Text, _>(schema)
        .load(connection)?;
    let columns = found.into_iter().map(|found| TableColumn {
        name: found.name,
        kind: kind_of(&found.kind),
        sql_type: found.kind,
        needs_value: found.needs_value,
    });
    Ok(TableColumns {
        schema: None,
        columns: columns.collect(),
    })
}

/// Returns the type of the values, by SQLite's rules for the affinity of a column.
fn kind_of(declared: &str) -> Option<Kind> {
    let declared = declared.to_ascii_uppercase();
    let has = |words: &[&str]| words.iter().any(|word| declared.contains(word));
    if has(&["INT"]) {
        Some(Kind::Int)
    } else if has(&["CHAR", "CLOB", "TEXT"]) {
        Some(Kind::Text)
    } else if has(&["REAL", "FLOA", "DOUB"]) {
        Some(Kind::Float)
    } else if has(&["BOOL"]) {
        Some(Kind::Bool)
    } else if has(&["DEC", "NUMERIC"]) {
        Some(Kind::Decimal)
    } else {
        None
    }
}

/// Runs the statement for the rows, and returns how many were changed.
pub(super) fn execute(
    connection: &mut SqliteConnection,
    plan: &Plan,
    kinds: &[Kind],
    rows: &Rows,
    run: Run,
) -> QueryResult<usize> {
    let template = template(plan, kinds, &SYNTAX, |keys, values| {
        if values.is_empty() {
            return format!(" ON CONFLICT ({keys}) DO NOTHING");
        }
        let set: Vec<_> = values
            .iter()
            .map(|name| format!("{name} = excluded.{name}"))
            .collect();
        format!(" ON CONFLICT ({keys}) DO UPDATE SET {}", set.join(", "))
    });
    template.execute(connection, plan.mode, rows, &LIMITS, run)
}
