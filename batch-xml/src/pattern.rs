//! Patterns of exit statuses: matching, specificity, and patterns that are never used.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Deref;

/// A pattern that an exit status matches as a whole: `?` matches one character, `*` matches any number of
/// characters from the minimum of its dialect (one in the draft), all others match themselves.
///
/// ```
/// use batch_xml::Dialect;
///
/// let pattern = Dialect::Draft.pattern("RC?*");
/// assert!(pattern.matches("RC10"));
/// assert!(!pattern.matches("RC1"), "`*` matches at least one character");
/// ```
// Spec: SEQ-13, SEQ-14, SEQ-15, SEQ-16, TERM-04, D-20
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Pattern {
    text: String,
    star_min_chars: usize,
}

/// The precedence of a pattern: the smallest is tried first.
// Spec: SEQ-18, D-19
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Specificity {
    has_wildcards: bool,
    literals: Reverse<usize>,
    stars: usize,
    questions: Reverse<usize>,
}

impl Pattern {
    pub(crate) fn with_star(text: impl Into<String>, star_min_chars: usize) -> Pattern {
        Pattern {
            text: text.into(),
            star_min_chars,
        }
    }

    /// Returns whether the whole exit status matches.
    pub fn matches(&self, exit_status: &str) -> bool {
        let status: Vec<Token> = exit_status.chars().map(Token::Literal).collect();
        covers(&self.tokens(), &status)
    }

    /// Returns whether this pattern matches everything that `other` matches.
    pub(crate) fn covers(&self, other: &Pattern) -> bool {
        covers(&self.tokens(), &other.tokens())
    }

    /// Returns the sort key of the pattern. Among equal patterns the first in the document is taken.
    pub fn specificity(&self) -> Specificity {
        let count = |wanted: char| self.text.chars().filter(|c| *c == wanted).count();
        let (stars, questions) = (count('*'), count('?'));
        Specificity {
            has_wildcards: stars + questions > 0,
            literals: Reverse(self.text.chars().count() - stars - questions),
            stars,
            questions: Reverse(questions),
        }
    }

    fn tokens(&self) -> Vec<Token> {
        let mut tokens = Vec::new();
        // Of adjacent wildcards only their number matters, and whether one of them is `*`.
        let mut open = false;
        for c in self.text.chars() {
            match c {
                '?' => tokens.push(Token::Any),
                '*' => {
                    tokens.extend(std::iter::repeat_n(Token::Any, self.star_min_chars));
                    open = true;
                }
                literal => {
                    if std::mem::take(&mut open) {
                        tokens.push(Token::Rest);
                    }
                    tokens.push(Token::Literal(literal));
                }
            }
        }
        if open {
            tokens.push(Token::Rest);
        }
        tokens
    }
}

impl Deref for Pattern {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Literal(char),
    /// One character.
    Any,
    /// Any number of characters, or none. Follows the `Any`s of its run.
    Rest,
}

impl Token {
    /// Returns whether this token, which is not `Rest`, matches everything that `other` matches.
    fn includes(self, other: Token) -> bool {
        match (self, other) {
            (Token::Literal(a), Token::Literal(b)) => a == b,
            (Token::Any, Token::Literal(_) | Token::Any) => true,
            _ => false,
        }
    }
}

/// Returns whether `pattern` matches all texts that `texts` matches; a literal text is a pattern too. The time is at
/// most the product of the lengths: only the last `Rest` is tried again.
fn covers(pattern: &[Token], texts: &[Token]) -> bool {
    let (mut at, mut in_text) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while in_text < texts.len() {
        match pattern.get(at) {
            Some(Token::Rest) => {
                retry = Some((at, in_text));
                at += 1;
            }
            Some(token) if token.includes(texts[in_text]) => {
                at += 1;
                in_text += 1;
            }
            _ => {
                let Some((rest, from)) = retry else { return false };
                retry = Some((rest, from + 1));
                (at, in_text) = (rest + 1, from + 1);
            }
        }
    }
    pattern[at..].iter().all(|token| *token == Token::Rest)
}

/// Maximum number of patterns that are compared with each other.
const MAX_COMPARED: usize = 64;

