//! The types of columns in Parquet files.

use std::fs::{self, File};

use batch_columnar::{ParquetItemReader, ParquetItemWriter};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde::{Deserialize, Serialize};

use super::parquet::reading;
use super::stage::{Stage, pass};

/// Everything that a column can be.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
struct Wide {
    small: i8,
    large: u64,
    text: Option<String>,
    list: Vec<Option<u16>>,
    point: Point,
    points: Vec<Point>,
    kind: Kind,
    pair: (f32, bool),
    bytes: [u8; 2],
    day: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
struct Point {
    x: f64,
    label: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Debit,
    Credit,
}

#[item_reader("WideJson")]
type WideJson = batch_items::JsonLinesItemReader<Wide>;
#[item_writer("WideRows")]
type WideRows = ParquetItemWriter<Wide>;
#[item_reader("ReadWideRows")]
type ReadWideRows = ParquetItemReader<Wide>;
#[item_writer("WideLines")]
type WideLines = batch_items::JsonLinesItemWriter<Wide>;
pass!(PassWide: Wide);

#[test]
fn columns_have_the_types_of_the_fields() {
    let lines = [
        r#"{"small":-128,"large":18446744073709551615,"text":null,"list":[],"point":{"x":1.5,"label":null},"points":[],"kind":"debit","pair":[0.5,true],"bytes":[1,2],"day":"2024-02-29"}"#,
        r#"{"small":127,"large":0,"text":"","list":[1,null,65535],"point":{"x":-0.0,"label":"p"},"points":[{"x":1.0,"label":"a"},{"x":2.0,"label":null}],"kind":"credit","pair":[1.0,false],"bytes":[255,0],"day":"1969-12-31"}"#,
    ];
    let content = lines.map(|line| format!("{line}\n")).concat();
    let out = Stage::new(
        "reader=\"WideJson\" processor=\"PassWide\" writer=\"WideRows\"",
        "resource=${dir}/in\noutput=${dir}/out.parquet",
    );
    out.write("in", &content);
    out.completes();
    let back = Stage::new(
        "reader=\"ReadWideRows\" processor=\"PassWide\" writer=\"WideLines\"",
        "resource=${dir}/in.parquet\noutput=${dir}/out",
    );
    back.write("in.parquet", fs::read(out.path().join("out.parquet")).unwrap());
    back.completes();
    assert_eq!(back.read("out"), content);
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Dated {
    id: i64,
    day: Option<String>,
    price: Option<String>,
    at: Option<String>,
}

#[item_reader("DatedRows")]
type DatedRows = ParquetItemReader<Dated>;
#[item_writer("DatedJson")]
type DatedJson = batch_items::JsonLinesItemWriter<Dated>;
pass!(PassDated: Dated);

/// Dates and decimals are texts in serde; a record has no type at all.
///
/// Spec: ITEM-VALUE-02
#[test]
fn columns_have_the_types_of_the_property() {
    let out = Stage::new(
        "reader=\"jsonlRecordReader\" writer=\"recordParquetWriter\"",
        "resource=${dir}/in\noutput=${dir}/out.parquet\ncolumns=id Int64, day Date32, price Decimal128(10, 2), at Timestamp(ms, \"UTC\")",
    );
    let content = "{\"id\":1,\"day\":\"2024-02-29\",\"price\":\"12.34\",\"at\":\"2024-02-29T12:30:00Z\"}\n\
                   {\"id\":2,\"day\":null,\"price\":null,\"at\":null}\n";
    out.write("in", content);
    out.completes();
    let file = SerializedFileReader::new(File::open(out.path().join("out.parquet")).unwrap()).unwrap();
    let columns = file.metadata().file_metadata().schema_descr();
    let kinds: Vec<_> = columns
        .columns()
        .iter()
        .map(|column| format!("{:?}", column.logical_type_ref()))
        .collect();
    assert!(kinds[1].contains("Date"), "{kinds:?}");
    assert!(kinds[2].contains("Decimal"), "{kinds:?}");
    assert!(kinds[3].contains("Timestamp"), "{kinds:?}");
    let back = reading("Dated", fs::read(out.path().join("out.parquet")).unwrap(), "");
    back.completes();
    assert_eq!(back.read("out"), content);
    let records = Stage::new(
        "reader=\"parquetRecordReader\" writer=\"recordJsonlWriter\"",
        "resource=${dir}/in\noutput=${dir}/out",
    );
    records.write("in", fs::read(out.path().join("out.parquet")).unwrap());
    records.completes();
    assert_eq!(records.read("out"), content);
    let unknown = Stage::new(
        "reader=\"jsonlRecordReader\" writer=\"recordParquetWriter\"",
        "resource=${dir}/in\noutput=${dir}/out.parquet",
    );
    unknown.write("in", content);
    let message = unknown.fails();
    assert!(
        message.starts_with("cannot write `out.parquet`: the type of the items does not show its columns ("),
        "{message}"
    );
    assert!(message.contains("; set the property `columns`"), "{message}");
}

/// A decimal that the column does not hold is an error of its item.
///
/// Spec: ITEM-VALUE-02
#[test]
fn a_decimal_that_does_not_fit_is_rejected() {
    for (value, shown) in [
        ("\"1.234\"", "\"1.234\""),
        ("100", "100"),
        ("0.5e-2", "0.005"),
        ("\"x\"", "\"x\""),
        ("true", "true"),
    ] {
        let stage = Stage::new(
            "reader=\"jsonlRecordReader\" writer=\"recordParquetWriter\"",
            "resource=${dir}/in\noutput=${dir}/out.parquet\ncolumns=price Decimal128(4, 2)",
        );
        stage.write("in", format!("{{\"price\":99.99}}\n{{\"price\":{value}}}\n"));
        let message = stage.fails();
        let expected = format!("column `price` of type Decimal128(4, 2): it cannot hold {shown} exactly");
        assert!(
            message.contains("item 2") && message.contains(&expected),
            "{message}"
        );
    }
}

/// Writes records to columns; the file is read again.
fn through_columns(columns: &str, format: &str, content: &str) -> Result<String, String> {
    let out = Stage::new(
        &format!("reader=\"{format}\" writer=\"recordParquetWriter\""),
        &format!("resource=${{dir}}/in\noutput=${{dir}}/out.parquet\ncolumns@writer={columns}"),
    );
    out.write("in", content);
    let ended = out.start(());
    if ended.status != BatchStatus::Completed {
        return Err(ended.message);
    }
    let back = Stage::new(
        "reader=\"parquetRecordReader\" writer=\"recordJsonlWriter\"",
        "resource=${dir}/in\noutput=${dir}/out",
    );
    back.write("in", fs::read(out.path().join("out.parquet")).unwrap());
    back.completes();
    Ok(back.read("out"))
}

/// A value that its column does not hold exactly is an error of its item, instead of being rounded or cut.
///
/// Spec: ITEM-VALUE-10
#[test]
fn a_column_holds_a_value_exactly_or_the_item_is_rejected() {
    let held = r#"{"id":18446744073709551615,"float":1e+300,"short":16777216,"ok":true,"day":"2026-11-26","time":"10:00:00.000001","at":"2026-11-26T10:00:00.900Z","bytes":"\\xdead","list":[1,null]}"#;
    let columns = "id UInt64, float Float64, short Float32, ok Boolean, day Date32, time Time64(us), at Timestamp(ms, \"UTC\"), \
                   bytes Binary, list List(Int64)";
    let content = format!("{held}\n").replace("16777216", "16777216.0");
    let found = through_columns(columns, "jsonlRecordReader", &format!("{held}\n"));
    assert_eq!(found, Ok(content));
    for (column, value) in [
        ("Float64", "9007199254740993"),
        ("Float64", "12345678901234567890123"),
        ("Float64", "\"1e400\""),
        ("Float32", "1e300"),
        ("Float32", "16777217"),
        ("Timestamp(ms)", "\"2026-11-26T10:00:00.0001\""),
        ("Time64(us)", "\"10:00:00.0000001\""),
        ("Binary", "\"\\\\xdea\""),
        ("Boolean", "2"),
        ("Date32", "5"),
        ("List(Float32)", "[16777217]"),
    ] {
        let content = format!("{{\"a\":null}}\n{{\"a\":{value}}}\n");
        let message = through_columns(&format!("a {column}"), "jsonlRecordReader", &content).unwrap_err();
        assert!(message.contains("item 2"), "{column} {value}: {message}");
        assert!(message.contains("it cannot hold"), "{column} {value}: {message}");
    }
}

/// All values of a file of text are texts; an empty field is null.
///
/// Spec: ITEM-VALUE-10
#[test]
fn texts_are_converted_to_the_types_of_the_columns() {
    let columns = "id Int64, amount Float64, price Decimal128(6, 2), ok Boolean, day Date32, name Utf8";
    let content = "id,amount,price,ok,day,name\n7,-1.5,2.50,true,2026-11-26,007\n8,,,,,\n";
    let lines = "{\"id\":7,\"amount\":-1.5,\"price\":\"2.50\",\"ok\":true,\"day\":\"2026-11-26\",\"name\":\"007\"}\n\
                 {\"id\":8,\"amount\":null,\"price\":null,\"ok\":null,\"day\":null,\"name\":null}\n";
    assert_eq!(
        through_columns(columns, "csvRecordReader", content),
        Ok(lines.to_owned())
    );
    for (column, text) in [
        ("Int64", "1.0"),
        ("Float64", "1;5"),
        ("Boolean", "yes"),
        ("Date32", "26.11.2026"),
    ] {
        let message = through_columns(
            &format!("a {column}"),
            "csvRecordReader",
            &format!("a\n\n{text}\n"),
        );
        let expected = format!("column `a` of type {column}: it cannot hold {text:?} exactly");
        assert!(
            message.as_ref().is_err_and(|message| message.contains(&expected)),
            "{message:?}"
        );
    }
}
