//! The bodies of the fuzz targets. Each function accepts any input, terminates, and panics only on a fault of
//! `batch-xml`. Its tests run them with the corpus and with generated texts, so they include this file.
#![forbid(unsafe_code)]
#![allow(
    unreachable_pub,
    dead_code,
    reason = "a module of several tests, of which each uses a part"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use batch_xml::__private::{Seen, read};
use batch_xml::builder::{ArtifactBuilder, JobBuilder, StepBuilder};
use batch_xml::graph::JobGraph;
use batch_xml::model::{ExecutionElement, Transition};
use batch_xml::{
    Dialect, Document, Effective, JobXmlErrors, Limits, PartitionView, Resolved, Severity, Source, Values,
    explain, resolve, sniff_root,
};
use roxmltree::{Error, Node, ParsingOptions};

/// The separator of the documents in an input for [`exercise_documents`].
pub const SEPARATOR: &str = "\n----\n";

/// Any bytes as a file: a tree that is read must equal the tree of another parser.
pub fn parse_bytes(data: &[u8]) {
    match Source::from_bytes("t.xml", data, &Limits::default()) {
        Ok(source) => {
            compare(&source);
            let sniffed = sniff_root(&source);
            match batch_xml::parse(&source, &Limits::default()) {
                Ok(document) => assert_eq!(sniffed.as_deref(), Some(document.root_kind().as_str())),
                Err(errors) => check_errors(&errors),
            }
        }
        Err(errors) => check_errors(&errors),
    }
}

/// Returns whether the text was read as XML; if so another parser must read the same tree.
pub fn compare(source: &Arc<Source>) -> bool {
    let Some(root) = read(source, &Limits::default()) else {
        return false;
    };
    match roxmltree::Document::parse_with_options(source.text(), ParsingOptions::default()) {
        Ok(judged) => assert_eq!(root, seen(judged.root_element()), "{}", source.text()),
        Err(error) => assert!(is_about_namespaces(&error), "{error}\n{}", source.text()),
    }
    true
}

fn seen(node: Node<'_, '_>) -> Seen {
    let own = node
        .attributes()
        .filter(|attribute| attribute.namespace().is_none());
    let is_text = |child: &Node<'_, '_>| {
        let text = child.text().unwrap_or_default();
        child.is_text() && !text.trim_matches([' ', '\t', '\n', '\r']).is_empty()
    };
    Seen {
        name: node.tag_name().name().to_owned(),
        attributes: own
            .map(|attribute| (attribute.name().to_owned(), attribute.value().to_owned()))
            .collect(),
        has_text: node.children().any(|child| is_text(&child)),
        children: node.children().filter(Node::is_element).map(seen).collect(),
    }
}

/// Namespaces have no meaning here, so their errors are ignored. Spec: JSL-DOC-05, D-78
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

/// Several documents, the first of which is the job: runs every operation on them.
pub fn exercise_documents(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut texts = text.split(SEPARATOR);
    let job = Source::new("job.xml", texts.next().unwrap_or_default());
    let limits = Limits::default();
    let parents = texts.take(8).enumerate().filter_map(|(number, text)| {
        let source = Source::new(format!("parent{number}.xml"), text);
        batch_xml::parse(&source, &limits).ok().map(Arc::new)
    });
    exercise(&job, &parents.collect());
}

/// Runs every operation on a document and those that it may inherit from. Renders the diagnostics, which must not panic
/// either.
pub fn exercise(job: &Arc<Source>, library: &Vec<Arc<Document>>) {
    let limits = Limits::default();
    let parameters = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    let system = BTreeMap::from([("file.separator".to_owned(), "/".to_owned())]);
    let values = Values {
        parameters: &parameters,
        system: &system,
    };
    sniff_root(job);
    let document = match batch_xml::parse(job, &limits) {
        Ok(document) => document,
        Err(errors) => return check_errors(&errors),
    };
    if let Ok(effective) = Effective::new(&document, library, &limits) {
        inherits_nothing_more(&effective, &limits);
    }
    match resolve(&document, library, &values, &limits) {
        Ok(resolved) => exercise_resolved(&resolved, &values, &limits),
        Err(errors) => check_errors(&errors),
    }
}

/// The effective document of an effective document is itself.
fn inherits_nothing_more(effective: &Effective, limits: &Limits) {
    let written = effective.to_xml();
    let Some(again) = read_again(&written, limits) else {
        return;
    };
    if let Ok(again) = Effective::new(&again, &Vec::new(), limits) {
        assert_eq!(written, again.to_xml());
    }
}

