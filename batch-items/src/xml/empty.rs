//! Elements without content.

use super::markup::{Kind, Markup};

/// Returns the text of an element without the empty elements of a name in it, those that have neither attributes nor content;
/// `None` if there are none.
pub(super) fn without_empty(text: &str, name: &str) -> Option<String> {
    let (mut left, mut rest, mut removed) = (String::new(), text, false);
    while let Some(start) = rest.find('<') {
        left.push_str(&rest[..start]);
        rest = &rest[start..];
        let mut markup = Markup::new();
        let end = markup.end_in(rest.as_bytes()).unwrap_or(rest.len());
        let (tag, after) = rest.split_at(end);
        match empty_end(&markup, tag, after, name) {
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

/// Returns the length of the end tag that follows the start tag of an empty element.
fn empty_end(markup: &Markup, tag: &str, after: &str, name: &str) -> Option<usize> {
    let found = std::str::from_utf8(markup.name()).ok()?;
    let local = found.rsplit(':').next();
    let rest = tag.strip_prefix('<')?.strip_prefix(found)?;
    if local != Some(name) || !rest.trim_end_matches(['/', '>']).trim().is_empty() {
        return None;
    }
    match markup.kind() {
        Kind::Empty => Some(0),
        Kind::Start => {
            let rest = after.strip_prefix("</")?.strip_prefix(found)?;
            let end = rest.trim_start().strip_prefix('>')?;
            Some(after.len() - end.len())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(without_empty(text, "a").as_deref(), expected, "{text}");
    }

    #[test]
    fn empty_elements_are_removed() {
        check("<r>x<a/>y</r>", Some("<r>xy</r>"));
        check("<r><a></a><a ></a ><b/><p:a\n/></r>", Some("<r><b/></r>"));
        check("<r><b><a/></b></r>", Some("<r><b></b></r>"));
        for kept in [
            "<r/>",
            "<r><a> </a></r>",
            "<r><a b='1'/></r>",
            "<r><a b='1'></a></r>",
            "<r><ab/></r>",
            "<r><a></b></r>",
            "<r><!--<a/>--><![CDATA[<a/>]]></r>",
            "<r><a><!----></a></r>",
            "<r><a",
            "</a>",
        ] {
            check(kept, None);
        }
    }
}
