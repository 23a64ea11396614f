//! What our writers write is read by independent programs, and the other way round, with the same values.
//!
//! `differential.py` writes and reads the files and tables of the other side, and compares. The documents are
//! always the same, and others in the slow tier; `BATCH_SEED` repeats the one of a seed. `BATCH_TEST_PYTHON` is the interpreter.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod artifacts;
mod document;
mod expressions;
mod jobs;
mod pairs;
mod schema;

use jobs::check;

/// Spec: ITEM-VALUE-01, ITEM-VALUE-02, INPUT-01, INPUT-02
#[test]
fn csv_agrees_with_python() {
    check("csv");
}

/// Spec: ITEM-VALUE-01, ITEM-VALUE-02, INPUT-01
#[test]
fn json_lines_agree_with_python() {
    check("json_lines");
}

/// Spec: ITEM-VALUE-01, ITEM-VALUE-02, INPUT-01
#[test]
fn json_arrays_agree_with_python() {
    check("json_array");
}

/// Spec: INPUT-01
#[test]
fn gzip_agrees_with_python() {
    check("gzip");
}

/// Spec: INPUT-01
#[test]
fn zstd_agrees_with_zstandard() {
    check("zstd");
}

/// Spec: ITEM-VALUE-01, INPUT-01
#[test]
fn xml_agrees_with_lxml() {
    check("xml");
}

/// Spec: ITEM-VALUE-01, ITEM-VALUE-02
#[test]
fn parquet_agrees_with_pyarrow() {
    check("parquet");
}

/// Spec: ITEM-VALUE-02
#[test]
fn arrow_agrees_with_pyarrow() {
    check("arrow");
}

/// Spec: ITEM-VALUE-02
#[test]
fn xlsx_agrees_with_openpyxl() {
    check("xlsx");
}

/// Spec: ITEM-VALUE-01, ITEM-VALUE-02, ITEM-VALUE-04
#[test]
fn sqlite_agrees_with_its_shell() {
    check("sqlite");
}

/// Spec: ITEM-VALUE-01, ITEM-VALUE-02, ITEM-VALUE-04
#[test]
fn postgres_agrees_with_copy() {
    check("postgres");
}

/// The page of properties is that of the code.
#[test]
fn properties_are_listed() {
    batch_tests::properties::check_chapter("batch-columnar", &[]);
}
