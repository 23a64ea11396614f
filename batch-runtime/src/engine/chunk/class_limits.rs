//! Limits of skips and retries for each class of exceptions.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::artifact::ExceptionFilter;
use crate::entries::name_and_value;
use crate::error::BatchError;

/// How often exceptions of some classes may be skipped or retried.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClassLimits(Vec<ClassLimit>);

/// The limit of a class.
#[derive(Clone, Debug)]
pub(crate) struct ClassLimit {
    pub(crate) class: String,
    pub(crate) limit: u32,
    filter: ExceptionFilter,
}

/// The used part of the limits, by class.
pub(crate) type UsedLimits = BTreeMap<String, u64>;

impl ClassLimits {
    /// Returns the classes as they are written.
    pub(crate) fn classes(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|limit| limit.class.as_str())
    }

    /// Returns the first limit for an exception.
    fn of(&self, error: &BatchError) -> Option<&ClassLimit> {
        self.0.iter().find(|limit| limit.filter.includes(error))
    }

    /// Returns the limit for an exception that is used up.
    pub(super) fn used_up(&self, error: &BatchError, used: &UsedLimits) -> Option<&ClassLimit> {
        let limit = self.of(error)?;
        let count = used.get(&limit.class).copied().unwrap_or(0);
        (count >= u64::from(limit.limit)).then_some(limit)
    }

    /// Counts an exception.
    pub(super) fn count(&self, error: &BatchError, used: &mut UsedLimits) {
        if let Some(limit) = self.of(error) {
            *used.entry(limit.class.clone()).or_default() += 1;
        }
    }
}

impl FromStr for ClassLimits {
    type Err = String;

    /// Parses `CLASS=LIMIT` entries, separated by commas.
    fn from_str(text: &str) -> Result<Self, String> {
        let one = |entry: &str| {
            let (class, limit) = name_and_value(entry, "CLASS=LIMIT")?;
            let number = limit.parse();
            Ok(ClassLimit {
                class: class.to_owned(),
                limit: number
                    .map_err(|_| format!("invalid limit {limit:?}: expected a number, at least 0"))?,
                filter: ExceptionFilter::new(vec![class.to_owned()], Vec::new()),
            })
        };
        text.split(',').map(one).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: FAULT-03
    #[test]
    fn mistakes_are_reported() {
        for (text, problem) in [
            ("", "invalid entry \"\": expected `CLASS=LIMIT`"),
            ("A", "invalid entry \"A\": expected `CLASS=LIMIT`"),
            ("=4", "invalid entry \"=4\": expected `CLASS=LIMIT`"),
            ("A=-1", "invalid limit \"-1\": expected a number, at least 0"),
        ] {
            assert_eq!(text.parse::<ClassLimits>().map(drop), Err(problem.to_owned()));
        }
        let limits: ClassLimits = "a::B = 5, C=0".parse().unwrap();
        assert_eq!(limits.classes().collect::<Vec<_>>(), ["a::B", "C"]);
    }
}
