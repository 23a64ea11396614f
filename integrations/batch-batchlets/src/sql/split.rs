//! The statements of a SQL script.

use batch_items::sql::{Syntax, Token, is_of_word};

/// A statement of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement<'s> {
    /// The line of its first word, from 1.
    pub(super) line: usize,
    /// The text, without the separator and without comments before it.
    pub(super) text: &'s str,
}

/// A text, name or comment whose end is missing, or differs between databases.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: the {problem}")]
pub(super) struct Unclosed {
    problem: &'static str,
    line: usize,
}

/// Splits a script at `separator`: `;` anywhere outside of texts, names and comments, any other one at the end of a line.
pub(super) fn statements<'s>(
    script: &'s str,
    syntax: &Syntax,
    separator: &str,
) -> Result<Vec<Statement<'s>>, Unclosed> {
    let (mut found, mut line, mut at) = (Vec::new(), 1, 0);
    // The position and line of the statement's first word.
    let mut start: Option<(usize, usize)> = None;
    let push = |found: &mut Vec<Statement<'s>>, start: Option<(usize, usize)>, end: usize| {
        found.extend(start.map(|(start, line)| Statement {
            line,
            text: script[start..end].trim_end(),
        }));
    };
    while at < script.len() {
        if ends_statement(script, at, separator) {
            push(&mut found, start.take(), at);
            at += separator.len();
            continue;
        }
        let token = Token::at(script, at, syntax).map_err(|problem| Unclosed { problem, line })?;
        let text = &script[at..at + token.length];
        if !token.is_comment && start.is_none() && !text.trim().is_empty() {
            start = Some((at, line));
        }
        line += text.matches('\n').count();
        at += token.length;
    }
    push(&mut found, start, script.len());
    Ok(found)
}

fn ends_statement(script: &str, at: usize, separator: &str) -> bool {
    let Some(rest) = script[at..].strip_prefix(separator) else {
        return false;
    };
    let rest_of_line = rest.split('\n').next().unwrap_or_default();
    let within_word = separator.starts_with(is_of_word) && script[..at].ends_with(is_of_word);
    separator == ";" || (rest_of_line.trim().is_empty() && !within_word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use batch_items::sql::{MYSQL, POSTGRES, SQLITE};

    #[track_caller]
    fn check(syntax: &Syntax, separator: &str, script: &str, expected: &[(usize, &str)]) {
        let found = statements(script, syntax, separator).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|statement| (statement.line, statement.text))
            .collect();
        assert_eq!(found, expected, "{script}");
    }

    #[test]
    fn statements_have_the_line_of_their_first_word() {
        for syntax in [&SQLITE, &POSTGRES, &MYSQL] {
            check(syntax, ";", "", &[]);
            check(syntax, ";", " ;; \n -- nothing\n /* at ; all */ ", &[]);
            check(
                syntax,
                ";",
                "A;\n\n-- a; comment\n/* ;\n */ B\n C ; D -- end",
                &[(1, "A"), (5, "B\n C"), (6, "D -- end")],
            );
            check(syntax, ";", "A;é\r\n;B", &[(1, "A"), (1, "é"), (2, "B")]);
        }
    }

    #[test]
    fn separators_in_texts_and_names_do_not_count() {
        for syntax in [&SQLITE, &POSTGRES, &MYSQL] {
            check(
                syntax,
                ";",
                "A 'x;''--;\n' \";\" ; B",
                &[(1, "A 'x;''--;\n' \";\""), (2, "B")],
            );
        }
        check(&SQLITE, ";", "A `;` [;] ; B", &[(1, "A `;` [;]"), (1, "B")]);
        check(
            &MYSQL,
            ";",
            r"A `;` 'it\'s;' ; B",
            &[(1, r"A `;` 'it\'s;'"), (1, "B")],
        );
        check(
            &POSTGRES,
            ";",
            r"A E'it\'s;' ; B",
            &[(1, r"A E'it\'s;'"), (1, "B")],
        );
        // A backslash is an ordinary character here, and `[` is an index.
        check(
            &POSTGRES,
            ";",
            r"A 'x\'; LIKE'\'; C[1;",
            &[(1, r"A 'x\'"), (1, r"LIKE'\'"), (1, "C[1")],
        );
        check(&SQLITE, ";", r"A 'x\'; B", &[(1, r"A 'x\'"), (1, "B")]);
    }

    #[test]
    fn postgres_texts_have_dollar_quotes() {
        let function = "CREATE FUNCTION f() AS $$ a; '$1' $$;";
        check(
            &POSTGRES,
            ";",
            &format!("{function} B"),
            &[(1, &function[..function.len() - 1]), (1, "B")],
        );
        check(
            &POSTGRES,
            ";",
            "A $x$ ; $$ ; $y$ $x$; B",
            &[(1, "A $x$ ; $$ ; $y$ $x$"), (1, "B")],
        );
        check(
            &POSTGRES,
            ";",
            "A $1; B $2; x$y; z$",
            &[(1, "A $1"), (1, "B $2"), (1, "x$y"), (1, "z$")],
        );
        check(&SQLITE, ";", "A $$; B $$", &[(1, "A $$"), (1, "B $$")]);
    }

    #[test]
    fn comments_differ_between_databases() {
        check(&POSTGRES, ";", "/* /* ; */ ; */ A; B", &[(1, "A"), (1, "B")]);
        check(&SQLITE, ";", "/* /* ; */ A; B", &[(1, "A"), (1, "B")]);
        check(&MYSQL, ";", "# a ;\nA # b ;\n; B", &[(2, "A # b ;"), (3, "B")]);
        check(&MYSQL, ";", "SELECT 1--1; B", &[(1, "SELECT 1--1"), (1, "B")]);
        check(
            &MYSQL,
            ";",
            "/*!40101 SET A=';' */; B",
            &[(1, "/*!40101 SET A=';' */"), (1, "B")],
        );
    }

    #[test]
    fn another_separator_counts_at_the_end_of_a_line() {
        let script = "CREATE TRIGGER t BEGIN\n  SELECT '\n/\n', 1/2;\n  B;\nEND\n/\nC;\n / \n";
        check(
            &SQLITE,
            "/",
            script,
            &[
                (1, "CREATE TRIGGER t BEGIN\n  SELECT '\n/\n', 1/2;\n  B;\nEND"),
                (8, "C;"),
            ],
        );
        check(&MYSQL, "@@", "A; B@@\nC@@D\n@@", &[(1, "A; B"), (2, "C@@D")]);
        check(&MYSQL, "GO", "CARGO\nGO\nB\nGO", &[(1, "CARGO"), (3, "B")]);
    }

    #[test]
    fn what_has_no_end_is_an_error() {
        let message =
            |syntax: &Syntax, script: &str| statements(script, syntax, ";").unwrap_err().to_string();
        assert_eq!(message(&SQLITE, "A;\nB 'c\n;"), "line 2: the text has no end");
        for syntax in [&SQLITE, &POSTGRES, &MYSQL] {
            assert_eq!(
                message(syntax, "A;\r\n-- b\rC;\r"),
                "line 2: the comment contains a CR without a LF, where not every database ends it; end the line with LF or CRLF"
            );
        }
        assert_eq!(message(&MYSQL, "\n`a"), "line 2: the name in quotes has no end");
        assert_eq!(message(&POSTGRES, "/* /* */"), "line 1: the comment has no end");
        assert_eq!(
            message(&POSTGRES, "DO $a$ $b$"),
            "line 1: the text in dollar quotes has no end"
        );
    }
}
