//! The words, texts, numbers and operators of an expression.

/// A token and its place in the text.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Debug, PartialEq)]
pub(super) enum TokenKind {
    /// A word without quotes: the name of a field or function, or a keyword. With a `?`, of a field that records may lack.
    Word(String, bool),
    /// The name of a field in double quotes or backticks, and whether records may lack it.
    Name(String, bool),
    /// A text in single quotes.
    Text(String),
    Number(String),
    Symbol(&'static str),
    End,
}

/// Longer symbols precede their prefixes.
const SYMBOLS: [&str; 19] = [
    "!~*", "<=", ">=", "<>", "!=", "||", "!~", "~*", "~", "=", "<", ">", "+", "-", "*", "/", "%", "(", ")",
];

/// Operators of other languages, with their replacements.
const FOREIGN: [(&str, &str); 7] = [
    ("--", "a comment is not possible, and `- -1` is a number"),
    ("/*", "a comment is not possible"),
    ("::", "write `cast(value as int)`"),
    ("==", "`=` compares"),
    ("&&", "write `and`"),
    ("!", "write `not`, or `<>` for different values"),
    (";", "one expression has no `;`"),
];

/// Splits an expression into tokens. The last one is [`TokenKind::End`].
pub(super) fn tokens(source: &str) -> Result<Vec<Token>, String> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    loop {
        at += source[at..].len() - source[at..].trim_start().len();
        let (kind, length) = token(&source[at..]).map_err(|cause| format!("{cause}{}", place(source, at)))?;
        let is_end = kind == TokenKind::End;
        tokens.push(Token {
            kind,
            start: at,
            end: at + length,
        });
        if is_end {
            return Ok(tokens);
        }
        at += length;
    }
}

/// Returns where a mistake is. Of a long expression it shows the part around it.
pub(super) fn place(source: &str, at: usize) -> String {
    const AROUND: usize = 40;
    let number = source[..at].chars().count();
    let start = number.saturating_sub(AROUND);
    let part: String = source.chars().skip(start).take(2 * AROUND).collect();
    let before = if start > 0 { ".." } else { "" };
    let after = if source.chars().count() > start + 2 * AROUND {
        ".."
    } else {
        ""
    };
    format!(" at character {} of `{before}{part}{after}`", number + 1)
}

/// Returns the token at the beginning of a text without blanks before it, and its length.
fn token(rest: &str) -> Result<(TokenKind, usize), String> {
    let Some(first) = rest.chars().next() else {
        return Ok((TokenKind::End, 0));
    };
    match first {
        '\'' => {
            let (text, length) = quoted(rest, '\'')?;
            return Ok((TokenKind::Text(text), length));
        }
        '"' | '`' => {
            let (name, length) = quoted(rest, first)?;
            let may_lack = rest[length..].starts_with('?');
            return Ok((TokenKind::Name(name, may_lack), length + usize::from(may_lack)));
        }
        '0'..='9' => return number(rest),
        ',' => return Ok((TokenKind::Symbol(","), 1)),
        _ if begins_word(first) => {
            let length = word_length(rest);
            let may_lack = rest[length..].starts_with('?');
            let word = rest[..length].to_owned();
            return Ok((TokenKind::Word(word, may_lack), length + usize::from(may_lack)));
        }
        _ => {}
    }
    let foreign = |(text, _): &&(&str, &str)| {
        rest.starts_with(text) && !["!=", "!~"].iter().any(|known| rest.starts_with(known))
    };
    if let Some((text, hint)) = FOREIGN.iter().find(foreign) {
        return Err(format!("found `{text}`; {hint},"));
    }
    match SYMBOLS.iter().find(|symbol| rest.starts_with(*symbol)) {
        Some(symbol) => Ok((TokenKind::Symbol(symbol), symbol.len())),
        None => Err(format!("unexpected `{first}`")),
    }
}

/// Returns the length of the word at the beginning. `a::int` is not one.
fn word_length(rest: &str) -> usize {
    let length = rest.find(|next| !is_of_word(next)).unwrap_or(rest.len());
    rest[..length].find("::").unwrap_or(length)
}

/// Parses the name of a field, which may be in quotes, and whether records may lack it. Other characters of a name need no quotes.
pub(super) fn field_name(text: &str) -> Result<(String, bool), String> {
    let text = text.trim();
    match token(text) {
        Ok((TokenKind::Name(name, may_lack), length)) if length == text.len() => Ok((name, may_lack)),
        Ok((TokenKind::Name(..), _)) | Err(_) if text.starts_with(['"', '`']) => {
            Err(format!("expected the name of a field, found `{text}`"))
        }
        _ => {
            let name = text.strip_suffix('?');
            Ok((name.unwrap_or(text).to_owned(), name.is_some()))
        }
    }
}

fn begins_word(character: char) -> bool {
    character.is_alphabetic() || "_@$".contains(character)
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || "_@$.:".contains(character)
}

/// Returns the text in quotes at the beginning, where a quote is doubled, and its length.
fn quoted(rest: &str, quote: char) -> Result<(String, usize), String> {
    let (mut text, mut at) = (String::new(), 1);
    while let Some(end) = rest[at..].find(quote) {
        text.push_str(&rest[at..at + end]);
        at += end + 1;
        if !rest[at..].starts_with(quote) {
            return Ok((text, at));
        }
        text.push(quote);
        at += 1;
    }
    Err(format!("the quote {quote} is not closed"))
}

/// Returns the number at the beginning.
fn number(rest: &str) -> Result<(TokenKind, usize), String> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut length = digits(rest);
    if rest[length..].starts_with('.') {
        length += 1 + digits(&rest[length + 1..]);
    }
    if rest[length..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[length + 1..].starts_with(['+', '-']));
        length += 1 + sign + digits(&rest[length + 1 + sign..]);
    }
    let word = &rest[..rest
        .find(|next| !is_of_word(next) && next != '-')
        .unwrap_or(rest.len())];
    let lengths: Vec<usize> = word.split('-').map(digits).collect();
    let is_date = lengths == [4, 2, 2] && word.len() == 10;
    let has_digits = !rest[..length].ends_with(['e', 'E', '+', '-']);
    let is_padded = length > 1 && rest.starts_with('0') && !rest[1..].starts_with(['.', 'e', 'E']);
    if !has_digits || is_date || is_padded || rest[length..].starts_with(is_of_word) {
        return Err(format!(
            "`{word}` is not a number; write `'{word}'` for a text, or `\"{word}\"` for a field,"
        ));
    }
    Ok((TokenKind::Number(rest[..length].to_owned()), length))
}
