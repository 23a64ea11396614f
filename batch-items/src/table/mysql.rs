//! Writing to tables of MySQL and MariaDB.

use diesel::connection::SimpleConnection;
use diesel::mysql::Mysql;
use diesel::prelude::*;
use diesel::query_builder::{BoxedSqlQuery, SqlQuery};
use diesel::result::{DatabaseErrorKind, Error};
use diesel::sql_types::{Bool, Nullable, Text};

use super::catalogue::{Table, TableColumn, grouped};
use super::declared::{is_exact_number, mysql_kind, mysql_limit};
use super::plan::{Changed, Plan, quoted};
use super::settings::WriteMode;
use super::template::{Limits, StatementSyntax, Template, template, update, write_in_parts};
use crate::rows::{Kind, Rows};

const SYNTAX: StatementSyntax = StatementSyntax {
    insert: "INSERT INTO",
    update: "UPDATE",
    quote: '`',
    values: "",
    key_cast: |column| key_cast(&column.sql_type),
    add: |column| (format!("COALESCE({column}, 0) + "), String::new()),
};

const LIMITS: Limits = Limits {
    rows: 500,
    values: 65_535,
};

/// Describes the columns of a table. Each part has the schema and the name as its variables: with a join, MariaDB opens every table of the
/// server, and shows this session in the databases of their triggers meanwhile. A trigger before the insert may supply a value. MariaDB
/// shows a default of null as the text `NULL`.
const DESCRIPTION: &str = "SELECT CAST(column_name AS CHAR) AS name, CAST(column_type AS CHAR) AS kind, \
     is_nullable = 'NO' AND column_default IS NULL AND extra NOT LIKE '%auto_increment%' AND extra NOT LIKE '%GENERATED%' \
         AND is_table AND NOT has_trigger AS needs_value, \
     extra LIKE '%VIRTUAL GENERATED%' OR extra LIKE '%STORED GENERATED%' AS is_computed, \
     extra LIKE '%auto_increment%' OR is_nullable = 'YES' AND COALESCE(column_default, 'NULL') = 'NULL' AS is_distinct, \
     is_table OR is_updatable AS takes_rows, engine_without_transactions \
     FROM (SELECT EXISTS (SELECT 1 FROM information_schema.tables \
                 WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ? AND table_type NOT LIKE '%VIEW%') AS is_table, \
             EXISTS (SELECT 1 FROM information_schema.views \
                 WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ? AND is_updatable = 'YES') AS is_updatable, \
             EXISTS (SELECT 1 FROM information_schema.triggers \
                 WHERE event_object_schema = COALESCE(?, DATABASE()) AND event_object_table = ? \
                 AND event_manipulation = 'INSERT' AND action_timing = 'BEFORE') AS has_trigger, \
             (SELECT CAST(MAX(tables.engine) AS CHAR) FROM information_schema.tables \
                 WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ? AND tables.engine NOT IN \
                     (SELECT engine FROM information_schema.engines WHERE transactions = 'YES')) AS engine_without_transactions) AS around, \
         information_schema.columns \
     WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ? ORDER BY ordinal_position";

const UNIQUE_INDEXES: &str = "SELECT CAST(index_name AS CHAR) AS `index`, CASE WHEN sub_part IS NULL THEN CAST(column_name AS CHAR) END AS name \
     FROM information_schema.statistics WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ? AND non_unique = 0 \
     ORDER BY index_name, seq_in_index";

/// Returns a table as the server describes it; without columns, if it does not exist.
pub(super) fn describe(connection: &mut MysqlConnection, table: &str) -> QueryResult<Table> {
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = Text)]
        name: String,
        #[diesel(sql_type = Text)]
        kind: String,
        #[diesel(sql_type = Bool)]
        needs_value: bool,
        #[diesel(sql_type = Bool)]
        is_computed: bool,
        #[diesel(sql_type = Bool)]
        is_distinct: bool,
        #[diesel(sql_type = Bool)]
        takes_rows: bool,
        #[diesel(sql_type = Nullable<Text>)]
        engine_without_transactions: Option<String>,
    }
    let (schema, table) = match table.split_once('.') {
        Some((schema, table)) => (Some(schema), table),
        None => (None, table),
    };
    let found: Vec<Found> = catalogue_query(DESCRIPTION, schema, table).load(connection)?;
    let (unique, has_unnamed_unique) = unique_indexes(connection, schema, table)?;
    let takes_rows = found.iter().all(|column| column.takes_rows);
    let engine = found
        .first()
        .and_then(|column| column.engine_without_transactions.clone());
    let columns = found.into_iter().map(|found| TableColumn {
        name: found.name,
        kind: Some(mysql_kind(&found.kind)),
        is_exact_number: is_exact_number(&found.kind),
        limit: mysql_limit(&found.kind),
        sql_type: found.kind,
        needs_value: found.needs_value,
        is_computed: found.is_computed,
        is_distinct: found.is_distinct,
    });
    Ok(Table {
        schema: None,
        columns: columns.collect(),
        inserts: takes_rows,
        updates: takes_rows,
        deletes: takes_rows,
        unique,
        has_unnamed_unique,
        holds_nan: false,
        engine_without_transactions: engine,
        database: None,
    })
}

/// Returns a statement that asks for a table: it has the schema and the name as its variables, any number of times.
fn catalogue_query<'a>(
    statement: &'a str,
    schema: Option<&'a str>,
    table: &'a str,
) -> BoxedSqlQuery<'a, Mysql, SqlQuery> {
    let mut query = diesel::sql_query(statement).into_boxed();
    for _ in 0..statement.matches('?').count() / 2 {
        query = query.bind::<Nullable<Text>, _>(schema).bind::<Text, _>(table);
    }
    query
}

