//! Writing to tables of PostgreSQL: one statement for all rows, with an array for each column, or `COPY` for many rows.

use std::collections::HashMap;

use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Array, BigInt, Binary, Bool, Double, Integer, Nullable, Text};

use super::catalogue::{Table, TableColumn};
use super::copy;
use super::declared::{is_exact_number, postgres_kind, postgres_limit};
use super::plan::{Changed, Column, Plan, quoted, quoted_list, quoted_table};
use super::settings::{RowsAffected, WriteMode};
use crate::record::decimal;
use crate::rows::{Cell, Kind, Rows, Temporal};

/// Returns a table as the server describes it; without columns, if it does not exist.
pub(super) fn describe(connection: &mut PgConnection, table: &str) -> QueryResult<Table> {
    let description = Description {
        table: quoted_table(table, '"'),
    };
    let found: Vec<Described> = description.load(connection)?;
    let first = found.first();
    let takes = |bit: i32| first.is_some_and(|column| column.statements & bit != 0);
    // Indexes are separated by `;`, and the numbers of their columns by blanks.
    let indexes = first.map_or("", |column| &column.indexes).split(';');
    let name_of = |number: &str| {
        let column = found.iter().find(|column| column.number.to_string() == number);
        column.map(|column| column.name.clone())
    };
    let unique =
        indexes.filter_map(|index| index.split_whitespace().map(name_of).collect::<Option<Vec<_>>>());
    let table = Table {
        schema: first.map(|column| column.schema.clone()),
        inserts: takes(8),
        updates: takes(4),
        deletes: takes(16),
        unique: unique.filter(|index| !index.is_empty()).collect(),
        has_unnamed_unique: false,
        holds_nan: true,
        columns: Vec::new(),
        engine_without_transactions: None,
        database: None,
    };
    let columns = found.into_iter().map(|column| TableColumn {
        name: column.name,
        kind: Some(postgres_kind(&column.kind)),
        is_exact_number: is_exact_number(&column.kind),
        limit: postgres_limit(&column.kind, column.modifier),
        sql_type: column.kind,
        needs_value: column.needs_value,
        is_computed: column.is_computed,
        is_distinct: false,
    });
    Ok(Table {
        columns: columns.collect(),
        ..table
    })
}

/// A column, with its table.
#[derive(Queryable)]
struct Described {
    name: String,
    kind: String,
    schema: String,
    number: i32,
    needs_value: bool,
    is_computed: bool,
    /// The statements that the table takes.
    statements: i32,
    indexes: String,
    /// The modifier of the type; of `money` the digits after the point.
    modifier: i32,
}

/// Selects the columns with what a writer needs to know of the table: a trigger before the insert may supply a value. Each partition has a writer
/// of its own, so the connection keeps the statement.
#[derive(QueryId)]
struct Description {
    table: String,
}

impl Query for Description {
    type SqlType = (Text, Text, Text, Integer, Bool, Bool, Integer, Text, Integer);
}

impl RunQueryDsl<PgConnection> for Description {}

