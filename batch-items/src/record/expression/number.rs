//! Exact decimal arithmetic.

use std::cmp::Ordering;
use std::fmt;

/// A decimal number: `mantissa`, of at most 38 digits, divided by ten to the power of `scale`. Operations are exact or return `None`, except
/// quotients, which are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    mantissa: i128,
    scale: u32,
}

/// Ten to the power of the most digits of a mantissa.
const LIMIT: i128 = 10_i128.pow(38);

/// The most digits after the point. More of them are zeros, or the number is smaller than any amount.
const LARGEST_SCALE: u32 = 100;

/// The digits after the point of a quotient.
const QUOTIENT_SCALE: u32 = 20;

/// The least digits of a quotient: one that is very small has more digits after the point.
const QUOTIENT_DIGITS: i128 = 10_i128.pow(15);

/// What happens to a digit that a rounded number does not have, if it is a 5 with nothing after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HalfTo {
    AwayFromZero,
    Even,
}

impl Number {
    pub(super) const fn integer(value: i64) -> Self {
        Self {
            mantissa: value as i128,
            scale: 0,
        }
    }

    /// Returns the number, if it has not too many digits.
    fn new(mantissa: i128, scale: u32) -> Option<Self> {
        match mantissa {
            0 => Some(Self {
                mantissa,
                scale: scale.min(LARGEST_SCALE),
            }),
            _ => (-LIMIT < mantissa && mantissa < LIMIT && scale <= LARGEST_SCALE)
                .then_some(Self { mantissa, scale }),
        }
    }

