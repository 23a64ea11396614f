//! Statements with a place for each value, of databases whose placeholder is `?`.

use diesel::connection::Connection;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::result::QueryResult;

use super::plan::{Changed, Column, Plan, quoted, quoted_list, quoted_table};
use super::prepared::{TextNumber, execute};
use super::settings::WriteMode;
use crate::bind::{Bind, Parameter};
use crate::rows::{Cell, Kind, Rows};

/// A statement for any number of rows.
pub(super) struct Template {
    pub(super) head: String,
    /// The texts around the values of a row: one more than there are values.
    pub(super) row: Vec<String>,
    /// The fields of a row, and the types of their values.
    pub(super) fields: Vec<(usize, Kind)>,
    pub(super) between: &'static str,
    pub(super) tail: String,
}

impl Template {
    /// Returns the number of the text for so many rows.
    fn text_number(&self, rows: usize) -> TextNumber {
        let row = self.row.join("?");
        let rows = vec![row; rows].join(self.between);
        TextNumber::of(format!("{}{rows}{}", self.head, self.tail))
    }

    /// Returns the statement for the rows `from..to`.
    pub(super) fn with<'t>(&'t self, rows: &'t Rows, from: usize, to: usize) -> Statement<'t> {
        Statement {
            template: self,
            rows,
            from,
            to,
        }
    }
}

/// A statement with its values. It is prepared once for each number of rows: the values have the types of the template,
/// also of null.
pub(super) struct Statement<'t> {
    template: &'t Template,
    rows: &'t Rows,
    from: usize,
    to: usize,
}

impl QueryId for Statement<'_> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<C> RunQueryDsl<C> for Statement<'_> {}

impl<DB: Bind> QueryFragment<DB> for Statement<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let Template {
            head,
            row,
            fields,
            between,
            tail,
        } = self.template;
        out.push_sql(head);
        for index in self.from..self.to {
            if index > self.from {
                out.push_sql(between);
            }
            let mut texts = row.iter();
            for (field, kind) in fields {
                out.push_sql(texts.next().map_or("", String::as_str));
                let cell = self.rows.cell(index, *field);
                DB::bind(&mut out, parameter(self.rows, cell, *kind))?;
            }
            out.push_sql(texts.next().map_or("", String::as_str));
        }
        out.push_sql(tail);
        Ok(())
    }
}

/// Returns a value as a parameter of the type of its column.
fn parameter<'r>(rows: &'r Rows, cell: &'r Cell, kind: Kind) -> Parameter<'r> {
    match (kind, cell) {
        (Kind::Any | Kind::AnyNumeric, cell) => match cell {
            Cell::Null => Parameter::Null(Kind::Text),
            Cell::Bool(value) => Parameter::Bool(value),
            Cell::Int(value) => Parameter::Int(value),
            Cell::Float(value) => Parameter::Float(value),
            Cell::Text(range) => Parameter::Text(rows.text(range)),
            Cell::Bytes(range) => Parameter::Bytes(rows.slice(range)),
        },
        (Kind::Bool, Cell::Bool(value)) => Parameter::Bool(value),
        (Kind::Int, Cell::Int(value)) => Parameter::Int(value),
        (Kind::Float, Cell::Float(value)) => Parameter::Float(value),
        (Kind::Decimal | Kind::ShortDecimal | Kind::Temporal(..) | Kind::Text, Cell::Text(range)) => {
            Parameter::Text(rows.text(range))
        }
        (Kind::Bytes, Cell::Bytes(range)) => Parameter::Bytes(rows.slice(range)),
        _ => Parameter::Null(kind),
    }
}

/// The limits of one statement.
pub(super) struct Limits {
    /// The most rows: more are not faster.
    pub(super) rows: usize,
    /// The most values: the database rejects more.
    pub(super) values: usize,
}

/// The rows of a statement for those that are left over. It is also the usual size of a chunk.
const FEW: usize = 10;

/// Runs the statement for as many rows as the limits allow, for `FEW` of the remaining ones, and for the last ones one by one, so that three
/// texts are prepared; or for each row alone, if the plan says so.
pub(super) fn write_in_parts<C>(
    connection: &mut C,
    template: &Template,
    plan: &Plan,
    rows: &Rows,
    limits: &Limits,
) -> QueryResult<Changed>
where
    C: Connection<Backend: Bind>,
{
    if plan.is_counted_alone {
        let number = template.text_number(1);
        return Changed::one_by_one(rows.len(), |row| {
            execute(connection, template.with(rows, row, row + 1), number)
        });
    }
    // An update has one row.
    let most = match plan.mode {
        WriteMode::Update => 1,
        _ => (limits.values / template.fields.len()).clamp(1, limits.rows),
    };
    let (mut changed, mut from) = (0, 0);
    for count in [most, FEW.min(most), 1] {
        if rows.len() - from < count {
            continue;
        }
        let number = template.text_number(count);
        while rows.len() - from >= count {
            let statement = template.with(rows, from, from + count);
            changed += execute(connection, statement, number)?;
            from += count;
        }
    }
    Ok(Changed {
        rows: changed,
        items: rows.len(),
    })
}

