//! The syntax of substitution in attribute values: in the draft `${name}`, in Jakarta Batch
//! `#{jobParameters['name']}?:default;`.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::codes;
use crate::diagnostics::{Sink, quoted};
use crate::dialect::{Dialect, Substitution, ValueSource};
use crate::span::Span;
use crate::suggest;
use crate::tree::{Attribute, Element};

/// The start of a symbol.
const SYMBOL: &str = "${";
/// The start of an expression.
const EXPRESSION: &str = "#{";

/// The sources that an expression can name.
const SOURCES: [(&str, ValueSource); 4] = [
    ("jobParameters", ValueSource::JobParameter),
    ("jobProperties", ValueSource::InnermostProperty),
    ("systemProperties", ValueSource::SystemProperty),
    ("partitionPlan", ValueSource::Partition),
];

/// A part of an attribute value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Literal(&'a str),
    /// A name to look up, with the range of the whole operator in the value.
    Symbol(Name<'a>, Range<usize>),
    /// The start of a symbol or expression that is none, with its range and the mistake.
    Malformed(Range<usize>, Mistake<'a>),
}

/// A name to look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name<'a> {
    pub(crate) name: &'a str,
    /// The only source, if the syntax names one.
    pub(crate) source: Option<ValueSource>,
    /// The text, with symbols, to use if the value is empty.
    pub(crate) default: Option<&'a str>,
}

/// A mistake in a symbol or expression.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mistake<'a> {
    Text(&'static str),
    /// The name of a source that does not exist.
    UnknownSource(&'a str),
}

/// Splits a value into pieces. Everything that is not a symbol is literal; there is no escape.
// Spec: SUBST-04, SUBST-12
pub(crate) fn pieces(dialect: Dialect, value: &str) -> impl Iterator<Item = Piece<'_>> {
    let open = start(dialect);
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &value[at..];
        if rest.is_empty() {
            return None;
        }
        let start = at;
        if !rest.starts_with(open) {
            let length = rest.find(open).unwrap_or(rest.len());
            at += length;
            return Some(Piece::Literal(&rest[..length]));
        }
        let (length, found) = match dialect.rules().substitution {
            Substitution::Symbols => symbol(rest),
            Substitution::Expressions => expression(rest),
        };
        at += length;
        Some(match found {
            Ok(name) => Piece::Symbol(name, start..at),
            Err(mistake) => Piece::Malformed(start..at, mistake),
        })
    })
}

fn start(dialect: Dialect) -> &'static str {
    match dialect.rules().substitution {
        Substitution::Symbols => SYMBOL,
        Substitution::Expressions => EXPRESSION,
    }
}

/// Reads the symbol at the start of a text. Returns its length.
fn symbol(text: &str) -> (usize, Result<Name<'_>, Mistake<'_>>) {
    let inner = &text[SYMBOL.len()..];
    let Some(length) = inner.find('}') else {
        return (text.len(), Err(Mistake::Text("`${` without `}`")));
    };
    let name = match &inner[..length] {
        "" => Err(Mistake::Text("a symbol without a name")),
        name if name.contains(SYMBOL) => Err(Mistake::Text("a symbol within the name of a symbol")),
        name => Ok(Name {
            name,
            source: None,
            default: None,
        }),
    };
    (SYMBOL.len() + length + 1, name)
}

/// Reads the expression at the start of a text, with its default. Returns its length.
fn expression(text: &str) -> (usize, Result<Name<'_>, Mistake<'_>>) {
    let inner = &text[EXPRESSION.len()..];
    let Some((source, rest)) = inner.split_once("['") else {
        let length = inner
            .find('}')
            .map_or(text.len(), |end| EXPRESSION.len() + end + 1);
        return (length, Err(Mistake::Text("an expression without `['name']`")));
    };
    let Some((name, after)) = rest.split_once("']}") else {
        return (
            text.len(),
            Err(Mistake::Text("an expression without `']}` after the name")),
        );
    };
    let length = text.len() - after.len();
    let known = SOURCES.iter().find(|(known, _)| *known == source);
    let Some((_, known)) = known else {
        return (length, Err(Mistake::UnknownSource(source)));
    };
    if name.is_empty() {
        return (length, Err(Mistake::Text("an expression without a name")));
    }
    let mut found = Name {
        name,
        source: Some(*known),
        default: None,
    };
    let Some(default) = after.strip_prefix("?:") else {
        return (length, Ok(found));
    };
    match default.split_once(';') {
        Some((default, after)) => {
            found.default = Some(default);
            (text.len() - after.len(), Ok(found))
        }
        None => (
            text.len(),
            Err(Mistake::Text("a default `?:` without `;` at its end")),
        ),
    }
}

