//! The XML Schema for editors, by lxml.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use batch_runtime::xml::suggest::{Proposal, xsd};
use batch_runtime::xml::{Dialect, Limits, Source, parse};

const PROGRAM: &str = "import sys
from lxml import etree
schema = etree.XMLSchema(etree.parse(sys.argv[1]))
for name in sys.argv[2:]:
    if not schema.validate(etree.parse(name)):
        print(name, schema.error_log.last_error.message)";

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, found),
            false if path.extension().is_some_and(|extension| extension == "xml") => found.push(path),
            false => {}
        }
    }
}

/// Returns what lxml rejects.
fn rejected(dialect: Dialect, documents: &[PathBuf]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let schema = xsd(dialect, |element, attribute| match (element, attribute) {
        ("batchlet", "ref") => vec![Proposal {
            value: "a<b&\"c\"".into(),
            documentation: "it's <b>".into(),
        }],
        _ => Vec::new(),
    });
    let file = folder.path().join("batch.xsd");
    fs::write(&file, schema).unwrap();
    let python = std::env::var("BATCH_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let output = Command::new(&python)
        .args(["-c", PROGRAM])
        .arg(file)
        .args(documents)
        .output()
        .unwrap_or_else(|error| panic!("cannot run `{python}`: {error}; set BATCH_TEST_PYTHON"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The schema accepts what the parser accepts, and not every document.
///
/// Spec: CLI-13
#[test]
fn the_schema_accepts_the_jobs_of_the_project() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut all, mut draft, mut jakarta) = (Vec::new(), Vec::new(), Vec::new());
    for folder in ["examples", "tests/jsl/valid"] {
        files(&root.join(folder), &mut all);
    }
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        let source = Source::new(path.display().to_string(), text.as_str());
        let is_valid = parse(&source, &Limits::default()).is_ok();
        // A schema has one namespace, or none; the draft dialect accepts others, too.
        match text.contains("<job") && is_valid {
            true if text.contains("xmlns=\"https://jakarta.ee/xml/ns/jakartaee\"") => jakarta.push(path),
            true if !text.contains("xmlns=") => draft.push(path),
            _ => {}
        }
    }
    assert!(
        draft.len() > 30 && jakarta.len() > 2,
        "{} {}",
        draft.len(),
        jakarta.len()
    );
    assert_eq!(rejected(Dialect::Draft, &draft), "");
    assert_eq!(rejected(Dialect::Jakarta, &jakarta), "");
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.xml");
    fs::write(
        &wrong,
        "<job id='a'><step id='b'><chunk reader='c' wirter='d'/></step></job>",
    )
    .unwrap();
    assert!(rejected(Dialect::Draft, &[wrong]).contains("wirter"));
}