impl QueryFragment<Pg> for Description {
    // A cast to `varchar(5)`, or a domain of it, would cut a text; to the type without its length, it leaves the check to the column. The server estimates
    // the same costs whatever the result of the subquery is, so it plans the statement once for a connection.
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "SELECT attname::text, format_type(base.oid, -1), (SELECT nspname::text FROM pg_class JOIN pg_namespace \
             ON pg_namespace.oid = relnamespace WHERE pg_class.oid = attrelid), attnum::int, attnotnull AND NOT atthasdef AND attidentity = '' \
             AND NOT EXISTS (SELECT FROM pg_type WHERE pg_type.oid = atttypid AND typdefault IS NOT NULL) \
             AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = attrelid AND tgtype & 2 = 2 AND NOT tgisinternal), \
             attgenerated <> '' OR attidentity = 'a' OR NOT pg_column_is_updatable(attrelid, attnum, true), \
             pg_relation_is_updatable(attrelid, true) & (CASE WHEN has_any_column_privilege(attrelid, 'INSERT') THEN 8 ELSE 0 END \
             | CASE WHEN has_any_column_privilege(attrelid, 'UPDATE') THEN 4 ELSE 0 END | CASE WHEN has_table_privilege(attrelid, 'DELETE') THEN 16 ELSE 0 END), \
             COALESCE((SELECT string_agg(array_to_string((indkey::int2[])[0:indnkeyatts - 1], ' '), ';') FROM pg_index WHERE indrelid = attrelid \
             AND indisunique AND indisvalid AND indimmediate AND indpred IS NULL AND indexprs IS NULL), ''), \
             CASE base.oid WHEN 'money'::regtype THEN scale(0::money::numeric) ELSE base.modifier END FROM pg_attribute \
             CROSS JOIN LATERAL (WITH RECURSIVE types (oid, modifier, depth) AS (SELECT atttypid, atttypmod, 0 UNION ALL \
             SELECT typbasetype, typtypmod, depth + 1 FROM types JOIN pg_type ON pg_type.oid = types.oid WHERE typtype = 'd') \
             SELECT oid, modifier FROM types ORDER BY depth DESC LIMIT 1) AS base WHERE attrelid = (SELECT to_regclass(",
        );
        out.push_bind_param::<Text, _>(&self.table)?;
        out.push_sql(")) AND attnum > 0 AND NOT attisdropped ORDER BY attnum");
        Ok(())
    }
}

/// Runs the statement for the rows, and returns how many were changed.
pub(super) fn execute(
    connection: &mut PgConnection,
    plan: &Plan,
    kinds: &[Kind],
    rows: &Rows,
) -> QueryResult<Changed> {
    let items = rows.len();
    let has_money = plan
        .columns
        .iter()
        .any(|column| column.kind == Some(Kind::Decimal));
    if plan.mode == WriteMode::Insert
        && items >= copy::ROWS
        && !has_money
        && copy::is_possible(connection, &plan.table)?
    {
        let rows = copy::insert(connection, plan, rows)?;
        return Ok(Changed { rows, items });
    }
    let mut run = |selected: Option<&[usize]>| statement(plan, kinds, rows, selected).execute(connection);
    if plan.is_counted_alone {
        return Changed::one_by_one(items, |row| run(Some(&[row])));
    }
    // A statement must not change a row twice: the last item with a key counts, unless its values are added.
    let rows = match plan.mode {
        WriteMode::Insert => run(None)?,
        // The counts are not checked, and the database may take keys with different texts for equal: one update would use one of their rows.
        _ if !plan.keys().all(has_one_text)
            || plan.rows_affected == RowsAffected::Ignore
                && plan.columns.iter().any(|column| column.is_added) =>
        {
            let each = (0..items).map(|row| run(Some(&[row])));
            each.sum::<QueryResult<usize>>()?
        }
        _ if plan.columns.iter().any(|column| column.is_added) => {
            let rounds = rounds(plan, rows);
            let rounds = rounds.iter().map(|selected| run(Some(selected)));
            rounds.sum::<QueryResult<usize>>()?
        }
        _ => match last_of_each_key(plan, rows) {
            None => run(None)?,
            Some(selected) => run(Some(&selected))? + items - selected.len(),
        },
    };
    Ok(Changed { rows, items })
}

/// Returns whether two values of a column are equal only if [`key_text`] shows them alike. Rows with other keys are written one by one.
fn has_one_text(column: &Column) -> bool {
    let other = !matches!(
        column.sql_type.as_str(),
        "text" | "character varying" | "numeric" | "uuid"
    );
    match column.kind {
        Some(Kind::Text | Kind::Decimal) => !other,
        Some(Kind::Temporal(kind, _)) => kind == Temporal::Date,
        _ => true,
    }
}

