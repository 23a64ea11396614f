//! The syntax of substitution: symbols in attribute values, in the draft `${name}`.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::codes;
use crate::diagnostics::Sink;
use crate::dialect::Dialect;
use crate::span::Span;
use crate::tree::{Attribute, Element};

/// A part of an attribute value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Literal(&'a str),
    /// A symbol, with the range of the whole operator in the value.
    Symbol(&'a str, Range<usize>),
    /// `${` that does not start a symbol, with its range and the mistake.
    Malformed(Range<usize>, &'static str),
}

/// Splits a value into pieces. Everything that is not a symbol is literal; there is no escape.
///
/// Spec: SUBST-04, SUBST-12
pub(crate) fn pieces(dialect: Dialect, value: &str) -> impl Iterator<Item = Piece<'_>> {
    let (open, close) = (dialect.rules().symbol_start, dialect.rules().symbol_end);
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &value[at..];
        if rest.is_empty() {
            return None;
        }
        let start = at;
        let Some(inner) = rest.strip_prefix(open) else {
            let length = rest.find(open).unwrap_or(rest.len());
            at += length;
            return Some(Piece::Literal(&rest[..length]));
        };
        let Some(length) = inner.find(close) else {
            at = value.len();
            return Some(Piece::Malformed(start..at, "`${` without `}`"));
        };
        at += open.len() + length + close.len();
        Some(match &inner[..length] {
            "" => Piece::Malformed(start..at, "a symbol without a name"),
            name if name.contains(open) => {
                Piece::Malformed(start..at, "a symbol within the name of a symbol")
            }
            name => Piece::Symbol(name, start..at),
        })
    })
}

pub(crate) fn has_symbols(dialect: Dialect, value: &str) -> bool {
    value.contains(dialect.rules().symbol_start)
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

/// Returns the names of all symbols of a tree, and reports malformed symbols.
///
/// Spec: SUBST-02, SUBST-12
pub(crate) fn collect(dialect: Dialect, root: &Element, sink: &mut Sink) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    root.walk(&mut |element| {
        for attribute in &element.attributes {
            // Reported where parents are looked up.
            if attribute.name.value == "parent" {
                continue;
            }
            for piece in pieces(dialect, &attribute.value) {
                match piece {
                    Piece::Literal(_) => {}
                    Piece::Symbol(name, _) => {
                        names.insert(name.to_owned());
                    }
                    Piece::Malformed(range, reason) => {
                        sink.error(codes::MALFORMED_SYMBOL, &place(attribute, range), |d| {
                            d.message(reason)
                                .help("write symbols as `${name}`; a single `$` needs no escape")
                        });
                    }
                }
            }
        }
    });
    names
}

#[cfg(test)]
mod tests {
    use super::Piece::{Literal, Malformed, Symbol};
    use super::*;

    #[track_caller]
    fn check(value: &str, expect: &[Piece<'_>]) {
        assert_eq!(
            pieces(Dialect::Draft, value).collect::<Vec<_>>(),
            expect,
            "{value:?}"
        );
    }

    /// Spec: SUBST-04, SUBST-12
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
                Malformed(1..4, "a symbol without a name"),
                Literal("b"),
            ],
        );
        check("a${b", &[Literal("a"), Malformed(1..4, "`${` without `}`")]);
        check(
            "${a${b}}",
            &[
                Malformed(0..7, "a symbol within the name of a symbol"),
                Literal("}"),
            ],
        );
    }
}
