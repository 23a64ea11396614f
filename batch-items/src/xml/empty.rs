//! Elements without content.

use super::markup::{Kind, Markup};

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
}
