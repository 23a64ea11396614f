//! The corpus of the fuzz targets, as an ordinary test. ARCHITECTURE.md describes how to fuzz.

use std::path::Path;

use crate::fuzz;

/// Passes every file of a corpus to the body of its target; returns their total size in bytes.
fn replay(corpus: &str, body: fn(&[u8])) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/corpus")
        .join(corpus);
    let mut files: Vec<_> = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 10, "{files:?}");
    let inputs: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    inputs.iter().for_each(|input| body(input));
    inputs.iter().map(Vec::len).sum()
}

/// Spec: JSL-DOC-01, JSL-DOC-02
#[test]
fn files_are_read_as_another_parser_reads_them() {
    replay("parse", fuzz::parse_bytes);
    // Jobs are files too.
    replay("resolve", fuzz::parse_bytes);
}

/// Spec: JSL-DOC-19
#[test]
fn documents_are_survived() {
    replay("resolve", fuzz::exercise_documents);
    replay("parse", fuzz::exercise_documents);
}

/// Spec: SEQ-13, SEQ-14, SEQ-15, SEQ-16, SEQ-17, SEQ-18
#[test]
fn patterns_act_as_a_simpler_reading_says() {
    replay("patterns", fuzz::patterns);
}

/// Findings of the fuzzer are reduced and added here by hand.
#[test]
fn the_corpus_is_small() {
    let bytes: usize = ["parse", "resolve", "patterns"]
        .into_iter()
        .map(|corpus| replay(corpus, |_| ()))
        .sum();
    assert!(bytes < 200_000, "{bytes}");
}