/// How a database writes statements.
pub(super) struct StatementSyntax {
    /// The words that begin statements, before the name of the table.
    pub(super) insert: &'static str,
    pub(super) update: &'static str,
    /// The quote around names.
    pub(super) quote: char,
    /// The words before a list of rows after `IN`.
    pub(super) values: &'static str,
    /// Returns the type for the cast of a key, so that it is compared exactly.
    pub(super) key_cast: fn(&Column) -> Option<String>,
    /// Returns the texts around a value that is added to a column, from the name of the column.
    pub(super) add: fn(&str) -> (String, String),
}

/// A column that an upsert sets.
pub(super) struct UpsertColumn {
    name: String,
    is_added: bool,
}

impl StatementSyntax {
    /// Returns the assignments of an upsert. `new` returns the new value of a column, from its name.
    pub(super) fn assignments(&self, columns: &[UpsertColumn], new: impl Fn(&str) -> String) -> Vec<String> {
        let assignment = |UpsertColumn { name, is_added }: &UpsertColumn| match is_added {
            true => {
                let (before, after) = (self.add)(name);
                format!("{name} = {before}{}{after}", new(name))
            }
            false => format!("{name} = {}", new(name)),
        };
        columns.iter().map(assignment).collect()
    }
}

/// Returns the statement of a plan. `upsert` returns its end, from the names of the key and of the other columns.
pub(super) fn template(
    plan: &Plan,
    kinds: &[Kind],
    syntax: &StatementSyntax,
    upsert: impl FnOnce(&str, &[UpsertColumn]) -> String,
) -> Template {
    let quote = syntax.quote;
    let table = quoted_table(&plan.table, quote);
    let kind = |column: &Column| {
        let index = plan.columns.iter().position(|other| other.field == column.field);
        (column.field, kinds[index.unwrap_or(0)])
    };
    match plan.mode {
        WriteMode::Insert | WriteMode::Upsert => Template {
            head: format!(
                "{} {table} ({}) VALUES ",
                syntax.insert,
                quoted_list(plan.columns.iter(), quote)
            ),
            row: list(plan.columns.iter(), |_| None),
            fields: plan.columns.iter().map(kind).collect(),
            between: ", ",
            tail: match plan.mode {
                WriteMode::Upsert => {
                    let assigned = plan.values().map(|column| UpsertColumn {
                        name: quoted(&column.name, quote),
                        is_added: column.is_added,
                    });
                    let values: Vec<_> = assigned.collect();
                    upsert(&quoted_list(plan.keys(), quote), &values)
                }
                _ => String::new(),
            },
        },
        WriteMode::Update => update(plan, &table, syntax, kind),
        WriteMode::Delete => Template {
            head: format!(
                "DELETE FROM {table} WHERE ({}) IN ({}",
                quoted_list(plan.keys(), quote),
                syntax.values
            ),
            row: list(plan.keys(), syntax.key_cast),
            fields: plan.keys().map(kind).collect(),
            between: ", ",
            tail: ")".to_owned(),
        },
    }
}

/// Returns the texts around the values of a row in parentheses.
fn list<'c>(
    columns: impl Iterator<Item = &'c Column>,
    cast: impl Fn(&Column) -> Option<String>,
) -> Vec<String> {
    let mut texts = Vec::new();
    let mut text = "(".to_owned();
    for (index, column) in columns.enumerate() {
        let before = if index == 0 { "" } else { ", " };
        push_value(&mut texts, &mut text, before, cast(column));
    }
    texts.push(text + ")");
    texts
}

/// Ends a text before a value, and begins the next one.
fn push_value(texts: &mut Vec<String>, text: &mut String, before: &str, cast: Option<String>) {
    text.push_str(before);
    let after = match cast {
        Some(cast) => {
            text.push_str("CAST(");
            format!(" AS {cast})")
        }
        None => String::new(),
    };
    texts.push(std::mem::replace(text, after));
}

/// Returns the statement that updates one row.
pub(super) fn update(
    plan: &Plan,
    table: &str,
    syntax: &StatementSyntax,
    kind: impl Fn(&Column) -> (usize, Kind),
) -> Template {
    let name = |column: &Column| quoted(&column.name, syntax.quote);
    let (mut row, mut text) = (Vec::new(), format!("{} {table} SET ", syntax.update));
    for (index, column) in plan.values().enumerate() {
        let before = if index == 0 { "" } else { ", " };
        let name = name(column);
        if column.is_added {
            let (start, end) = (syntax.add)(&name);
            let cast = (syntax.key_cast)(column);
            push_value(&mut row, &mut text, &format!("{before}{name} = {start}"), cast);
            text.push_str(&end);
        } else {
            push_value(&mut row, &mut text, &format!("{before}{name} = "), None);
        }
    }
    for (index, column) in plan.keys().enumerate() {
        let before = if index == 0 { " WHERE " } else { " AND " };
        let cast = (syntax.key_cast)(column);
        push_value(&mut row, &mut text, &format!("{before}{} = ", name(column)), cast);
    }
    row.push(text);
    Template {
        head: String::new(),
        row,
        fields: plan.values().chain(plan.keys()).map(kind).collect(),
        between: "; ",
        tail: String::new(),
    }
}
