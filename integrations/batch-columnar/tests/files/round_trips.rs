//! What a writer has written as Parquet, the reader reads.

use batch_columnar::{ParquetItemReader, ParquetItemWriter};
use batch_items::{JsonLinesItemReader, JsonLinesItemWriter};
use batch_runtime::prelude::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde::{Deserialize, Serialize};

use super::stage::{Stage, pass};

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Row {
    text: String,
    number: i64,
    ratio: f64,
    maybe: Option<u8>,
    flag: bool,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
enum Kind {
    Debit,
    Credit,
}

#[item_reader("JsonRows")]
type JsonRows = JsonLinesItemReader<Row>;
#[item_writer("JsonOut")]
type JsonOut = JsonLinesItemWriter<Row>;
#[item_reader("ParquetRows")]
type ParquetRows = ParquetItemReader<Row>;
#[item_writer("ParquetOut")]
type ParquetOut = ParquetItemWriter<Row>;

pass!(PassRow: Row);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (
        "[\\x00-\\x7F\u{e4}\u{20ac}\u{1F600}]{0,12}",
        any::<i64>(),
        -1e300..1e300,
        any::<Option<u8>>(),
        any::<bool>(),
        prop_oneof![Just(Kind::Debit), Just(Kind::Credit)],
    );
    let row = row.prop_map(|(text, number, ratio, maybe, flag, kind)| Row {
        text,
        number,
        ratio,
        maybe,
        flag,
        kind,
    });
    prop::collection::vec(row, 0..12)
}

#[test]
fn what_is_written_as_parquet_is_read() {
    let columns = "text Utf8, number Int64, ratio Float64, maybe UInt8, flag Boolean, kind Utf8";
    for properties in [
        "",
        "row.group.size=2\ncodec=gzip",
        &format!("codec=none\ncolumns={columns}"),
    ] {
        let out = Stage::new(
            "reader=\"JsonRows\" processor=\"PassRow\" writer=\"ParquetOut\" commit-interval=\"3\"",
            &format!("resource=${{dir}}/in\noutput=${{dir}}/file\n{properties}"),
        );
        let file = out.path().join("file").display().to_string();
        let back = Stage::new(
            "reader=\"ParquetRows\" processor=\"PassRow\" writer=\"JsonOut\" commit-interval=\"5\"",
            &format!("resource={file}\noutput=${{dir}}/out"),
        );
        let mut runner = TestRunner::new(Config {
            cases: 60,
            failure_persistence: None,
            ..Config::default()
        });
        let checked = runner.run(&rows(), |rows| {
            let lines = rows.iter().map(|row| serde_json::to_string(row).unwrap() + "\n");
            let lines: String = lines.collect();
            out.write("in", &lines);
            out.completes();
            back.completes();
            prop_assert_eq!(back.read("out"), lines);
            Ok(())
        });
        checked.unwrap();
    }
}
