//! The order of a query's rows.

use crate::sql::{Syntax, Token, beginning, is_of_word};

/// Warns that a restart cannot pass over the rows that were read, if a query without a key has no order.
pub fn warn_without_order(query: &str, syntax: &Syntax) {
    if !has_order(query, syntax) {
        tracing::warn!(
            query = beginning(query),
            "the query has neither the property `key` nor an ORDER BY: after a restart its rows may come in another order, \
             and some would be read twice and others not at all; set `key` to the columns of a unique key, or add an ORDER BY \
             that ends with a unique column"
        );
    }
}

/// Returns whether a query has an `ORDER BY` itself, not one of a subquery or a window, which does not order its rows.
fn has_order(query: &str, syntax: &Syntax) -> bool {
    let (mut depth, mut after_order, mut at) = (0_usize, false, 0);
    while at < query.len() {
        let rest = &query[at..];
        let word = &rest[..rest.find(|c| !is_of_word(c)).unwrap_or(rest.len())];
        if !word.is_empty() && !word.starts_with('$') {
            if depth == 0 && after_order && word.eq_ignore_ascii_case("BY") {
                return true;
            }
            after_order = word.eq_ignore_ascii_case("ORDER");
            at += word.len();
            continue;
        }
        // The database reports a text or a comment without an end.
        let Ok(token) = Token::at(query, at, syntax) else {
            return true;
        };
        let text = &rest[..token.length];
        match text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        after_order &= token.is_comment || text.trim().is_empty();
        at += token.length;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{MYSQL, POSTGRES, SQLITE};

    #[track_caller]
    fn check(syntax: &Syntax, query: &str, expected: bool) {
        assert_eq!(has_order(query, syntax), expected, "{query}");
    }

    #[test]
    fn the_order_is_found_outside_of_parentheses() {
        for syntax in [&SQLITE, &POSTGRES, &MYSQL] {
            check(syntax, "SELECT id FROM t", false);
            check(syntax, "SELECT id FROM t ORDER BY id", true);
            check(syntax, "select id from t order\n  by id limit 3", true);
            check(
                syntax,
                "SELECT id FROM (SELECT id FROM t ORDER BY id) AS u",
                false,
            );
            check(syntax, "SELECT ROW_NUMBER() OVER (ORDER BY id) FROM t", false);
            check(
                syntax,
                "WITH u AS (SELECT id FROM t) SELECT id FROM u ORDER BY 1",
                true,
            );
            check(syntax, "SELECT id FROM t WHERE id IN (1, (2))ORDER BY(id)", true);
            check(
                syntax,
                "SELECT id FROM t UNION SELECT id FROM u ORDER BY id",
                true,
            );
        }
    }

    #[test]
    fn texts_names_and_comments_are_no_order() {
        for syntax in [&SQLITE, &POSTGRES, &MYSQL] {
            check(syntax, "SELECT id FROM t WHERE a = ' ORDER BY id'", false);
            check(syntax, "SELECT id AS \"x ORDER BY y\" FROM t", false);
            check(syntax, "SELECT id FROM t -- ORDER BY id", false);
            check(syntax, "SELECT id FROM t /* ORDER BY id */", false);
            check(syntax, "SELECT id FROM t ORDER /* of keys */ BY id", true);
            check(syntax, "SELECT ')' FROM t ORDER BY id", true);
            check(syntax, "SELECT '(' FROM t ORDER BY id", true);
            check(syntax, "SELECT border BY_id, ORDER_BY FROM t", false);
            check(syntax, "SELECT id AS \"order\" FROM t GROUP BY id", false);
            check(syntax, "SELECT e.order, by FROM t", false);
        }
        check(&MYSQL, "SELECT id FROM t # ORDER BY id", false);
        check(&MYSQL, r"SELECT id FROM t WHERE a = '\' ORDER BY id'", false);
        check(&POSTGRES, "SELECT $$ ORDER BY $$ FROM t", false);
        check(&POSTGRES, r"SELECT E'\' ORDER BY ' FROM t", false);
        check(&POSTGRES, "SELECT id FROM t WHERE a = $1 ORDER BY id", true);
        check(&SQLITE, "SELECT id AS [a ORDER BY b] FROM t", false);
    }

    #[test]
    fn the_database_reports_what_has_no_end() {
        check(&SQLITE, "SELECT 'a FROM t", true);
    }
}
