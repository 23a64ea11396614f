//! The pages of the documentation that show Job XML: their examples have the stated result.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use batch_xml::{BatchXml, Document, JobXmlErrors, Limits, RootKind, Source, Values, parse, resolve};

/// A block of the page: the info string after the three backticks, and the content.
struct Block {
    info: String,
    text: String,
    line: usize,
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

fn blocks(page: &Path) -> Vec<Block> {
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

/// Returns the numbers of valid and invalid examples of a page, and of invalid ones whose message is shown.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    right: usize,
    wrong: usize,
    shown: usize,
}

/// Valid examples have neither errors nor warnings, invalid ones the named and shown errors, suspicious ones the
/// warnings. A batch.xml must be valid.
fn check(page: &Path) -> Found {
    let blocks = blocks(page);
    let limits = Limits::default();
    let (artifacts, jobs): (Vec<&Block>, Vec<&Block>) = blocks
        .iter()
        .filter(|block| block.info.starts_with("xml"))
        .partition(|block| block.text.starts_with("<batch-artifacts"));
    let parents: Vec<Arc<Document>> = jobs
        .iter()
        .filter(|block| block.info == "xml")
        .map(|block| Arc::new(document(block).unwrap()))
        .filter(|document| document.root_kind() != RootKind::Job)
        .collect();
    let mut found = Found::default();
    for block in artifacts {
        let source = Source::new("batch.xml", block.text.as_str());
        let read = BatchXml::read(&[source], &limits);
        assert!(read.is_ok(), "{}, line {}", page.display(), block.line);
        found.right += 1;
    }
    for (index, block) in blocks.iter().enumerate() {
        let Some(codes) = block.info.strip_prefix("xml") else {
            continue;
        };
        if block.text.starts_with("<batch-artifacts") {
            continue;
        }
        let parameters = parameters(&block.text);
        let values = Values {
            parameters: &parameters,
            system: &BTreeMap::new(),
        };
        let result = document(block).and_then(|document| match document.root_kind() {
            RootKind::Job => resolve(&document, &parents, &values, &limits).map(Some),
            _ => Ok(None),
        });
        let place = format!("{}, line {}", page.display(), block.line);
        match (result, codes.strip_prefix(" wrong ")) {
            (Ok(resolved), None) => {
                let warnings = resolved.map_or(Vec::new(), |resolved| resolved.warnings);
                let codes_found: Vec<&str> = warnings.iter().map(|warning| warning.code).collect();
                let expected = codes.strip_prefix(" strange ").unwrap_or(codes);
                assert_eq!(codes_found.join(" "), expected, "{place}");
                found.right += 1;
            }
            (Err(errors), Some(codes)) => {
                let codes_found: Vec<&str> = errors.iter().map(|error| error.code).collect();
                assert_eq!(codes_found.join(" "), codes, "{place}: {errors}");
                found.wrong += 1;
                if let Some(text) = blocks.get(index + 1).filter(|next| next.info == "text") {
                    assert_eq!(text.text.trim_end(), errors.to_string(), "{place}");
                    found.shown += 1;
                }
            }
            (Ok(_), Some(codes)) => panic!("{place} is right, and not {codes}"),
            (Err(errors), None) => panic!("{place}: {errors}"),
        }
    }
    // Other text blocks are drawings.
    let after_xml = |pair: &&[Block]| pair[0].info.starts_with("xml") && pair[1].info == "text";
    let texts = blocks.windows(2).filter(after_xml).count();
    assert_eq!(
        texts,
        found.shown,
        "{}: a text block after XML shows its errors",
        page.display()
    );
    found
}

/// Spec: JSL-DOC-02, JSL-DOC-03, JSL-DOC-12
#[test]
fn examples_are_right_and_wrong_as_they_say() {
    let found = check(&docs().join("job-xml.md"));
    let expected = Found {
        right: 18,
        wrong: 11,
        shown: 3,
    };
    assert_eq!(found, expected);
}

#[test]
fn examples_of_the_guide_are_right_and_wrong_as_they_say() {
    let mut right = 0;
    for page in std::fs::read_dir(docs().join("guide")).unwrap() {
        right += check(&page.unwrap().path()).right;
    }
    assert!(right > 10, "{right}");
}
