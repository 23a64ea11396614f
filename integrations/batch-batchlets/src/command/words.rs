//! Lists of words in a property: the arguments and the environment of a command.

use std::str::FromStr;

/// Words separated by blanks, or several in quotes; or the lines of a text with line breaks, as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words(pub(crate) Vec<String>);

impl FromStr for Words {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('\n') {
            let lines = text.lines().filter(|line| !line.is_empty());
            return Ok(Self(lines.map(str::to_owned).collect()));
        }
        let mut words = Vec::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let word;
            (word, rest) = split_word(rest)?;
            words.push(word);
            rest = rest.trim_start();
        }
        Ok(Self(words))
    }
}

/// Returns the first word of a text, without its quotes, and the text after it.
fn split_word(text: &str) -> Result<(String, &str), String> {
    let mut word = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next().filter(|next| !next.is_whitespace()) {
        rest = &rest[next.len_utf8()..];
        if matches!(next, '"' | '\'') {
            let (quoted, after) = rest
                .split_once(next)
                .ok_or_else(|| format!("a quote {next} is not closed"))?;
            word.push_str(quoted);
            rest = after;
        } else {
            word.push(next);
        }
    }
    Ok((word, rest))
}

/// Environment variables, each `NAME=value`.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Environment(pub(super) Vec<(String, String)>);

impl FromStr for Environment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Words = text.parse()?;
        let variable = |(index, word): (usize, &String)| match word.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
            // Without the text, which may be a password.
            _ => Err(format!("entry {} is not `NAME=value`", index + 1)),
        };
        words
            .0
            .iter()
            .enumerate()
            .map(variable)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(text.parse::<Words>().unwrap().0, expected, "{text:?}");
    }

    #[test]
    fn blanks_separate_and_quotes_group() {
        check("", &[]);
        check("  ", &[]);
        check(" -a  b ", &["-a", "b"]);
        check("'a b' \"c d\"", &["a b", "c d"]);
        check("--name='a b'c", &["--name=a bc"]);
        check("'it is \"quoted\"' \"it's\"", &["it is \"quoted\"", "it's"]);
        check("'' x", &["", "x"]);
        check(r"C:\data\in", &[r"C:\data\in"]);
    }

    #[test]
    fn lines_are_taken_as_they_are() {
        check("a b\n'c'\n", &["a b", "'c'"]);
        check("it's\n", &["it's"]);
        check("a\r\nb", &["a", "b"]);
    }

    #[test]
    fn an_open_quote_is_an_error() {
        assert_eq!("a 'b c".parse::<Words>(), Err("a quote ' is not closed".into()));
    }

    #[test]
    fn variables_have_names() {
        let environment: Environment = "LANG=C  OPTIONS='-a=1 -b'  EMPTY=".parse().unwrap();
        let expected = [("LANG", "C"), ("OPTIONS", "-a=1 -b"), ("EMPTY", "")];
        assert_eq!(
            environment.0,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        for text in ["A=1 s3cret", "A=1 =s3cret"] {
            let error = text.parse::<Environment>().err().unwrap();
            assert_eq!(error, "entry 2 is not `NAME=value`");
        }
    }
}
