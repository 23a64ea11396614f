//! What a column holds of the values of its type. More would be rounded, cut or dropped, which not every database reports.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::kind::{Kind, MOST_EXACT};
use super::temporal::Temporal;
use crate::record::decimal;

/// The limit of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The type has none, or the database reports what is beyond it.
    None,
    /// The digits of a number after the point; of its integer part, if negative.
    Fraction(i64),
    /// The digits after the second, and whether there is an offset from UTC.
    Clock {
        kind: Temporal,
        fraction: usize,
        has_zone: bool,
    },
    /// The bytes of a text.
    Bytes(usize),
    /// The characters of a text. The database rejects a longer text, unless only blanks exceed the limit: it cuts these.
    Characters(usize),
    /// Integers that a float of 32 bits holds.
    Single,
    /// JSON in a column that would keep only the last of several values with one name.
    Json,
}

impl Limit {
    /// Returns whether a column holds a text as it is.
    pub(super) fn holds_text(self, text: &str) -> bool {
        match self {
            Self::None | Self::Single => true,
            // The database rejects a text that is not a number.
            Self::Fraction(most) => {
                has_digits(text, most) || decimal::fraction(text).is_none_or(|digits| digits <= most)
            }
            Self::Clock {
                kind,
                fraction,
                has_zone,
            } => {
                let (digits, zone) = kind.parts(text);
                digits.trim_end_matches('0').len() <= fraction && (has_zone || is_utc(zone))
            }
            Self::Bytes(most) => text.len() <= most,
            Self::Json => names_differ(text),
            Self::Characters(most) => !is_longer_by_blanks(text, most),
        }
    }

    /// Returns whether a column holds a float: an integer exactly, another number as the nearest one.
    #[expect(clippy::cast_possible_truncation, reason = "the comparison finds it")]
    pub(super) fn holds_float(self, value: f64) -> bool {
        let is_integer = value.fract() == 0.0 && value.abs() <= MOST_EXACT as f64;
        self != Self::Single || !is_integer || f64::from(value as f32) == value
    }

    /// Returns what the column holds, for the error of a value that it does not.
    pub(super) fn expected(self, kind: Kind) -> String {
        match self {
            Self::None => kind.name().to_owned(),
            Self::Fraction(most) => format!("a number with at most {most} digits after the point"),
            Self::Clock {
                kind,
                fraction,
                has_zone,
            } => {
                let zone = if has_zone {
                    ""
                } else {
                    ", without an offset from UTC"
                };
                format!(
                    "{} with at most {fraction} digits after the second{zone}",
                    kind.name()
                )
            }
            Self::Bytes(most) => format!("a text of at most {most} bytes"),
            Self::Json => "JSON with each name once in an object".to_owned(),
            Self::Characters(most) => {
                format!("a text of at most {most} characters, blanks at its end included")
            }
            Self::Single => "a number that a float of 32 bits holds, if it is an integer exactly".to_owned(),
        }
    }
}

/// Returns whether no object in a JSON text has a name twice.
fn names_differ(text: &str) -> bool {
    /// A JSON value: true if no object in it has a name twice. Numbers may have any size.
    struct Value(bool);

    impl<'de> Deserialize<'de> for Value {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let raw: &RawValue = Deserialize::deserialize(deserializer)?;
            let of = |found: serde_json::Result<Value>| Ok(found.unwrap_or(Self(true)));
            match raw.get().as_bytes().first() {
                Some(b'{' | b'[') => of(serde_json::Deserializer::from_str(raw.get()).deserialize_any(Parts)),
                _ => Ok(Self(true)),
            }
        }
    }

    struct Parts;

    impl<'de> Visitor<'de> for Parts {
        type Value = Value;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object or a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
            let mut differ = true;
            while let Some(Value(within)) = list.next_element()? {
                differ &= within;
            }
            Ok(Value(differ))
        }

        fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
            let (mut names, mut differ) = (HashSet::new(), true);
            while let Some((name, Value(within))) = object.next_entry::<String, Value>()? {
                differ &= within & names.insert(name);
            }
            Ok(Value(differ))
        }
    }

    let found: serde_json::Result<Value> = serde_json::from_str(text);
    // The database rejects invalid JSON.
    found.map_or(true, |Value(differ)| differ)
}

