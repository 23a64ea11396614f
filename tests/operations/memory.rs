//! The peak of memory of a process does not depend on the length of its input, nor on the length of a record that is too long.

use std::fs::File;
use std::io::{BufWriter, Write};

use batch_tests::writing::{PEAK, Writing};
use batch_tests::{process, slow};

const PROGRAM: &str = env!("CARGO_BIN_EXE_writing");

/// The cache of a connection to SQLite, in KiB. It fills in its own time.
const SQLITE_CACHE: u64 = 2_000;

/// Launches the job of this folder to its end; returns the peak of memory, in KiB.
fn peak(writing: &Writing) -> u64 {
    let output = writing.launch(1).env(PEAK, "1").output().unwrap();
    let errors = process::text(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let peak = errors.lines().find_map(|line| line.strip_prefix(PEAK));
    let digits: String = peak.unwrap().chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

fn job(reader: &str, processor: &str, writer: &str, properties: &str) -> Writing {
    let properties: String = properties
        .lines()
        .filter_map(|line| line.trim().split_once('='))
        .map(|(name, value)| format!("<property name=\"{name}\" value=\"{value}\"/>"))
        .collect();
    Writing::of_job(
        PROGRAM,
        &format!(
            r#"<job id="job"><step id="copy">
              <chunk reader="{reader}" processor="{processor}" writer="{writer}" commit-interval="1000">
                <properties>{properties}</properties>
                <skippable-exception-classes><include class="RecordError"/></skippable-exception-classes>
              </chunk></step></job>"#
        ),
    )
}

/// More rows take no more memory, from file to file and from file to table.
#[test]
fn memory_does_not_grow_with_the_input() {
    let (least, most): (u64, u64) = (slow::times(40_000, 100_000), slow::times(120_000, 10_000_000));
    for (processor, writer) in [("ToRow", "DelimitedRows"), ("ToTableRow", "TableRows")] {
        let [few, many] = [least, most].map(|rows| {
            let writing = job(
                "RowFile",
                processor,
                writer,
                "resource=rows.csv\noutput=run-1/rows.csv\ntable=written",
            );
            let mut file = BufWriter::new(File::create(writing.path().join("rows.csv")).unwrap());
            writeln!(file, "id,name,cents").unwrap();
            for id in 0..rows {
                writeln!(file, "{id},\"a name, and more of it\",{}", id * 101).unwrap();
            }
            file.into_inner().unwrap();
            peak(&writing)
        });
        println!("{writer}: {few} KiB for {least} rows, {many} KiB for {most}");
        assert!(
            many < few + few / 10 + SQLITE_CACHE,
            "{writer}: {few} KiB and {many} KiB"
        );
    }
}

/// A record of 100 MB is skipped without being in memory.
#[test]
fn memory_does_not_grow_with_a_record_that_is_too_long() {
    const LENGTH: usize = 100_000_000;
    for (reader, [before, begin, end, after]) in [
        ("RowFile", ["id,name,cents\n1,a,\n", "2,", ",\n", "3,c,\n"]),
        ("RowFile", ["id,name,cents\n1,a,\n", "2,\"", ",\n", "3,c,\n"]),
        ("LineFile", ["1 a\n", "2 ", "\n", "3 c\n"]),
        (
            "JsonLinesFile",
            [
                "{\"id\":1,\"name\":\"a\"}\n",
                "{\"id\":2,\"name\":\"",
                "\"}\n",
                "{\"id\":3,\"name\":\"c\"}\n",
            ],
        ),
        (
            "JsonArrayFile",
            [
                "[{\"id\":1,\"name\":\"a\"},\n",
                "{\"id\":2,\"name\":\"",
                "\"},\n",
                "{\"id\":3,\"name\":\"c\"}]\n",
            ],
        ),
        (
            "XmlFile",
            [
                "<rows><row><id>1</id><name>a</name></row>\n",
                "<row><id>2</id><name>",
                "</name></row>\n",
                "<row><id>3</id><name>c</name></row></rows>\n",
            ],
        ),
    ] {
        let [short, long] = [2_000_000, LENGTH].map(|length| {
            let (processor, writer) = match reader {
                "LineFile" => ("ToLine", "TextRows"),
                _ => ("ToRow", "DelimitedRows"),
            };
            let writing = job(
                reader,
                processor,
                writer,
                "resource=rows\noutput=run-1/out\nelement=row",
            );
            let mut file = BufWriter::new(File::create(writing.path().join("rows")).unwrap());
            write!(file, "{before}{begin}").unwrap();
            let piece = [b'x'; 10_000];
            (0..length / piece.len()).for_each(|_| file.write_all(&piece).unwrap());
            write!(file, "{end}{after}").unwrap();
            file.into_inner().unwrap();
            let peak = peak(&writing);
            let counts = "SELECT WRITE_COUNT || ' ' || READ_SKIP_COUNT AS text FROM BATCH_STEP_EXECUTION";
            assert_eq!(writing.outside().rows(counts), ["2 1"], "{reader}");
            peak
        });
        println!("{reader}: {short} KiB and {long} KiB");
        assert!(long < short + 8_000, "{reader}: {short} KiB and {long} KiB");
    }
}