    /// Parses `-12.50` or `1.5e-3`; `None` for other texts, and for numbers of more than 38 digits.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim_ascii();
        let (is_negative, unsigned) = match text.as_bytes() {
            [b'-', ..] => (true, &text[1..]),
            [b'+', ..] => (false, &text[1..]),
            _ => (false, text),
        };
        let (mut mantissa, mut scale) = (0_i128, 0);
        let (mut has_digits, mut has_point, mut exponent) = (false, false, 0);
        for (at, byte) in unsigned.bytes().enumerate() {
            match byte {
                b'0'..=b'9' => {
                    mantissa = mantissa.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                    scale += u32::from(has_point);
                    has_digits = true;
                }
                b'.' if !has_point => has_point = true,
                b'e' | b'E' if has_digits => {
                    exponent = unsigned[at + 1..].parse().ok()?;
                    break;
                }
                _ => return None,
            }
        }
        if !has_digits {
            return None;
        }
        let mantissa = if is_negative { -mantissa } else { mantissa };
        Self { mantissa, scale }.shifted(exponent)
    }

    /// Multiplies by ten to the power of `exponent`.
    fn shifted(self, exponent: i32) -> Option<Self> {
        let scale = i64::from(self.scale) - i64::from(exponent);
        match u32::try_from(scale) {
            Ok(scale) => Self::new(self.mantissa, scale),
            Err(_) if self.mantissa == 0 => Some(Self::integer(0)),
            Err(_) => {
                let power = power(u32::try_from(-scale).ok()?)?;
                Self::new(self.mantissa.checked_mul(power)?, 0)
            }
        }
    }

    /// Returns the same number with at least `scale` digits after the point.
    fn scaled(self, scale: u32) -> Option<Self> {
        match scale.checked_sub(self.scale) {
            None | Some(0) => Some(self),
            Some(_) if self.mantissa == 0 => Self::new(0, scale),
            Some(more) => Self::new(self.mantissa.checked_mul(power(more)?)?, scale),
        }
    }

    fn aligned(self, other: Self) -> Option<(i128, i128, u32)> {
        let scale = self.scale.max(other.scale);
        Some((self.scaled(scale)?.mantissa, other.scaled(scale)?.mantissa, scale))
    }

    pub(super) fn compare(self, other: Self) -> Option<Ordering> {
        self.aligned(other).map(|(one, other, _)| one.cmp(&other))
    }

    pub(super) fn add(self, other: Self) -> Option<Self> {
        let (one, other, scale) = self.aligned(other)?;
        Self::new(one.checked_add(other)?, scale)
    }

    pub(super) fn subtract(self, other: Self) -> Option<Self> {
        self.add(other.negated())
    }

    pub(super) fn multiply(self, other: Self) -> Option<Self> {
        let mantissa = match (i64::try_from(self.mantissa), i64::try_from(other.mantissa)) {
            // Never more than an `i128`, and faster.
            (Ok(one), Ok(other)) => i128::from(one) * i128::from(other),
            _ => self.mantissa.checked_mul(other.mantissa)?,
        };
        Self::new(mantissa, self.scale + other.scale)
    }

    /// Returns the remainder, with the sign of the dividend.
    pub(super) fn remainder(self, divisor: Self) -> Option<Self> {
        let (one, other, scale) = self.aligned(divisor)?;
        Self::new(one.checked_rem(other)?, scale)
    }

    /// Returns the quotient, rounded to [`QUOTIENT_SCALE`] digits after the point, or to more if it would have too few digits otherwise, and to
    /// fewer if it has more than 38 digits.
    pub(super) fn divide(self, divisor: Self) -> Option<Self> {
        let (dividend, by) = (self.mantissa.abs(), divisor.mantissa.abs());
        let mut mantissa = dividend.checked_div(by)?;
        let mut rest = dividend % by;
        let mut scale = i64::from(self.scale) - i64::from(divisor.scale);
        let is_enough = |mantissa, scale| scale >= i64::from(QUOTIENT_SCALE) && mantissa >= QUOTIENT_DIGITS;
        while rest != 0 && mantissa < LIMIT / 10 && !is_enough(mantissa, scale) {
            let (digit, next) = next_digit(rest, by);
            (mantissa, rest, scale) = (mantissa * 10 + digit, next, scale + 1);
        }
        mantissa += i128::from(rest >= by - rest && rest != 0);
        let is_negative = (self.mantissa < 0) != (divisor.mantissa < 0);
        let mantissa = if is_negative { -mantissa } else { mantissa };
        match u32::try_from(scale) {
            Ok(scale) => Self::new(mantissa, scale),
            // The digits before the point are not complete: the number has too many.
            Err(_) if rest != 0 => None,
            Err(_) => Self { mantissa, scale: 0 }.shifted(i32::try_from(-scale).ok()?),
        }
    }

    /// Rounds to `digits` after the point, or before it if negative. Missing digits are zeros.
    pub(super) fn round(self, digits: i32, half: HalfTo) -> Option<Self> {
        let dropped = i64::from(self.scale) - i64::from(digits);
        if dropped <= 0 {
            return self.scaled(u32::try_from(digits).ok()?);
        }
        // Without a power all digits are dropped.
        let Some(unit) = power(u32::try_from(dropped).ok()?) else {
            return Self::integer(0).scaled(u32::try_from(digits).unwrap_or(0));
        };
        let (mut quotient, rest) = divided(self.mantissa, unit);
        let rest = rest.unsigned_abs();
        let is_up = match (rest.cmp(&(unit.unsigned_abs() - rest)), half) {
            (Ordering::Less, _) => false,
            (Ordering::Greater, _) | (Ordering::Equal, HalfTo::AwayFromZero) => true,
            (Ordering::Equal, HalfTo::Even) => quotient % 2 != 0,
        };
        if is_up {
            quotient += self.mantissa.signum();
        }
        Self {
            mantissa: quotient,
            scale: 0,
        }
        .shifted(-digits)
    }

    /// Returns the largest integer that is not above the number.
    pub(super) fn floor(self) -> Self {
        // A larger power is above every `i128`.
        let floor = power(self.scale).map_or(self.mantissa >> 127, |unit| self.mantissa.div_euclid(unit));
        Self {
            mantissa: floor,
            scale: 0,
        }
    }

    pub(super) fn negated(self) -> Self {
        Self {
            mantissa: -self.mantissa,
            ..self
        }
    }

    pub(super) fn abs(self) -> Self {
        Self {
            mantissa: self.mantissa.abs(),
            ..self
        }
    }

    pub(super) fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// Returns the integer that the number is, if it has no digits after the point but zeros.
    pub(super) fn to_integer(self) -> Option<i64> {
        let unit = power(self.scale)?;
        (self.mantissa % unit == 0).then(|| i64::try_from(self.mantissa / unit).ok())?
    }

    /// Returns the number as an `i64` if it is written without a point.
    pub(super) fn as_i64(self) -> Option<i64> {
        (self.scale == 0).then(|| i64::try_from(self.mantissa).ok())?
    }
}

/// Returns quotient and rest.
fn divided(dividend: i128, divisor: i128) -> (i128, i128) {
    match (i64::try_from(dividend), i64::try_from(divisor)) {
        // Faster than 128 bits, and nothing overflows.
        (Ok(dividend), Ok(divisor)) if divisor > 0 => {
            (i128::from(dividend / divisor), i128::from(dividend % divisor))
        }
        _ => (dividend / divisor, dividend % divisor),
    }
}

/// Returns the next digit of a quotient, and the rest after it. `rest` is less than `by`, and ten times as much may be more than an `i128`.
fn next_digit(rest: i128, by: i128) -> (i128, i128) {
    if let Some(tenfold) = rest.checked_mul(10) {
        return (tenfold / by, tenfold % by);
    }
    let (mut digit, mut sum) = (0, 0);
    for _ in 0..10 {
        // Both are less than `by`, which is less than ten to the power of 38.
        sum = match sum - (by - rest) {
            less if less < 0 => sum + rest,
            more => {
                digit += 1;
                more
            }
        };
    }
    (digit, sum)
}

