//! The prefix of the names of tables, sequences, indices and constraints, `BATCH_` by default.

use std::fmt;
use std::sync::Arc;

/// The prefix of Spring Batch.
const DEFAULT: &str = "BATCH_";

/// A name has at most 63 characters on PostgreSQL; the longest one without prefix, of a table that a conversion fills, has 30, and the names
/// of migrations contain the prefix too.
const MAX_CHARACTERS: usize = 30;

/// A prefix of names; the default is `BATCH_`.
// Spec: REPO-84, D-88
#[derive(Clone, Default)]
pub(super) struct TablePrefix(Option<Arc<str>>);

impl TablePrefix {
    pub(super) fn new(prefix: &str) -> Result<Self, String> {
        let reject = |problem: &str| {
            Err(format!(
                "table_prefix `{prefix}` {problem}; expected a letter, then letters, digits and `_`, at most {MAX_CHARACTERS} \
                 characters, as in `ORDERS_`"
            ))
        };
        let mut characters = prefix.chars();
        if !characters.next().is_some_and(|first| first.is_ascii_alphabetic()) {
            return reject("does not start with a letter");
        }
        if prefix.contains('.') {
            return Err(format!(
                "table_prefix `{prefix}` contains a `.`, which a prefix cannot have; to use a schema, set \
                 `?options=-csearch_path%3DSCHEMA%2Cpublic` on PostgreSQL, or the database of the URL on MySQL"
            ));
        }
        if let Some(strange) = characters.find(|other| !other.is_ascii_alphanumeric() && *other != '_') {
            return reject(&format!("contains `{}`", strange.escape_default()));
        }
        if prefix.len() > MAX_CHARACTERS {
            return reject("is too long");
        }
        Ok(if prefix.eq_ignore_ascii_case(DEFAULT) {
            Self::default()
        } else {
            Self(Some(prefix.into()))
        })
    }

    /// Returns the prefix in lower case, as PostgreSQL stores unquoted names.
    pub(super) fn in_lower_case(&self) -> Self {
        Self(self.0.as_deref().map(|prefix| prefix.to_ascii_lowercase().into()))
    }

    /// Returns the prefix in upper case, for a database that ignores the case of names.
    pub(super) fn in_upper_case(&self) -> Self {
        Self(self.0.as_deref().map(|prefix| prefix.to_ascii_uppercase().into()))
    }

    /// Returns the prefix of the tables that a conversion fills.
    pub(super) fn of_converted(&self, in_lower_case: bool) -> Self {
        let converted = Self(Some(format!("{self}CONVERTED_").into()));
        match in_lower_case {
            true => converted.in_lower_case(),
            false => converted,
        }
    }

    pub(super) fn is_default(&self) -> bool {
        self.0.is_none()
    }

    /// Returns a statement with this prefix in its names. The text must hold names and placeholders only, no values.
    pub(super) fn rename(&self, statement: &str) -> String {
        match &self.0 {
            None => statement.to_owned(),
            Some(prefix) => replace_words(statement, DEFAULT, prefix),
        }
    }

    /// As `rename`, for statements that create tables: names of constraints get the prefix too.
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

    /// Returns the name of one of these tables with the default prefix; `None` for any other table.
    pub(super) fn plain_name(&self, table: &str) -> Option<String> {
        let prefix = self.0.as_deref().unwrap_or(DEFAULT);
        let (start, name) = table.split_at_checked(prefix.len())?;
        start
            .eq_ignore_ascii_case(prefix)
            .then(|| format!("{DEFAULT}{name}"))
    }

    /// Returns how a migration of these tables is recorded in the table that all prefixes of the database share.
    pub(super) fn listed(&self, version: &str) -> String {
        match &self.0 {
            None => version.to_owned(),
            Some(prefix) => format!("{version}:{prefix}"),
        }
    }

    /// Returns the version of a recorded migration, if it is one of these tables.
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

/// Replaces `from`, ignoring case, at the start of words.
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

    /// Spring Batch allows a schema there.
    #[test]
    fn a_schema_has_its_own_place_in_the_url() {
        let error = TablePrefix::new("batch.BATCH_").err().unwrap();
        assert!(error.contains("to use a schema, set `?options="), "{error}");
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
