//! Numbers with a limit, as values of properties.

use std::num::NonZeroU32;
use std::str::FromStr;

/// A number from 1 to `MOST`: for more, there may be no memory, which would end the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtMost<const MOST: u32>(NonZeroU32);

impl<const MOST: u32> AtMost<MOST> {
    /// Returns the number.
    pub fn get(self) -> NonZeroU32 {
        self.0
    }
}

impl<const MOST: u32> FromStr for AtMost<MOST> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.parse().ok();
        let number = number.filter(|number: &NonZeroU32| number.get() <= MOST);
        number
            .map(Self)
            .ok_or_else(|| format!("expected a number from 1 to {MOST}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: ITEM-SETTING-04
    #[test]
    fn a_number_has_a_limit() {
        for (text, expected) in [
            ("1", Some(1)),
            ("1000", Some(1000)),
            ("0", None),
            ("1001", None),
            ("4294967295", None),
            ("4294967296", None),
            ("-1", None),
            ("x", None),
        ] {
            let number = text.parse::<AtMost<1000>>().map(|number| number.get().get());
            let expected = expected.ok_or_else(|| "expected a number from 1 to 1000".to_owned());
            assert_eq!(number, expected, "{text}");
        }
    }
}
