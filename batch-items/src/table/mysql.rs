//! Writing to tables of MySQL and MariaDB.

use diesel::prelude::*;

use super::fit::Run;
use super::plan::{Plan, TableColumn, TableColumns};
use super::template::{Limits, StatementSyntax, template};
use crate::rows::{Kind, Rows};

const SYNTAX: StatementSyntax = StatementSyntax {
    quote: '`',
    values: "",
    key_cast: |column| key_cast(&column.sql_type),
};

const LIMITS: Limits = Limits {
    rows: 500,
    values: 65_535,
};

/// Returns the columns of a table; none if it does not exist.
pub(super) fn columns(connection: &mut MysqlConnection, table: &str) -> QueryResult<TableColumns> {
    use diesel::sql_types::{Nullable, Text};
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = Text)]
        name: String,
        #[diesel(sql_type = Text)]
        kind: String,
        #[diesel(sql_type = diesel::sql_types::Bool)]
        needs_value: bool,
    }
    let (schema, table) = match table.split_once('.') {
        Some((schema, table)) => (Some(schema), table),
        None => (None, table),
    };
    let found: Vec<Found> = diesel::sql_query(
        "SELECT CAST(column_name AS CHAR) AS name, CAST(column_type AS CHAR) AS kind, \
         is_nullable = 'NO' AND column_default IS NULL AND extra NOT LIKE '%auto_increment%' AS needs_value FROM information_schema.columns \
         WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ? ORDER BY ordinal_position",
    )
    .bind::<Nullable<Text>, _>(schema)
    .bind::<Text, _>(table)
    .load(connection)?;
    let columns = found.into_iter().map(|found| TableColumn {
        name: found.name,
        kind: Some(kind_of(&found.kind)),
        sql_type: found.kind,
        needs_value: found.needs_value,
    });
    Ok(TableColumns {
        schema: None,
        columns: columns.collect(),
    })
}

/// Returns the type of the values. The server converts texts to dates and decimals. A DELETE would compare a key that is not a number
/// as 0.
fn kind_of(declared: &str) -> Kind {
    let declared = declared.to_ascii_lowercase();
    let name = declared.split(['(', ' ']).next().unwrap_or_default();
    match name {
        "decimal" => Kind::Decimal,
        // It may be over the largest `i64`.
        "bigint" if declared.contains("unsigned") => Kind::Decimal,
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year" | "bit" => Kind::Int,
        "float" | "double" => Kind::Float,
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Kind::Bytes,
        _ => Kind::Text,
    }
}

/// Returns the type to which a key that is sent as a text is cast. MySQL, unlike MariaDB, compares a number with a text as floats. The
/// scale is larger than that of the column: a rounded key could be that of another row.
fn key_cast(declared: &str) -> Option<String> {
    /// The most digits of a decimal, and the most after its point.
    const DIGITS: u32 = 65;
    const SCALE: u32 = 30;
    let declared = declared.to_ascii_lowercase();
    let mut parts = declared
        .split(['(', ',', ')', ' '])
        .filter(|part| !part.is_empty());
    let scale = match parts.next() {
        Some("bigint") if declared.contains("unsigned") => SCALE,
        Some("decimal") => {
            let mut number = || parts.next().and_then(|digits| digits.parse::<u32>().ok());
            let (digits, scale) = (number()?, number()?);
            DIGITS.saturating_sub(digits.saturating_sub(scale)).min(SCALE)
        }
        _ => return None,
    };
    Some(format!("DECIMAL({DIGITS}, {scale})"))
}

/// Runs the statement for the rows, and returns how many were changed.
pub(super) fn execute(
    connection: &mut MysqlConnection,
    plan: &Plan,
    kinds: &[Kind],
    rows: &Rows,
    run: Run,
) -> QueryResult<usize> {
    let template = template(plan, kinds, &SYNTAX, |keys, values| {
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
    template.execute(connection, plan.mode, rows, &LIMITS, run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_cast_to_decimals_with_more_digits_than_their_columns() {
        let check = |declared: &str, expected: Option<&str>| {
            assert_eq!(key_cast(declared).as_deref(), expected, "{declared}");
        };
        check("decimal(10,2)", Some("DECIMAL(65, 30)"));
        check("decimal(30,0) unsigned zerofill", Some("DECIMAL(65, 30)"));
        check("DECIMAL(65,30)", Some("DECIMAL(65, 30)"));
        check("decimal(65,2)", Some("DECIMAL(65, 2)"));
        check("bigint(20) unsigned", Some("DECIMAL(65, 30)"));
        check("bigint unsigned zerofill", Some("DECIMAL(65, 30)"));
        check("bigint(20)", None);
        check("varchar(20)", None);
    }
}
