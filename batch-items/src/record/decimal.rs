//! Numbers as texts, which have any number of digits.

use std::cmp::Ordering;

/// A decimal number: `0.digits` times ten to the power of `exponent`.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    /// Without zeros at the beginning and the end; empty for zero.
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// Parses `-12.50e3`; `None` for other texts, such as `NaN`.
    fn parse(text: &str) -> Option<Self> {
        let (is_negative, unsigned) = match text.as_bytes() {
            [b'-', ..] => (true, &text[1..]),
            [b'+', ..] => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, power) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, power)) => (mantissa, power.parse::<i32>().ok()?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..zeros);
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        let is_zero = digits.is_empty();
        Some(Self {
            is_negative: is_negative && !is_zero,
            digits,
            exponent: if is_zero {
                0
            } else {
                i64::from(power) + whole.len() as i64 - zeros as i64
            },
        })
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.is_negative, number.digits.is_empty()) {
            (true, _) => -1,
            (false, true) => 0,
            (false, false) => 1,
        };
        let size = |number: &Self| (number.exponent, number.digits.clone());
        let sizes = || match self.is_negative {
            true => size(other).cmp(&size(self)),
            false => size(self).cmp(&size(other)),
        };
        sign(self).cmp(&sign(other)).then_with(sizes)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares two numbers exactly; `None` if a text is not one.
pub(super) fn compare(one: &str, other: &str) -> Option<Ordering> {
    Some(Decimal::parse(one.trim_ascii())?.cmp(&Decimal::parse(other.trim_ascii())?))
}

/// Returns a text that two equal numbers have in common; `None` if the text is not a number.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let number = Decimal::parse(text.trim())?;
    let sign = if number.is_negative { "-" } else { "" };
    let digits = String::from_utf8_lossy(&number.digits);
    Some(format!("{sign}{digits}e{}", number.exponent))
}

/// Returns the integer that a number is; `None` if it has a fraction or is too large.
pub(super) fn integer(text: &str) -> Option<i64> {
    let number = Decimal::parse(text)?;
    let length = usize::try_from(number.exponent)
        .ok()
        .filter(|length| *length <= 19)?;
    if number.digits.len() > length {
        return None;
    }
    let mut digits = String::from(if number.is_negative { "-" } else { "" });
    digits.extend(number.digits.iter().map(|digit| char::from(*digit)));
    digits.extend(std::iter::repeat_n('0', length - number.digits.len()));
    if number.digits.is_empty() {
        Some(0)
    } else {
        digits.parse().ok()
    }
}

/// Returns a number times ten to the power of `scale`, if that is an integer of at most `precision` digits.
pub fn unscaled(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let number = Decimal::parse(text.trim_ascii())?;
    let length = usize::try_from(number.exponent + i64::from(scale)).ok();
    if number.digits.is_empty() {
        return Some(0);
    }
    let length = length.filter(|length| (number.digits.len()..=usize::from(precision)).contains(length))?;
    let mut digits = String::from(if number.is_negative { "-" } else { "" });
    digits.extend(number.digits.iter().map(|digit| char::from(*digit)));
    digits.extend(std::iter::repeat_n('0', length - number.digits.len()));
    digits.parse().ok()
}

/// Returns a number in the form that JSON has for it, with all its digits: `7.50` for `+007.50`. `None` if the text is not a number.
pub(super) fn plain(text: &str) -> Option<String> {
    Decimal::parse(text)?;
    let (sign, unsigned) = match text.as_bytes() {
        [b'-', ..] => ("-", &text[1..]),
        [b'+', ..] => ("", &text[1..]),
        _ => ("", text),
    };
    let end = unsigned.find(['e', 'E']).unwrap_or(unsigned.len());
    let (mantissa, power) = unsigned.split_at(end);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{fraction}{power}"))
}

/// Returns whether a text is a decimal number. `NaN` and `inf`, which parse as floats, are not.
pub(crate) fn is_number(text: &str) -> bool {
    Decimal::parse(text).is_some()
}

/// Returns whether the shortest text of the nearest float is the number itself. Two texts may be equally short: `81510663046254.12` and
/// `81510663046254.13` are the same float.
pub(crate) fn is_float(text: &str) -> bool {
    /// A float has any number of so many digits exactly.
    const DIGITS: usize = 15;
    let Ok(float) = text.parse::<f64>() else {
        return false;
    };
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    if float.is_normal() && digits <= DIGITS {
        return true;
    }
    let number = Decimal::parse(text);
    float.is_finite()
        && Decimal::parse(zmij::Buffer::new().format(float)) == number
        && Decimal::parse(&float.to_string()) == number
}

/// Returns the float of a text. A number that is too large, which would become infinite, is not one, nor is one that would become zero.
pub(crate) fn float(text: &str) -> Option<f64> {
    let is_zero = || Decimal::parse(text).is_some_and(|number| number.digits.is_empty());
    let value: f64 = text.parse().ok()?;
    let is_kept = (value.is_finite() || names_infinity(text)) && (value != 0.0 || is_zero());
    is_kept.then_some(value)
}

/// Returns whether a text that is a float names infinity, or no number.
pub fn names_infinity(text: &str) -> bool {
    !text.contains(|c: char| c.is_ascii_digit())
}

