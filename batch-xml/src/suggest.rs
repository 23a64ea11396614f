//! Suggestions in messages: the nearest of some known names, and a list of alternatives.

pub use crate::xsd::{Proposal, xsd};

use strsim::osa_distance;

/// Longer names are not compared: the comparison takes quadratic time, and a long name is rarely mistyped.
const MAX_CHARS: usize = 40;

/// Maximum number of candidates compared, so that a hostile document cannot make a report expensive.
const MAX_CANDIDATES: usize = 2_000;

/// Returns the candidate nearest to `name`, if it is similar enough to be a typo of it.
///
/// A candidate that differs only in case wins; otherwise the one with the fewest insertions, deletions, replacements and swaps
/// of neighbours, at most one for every three characters. On a tie the first wins.
///
/// ```
/// let ids = ["load", "load2", "report"];
/// assert_eq!(batch_xml::suggest::nearest("lod2", ids), Some("load2"));
/// assert_eq!(batch_xml::suggest::nearest("verify", ids), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = |text: &str| text.chars().take(MAX_CHARS + 1).count();
    let wanted = length(name);
    if wanted > MAX_CHARS {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates
        .into_iter()
        .take(MAX_CANDIDATES)
        .filter(|candidate| *candidate != name)
    {
        if candidate.eq_ignore_ascii_case(name) {
            return Some(candidate);
        }
        let known = length(candidate);
        let allowed = (wanted.max(known) / 3).max(1);
        if known > MAX_CHARS || known.abs_diff(wanted) > allowed {
            continue;
        }
        let distance = osa_distance(name, candidate);
        // One edit turns any one-letter name into any other, so such names are not alike.
        let is_alike = distance <= allowed && distance < known.min(wanted);
        if is_alike && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Returns `; did you mean `x`?` for the candidate that `wanted` is probably a misspelling of, or nothing.
pub fn did_you_mean<'c>(wanted: &str, candidates: impl IntoIterator<Item = &'c str>) -> String {
    nearest(wanted, candidates).map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"))
}

/// Returns names as alternatives: `a`, `b` or `c`, in backticks.
pub fn one_of(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, candidates: &[&str], expect: Option<&str>) {
        assert_eq!(
            nearest(name, candidates.iter().copied()),
            expect,
            "nearest to {name:?}"
        );
    }

    #[test]
    fn finds_typing_mistakes() {
        check("skip-limt", &["retry-limit", "skip-limit"], Some("skip-limit"));
        check("lod2", &["load", "load2"], Some("load2"));
        check("chnuk", &["chunk", "batchlet"], Some("chunk"));
        check("Chunk", &["chunks", "chunk"], Some("chunk"));
        check("ref", &["reader", "id"], None);
    }

    #[test]
    fn stays_silent_when_nothing_is_near() {
        check("a", &["b"], None);
        check("verify", &["load", "report"], None);
        check("load", &["load"], None);
        check("", &["a"], None);
        check(&"x".repeat(41), &["x"], None);
    }

    #[test]
    fn looks_at_a_bounded_number_of_candidates() {
        let after = |count: usize| std::iter::repeat_n("x", count).chain(["load2"]);
        assert_eq!(nearest("load", after(MAX_CANDIDATES - 1)), Some("load2"));
        assert_eq!(nearest("load", after(MAX_CANDIDATES)), None);
    }
}
