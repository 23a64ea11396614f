//! What the tables are called: `BATCH_JOB_INSTANCE` and so on, or with another prefix than `BATCH_`.
//!
//! diesel's names are fixed when the program is compiled. So another prefix comes in where a statement becomes text. With the
//! usual one nothing is done here.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use diesel::backend::Backend;
use diesel::connection::{Connection, DefaultLoadingMode, LoadConnection};
use diesel::query_builder::{AsQuery, AstPass, Query, QueryBuilder, QueryFragment, QueryId};
use diesel::query_dsl::methods::{ExecuteDsl, LimitDsl, LoadQuery};
use diesel::result::QueryResult;

/// As Spring Batch has it.
const DEFAULT: &str = "BATCH_";

/// PostgreSQL has 63 characters for a name; the longest that follows the prefix has 27, and migrations are listed with it.
const MOST_CHARACTERS: usize = 30;

/// What the names of the tables, sequences, indices and constraints begin with.
///
/// Spec: REPO-84, D-88
#[derive(Clone, Default)]
pub(super) struct TablePrefix(Option<Arc<str>>);

impl TablePrefix {
    pub(super) fn new(prefix: &str) -> Result<Self, String> {
        let refuse = |problem: &str| {
            Err(format!(
                "table_prefix `{prefix}` {problem}; expected a letter, then letters, digits and `_`, {MOST_CHARACTERS} \
                 characters at most, as in `ORDERS_`"
            ))
        };
        let mut characters = prefix.chars();
        if !characters.next().is_some_and(|first| first.is_ascii_alphabetic()) {
            return refuse("does not begin with a letter");
        }
        if let Some(strange) = characters.find(|other| !other.is_ascii_alphanumeric() && *other != '_') {
            return refuse(&format!("holds `{}`", strange.escape_default()));
        }
        if prefix.len() > MOST_CHARACTERS {
            return refuse("is too long");
        }
        Ok(if prefix.eq_ignore_ascii_case(DEFAULT) {
            Self::default()
        } else {
            Self(Some(prefix.into()))
        })
    }

    /// As the tables of PostgreSQL have it, whose names are in lower case where nobody quotes them.
    #[cfg(feature = "postgres")]
    pub(super) fn in_lower_case(&self) -> Self {
        Self(self.0.as_deref().map(|prefix| prefix.to_ascii_lowercase().into()))
    }

    /// For a database that does not tell upper from lower case in names.
    #[cfg(feature = "sqlite")]
    pub(super) fn in_upper_case(&self) -> Self {
        Self(self.0.as_deref().map(|prefix| prefix.to_ascii_uppercase().into()))
    }

    fn is_default(&self) -> bool {
        self.0.is_none()
    }

    /// A statement with the names as they are with this prefix. Its text holds names and placeholders, no values.
    pub(super) fn rename(&self, statement: &str) -> String {
        match &self.0 {
            None => statement.to_owned(),
            Some(prefix) => replace_words(statement, DEFAULT, prefix),
        }
    }

    /// As `rename`, for statements that make tables: names of constraints must differ, too.
    pub(super) fn rename_all(&self, statements: &str) -> String {
        match &self.0 {
            None => statements.to_owned(),
            Some(prefix) => replace_words(
                &self.rename(statements),
                "constraint ",
                &format!("constraint {prefix}"),
            ),
        }
    }

    /// The name of a table as it is without a prefix of its own, if it is one of these tables.
    pub(super) fn plain_name(&self, table: &str) -> Option<String> {
        let prefix = self.0.as_deref().unwrap_or(DEFAULT);
        let (start, name) = table.split_at_checked(prefix.len())?;
        start
            .eq_ignore_ascii_case(prefix)
            .then(|| format!("{DEFAULT}{name}"))
    }

    /// How a version of these tables is listed, in a table that all prefixes of the database share.
    pub(super) fn listed(&self, version: &str) -> String {
        match &self.0 {
            None => version.to_owned(),
            Some(prefix) => format!("{version}:{prefix}"),
        }
    }

    /// The version, if it is listed for these tables.
    pub(super) fn version_of<'a>(&self, listed: &'a str) -> Option<&'a str> {
        match (&self.0, listed.split_once(':')) {
            (None, None) => Some(listed),
            (Some(prefix), Some((version, of))) if of == &**prefix => Some(version),
            _ => None,
        }
    }
}

impl fmt::Display for TablePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or(DEFAULT))
    }
}

/// Replaces `from`, in upper or lower case, wherever a word begins with it.
fn replace_words(text: &str, from: &str, to: &str) -> String {
    let mut replaced = String::with_capacity(text.len() + to.len());
    let mut rest = text;
    let mut in_word = false;
    while let Some(character) = rest.chars().next() {
        let matches = rest
            .get(..from.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(from));
        let taken = if matches && !in_word {
            replaced.push_str(to);
            from.len()
        } else {
            replaced.push(character);
            character.len_utf8()
        };
        in_word = rest[..taken].ends_with(|last: char| last.is_ascii_alphanumeric() || last == '_');
        rest = &rest[taken..];
    }
    replaced
}

/// A connection, and what the tables on it are called. For what names no table it is the connection.
pub(super) struct Session<C> {
    connection: C,
    prefix: TablePrefix,
}