fn power(exponent: u32) -> Option<i128> {
    10_i128.checked_pow(exponent)
}

impl Number {
    /// Returns the number as it is written in JSON, with all digits after the point.
    pub(super) fn to_text(self) -> String {
        let (mut short, mut long) = (itoa::Buffer::new(), itoa::Buffer::new());
        let digits = match u64::try_from(self.mantissa.unsigned_abs()) {
            Ok(digits) => short.format(digits),
            Err(_) => long.format(self.mantissa.unsigned_abs()),
        };
        let scale = self.scale as usize;
        let mut text = String::with_capacity(digits.len().max(scale) + 3);
        if self.mantissa < 0 {
            text.push('-');
        }
        let point = digits.len().saturating_sub(scale);
        text.push_str(if point == 0 { "0" } else { &digits[..point] });
        if scale > 0 {
            text.push('.');
            (digits.len()..scale).for_each(|_| text.push('0'));
            text.push_str(&digits[point..]);
        }
        text
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn texts_are_numbers_exactly() {
        for (text, shown) in [
            ("0", "0"),
            ("-12.50", "-12.50"),
            (" +7 ", "7"),
            (".5", "0.5"),
            ("-0.05", "-0.05"),
            ("1.5e3", "1500"),
            ("1.5e-3", "0.0015"),
            (
                "99999999999999999999999999999999999999",
                "99999999999999999999999999999999999999",
            ),
        ] {
            assert_eq!(number(text).to_string(), shown, "{text}");
        }
        for text in [
            "",
            "-",
            ".",
            "1.2.3",
            "1,5",
            "NaN",
            "inf",
            "e5",
            "1e",
            "1e99",
            "0x1",
            "1 2",
            &"9".repeat(40),
        ] {
            assert_eq!(Number::parse(text), None, "{text}");
        }
    }

    #[test]
    fn arithmetic_is_exact_or_fails() {
        let (a, b) = (number("0.1"), number("0.20"));
        assert_eq!(a.add(b).unwrap().to_string(), "0.30");
        assert_eq!(a.subtract(b).unwrap().to_string(), "-0.10");
        assert_eq!(
            number("19.99").multiply(number("1.19")).unwrap().to_string(),
            "23.7881"
        );
        assert_eq!(number("-7.5").remainder(number("2")).unwrap().to_string(), "-1.5");
        let large = number(&"9".repeat(38));
        assert_eq!(large.multiply(large), None);
        assert_eq!(large.add(large), None);
        assert_eq!(a.remainder(number("0")), None);
        assert_eq!(a.compare(number("0.1000")), Some(Ordering::Equal));
    }

    #[test]
    fn a_quotient_is_exact_or_rounded() {
        for (one, other, quotient) in [
            ("10", "4", "2.5"),
            ("1", "3", "0.33333333333333333333"),
            ("-2", "3", "-0.66666666666666666667"),
            ("0.06", "0.02", "3"),
            ("0", "7", "0"),
            (
                "12345678901234567890123456789",
                "7",
                "1763668414462081127160493827.0000000000",
            ),
        ] {
            let found = number(one).divide(number(other)).unwrap();
            assert_eq!(
                found.compare(number(quotient)),
                Some(Ordering::Equal),
                "{one} / {other}: {found}"
            );
        }
        assert_eq!(number("1").divide(number("0.00")), None);
    }

    #[test]
    fn halves_are_rounded_away_from_zero_or_to_even() {
        let round = |text, digits, half| number(text).round(digits, half).unwrap().to_string();
        for (text, digits, away, even) in [
            ("2.345", 2, "2.35", "2.34"),
            ("-2.345", 2, "-2.35", "-2.34"),
            ("2.355", 2, "2.36", "2.36"),
            ("2.3449", 2, "2.34", "2.34"),
            ("2", 2, "2.00", "2.00"),
            ("1250", -2, "1300", "1200"),
            ("0.4", 0, "0", "0"),
            ("5e-40", 2, "0.00", "0.00"),
        ] {
            assert_eq!(
                number(&round(text, digits, HalfTo::AwayFromZero)),
                number(away),
                "{text}"
            );
            assert_eq!(number(&round(text, digits, HalfTo::Even)), number(even), "{text}");
        }
        assert_eq!(number("-1.2").floor().to_string(), "-2");
        assert_eq!(number("1.2").floor().to_string(), "1");
        assert_eq!(number("3.00").to_integer(), Some(3));
        assert_eq!(number("3.01").to_integer(), None);
    }
}
