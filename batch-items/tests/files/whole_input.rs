//! Every byte of the input is read once, as it is, or the step fails: marks, line ends, and files that change.

use std::fs;
use std::path::PathBuf;

use batch_items::{DelimitedItemReader, RejectListener, XmlItemReader};
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

use super::delimited::Flight;
use super::stage::Stage;

#[item_reader("WholeXmlReader")]
type WholeXmlReader = XmlItemReader<Flight>;

/// A format: its reader, the properties, and a file of two flights whose second one is in the line after the first one.
struct Format(&'static str, &'static str, &'static str);

const FORMATS: &[Format] = &[
    Format(
        "FlightReader",
        "",
        "origin,delay,note\nM\u{fc}nchen,5,a b\nFRA,1,y\n",
    ),
    Format(
        "FixedFlightReader",
        "columns@reader=origin 1-7, delay 8-9, note 10-12",
        "M\u{fc}nchen 5a b\nFRA     1y  \n",
    ),
    Format(
        "PatternFlightReader",
        "pattern=^(?<origin>\\S+) (?<delay>\\d+) (?<note>.*)$",
        "M\u{fc}nchen 5 a b\nFRA 1 y\n",
    ),
    Format(
        "JsonFlightReader",
        "",
        "{\"origin\":\"M\u{fc}nchen\",\"delay\":5,\"note\":\"a b\"}\n{\"origin\":\"FRA\",\"delay\":1,\"note\":\"y\"}\n",
    ),
    Format(
        "ArrayFlightReader",
        "",
        "[{\"origin\":\"M\u{fc}nchen\",\"delay\":5,\"note\":\"a b\"},\n{\"origin\":\"FRA\",\"delay\":1,\"note\":\"y\"}]\n",
    ),
    Format(
        "WholeXmlReader",
        "element=f",
        "<r><f><origin>M\u{fc}nchen</origin><delay>5</delay><note>a b</note></f>\n\
         <f><origin>FRA</origin><delay>1</delay><note>y</note></f>\n</r>\n",
    ),
];

const EXPECTED: &str = "origin,delay,note\nM\u{fc}nchen,5,a b\nFRA,1,y\n";

fn stage(reader: &str, properties: &str, content: impl AsRef<[u8]>) -> Stage {
    let chunk = format!("reader=\"{reader}\" processor=\"PassFlight\" writer=\"FlightWriter\"");
    let stage = Stage::new(
        &chunk,
        &format!("resource=${{dir}}/in\noutput=${{dir}}/out.csv\n{properties}"),
    );
    stage.write("in", content);
    stage
}

/// Returns the message of a job that fails and writes nothing, whatever it skips.
fn fails(reader: &str, properties: &str, content: impl AsRef<[u8]>) -> String {
    let chunk = format!("reader=\"{reader}\" processor=\"PassFlight\" writer=\"FlightWriter\"");
    let skip = r#"<skippable-exception-classes><include class="Exception"/></skippable-exception-classes>"#;
    let properties = format!("resource=${{dir}}/in\noutput=${{dir}}/out.csv\n{properties}");
    let stage = Stage::with_children(&chunk, &properties, skip);
    stage.write("in", content);
    let message = stage.fails();
    assert!(!stage.path().join("out.csv").exists());
    message
}

fn utf16(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(unit).collect()
}

/// `utf-16` is what the mark says; a mark that contradicts `encoding` fails the step, in every format.
///
/// Spec: INPUT-01
#[test]
fn a_byte_order_mark_agrees_with_the_encoding() {
    for Format(reader, properties, content) in FORMATS {
        let properties = |encoding: &str| format!("{properties}\nencoding@reader={encoding}");
        let marked = format!("\u{FEFF}{content}");
        let files: [(&str, Vec<u8>, &[&str]); 5] = [
            ("UTF-8", marked.clone().into_bytes(), &["utf-8"]),
            (
                "UTF-16LE",
                utf16(&marked, u16::to_le_bytes),
                &["utf-16", "utf-16le", "ucs-2"],
            ),
            (
                "UTF-16BE",
                utf16(&marked, u16::to_be_bytes),
                &["utf-16", "utf-16be"],
            ),
            (
                "UTF-32LE",
                marked.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect(),
                &[],
            ),
            (
                "UTF-32BE",
                marked.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect(),
                &[],
            ),
        ];
        for (name, file, right) in &files {
            for encoding in [
                "utf-8",
                "utf-16",
                "utf-16le",
                "utf-16be",
                "ucs-2",
                "windows-1252",
                "shift_jis",
            ] {
                if right.contains(&encoding) || (encoding == "ucs-2" && right.contains(&"utf-16")) {
                    let stage = stage(reader, &properties(encoding), file);
                    stage.completes();
                    assert_eq!(stage.read("out.csv"), EXPECTED, "{reader} {name} {encoding}");
                } else {
                    let message = fails(reader, &properties(encoding), file);
                    let expected = format!(
                        "cannot read `in`: it begins with the byte-order mark of {name}, but is read as"
                    );
                    assert!(
                        message.starts_with(&expected),
                        "{reader} {name} {encoding}: {message}"
                    );
                }
            }
        }
        let plain = utf16(content, u16::to_le_bytes);
        let message = fails(reader, &properties("utf-16"), &plain);
        assert!(
            message.contains("set `encoding` to `utf-16le` or `utf-16be`"),
            "{reader}: {message}"
        );
        let plain = stage(reader, &properties("utf-16le"), plain);
        plain.completes();
        assert_eq!(plain.read("out.csv"), EXPECTED, "{reader}: without a mark");
    }
}

/// A CR alone ends a line, in files of any encoding: the records, the lines that are skipped, and their numbers are the same as with LF.
///
/// Spec: INPUT-02
#[test]
fn lines_may_end_with_cr() {
    for Format(reader, properties, content) in FORMATS {
        let content = format!("report\n{content}");
        for end in ["\n", "\r\n", "\r"] {
            for (encoding, bytes) in [
                ("utf-8", content.replace('\n', end).into_bytes()),
                ("utf-16be", utf16(&content.replace('\n', end), u16::to_be_bytes)),
            ] {
                let properties = format!("{properties}\nskip.lines=1\nencoding@reader={encoding}");
                let ended = stage(reader, &properties, &bytes);
                let counters = ended.completes();
                assert_eq!(
                    (counters.reads, ended.read("out.csv")),
                    (2, EXPECTED.into()),
                    "{reader} {end:?}"
                );
                // The line of the second record.
                let bad = content
                    .replace("FRA", "F\u{1}A")
                    .replace(":1,", ":\"1\",")
                    .replace('\u{1}', "\\");
                let bad = match reader.contains("Json") || reader.contains("Array") {
                    true => bad.replace("F\\A", "FRA"),
                    false => content
                        .replace(",1,y", ",x,y")
                        .replace("    1y", "    xy")
                        .replace("FRA 1", "FRA x")
                        .replace("<delay>1", "<delay>x"),
                };
                let expected = if *reader == "FlightReader" {
                    "in:4: "
                } else {
                    "in:3"
                };
                if *encoding == *"utf-8" {
                    let message = fails_at(reader, &properties, &bad.replace('\n', end));
                    assert!(message.starts_with(expected), "{reader} {end:?}: {message}");
                }
            }
        }
    }
}

fn fails_at(reader: &str, properties: &str, content: &str) -> String {
    stage(reader, properties, content).fails()
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Row {
    id: u64,
    name: String,
    text: String,
}

#[item_reader("RowReader")]
type RowReader = DelimitedItemReader<Row>;

#[item_writer("RowWriter")]
type RowWriter = batch_items::DelimitedItemWriter<Row>;

#[skip_listener("RowRejects")]
#[checkpoint_listener("RowRejects")]
type RowRejects = RejectListener<Row>;

/// Does something to the input at the first item.
#[derive(BatchArtifact)]
struct Disturb {
    #[batch_property(name = "file")]
    file: PathBuf,
    #[batch_property(name = "disturbance")]
    disturbance: String,
    done: bool,
}

#[item_processor("Disturb")]
impl Disturb {
    #[process_item]
    fn process(&mut self, row: &Row) -> Result<Option<Row>, BatchError> {
        if !std::mem::replace(&mut self.done, true) {
            match &*self.disturbance {
                "replace" => {
                    let other = self.file.with_extension("other");
                    let content = fs::read_to_string(&self.file)?;
                    fs::write(&other, content.replace(char::is_numeric, "#"))?;
                    fs::rename(other, &self.file)?;
                }
                "remove" => fs::remove_file(&self.file)?,
                "move" => fs::rename(&self.file, self.file.with_extension("moved"))?,
                "cut" => fs::OpenOptions::new()
                    .write(true)
                    .open(&self.file)?
                    .set_len(70_000)?,
                _ => {}
            }
        }
        Ok(Some(row.clone()))
    }
}

/// Returns a file of several buffers with bad rows, and these rows.
fn rows_with_bad_ones() -> (String, Vec<String>) {
    let (mut content, mut bad) = ("id,name,text\r\n".to_owned(), Vec::new());
    for number in 0..10_000 {
        let row = match number % 100 {
            // The value is not the text: quotes, and two lines.
            7 => format!("x{number},\"ok\",\"a \"\"b\"\"\""),
            31 => format!("x{number},\"ok\",\"a\r\nb\""),
            50 => format!("{number},\"ok"),
            51 => format!("{number},\"ok\" x,y"),
            _ => format!("{number},ok,y"),
        };
        if matches!(number % 100, 7 | 31 | 50 | 51) {
            bad.push(row.clone());
        }
        content += &format!("{row}\r\n");
    }
    (content, bad)
}

fn with_rejects(disturbance: &str) -> Stage {
    let listener = "<listeners><listener ref=\"RowRejects\"><properties>\
                    <property name=\"rejects.output\" value=\"${dir}/rejects.jsonl\"/>\
                    <property name=\"rejects.raw\" value=\"${dir}/raw.csv\"/></properties></listener></listeners>";
    let chunk = "reader=\"RowReader\" processor=\"Disturb\" writer=\"RowWriter\" commit-interval=\"10\"";
    let properties = format!(
        "resource=${{dir}}/in.csv\noutput=${{dir}}/out.csv\nfile=${{dir}}/in.csv\ndisturbance={disturbance}"
    );
    let skip = r#"<skippable-exception-classes><include class="RecordError"/></skippable-exception-classes>"#;
    Stage::with_listeners(listener, chunk, &properties, skip)
}

/// The text of a reject is the bytes that were parsed: the input is opened once, so it may be replaced, moved or removed meanwhile.
///
/// Spec: INPUT-03
#[test]
fn rejects_have_the_bytes_of_their_records() {
    let (content, bad) = rows_with_bad_ones();
    let expected: String = bad.iter().map(|row| format!("{row}\n")).collect();
    for disturbance in ["", "replace", "remove", "move"] {
        let stage = with_rejects(disturbance);
        stage.write("in.csv", &content);
        let ended = stage.completes();
        assert_eq!(ended.skips as usize, bad.len(), "{disturbance}");
        assert_eq!(ended.reads, 10_000 - ended.skips, "{disturbance}");
        assert_eq!(stage.read("raw.csv"), expected, "{disturbance}");
    }
}

/// An input that is cut while it is read has not been read to its end.
///
/// Spec: INPUT-01
#[test]
fn an_input_that_is_cut_fails_the_step() {
    let stage = with_rejects("cut");
    stage.write("in.csv", rows_with_bad_ones().0);
    let message = stage.fails();
    assert!(
        message.starts_with("cannot read `in.csv`: it was cut while it was read: it had "),
        "{message}"
    );
}

/// A pipe is rejected, not waited for.
///
/// Spec: INPUT-01
#[test]
#[cfg(unix)]
fn a_pipe_or_device_is_rejected() {
    let stage = stage("FlightReader", "", "");
    let input = stage.path().join("in");
    fs::remove_file(&input).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&input).status().unwrap();
    assert!(made.success());
    let message = stage.fails();
    assert!(
        message.starts_with("cannot read `in`: it is a pipe or a device, which a restart cannot read again"),
        "{message}"
    );
    for device in ["/dev/zero", "/dev/null"] {
        let stage = Stage::new(
            "reader=\"FlightReader\" processor=\"PassFlight\" writer=\"FlightWriter\"",
            &format!("resource={device}\noutput=${{dir}}/out.csv"),
        );
        let message = stage.fails();
        assert!(message.contains("it is a pipe or a device"), "{message}");
    }
}

/// A file that should be there is not passed over.
///
/// Spec: INPUT-05
#[test]
#[cfg(unix)]
fn a_link_to_nothing_fails_the_step() {
    for (resource, missing) in [("in/*.csv", "fail"), ("in/a.csv", "fail"), ("in/a.csv", "empty")] {
        let stage = Stage::new(
            "reader=\"FlightReader\" processor=\"PassFlight\" writer=\"FlightWriter\"",
            &format!("resource=${{dir}}/{resource}\noutput=${{dir}}/out.csv\nif.missing={missing}"),
        );
        fs::create_dir(stage.path().join("in")).unwrap();
        stage.write("in/b.csv", "origin,delay,note\n");
        std::os::unix::fs::symlink("absent", stage.path().join("in/a.csv")).unwrap();
        let message = stage.fails();
        assert!(
            message.contains("`in/a.csv` is a link to a file that does not exist"),
            "{resource} {missing}: {message}"
        );
    }
}

/// A skip of an error that is not one of a record does not make it the end of the file.
///
/// Spec: INPUT-06
#[test]
fn a_skipped_error_of_a_file_is_not_its_end() {
    let rows: String = (0..20_000)
        .map(|row| format!("R{row},{},x\n", row * 7919 % 10_007))
        .collect();
    let mut stream = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut stream, format!("origin,delay,note\n{rows}").as_bytes()).unwrap();
    let whole = stream.finish().unwrap();
    let message = fails(
        "FlightReader",
        "compression@reader=gzip",
        &whole[..whole.len() / 2],
    );
    assert!(message.starts_with("cannot read `in`: "), "{message}");
    assert!(
        message.contains("has to advance past input that it cannot read"),
        "{message}"
    );

    // After the error, the reader is where it is at the end of a good file.
    let message = fails("ArrayFlightReader", "", "[]]");
    assert!(message.contains("expected nothing after the array"), "{message}");
}

