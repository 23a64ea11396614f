//! The names of elements in properties.

use std::str::FromStr;

use quick_xml::events::Event;

/// The name of an element: the property `element`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ElementName(pub(super) String);

/// The start tag of the root: its name, and with it attributes, if there are any. The property `root`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RootTag {
    pub(super) name: String,
    pub(super) tag: String,
}

impl FromStr for ElementName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match RootTag::from_str(text) {
            Ok(root) if root.name == text => Ok(Self(root.name)),
            _ => Err("expected the name of an element, such as `order`".to_owned()),
        }
    }
}

/// The local name of an element: one of the property `lists`.
#[derive(Clone, Debug)]
pub(super) struct ListName(pub(super) String);

impl FromStr for ListName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ElementName(name) = text.parse()?;
        match name.rsplit_once(':') {
            Some((_, local)) => Err(format!("prefixes are ignored; write `{local}`")),
            None => Ok(Self(name)),
        }
    }
}

impl FromStr for RootTag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_root(text).ok_or_else(|| {
            "expected the name of an element, such as `orders`, and its attributes, such as \
             `orders xmlns=\"urn:orders\"`"
                .to_owned()
        })
    }
}

/// Parses what is between the `<` and the `>` of a start tag.
fn parse_root(text: &str) -> Option<RootTag> {
    if !text.starts_with(is_name_start) || text.ends_with('/') {
        return None;
    }
    let tag = format!("<{text}>");
    let mut reader = quick_xml::Reader::from_str(&tag);
    let Ok(Event::Start(start)) = reader.read_event() else {
        return None;
    };
    let name = start.name().into_inner().to_owned();
    let is_complete = usize::try_from(reader.buffer_position()) == Ok(tag.len());
    let has_name = name.chars().all(|c| is_name_start(c) || is_name_part(c));
    let has_attributes = start.attributes().all(|attribute| attribute.is_ok());
    (is_complete && has_name && has_attributes).then(|| RootTag {
        name,
        tag: text.trim_end().to_owned(),
    })
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | ':')
}

fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '.' | '\u{b7}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_attributes_are_checked() {
        for name in ["order", "o:order", "_x-1.b", "größe"] {
            assert_eq!(name.parse::<ElementName>(), Ok(ElementName(name.to_owned())));
        }
        for name in [
            "",
            " ",
            "1a",
            "a b",
            "a>",
            "a/",
            "<a",
            "a><b",
            "a b=\"1\"",
            "/a",
            "!x",
            "?x",
        ] {
            assert!(name.parse::<ElementName>().is_err(), "{name:?}");
        }
        let root: RootTag = "o:orders xmlns:o=\"urn:x\" n='1' ".parse().unwrap();
        assert_eq!(
            (&*root.name, &*root.tag),
            ("o:orders", "o:orders xmlns:o=\"urn:x\" n='1'")
        );
        for root in ["a b", "a b=c", "a b=\"1\"/", "a b=\"1\"><c", "a b=\"1\" b=\"2\""] {
            assert!(root.parse::<RootTag>().is_err(), "{root:?}");
        }
    }
}