/// Returns a written document; `None` if escapes and substitution have made it too long, which is the only permitted
/// error.
fn read_again(written: &str, limits: &Limits) -> Option<Document> {
    match batch_xml::parse(&Source::new("written.xml", written), limits) {
        Ok(document) => Some(document),
        Err(errors) => {
            let is_too_long = |code: &str| matches!(code, "JSL0001" | "JSL0005");
            assert!(
                errors.iter().all(|error| is_too_long(error.code)),
                "{written}{errors}"
            );
            None
        }
    }
}

fn exercise_resolved(resolved: &Resolved, values: &Values<'_>, limits: &Limits) {
    let job = &resolved.job;
    drop(format!("{job:?}"));
    for warning in &resolved.warnings {
        assert!(warning.severity == Severity::Warning && explain(warning.code).is_some());
        drop(warning.to_string());
    }
    read_again(&job.to_xml(), limits);
    let graph = JobGraph::new(job);
    let svg = graph.to_svg();
    if let Err(error) = roxmltree::Document::parse(&svg) {
        panic!("{error}\n{svg}");
    }
    drop((graph.to_dot(), graph.to_mermaid()));
    exercise_partitions(resolved, values, &job.elements);
}

/// Resolves every partitioned element in two partitions.
fn exercise_partitions(resolved: &Resolved, values: &Values<'_>, elements: &[ExecutionElement]) {
    for element in elements {
        exercise_partitions(resolved, values, element.elements());
        for (number, plan) in [(1, None), (2, Some(values.parameters))] {
            let path = [PartitionView {
                element: element.id(),
                number,
                plan,
            }];
            let found = resolved
                .effective
                .resolve_partition(&path, values, &Limits::default());
            assert!(found.is_err() || element.partition().is_some());
        }
    }
}

fn check_errors(errors: &JobXmlErrors) {
    assert!(errors.iter().any(|error| error.severity == Severity::Error));
    for diagnostic in errors {
        assert!(explain(diagnostic.code).is_some(), "{}", diagnostic.code);
        assert!(!diagnostic.message.is_empty());
    }
    drop((errors.render(true), errors.to_string()));
}

/// Patterns, one per line, and on the last line an exit status: the chosen pattern must be that of a simpler and slower
/// implementation of the rules, and a pattern reported as unreachable must not be chosen.
pub fn patterns(data: &[u8]) {
    /// The simple implementation takes time proportional to the product of the lengths.
    const MAX_BYTES: usize = 2_000;
    let text = String::from_utf8_lossy(&data[..data.len().min(MAX_BYTES)]);
    let mut patterns: Vec<&str> = text.lines().take(40).collect();
    let Some(status) = patterns.pop() else { return };
    let step = patterns.iter().fold(
        StepBuilder::batchlet("s", ArtifactBuilder::new("B")),
        |step, pattern| step.end(pattern, None),
    );
    let limits = Limits::default();
    let Ok(document) = JobBuilder::new("j").element(step).document(&limits) else {
        return;
    };
    let none = BTreeMap::new();
    let values = Values {
        parameters: &none,
        system: &none,
    };
    let Ok(resolved) = resolve(&document, &Vec::new(), &values, &limits) else {
        return;
    };
    let transitions = resolved.job.elements[0].transitions();
    for transition in transitions {
        assert_eq!(
            transition.on.matches(status),
            matches(&transition.on, status),
            "{:?} {status:?}",
            transition.on
        );
    }
    let matching = transitions
        .iter()
        .filter(|transition| matches(&transition.on, status));
    let expected: Option<&Transition> = matching.min_by(|a, b| a.on.specificity().cmp(&b.on.specificity()));
    let acting = Dialect::Draft.select(transitions, |transition| &transition.on, status);
    assert_eq!(
        acting.map(|transition| transition.span.range()),
        expected.map(|transition| transition.span.range())
    );
    let Some(acting) = acting else { return };
    for warning in &resolved.warnings {
        assert_ne!(
            warning.span.range(),
            acting.on.span.range(),
            "{status:?}\n{warning}"
        );
    }
}

/// Returns whether the pattern matches, character by character. Spec: SEQ-13, SEQ-14, SEQ-15, SEQ-16
fn matches(pattern: &str, status: &str) -> bool {
    let status: Vec<char> = status.chars().collect();
    // The lengths of the prefixes of the status that the pattern so far matches.
    let mut ends = vec![false; status.len() + 1];
    ends[0] = true;
    for c in pattern.chars() {
        let mut next = vec![false; status.len() + 1];
        for length in 1..=status.len() {
            next[length] = match c {
                '*' => ends[length - 1] || next[length - 1],
                '?' => ends[length - 1],
                literal => ends[length - 1] && status[length - 1] == literal,
            };
        }
        ends = next;
    }
    ends[status.len()]
}
