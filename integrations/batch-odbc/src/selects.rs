//! The queries of the reader.

use batch_items::database::quoted;
use batch_items::query::{Key, QueryError};
use batch_items::record::Value;
use odbc_api::DataType;

use crate::columns::Column;
use crate::dialect::Dialect;
use crate::parameters::{self, Parameter};

/// A query, and the values of its parameters in their order.
#[derive(Clone)]
pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) values: Vec<Value>,
    /// Those that are compared with the key, with the types of its columns.
    pub(crate) keys: Vec<(Key, DataType)>,
}

impl Statement {
    pub(crate) fn parameters(&self, dialect: &Dialect) -> Vec<Parameter<'_>> {
        let values = self
            .values
            .iter()
            .map(|value| parameters::of_value(value, dialect));
        let keys = self
            .keys
            .iter()
            .map(|(key, data_type)| parameters::of_key(key, *data_type, dialect));
        values.chain(keys).collect()
    }
}

/// The query of a reader, and what its pages need.
pub(crate) struct Selects {
    pub(crate) dialect: &'static Dialect,
    pub(crate) quote: char,
    pub(crate) query: Statement,
    /// The columns of its result.
    pub(crate) columns: Vec<Column>,
    /// The columns of the key; empty without one.
    pub(crate) key: Vec<Column>,
}

impl Selects {
    /// Fails if the driver would change values of a column, which only a page can cast.
    pub(crate) fn check_lossy(&self) -> Result<(), QueryError> {
        let found = self
            .columns
            .iter()
            .find_map(|column| Some((column, column.lossy(self.dialect)?)));
        let Some((column, cast)) = found else {
            return Ok(());
        };
        let cast = cast.replace("{}", &quoted(&column.name, self.quote));
        let cause = format!(
            "the driver changes values of the type of `{}`; set `key`, or select `{cast} AS {}`",
            column.name, column.name
        );
        Err(QueryError::new("read the query", cause))
    }

    /// Returns a query for the first rows after a key, with the key of each.
    pub(crate) fn page(&self, last: Option<&[Key]>, size: usize) -> Statement {
        let mut list: Vec<_> = self
            .columns
            .iter()
            .map(|column| format!("{} AS {}", self.read(column), quoted(&column.name, self.quote)))
            .collect();
        for (index, column) in self.key.iter().enumerate() {
            list.push(format!("{} AS batch_key_{index}", self.read(column)));
        }
        let mut page = self.select(&list.join(", "));
        if let Some((greater, values)) = last.map(|last| self.after(last)) {
            page.text.push_str(&format!(" WHERE {greater}"));
            page.keys = values;
        }
        let order: Vec<_> = self.key.iter().map(|column| self.qualified(column)).collect();
        page.text.push_str(&format!(" ORDER BY {}", order.join(", ")));
        page.text
            .push_str(&self.dialect.first_rows.replace("{}", &size.to_string()));
        page
    }

    /// Returns a query for `what` of the rows of the query.
    fn select(&self, what: &str) -> Statement {
        Statement {
            // A comment at the end of the query must not hide the rest. Oracle knows no AS here.
            text: format!("SELECT {what} FROM ({}\n) batch_page", self.query.text),
            values: self.query.values.clone(),
            keys: Vec::new(),
        }
    }

    /// Returns the condition that a key is greater, column by column, as not every database compares lists; with the values that it compares.
    fn after(&self, key: &[Key]) -> (String, Vec<(Key, DataType)>) {
        let (mut alternatives, mut values) = (Vec::new(), Vec::new());
        for end in 0..self.key.len() {
            let mut parts: Vec<_> = self.key[..end]
                .iter()
                .map(|column| format!("{} = ?", self.qualified(column)))
                .collect();
            parts.push(format!("{} > ?", self.qualified(&self.key[end])));
            alternatives.push(format!("({})", parts.join(" AND ")));
            let compared = self.key.iter().zip(key).take(end + 1);
            values.extend(compared.map(|(column, key)| (key.clone(), column.data_type)));
        }
        (format!("({})", alternatives.join(" OR ")), values)
    }

    /// Returns a query for the number of rows that the database takes for equal to a key.
    pub(crate) fn equal(&self, key: &[Key]) -> Statement {
        let mut equal = self.select("COUNT(*)");
        let parts: Vec<_> = self
            .key
            .iter()
            .map(|column| format!("{} = ?", self.qualified(column)))
            .collect();
        equal.text.push_str(&format!(" WHERE {}", parts.join(" AND ")));
        let compared = self.key.iter().zip(key);
        equal
            .keys
            .extend(compared.map(|(column, key)| (key.clone(), column.data_type)));
        equal
    }

    /// Returns a query for the number of rows with a key after one, up to another. The database compares them here, and orders them in a page:
    /// if the two differ, as for an ENUM of MySQL, pages would lack rows or repeat them.
    pub(crate) fn count_in_page(&self, after: Option<&[Key]>, last: &[Key]) -> Statement {
        let mut page = self.select("COUNT(*)");
        let (beyond, ends) = self.after(last);
        let mut condition = format!("NOT {beyond}");
        if let Some((greater, values)) = after.map(|after| self.after(after)) {
            condition = format!("{greater} AND {condition}");
            page.keys = values;
        }
        page.keys.extend(ends);
        page.text.push_str(&format!(" WHERE {condition}"));
        page
    }

    /// Returns a query for the number of rows without a key.
    pub(crate) fn without_key(&self) -> Statement {
        let mut without = self.select("COUNT(*)");
        let parts: Vec<_> = self
            .key
            .iter()
            .map(|column| format!("{} IS NULL", self.qualified(column)))
            .collect();
        without.text.push_str(&format!(" WHERE {}", parts.join(" OR ")));
        without
    }

    fn qualified(&self, column: &Column) -> String {
        format!("batch_page.{}", quoted(&column.name, self.quote))
    }

    /// Returns the expression that reads a column as it is.
    fn read(&self, column: &Column) -> String {
        let name = self.qualified(column);
        match column.lossy(self.dialect) {
            Some(cast) => cast.replace("{}", &name),
            None => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use batch_runtime::destination::Markers;

    use super::*;
    use crate::dialect::COMPARED;

    /// Oracle, SQL Server and DB2 are not there for tests: their statements are.
    // Spec: ODBC-06
    #[test]
    fn queries_and_markers_of_each_database() {
        let mut shown = String::new();
        for (database, quote) in COMPARED {
            let dialect = Dialect::of(database);
            let columns = vec![
                Column::new("ID", DataType::Integer, dialect),
                Column::new("AT", DataType::Timestamp { precision: 6 }, dialect),
                Column::new("RATE", DataType::Double, dialect),
            ];
            let selects = Selects {
                dialect,
                quote: *quote,
                query: Statement {
                    text: "SELECT * FROM T WHERE REGION = ?".to_owned(),
                    values: vec![Value::from("EU")],
                    keys: Vec::new(),
                },
                key: columns[..2].to_vec(),
                columns,
            };
            let last = [Key::Int(7), Key::Text("2026-11-30 10:00:00".to_owned())];
            writeln!(shown, "-- {database}").unwrap();
            for statement in [
                selects.page(None, 1000),
                selects.page(Some(&last), 1000),
                selects.equal(&last),
                selects.count_in_page(Some(&last), &last),
                selects.without_key(),
            ] {
                writeln!(shown, "{}\n    {:?}", statement.text, statement.keys).unwrap();
            }
            writeln!(shown, "{:#?}", Markers::new(dialect.markers, Markers::TABLE)).unwrap();
        }
        insta::assert_snapshot!(shown);
    }
}
