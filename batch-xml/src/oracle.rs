//! Another XML parser as the judge of this one: what is read here is well-formed there, and the same tree.

use std::path::Path;

use proptest::prelude::*;
use roxmltree::{Document as Judged, Error, Node, ParsingOptions};

use crate::diagnostics::Sink;
use crate::limits::Limits;
use crate::reader;
use crate::span::Source;
use crate::tree::Element;
use crate::xml;

/// An element as both parsers see it: name, attributes, whether there is text, children.
#[derive(Debug, PartialEq)]
struct Seen {
    name: String,
    attributes: Vec<(String, String)>,
    has_text: bool,
    children: Vec<Seen>,
}

fn here(element: &Element) -> Seen {
    let attributes = element.attributes.iter();
    Seen {
        name: element.name.value.clone(),
        attributes: attributes
            .map(|attribute| (attribute.name.value.clone(), attribute.value.value.clone()))
            .collect(),
        has_text: element.text.is_some(),
        children: element.children.iter().map(here).collect(),
    }
}

fn there(node: Node<'_, '_>) -> Seen {
    let own = node
        .attributes()
        .filter(|attribute| attribute.namespace().is_none());
    let is_text = |child: &Node<'_, '_>| {
        let text = child.text().unwrap_or_default();
        child.is_text() && !text.trim_matches(xml::is_blank).is_empty()
    };
    Seen {
        name: node.tag_name().name().to_owned(),
        attributes: own
            .map(|attribute| (attribute.name().to_owned(), attribute.value().to_owned()))
            .collect(),
        has_text: node.children().any(|child| is_text(&child)),
        children: node.children().filter(Node::is_element).map(there).collect(),
    }
}

/// Namespaces mean nothing here, so mistakes in them are none. Spec: JSL-DOC-05, D-78
fn is_about_namespaces(error: &Error) -> bool {
    matches!(
        error,
        Error::UnknownNamespace(..)
            | Error::InvalidXmlPrefixUri(_)
            | Error::UnexpectedXmlUri(_)
            | Error::UnexpectedXmlnsUri(_)
            | Error::InvalidElementNamePrefix(_)
            | Error::DuplicatedNamespace(..)
            | Error::DuplicatedAttribute(..)
    )
}

/// Whether the text was read here; if so it has to be read there.
fn compare(text: &str) -> bool {
    let source = Source::new("t.xml", text);
    let mut sink = Sink::default();
    let read = reader::read(&source, &Limits::default(), &mut sink);
    let Some(root) = read.filter(|_| !sink.failed()) else {
        return false;
    };
    match Judged::parse_with_options(source.text(), ParsingOptions::default()) {
        Ok(judged) => assert_eq!(here(&root), there(judged.root_element()), "{text}"),
        Err(error) => assert!(is_about_namespaces(&error), "{error}\n{text}"),
    }
    true
}

/// All Job XML of the tests, the invalid too.
fn documents() -> Vec<String> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/jsl")];
    let mut texts = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "xml") {
                texts.extend(std::fs::read_to_string(path));
            }
        }
    }
    texts
}

/// Spec: JSL-DOC-01, JSL-DOC-02, JSL-DOC-05
#[test]
fn documents_are_read_alike() {
    let documents = documents();
    let read = documents.iter().filter(|text| compare(text)).count();
    assert!(
        read > 100 && read < documents.len(),
        "{read} of {}",
        documents.len()
    );
}

fn fragment() -> impl Strategy<Value = String> {
    let words = [
        "<",
        ">",
        "/>",
        "</",
        "=",
        "'",
        "\"",
        "&",
        ";",
        "&#",
        "&#10;",
        "&#x9;",
        "&lt;",
        "&amp;",
        " ",
        "\n",
        "\t",
        "\r\n",
        "\r",
        "<!--",
        "-->",
        "--",
        "<?xml version='1.0'?>",
        "<?pi x?>",
        "<![CDATA[",
        "]]>",
        "]]",
        "<a>",
        "</a>",
        "<a",
        " b='c'",
        " b=\"c\td\re\"",
        "<a b='1'/>",
        "<x:a xmlns:x='u'>",
        "</x:a>",
        " xml:lang='en'",
        "xmlns='u'",
        "text",
        "ä",
        "\u{85}",
        "\u{2028}",
        "\u{1f600}",
        "\u{0}",
        "\u{fffe}",
        "_",
        ":",
        "-",
    ];
    prop_oneof![
        6 => prop::sample::select(words.to_vec()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Spec: JSL-DOC-01, JSL-DOC-02
    #[test]
    fn text_near_to_xml_is_read_alike(fragments in prop::collection::vec(fragment(), 0..12)) {
        compare(&format!("<a>{}</a>", fragments.concat()));
        compare(&fragments.concat());
    }

    /// Spec: JSL-DOC-01, JSL-DOC-02
    #[test]
    fn changed_documents_are_read_alike(
        document in prop::sample::select(documents()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..4, fragment()), 0..4),
    ) {
        let mut text = document;
        for (place, length, piece) in edits {
            let start = text.floor_char_boundary(place.index(text.len() + 1));
            let end = text.ceil_char_boundary((start + length).min(text.len()));
            text.replace_range(start..end, &piece);
        }
        compare(&text);
    }
}
