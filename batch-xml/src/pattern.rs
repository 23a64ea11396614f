//! Patterns of exit statuses: what they match, which of several comes first, which can never have its turn.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Deref;

use crate::model::Transition;

/// A pattern that an exit status matches as a whole: `?` stands for one character, `*` for one or more, all
/// others for themselves.
///
/// ```
/// use batch_xml::Pattern;
///
/// let pattern = Pattern::new("RC?*");
/// assert!(pattern.matches("RC10"));
/// assert!(!pattern.matches("RC1"), "`*` stands for at least one character");
/// ```
///
/// Spec: SEQ-13, SEQ-14, SEQ-15, SEQ-16, TERM-04, D-20
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Pattern(String);

/// How special a pattern is: what is less comes first.
///
/// Spec: SEQ-18, D-19
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Specificity {
    has_wildcards: bool,
    literals: Reverse<usize>,
    stars: usize,
    questions: Reverse<usize>,
}

impl Pattern {
    /// The pattern written so.
    pub fn new(text: impl Into<String>) -> Pattern {
        Pattern(text.into())
    }

    /// Whether the whole exit status matches.
    pub fn matches(&self, exit_status: &str) -> bool {
        let status: Vec<Token> = exit_status.chars().map(Token::Literal).collect();
        covers(&self.tokens(), &status)
    }

    /// Whether everything that `other` matches is matched by this one too.
    pub(crate) fn covers(&self, other: &Pattern) -> bool {
        covers(&self.tokens(), &other.tokens())
    }

    /// The place of the pattern among others. Of equal ones the first in the document comes first.
    pub fn specificity(&self) -> Specificity {
        let count = |wanted: char| self.0.chars().filter(|c| *c == wanted).count();
        let (stars, questions) = (count('*'), count('?'));
        Specificity {
            has_wildcards: stars + questions > 0,
            literals: Reverse(self.0.chars().count() - stars - questions),
            stars,
            questions: Reverse(questions),
        }
    }

    fn tokens(&self) -> Vec<Token> {
        let mut tokens = Vec::new();
        // Of neighbouring wildcards only their number counts, and whether there is a `*` among them.
        let mut open = false;
        for c in self.0.chars() {
            match c {
                '*' | '?' => {
                    tokens.push(Token::Any);
                    open |= c == '*';
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
        &self.0
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Literal(char),
    /// One character.
    Any,
    /// Any number of characters, none included. Stands after the `Any`s of its run.
    Rest,
}

impl Token {
    /// Whether this, which is no `Rest`, stands for all that `other` stands for.
    fn includes(self, other: Token) -> bool {
        match (self, other) {
            (Token::Literal(a), Token::Literal(b)) => a == b,
            (Token::Any, Token::Literal(_) | Token::Any) => true,
            _ => false,
        }
    }
}

/// Whether all texts of `texts` are texts of `pattern`; a literal text is a pattern too. Takes time by the
/// product of the lengths at most: only the last `Rest` met is ever tried again.
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

/// The transition that acts on an exit status: of those that match the most specific one.
///
/// Spec: SEQ-17, SEQ-18, SEQ-19, DEC-10, D-19
pub fn select<'a>(transitions: &'a [Transition], exit_status: &str) -> Option<&'a Transition> {
    let matching = transitions
        .iter()
        .filter(|transition| transition.on.matches(exit_status));
    matching.min_by_key(|transition| transition.on.specificity())
}

/// Patterns compared with each other when looking for those that never have their turn.
const MAX_COMPARED: usize = 64;

/// For each pattern that never acts the index of one that is tried before and matches all it does.
pub(crate) fn shadowed(patterns: &[&Pattern]) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..patterns.len()).collect();
    order.sort_by_key(|index| patterns[*index].specificity());
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

    #[track_caller]
    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        for status in matching {
            assert!(Pattern::new(pattern).matches(status), "{pattern:?} {status:?}");
        }
        for status in others {
            assert!(!Pattern::new(pattern).matches(status), "{pattern:?} {status:?}");
        }
    }

    /// Spec: SEQ-13, SEQ-14, SEQ-15, SEQ-16, D-20
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

    /// The shortest way to be slow would be many stars against a long status that almost matches.
    #[test]
    fn matching_takes_no_exponential_time() {
        let pattern = Pattern::new("a*".repeat(500) + "b");
        assert!(!pattern.matches(&"a".repeat(20_000)));
    }

    /// Spec: SEQ-17, SEQ-18, D-19
    #[test]
    fn patterns_are_ordered_from_most_to_least_specific() {
        let ordered = [
            "A", "FAILED", "FAIL??", "FAIL?", "FAIL*", "FAI??*", "FAI?*", "FAI*", "??", "?", "?*", "*", "**",
        ];
        let mut sorted = ordered;
        sorted.reverse();
        sorted.sort_by_key(|text| Pattern::new(*text).specificity());
        // Literals are all equal.
        sorted[..2].sort_unstable();
        assert_eq!(sorted, ordered);
    }

    #[track_caller]
    fn check_covers(pattern: &str, covered: &[&str], others: &[&str]) {
        for other in covered {
            assert!(
                Pattern::new(pattern).covers(&Pattern::new(*other)),
                "{pattern} {other}"
            );
        }
        for other in others {
            assert!(
                !Pattern::new(pattern).covers(&Pattern::new(*other)),
                "{pattern} {other}"
            );
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
    fn patterns_without_a_turn_are_found() {
        let check = |texts: &[&str], expect: &[(usize, usize)]| {
            let patterns: Vec<Pattern> = texts.iter().map(|text| Pattern::new(*text)).collect();
            assert_eq!(
                shadowed(&patterns.iter().collect::<Vec<_>>()),
                expect,
                "{texts:?}"
            );
        };
        check(&["*", "A*", "A"], &[]);
        check(&["A", "A", "*", "*"], &[(1, 0), (3, 2)]);
        check(&["***", "**", "?*", "*"], &[(0, 2), (1, 2)]);
    }
}
