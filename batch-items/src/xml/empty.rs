//! Elements without content.

use super::markup::{Kind, Markup};
use crate::record::BLANKS_FOLLOW;

/// Returns the text of an element without the empty elements of a name in it, those that have no content but comments and, unless
/// `with_attributes`, no attributes; `None` if there are none.
pub(super) fn without_empty(text: &str, name: &str, with_attributes: bool) -> Option<String> {
    let (mut left, mut rest, mut removed) = (String::new(), text, false);
    while let Some(start) = rest.find('<') {
        left.push_str(&rest[..start]);
        rest = &rest[start..];
        let mut markup = Markup::new();
        let end = markup.end_in(rest.as_bytes()).unwrap_or(rest.len());
        let (tag, after) = rest.split_at(end);
        let may_be_empty = with_attributes || !has_attributes(&markup, tag);
        match empty_end(&markup, after, name).filter(|_| may_be_empty) {
            Some(length) => {
                rest = &after[length..];
                removed = true;
            }
            None => {
                left.push_str(tag);
                rest = after;
            }
        }
    }
    left.push_str(rest);
    removed.then_some(left)
}

/// Returns a text with a mark before blanks that are the whole content of an inner element, so that the parser does not take them for the indentation of
/// elements; `None` if there are none.
pub(super) fn marked_blanks(text: &str) -> Option<String> {
    if !memchr::memmem::find_iter(text.as_bytes(), "</").any(|end| may_be_blank(&text[..end])) {
        return None;
    }
    let (mut marked, mut rest, mut is_inner) = (String::with_capacity(text.len() + 16), text, false);
    while let Some(start) = rest.find('<') {
        let mut markup = Markup::new();
        let end = markup
            .end_in(&rest.as_bytes()[start..])
            .map_or(rest.len(), |length| start + length);
        let (before, after) = rest.split_at(end);
        marked.push_str(before);
        if is_inner && markup.kind() == Kind::Start && is_blank_content(after) {
            marked.push_str(BLANKS_FOLLOW);
        }
        (rest, is_inner) = (after, true);
    }
    marked.push_str(rest);
    (marked.len() > text.len()).then_some(marked)
}

/// Returns whether a text before an end tag may be an element whose content is blank: a fast test that most elements do not pass.
fn may_be_blank(text: &str) -> bool {
    let tag = text.trim_ascii_end();
    let is_tag = || {
        let start = tag.rfind('<').map_or("", |start| &tag[start..]);
        tag.ends_with('>') && !tag.ends_with("/>") && !start.starts_with("</")
    };
    [";", "]]>", "-->", "?>"].iter().any(|end| tag.ends_with(end)) || (tag.len() < text.len() && is_tag())
}

/// Returns whether blanks, in any form that XML has for them, are all that precedes the next end tag.
fn is_blank_content(mut rest: &str) -> bool {
    let mut has_blanks = false;
    loop {
        let content = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        has_blanks |= content.len() < rest.len();
        rest = content;
        if rest.starts_with("</") {
            return has_blanks;
        }
        let (is_blank, length) = if let Some((text, length)) = between(rest, "<![CDATA[", "]]>") {
            has_blanks |= !text.is_empty();
            (text.trim().is_empty(), length)
        } else if let Some((reference, length)) = between(reference(rest), "&#", ";") {
            let number = match reference.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => reference.parse(),
            };
            has_blanks = true;
            let is_blank = |code| char::from_u32(code).is_some_and(char::is_whitespace);
            (number.is_ok_and(is_blank), length)
        } else if let Some((_, length)) = between(rest, "<!--", "-->").or_else(|| between(rest, "<?", "?>")) {
            (true, length)
        } else {
            return false;
        };
        if !is_blank {
            return false;
        }
        rest = &rest[length..];
    }
}

/// Returns the characters of a reference at the beginning, so that no search goes beyond it.
fn reference(rest: &str) -> &str {
    let is_part = |c: char| "&#;".contains(c) || c.is_ascii_alphanumeric();
    &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]
}

