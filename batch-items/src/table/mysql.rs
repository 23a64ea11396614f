//! Writing to tables of MySQL and MariaDB.

use diesel::prelude::*;

use super::plan::{Plan, TableColumn};
use super::template::{Limits, Statement, template, write_in_parts};
use crate::rows::{Kind, Rows};

const LIMITS: Limits = Limits {
    rows: 500,
    values: 65_535,
};

impl RunQueryDsl<MysqlConnection> for Statement<'_> {}

/// Returns the columns of a table; none if it does not exist.
pub(super) fn columns(connection: &mut MysqlConnection, table: &str) -> QueryResult<Vec<TableColumn>> {
    use diesel::sql_types::{Nullable, Text};
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = Text)]
        name: String,
        #[diesel(sql_type = Text)]
        kind: String,
    }
    let (schema, table) = match table.split_once('.') {
        Some((schema, table)) => (Some(schema), table),
        None => (None, table),
    };
    let found: Vec<Found> = diesel::sql_query(
        "SELECT CAST(column_name AS CHAR) AS name, CAST(column_type AS CHAR) AS kind FROM information_schema.columns \
         WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ? ORDER BY ordinal_position",
    )
    .bind::<Nullable<Text>, _>(schema)
    .bind::<Text, _>(table)
    .load(connection)?;
    let columns = found.into_iter().map(|Found { name, kind }| TableColumn {
        name,
        kind: kind_of(&kind),
        sql_type: kind,
    });
    Ok(columns.collect())
}

/// Returns the type of the values; `None` for the type that they have. The server converts texts to dates and decimals.
/// Integers are sent as such: a key that is compared with a text is compared as a float, which is not exact.
fn kind_of(declared: &str) -> Option<Kind> {
    let declared = declared.to_ascii_lowercase();
    let name = declared.split(['(', ' ']).next().unwrap_or_default();
    Some(match name {
        // It may be over the largest `i64`, and is a text then.
        "bigint" if declared.ends_with("unsigned") => return None,
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year" | "bit" => Kind::Int,
        "float" | "double" => Kind::Float,
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Kind::Bytes,
        _ => Kind::Text,
    })
}

/// Writes the rows, and returns how many were changed.
pub(super) fn write(
    connection: &mut MysqlConnection,
    plan: &Plan,
    kinds: &[Kind],
    rows: &Rows,
) -> QueryResult<usize> {
    let template = template(plan, kinds, '`', "", |keys, values| {
        let first = keys.split(", ").next().unwrap_or_default();
        let set: Vec<_> = values
            .iter()
            .map(|name| format!("{name} = VALUES({name})"))
            .collect();
        match set.as_slice() {
            [] => format!(" ON DUPLICATE KEY UPDATE {first} = {first}"),
            some => format!(" ON DUPLICATE KEY UPDATE {}", some.join(", ")),
        }
    });
    write_in_parts(&template, plan.mode, rows, &LIMITS, |statement| {
        statement.execute(connection)
    })
}
