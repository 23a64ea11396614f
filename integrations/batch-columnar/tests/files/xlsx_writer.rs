//! Excel workbooks that are written.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};

use batch_columnar::{XlsxItemReader, XlsxItemWriter};
use batch_items::{CompositeItemWriter, JsonLinesItemReader, JsonLinesItemWriter, LineItemReader, Record};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde::{Deserialize, Serialize};
use zip::ZipArchive;

use super::stage::{Ended, Stage, pass};

/// A row of a sheet.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
struct Sale {
    id: u64,
    half: Option<f64>,
    name: String,
}

#[item_reader("SaleNumbers")]
type SaleNumbers = LineItemReader<u64>;
#[item_writer("SaleSheet")]
type SaleSheet = XlsxItemWriter<Sale>;
#[item_writer("SaleTwice")]
type SaleTwice = CompositeItemWriter<Sale, JsonLinesItemWriter<Sale>, XlsxItemWriter<Sale>>;
#[item_reader("SaleRows")]
type SaleRows = XlsxItemReader<Sale>;
#[item_writer("SaleLines")]
type SaleLines = JsonLinesItemWriter<Sale>;
#[item_reader("JsonRecords")]
type JsonRecords = JsonLinesItemReader<Record>;
#[item_writer("RecordSheet")]
type RecordSheet = XlsxItemWriter<Record>;
#[item_reader("SheetRecords")]
type SheetRecords = XlsxItemReader<Record>;
#[item_writer("RecordLines")]
type RecordLines = JsonLinesItemWriter<Record>;

pass!(PassSale: Sale);
pass!(PassRecord: Record);

#[derive(BatchArtifact)]
struct ToSale {
    #[batch_property(name = "fail.at", value = "0")]
    fail_at: u64,
}

#[item_processor("ToSale")]
impl ToSale {
    #[process_item]
    fn process(&mut self, id: u64) -> Result<Option<Sale>, BatchError> {
        if id == self.fail_at {
            return Err(BatchError::msg("stopped by the test"));
        }
        Ok(Some(Sale {
            id,
            half: (id % 2 == 1).then_some(id as f64 / 2.0),
            name: format!("=\"{id}\""),
        }))
    }
}

/// A job that writes the numbers from 1 to `count`.
fn writing(count: u64, properties: &str) -> Stage {
    let stage = Stage::new(
        "reader=\"SaleNumbers\" processor=\"ToSale\" writer=\"SaleSheet\" commit-interval=\"3\" chunk-size=\"2\"",
        &format!("resource=${{dir}}/in\noutput@writer=${{dir}}/out.xlsx\n{properties}"),
    );
    let numbers: String = (1..=count).map(|number| format!("{number}\n")).collect();
    stage.write("in", numbers);
    stage
}

/// Returns the files of the output, with their content.
fn files(stage: &Stage) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(stage.path()).unwrap();
    let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name.starts_with("out"))
        .map(|name| (name.clone(), fs::read(stage.path().join(name)).unwrap()))
        .collect()
}

/// Returns a part of a workbook.
fn part(stage: &Stage, file: &str, name: &str) -> String {
    let mut archive = ZipArchive::new(File::open(stage.path().join(file)).unwrap()).unwrap();
    let mut text = String::new();
    let mut part = archive.by_name(name).unwrap();
    part.read_to_string(&mut text).unwrap();
    text
}

/// Returns the rows of the sheet of a workbook.
fn sheet(stage: &Stage, file: &str) -> String {
    let sheet = part(stage, file, "xl/worksheets/sheet1.xml");
    let (_, rows) = sheet.split_once("<sheetData>").unwrap();
    rows.strip_suffix("</sheetData></worksheet>").unwrap().to_owned()
}

/// Returns the ids of a workbook, as our reader reads them.
fn ids(stage: &Stage, file: &str) -> Vec<u64> {
    let back = Stage::new(
        "reader=\"SaleRows\" processor=\"PassSale\" writer=\"SaleLines\"",
        &format!(
            "resource={}\noutput=${{dir}}/out",
            stage.path().join(file).display()
        ),
    );
    back.completes();
    let id = |line: &str| serde_json::from_str::<Sale>(line).unwrap();
    let sales: Vec<_> = back.read("out").lines().map(id).collect();
    assert!(sales.iter().all(|sale| sale.name == format!("=\"{}\"", sale.id)));
    sales.iter().map(|sale| sale.id).collect()
}

fn first_line(ended: &Ended) -> &str {
    assert_eq!(ended.status, BatchStatus::Failed);
    ended.message.lines().next().unwrap()
}

