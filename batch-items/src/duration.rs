//! Durations as property values.

use std::str::FromStr;

/// A duration in a property: `500ms`, `90s`, `10m`, `2h`, `1d`, or a number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(std::time::Duration);

impl Duration {
    /// Returns the time.
    pub fn get(self) -> std::time::Duration {
        self.0
    }
}

impl FromStr for Duration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let milliseconds = match unit.trim_start() {
            "ms" => 1,
            "" | "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(EXPECTED.into()),
        };
        let number: u64 = number.parse().map_err(|_| EXPECTED.to_owned())?;
        let milliseconds = number
            .checked_mul(milliseconds)
            .ok_or("the duration is too long")?;
        Ok(Self(std::time::Duration::from_millis(milliseconds)))
    }
}

const EXPECTED: &str =
    "expected a duration such as `500ms`, `90s`, `10m`, `2h` or `1d`, or a number of seconds";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_a_unit_or_is_in_seconds() {
        for (text, milliseconds) in [
            ("0", 0),
            ("90", 90_000),
            ("500ms", 500),
            ("90s", 90_000),
            ("10m", 600_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
            (" 10 m ", 600_000),
        ] {
            let duration: Duration = text.parse().unwrap();
            assert_eq!(
                duration.get(),
                std::time::Duration::from_millis(milliseconds),
                "{text}"
            );
        }
    }

    #[test]
    fn any_other_text_is_an_error() {
        for text in ["", "s", "ten", "1.5h", "-1", "10 minutes", "1h30m"] {
            assert_eq!(text.parse::<Duration>(), Err(EXPECTED.into()), "{text}");
        }
        let too_long = format!("{}d", u64::MAX);
        assert_eq!(
            too_long.parse::<Duration>(),
            Err("the duration is too long".into())
        );
    }
}
