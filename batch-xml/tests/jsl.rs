//! The job files of `tests/jsl`: what is said about each invalid one, and the model of each valid one.
//!
//! A file may name job parameters in a comment: `<!-- Parameters: name=value; name=value -->`. The only
//! system property is `file.separator`.
#![expect(clippy::unwrap_used, reason = "a test that meets nothing has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use batch_xml::{CODES, Diagnostic, JobXmlErrors, Limits, Resolved, Source, Values, parse, resolve};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/jsl")
        .join(folder);
    let mut files: Vec<PathBuf> = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(
        files
            .iter()
            .all(|file| file.extension().is_some_and(|extension| extension == "xml")),
        "{files:?}"
    );
    files
}

fn comment<'a>(text: &'a str, title: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<!-- {title}: "))?;
    Some(rest.split_once("-->")?.0.trim())
}

fn parameters(text: &str) -> BTreeMap<String, String> {
    let pairs = comment(text, "Parameters")
        .into_iter()
        .flat_map(|list| list.split(';'));
    pairs
        .map(|pair| pair.trim().split_once('=').unwrap())
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .collect()
}

fn run(file: &Path) -> Result<Resolved, JobXmlErrors> {
    let bytes = std::fs::read(file).unwrap();
    let parameters = parameters(&String::from_utf8_lossy(&bytes));
    let system = BTreeMap::from([("file.separator".to_owned(), "/".to_owned())]);
    let values = Values {
        parameters: &parameters,
        system: &system,
    };
    let limits = Limits::default();
    let name = file.file_name().unwrap().to_string_lossy();
    let source = Source::from_bytes(name, &bytes, &limits)?;
    resolve(&parse(&source, &limits)?, &values, &limits)
}

fn snapshot_name(folder: &str, file: &Path) -> String {
    format!("{folder}__{}", file.file_stem().unwrap().to_string_lossy())
}

fn rendered(diagnostics: &[Diagnostic]) -> String {
    diagnostics
        .iter()
        .map(Diagnostic::to_string)
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// Every invalid file is rejected, with the diagnostics of its snapshot and no others.
#[test]
fn invalid_files_are_rejected() {
    for file in files("invalid") {
        let errors = run(&file).expect_err(&format!("{file:?} is invalid"));
        insta::assert_snapshot!(snapshot_name("invalid", &file), errors.to_string());
    }
}

/// Every valid file becomes the model of its snapshot, with the warnings there.
#[test]
fn valid_files_become_models() {
    for file in files("valid") {
        let Resolved { job, warnings } = run(&file).unwrap_or_else(|errors| panic!("{file:?}:\n{errors}"));
        let text = format!("{job:#?}\n\n{}", rendered(&warnings));
        insta::assert_snapshot!(snapshot_name("valid", &file), text.trim_end());
    }
}

/// No diagnostic can lose its case without notice: every code stands in a snapshot, but for the one that
/// takes a file of more than a megabyte.
#[test]
fn every_code_has_a_case() {
    let all = files("invalid").into_iter().chain(files("valid"));
    let seen: BTreeSet<&str> = all
        .flat_map(|file| run(&file).map_or_else(JobXmlErrors::into_inner, |resolved| resolved.warnings))
        .map(|diagnostic| diagnostic.code)
        .collect();
    let missing: Vec<&str> = CODES
        .iter()
        .map(|(code, _)| *code)
        .filter(|code| !seen.contains(code))
        .collect();
    assert_eq!(missing, ["JSL0001"]);
}

/// Every file says which requirements it is for. The empty one cannot.
#[test]
fn every_file_names_its_requirements() {
    for file in files("invalid").into_iter().chain(files("valid")) {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        assert!(text.is_empty() || comment(&text, "Spec").is_some(), "{file:?}");
    }
}
