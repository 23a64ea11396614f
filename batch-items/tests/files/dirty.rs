//! Input as it comes from elsewhere, in each format: marks, line ends, encodings, and files that are damaged or not complete.

use std::io::Write;

use batch_runtime::BatchStatus;

use super::delimited::CHUNK;
use super::stage::Stage;

/// A format: its reader, the properties, and a file of two flights.
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
];

const EXPECTED: &str = "origin,delay,note\nM\u{fc}nchen,5,a b\nFRA,1,y\n";

/// Copies the content of a file; fails with the message of the job.
fn copy(reader: &str, file: &str, content: impl AsRef<[u8]>, properties: &str) -> Result<String, String> {
    let chunk = CHUNK.replace("reader=\"FlightReader\"", &format!("reader=\"{reader}\""));
    let stage = Stage::new(
        &chunk,
        &format!("resource=${{dir}}/{file}\noutput=${{dir}}/out.csv\n{properties}"),
    );
    stage.write(file, content);
    let ended = stage.start(());
    match ended.status {
        BatchStatus::Completed => Ok(stage.read("out.csv")),
        _ => Err(ended.message),
    }
}

fn gzip(content: &str) -> Vec<u8> {
    let mut stream = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    stream.write_all(content.as_bytes()).unwrap();
    stream.finish().unwrap()
}

/// A mark of UTF-8, the line ends of Windows, a last line without an end, and blank lines are no part of the records.
#[test]
fn each_format_has_marks_and_line_ends() {
    for Format(reader, properties, content) in FORMATS {
        for variant in [
            (*content).to_owned(),
            format!("\u{FEFF}{content}"),
            content.replace('\n', "\r\n"),
            format!("\u{FEFF}{}", content.replace('\n', "\r\n")),
            content.trim_end_matches('\n').to_owned(),
            content.replace('\n', "\n\n"),
        ] {
            let copied = copy(reader, "in", &variant, properties);
            assert_eq!(copied.as_deref(), Ok(EXPECTED), "{reader} {variant:?}");
        }
    }
}

/// The encodings of other systems are converted. UTF-8 is not guessed: other text is an error at its line.
#[test]
fn each_format_has_encodings() {
    for Format(reader, properties, content) in FORMATS {
        let latin: Vec<u8> = content.chars().map(|c| c as u8).collect();
        let properties = |encoding: &str| format!("{properties}\nencoding@reader={encoding}");
        let copied = copy(reader, "in", &latin, &properties("iso-8859-1"));
        assert_eq!(copied.as_deref(), Ok(EXPECTED), "{reader}");
        let line = if reader.starts_with("Flight") { 2 } else { 1 };
        let message = copy(reader, "in", &latin, &properties("utf-8")).unwrap_err();
        assert!(
            message.contains(&format!("in:{line}: ")) && message.contains("set the property `encoding`"),
            "{reader}: {message}"
        );
        let utf16: Vec<u8> = content.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let copied = copy(reader, "in", &utf16, &properties("utf-16le"));
        assert_eq!(copied.as_deref(), Ok(EXPECTED), "{reader}");
        let message = copy(reader, "in", &utf16[..utf16.len() - 1], &properties("utf-16le")).unwrap_err();
        assert!(
            message.contains("cannot read `in`: it is not valid UTF-16LE"),
            "{reader}: {message}"
        );
    }
}

/// A file without bytes has no records; only an array has to have its brackets.
#[test]
fn each_format_may_be_empty() {
    for Format(reader, properties, _) in FORMATS {
        for content in ["", "\u{FEFF}", "\n", "\r\n\r\n"] {
            let copied = copy(reader, "in", content, properties);
            if *reader == "ArrayFlightReader" {
                let message = copied.unwrap_err();
                assert!(
                    message.starts_with("cannot read `in`: "),
                    "{content:?}: {message}"
                );
            } else {
                assert_eq!(copied.as_deref(), Ok(""), "{reader} {content:?}");
            }
        }
    }
}

/// NUL is a character of a text. JSON has it as an escape only.
#[test]
fn each_format_may_have_nul() {
    for Format(reader, properties, content) in FORMATS {
        let nul = copy(reader, "in", content.replace("a b", "a\0b"), properties);
        if reader.starts_with("Json") || reader.starts_with("Array") {
            let message = nul.unwrap_err();
            assert!(
                message.starts_with("in:1") && message.contains("control character"),
                "{message}"
            );
            let escaped = copy(reader, "in", content.replace("a b", "a\\u0000b"), properties);
            assert_eq!(escaped, Ok(EXPECTED.replace("a b", "a\0b")), "{reader}");
        } else {
            assert_eq!(nul, Ok(EXPECTED.replace("a b", "a\0b")), "{reader}");
        }
    }
}