/// Returns, for each pattern that is never used, its index and the index of a pattern that is tried before it and shadows it.
pub(crate) fn shadowed(patterns: &[&Pattern], most_specific_first: bool) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..patterns.len()).collect();
    if most_specific_first {
        order.sort_by_key(|index| patterns[*index].specificity());
    }
    let mut seen = std::collections::HashMap::new();
    let mut wild: Vec<usize> = Vec::new();
    let mut found = Vec::new();
    for index in order {
        let pattern = patterns[index];
        if let Some(first) = seen.get(&**pattern) {
            found.push((index, *first));
            continue;
        }
        seen.insert(&**pattern, index);
        if pattern.specificity().has_wildcards && wild.len() < MAX_COMPARED {
            let before = wild.iter().find(|other| patterns[**other].covers(pattern));
            found.extend(before.map(|before| (index, *before)));
            wild.push(index);
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: impl Into<String>) -> Pattern {
        Pattern::with_star(text, 1)
    }

    #[track_caller]
    fn check(text: &str, matching: &[&str], others: &[&str]) {
        for status in matching {
            assert!(pattern(text).matches(status), "{text:?} {status:?}");
        }
        for status in others {
            assert!(!pattern(text).matches(status), "{text:?} {status:?}");
        }
    }

    // Spec: SEQ-13, SEQ-14, SEQ-15, SEQ-16, D-20
    #[test]
    fn patterns_match_whole_statuses() {
        check(
            "FAILED",
            &["FAILED"],
            &["failed", "FAILED ", "FAILEDX", "XFAILED", ""],
        );
        check("*", &["a", "ab", "😀", "*"], &[""]);
        check("FAIL*", &["FAILED", "FAIL*"], &["FAIL", "fAILED", "XFAILED"]);
        check("*ED", &["FAILED", "XED"], &["ED", "FAILEDX"]);
        check("RC?", &["RC1", "RC😀", "RC?"], &["RC", "RC12"]);
        check("A*B?", &["AxBy", "AxBBBy", "ABBB"], &["ABy", "AxB", "AxByy"]);
        check("**", &["ab", "abc"], &["a"]);
        check("?*", &["ab", "abc"], &["a"]);
        check("*?*", &["abc"], &["ab"]);
        check("a.c", &["a.c"], &["abc"]);
        check("[a-z]*", &["[a-z]x"], &["ax"]);
        check("*a*a*", &["xaxax", "xaaaax"], &["aa", "xaax", "axaxa"]);
        check("ä?ö", &["äüö"], &["äö"]);
    }

    /// The worst case: many stars against a long status that almost matches.
    #[test]
    fn matching_takes_no_exponential_time() {
        let pattern = pattern("a*".repeat(500) + "b");
        assert!(!pattern.matches(&"a".repeat(20_000)));
    }

    // Spec: SEQ-17, SEQ-18, D-19
    #[test]
    fn patterns_are_ordered_from_most_to_least_specific() {
        let ordered = [
            "A", "FAILED", "FAIL??", "FAIL?", "FAIL*", "FAI??*", "FAI?*", "FAI*", "??", "?", "?*", "*", "**",
        ];
        let mut sorted = ordered;
        sorted.reverse();
        sorted.sort_by_key(|text| pattern(*text).specificity());
        // Literals are all equal.
        sorted[..2].sort_unstable();
        assert_eq!(sorted, ordered);
    }

    #[track_caller]
    fn check_covers(text: &str, covered: &[&str], others: &[&str]) {
        for other in covered {
            assert!(pattern(text).covers(&pattern(*other)), "{text} {other}");
        }
        for other in others {
            assert!(!pattern(text).covers(&pattern(*other)), "{text} {other}");
        }
    }

    #[test]
    fn a_pattern_covers_those_that_match_less() {
        check_covers("*", &["*", "a", "?", "??", "?*", "**", "A*B"], &[]);
        check_covers("**", &["?*", "*?", "??", "ab", "a*", "***"], &["*", "a", "?"]);
        check_covers("A*", &["AB", "A?", "A*", "A*B", "AB*"], &["A", "*", "B*"]);
        check_covers("?", &["?", "a"], &["*", "??"]);
        check_covers("*A*", &["xAx", "*A?", "?A*", "*AAA*"], &["A*", "*A", "*B*"]);
    }

    #[test]
    fn patterns_that_never_act_are_found() {
        let check = |texts: &[&str], expect: &[(usize, usize)]| {
            let patterns: Vec<Pattern> = texts.iter().map(|text| pattern(*text)).collect();
            let patterns: Vec<&Pattern> = patterns.iter().collect();
            assert_eq!(shadowed(&patterns, true), expect, "{texts:?}");
        };
        check(&["*", "A*", "A"], &[]);
        check(&["A", "A", "*", "*"], &[(1, 0), (3, 2)]);
        check(&["***", "**", "?*", "*"], &[(0, 2), (1, 2)]);
    }
}
