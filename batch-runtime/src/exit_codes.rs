//! Exit codes of processes, as mapped from exit statuses by a job's property `batch.exit.codes`.

use std::str::FromStr;

use batch_xml::{Dialect, Pattern};

use crate::entries::name_and_value;
use crate::status::BatchStatus;

/// The name of the property. (ext)
pub(crate) const EXIT_CODES: &str = "batch.exit.codes";

/// Exit status patterns with their codes. The first match wins.
#[derive(Debug, Default)]
pub(crate) struct ExitCodes(Vec<(Pattern, u8)>);

impl ExitCodes {
    /// Returns the code for a job that ended with these statuses; by the batch status if no pattern matches.
    pub(crate) fn of(&self, status: BatchStatus, exit_status: &str) -> u8 {
        let mut mapped = self.0.iter().filter(|(pattern, _)| pattern.matches(exit_status));
        mapped
            .next()
            .map_or_else(|| status.exit_code(), |(_, code)| *code)
    }
}

impl FromStr for ExitCodes {
    type Err = String;

    /// Parses `EXIT STATUS=CODE` entries, separated by commas.
    fn from_str(text: &str) -> Result<Self, String> {
        let one = |entry: &str| {
            let (pattern, code) = name_and_value(entry, "EXIT STATUS=CODE")?;
            let code = code
                .parse()
                .map_err(|_| format!("invalid exit code {code:?}: expected a number from 0 to 255"))?;
            Ok((Dialect::Draft.pattern(pattern), code))
        };
        text.split(',').map(one).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pattern_that_matches_wins() {
        let codes: ExitCodes = "NOTHING TO DO = 5, *SKIPS=4,A=B=7, FAILED=20".parse().unwrap();
        for (status, exit_status, code) in [
            (BatchStatus::Completed, "NOTHING TO DO", 5),
            (BatchStatus::Completed, "WITH SKIPS", 4),
            (BatchStatus::Completed, "A=B", 7),
            (BatchStatus::Completed, "COMPLETED", 0),
            (BatchStatus::Failed, "FAILED", 20),
            (BatchStatus::Failed, "CRASHED", 1),
            (BatchStatus::Stopped, "STOPPED", 3),
        ] {
            assert_eq!(codes.of(status, exit_status), code, "{exit_status}");
        }
        // Two patterns match; neither the longer nor the later one wins.
        for (text, code) in [
            ("*SKIPS=4, WITH*=6", 4),
            ("WITH*=6, *SKIPS=4", 6),
            ("*=9, WITH SKIPS=3", 9),
        ] {
            let codes: ExitCodes = text.parse().unwrap();
            assert_eq!(codes.of(BatchStatus::Completed, "WITH SKIPS"), code, "{text}");
        }
    }

    #[test]
    fn mistakes_are_reported() {
        for (text, problem) in [
            ("", "invalid entry \"\": expected `EXIT STATUS=CODE`"),
            ("A", "invalid entry \"A\": expected `EXIT STATUS=CODE`"),
            ("=4", "invalid entry \"=4\": expected `EXIT STATUS=CODE`"),
            ("A=4,", "invalid entry \"\": expected `EXIT STATUS=CODE`"),
            (
                "A=256",
                "invalid exit code \"256\": expected a number from 0 to 255",
            ),
            ("A=x", "invalid exit code \"x\": expected a number from 0 to 255"),
        ] {
            assert_eq!(
                text.parse::<ExitCodes>().map(drop),
                Err(problem.to_owned()),
                "{text}"
            );
        }
    }
}
