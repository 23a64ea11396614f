//! Constants of properties: `name=value`.

use super::value::{Value, number};

/// Returns the value of a literal: a number as in JSON, `true`, `false`, a text in single quotes, or any other text, such as `007`.
///
/// # Errors
/// If something follows the closing quote.
pub(crate) fn literal(text: &str) -> Result<Value, String> {
    let text = text.trim();
    if let Some(length) = quoted_length(text) {
        return match &text[length..] {
            "" => Ok(Value::Text(text[1..length - 1].replace("''", "'"))),
            rest => Err(format!(
                "expected the end or `;` after `{}`, found `{rest}`",
                &text[..length]
            )),
        };
    }
    Ok(match text.parse() {
        Ok(value) => Value::Bool(value),
        Err(_) if serde_json::from_str::<&serde_json::value::RawValue>(text).is_err() => {
            Value::Text(text.to_owned())
        }
        Err(_) => number(text).unwrap_or_else(|| Value::Text(text.to_owned())),
    })
}

/// Splits a list of `name=value`. A value that begins with a quote may contain the separator, up to its closing quote.
pub(crate) fn constants(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let list = rest?;
        let end = list.find(separator);
        let value = list.find('=').filter(|at| end.is_none_or(|end| *at < end));
        let quoted = value.and_then(|at| {
            let value = list[at + 1..].trim_start();
            let start = list.len() - value.len();
            Some(start + quoted_length(value)?)
        });
        let end = match quoted {
            Some(after) => list[after..].find(separator).map(|end| after + end),
            None => end,
        };
        rest = end.map(|end| &list[end + separator.len_utf8()..]);
        Some(&list[..end.unwrap_or(list.len())])
    })
}

/// Returns the length of the quoted text at the beginning. A quote within it is doubled.
fn quoted_length(text: &str) -> Option<usize> {
    let mut after = text.strip_prefix('\'')?;
    loop {
        let (_, rest) = after.split_once('\'')?;
        match rest.strip_prefix('\'') {
            Some(rest) => after = rest,
            None => return Some(text.len() - rest.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: ITEM-SETTING-03
    #[test]
    fn a_constant_ends_at_its_closing_quote() {
        assert_eq!(literal(" 'it''s' "), Ok(Value::Text("it's".to_owned())));
        assert_eq!(literal("'t Hooft"), Ok(Value::Text("'t Hooft".to_owned())));
        assert_eq!(literal("''"), Ok(Value::Text(String::new())));
        let cause = literal("'a', next='b'").unwrap_err();
        assert_eq!(cause, "expected the end or `;` after `'a'`, found `, next='b'`");
    }

    // Spec: ITEM-SETTING-03
    #[test]
    fn a_constant_in_quotes_may_contain_the_separator() {
        let split = |text| constants(text, ',').collect::<Vec<_>>();
        assert_eq!(split("a=1, b=2"), ["a=1", " b=2"]);
        assert_eq!(
            split("a='x=1,y=2',b= 'it''s, so' , c"),
            ["a='x=1,y=2'", "b= 'it''s, so' ", " c"]
        );
        // Not closed, and not at the beginning of the value.
        assert_eq!(split("a='b,c=d'e,f"), ["a='b,c=d'e", "f"]);
        assert_eq!(split("a='b,c"), ["a='b", "c"]);
        assert_eq!(split("a=b'c,d='"), ["a=b'c", "d='"]);
        assert_eq!(split("a,b='c,d'"), ["a", "b='c,d'"]);
        assert_eq!(split(""), [""]);
        assert_eq!(constants("a='1;2'; b=3", ';').count(), 2);
    }
}
