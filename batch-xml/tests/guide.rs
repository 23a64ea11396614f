//! The user's guide of the language: its examples are what it says they are.
#![expect(clippy::unwrap_used, reason = "a test that meets nothing has failed")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use batch_xml::{Document, JobXmlErrors, Limits, RootKind, Source, Values, parse, resolve};

/// A block of the page: what stands behind the three backticks, and what is in it.
struct Block {
    info: String,
    text: String,
    line: usize,
}

fn blocks() -> Vec<Block> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/job-xml.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(info), None) => {
                open = Some(Block {
                    info: info.to_owned(),
                    text: String::new(),
                    line: index + 1,
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none());
    blocks
}

fn document(block: &Block) -> Result<Document, JobXmlErrors> {
    parse(&Source::new("job.xml", block.text.as_str()), &Limits::default())
}

fn parameters(text: &str) -> BTreeMap<String, String> {
    let list = text
        .split_once("<!-- Parameters: ")
        .and_then(|(_, rest)| rest.split_once(" -->"));
    let pairs = list.into_iter().flat_map(|(list, _)| list.split("; "));
    pairs
        .map(|pair| pair.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Right examples have neither errors nor warnings, wrong ones the errors that are named and shown, strange ones the
/// warnings.
///
/// Spec: JSL-DOC-02, JSL-DOC-03, JSL-DOC-12
#[test]
fn examples_are_right_and_wrong_as_they_say() {
    let blocks = blocks();
    let limits = Limits::default();
    let parents: Vec<Arc<Document>> = blocks
        .iter()
        .filter(|block| block.info == "xml")
        .map(|block| Arc::new(document(block).unwrap()))
        .filter(|document| document.root_kind() != RootKind::Job)
        .collect();
    assert_eq!(parents.len(), 1);
    let (mut right, mut wrong, mut shown) = (0, 0, 0);
    for (index, block) in blocks.iter().enumerate() {
        let Some(codes) = block.info.strip_prefix("xml") else {
            continue;
        };
        let parameters = parameters(&block.text);
        let values = Values {
            parameters: &parameters,
            system: &BTreeMap::new(),
        };
        let result = document(block).and_then(|document| match document.root_kind() {
            RootKind::Job => resolve(&document, &parents, &values, &limits).map(Some),
            _ => Ok(None),
        });
        let line = block.line;
        match (result, codes.strip_prefix(" wrong ")) {
            (Ok(resolved), None) => {
                let warnings = resolved.map_or(Vec::new(), |resolved| resolved.warnings);
                let found: Vec<&str> = warnings.iter().map(|warning| warning.code).collect();
                let expected = codes.strip_prefix(" strange ").unwrap_or(codes);
                assert_eq!(found.join(" "), expected, "line {line}");
                right += 1;
            }
            (Err(errors), Some(codes)) => {
                let found: Vec<&str> = errors.iter().map(|error| error.code).collect();
                assert_eq!(found.join(" "), codes, "line {line}: {errors}");
                wrong += 1;
                if let Some(text) = blocks.get(index + 1).filter(|next| next.info == "text") {
                    assert_eq!(text.text.trim_end(), errors.to_string(), "line {line}");
                    shown += 1;
                }
            }
            (Ok(_), Some(codes)) => panic!("line {line} is right, and not {codes}"),
            (Err(errors), None) => panic!("line {line}: {errors}"),
        }
    }
    assert_eq!((right, wrong, shown), (16, 11, 3));
}