impl<C> Session<C> {
    pub(super) fn new(connection: C, prefix: TablePrefix) -> Self {
        Self { connection, prefix }
    }

    pub(super) fn prefix(&self) -> &TablePrefix {
        &self.prefix
    }
}

impl<C> Deref for Session<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.connection
    }
}

impl<C> DerefMut for Session<C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.connection
    }
}

/// Runs diesel's queries on a [`Session`]; in the place of diesel's trait of the same name.
pub(super) trait RunQueryDsl<C>: Sized {
    fn execute(self, session: &mut Session<C>) -> QueryResult<usize>
    where
        C: Connection,
        Named<Self>: ExecuteDsl<C>,
    {
        let named = Named::new(self, session);
        ExecuteDsl::execute(named, &mut session.connection)
    }

    fn load<'query, U>(self, session: &mut Session<C>) -> QueryResult<Vec<U>>
    where
        Self: AsQuery,
        C: LoadConnection<DefaultLoadingMode>,
        Named<Self::Query>: LoadQuery<'query, C, U>,
    {
        let named = Named::new(self.as_query(), session);
        diesel::RunQueryDsl::load(named, &mut session.connection)
    }

    fn get_result<'query, U>(self, session: &mut Session<C>) -> QueryResult<U>
    where
        Self: AsQuery,
        C: LoadConnection<DefaultLoadingMode>,
        Named<Self::Query>: LoadQuery<'query, C, U>,
    {
        let named = Named::new(self.as_query(), session);
        diesel::RunQueryDsl::get_result(named, &mut session.connection)
    }

    fn first<'query, U>(self, session: &mut Session<C>) -> QueryResult<U>
    where
        Self: LimitDsl,
        Self::Output: AsQuery,
        C: LoadConnection<DefaultLoadingMode>,
        Named<<Self::Output as AsQuery>::Query>: LoadQuery<'query, C, U>,
    {
        let named = Named::new(self.limit(1).as_query(), session);
        diesel::RunQueryDsl::get_result(named, &mut session.connection)
    }
}

impl<Q: QueryId, C> RunQueryDsl<C> for Q {}

/// A query, and what its tables are called. One connection has one prefix, so that its cache of statements needs to know
/// nothing of it.
pub(super) struct Named<Q> {
    query: Q,
    prefix: TablePrefix,
}

impl<Q> Named<Q> {
    fn new<C>(query: Q, session: &Session<C>) -> Self {
        Self {
            query,
            prefix: session.prefix.clone(),
        }
    }
}

impl<Q, DB> QueryFragment<DB> for Named<Q>
where
    DB: Backend,
    DB::QueryBuilder: Default,
    Q: QueryFragment<DB>,
{
    /// diesel does not say whether it wants the text, or the values, or something else; each step below does nothing where
    /// it is not wanted. The query as it was has to be walked for its values, so it follows its text as a comment.
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        if self.prefix.is_default() {
            return self.query.walk_ast(pass);
        }
        let mut plain = DB::QueryBuilder::default();
        self.query.to_sql(&mut plain, pass.backend())?;
        pass.push_sql(&self.prefix.rename(&plain.finish()));
        pass.push_sql(" /* ");
        self.query.walk_ast(pass.reborrow())?;
        pass.push_sql(" */");
        Ok(())
    }
}

impl<Q: QueryId> QueryId for Named<Q> {
    type QueryId = Q::QueryId;

    const HAS_STATIC_QUERY_ID: bool = Q::HAS_STATIC_QUERY_ID;
}

impl<Q: Query> Query for Named<Q> {
    type SqlType = Q::SqlType;
}

impl<Q, C> diesel::RunQueryDsl<C> for Named<Q> {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec: REPO-84
    #[test]
    fn names_are_replaced_where_a_word_begins() {
        let prefix = TablePrefix::new("MY_BATCH_").unwrap();
        let check = |plain: &str, expected: &str| assert_eq!(prefix.rename_all(plain), expected);
        check("nextval('batch_job_seq')", "nextval('MY_BATCH_job_seq')");
        check("`Batch_a`.`batch_b`", "`MY_BATCH_a`.`MY_BATCH_b`");
        check("ä batch_ü", "ä MY_BATCH_ü");
        check("a_batch_ xbatch_ 1batch_ batch", "a_batch_ xbatch_ 1batch_ batch");
        check("constraint UN unique", "constraint MY_BATCH_UN unique");
        assert_eq!(
            TablePrefix::new("batch_").unwrap().rename_all("BATCH_x"),
            "BATCH_x"
        );
    }

    #[test]
    fn each_prefix_has_versions_of_its_own() {
        let (usual, mine) = (TablePrefix::default(), TablePrefix::new("my_").unwrap());
        assert_eq!(
            (usual.listed("1"), mine.listed("1")),
            ("1".into(), "1:my_".into())
        );
        for (listed, of_usual, of_mine) in [
            ("1", Some("1"), None),
            ("1:my_", None, Some("1")),
            ("1:X_", None, None),
        ] {
            assert_eq!(
                (usual.version_of(listed), mine.version_of(listed)),
                (of_usual, of_mine)
            );
        }
    }
}
