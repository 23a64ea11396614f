//! Whether a query only reads.

use crate::sql::{Syntax, beginning, tokens};

/// Checks that a query begins as one that returns rows, and has no part that changes or creates some: each page, and each attempt, would execute
/// it again, and a rollback of the chunk would not undo it. Fails with the cause.
pub(super) fn check(query: &str, syntax: &Syntax) -> Result<(), String> {
    const BEGINNINGS: &[&str] = &["SELECT", "WITH", "VALUES", "TABLE", "("];
    let tokens = tokens(query, syntax);
    let is_one_of = |token: &str, words: &[&str]| words.iter().any(|word| token.eq_ignore_ascii_case(word));
    if !tokens.first().is_some_and(|first| is_one_of(first, BEGINNINGS)) {
        return Err(format!(
            "expected a query that begins with SELECT, WITH, VALUES, TABLE or `(`, found `{}`",
            beginning(query)
        ));
    }
    for (index, token) in tokens.iter().enumerate() {
        let before = index.checked_sub(1).map_or("", |before| tokens[before]);
        let after = tokens.get(index + 1).copied().unwrap_or_default();
        // A statement begins after a parenthesis, and is not a function, an alias or a column: a word or name follows.
        let is_name = after.starts_with(|next: char| next.is_alphanumeric() || "_\"`".contains(next))
            || (after.starts_with('[') && after.len() > 1);
        let begins_statement = matches!(before, "(" | ")") && is_name;
        let changes = match *token {
            word if is_one_of(word, &["INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE"]) => begins_statement,
            // A reserved word everywhere, but after a point or AS.
            word if is_one_of(word, &["INTO"]) => !is_one_of(before, &[".", "AS"]),
            _ => false,
        };
        if changes {
            return Err(format!(
                "expected a query that only reads, found `{token} {after}`; change rows in a step with a writer or with `sqlScript`"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{MYSQL, POSTGRES, SQLITE};

    // Spec: INPUT-10
    #[test]
    fn queries_only_read() {
        for syntax in [&SQLITE, &POSTGRES, &MYSQL] {
            for query in [
                "SELECT id FROM t",
                "-- DELETE FROM t\n select id FROM t FOR UPDATE",
                "WITH a AS (SELECT 1) SELECT * FROM a FOR NO KEY UPDATE OF a",
                "VALUES (1), (2)",
                "TABLE t",
                "(SELECT 1) UNION (SELECT 2)",
                "SELECT 'x INTO y', \"INTO\", \"(DELETE FROM t)\" FROM t /* (UPDATE t */",
                "SELECT REPLACE(name, 'a', 'b'), (REPLACE(name, 'a', 'b')) FROM t",
                "SELECT id, update, t.delete, (delete), (update.id), merge FROM t",
                "SELECT delete FROM t",
                "SELECT updated, into_it, t.into FROM t WHERE (deleted AND inserted)",
            ] {
                assert_eq!(check(query, syntax), Ok(()), "{query}");
            }
            for (query, found) in [
                (
                    "WITH a AS (DELETE FROM t RETURNING id) SELECT id FROM a",
                    "DELETE FROM",
                ),
                ("WITH a AS (SELECT 1) delete from t RETURNING id", "delete from"),
                (
                    "WITH a AS (INSERT INTO t VALUES (1) RETURNING id) SELECT id FROM a",
                    "INSERT INTO",
                ),
                (
                    "WITH a AS (SELECT 1) INSERT OR REPLACE INTO t SELECT 2 RETURNING id",
                    "INSERT OR",
                ),
                (
                    "WITH a AS (UPDATE \"t\" SET id = 1 RETURNING id) SELECT id FROM a",
                    "UPDATE \"t\"",
                ),
                (
                    "WITH a AS (/* b */ UPDATE ONLY t SET id = 1 RETURNING id) SELECT id FROM a",
                    "UPDATE ONLY",
                ),
                (
                    "WITH a AS (SELECT 1) REPLACE INTO t SELECT 2 RETURNING id",
                    "REPLACE INTO",
                ),
                (
                    "WITH a AS (MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE RETURNING id) SELECT 1",
                    "MERGE INTO",
                ),
                ("SELECT id INTO other FROM t", "INTO other"),
                ("SELECT id FROM t INTO OUTFILE 'x'", "INTO OUTFILE"),
            ] {
                let expected = format!(
                    "expected a query that only reads, found `{found}`; change rows in a step with a writer or with `sqlScript`"
                );
                assert_eq!(check(query, syntax), Err(expected), "{query}");
            }
            for query in [
                "DELETE FROM t RETURNING id",
                "UPDATE t SET id = 1 RETURNING id",
                "PRAGMA x",
                "",
                "SELECTED",
            ] {
                let expected = format!(
                    "expected a query that begins with SELECT, WITH, VALUES, TABLE or `(`, found `{query}`"
                );
                assert_eq!(check(query, syntax), Err(expected), "{query}");
            }
        }
    }
}
