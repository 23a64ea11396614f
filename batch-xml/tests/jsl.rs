//! The job files of `tests/jsl`: the diagnostics of each invalid one, and the model of each valid one. A case of
//! several documents is a folder; the job is in `job.xml`.
//!
//! A file may name job parameters in a comment: `<!-- Parameters: name=value; name=value -->`. The only
//! system property is `file.separator`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use batch_xml::graph::JobGraph;
use batch_xml::model::ExecutionElement;
use batch_xml::{
    CODES, Diagnostic, Document, JobXmlErrors, Limits, Resolved, Source, Values, parse, resolve,
};

/// Returns the cases of a folder: a file each, or a folder with `job.xml` and the documents that it inherits from.
fn cases(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/jsl")
        .join(folder);
    let mut cases = entries(&folder);
    assert!(
        cases
            .iter()
            .all(|case| case.is_dir() || case.extension().is_some_and(|extension| extension == "xml")),
        "{cases:?}"
    );
    cases.sort();
    cases
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn job_file(case: &Path) -> PathBuf {
    if case.is_dir() {
        case.join("job.xml")
    } else {
        case.to_owned()
    }
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

fn document(file: &Path, limits: &Limits) -> Result<Document, JobXmlErrors> {
    let name = file.file_name().unwrap().to_string_lossy();
    parse(
        &Source::from_bytes(name, &std::fs::read(file).unwrap(), limits)?,
        limits,
    )
}

fn run(case: &Path) -> Result<Resolved, JobXmlErrors> {
    let file = job_file(case);
    let parameters = parameters(&String::from_utf8_lossy(&std::fs::read(&file).unwrap()));
    let system = BTreeMap::from([("file.separator".to_owned(), "/".to_owned())]);
    let values = Values {
        parameters: &parameters,
        system: &system,
    };
    let limits = Limits::default();
    let others = if case.is_dir() { entries(case) } else { Vec::new() };
    let others = others.iter().filter(|other| **other != file);
    let library: Vec<Arc<Document>> = others
        .map(|other| Arc::new(document(other, &limits).unwrap()))
        .collect();
    resolve(&document(&file, &limits)?, &library, &values, &limits)
}

fn snapshot_name(folder: &str, case: &Path) -> String {
    format!("{folder}__{}", case.file_stem().unwrap().to_string_lossy())
}

fn rendered(diagnostics: &[Diagnostic]) -> String {
    diagnostics
        .iter()
        .map(Diagnostic::to_string)
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// Every invalid file is rejected, with exactly the diagnostics of its snapshot.
#[test]
fn invalid_files_are_rejected() {
    for case in cases("invalid") {
        let errors = run(&case).expect_err(&format!("{case:?} is invalid"));
        insta::assert_snapshot!(snapshot_name("invalid", &case), errors.to_string());
    }
}

/// Every valid file yields the model of its snapshot, with the warnings there.
#[test]
fn valid_files_become_models() {
    for case in cases("valid") {
        let resolved = run(&case).unwrap_or_else(|errors| panic!("{case:?}:\n{errors}"));
        let mut text = format!("{:#?}\n\n{}", resolved.job, rendered(&resolved.warnings));
        if case.is_dir() {
            text += &resolved.effective.to_xml();
        }
        insta::assert_snapshot!(snapshot_name("valid", &case), text.trim_end());
    }
}

/// Every valid job can be drawn, and every element is in the picture.
#[test]
fn valid_files_can_be_drawn() {
    for case in cases("valid") {
        let job = run(&case).unwrap().job;
        let graph = JobGraph::new(&job);
        let svg = graph.to_svg();
        let picture = roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{case:?}: {error}"));
        let mut waiting: Vec<&ExecutionElement> = job.elements.iter().collect();
        while let Some(element) = waiting.pop() {
            let id = &element.id().value;
            let is_named = |node: roxmltree::Node<'_, '_>| {
                let words = node.text().unwrap_or_default().split(' ');
                node.has_tag_name("text") && words.into_iter().any(|word| word == id)
            };
            assert!(picture.descendants().any(is_named), "{case:?}: `{id}`");
            assert!(graph.to_dot().contains(id.as_str()) && graph.to_mermaid().contains(id.as_str()));
            waiting.extend(element.elements());
        }
    }
}

/// No diagnostic can lose its case unnoticed: every code is in a snapshot, except the one that needs a file of more
/// than a megabyte.
#[test]
fn every_code_has_a_case() {
    let all = cases("invalid").into_iter().chain(cases("valid"));
    let seen: BTreeSet<&str> = all
        .flat_map(|case| run(&case).map_or_else(JobXmlErrors::into_inner, |resolved| resolved.warnings))
        .map(|diagnostic| diagnostic.code)
        .collect();
    let missing: Vec<&str> = CODES
        .iter()
        .map(|(code, _)| *code)
        .filter(|code| !seen.contains(code))
        .collect();
    // `hostile.rs` generates a file of a megabyte; the codes about batch.xml are in `artifacts.rs`.
    assert_eq!(missing, ["JSL0001", "JSL0060", "JSL0061", "JSL0062"]);
}

/// Every file names its requirements. The empty one cannot.
#[test]
fn every_file_names_its_requirements() {
    for case in cases("invalid").into_iter().chain(cases("valid")) {
        let text = String::from_utf8_lossy(&std::fs::read(job_file(&case)).unwrap()).into_owned();
        assert!(text.is_empty() || comment(&text, "Spec").is_some(), "{case:?}");
    }
}
