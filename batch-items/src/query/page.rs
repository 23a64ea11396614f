//! The statements of a reader.

use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::sql_types::Untyped;

use super::position::Key;
use crate::bind::{Bind, Parameter};
use crate::record::Value;
use crate::rows::Kind;

/// A statement: texts, and the values between them.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    texts: Vec<String>,
    values: Vec<Value>,
}

/// How a database quotes names, and how it compares a key.
pub(super) struct KeySyntax {
    pub(super) quote: char,
    /// The types for casts of the values of the key; none where the database converts them.
    pub(super) casts: Vec<Option<String>>,
}

impl Statement {
    pub(super) fn new(texts: Vec<String>, values: Vec<Value>) -> Self {
        Self { texts, values }
    }

    fn push(&mut self, text: &str) {
        if let Some(last) = self.texts.last_mut() {
            last.push_str(text);
        }
    }

    fn push_value(&mut self, value: Value) {
        self.values.push(value);
        self.texts.push(String::new());
    }

    /// Returns a query for `what` of the rows of this one.
    pub(super) fn select(&self, what: &str, end: &str) -> Self {
        let mut select = self.clone();
        select.texts[0].insert_str(0, &format!("SELECT {what} FROM ("));
        // A comment at the end of the query must not hide the rest.
        select.push("\n) AS batch_page");
        select.push(end);
        select
    }

    /// Returns a query for the rows after a key, with the key of each.
    pub(super) fn page(&self, key: &[String], after: Option<&[Key]>, size: u32, syntax: &KeySyntax) -> Self {
        let mut page = self.select(&format!("batch_page.*{}", selected(key, syntax)), "");
        if let Some(after) = after {
            page.push_comparison(key, ">", after, syntax);
        }
        let list = quoted(key, syntax.quote).join(", ");
        page.push(&format!(" ORDER BY {list} LIMIT {size}"));
        page
    }

    /// Returns a query for no row: it fails if the query, or a column of the key, is wrong.
    pub(super) fn no_rows(&self, key: &[String], syntax: &KeySyntax) -> Self {
        self.select(selected(key, syntax).trim_start_matches(", "), " LIMIT 0")
    }

    /// Returns a query for the rows with a key: two at most.
    pub(super) fn rows_of(&self, key: &[String], of: &[Key], syntax: &KeySyntax) -> Self {
        let mut rows = self.select("batch_page.*", "");
        rows.push_comparison(key, "=", of, syntax);
        rows.push(" LIMIT 2");
        rows
    }

    /// Returns a query for the keys that the database takes for equal to one: two at most.
    pub(super) fn equal(&self, key: &[String], to: &[Key], syntax: &KeySyntax) -> Self {
        let mut equal = self.select(selected(key, syntax).trim_start_matches(", "), "");
        equal.push_comparison(key, "=", to, syntax);
        equal.push(" LIMIT 2");
        equal
    }

    fn push_comparison(&mut self, key: &[String], operator: &str, values: &[Key], syntax: &KeySyntax) {
        let list = quoted(key, syntax.quote).join(", ");
        self.push(&format!(" WHERE ({list}) {operator} ("));
        for (index, value) in values.iter().enumerate() {
            self.push(if index > 0 { ", " } else { "" });
            let decimal = match value {
                Key::Decimal(digits) => Some(exact_decimal(digits)),
                _ => None,
            };
            let cast = decimal
                .as_deref()
                .or_else(|| syntax.casts.get(index).and_then(Option::as_deref));
            self.push(if cast.is_some() { "CAST(" } else { "" });
            self.push_value(value.to_value());
            self.push(&cast.map(|cast| format!(" AS {cast})")).unwrap_or_default());
        }
        self.push(")");
    }

    /// Returns a query for the number of rows without a key.
    pub(super) fn without_key(&self, key: &[String], quote: char) -> Self {
        let conditions: Vec<_> = quoted(key, quote)
            .iter()
            .map(|column| format!("{column} IS NULL"))
            .collect();
        self.select(
            "COUNT(*) AS count",
            &format!(" WHERE {}", conditions.join(" OR ")),
        )
    }
}

/// Returns the decimal type of MySQL that holds a number of a column exactly: at most 65 digits, of which at most 30 follow the point.
fn exact_decimal(number: &str) -> String {
    let fraction = number.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    format!("DECIMAL(65, {fraction})")
}

/// The beginning of the names of the key's columns in a page.
pub(super) const KEY: &str = "batch_key_";

/// Returns the columns of the key with their names in a page, each after a comma.
fn selected(key: &[String], syntax: &KeySyntax) -> String {
    let columns = quoted(key, syntax.quote).into_iter().enumerate();
    columns
        .map(|(index, column)| format!(", {column} AS {KEY}{index}"))
        .collect()
}

pub(super) fn quoted(names: &[String], quote: char) -> Vec<String> {
    let escaped = |name: &String| name.replace(quote, &format!("{quote}{quote}"));
    names
        .iter()
        .map(|name| format!("batch_page.{quote}{}{quote}", escaped(name)))
        .collect()
}

impl QueryId for Statement {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

/// The columns are found by name.
impl Query for Statement {
    type SqlType = Untyped;
}

impl<DB: Bind> QueryFragment<DB> for Statement {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let mut values = self.values.iter();
        for text in &self.texts {
            out.push_sql(text);
            let Some(value) = values.next() else { continue };
            let parameter = match value {
                Value::Null => Parameter::Null(Kind::Text),
                Value::Bool(value) => Parameter::Bool(value),
                Value::Int(value) => Parameter::Int(value),
                Value::Float(value) => Parameter::Float(value),
                Value::Text(value) | Value::Json(value) | Value::Decimal(value) => Parameter::Text(value),
                Value::Bytes(value) => Parameter::Bytes(value),
            };
            DB::bind(&mut out, parameter)?;
        }
        Ok(())
    }
}
