//! Excel workbooks.

use std::fmt::Write;

use batch_columnar::XlsxItemReader;
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

use super::stage::{Stage, check_restarts, pass};

/// A cell of a workbook that a test makes.
#[derive(Clone, Copy)]
enum Cell {
    Empty,
    Text(&'static str),
    Number(f64),
    /// A number with these digits.
    Digits(&'static str),
    Bool(bool),
    Error(&'static str),
    /// A number with one of the formats of [`STYLES`].
    Styled(f64, u8),
    /// The last result of a formula.
    Formula(&'static str, f64),
    /// A formula without a stored result.
    NoResult(&'static str),
    /// A number in the cell of this name.
    At(&'static str),
}

use Cell::{Empty, Number, Text};

/// Dates, dates with times, times, and durations.
const STYLES: &str = "<styleSheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\">\
    <numFmts count=\"1\"><numFmt numFmtId=\"164\" formatCode=\"yyyy\\-mm\\-dd hh:mm\"/></numFmts><cellXfs count=\"5\">\
    <xf numFmtId=\"0\"/><xf numFmtId=\"14\"/><xf numFmtId=\"164\"/><xf numFmtId=\"21\"/><xf numFmtId=\"46\"/></cellXfs></styleSheet>";

/// The number of a row, and its cells from the column `A`.
type Row<'a> = (u32, &'a [Cell]);

/// Returns a workbook of sheets with names.
fn workbook(sheets: &[(&str, &[Row<'_>])]) -> Vec<u8> {
    workbook_with(sheets, &[])
}

/// Returns a workbook with other parts.
fn workbook_with(sheets: &[(&str, &[Row<'_>])], others: &[(String, String)]) -> Vec<u8> {
    let (mut list, mut relations, mut strings) = (String::new(), String::new(), String::new());
    let mut files = Vec::new();
    let mut texts = 0;
    for (number, (name, rows)) in (1..).zip(sheets) {
        let mut data = String::new();
        for (row, cells) in *rows {
            write!(data, "<row r=\"{row}\">").unwrap();
            for (column, cell) in ('A'..).zip(*cells) {
                let r = format!("r=\"{column}{row}\"");
                match cell {
                    Empty => write!(data, "<c {r} s=\"1\"/>"),
                    Text(text) => {
                        write!(strings, "<si><t xml:space=\"preserve\">{text}</t></si>").unwrap();
                        texts += 1;
                        write!(data, "<c {r} t=\"s\"><v>{}</v></c>", texts - 1)
                    }
                    Number(number) => write!(data, "<c {r}><v>{number}</v></c>"),
                    Cell::Digits(digits) => write!(data, "<c {r}><v>{digits}</v></c>"),
                    Cell::Bool(value) => write!(data, "<c {r} t=\"b\"><v>{}</v></c>", u8::from(*value)),
                    Cell::Error(error) => write!(data, "<c {r} t=\"e\"><v>{error}</v></c>"),
                    Cell::Styled(number, style) => write!(data, "<c {r} s=\"{style}\"><v>{number}</v></c>"),
                    Cell::NoResult(formula) => write!(data, "<c {r}><f>{formula}</f><v></v></c>"),
                    Cell::At(name) => write!(data, "<c r=\"{name}\"><v>1</v></c>"),
                    Cell::Formula(formula, number) => {
                        write!(data, "<c {r}><f>{formula}</f><v>{number}</v></c>")
                    }
                }
                .unwrap();
            }
            data.push_str("</row>");
        }
        write!(
            list,
            "<sheet name=\"{name}\" sheetId=\"{number}\" r:id=\"rId{number}\"/>"
        )
        .unwrap();
        write!(
            relations,
            "<Relationship Id=\"rId{number}\" Type=\"{RELATION}/worksheet\" Target=\"worksheets/sheet{number}.xml\"/>"
        )
        .unwrap();
        let sheet = format!("<worksheet xmlns=\"{MAIN}\"><sheetData>{data}</sheetData></worksheet>");
        files.push((format!("xl/worksheets/sheet{number}.xml"), sheet));
    }
    const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    const RELATION: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    const PACKAGE: &str = "http://schemas.openxmlformats.org/package/2006/relationships";
    let mut file = |name: &str, text: String| files.push((name.to_owned(), text));
    file(
        "xl/workbook.xml",
        format!("<workbook xmlns=\"{MAIN}\" xmlns:r=\"{RELATION}\"><sheets>{list}</sheets></workbook>"),
    );
    write!(
        relations,
        "<Relationship Id=\"rIdA\" Type=\"{RELATION}/styles\" Target=\"styles.xml\"/>\
         <Relationship Id=\"rIdB\" Type=\"{RELATION}/sharedStrings\" Target=\"sharedStrings.xml\"/>"
    )
    .unwrap();
    file(
        "xl/_rels/workbook.xml.rels",
        format!("<Relationships xmlns=\"{PACKAGE}\">{relations}</Relationships>"),
    );
    file(
        "_rels/.rels",
        format!(
            "<Relationships xmlns=\"{PACKAGE}\"><Relationship Id=\"rId1\" Type=\"{RELATION}/officeDocument\" \
             Target=\"xl/workbook.xml\"/></Relationships>"
        ),
    );
    file("xl/styles.xml", STYLES.to_owned());
    file(
        "xl/sharedStrings.xml",
        format!("<sst xmlns=\"{MAIN}\">{strings}</sst>"),
    );
    // After the cells of the sheets.
    files.extend_from_slice(others);
    zip(&files)
}

/// Returns an archive of files that are not compressed.
fn zip(files: &[(String, String)]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, text) in files {
        let offset = archive.len() as u32;
        let mut fields = Vec::new();
        // Version, flags, method and time.
        fields.extend([20, 0, 0, 0, 0, 0, 0, 0, 33, 0]);
        fields.extend(crc32fast::hash(text.as_bytes()).to_le_bytes());
        fields.extend((text.len() as u32).to_le_bytes());
        fields.extend((text.len() as u32).to_le_bytes());
        fields.extend((name.len() as u16).to_le_bytes());
        archive.extend(b"PK\x03\x04");
        archive.extend(&fields);
        archive.extend([0; 2]);
        archive.extend(name.as_bytes());
        archive.extend(text.as_bytes());
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&fields);
        directory.extend([0; 12]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (count, at, length) = (files.len() as u16, archive.len() as u32, directory.len() as u32);
    archive.extend(directory);
    archive.extend(b"PK\x05\x06\x00\x00\x00\x00");
    archive.extend(count.to_le_bytes());
    archive.extend(count.to_le_bytes());
    archive.extend(length.to_le_bytes());
    archive.extend(at.to_le_bytes());
    archive.extend([0; 2]);
    archive
}

#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
struct Flight {
    origin: String,
    delay: Option<i32>,
    note: String,
}

#[item_writer("FlightWriter")]
type FlightWriter = batch_items::DelimitedItemWriter<Flight>;
pass!(PassFlight: Flight);

#[item_reader("SheetFlightReader")]
type SheetFlightReader = XlsxItemReader<Flight>;

fn flights(content: impl AsRef<[u8]>, properties: &str, children: &str) -> Stage {
    let stage = Stage::with_children(
        "reader=\"SheetFlightReader\" processor=\"PassFlight\" writer=\"FlightWriter\" commit-interval=\"2\"",
        &format!("resource=${{dir}}/in.xlsx\noutput=${{dir}}/out\n{properties}"),
        children,
    );
    stage.write("in.xlsx", content);
    stage
}

const SKIP: &str =
    r#"<skippable-exception-classes><include class="RecordError"/></skippable-exception-classes>"#;

/// Returns the first line of the message of a job that fails at this content.
fn fails(content: impl AsRef<[u8]>, properties: &str, children: &str) -> String {
    let message = flights(content, properties, children).fails();
    message.lines().next().unwrap().to_owned()
}

const HEADER: Row<'_> = (1, &[Text("origin"), Text("delay"), Text("note")]);

#[test]
fn rows_are_read_by_the_names_of_the_header() {
    let copy = |content: Vec<u8>, properties: &str| {
        let stage = flights(content, properties, "");
        stage.completes();
        stage.read("out")
    };
    let expected = "origin,delay,note\nMUC,5,x\nFRA,,\n";
    let rows: &[Row<'_>] = &[
        HEADER,
        (2, &[Text("MUC"), Number(5.0), Text("x")]),
        (3, &[Text("FRA"), Empty]),
    ];
    assert_eq!(copy(workbook(&[("S", rows)]), ""), expected);
    // Other columns, empty rows and columns, and what is above the table.
    let rows: &[Row<'_>] = &[
        (2, &[Text("Flights of"), Cell::Styled(45351.0, 1)]),
        (
            5,
            &[
                Empty,
                Text(" note "),
                Text("origin"),
                Empty,
                Text("unused"),
                Text("delay"),
            ],
        ),
        (
            6,
            &[
                Empty,
                Text("x"),
                Text("MUC"),
                Text("no name"),
                Text("-"),
                Cell::Formula("2+3", 5.0),
            ],
        ),
        (7, &[Empty, Text(""), Empty]),
        (20, &[Empty, Empty, Text("FRA")]),
    ];
    let content = workbook(&[("Other", &[]), ("My Flights", rows), ("3", &[HEADER])]);
    assert_eq!(
        copy(
            content.clone(),
            "sheet=My Flights\nskip.rows=2\nstrict@reader=false"
        ),
        expected
    );
    assert_eq!(
        copy(content.clone(), "sheet=2\nskip.rows=4\nstrict@reader=false"),
        expected
    );
    assert_eq!(copy(content.clone(), "sheet=3"), "");
    assert_eq!(copy(content, ""), "");
    let rows: &[Row<'_>] = &[
        (1, &[Text("MUC"), Number(5.0), Text("x"), Text("more")]),
        (2, &[Text("FRA")]),
    ];
    assert_eq!(copy(workbook(&[("S", rows)]), "header@reader=false"), expected);
    let rows: &[Row<'_>] = &[
        HEADER,
        (2, &[Text(" MUC"), Text(" 5 "), Text("x ")]),
        (3, &[Text("FRA")]),
    ];
    assert_eq!(copy(workbook(&[("S", rows)]), "trim=true"), expected);
}

/// All types of cells as text, and as Rust types.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Typed {
    text: String,
    int: i64,
    float: f64,
    flag: bool,
    day: String,
    at: String,
    time: String,
    lasting: String,
    any: String,
}

#[item_reader("TypedSheetReader")]
type TypedSheetReader = XlsxItemReader<Typed>;
#[item_writer("TypedLines")]
type TypedLines = batch_items::JsonLinesItemWriter<Typed>;
pass!(PassTyped: Typed);

#[test]
fn cells_have_the_types_of_the_fields() {
    let names = [
        "text", "int", "float", "flag", "day", "at", "time", "lasting", "any",
    ]
    .map(Text);
    let values = [
        Text("007"),
        Number(-3.0),
        Number(0.1),
        Cell::Bool(true),
        Cell::Styled(45351.0, 1),
        Cell::Styled(45351.520833333336, 2),
        Cell::Styled(0.75, 3),
        Cell::Styled(1.5, 4),
        Cell::Error("#N/A"),
    ];
    let stage = Stage::new(
        "reader=\"TypedSheetReader\" processor=\"PassTyped\" writer=\"TypedLines\"",
        "resource=${dir}/in.xlsx\noutput=${dir}/out",
    );
    stage.write("in.xlsx", workbook(&[("S", &[(1, &names), (2, &values)])]));
    stage.completes();
    assert_eq!(
        stage.read("out"),
        "{\"text\":\"007\",\"int\":-3,\"float\":0.1,\"flag\":true,\"day\":\"2024-02-29\",\"at\":\"2024-02-29T12:30:00\",\
         \"time\":\"18:00:00\",\"lasting\":\"PT36H0M0S\",\"any\":\"#N/A\"}\n"
    );
}

/// A row with its place.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct PlacedCell {
    id: u64,
    file: String,
    line: u64,
    record: u64,
}

#[item_reader("PlacedSheetReader")]
type PlacedSheetReader = XlsxItemReader<PlacedCell>;
#[item_writer("PlacedCells")]
type PlacedCells = batch_items::DelimitedItemWriter<PlacedCell>;
pass!(PassPlacedCell: PlacedCell);

fn placed(commit_interval: u32) -> Stage {
    let stage = Stage::new(
        &format!(
            "reader=\"PlacedSheetReader\" processor=\"PassPlacedCell\" writer=\"PlacedCells\" commit-interval=\"{commit_interval}\""
        ),
        "resource=${dir}/in-*\noutput=${dir}/out\nfile.field=file\nline.field=line\nrecord.field=record",
    );
    let [a, b, c, d] = [1.0, 2.0, 3.0, 4.0].map(|id| [Number(id)]);
    let rows: &[Row<'_>] = &[
        (3, &[Text("id")]),
        (4, &a),
        (7, &b),
        (8, &c),
        (9, &[Empty]),
        (10, &d),
    ];
    stage.write("in-0", workbook(&[("S", rows)]));
    stage.write("in-1", workbook(&[("S", &[(1, &[Text("id")])])]));
    let [a, b, c] = [5.0, 6.0, 7.0].map(|id| [Number(id)]);
    let rows: &[Row<'_>] = &[(1, &[Text("id")]), (2, &a), (3, &b), (4, &c)];
    stage.write("in-2", workbook(&[("S", rows)]));
    stage
}

/// Whichever item a job fails at, the restart continues after the last committed one, with the same places.
#[test]
fn a_restart_continues_after_the_last_committed_row() {
    let expected = "id,file,line,record\n1,in-0,4,1\n2,in-0,7,2\n3,in-0,8,3\n4,in-0,10,4\n5,in-2,2,1\n6,in-2,3,2\n7,in-2,4,3\n";
    check_restarts(placed, expected);
}

#[test]
fn a_bad_row_is_named_and_can_be_skipped() {
    let rows: &[Row<'_>] = &[
        (3, &[Empty, Text("origin"), Text("delay"), Text("note")]),
        (4, &[Empty, Text("MUC"), Number(5.0), Text("x")]),
        (7, &[Empty, Text("BER"), Text("late"), Text("x")]),
        (8, &[Empty, Text("HAM"), Number(1.5), Text("x")]),
        (9, &[Empty, Text("CGN"), Cell::Error("#DIV/0!"), Text("x")]),
        (10, &[Empty, Text("FRA"), Number(1.0), Text("y")]),
    ];
    let content = workbook(&[("My Flights", rows)]);
    assert_eq!(
        fails(&content, "", ""),
        "in.xlsx:7: cell C7 of sheet `My Flights`: field `delay` (number 3): invalid value \"late\": expected i32"
    );
    let stage = flights(&content, "", SKIP);
    assert_eq!(stage.completes().skips, 3);
    assert_eq!(stage.read("out"), "origin,delay,note\nMUC,5,x\nFRA,1,y\n");
    let content = workbook(&[("S", &[(1, &[Text("MUC"), Number(0.5), Text("x")])])]);
    assert_eq!(
        fails(&content, "header@reader=false", ""),
        "in.xlsx:1: cell B1 of sheet `S`: field 2: invalid value \"0.5\": expected i32"
    );
}

fn record_stage(properties: &str) -> Stage {
    Stage::new(
        "reader=\"xlsxRecordReader\" writer=\"recordJsonlWriter\"",
        &format!("resource=${{dir}}/in.xlsx\noutput=${{dir}}/out\n{properties}"),
    )
}

/// Returns the rows of a workbook as JSON Lines, or the message of the job.
fn records(rows: &[Row<'_>], properties: &str) -> Result<String, String> {
    let stage = record_stage(properties);
    stage.write("in.xlsx", workbook(&[("S", rows)]));
    let ended = stage.start(());
    match ended.status {
        BatchStatus::Completed => Ok(stage.read("out")),
        _ => Err(ended.message.lines().next().unwrap().to_owned()),
    }
}

/// The first row of a workbook without a header would be lost, also after a restart.
///
/// Spec: INPUT-25
#[test]
fn a_header_that_may_be_a_record_fails_the_step() {
    let (header, row) = (&[Text("id"), Text("v")], &[Text("2"), Text("y")]);
    let stage = |properties: &str| {
        let properties =
            format!("resource@reader=${{dir}}/in-*.xlsx\noutput@writer=${{dir}}/out.txt\n{properties}");
        let chunk = "reader=\"xlsxRecordReader\" writer=\"recordJsonlWriter\" commit-interval=\"1\"";
        let stage = Stage::new(chunk, &properties);
        let with_header = workbook(&[("S", &[(1, header), (2, row), (3, row)])]);
        stage.write("in-0.xlsx", &with_header);
        stage.write("in-1.xlsx", &with_header);
        stage.write("in-2.xlsx", workbook(&[("S", &[(1, row), (2, row)])]));
        stage
    };
    let strict = stage("");
    let mut ended = strict.start([("fail.at", "4")]);
    for _ in 0..2 {
        ended = strict.restart(&ended, [("fail.at", "0")]);
        let expected = "cannot read `in-2.xlsx`: none of its columns `2`, `y` is one of `in-0.xlsx`, which has `id`, `v`; ";
        assert!(ended.message.starts_with(expected), "{}", ended.message);
    }
    stage("strict@reader=false").completes();
}

/// The library that reads cells gives floats, whose digits may be others than those in the workbook.
///
/// Spec: INPUT-20
#[test]
fn a_number_that_a_float_does_not_hold_is_rejected() {
    for digits in [
        "9007199254740993",
        "-9007199254740993",
        "10000000000000001",
        "12345678901234567890",
        "9.007199254740993E15",
        "1e400",
        "1e-400",
        "99999999999999.99",
        "999999999999999.97",
        "-562949953421312.06",
    ] {
        let rows: &[Row<'_>] = &[(1, &[Text("id")]), (2, &[Cell::Digits(digits)])];
        let expected = "in.xlsx:2: cell A2 of sheet `S`: a number of a workbook is a float, which does not hold this one; store it as \
                        text";
        assert_eq!(records(rows, ""), Err(expected.to_owned()), "{digits}");
    }
    for (digits, expected) in [
        ("9007199254740991", "9007199254740991"),
        ("9007199254740992", "9007199254740992"),
        ("12345678901234567000", "12345678901234567000"),
        ("1152921504606846976", "1152921504606846976"),
        ("6.0221407599999999E+23", "602214076000000000000000"),
        ("0.10000000000000001", "0.1"),
        ("0.30000000000000004", "0.30000000000000004"),
        ("9.999999999999999E+22", "100000000000000000000000"),
        ("99999999999999.984", "99999999999999.98"),
        ("007", "7"),
    ] {
        // A text may have the digits that a number may not.
        let rows: &[Row<'_>] = &[
            (1, &[Text("id"), Text("text")]),
            (2, &[Cell::Digits(digits), Text("9007199254740993")]),
        ];
        let expected = format!("{{\"id\":\"{expected}\",\"text\":\"9007199254740993\"}}\n");
        assert_eq!(records(rows, ""), Ok(expected));
    }
    // Values of other parts of the archive.
    let rows: &[Row<'_>] = &[(1, &[Text("id")]), (2, &[Cell::Digits("5")])];
    let chart = "<c:chart><c:pt><c:v>R&amp;D</c:v></c:pt></c:chart><rv><v>9007199254740993</v></rv>";
    let stage = record_stage("");
    let other = [("xl/charts/chart1.xml".to_owned(), chart.to_owned())];
    stage.write("in.xlsx", workbook_with(&[("S", rows)], &other));
    stage.completes();
    // The same float in another cell, and in a column that is not read.
    let exact: &[Row<'_>] = &[
        (1, &[Text("id")]),
        (
            2,
            &[
                Cell::Digits("10000000000000000"),
                Cell::Digits("9007199254740993"),
            ],
        ),
        (3, &[Cell::Digits("1e16")]),
    ];
    let other: &[Row<'_>] = &[(1, &[Empty]), (2, &[Empty, Cell::Digits("10000000000000001")])];
    let stage = record_stage("strict@reader=false");
    stage.write("in.xlsx", workbook(&[("S", exact), ("T", other)]));
    stage.completes();
    assert_eq!(
        stage.read("out"),
        "{\"id\":\"10000000000000000\"}\n{\"id\":\"10000000000000000\"}\n"
    );
}

/// Spec: INPUT-20
#[test]
fn a_value_that_is_not_plain_text_fails_the_step() {
    for value in ["<![CDATA[12]]>", "1<!-- 2 -->3", "12&#57;3", "1<?x?>"] {
        let rows: &[Row<'_>] = &[(1, &[Text("id")]), (2, &[Cell::Digits(value)])];
        let message = "cannot read `in.xlsx`: the value of a cell A2 is not plain text; open the workbook in a program for sheets, and \
                       save it";
        assert_eq!(records(rows, ""), Err(message.to_owned()), "{value}");
    }
}

/// Spec: INPUT-20
#[test]
fn a_value_without_a_column_is_rejected() {
    let rows: &[Row<'_>] = &[
        (1, &[Text("id"), Empty, Text("note")]),
        (2, &[Number(1.0), Text(" "), Text("x")]),
        (
            3,
            &[Number(2.0), Text("between"), Text("y"), Empty, Text("after")],
        ),
    ];
    let message = "in.xlsx:3: cell B3 of sheet `S`: the column has no name in the header, but the value \"between\"; name it, or set \
                   `strict` to `false`";
    assert_eq!(records(rows, ""), Err(message.to_owned()));
    let lines = "{\"id\":\"1\",\"note\":\"x\",\"raw\":\"1\\tx\"}\n\
                 {\"id\":\"2\",\"note\":\"y\",\"raw\":\"2\\tbetween\\ty\\tafter\"}\n";
    assert_eq!(
        records(rows, "strict@reader=false\nraw.field=raw"),
        Ok(lines.to_owned())
    );
}

/// A property of text files would have no effect.
///
/// Spec: INPUT-26
#[test]
fn a_workbook_has_no_encoding() {
    let rows: &[Row<'_>] = &[(1, &[Text("id")]), (2, &[Text("x")])];
    for property in ["encoding=utf-16", "skip.lines=1"] {
        let name = property.split('=').next().unwrap();
        let message =
            format!("cannot read `in.xlsx`: a file of this format is no text; remove the property `{name}`");
        assert_eq!(records(rows, property), Err(message));
    }
}

/// Spec: INPUT-20
#[test]
fn two_cells_of_one_name_fail_the_step() {
    let rows: &[Row<'_>] = &[(1, &[Text("id")]), (2, &[Text("x"), Cell::At("A2")])];
    let message = "cannot read `in.xlsx`: sheet `S` has two cells A2";
    assert_eq!(records(rows, ""), Err(message.to_owned()));
}

/// A wrong file is not a wrong row: it is not skipped.
/// A program that writes workbooks does not compute formulas. Their cells are not taken for empty ones, nor their rows for none.
///
/// Spec: INPUT-08
#[test]
fn a_formula_without_a_result_fails_the_step() {
    let file = |cells: &[Cell]| {
        workbook(&[(
            "Data",
            &[HEADER, (2, &[Text("MUC"), Number(5.0), Text("x")]), (3, cells)],
        )])
    };
    for (cells, cell) in [
        (&[Text("FRA"), Cell::NoResult("A1"), Text("y")][..], "B3"),
        (
            &[Cell::NoResult("A1"), Cell::NoResult("A2"), Cell::NoResult("A3")],
            "A3",
        ),
    ] {
        let message = fails(file(cells), "", SKIP);
        let expected = format!(
            "cannot read `in.xlsx`: cell {cell} of sheet `Data` has a formula without a stored result; open the workbook in a program \
             that computes it, and save it, or set `if.no.result` to `empty`"
        );
        assert_eq!(message, expected);
    }
    let stage = flights(
        file(&[Text("FRA"), Cell::NoResult("A1"), Text("y")]),
        "if.no.result=empty",
        "",
    );
    stage.completes();
    assert_eq!(stage.read("out"), "origin,delay,note\nMUC,5,x\nFRA,,y\n");
}

/// Spec: INPUT-06
#[test]
fn a_workbook_has_limits() {
    let file = workbook(&[("Data", &[HEADER, (2, &[Text("MUC"), Number(5.0), Text("x")])])]);
    let message = fails(&file, "max.unpacked.size=1000", "");
    assert!(
        message.starts_with(
            "cannot read `in.xlsx`: it unpacks to more than 1000 bytes, the `max.unpacked.size`"
        ),
        "{message}"
    );
    flights(&file, "max.unpacked.size=10000", "").completes();
    for (name, expected) in [
        (
            "A1048577",
            "has a cell in row 1048577 and column 1, but a sheet has 1048576 rows and 16384 columns",
        ),
        ("XFE2", "has a cell in row 2 and column 16385"),
        ("ZZZZZZZ4294967295", ""),
    ] {
        let message = fails(workbook(&[("Data", &[HEADER, (2, &[Cell::At(name)])])]), "", "");
        assert!(
            message.starts_with("cannot read `in.xlsx`: ") && message.contains(expected),
            "{name}: {message}"
        );
    }
}

/// Stops its job before the step reads.
#[derive(BatchArtifact)]
struct StopsFirst {
    #[batch_context]
    job: JobContext,
    #[batch_property(name = "stop", value = "true")]
    stop: bool,
}

#[step_listener("StopsFirst")]
impl StopsFirst {
    #[before_step]
    fn before(&mut self) -> Result<(), BatchError> {
        if self.stop {
            let operator = self.job.job_operator().ok_or("no operator")?;
            operator.stop(self.job.execution_id())?;
        }
        Ok(())
    }
}

/// Spec: INPUT-06
#[test]
fn a_stop_interrupts_the_load() {
    let listeners = r#"<listeners><listener ref="StopsFirst"/></listeners>"#;
    let stage = Stage::with_listeners(
        listeners,
        "reader=\"SheetFlightReader\" processor=\"PassFlight\" writer=\"FlightWriter\"",
        "resource=${dir}/in.xlsx\noutput=${dir}/out\nmax.unpacked.size=1",
        "",
    );
    stage.write(
        "in.xlsx",
        workbook(&[("Data", &[HEADER, (2, &[Text("MUC"), Number(5.0), Text("x")])])]),
    );
    let ended = stage.start(());
    // A load that is not interrupted fails at the limit.
    assert_eq!(ended.status, BatchStatus::Stopped, "{}", ended.message);
    let again = stage.restart(&ended, [("stop", "false"), ("max.unpacked.size", "100000")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert_eq!(stage.read("out"), "origin,delay,note\nMUC,5,x\n");
}

#[test]
fn a_wrong_file_fails_the_step() {
    let row: Row<'_> = (2, &[Text("MUC"), Number(5.0), Text("x")]);
    let content = workbook(&[("Orders", &[HEADER, row]), ("Info", &[])]);
    let fails = |content: &[u8], properties: &str| fails(content, properties, SKIP);
    assert_eq!(
        fails(&content, "sheet=orders"),
        "cannot read `in.xlsx`: it has no sheet `orders`, but `Orders`, `Info`; did you mean `Orders`?"
    );
    assert_eq!(
        fails(&content, "sheet=3"),
        "cannot read `in.xlsx`: it has no sheet `3`, but `Orders`, `Info`"
    );
    assert_eq!(
        fails(
            &workbook(&[("S", &[(1, &[Text("origin"), Text("Delay"), Text("notes")]), row])]),
            ""
        ),
        "cannot read `in.xlsx`: sheet `S` has no column `delay`, but `origin`, `Delay`, `notes`; did you mean `Delay`?"
    );
    // A row without a header.
    assert_eq!(
        fails(
            &workbook(&[("S", &[(1, &[Text("MUC"), Number(5.0), Text("x")])])]),
            ""
        ),
        "cannot read `in.xlsx`: sheet `S` has no column `origin`, but `MUC`, `5`, `x`"
    );
    assert_eq!(
        fails(
            &workbook(&[("S", &[(1, &[Text("origin"), Text("origin ")]), row])]),
            ""
        ),
        "cannot read `in.xlsx`: sheet `S`: its header has two columns `origin`"
    );
    assert_eq!(
        fails(&content, "line.field=note"),
        "cannot read `in.xlsx`: sheet `Orders`: it has a column `note` already; choose another name for the added field"
    );
    let no_archive = "cannot read `in.xlsx`: it is not a valid XLSX file: Zip error: invalid Zip archive: Could not find EOCD";
    assert_eq!(fails(b"origin,delay\n", ""), no_archive);
    assert_eq!(fails(&content[..content.len() / 2], ""), no_archive);
    assert_eq!(
        fails(&zip(&[("a.txt".to_owned(), "a".to_owned())]), ""),
        "cannot read `in.xlsx`: it is not a valid XLSX file: File not found '_rels/.rels'"
    );
    assert_eq!(
        fails(&content, "compression@reader=gzip"),
        "cannot read `in.xlsx`: a file of this format cannot be compressed as a whole; decompress it first"
    );
}
