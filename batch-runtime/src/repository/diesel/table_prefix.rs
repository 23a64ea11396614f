//! The prefix of the names of tables, sequences, indices and constraints, `BATCH_` by default, and the schema before it.

use std::fmt;
use std::sync::Arc;

use crate::repository::DatabaseKind;

/// The prefix of Spring Batch.
const DEFAULT: &str = "BATCH_";

/// A name has at most 63 characters on PostgreSQL; the longest one without prefix, of a table that a conversion fills, has 30, and the names
/// of migrations contain the prefix too.
const MAX_CHARACTERS: usize = 30;

/// The version of a migration and the prefix, in a column of 50 characters.
const MAX_WITH_SCHEMA: usize = 36;

/// A prefix of names; the default is `BATCH_`.
// Spec: REPO-84, D-88
#[derive(Clone, Default)]
pub(super) struct TablePrefix {
    /// `None` for the default.
    prefix: Option<Arc<str>>,
    schema: Option<Schema>,
}

/// The schema of the tables, if the URL names one.
#[derive(Clone)]
struct Schema {
    name: Arc<str>,
    is_mysql: bool,
}

impl TablePrefix {
    /// Reads a prefix, or a schema, a dot and a prefix, as in Spring Batch.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let reject = |problem: &str| {
            Err(format!(
                "table_prefix `{text}` {problem}; expected a letter, then letters, digits and `_`, at most {MAX_CHARACTERS} \
                 characters, as in `ORDERS_`; with a schema, as in `batch.ORDERS_`, at most {MAX_WITH_SCHEMA}"
            ))
        };
        let (schema, prefix) = match text.split_once('.') {
            Some((schema, prefix)) => (Some(schema), prefix),
            None => (None, text),
        };
        for name in schema.into_iter().chain([prefix]) {
            let mut characters = name.chars();
            if !characters.next().is_some_and(|first| first.is_ascii_alphabetic()) {
                return reject("does not start with a letter");
            }
            if let Some(strange) = characters.find(|other| !other.is_ascii_alphanumeric() && *other != '_') {
                return reject(&format!("contains `{}`", strange.escape_default()));
            }
        }
        if prefix.len() > MAX_CHARACTERS || text.len() > MAX_WITH_SCHEMA {
            return reject("is too long");
        }
        Ok(Self {
            prefix: (!prefix.eq_ignore_ascii_case(DEFAULT)).then(|| prefix.into()),
            schema: schema.map(|name| Schema {
                name: name.into(),
                is_mysql: false,
            }),
        })
    }

    /// Returns the prefix as a database stores names that are not quoted, or in one case if it ignores the case.
    pub(super) fn on(self, database: DatabaseKind) -> Result<Self, String> {
        let change = |convert: fn(&str) -> String| Self {
            prefix: self.prefix.as_deref().map(|prefix| convert(prefix).into()),
            schema: self.schema.as_ref().map(|schema| Schema {
                name: convert(&schema.name).into(),
                is_mysql: database == DatabaseKind::Mysql,
            }),
        };
        match (database, &self.schema) {
            (DatabaseKind::Postgresql, _) => Ok(change(str::to_ascii_lowercase)),
            (DatabaseKind::Mysql, _) => Ok(change(str::to_owned)),
            (DatabaseKind::Sqlite | DatabaseKind::Memory, Some(schema)) => Err(format!(
                "table_prefix `{self}` names a schema, `{}`, and this database has no schemas; name another file instead",
                schema.name
            )),
            (DatabaseKind::Sqlite, None) => Ok(change(str::to_ascii_uppercase)),
            (DatabaseKind::Memory, None) => Ok(self),
        }
    }

    /// Returns the schema that the URL names.
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    pub(super) fn schema(&self) -> Option<&str> {
        self.schema.as_ref().map(|schema| &*schema.name)
    }

    /// Returns the prefix of the tables that a conversion fills.
    pub(super) fn of_converted(&self, in_lower_case: bool) -> Self {
        let converted = format!("{}CONVERTED_", self.without_schema());
        Self {
            prefix: Some(match in_lower_case {
                true => converted.to_ascii_lowercase().into(),
                false => converted.into(),
            }),
            schema: self.schema.clone(),
        }
    }

    pub(super) fn is_default(&self) -> bool {
        self.prefix.is_none() && self.schema.is_none()
    }

    /// Returns the prefix alone.
    pub(super) fn without_schema(&self) -> &str {
        self.prefix.as_deref().unwrap_or(DEFAULT)
    }

    /// Returns a statement with this prefix in its names. The text must hold names and placeholders only, no values.
    pub(super) fn rename(&self, statement: &str) -> String {
        if self.is_default() {
            return statement.to_owned();
        }
        let renamed = replace_words(statement, DEFAULT, |found, before, after, text| {
            self.push_name(found, before, after, text);
        });
        match &self.schema {
            Some(schema) if schema.is_mysql => replace_words(&renamed, "DATABASE()", |_, _, _, text| {
                text.push_str(&format!("'{}'", schema.name));
            }),
            _ => renamed,
        }
    }

    /// Appends the start of a name to `text`, instead of the default that was found between `before` and `after`.
    fn push_name(&self, found: &str, before: &str, after: &str, text: &mut String) {
        if let Some(schema) = &self.schema
            && schema.qualifies(before, after)
        {
            text.push_str(&schema.name);
            // Each part of a name has quotes of its own.
            match before
                .chars()
                .next_back()
                .filter(|quote| ['"', '`'].contains(quote))
            {
                Some(quote) => text.extend([quote, '.', quote]),
                None => text.push('.'),
            }
        }
        text.push_str(self.prefix.as_deref().unwrap_or(found));
    }

    /// As `rename`, for statements that create tables: names of constraints get the prefix too.
    pub(super) fn rename_all(&self, statements: &str) -> String {
        let renamed = self.rename(statements);
        match &self.prefix {
            None => renamed,
            Some(prefix) => replace_words(&renamed, "constraint ", |_, _, _, text| {
                text.push_str("constraint ");
                text.push_str(prefix);
            }),
        }
    }

    /// Returns the name of one of these tables with the default prefix; `None` for any other table.
    pub(super) fn plain_name(&self, table: &str) -> Option<String> {
        let prefix = self.without_schema();
        let (start, name) = table.split_at_checked(prefix.len())?;
        start
            .eq_ignore_ascii_case(prefix)
            .then(|| format!("{DEFAULT}{name}"))
    }

    /// Returns how a migration of these tables is recorded in the table that all prefixes of the database share.
    pub(super) fn listed(&self, version: &str) -> String {
        match self.is_default() {
            true => version.to_owned(),
            false => format!("{version}:{self}"),
        }
    }

    /// Returns the version of a recorded migration, if it is one of these tables.
    pub(super) fn version_of<'a>(&self, listed: &'a str) -> Option<&'a str> {
        match listed.split_once(':') {
            None => self.is_default().then_some(listed),
            Some((version, of)) => (!self.is_default() && of == self.to_string()).then_some(version),
        }
    }
}

