//! The expected results, of the file `expected.tsv`.

use std::fmt;

/// The kind of a method: if and where it is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `enabled`
    Enabled,
    /// `disabled`: the TCK lists it, and does not run it.
    Disabled,
    /// `older`: only the TCK of JSR 352 1.1 has it.
    Older,
}

/// The result of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every assertion holds.
    Pass,
    /// An assertion fails.
    Diff,
    /// There is no case.
    NotApplicable,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "PASS",
            Self::Diff => "DIFF",
            Self::NotApplicable => "N/A",
        })
    }
}

/// A line of the file.
pub(crate) struct Expected {
    pub(crate) method: &'static str,
    pub(crate) kind: Kind,
    pub(crate) outcome: Outcome,
    pub(crate) reason: &'static str,
}

/// Returns the lines of the file.
pub(crate) fn all() -> Vec<Expected> {
    let lines = include_str!("expected.tsv").lines();
    lines.filter(|line| !line.starts_with('#')).map(parse).collect()
}

fn parse(line: &'static str) -> Expected {
    let mut columns = line.split('\t');
    let mut next = || columns.next().unwrap_or("");
    Expected {
        method: next(),
        kind: match next() {
            "enabled" => Kind::Enabled,
            "disabled" => Kind::Disabled,
            "older" => Kind::Older,
            other => panic!("unknown kind `{other}` in the line `{line}`"),
        },
        outcome: match next() {
            "PASS" => Outcome::Pass,
            "DIFF" => Outcome::Diff,
            "N/A" => Outcome::NotApplicable,
            other => panic!("unknown result `{other}` in the line `{line}`"),
        },
        reason: next(),
    }
}
