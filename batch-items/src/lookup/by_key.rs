//! A look-up that asks the database for each key.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use batch_runtime::destination::DatabaseName;
use batch_runtime::prelude::*;
use serde::de::DeserializeOwned;

use super::UnknownKey;
use crate::query::{KeyedQuery, Parameters, Query};
use crate::record::{Value, value_of};

/// The rows of a query by their key, asked for one by one: for tables that are too large for a [`Lookup`](crate::Lookup), or if a step needs few of the rows.
///
/// | property | default | |
/// |---|---|---|
/// | `query` | required | a SELECT of all rows, as of [`QueryItemReader`](crate::QueryItemReader); an index on the key keeps each question fast |
/// | `parameters` | none | the values of the parameters |
/// | `key` | required | the column of the key |
/// | `database` | the repository | the name or the URL of another database |
///
/// The connection is the look-up's own: it sees what is committed, and not what the chunk has written. Up to 10,000 answers are kept,
/// then all are dropped: a row that changes meanwhile may be found as it was.
///
/// ```
/// use batch_items::KeyLookup;
/// use batch_runtime::prelude::*;
/// # #[derive(Clone)]
/// # struct Line { account: String }
/// # struct Posting { customer: String }
///
/// #[derive(Clone, serde::Deserialize)]
/// struct Account {
///     customer: String,
/// }
///
/// #[item_processor("Postings")]
/// fn post(
///     line: Line,
///     #[batch_artifact(prefix = "accounts.")] accounts: &KeyLookup<Account>,
/// ) -> Result<Option<Posting>, BatchError> {
///     let account = accounts.require(line.account.as_str())?;
///     Ok(Some(Posting { customer: account.customer }))
/// }
/// ```
#[derive(BatchArtifact)]
pub struct KeyLookup<V> {
    #[batch_property(name = "query")]
    query: Query,
    #[batch_property(name = "parameters", value = "")]
    parameters: Parameters,
    #[batch_property(name = "key")]
    key: KeyColumn,
    #[batch_property(name = "database", value = "")]
    database: DatabaseName,
    #[batch_context]
    job: JobContext,
    #[default(Mutex::new(Answers { query: None, rows: HashMap::new() }))]
    answers: Mutex<Answers<V>>,
}

struct Answers<V> {
    query: Option<KeyedQuery>,
    /// The answers by the texts of the keys.
    rows: HashMap<String, Option<V>>,
}

/// The most answers that are kept.
const MOST_ANSWERS: usize = 10_000;

/// The column of a key.
struct KeyColumn([String; 1]);

impl std::str::FromStr for KeyColumn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            column if column.is_empty() || column.contains(',') => Err("expected one column".to_owned()),
            column => Ok(Self([column.to_owned()])),
        }
    }
}

impl<V: DeserializeOwned + Clone + 'static> KeyLookup<V> {
    /// Returns the row with a key.
    ///
    /// # Errors
    /// If the query fails, two rows have the key, or the row is not a `V`.
    pub fn get(&self, key: impl Into<Value>) -> Result<Option<V>, BatchError> {
        self.find(&key.into())
    }

    /// Returns the row with the key of an item.
    ///
    /// # Errors
    /// [`UnknownKey`] if there is none, and the errors of [`get`](Self::get).
    pub fn require(&self, key: impl Into<Value>) -> Result<V, BatchError> {
        let key = key.into();
        self.find(&key)?.ok_or_else(|| {
            UnknownKey {
                of: format!("`{}`", self.query),
                columns: self.key.0[0].clone(),
                key: match &key {
                    Value::Text(text) => format!("{text:?}"),
                    other => other.to_string(),
                },
            }
            .into()
        })
    }

    fn find(&self, key: &Value) -> Result<Option<V>, BatchError> {
        // No row has null as its key.
        if key.is_null() {
            return Ok(None);
        }
        let Answers { query, rows } = &mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        // With its type: a text is another key than a number.
        let text = format!("{key:?}");
        if let Some(answer) = rows.get(&text) {
            return Ok(answer.clone());
        }
        let mut asked = match query.take() {
            Some(asked) => asked,
            None => KeyedQuery::open(
                &self.job,
                &self.database,
                &self.query,
                &self.parameters,
                &self.key.0,
            )?,
        };
        let found = asked.find(&self.key.0, key)?;
        // After an error a retry connects again.
        *query = Some(asked);
        let found = found.filter(|record| is_same_key(record.get(&self.key.0[0]), key));
        let answer = found.map(|record| value_of(&record, &self.key.0)).transpose();
        let answer =
            answer.map_err(|cause| format!("the row with the key `{key}` cannot be read: {cause}"))?;
        if rows.len() == MOST_ANSWERS {
            rows.clear();
        }
        rows.insert(text, answer.clone());
        Ok(answer)
    }
}

/// Returns whether a row has the key that was asked for. A database that compares a text with a number converts one of them: SQLite takes the text `007` for
/// the number 7, and MySQL takes the text `7 Main Street` for 7.
fn is_same_key(found: Option<&Value>, asked: &Value) -> bool {
    let is_number = |value: &Value| matches!(value, Value::Int(_) | Value::Float(_) | Value::Decimal(_));
    match (found, asked) {
        (None, _) => true,
        // SQLite and MySQL store booleans as numbers.
        (Some(Value::Int(found)), Value::Bool(asked)) => *found == i64::from(*asked),
        (Some(found), _) => is_number(found) == is_number(asked) || found.to_string() == asked.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: ITEM-LOOKUP-02
    #[test]
    fn a_number_is_no_text_that_a_database_converts_to_it() {
        let check = |found: Value, asked: Value, expected: bool| {
            assert_eq!(is_same_key(Some(&found), &asked), expected, "{found} {asked}");
        };
        check(7.into(), "7".into(), true);
        check(7.into(), "007".into(), false);
        check("7".into(), 7.into(), true);
        check("7 Main Street".into(), 7.into(), false);
        check(1.into(), true.into(), true);
        check(0.into(), true.into(), false);
        // With a collation that ignores case, and in a column of bytes.
        check("A".into(), "a".into(), true);
        check(Value::Bytes(vec![b'a']), "a".into(), true);
    }
}
