//! Another XML parser as an oracle: every document accepted here is well-formed for it, with the same tree.

use std::path::Path;

use batch_xml::Source;
use proptest::prelude::*;

use crate::fuzz;

fn read(text: &str) -> bool {
    fuzz::compare(&Source::new("t.xml", text))
}

/// Returns all Job XML of the tests, including invalid files.
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
    let read = documents.iter().filter(|text| read(text)).count();
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
    crate::random::word(&words, 6)
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
        read(&format!("<a>{}</a>", fragments.concat()));
        read(&fragments.concat());
    }

    /// Spec: JSL-DOC-01, JSL-DOC-02
    #[test]
    fn changed_documents_are_read_alike(
        document in prop::sample::select(documents()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..4, fragment()), 0..4),
    ) {
        let text = crate::random::edited(document, edits);
        read(&text);
    }
}