/// Whichever item a job fails at, the restart ends with the files of an undisturbed run. Before, there is no final file.
///
/// Spec: LOSS-01, ITEM-VALUE-13
#[test]
fn a_restart_ends_with_the_same_workbook() {
    for properties in [
        "",
        "header@writer=false\nsync=never",
        "max.items.per.file=4",
        "columns=name text, id number(0.00)\nsheet=Sales",
    ] {
        let undisturbed = writing(10, properties);
        undisturbed.completes();
        let expected = files(&undisturbed);
        for fail_at in 1..=10 {
            let stage = writing(10, properties);
            let failed = stage.start([("fail.at", fail_at.to_string())]);
            assert_eq!(failed.status, BatchStatus::Failed);
            assert!(files(&stage).keys().all(|name| name.ends_with(".part")));
            // What a process that dies has written after the last checkpoint.
            if let Some(name) = files(&stage).keys().next_back() {
                let mut part = OpenOptions::new()
                    .append(true)
                    .open(stage.path().join(name))
                    .unwrap();
                part.write_all(b"PK\x01\x02 rest").unwrap();
            }
            let again = stage.restart(&failed, [("fail.at", "0")]);
            assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
            assert!(files(&stage) == expected, "{properties} {fail_at}");
        }
    }
    let stage = writing(10, "max.items.per.file=4");
    stage.completes();
    let names = ["out-0001.xlsx", "out-0002.xlsx", "out-0003.xlsx"];
    let found = names.map(|name| ids(&stage, name));
    assert_eq!(found, [vec![1, 2, 3, 4], vec![5, 6, 7, 8], vec![9, 10]]);
}