/// Returns whether a text is without an exponent and has at most `most` digits after the point. Most numbers need no other check.
fn has_digits(text: &str, most: i64) -> bool {
    let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
    i64::try_from(digits).is_ok_and(|digits| digits <= most) && !text.contains(['e', 'E'])
}

/// Returns whether a text has more than `most` characters, and only blanks after the first `most`.
fn is_longer_by_blanks(text: &str, most: usize) -> bool {
    let may_be = text.len() > most && text.ends_with(' ');
    may_be && text.trim_end_matches(' ').chars().count() <= most && text.chars().count() > most
}

/// Returns whether a zone is UTC, or none.
fn is_utc(zone: &str) -> bool {
    let is_zero = |offset: &str| offset.bytes().all(|character| matches!(character, b'0' | b':'));
    matches!(zone, "" | "Z" | "z" | "UTC") || zone.strip_prefix(['+', '-']).is_some_and(is_zero)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: ITEM-VALUE-05
    #[test]
    fn limits_are_those_of_values_not_of_texts() {
        let clock = |kind, fraction, has_zone| Limit::Clock {
            kind,
            fraction,
            has_zone,
        };
        let timestamp = clock(Temporal::Timestamp, 0, false);
        for (limit, held, rejected) in [
            (
                Limit::Fraction(2),
                ["1.50", "1.5000", "-7", "1.25e1", "125e-2", "NaN"].as_slice(),
                ["1.505", "-0.001", "1.5e-2", "1e-3"].as_slice(),
            ),
            (Limit::Fraction(-2), &["1200", "0", "12e2"], &["1250", "1"]),
            (
                timestamp,
                &[
                    "2026-11-26 10:00:00",
                    "2026-11-26T10:00:00.000Z",
                    "2026-11-26 10:00 +00:00",
                    "2026-11-26",
                    "infinity",
                    "0044-03-15 10:00:00 BC",
                ],
                &[
                    "2026-11-26 10:00:00.5",
                    "2026-11-26T10:00:00+01:00",
                    "2026-11-26 10:00 -0130",
                    "2026-11-26 10:00 Europe/Berlin",
                ],
            ),
            (
                clock(Temporal::Timestamp, 6, true),
                &["2026-11-26 10:00:00.1234560+01:00"],
                &["2026-11-26 10:00:00.1234567"],
            ),
            (
                clock(Temporal::Time, 1, false),
                &["10:00:00.5", "-10:00:00.50", "10:00Z"],
                &["10:00+02", "10:00:00.55"],
            ),
            (Limit::Bytes(3), &["abc", "é"], &["abcd", "éé"]),
            (
                Limit::Characters(3),
                &["a  ", "ééé", "long", "a   b"],
                &["a   ", "    ", "ééé "],
            ),
            (
                Limit::Json,
                &[
                    r#"{"a":{"b":1},"b":[{"a":1},{"a":2}]}"#,
                    "[1e400, 123456789012345678901234567890]",
                    "1",
                    "no JSON",
                ],
                &[r#"{"a":1,"b":2,"a":1}"#, r#"[{"x":{"a":1,"\u0061":2}}]"#],
            ),
            (Limit::None, &["1.505"], &[]),
        ] {
            for text in held {
                assert!(limit.holds_text(text), "{limit:?} {text}");
            }
            for text in rejected {
                assert!(!limit.holds_text(text), "{limit:?} {text}");
            }
        }
        for (value, is_held) in [
            (16_777_216.0, true),
            (16_777_217.0, false),
            (-16_777_218.0, true),
            (0.1, true),
            (1e20, true),
        ] {
            assert_eq!(Limit::Single.holds_float(value), is_held, "{value}");
            assert!(Limit::None.holds_float(value), "{value}");
        }
    }
}