/// Returns whether a float is exactly the number of a text, if that is an integer without an exponent. Other numbers are rounded.
pub(crate) fn holds_integer(text: &str, float: f64) -> bool {
    /// A float has any integer of so many digits exactly.
    const DIGITS: usize = 15;
    if text.len() <= DIGITS || text.contains(['e', 'E']) {
        return true;
    }
    match Decimal::parse(text) {
        Some(number) if number.exponent >= number.digits.len() as i64 => {
            Decimal::parse(&format!("{float:.0}")) == Some(number)
        }
        _ => true,
    }
}

/// Returns the number of digits after the point, negative for zeros at the end of an integer; `None` if the text is not a number.
pub(crate) fn fraction(text: &str) -> Option<i64> {
    let number = Decimal::parse(text.trim_ascii())?;
    Some(match number.digits.len() as i64 {
        0 => i64::MIN,
        digits => digits - number.exponent,
    })
}

/// Returns whether a float is the number of a text: an integer exactly, another number in as many digits as its text has.
pub fn is_exactly(text: &str, float: f64) -> bool {
    let Some(number) = Decimal::parse(text) else {
        return false;
    };
    let shown = match number.digits.len() {
        _ if !text.contains(['.', 'e', 'E']) => format!("{float:.0}"),
        // So many digits may name a float that fewer would name, too.
        digits @ 16..=1000 => format!("{float:.*e}", digits - 1),
        _ => return is_float(text),
    };
    Decimal::parse(&shown) == Some(number)
}

/// Returns JSON without the blanks between its values.
pub(super) fn compact(json: &str) -> String {
    let (mut in_text, mut is_escaped) = (false, false);
    let is_kept = |character: &char| {
        match (in_text, character) {
            (true, _) if is_escaped => is_escaped = false,
            (true, '\\') => is_escaped = true,
            (_, '"') => in_text = !in_text,
            _ => {}
        }
        in_text || !character.is_ascii_whitespace()
    };
    json.chars().filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_may_have_an_exponent() {
        for (text, expected) in [
            ("1.0", Some(1)),
            ("1e2", Some(100)),
            ("-12.50e1", Some(-125)),
            ("0.0", Some(0)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("1.5", None),
            ("1e-1", None),
            ("1e400", None),
            ("NaN", None),
        ] {
            assert_eq!(integer(text), expected, "{text}");
        }
    }

    #[test]
    fn decimals_fit_exactly_or_not() {
        for (text, expected) in [
            ("12.5", Some(1250)),
            ("-0.01", Some(-1)),
            ("1e2", Some(10000)),
            ("0", Some(0)),
            ("0.0000", Some(0)),
            ("99999.99", Some(9_999_999)),
            ("100000", None),
            ("1.005", None),
            ("NaN", None),
            ("1e400", None),
        ] {
            assert_eq!(unscaled(text, 7, 2), expected, "{text}");
        }
    }

    // Spec: ITEM-VALUE-02
    #[test]
    fn numbers_are_compared_exactly() {
        let ascending = [
            "-1e400",
            "-9007199254740993",
            "-9007199254740992",
            "-0.2",
            "-0.10",
            "0",
            "1e-400",
            "0.1",
            "1",
            "9.99",
            "10",
            "12345678901234567890122",
            "12345678901234567890123",
        ];
        for (index, one) in ascending.iter().enumerate() {
            for (other_index, other) in ascending.iter().enumerate() {
                assert_eq!(
                    compare(one, other),
                    Some(index.cmp(&other_index)),
                    "{one} {other}"
                );
            }
        }
        assert_eq!(compare("1.50", "+15e-1"), Some(Ordering::Equal));
        assert_eq!(compare("-0.0", "0"), Some(Ordering::Equal));
        for text in ["", "-", "NaN", "inf", "1.234,50", "0x10", "1e", ".", "1 2"] {
            assert_eq!(compare(text, "1"), None, "{text}");
        }
    }

    // Spec: ITEM-VALUE-05
    #[test]
    fn integers_are_floats_only_if_they_are_exact() {
        for (text, expected) in [
            ("9007199254740992", true),
            ("9007199254740993", false),
            ("-9007199254740993.00", false),
            ("9007199254740993.5", true),
            ("9007199254740994", true),
            ("10000000000000000000000", true),
            ("100000000000000000000000", false),
            ("1e23", true),
            ("0.1", true),
        ] {
            let float = float(text).unwrap();
            assert_eq!(holds_integer(text, float), expected, "{text}");
        }
        for text in ["1e400", "-1e400", "1e-400", "x", ""] {
            assert_eq!(float(text), None, "{text}");
        }
        assert_eq!(float("inf"), Some(f64::INFINITY));
        assert_eq!(float("-0.0e-400"), Some(-0.0));
    }

    // Spec: ITEM-VALUE-02
    #[test]
    fn a_number_is_a_float_only_if_that_is_exact() {
        for (text, expected) in [
            ("1.50", true),
            ("0.30000000000000004", true),
            ("1234567890123456.78", false),
            ("81510663046254.12", false),
            ("81510663046254.13", false),
            ("1e400", false),
            ("1e-400", false),
            ("0.000", true),
        ] {
            assert_eq!(is_float(text), expected, "{text}");
        }
    }
}