/// The process may die after the file has got its final name, and before the step is recorded as completed.
///
/// Spec: LOSS-01
#[test]
fn a_workbook_that_was_finished_is_finished_again() {
    let undisturbed = writing(6, "");
    undisturbed.completes();
    for if_exists in ["overwrite", "fail"] {
        let stage = writing(7, &format!("if.exists={if_exists}"));
        let failed = stage.start([("fail.at", "7")]);
        stage.write("in", "1\n2\n3\n4\n5\n6\n");
        fs::remove_file(stage.path().join("out.xlsx.part")).unwrap();
        fs::copy(undisturbed.path().join("out.xlsx"), stage.path().join("out.xlsx")).unwrap();
        let again = stage.restart(&failed, [("fail.at", "0"), ("if.changed", "resume")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        assert!(files(&stage) == files(&undisturbed));
    }
}

/// The process may die between the final names of several files, each of which is complete.
///
/// Spec: LOSS-01
#[test]
fn workbooks_of_which_some_were_published_are_published_again() {
    let properties = "max.items.per.file=2";
    let undisturbed = writing(6, properties);
    undisturbed.completes();
    for published in 0..=3 {
        let stage = writing(7, properties);
        let failed = stage.start([("fail.at", "7")]);
        stage.write("in", "1\n2\n3\n4\n5\n6\n");
        for (number, (name, content)) in (1..).zip(files(&undisturbed)) {
            fs::remove_file(stage.path().join(format!("{name}.part"))).unwrap();
            let suffix = if number <= published { "" } else { ".part" };
            stage.write(&format!("{name}{suffix}"), content);
        }
        let again = stage.restart(&failed, [("fail.at", "0"), ("if.changed", "resume")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        assert!(files(&stage) == files(&undisturbed), "{published}");
    }
}

/// Spec: ITEM-VALUE-13, ITEM-VALUE-01
#[test]
fn a_workbook_has_cells_of_the_types_of_its_columns() {
    let stage = writing(2, "sheet=A \"B\" & C");
    stage.completes();
    let name = |cell: &str, text: &str| {
        format!("<c r=\"{cell}\" t=\"inlineStr\"><is><t xml:space=\"preserve\">{text}</t></is></c>")
    };
    assert_eq!(
        sheet(&stage, "out.xlsx"),
        format!(
            "<row r=\"1\">{}{}{}</row><row r=\"2\"><c r=\"A2\"><v>1</v></c><c r=\"B2\"><v>0.5</v></c>{}</row>\
             <row r=\"3\"><c r=\"A3\"><v>2</v></c>{}</row>",
            name("A1", "id"),
            name("B1", "half"),
            name("C1", "name"),
            name("C2", "=&quot;1&quot;"),
            name("C3", "=&quot;2&quot;"),
        )
    );
    assert!(part(&stage, "out.xlsx", "xl/workbook.xml").contains("<sheet name=\"A &quot;B&quot; &amp; C\""));

    let stage = writing(
        1,
        "columns=half? number(0.00 \"€\"), id text\nheader@writer=false",
    );
    stage.completes();
    assert_eq!(
        sheet(&stage, "out.xlsx"),
        "<row r=\"1\"><c r=\"A1\" s=\"1\"><v>0.5</v></c><c r=\"B1\" s=\"2\" t=\"inlineStr\"><is><t xml:space=\"preserve\">1</t></is></c></row>"
    );
    let styles = part(&stage, "out.xlsx", "xl/styles.xml");
    assert!(styles.contains("formatCode=\"0.00 &quot;€&quot;\""), "{styles}");
}

/// Spec: ITEM-VALUE-13
#[test]
fn a_sheet_without_items_has_a_header_if_its_columns_are_known() {
    for (properties, rows) in [
        ("", 0),
        ("columns=id, name", 1),
        ("columns=id\nheader@writer=false", 0),
    ] {
        let empty = writing(0, properties);
        empty.completes();
        assert_eq!(
            sheet(&empty, "out.xlsx").matches("<row").count(),
            rows,
            "{properties}"
        );
        assert_eq!(ids(&empty, "out.xlsx"), [0; 0]);
    }
    let deleted = writing(0, "if.empty=delete");
    deleted.completes();
    assert_eq!(files(&deleted), BTreeMap::new());
}

/// Spec: ITEM-VALUE-13, ITEM-SETTING-01
#[test]
fn what_cannot_be_written_is_an_error() {
    let fails = |properties: &str| first_line(&writing(7, properties).start(())).to_owned();
    assert_eq!(
        fails("if.exists=append"),
        "cannot write `out.xlsx`: this format cannot be appended to; set `if.exists` to `overwrite`"
    );
    assert_eq!(
        fails("compression@writer=gzip"),
        "cannot write `out.xlsx`: a workbook is compressed already; set `compression` to `none`"
    );
    assert_eq!(
        fails("columns=id, halff number"),
        "cannot write `out.xlsx`: the items have no field `halff`; did you mean `half`?"
    );
    assert_eq!(
        fails("columns=id date"),
        "cannot write item 1 of the file to `out.xlsx`: column `id`: a column of type `date` cannot hold 1"
    );
    assert_eq!(
        fails("columns=id number, name number"),
        "cannot write item 1 of the file to `out.xlsx`: column `name`: \"=\\\"1\\\"\" is not a number that a float of 64 bits, which is the number \
         of Excel, holds exactly; remove the type from the column, or set it to `text`"
    );
    assert_eq!(
        fails("columns=nothing?, half"),
        "cannot write item 2 of the file to `out.xlsx`: none of its fields has a value, and readers pass over a row without values; filter such \
         items"
    );
    for (property, expected) in [
        ("sheet=a/b", "the name of a sheet cannot contain '/'"),
        (
            "columns=id,,name",
            "a column has no name; expected a name, and perhaps a type: `text`",
        ),
        (
            "columns=id date(0)",
            "column `id`: the format `0`: it does not show the value",
        ),
    ] {
        let error = writing(1, property).rejected();
        assert!(error.contains(expected), "{property}: {error}");
    }
}

/// Spec: LOSS-12
#[test]
fn an_item_that_cannot_be_written_is_skipped() {
    let skips =
        r#"<skippable-exception-classes><include class="EncodeError"/></skippable-exception-classes>"#;
    let several: &[_] = &["out-0001.xlsx", "out-0002.xlsx", "out-0003.xlsx"];
    for (writer, chunk, more, files) in [
        (
            "SaleSheet",
            "commit-interval=\"9\" chunk-size=\"2\"",
            "output=${dir}/out.xlsx",
            &["out.xlsx"][..],
        ),
        (
            "SaleSheet",
            "commit-interval=\"3\"",
            "output=${dir}/out.xlsx",
            &["out.xlsx"],
        ),
        (
            "SaleSheet",
            "commit-interval=\"20\"",
            "output=${dir}/out.xlsx\nmax.items.per.file=4",
            several,
        ),
        // The rows of a chunk cannot be removed: the interval is rolled back, and both files are truncated.
        (
            "SaleTwice",
            "commit-interval=\"9\" chunk-size=\"2\"",
            "1.output=${dir}/out.jsonl\n2.output=${dir}/out.xlsx",
            &["out.xlsx"],
        ),
    ] {
        let stage = Stage::with_children(
            &format!("reader=\"SaleNumbers\" processor=\"ToSale\" writer=\"{writer}\" {chunk}"),
            &format!("resource=${{dir}}/in\n{more}"),
            skips,
        );
        let bad = [(1 << 53) + 1, u64::MAX].map(|number: u64| number.to_string());
        stage.write(
            "in",
            format!("1\n2\n3\n4\n{}\n5\n{}\n6\n7\n8\n9\n10\n", bad[0], bad[1]),
        );
        let ended = stage.completes();
        assert_eq!((ended.writes, ended.skips), (10, 2));
        let found: Vec<_> = files.iter().flat_map(|name| ids(&stage, name)).collect();
        assert_eq!(found, (1..=10).collect::<Vec<_>>(), "{writer} {chunk}");
    }
}

/// The directory of the archive, which is written at the end, and all rows depend on the settings.
///
/// Spec: LOSS-01
#[test]
fn other_settings_after_a_restart_are_an_error() {
    let stage = writing(7, "columns=#{jobParameters['columns']}");
    let failed = stage.start([("fail.at", "7"), ("columns", "id number(0)")]);
    assert_eq!(failed.status, BatchStatus::Failed);
    let again = stage.restart(&failed, [("fail.at", "0"), ("columns", "id number(0.00)")]);
    assert!(
        first_line(&again)
            .starts_with("cannot write `out.xlsx`: the properties of the format, such as `columns`, differ"),
        "{}",
        again.message
    );
    let again = stage.restart(&again, [("fail.at", "0"), ("columns", "id number(0)")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
}

/// A record in another order after a restart has its values in the columns of the first one.
///
/// Spec: ITEM-VALUE-01
#[test]
fn records_have_their_columns_after_a_restart() {
    let stage = Stage::new(
        "reader=\"JsonRecords\" processor=\"PassRecord\" writer=\"RecordSheet\" commit-interval=\"1\"",
        "resource=${dir}/in\noutput=${dir}/out.xlsx",
    );
    stage.write(
        "in",
        "{\"b\":\"1\",\"a\":true}\n{\"a\":false,\"b\":\"2\"}\n{\"a\":null,\"b\":\"\"}\n",
    );
    let failed = stage.start([("fail.at", "2")]);
    assert_eq!(failed.status, BatchStatus::Failed);
    stage.write("in", "{\"b\":\"1\",\"a\":true}\n{\"a\":false,\"b\":\"2\"}\n");
    let again = stage.restart(&failed, [("fail.at", "0"), ("if.changed", "resume")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert_eq!(
        read(&stage, "out.xlsx", ""),
        "{\"b\":\"1\",\"a\":\"true\"}\n{\"b\":\"2\",\"a\":\"false\"}\n"
    );
}

/// Spec: ITEM-VALUE-13, ITEM-SETTING-01
#[test]
fn a_sheet_has_a_last_column_and_names_that_are_read() {
    let writes = |line: String| {
        let stage = Stage::new(
            "reader=\"JsonRecords\" processor=\"PassRecord\" writer=\"RecordSheet\"",
            "resource=${dir}/in\noutput=${dir}/out.xlsx",
        );
        stage.write("in", line);
        stage
    };
    let wide = |count: u32| {
        let fields: Vec<_> = (0..count)
            .map(|number| format!("\"f{number}\":{number}"))
            .collect();
        writes(format!("{{{}}}\n", fields.join(",")))
    };
    let widest = wide(16_384);
    widest.completes();
    assert!(sheet(&widest, "out.xlsx").ends_with("<c r=\"XFD2\"><v>16383</v></c></row>"));
    assert_eq!(
        first_line(&wide(16_385).start(())),
        "cannot write `out.xlsx`: the items have 16385 fields, and a sheet has at most 16384 columns; name fewer by `columns`"
    );
    for (name, cause) in [
        (
            " a",
            "column \" a\": readers of sheets remove blanks around the name of a column",
        ),
        ("\\u0001", "column \"\\u{1}\": the text has the character U+0001"),
    ] {
        let ended = writes(format!("{{\"b\":1,\"{name}\":2}}\n")).start(());
        let expected = format!("cannot write `out.xlsx`: {cause}");
        assert!(first_line(&ended).starts_with(&expected), "{}", ended.message);
    }
}

/// Returns the records of a workbook as our reader reads them, in JSON.
fn read(stage: &Stage, file: &str, properties: &str) -> String {
    let back = Stage::new(
        "reader=\"SheetRecords\" processor=\"PassRecord\" writer=\"RecordLines\"",
        &format!(
            "resource={}\noutput=${{dir}}/out\n{properties}",
            stage.path().join(file).display()
        ),
    );
    back.completes();
    back.read("out")
}

/// Spec: ITEM-VALUE-13, ITEM-VALUE-02
#[test]
fn hostile_values_are_read_as_they_were_written() {
    let texts = [
        "=1+1",
        "@SUM(A1)",
        "+1",
        "007",
        "1e5",
        "2024-02-29",
        "TRUE",
        "http://example.com",
        "_x0041_",
        "_x005F_x0041_x000D_",
        " a  \t\r\n\r b\n",
        "<&>\"' ]]>",
        "\u{7f}\u{85}\u{2028}\u{feff}\u{fffd}\u{10ffff}",
        &"😀".repeat(16_383),
    ];
    let lines = texts.map(|text| format!("{{\"text\":{}}}\n", serde_json::to_string(text).unwrap()));
    let stage = Stage::new(
        "reader=\"JsonRecords\" processor=\"PassRecord\" writer=\"RecordSheet\"",
        "resource=${dir}/in\noutput=${dir}/out.xlsx\nmax.record.length=1000000",
    );
    stage.write("in", lines.concat());
    stage.completes();
    assert_eq!(read(&stage, "out.xlsx", ""), lines.concat());

    let stage = Stage::new(
        "reader=\"JsonRecords\" processor=\"PassRecord\" writer=\"RecordSheet\"",
        "resource=${dir}/in\noutput=${dir}/out.xlsx\ncolumns=n, digits text, price number(0.00), day date, at time, seen timestamp, list",
    );
    stage.write(
        "in",
        "{\"n\":-0.5,\"digits\":12345678901234567890.5,\"price\":\"7.10\",\"day\":\"9999-12-31\",\"at\":\"23:59:59.999\",\
         \"seen\":\"2024-02-29T12:30:00.001\",\"list\":[1,\"a\"]}\n",
    );
    stage.completes();
    assert_eq!(
        read(&stage, "out.xlsx", ""),
        "{\"n\":\"-0.5\",\"digits\":\"12345678901234567890.5\",\"price\":\"7.1\",\"day\":\"9999-12-31\",\"at\":\"23:59:59.999\",\
         \"seen\":\"2024-02-29T12:30:00.001\",\"list\":\"[1,\\\"a\\\"]\"}\n"
    );
}

fn sales() -> impl Strategy<Value = Vec<Sale>> {
    let sale = (
        0..=1_u64 << 53,
        proptest::option::of(proptest::num::f64::NORMAL | proptest::num::f64::ZERO),
        "[\\x20-\\x7F\\t\\n\\r\u{e4}\u{20ac}\u{1F600}]{1,12}",
    );
    let sale = sale.prop_map(|(id, half, name)| Sale { id, half, name });
    prop::collection::vec(sale, 0..12)
}

/// Spec: ITEM-VALUE-13
#[test]
fn what_is_written_is_read() {
    let out = Stage::new(
        "reader=\"JsonSales\" processor=\"PassSale\" writer=\"SaleSheet\" commit-interval=\"3\"",
        "resource=${dir}/in\noutput=${dir}/file",
    );
    let file = out.path().join("file").display().to_string();
    let back = Stage::new(
        "reader=\"SaleRows\" processor=\"PassSale\" writer=\"SaleLines\" commit-interval=\"5\"",
        &format!("resource={file}\noutput=${{dir}}/out"),
    );
    let mut runner = TestRunner::new(Config {
        cases: 100,
        failure_persistence: None,
        ..Config::default()
    });
    let checked = runner.run(&sales(), |sales| {
        let lines = sales
            .iter()
            .map(|sale| serde_json::to_string(sale).unwrap() + "\n");
        out.write("in", lines.collect::<String>());
        out.completes();
        back.completes();
        let text = back.read("out");
        let read: Vec<Sale> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        prop_assert_eq!(read, sales);
        Ok(())
    });
    checked.unwrap();
}

#[item_reader("JsonSales")]
type JsonSales = JsonLinesItemReader<Sale>;

/// Rows are compressed before a checkpoint if there are many.
///
/// Spec: LOSS-01
#[test]
fn a_large_chunk_is_written_whole() {
    let stage = Stage::new(
        "reader=\"SaleNumbers\" processor=\"ToSale\" writer=\"SaleSheet\" commit-interval=\"40000\" chunk-size=\"10000\"",
        "resource=${dir}/in\noutput=${dir}/out.xlsx",
    );
    stage.write(
        "in",
        (1..=30_000)
            .map(|number| format!("{number}\n"))
            .collect::<String>(),
    );
    let failed = stage.start([("fail.at", "29999")]);
    assert_eq!(failed.status, BatchStatus::Failed);
    assert_eq!(
        stage.restart(&failed, [("fail.at", "0")]).status,
        BatchStatus::Completed
    );
    assert_eq!(ids(&stage, "out.xlsx"), (1..=30_000).collect::<Vec<_>>());
}