/// Returns the text of a value of a key.
fn key_text(column: &Column, shown: &str) -> String {
    match column.sql_type.as_str() {
        "numeric" => decimal::canonical(shown).unwrap_or_else(|| shown.to_owned()),
        "uuid" => shown.to_ascii_lowercase().replace(['{', '}', '-'], ""),
        _ => shown.to_owned(),
    }
}

/// Returns the statement for the selected rows, or for all.
fn statement<'r>(plan: &Plan, kinds: &[Kind], rows: &'r Rows, selected: Option<&[usize]>) -> Statement<'r> {
    let arrays = plan.columns.iter().zip(kinds);
    Statement {
        parts: parts(plan),
        arrays: arrays
            .map(|(column, kind)| array(rows, column.field, *kind, selected))
            .collect(),
    }
}

/// Returns the indexes of the rows without those whose key occurs again later; `None` if no key does.
fn last_of_each_key(plan: &Plan, rows: &Rows) -> Option<Vec<usize>> {
    let mut last: HashMap<Vec<String>, usize> = HashMap::with_capacity(rows.len());
    let mut scratch = String::new();
    for row in 0..rows.len() {
        last.insert(key_texts(plan, rows, row, &mut scratch), row);
    }
    if last.len() == rows.len() {
        return None;
    }
    let mut selected: Vec<usize> = last.into_values().collect();
    selected.sort_unstable();
    Some(selected)
}

/// Returns the indexes of the rows in rounds: the first rows of all keys, then their second ones, and so on.
fn rounds(plan: &Plan, rows: &Rows) -> Vec<Vec<usize>> {
    let mut occurrences: HashMap<Vec<String>, usize> = HashMap::with_capacity(rows.len());
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    let mut scratch = String::new();
    for row in 0..rows.len() {
        let key = key_texts(plan, rows, row, &mut scratch);
        let occurrence = occurrences.entry(key).or_default();
        if *occurrence == rounds.len() {
            rounds.push(Vec::new());
        }
        rounds[*occurrence].push(row);
        *occurrence += 1;
    }
    rounds
}

/// Returns the texts of the key of a row.
fn key_texts(plan: &Plan, rows: &Rows, row: usize, scratch: &mut String) -> Vec<String> {
    plan.keys()
        .map(|column| key_text(column, rows.shown(row, column.field, scratch)))
        .collect()
}

/// Returns the statement: the texts around the list of the arrays. `SELECT UNNEST($1), UNNEST($2)` yields the rows one by one; `FROM UNNEST($1, $2)`
/// would store them first, which makes an insert take half as long again.
fn parts(plan: &Plan) -> (String, String) {
    let table = quoted_table(&plan.table, '"');
    let name = |column: &Column| quoted(&column.name, '"');
    let value = |(index, column): (usize, &Column)| match column.sql_type.as_str() {
        money if column.kind == Some(Kind::Decimal) => format!("CAST(CAST(c{index} AS numeric) AS {money})"),
        "text" | "boolean" | "bigint" | "double precision" | "bytea" => format!("c{index}"),
        other => format!("CAST(c{index} AS {other})"),
    };
    let values: Vec<_> = plan.columns.iter().enumerate().map(value).collect();
    let end = ") AS batch_rows";
    let select = |names: bool| {
        let columns = values.iter().zip(&plan.columns);
        let columns = columns.map(|(value, column)| {
            if names {
                format!("{value} AS {}", name(column))
            } else {
                value.clone()
            }
        });
        format!("SELECT {} FROM (SELECT ", columns.collect::<Vec<_>>().join(", "))
    };
    let matching: Vec<_> = plan
        .keys()
        .map(|key| format!("{table}.{0} = batch_new.{0}", name(key)))
        .collect();
    let matching = matching.join(" AND ");
    let set = |source: &str| assignments(plan, &table, source);
    match plan.mode {
        WriteMode::Insert | WriteMode::Upsert => {
            let head = format!(
                "INSERT INTO {table} ({}) {}",
                quoted_list(plan.columns.iter(), '"'),
                select(false)
            );
            let keys = quoted_list(plan.keys(), '"');
            let first = plan.keys().next().map(name).unwrap_or_default();
            let tail = match plan.mode {
                WriteMode::Insert => String::new(),
                // An update, so that it counts.
                _ if plan.values().next().is_none() => {
                    format!(" ON CONFLICT ({keys}) DO UPDATE SET {first} = {table}.{first}")
                }
                _ => format!(" ON CONFLICT ({keys}) DO UPDATE SET {}", set("excluded")),
            };
            (head, format!("{end}{tail}"))
        }
        WriteMode::Update => (
            format!("UPDATE {table} SET {} FROM ({}", set("batch_new"), select(true)),
            format!("{end}) AS batch_new WHERE {matching}"),
        ),
        WriteMode::Delete => (
            format!("DELETE FROM {table} USING ({}", select(true)),
            format!("{end}) AS batch_new WHERE {matching}"),
        ),
    }
}