/// Returns the text between two marks at the beginning, and the length with both.
fn between<'t>(rest: &'t str, start: &str, end: &str) -> Option<(&'t str, usize)> {
    let (content, after) = rest.strip_prefix(start)?.split_once(end)?;
    Some((content, rest.len() - after.len()))
}

fn has_attributes(markup: &Markup, tag: &str) -> bool {
    let name = 1 + markup.name().len();
    !tag.get(name..)
        .unwrap_or_default()
        .trim_matches(['/', '>'])
        .trim()
        .is_empty()
}

/// Returns the length of the comments and the end tag that follow the start tag of an empty element.
fn empty_end(markup: &Markup, after: &str, name: &str) -> Option<usize> {
    let found = std::str::from_utf8(markup.name()).ok()?;
    if found.rsplit(':').next() != Some(name) {
        return None;
    }
    match markup.kind() {
        Kind::Empty => return Some(0),
        Kind::Start => {}
        _ => return None,
    }
    let mut length = 0;
    loop {
        let rest = after.get(length..).filter(|rest| rest.starts_with('<'))?;
        let mut markup = Markup::new();
        length += markup.end_in(rest.as_bytes())?;
        match markup.kind() {
            Kind::End if markup.name() == found.as_bytes() => return Some(length),
            Kind::Skipped if rest.starts_with("<!--") => {}
            Kind::Instruction => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(without_empty(text, "a", true).as_deref(), expected, "{text}");
    }

    #[test]
    fn empty_elements_are_removed() {
        check("<r>x<a/>y</r>", Some("<r>xy</r>"));
        check("<r><a></a><a ></a ><b/><p:a\n/></r>", Some("<r><b/></r>"));
        check("<r><b><a/></b></r>", Some("<r><b></b></r>"));
        check("x<a/>y", Some("xy"));
        check("<r><a b='1'/>x<a b='1'></a></r>", Some("<r>x</r>"));
        check("<r><a><!----><!-- </a> --><?x?></a></r>", Some("<r></r>"));
        let struct_like = "<r><a b='1' />x<a/></r>";
        assert_eq!(
            without_empty(struct_like, "a", false).as_deref(),
            Some("<r><a b='1' />x</r>")
        );
        for kept in [
            "<r/>",
            "<r><a> </a></r>",
            "<r><a><!----> </a></r>",
            "<r><a><![CDATA[]]></a></r>",
            "<r><ab/></r>",
            "<r><a></b></r>",
            "<r><!--<a/>--><![CDATA[<a/>]]></r>",
            "<r><a",
            "</a>",
        ] {
            check(kept, None);
        }
    }

    // Spec: ITEM-VALUE-02
    #[test]
    fn blanks_that_are_the_whole_content_are_kept() {
        let check = |text: &str, expected: &str| {
            let marked = marked_blanks(text).unwrap_or_else(|| text.to_owned());
            assert_eq!(marked.replace(BLANKS_FOLLOW, "+"), expected, "{text}");
        };
        check("<r><a> </a></r>", "<r><a>+ </a></r>");
        check("<r>\n <a b='>'>\n\t</a>\n</r>", "<r>\n <a b='>'>+\n\t</a>\n</r>");
        check("<r><c><a> </a> </c></r>", "<r><c><a>+ </a> </c></r>");
        check("<r><a>&#13;&#xA;</a></r>", "<r><a>+&#13;&#xA;</a></r>");
        check(
            "<r><a><!-- c --><![CDATA[ ]]></a></r>",
            "<r><a>+<!-- c --><![CDATA[ ]]></a></r>",
        );
        for kept in [
            "<r><a>&#65;</a><b>&amp;</b><c><![CDATA[]]></c><d><!----></d></r>",
            "<r> </r>",
            "<r>\n  <a>x</a>\n  <b/>\n</r>",
            "<r><a> x </a></r>",
            "<r><![CDATA[<a> </a>]]></r>",
            "<r><!-- c --> </r>",
            "<r><a><b/> </a></r>",
        ] {
            check(kept, kept);
        }
    }
}
