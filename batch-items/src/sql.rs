//! Texts, names and comments in SQL, as the databases write them.

/// How a database writes texts, names in quotes and comments.
#[derive(Debug)]
pub struct Syntax {
    /// `\'` does not end a text.
    backslashes: bool,
    /// Comments begin with `#`, and with `--` only before a blank; `/*! .. */` is code.
    mysql_comments: bool,
    /// A comment may contain comments.
    nested_comments: bool,
    /// `$tag$ .. $tag$` is a text, and `E'..'` one with backslashes.
    postgres_texts: bool,
    /// `?` is the place of a value.
    pub has_question_marks: bool,
    /// The characters before the names of variables that are null if a statement is executed without values for them.
    variables: &'static [char],
    /// The pairs of quotes around names, besides `"..".`
    names: &'static [(char, char)],
}

pub const SQLITE: Syntax = Syntax {
    backslashes: false,
    mysql_comments: false,
    nested_comments: false,
    postgres_texts: false,
    has_question_marks: true,
    variables: &['?', ':', '@', '$'],
    names: &[('`', '`'), ('[', ']')],
};

pub const POSTGRES: Syntax = Syntax {
    backslashes: false,
    mysql_comments: false,
    nested_comments: true,
    postgres_texts: true,
    has_question_marks: false,
    variables: &[],
    names: &[],
};

pub const MYSQL: Syntax = Syntax {
    backslashes: true,
    mysql_comments: true,
    nested_comments: false,
    postgres_texts: false,
    has_question_marks: true,
    // `@x` has the value that the session has set.
    variables: &[],
    names: &[('`', '`')],
};

/// Databases that are read through ODBC, whose parameters are `?`.
pub mod odbc {
    use super::Syntax;

    /// Oracle, DB2, Firebird, and those that are not known.
    pub const STANDARD: Syntax = Syntax {
        variables: &[],
        names: &[],
        ..super::SQLITE
    };

    /// SQL Server.
    pub const SQL_SERVER: Syntax = Syntax {
        nested_comments: true,
        names: &[('[', ']')],
        ..STANDARD
    };

    /// PostgreSQL.
    pub const POSTGRES: Syntax = Syntax {
        has_question_marks: true,
        ..super::POSTGRES
    };
}

/// A text, a name in quotes, a comment, or a single character.
pub struct Token {
    pub length: usize,
    pub is_comment: bool,
}

impl Token {
    /// Returns the token at a position, or the problem of one without an end.
    pub fn at(script: &str, at: usize, syntax: &Syntax) -> Result<Self, &'static str> {
        let rest = &script[at..];
        let first = rest.chars().next().unwrap_or_default();
        if let Some(length) = comment(rest, syntax)? {
            let is_comment =
                !(syntax.mysql_comments && (rest.starts_with("/*!") || rest.starts_with("/*M!")));
            return Ok(Self { length, is_comment });
        }
        let before = &script[..at];
        let escapes = before.strip_suffix(['e', 'E']);
        let backslashes = syntax.backslashes
            || (syntax.postgres_texts && escapes.is_some_and(|before| !before.ends_with(is_of_word)));
        let length = match first {
            '\'' => quoted(rest, '\'', backslashes).ok_or("text has no end")?,
            '"' => quoted(rest, '"', syntax.backslashes).ok_or("name in quotes has no end")?,
            '$' if syntax.postgres_texts && !before.ends_with(is_of_word) => dollar_quoted(rest)?,
            _ => match syntax.names.iter().find(|(open, _)| *open == first) {
                Some((_, close)) => quoted(rest, *close, false).ok_or("name in quotes has no end")?,
                None => first.len_utf8(),
            },
        };
        Ok(Self {
            length,
            is_comment: false,
        })
    }
}

/// Returns the variable at a position that is not within a text, a name in quotes or a comment, such as `@id` or `?1`.
pub fn variable_at<'s>(statement: &'s str, at: usize, syntax: &Syntax) -> Option<&'s str> {
    let rest = &statement[at..];
    let first = rest
        .chars()
        .next()
        .filter(|first| syntax.variables.contains(first))?;
    let end = rest[1..]
        .find(|c| !is_of_word(c))
        .map_or(rest.len(), |end| end + 1);
    let is_within_word = first == '$' && statement[..at].ends_with(is_of_word);
    (!is_within_word && (end > 1 || first == '?')).then(|| &rest[..end])
}

/// Returns the first variable of a statement.
pub fn variable<'s>(statement: &'s str, syntax: &Syntax) -> Option<&'s str> {
    let mut at = 0;
    while at < statement.len() {
        // The database reports a text or a comment without an end.
        let token = Token::at(statement, at, syntax).ok()?;
        let found = variable_at(statement, at, syntax);
        if found.is_some() {
            return found;
        }
        at += token.length;
    }
    None
}