/// Returns the columns of each unique index, and whether there are others: of an expression, or of the beginning of a text.
fn unique_indexes(
    connection: &mut MysqlConnection,
    schema: Option<&str>,
    table: &str,
) -> QueryResult<(Vec<Vec<String>>, bool)> {
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = Text)]
        index: String,
        #[diesel(sql_type = Nullable<Text>)]
        name: Option<String>,
    }
    let found: Vec<Found> = catalogue_query(UNIQUE_INDEXES, schema, table).load(connection)?;
    let has_unnamed = found.iter().any(|found| found.name.is_none());
    let named = grouped(found.into_iter().map(|found| (found.index, found.name)));
    Ok((named, has_unnamed))
}

/// Returns the type for the cast of a key that is sent as a text. MySQL, unlike MariaDB, compares a number with a text as floats. The
/// scale is larger than the scale of the column: a rounded key could be the key of another row.
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
) -> QueryResult<Changed> {
    let guard = (plan.mode == WriteMode::Upsert && plan.may_collide).then(|| guard(plan));
    let upserting = template(plan, kinds, &SYNTAX, |keys, values| {
        let first = keys.split(", ").next().unwrap_or_default();
        let values = SYNTAX.assignments(values, |name| format!("VALUES({name})"));
        let set: Vec<_> = guard.clone().into_iter().chain(values).collect();
        match set.as_slice() {
            [] => format!(" ON DUPLICATE KEY UPDATE {first} = {first}"),
            some => format!(" ON DUPLICATE KEY UPDATE {}", some.join(", ")),
        }
    });
    let changed = match guard {
        None => write_in_parts(connection, &upserting, plan, rows, &LIMITS)?,
        Some(_) => write_guarded(connection, &upserting, plan, kinds, rows)?,
    };
    Ok(match plan.mode {
        // An updated row of an upsert counts twice, or not at all. Triggers cannot leave out a row.
        WriteMode::Upsert => Changed {
            rows: rows.len(),
            items: rows.len(),
        },
        _ => changed,
    })
}

/// Runs an upsert with a guard. If the guard fails for a row, all are written one by one.
fn write_guarded(
    connection: &mut MysqlConnection,
    upserting: &Template,
    plan: &Plan,
    kinds: &[Kind],
    rows: &Rows,
) -> QueryResult<Changed> {
    connection.batch_execute("SAVEPOINT batch_upsert")?;
    match write_in_parts(connection, upserting, plan, rows, &LIMITS) {
        // Without the savepoint the transaction has ended: by a deadlock, for example.
        Err(Error::DatabaseError(DatabaseErrorKind::Unknown, _))
            if connection
                .batch_execute("ROLLBACK TO SAVEPOINT batch_upsert")
                .is_ok() =>
        {
            let rows_of_each = (0..rows.len()).map(|row| upsert_row(connection, plan, kinds, rows, row));
            let changed = rows_of_each.sum::<QueryResult<usize>>()?;
            Ok(Changed {
                rows: changed,
                items: rows.len(),
            })
        }
        done => done,
    }
}

/// Returns the first assignment of an upsert into a table with other unique indexes than the one of the key. `ON DUPLICATE KEY` means any of them:
/// it fails if the row that exists has another key, so that no other row is changed.
fn guard(plan: &Plan) -> String {
    let names: Vec<_> = plan.keys().map(|column| quoted(&column.name, '`')).collect();
    let has_key: Vec<_> = names
        .iter()
        .map(|name| format!("{name} <=> VALUES({name})"))
        .collect();
    let first = names.first().map_or("", String::as_str);
    format!(
        "{first} = IF({}, {first}, (SELECT {first} UNION ALL SELECT {first}))",
        has_key.join(" AND ")
    )
}

/// Updates or inserts one row by its key, after the guard has failed for one of several. If the row collides with another one, the error is that
/// of its index.
fn upsert_row(
    connection: &mut MysqlConnection,
    plan: &Plan,
    kinds: &[Kind],
    rows: &Rows,
    row: usize,
) -> QueryResult<usize> {
    let kind = |column: &super::plan::Column| {
        let index = plan.columns.iter().position(|other| other.field == column.field);
        (column.field, kinds[index.unwrap_or(0)])
    };
    if plan.values().next().is_some() {
        let table = super::plan::quoted_table(&plan.table, '`');
        let update = update(plan, &table, &SYNTAX, kind);
        let updated = update.with(rows, row, row + 1).execute(connection)?;
        if updated > 0 {
            return Ok(updated);
        }
    }
    let insert = template(plan, kinds, &SYNTAX, |_, _| String::new());
    insert.with(rows, row, row + 1).execute(connection)
}

#[cfg(test)]
mod tests {
    use batch_test_servers::{Kind as Server, shared};

    use super::*;

    // Spec: ITEM-TABLE-01
    #[test]
    fn no_table_of_another_database_is_opened() {
        #[derive(QueryableByName)]
        struct Part {
            #[diesel(sql_type = Text, column_name = Extra)]
            extra: String,
        }
        let url = shared(Server::Mariadb).new_database();
        let mut connection = MysqlConnection::establish(&url).unwrap();
        for (statement, parts) in [(DESCRIPTION, 5), (UNIQUE_INDEXES, 1)] {
            for schema in [None, Some("other")] {
                let explained = format!("EXPLAIN {statement}");
                let found: Vec<Part> = catalogue_query(&explained, schema, "t")
                    .load(&mut connection)
                    .unwrap();
                let all = found.iter().filter(|part| part.extra.contains("Scanned")).count();
                let none = found
                    .iter()
                    .filter(|part| part.extra.contains("Scanned 0 databases"))
                    .count();
                assert_eq!((all, none), (parts, parts), "{statement}");
            }
        }
    }

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