impl fmt::Display for TablePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{}.", schema.name)?;
        }
        f.write_str(self.without_schema())
    }
}

impl Schema {
    /// Returns whether the name between `before` and `after` takes the schema. These do not: an index that is created, or dropped by `ALTER
    /// TABLE`; the new name in PostgreSQL's `RENAME TO`; a text that MySQL compares with a catalog.
    fn qualifies(&self, before: &str, after: &str) -> bool {
        let ends_with = |words: &[&str]| {
            let mut last = before
                .split_ascii_whitespace()
                .rev()
                .filter(|word| !is_any_of(word, &["IF", "NOT", "EXISTS"]));
            words
                .iter()
                .rev()
                .all(|word| last.next().is_some_and(|other| other.eq_ignore_ascii_case(word)))
        };
        let name = after
            .split(|other: char| !is_of_word(other))
            .next()
            .unwrap_or_default();
        let is_index = name.to_ascii_uppercase().ends_with("_IX");
        match self.is_mysql {
            true => !is_index && !before.ends_with('\''),
            false => (!is_index || ends_with(&["DROP", "INDEX"])) && !ends_with(&["RENAME", "TO"]),
        }
    }
}

fn is_any_of(word: &str, others: &[&str]) -> bool {
    others.iter().any(|other| word.eq_ignore_ascii_case(other))
}