/// Returns the syntax for messages.
pub(crate) fn form(dialect: Dialect) -> &'static str {
    match dialect.rules().substitution {
        Substitution::Symbols => "${..}",
        Substitution::Expressions => "#{..}",
    }
}

pub(crate) fn has_symbols(dialect: Dialect, value: &str) -> bool {
    value.contains(start(dialect))
}

/// Returns the place of a range of an attribute's value, or of the whole value if it contains entity references.
pub(crate) fn place(attribute: &Attribute, range: Range<usize>) -> Span {
    let span = &attribute.value.span;
    if span.text() == attribute.value.value {
        span.part(range)
    } else {
        span.clone()
    }
}

/// Returns the names of the job parameters that a tree may use, and reports malformed symbols.
// Spec: SUBST-02, SUBST-12
pub(crate) fn collect(dialect: Dialect, root: &Element, sink: &mut Sink) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    root.walk(&mut |element| {
        for attribute in &element.attributes {
            // Reported where parents are looked up.
            if attribute.name.value != "parent" {
                warn_of_other_syntax(dialect, attribute, sink);
                collect_in(dialect, attribute, &attribute.value, &mut names, sink);
            }
        }
    });
    names
}

/// Collects in a part of an attribute's value.
fn collect_in(
    dialect: Dialect,
    attribute: &Attribute,
    value: &str,
    names: &mut BTreeSet<String>,
    sink: &mut Sink,
) {
    for piece in pieces(dialect, value) {
        match piece {
            Piece::Literal(_) => {}
            Piece::Symbol(found, _) => {
                if matches!(found.source, None | Some(ValueSource::JobParameter)) {
                    names.insert(found.name.to_owned());
                }
                if let Some(default) = found.default {
                    collect_in(dialect, attribute, default, names, sink);
                }
            }
            Piece::Malformed(range, mistake) => report(dialect, attribute, range, &mistake, sink),
        }
    }
}

pub(crate) fn report(
    dialect: Dialect,
    attribute: &Attribute,
    range: Range<usize>,
    mistake: &Mistake<'_>,
    sink: &mut Sink,
) {
    let help = match dialect.rules().substitution {
        Substitution::Symbols => "write symbols as `${name}`; a single `$` needs no escape",
        Substitution::Expressions => {
            "write `#{jobParameters['name']}`, or `jobProperties`, `systemProperties` or `partitionPlan`, and a default as \
             `#{..}?:default;`"
        }
    };
    sink.error(
        codes::MALFORMED_SYMBOL,
        &place(attribute, range),
        |d| match mistake {
            Mistake::Text(text) => d.message(*text).help(help),
            Mistake::UnknownSource(name) => {
                let d = d.message(format!("{} is not a source of values", quoted(name)));
                match suggest::nearest(name, SOURCES.map(|(name, _)| name)) {
                    Some(near) => d.suggestion(Some(near)),
                    None => d.help(help),
                }
            }
        },
    );
}