/// Text beside the match of a pattern would be lost.
///
/// Spec: INPUT-01
#[test]
fn a_pattern_matches_whole_lines() {
    let pattern = "pattern=(?sx) (?<origin>[A-Z]+) ; (?<delay>[0-9]+) ; (?<note>[a-z]*) # the note";
    for (line, is_whole) in [("FRA;1;ada", true), ("FRA;1;ada;5", false), ("xFRA;1;ada", false)] {
        let stage = stage("PatternFlightReader", pattern, format!("{line}\n"));
        if is_whole {
            stage.completes();
        } else {
            assert!(
                stage.fails().contains("the line does not match the pattern"),
                "{line}"
            );
        }
    }
}

/// Reads one item and closes the file. The note of the item is the number of descriptors of the file that are left.
#[cfg(target_os = "linux")]
#[derive(BatchArtifact)]
struct ClosingReader {
    #[batch_artifact]
    rows: DelimitedItemReader<Flight>,
    #[batch_property(name = "resource")]
    path: PathBuf,
    closed: bool,
}

#[cfg(target_os = "linux")]
#[item_reader("ClosingReader")]
impl ClosingReader {
    #[open]
    fn open(&mut self) -> Result<(), BatchError> {
        self.rows.open(None)
    }

    #[read_item]
    fn read(&mut self) -> Result<Option<Flight>, BatchError> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(None);
        }
        let mut flight = self.rows.read()?.ok_or("no flight")?;
        self.rows.close();
        let open = fs::read_dir("/proc/self/fd")?.flatten();
        let open = open.filter(|file| fs::read_link(file.path()).is_ok_and(|path| path == self.path));
        flight.note = open.count().to_string();
        Ok(Some(flight))
    }
}

