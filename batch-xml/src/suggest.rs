//! "Did you mean ...?": the nearest of some known names.

/// Longer names are not compared: nobody mistypes them, and the comparison takes time by the square of the
/// length.
const MAX_CHARS: usize = 40;

/// Candidates looked at, so that a hostile document cannot make a report expensive.
const MAX_CANDIDATES: usize = 2_000;

/// The candidate most like `name`, if one is near enough to be what was meant.
///
/// A candidate that differs in upper and lower case only is the best; otherwise the one with the fewest
/// insertions, deletions, replacements and swaps of neighbours, at most one for every three characters. On a
/// tie the first wins.
///
/// ```
/// let ids = ["load", "load2", "report"];
/// assert_eq!(batch_xml::suggest::nearest("lod2", ids), Some("load2"));
/// assert_eq!(batch_xml::suggest::nearest("verify", ids), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = name.chars().take(MAX_CHARS + 1).collect();
    if wanted.len() > MAX_CHARS {
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
        let known: Vec<char> = candidate.chars().take(MAX_CHARS + 1).collect();
        let allowed = (wanted.len().max(known.len()) / 3).max(1);
        if known.len() > MAX_CHARS || known.len().abs_diff(wanted.len()) > allowed {
            continue;
        }
        let distance = edit_distance(&wanted, &known);
        // One edit turns any one-letter name into any other: that is no likeness.
        let alike = distance <= allowed && distance < known.len().min(wanted.len());
        if alike && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Optimal string alignment distance.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut two_before: Vec<usize> = vec![0; b.len() + 1];
    let mut before: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = before[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(before[j] + 1).min(row[j - 1] + 1);
            let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if swapped {
                row[j] = row[j].min(two_before[j - 2] + 1);
            }
        }
        two_before = std::mem::replace(&mut before, row);
    }
    before[b.len()]
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

    #[test]
    fn distance_counts_a_swap_as_one() {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        assert_eq!(edit_distance(&chars("ab"), &chars("ba")), 1);
        assert_eq!(edit_distance(&chars("kitten"), &chars("sitting")), 3);
        assert_eq!(edit_distance(&chars(""), &chars("abc")), 3);
    }
}
