//! What a writer has written, the reader of the format reads.

use std::sync::{Mutex, PoisonError};

use batch_items::{
    DelimitedItemReader, DelimitedItemWriter, FixedWidthItemReader, FixedWidthItemWriter,
    JsonArrayItemReader, JsonArrayItemWriter, JsonLinesItemReader, JsonLinesItemWriter, XmlItemReader,
    XmlItemWriter,
};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde::{Deserialize, Serialize};

use super::stage::{Stage, pass};

#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
struct Row {
    text: String,
    number: i64,
    ratio: f64,
    maybe: Option<u8>,
    flag: bool,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq)]
enum Kind {
    Debit,
    Credit,
}

#[item_reader("CsvRows")]
type CsvRows = DelimitedItemReader<Row>;
#[item_writer("CsvOut")]
type CsvOut = DelimitedItemWriter<Row>;
#[item_reader("FixedRows")]
type FixedRows = FixedWidthItemReader<Row>;
#[item_writer("FixedOut")]
type FixedOut = FixedWidthItemWriter<Row>;
#[item_reader("JsonRows")]
type JsonRows = JsonLinesItemReader<Row>;
#[item_writer("JsonOut")]
type JsonOut = JsonLinesItemWriter<Row>;
#[item_reader("ArrayRows")]
type ArrayRows = JsonArrayItemReader<Row>;
#[item_writer("ArrayOut")]
type ArrayOut = JsonArrayItemWriter<Row>;

/// The row in XML, with an attribute.
#[derive(Deserialize, Serialize)]
struct Element {
    #[serde(rename = "@text")]
    attribute: String,
    text: String,
    number: i64,
    ratio: f64,
    maybe: Option<u8>,
    flag: bool,
    kind: Kind,
}

#[item_reader("Elements")]
type Elements = XmlItemReader<Element>;
#[item_writer("ElementsOut")]
type ElementsOut = XmlItemWriter<Element>;

pass!(PassRow: Row);

#[derive(BatchArtifact)]
struct ToElement;

#[item_processor("ToElement")]
impl ToElement {
    #[process_item]
    fn process(&mut self, row: Row) -> Option<Element> {
        Some(Element {
            attribute: row.text.clone(),
            text: row.text,
            number: row.number,
            ratio: row.ratio,
            maybe: row.maybe,
            flag: row.flag,
            kind: row.kind,
        })
    }
}

#[derive(BatchArtifact)]
struct FromElement;

#[item_processor("FromElement")]
impl FromElement {
    #[process_item]
    fn process(&mut self, element: &Element) -> Option<Row> {
        (element.attribute == element.text).then(|| Row {
            text: element.text.clone(),
            number: element.number,
            ratio: element.ratio,
            maybe: element.maybe,
            flag: element.flag,
            kind: element.kind,
        })
    }
}

/// The rows of the current case, and those that were read. The cases run one after the other.
static GIVEN: Mutex<Vec<Row>> = Mutex::new(Vec::new());
static FOUND: Mutex<Vec<Row>> = Mutex::new(Vec::new());
static CASES: Mutex<()> = Mutex::new(());

#[derive(BatchArtifact)]
struct GivenRows {
    next: usize,
}

#[item_reader("GivenRows")]
impl GivenRows {
    #[open]
    fn open(&mut self, checkpoint: Option<usize>) {
        self.next = checkpoint.unwrap_or(0);
    }
    #[read_item]
    fn read(&mut self) -> Option<Row> {
        self.next += 1;
        GIVEN.lock().unwrap().get(self.next - 1).cloned()
    }
    #[get_checkpoint_info]
    fn checkpoint(&self) -> usize {
        self.next
    }
}

#[derive(BatchArtifact)]
struct FoundRows;

#[item_writer("FoundRows")]
impl FoundRows {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {
        FOUND.lock().unwrap().clear();
    }
    #[write_items]
    fn write(&mut self, rows: &[Row]) {
        FOUND.lock().unwrap().extend_from_slice(rows);
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

fn rows(text: &'static str) -> impl Strategy<Value = Vec<Row>> {
    let kind = prop_oneof![Just(Kind::Debit), Just(Kind::Credit)];
    let row = (
        text,
        any::<i64>(),
        -1e300..1e300,
        any::<Option<u8>>(),
        any::<bool>(),
        kind,
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

fn check(reader: &str, writer: &str, text: &'static str, properties: &str) {
    check_with(["PassRow", "PassRow"], reader, writer, text, properties);
}

/// Checks with the processors that convert rows to what is written, and back.
fn check_with([forth, back]: [&str; 2], reader: &str, writer: &str, text: &'static str, properties: &str) {
    let out = Stage::new(
        &format!("reader=\"GivenRows\" processor=\"{forth}\" writer=\"{writer}\" commit-interval=\"3\""),
        &format!("output=${{dir}}/file\n{properties}"),
    );
    let back = Stage::new(
        &format!("reader=\"{reader}\" processor=\"{back}\" writer=\"FoundRows\" commit-interval=\"5\""),
        &format!("resource=${{file}}\n{properties}"),
    );
    let mut runner = TestRunner::new(Config {
        cases: 60,
        failure_persistence: None,
        ..Config::default()
    });
    let _cases = CASES.lock().unwrap_or_else(PoisonError::into_inner);
    let checked = runner.run(&rows(text), |given| {
        GIVEN.lock().unwrap().clone_from(&given);
        out.completes();
        let file = out.path().join("file").display().to_string();
        let ended = back.start([("file", file)]);
        prop_assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.message);
        prop_assert_eq!(&*FOUND.lock().unwrap(), &given);
        Ok(())
    });
    checked.unwrap();
}

#[test]
fn what_is_written_is_read() {
    let any_text = "[\\x00-\\x7F\u{e4}\u{20ac}\u{1F600}]{0,12}";
    check("CsvRows", "CsvOut", any_text, "");
    check(
        "CsvRows",
        "CsvOut",
        any_text,
        "delimiter=;\nquote='\nline.end=crlf",
    );
    check("CsvRows", "CsvOut", any_text, "quotes=text\nheader=false");
    check("CsvRows", "CsvOut", any_text, "escape=\\");
    check("CsvRows", "CsvOut", any_text, "compression=gzip");
    check(
        "CsvRows",
        "CsvOut",
        "[\\x00-\\x7F\u{e4}\u{20ac}\u{d8}]{0,12}",
        "encoding=windows-1252",
    );
    check("JsonRows", "JsonOut", any_text, "");
    check("ArrayRows", "ArrayOut", any_text, "");
    let processors = ["ToElement", "FromElement"];
    let xml_text = "[\\t\\n\\r -\\x7F\u{e4}\u{20ac}\u{1F600}]{0,12}";
    check_with(processors, "Elements", "ElementsOut", xml_text, "element=row");
    check_with(
        processors,
        "Elements",
        "ElementsOut",
        "[ -\\x7E\u{e4}]{0,12}",
        "element=row\nroot=rows n='1'\nencoding=windows-1252\ncompression=gzip",
    );
    let columns = "columns=text 1-12, number 13-33 right, ratio 34-360, maybe 361-363 zeros, flag 364-368, kind 369-374";
    check(
        "FixedRows",
        "FixedOut",
        "([a-z\u{e4}\u{20ac}][a-z ]{0,9}[a-z])?",
        columns,
    );
}