/// Warns about the syntax of the other dialect, which is literal text in this one.
fn warn_of_other_syntax(dialect: Dialect, attribute: &Attribute, sink: &mut Sink) {
    let (other, help) = match dialect.rules().substitution {
        Substitution::Symbols => (
            EXPRESSION,
            "write symbols as `${name}`; a document in the dialect `jakarta` has the namespace \
             `https://jakarta.ee/xml/ns/jakartaee`",
        ),
        Substitution::Expressions => (
            SYMBOL,
            "write expressions as `#{jobParameters['name']}` or `#{jobProperties['name']}`; a document in the dialect `draft` has \
             no namespace",
        ),
    };
    if let Some(at) = attribute.value.find(other) {
        sink.warning(
            codes::OTHER_SYNTAX,
            &place(attribute, at..at + other.len()),
            |d| {
                d.message(format!("`{other}` is literal text in the dialect `{dialect}`"))
                    .help(help)
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::Mistake::{Text, UnknownSource};
    use super::Piece::{Literal, Malformed};
    use super::*;

    #[allow(non_snake_case, reason = "reads as the piece")]
    fn Symbol(name: &str, range: Range<usize>) -> Piece<'_> {
        let name = Name {
            name,
            source: None,
            default: None,
        };
        Piece::Symbol(name, range)
    }

    #[track_caller]
    fn check(value: &str, expect: &[Piece<'_>]) {
        assert_eq!(
            pieces(Dialect::Draft, value).collect::<Vec<_>>(),
            expect,
            "{value:?}"
        );
    }

    // Spec: SUBST-04, SUBST-12
    #[test]
    fn values_are_cut_into_pieces() {
        check("", &[]);
        check("a$b$$}c$", &[Literal("a$b$$}c$")]);
        check("${a}", &[Symbol("a", 0..4)]);
        check(
            "x${a}${b c}y",
            &[
                Literal("x"),
                Symbol("a", 1..5),
                Symbol("b c", 5..11),
                Literal("y"),
            ],
        );
        check("$${a}}", &[Literal("$"), Symbol("a", 1..5), Literal("}")]);
        check("ä${ö}", &[Literal("ä"), Symbol("ö", 2..7)]);
        check(
            "a${}b",
            &[
                Literal("a"),
                Malformed(1..4, Text("a symbol without a name")),
                Literal("b"),
            ],
        );
        check("a${b", &[Literal("a"), Malformed(1..4, Text("`${` without `}`"))]);
        check(
            "${a${b}}",
            &[
                Malformed(0..7, Text("a symbol within the name of a symbol")),
                Literal("}"),
            ],
        );
    }

    #[track_caller]
    fn check_expression(value: &str, expect: &[Piece<'_>]) {
        let found: Vec<_> = pieces(Dialect::Jakarta, value).collect();
        assert_eq!(found, expect, "{value:?}");
    }

    fn expression<'a>(
        source: ValueSource,
        name: &'a str,
        default: Option<&'a str>,
        range: Range<usize>,
    ) -> Piece<'a> {
        let source = Some(source);
        Piece::Symbol(
            Name {
                name,
                source,
                default,
            },
            range,
        )
    }

    #[test]
    fn expressions_name_their_source_and_have_defaults() {
        let parameter = |name, default, range| expression(ValueSource::JobParameter, name, default, range);
        check_expression("${a}?:b;", &[Literal("${a}?:b;")]);
        check_expression("#{jobParameters['a']}", &[parameter("a", None, 0..21)]);
        check_expression(
            "x#{jobParameters['a.b']}?:#{systemProperties['c']};.txt",
            &[
                Literal("x"),
                parameter("a.b", Some("#{systemProperties['c']}"), 1..51),
                Literal(".txt"),
            ],
        );
        check_expression(
            "#{jobProperties['p']}#{partitionPlan['q']}?:;",
            &[
                expression(ValueSource::InnermostProperty, "p", None, 0..21),
                expression(ValueSource::Partition, "q", Some(""), 21..45),
            ],
        );
        check_expression(
            "#{a}b",
            &[
                Malformed(0..4, Text("an expression without `['name']`")),
                Literal("b"),
            ],
        );
        check_expression(
            "#{jobParameters['a",
            &[Malformed(
                0..18,
                Text("an expression without `']}` after the name"),
            )],
        );
        check_expression(
            "#{parameters['a']}",
            &[Malformed(0..18, UnknownSource("parameters"))],
        );
        check_expression(
            "#{jobParameters['']}",
            &[Malformed(0..20, Text("an expression without a name"))],
        );
        check_expression(
            "#{jobParameters['a']}?:b",
            &[Malformed(0..24, Text("a default `?:` without `;` at its end"))],
        );
    }
}