fn is_of_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// Replaces `from`, ignoring case, at the start of words. `push` gets what was found, the text before and after it, and what the
/// replacement is appended to.
fn replace_words(text: &str, from: &str, push: impl Fn(&str, &str, &str, &mut String)) -> String {
    let mut replaced = String::with_capacity(text.len() + from.len());
    let mut rest = text;
    let mut in_word = false;
    while let Some(character) = rest.chars().next() {
        let matches = rest
            .get(..from.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(from));
        let taken = if matches && !in_word {
            let before = &text[..text.len() - rest.len()];
            let (found, after) = rest.split_at(from.len());
            push(found, before, after, &mut replaced);
            from.len()
        } else {
            replaced.push(character);
            character.len_utf8()
        };
        in_word = rest[..taken].ends_with(is_of_word);
        rest = &rest[taken..];
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: REPO-84
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

    // Spec: REPO-84
    #[test]
    fn each_name_that_may_have_a_schema_gets_it() {
        let check = |database, plain: &str, expected: &str| {
            let prefix = TablePrefix::new("night.MY_").unwrap().on(database).unwrap();
            assert_eq!(prefix.rename_all(plain), expected);
        };
        let postgres = |plain: &str, expected: &str| check(DatabaseKind::Postgresql, plain, expected);
        postgres("nextval('batch_job_seq')", "nextval('night.my_job_seq')");
        postgres("'BATCH_A'::regclass", "'night.my_A'::regclass");
        postgres("\"batch_a\".\"id\"", "\"night\".\"my_a\".\"id\"");
        postgres(
            "ALTER TABLE BATCH_A RENAME TO BATCH_B;",
            "ALTER TABLE night.my_A RENAME TO my_B;",
        );
        postgres(
            "CREATE INDEX IF NOT EXISTS BATCH_A_IX ON BATCH_A (ID)",
            "CREATE INDEX IF NOT EXISTS my_A_IX ON night.my_A (ID)",
        );
        postgres(
            "DROP INDEX IF EXISTS BATCH_A_IX;",
            "DROP INDEX IF EXISTS night.my_A_IX;",
        );
        postgres("constraint UN unique", "constraint my_UN unique");
        let mysql = |plain: &str, expected: &str| check(DatabaseKind::Mysql, plain, expected);
        mysql("`BATCH_A`.`ID`", "`night`.`MY_A`.`ID`");
        mysql(
            "RENAME TABLE BATCH_A TO BATCH_B",
            "RENAME TABLE night.MY_A TO night.MY_B",
        );
        mysql(
            "ALTER TABLE BATCH_A RENAME TO BATCH_B",
            "ALTER TABLE night.MY_A RENAME TO night.MY_B",
        );
        mysql(
            "'ALTER TABLE BATCH_A DROP INDEX BATCH_A_IX' WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'BATCH_A'",
            "'ALTER TABLE night.MY_A DROP INDEX MY_A_IX' WHERE TABLE_SCHEMA = 'night' AND TABLE_NAME = 'MY_A'",
        );
    }

    #[test]
    fn a_schema_keeps_the_default_prefix() {
        let prefix = TablePrefix::new("night.BATCH_").unwrap();
        let prefix = prefix.on(DatabaseKind::Postgresql).unwrap();
        assert_eq!(
            prefix.rename_all("constraint UN on BATCH_A"),
            "constraint UN on night.BATCH_A"
        );
        assert_eq!(prefix.listed("1"), "1:night.BATCH_");
        assert_eq!(
            (prefix.version_of("1:night.BATCH_"), prefix.version_of("1")),
            (Some("1"), None)
        );
        let error = TablePrefix::new("night.BATCH_")
            .unwrap()
            .on(DatabaseKind::Sqlite)
            .err()
            .unwrap();
        assert!(error.contains("has no schemas; name another file"), "{error}");
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