/// Returns the words, single characters, texts and names in quotes of a statement, without blanks and comments.
pub fn tokens<'s>(statement: &'s str, syntax: &Syntax) -> Vec<&'s str> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    while at < statement.len() {
        let rest = &statement[at..];
        let word = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        // The database reports a text or a comment without an end.
        let token = Token::at(statement, at, syntax).unwrap_or(Token {
            length: rest.len(),
            is_comment: true,
        });
        let length = if rest.starts_with('$') { 0 } else { word }.max(token.length);
        let text = &rest[..length];
        if !token.is_comment && !text.trim().is_empty() {
            tokens.push(text);
        }
        at += length;
    }
    tokens
}

/// Returns the length of the comment at the beginning of a text, without the line break after it.
fn comment(text: &str, syntax: &Syntax) -> Result<Option<usize>, &'static str> {
    let is_line_comment = match text.strip_prefix("--") {
        Some(rest) => !syntax.mysql_comments || !rest.starts_with(|next: char| !next.is_whitespace()),
        None => syntax.mysql_comments && text.starts_with('#'),
    };
    if is_line_comment {
        let line = &text[..text.find('\n').unwrap_or(text.len())];
        // Not every database ends a comment at a lone CR, so a statement after it could be taken for a comment.
        return match line.strip_suffix('\r').unwrap_or(line).contains('\r') {
            true => Err(
                "comment contains a CR without a LF, where not every database ends it; end the line with LF or CRLF",
            ),
            false => Ok(Some(line.len())),
        };
    }
    if !text.starts_with("/*") {
        return Ok(None);
    }
    let (mut depth, mut at) = (1, 2);
    while depth > 0 {
        let next = text[at..].find(['*', '/']).ok_or("comment has no end")? + at;
        (depth, at) = match text.get(next..next + 2) {
            Some("*/") => (depth - 1, next + 2),
            Some("/*") if syntax.nested_comments => (depth + 1, next + 2),
            _ => (depth, next + 1),
        };
    }
    Ok(Some(at))
}

/// Returns the length of a text in quotes. A doubled quote ends the text, and begins another one.
fn quoted(text: &str, close: char, backslashes: bool) -> Option<usize> {
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        if character == '\\' && backslashes {
            characters.next();
        } else if character == close {
            return Some(at + close.len_utf8());
        }
    }
    None
}

/// Returns the length of `$tag$ .. $tag$`, or 1 if the `$` does not begin one.
fn dollar_quoted(text: &str) -> Result<usize, &'static str> {
    let Some(tag) = text[1..].find('$').map(|end| &text[1..=end]) else {
        return Ok(1);
    };
    let is_tag =
        tag.chars().all(|c| c.is_alphanumeric() || c == '_') && !tag.starts_with(|c: char| c.is_numeric());
    if !is_tag {
        return Ok(1);
    }
    let quote = &text[..tag.len() + 2];
    let end = text[quote.len()..]
        .find(quote)
        .ok_or("text in dollar quotes has no end")?;
    Ok(quote.len() + end + quote.len())
}

/// Returns whether a character is part of a name without quotes.
pub fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

/// Returns the beginning of a statement, in one line.
pub fn beginning(statement: &str) -> String {
    const MOST: usize = 60;
    let words: Vec<&str> = statement.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: INPUT-01
    #[test]
    fn variables_are_found_outside_of_texts_names_and_comments() {
        for (statement, expected) in [
            ("SELECT @id", Some("@id")),
            ("SELECT 1 OR@id", Some("@id")),
            ("SELECT $id + 1", Some("$id")),
            ("SELECT $1", Some("$1")),
            ("SELECT ?1, 2", Some("?1")),
            ("INSERT INTO t VALUES (?)", Some("?")),
            ("UPDATE t SET a = :a", Some(":a")),
            ("SELECT a$b, '@x', \"$x\", `?`, [:y] -- @z\n/* ?1 */", None),
            ("SELECT @ FROM t", None),
        ] {
            assert_eq!(variable(statement, &SQLITE), expected, "{statement}");
            assert_eq!(variable(statement, &MYSQL), None, "{statement}");
            assert_eq!(variable(statement, &POSTGRES), None, "{statement}");
        }
    }

    #[test]
    fn the_beginning_is_one_line() {
        assert_eq!(
            beginning("INSERT INTO a\n  VALUES (1)"),
            "INSERT INTO a VALUES (1)"
        );
        assert_eq!(beginning(&"é".repeat(99)), format!("{}…", "é".repeat(60)));
    }
}
