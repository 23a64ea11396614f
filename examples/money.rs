//! Amounts of money in whole cents, so that sums are exact.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An amount. Parses text such as `12.50`, `8` or `-5.00`, so it can be a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cents(pub i64);

/// The text is not an amount.
#[derive(Debug, PartialEq, Eq)]
pub struct NoAmount(String);

impl FromStr for Cents {
    type Err = NoAmount;

    fn from_str(text: &str) -> Result<Self, NoAmount> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, text),
        };
        let (whole, part) = digits.split_once('.').unwrap_or((digits, "00"));
        let number = |digits: &str| -> Option<i64> {
            let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
            are_digits.then(|| digits.parse().ok())?
        };
        let cents = || -> Option<i64> {
            let part = number(part).filter(|_| part.len() == 2)?;
            number(whole)?
                .checked_mul(100)?
                .checked_add(part)?
                .checked_mul(sign)
        };
        cents().map(Self).ok_or_else(|| NoAmount(text.into()))
    }
}

impl fmt::Display for Cents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let cents = self.0.unsigned_abs();
        f.pad(&format!("{sign}{}.{:02}", cents / 100, cents % 100))
    }
}

/// From text, as in a CSV file.
impl<'de> Deserialize<'de> for Cents {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

impl Serialize for Cents {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl fmt::Display for NoAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a valid amount: expected one such as `12.50`",
            self.0
        )
    }
}

impl std::error::Error for NoAmount {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_written() {
        for amount in ["0.00", "12.50", "-5.00", "-0.07", "1480.00"] {
            assert_eq!(
                amount.parse::<Cents>().map(|cents| cents.to_string()),
                Ok(amount.into())
            );
        }
        assert_eq!("8".parse(), Ok(Cents(800)));
        assert_eq!(format!("{:>6}", Cents(800)), "  8.00");
        for wrong in [
            "",
            "-",
            ".50",
            "twelve",
            "1.5",
            "1.234",
            "+1.00",
            "--1.00",
            "1,50",
            "99999999999999999999.00",
        ] {
            assert_eq!(wrong.parse::<Cents>(), Err(NoAmount(wrong.into())));
        }
    }
}
