//! Tests of the job with `batch-testing`, and of the values of a record.

use std::fs;
use std::io::Write;
use std::path::Path;

use batch_items::Value;
use batch_testing::{JobTest, crash_sweep};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::layout::Layout;

const DATA: &str = "data/bookings.ebcdic";

fn job(folder: &Path) -> JobTest {
    JobTest::new("ebcdic/bookings.xml")
        .system_property("data", "data")
        .parameter("rejects.file", folder.join("rejects.csv").display())
}

/// Amounts and names are exact. The record that is damaged is in the rejects, with its bytes.
#[test]
fn records_are_loaded_or_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = job(folder.path()).launch();
    run.assert_completed();
    run.step("load").assert_reads(5).assert_writes(5).assert_skips(1);
    assert_eq!(
        run.database().rows("booking"),
        [
            "'4711', 'Åse Öberg', 12.5, 20261127",
            "'4712', 'Müller & Co.', -0.99, 20261127",
            "'4713', 'Peña', 1234567.89, 20261128",
            "'4714', 'O''Neill', 0, 20261128",
            "'4716', 'Smith', 0.05, 20261130",
        ]
    );
    let rejects = fs::read_to_string(folder.path().join("rejects.csv")).expect("the rejects");
    for part in [
        "field `amount` (number 3)",
        "half byte F is no digit",
        "\\xf4f7f1f5",
    ] {
        assert!(rejects.contains(part), "{part}: {rejects}");
    }
}

/// The records of several files.
#[test]
fn many_files_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = fs::read(DATA).expect("the data");
    // The first three records, twice.
    for name in ["a.bin", "b.bin"] {
        fs::write(folder.path().join(name), &data[..3 * 35]).expect("the file");
    }
    let run = job(folder.path())
        .parameter("file", folder.path().join("*.bin").display())
        .launch();
    run.assert_completed();
    assert_eq!(run.database().count("booking"), 6);
}

/// The first bytes of these records are a byte-order mark in files of text.
#[test]
fn bytes_are_no_byte_order_mark() {
    let data = fs::read(DATA).expect("the data");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("one.bin");
    fs::write(&file, [b"\xEF\xBB\xBF", &data[3..35]].concat()).expect("the file");
    let run = job(folder.path()).parameter("file", file.display()).launch();
    run.assert_completed();
    assert_eq!(
        run.database().rows("booking"),
        ["'Õ]×1', 'Åse Öberg', 12.5, 20261127"]
    );
}

/// A file that was cut fails the step: its last record is not whole.
#[test]
fn a_file_that_was_cut_is_not_complete() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = fs::read(DATA).expect("the data");
    let file = folder.path().join("cut.bin");
    fs::write(&file, &data[..100]).expect("the file");
    let run = job(folder.path()).parameter("file", file.display()).launch();
    run.assert_failed("record 3 has 30 bytes, but the layout has 35");
}

/// Bytes have no encoding and no lines: properties that would have no effect are errors.
#[test]
fn properties_of_text_are_rejected() {
    let xml = fs::read_to_string("ebcdic/bookings.xml").expect("the job");
    for (property, value) in [("encoding", "windows-1252"), ("skip.lines", "1")] {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = "<property name=\"layout\"";
        let with = format!("<property name=\"{property}\" value=\"{value}\" target=\"reader\"/>{layout}");
        let path = folder.path().join("bookings.xml");
        fs::write(&path, xml.replace(layout, &with)).expect("the job");
        let job = JobTest::new(path).system_property("data", "data");
        let run = job
            .parameter("rejects.file", folder.path().join("rejects.csv").display())
            .launch();
        run.assert_failed(&format!("is no text; remove the property `{property}`"));
    }
}

/// Wherever the process dies, each booking of a compressed file is in the table once, and the rejects are complete.
#[test]
fn a_crash_loses_or_duplicates_no_booking() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bookings.gz");
    let output = fs::File::create(&file).expect("the file");
    let mut compressed = GzEncoder::new(output, Compression::fast());
    compressed
        .write_all(&fs::read(DATA).expect("the data"))
        .expect("the file");
    compressed.finish().expect("the file");
    crash_sweep(job(folder.path()))
        .parameter("file", file.display())
        .parameter("commit.interval", 2)
        .output("rejects.file", "rejects.csv")
        .sample(20)
        .run();
}

fn value(layout: &str, bytes: &[u8]) -> Result<Value, String> {
    let layout: Layout = layout.parse()?;
    layout.0[0].value(bytes)
}

#[test]
fn numbers_keep_their_digits_and_sign() {
    let decimal = |text: &str| Ok(Value::Decimal(text.to_owned()));
    for (layout, bytes, expected) in [
        ("n packed 3", &b"\x12\x3C"[..], Ok(Value::Int(123))),
        ("n packed 4", b"\x01\x23\x4D", Ok(Value::Int(-1234))),
        ("n packed 3.2", b"\x00\x5F", decimal("0.05")),
        ("n packed 3.3", b"\x12\x3B", decimal("-0.123")),
        ("n zoned 3", b"\xF0\xF4\xD2", Ok(Value::Int(-42))),
        ("n zoned 3.1", b"\xF1\xF2\xC3", decimal("12.3")),
        (
            "n packed 31",
            &[&[0x12; 15][..], b"\x1C"].concat(),
            decimal("1212121212121212121212121212121"),
        ),
        ("n packed 4", b"\x91\x23\x4C", Err("it has more than 4 digits")),
        ("n packed 3", b"\x1A\x3C", Err("half byte A is no digit")),
        ("n packed 3", b"\x12\x34", Err("half byte 4 is no sign")),
        ("n zoned 2", b"\x40\xF1", Err("byte 40 is no digit")),
        ("t text 3", b"\xC1\x40\x40", Ok(Value::from("A"))),
        ("t text 3", b"\xC1\x00\x40", Err("byte 00 is no character")),
    ] {
        assert_eq!(
            value(layout, bytes),
            expected.map_err(str::to_owned),
            "{layout} {bytes:X?}"
        );
    }
}

#[test]
fn a_wrong_layout_is_an_error() {
    for layout in [
        "",
        "n",
        "n packed",
        "n packed 0",
        "n packed 2.3",
        "t text 3.1",
        "n packed 3 4",
        "n text 1, n text 2",
    ] {
        assert!(layout.parse::<Layout>().is_err(), "{layout}");
    }
}
