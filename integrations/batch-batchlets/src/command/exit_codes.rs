//! Exit codes of a command, mapped to exit statuses.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// Exit codes that complete the step, and the exit status that they give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExitCodes {
    codes: RangeInclusive<i32>,
    status: String,
}

impl FromStr for ExitCodes {
    type Err = String;

    /// Parses `1=NOTHING` or `2..9=WARNING`.
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected an entry such as `1=NOTHING` or `2..9=WARNING`".to_owned();
        let (codes, status) = text.split_once('=').ok_or_else(expected)?;
        let (first, last) = codes.split_once("..").unwrap_or((codes, codes));
        let code = |text: &str| text.trim().parse::<i32>().map_err(|_| expected());
        let codes = code(first)?..=code(last)?;
        let status = status.trim().to_owned();
        if codes.is_empty() || status.is_empty() {
            return Err(expected());
        }
        Ok(Self { codes, status })
    }
}

impl ExitCodes {
    /// Returns the exit status for a code: the first entry that contains it, or `COMPLETED` for 0.
    pub(super) fn status(entries: &[Self], code: i32) -> Option<&str> {
        let entry = entries.iter().find(|entry| entry.codes.contains(&code));
        match entry {
            Some(entry) => Some(&entry.status),
            None => (code == 0).then_some("COMPLETED"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_with_the_code_wins() {
        let entries = ["1=NOTHING", " 2..9 = WARNING ", "9=NEVER"].map(|entry| entry.parse().unwrap());
        for (code, status) in [
            (0, Some("COMPLETED")),
            (1, Some("NOTHING")),
            (2, Some("WARNING")),
            (9, Some("WARNING")),
            (10, None),
            (-1, None),
        ] {
            assert_eq!(ExitCodes::status(&entries, code), status, "{code}");
        }
        let zero = ["0=DONE".parse().unwrap()];
        assert_eq!(ExitCodes::status(&zero, 0), Some("DONE"));
    }

    #[test]
    fn mistakes_are_reported() {
        for text in ["", "1", "=A", "1=", "x=A", "9..2=A", "1-2=A", "1..=A"] {
            assert!(text.parse::<ExitCodes>().is_err(), "{text}");
        }
    }
}