/// A reader of a program that keeps its parts does not keep their files.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_reader_has_no_file_open() {
    let stage = stage("ClosingReader", "", "origin,delay,note\nMUC,5,x\nFRA,1,y\n");
    stage.completes();
    assert_eq!(stage.read("out.csv"), "origin,delay,note\nMUC,5,0\n");
}

/// The files of a pattern are read in the order of the property, by default the order of their names.
#[test]
fn files_are_read_in_the_order_of_names_or_changes() {
    for (order, expected) in [("name", "number\n1\n2\n"), ("modified", "number\n2\n1\n")] {
        let stage = Stage::new(
            "reader=\"NumberReader\" processor=\"ToNumber\" writer=\"NumberWriter\"",
            &format!("resource=${{dir}}/in-*\noutput@writer=${{dir}}/out.txt\norder={order}"),
        );
        stage.write("in-1", "1\n");
        stage.write("in-2", "2\n");
        let older = std::fs::File::options()
            .write(true)
            .open(stage.path().join("in-2"));
        older.unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        stage.completes();
        assert_eq!(stage.read("out.txt"), expected, "{order}");
    }
}

/// Records of a file with another delimiter would have one value each.
///
/// Spec: INPUT-27
#[test]
fn a_header_with_another_delimiter_fails_the_step() {
    let read = |properties: &str, content: &str| {
        let chunk = "reader=\"csvRecordReader\" writer=\"recordCsvWriter\"";
        let files = "resource@reader=${dir}/in.csv\noutput@writer=${dir}/out.csv";
        let stage = Stage::new(chunk, &format!("{files}\n{properties}"));
        stage.write("in.csv", content);
        stage
    };
    for (properties, content, delimiter) in [
        (
            "",
            "number;cents\n1;5\n",
            "if `;` separates the columns, set `delimiter` to it",
        ),
        (
            "",
            "number\tcents\n1\t5\n",
            "if a tab separates the columns, set `delimiter` to `tab`",
        ),
        (
            "delimiter@reader=;",
            "number,cents\n1,5\n",
            "if `,` separates the columns, set `delimiter` to it",
        ),
    ] {
        let error = read(properties, content).fails();
        assert!(
            error.contains(delimiter) && error.contains("has one column"),
            "{error}"
        );
    }
    let single = read("", "number\n1\n");
    single.completes();
    for (properties, header) in [("strict@reader=false", "a;b"), ("", "\"a;b\"")] {
        let meant = read(properties, &format!("{header}\n1\n"));
        meant.completes();
        assert_eq!(meant.read("out.csv"), "\"a;b\"\n1\n");
    }
}