/// A compressed file that is not complete is never taken for a shorter one, wherever it ends, and a damaged one never for another.
#[test]
fn a_damaged_compressed_file_fails_the_step() {
    let Format(reader, _, content) = &FORMATS[0];
    let [first, second] = content.split_at(30).into();
    let streams = [gzip(first), gzip(second)];
    let whole = streams.concat();
    assert_eq!(copy(reader, "in.gz", &whole, "").as_deref(), Ok(EXPECTED));
    for length in 0..whole.len() {
        // The first stream alone is complete.
        if length == streams[0].len() {
            continue;
        }
        let message = copy(reader, "in.gz", &whole[..length], "").expect_err("it is not complete");
        assert!(
            message.starts_with("cannot read `in.gz`: "),
            "{length}: {message}"
        );
    }
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        // Some bytes, such as the time, say nothing about the content.
        if let Ok(copied) = copy(reader, "in.gz", &damaged, "") {
            assert_eq!(copied, EXPECTED, "byte {at}");
        }
    }
    let message = copy(reader, "in.gz", content, "").unwrap_err();
    assert!(message.starts_with("cannot read `in.gz`: "), "{message}");
    let message = copy(reader, "in.gz", [&whole[..], b"more"].concat(), "").unwrap_err();
    assert!(message.starts_with("cannot read `in.gz`: "), "{message}");
}

/// An array that is not complete is never taken for a shorter one.
#[test]
fn a_truncated_array_fails_the_step() {
    let Format(reader, properties, content) = FORMATS.last().unwrap();
    let end = content.rfind(']').unwrap();
    for length in (0..=end).filter(|length| content.is_char_boundary(*length)) {
        let copied = copy(reader, "in", &content[..length], properties);
        assert!(copied.is_err(), "{length}: {copied:?}");
    }
}

/// A quote without its end is an error also at the end of the file, where no record is too long. The rows behind it are not lost.
#[test]
fn a_quote_that_does_not_end_is_an_error() {
    const HEAD: &str = "origin,delay,note\nMUC,5,x\n";
    for (end, rest) in [
        ("FRA,1,\"y\n", ""),
        ("FRA,1,\"y", ""),
        ("FRA,1,\"", ""),
        ("FRA,1,\"y\"\"\n", ""),
        ("FRA,\"1,y\nBER,2,z\n\nHAM,3,w\n", "BER,2,z\nHAM,3,w\n"),
    ] {
        for trim in ["", "trim=true"] {
            let stage = |children: &str| {
                let properties = format!("resource=${{dir}}/in\noutput=${{dir}}/out.csv\n{trim}");
                let stage = Stage::with_children(CHUNK, &properties, children);
                stage.write("in", format!("{HEAD}{end}"));
                stage
            };
            let message = stage("").fails();
            assert!(
                message.starts_with("in:3: a quote is not closed"),
                "{end:?}: {message}"
            );
            let skipping = stage(SKIP);
            assert_eq!(skipping.completes().skips, 1, "{end:?}");
            assert_eq!(skipping.read("out.csv"), format!("{HEAD}{rest}"), "{end:?}");
        }
    }
    for end in [
        "FRA,1,\"y\"",
        "FRA,1,y",
        "FRA,1,\"y\nz\"",
        "FRA,1,",
        "FRA,1,\"\"",
        "FRA,1,\"y\"\"\"",
    ] {
        for file in ["in", "in.gz"] {
            let content = format!("{HEAD}{end}");
            let content = if file == "in" {
                content.into_bytes()
            } else {
                gzip(&content)
            };
            assert!(copy("FlightReader", file, content, "").is_ok(), "{end:?}");
        }
    }
    let open = gzip(&format!("{HEAD}FRA,1,\"y\n"));
    let message = copy("FlightReader", "in.gz", open, "").unwrap_err();
    assert!(message.starts_with("in.gz:3: a quote is not closed"), "{message}");
}

const SKIP: &str =
    r#"<skippable-exception-classes><include class="RecordError"/></skippable-exception-classes>"#;