/// Returns the assignments of an update.
fn assignments(plan: &Plan, table: &str, source: &str) -> String {
    let columns = plan.values().map(|column| {
        let name = quoted(&column.name, '"');
        match column.is_added {
            true => format!("{name} = COALESCE({table}.{name}, 0) + {source}.{name}"),
            false => format!("{name} = {source}.{name}"),
        }
    });
    columns.collect::<Vec<_>>().join(", ")
}

/// The values of a column.
enum Values<'r> {
    Bool(Vec<Option<bool>>),
    Int(Vec<Option<i64>>),
    Float(Vec<Option<f64>>),
    Text(Vec<Option<&'r str>>),
    Bytes(Vec<Option<&'r [u8]>>),
}

fn array<'r>(rows: &'r Rows, field: usize, kind: Kind, selected: Option<&[usize]>) -> Values<'r> {
    fn collect<'r, T>(
        rows: &'r Rows,
        field: usize,
        selected: Option<&[usize]>,
        value: impl Fn(&'r Cell) -> Option<T>,
    ) -> Vec<Option<T>> {
        let cell = |row| value(rows.cell(row, field));
        match selected {
            None => (0..rows.len()).map(cell).collect(),
            Some(selected) => selected.iter().copied().map(cell).collect(),
        }
    }
    macro_rules! values {
        ($variant:ident, $value:ident => $converted:expr) => {
            Values::$variant(collect(rows, field, selected, |cell| match cell {
                Cell::$variant($value) => Some($converted),
                _ => None,
            }))
        };
    }
    match kind {
        Kind::Bool => values!(Bool, value => *value),
        Kind::Int => values!(Int, value => *value),
        Kind::Float => values!(Float, value => *value),
        Kind::Bytes => values!(Bytes, range => rows.slice(range)),
        _ => values!(Text, range => rows.text(range)),
    }
}

/// A statement with its arrays. Its text does not depend on the number of rows, so it is prepared once.
struct Statement<'r> {
    parts: (String, String),
    arrays: Vec<Values<'r>>,
}

impl QueryId for Statement<'_> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl RunQueryDsl<PgConnection> for Statement<'_> {}

impl QueryFragment<Pg> for Statement<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(&self.parts.0);
        for (index, values) in self.arrays.iter().enumerate() {
            out.push_sql(if index > 0 { ", UNNEST(" } else { "UNNEST(" });
            match values {
                Values::Bool(values) => out.push_bind_param::<Array<Nullable<Bool>>, _>(values)?,
                Values::Int(values) => out.push_bind_param::<Array<Nullable<BigInt>>, _>(values)?,
                Values::Float(values) => out.push_bind_param::<Array<Nullable<Double>>, _>(values)?,
                Values::Text(values) => out.push_bind_param::<Array<Nullable<Text>>, _>(values)?,
                Values::Bytes(values) => out.push_bind_param::<Array<Nullable<Binary>>, _>(values)?,
            }
            out.push_sql(") AS c");
            out.push_sql(&index.to_string());
        }
        out.push_sql(&self.parts.1);
        Ok(())
    }
}
