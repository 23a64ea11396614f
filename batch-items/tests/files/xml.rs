//! Files of XML elements.

use std::collections::BTreeMap;
use std::fs::{self, File};

use batch_items::file::FileFrame;
use batch_items::{XmlItemReader, XmlItemWriter};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

use super::delimited::Flight;
use super::stage::{Stage, pass};

#[item_reader("XmlFlightReader")]
type XmlFlightReader = XmlItemReader<Flight>;

/// An item with all that an element can have.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Order {
    #[serde(rename = "@id")]
    id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    customer: Option<Customer>,
    #[serde(default)]
    line: Vec<Line>,
    #[serde(rename = "$text", skip_serializing_if = "Option::is_none")]
    remark: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Customer {
    name: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Line {
    #[serde(rename = "@amount")]
    amount: u8,
}

#[item_reader("XmlOrderReader")]
type XmlOrderReader = XmlItemReader<Order>;
#[item_writer("XmlOrderWriter")]
type XmlOrderWriter = XmlItemWriter<Order>;
#[item_writer("XmlTotalsWriter")]
type XmlTotalsWriter = XmlItemWriter<Order, Totals>;

pass!(PassOrder: Order);

/// A type whose fields are not declared.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(transparent)]
struct Open {
    fields: BTreeMap<String, String>,
}

#[item_reader("XmlOpenReader")]
type XmlOpenReader = XmlItemReader<Open>;
#[item_writer("JsonOpenWriter")]
type JsonOpenWriter = batch_items::JsonLinesItemWriter<Open>;
pass!(PassOpen: Open);

/// The number of orders.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Totals(u64);

impl FileFrame<Order> for Totals {
    fn header(&self) -> Option<String> {
        Some("<!-- orders -->\n".to_owned())
    }
    fn add(&mut self, _order: &Order) {
        self.0 += 1;
    }
    fn footer(&self) -> Option<String> {
        Some(format!("<count>{}</count>\n", self.0))
    }
}

const SKIP: &str =
    r#"<skippable-exception-classes><include class="RecordError"/></skippable-exception-classes>"#;

const FLIGHTS: &str =
    r#"reader="XmlFlightReader" processor="PassFlight" writer="FlightWriter" commit-interval="2""#;

fn flights(content: impl AsRef<[u8]>, properties: &str, children: &str) -> Stage {
    let element = if properties.contains("element=") {
        ""
    } else {
        "element=f"
    };
    let properties = format!("resource=${{dir}}/in.xml\noutput=${{dir}}/out\n{element}\n{properties}");
    let stage = Stage::with_children(FLIGHTS, &properties, children);
    stage.write("in.xml", content);
    stage
}

/// Returns the first line of the message of a job that fails at this content, although it skips bad records.
fn fails(content: impl AsRef<[u8]>, properties: &str, children: &str) -> String {
    let message = flights(content, properties, children).fails();
    message.lines().next().unwrap().to_owned()
}

const A: &str = "<f><origin>A</origin><delay>1</delay><note>x</note></f>";
const B: &str = "<f><origin>B</origin><note/></f>";
const ROWS: &str = "origin,delay,note\nA,1,x\nB,,\n";

/// Returns the output of a job that skips bad records, and their number.
fn copy(content: impl AsRef<[u8]>, properties: &str) -> (i64, String) {
    let stage = flights(content, properties, SKIP);
    let ended = stage.completes();
    (ended.skips, stage.read("out"))
}

#[test]
fn elements_are_found_at_any_depth() {
    let good = (0, ROWS.to_owned());
    assert_eq!(copy(format!("<fs>{A}{B}</fs>"), ""), good);
    assert_eq!(copy(format!("{A}{B}"), ""), good);
    assert_eq!(
        copy(
            format!(
                "\u{FEFF}<?xml version='1.0' encoding='utf-8'?>\r\n<?x <f>?>\r\n<a b='>'>\r\n<f2/><b>t{A}</b><c>{B}</c></a>\r\n"
            ),
            ""
        ),
        good
    );
    assert_eq!(
        copy(
            format!("<!-- <f> --><a><![CDATA[<f>]]>{A}<b/></a>{B}<!-- -->"),
            ""
        ),
        good
    );
    let prefixed = format!("<p:fs xmlns:p='u'>{A}{B}</p:fs>")
        .replace("<f>", "<p:f>")
        .replace("</f>", "</p:f>");
    assert_eq!(copy(&prefixed, ""), good);
    assert_eq!(copy(&prefixed, "element=p:f"), good);
    assert_eq!(copy(&prefixed, "element=q:f"), (0, String::new()));
    assert_eq!(copy(format!("line\n<fs>{A}{B}</fs>"), "skip.lines=1"), good);
    assert_eq!(copy("<fs><g/></fs>", ""), (0, String::new()));
    let attributes = "<fs><f origin='&lt;&#65;&gt;' delay=\"1\" note='/>'/></fs>";
    let nested = "<fs><f><origin>A</origin><note>x</note><f><f/></f></f></fs>";
    assert_eq!(
        copy(nested, ""),
        (1, String::new()),
        "the inner ones would vanish"
    );
    assert_eq!(copy(attributes, "").0, 1, "attributes are `@origin`");
}

/// Spec: INPUT-21
#[test]
fn text_is_decoded() {
    let document = |label: &str| {
        format!("<?xml version=\"1.0\" encoding=\"{label}\"?><fs><f><origin>M\u{fc}</origin><note/></f></fs>")
    };
    let expected = (0, "origin,delay,note\nM\u{fc},,\n".to_owned());
    assert_eq!(copy(document("UTF-8"), ""), expected);
    let latin: Vec<u8> = document("ISO-8859-1").chars().map(|c| c as u8).collect();
    assert_eq!(copy(&latin, "encoding@reader=iso-8859-1"), expected);
    assert_eq!(
        fails(&latin, "", SKIP),
        "cannot read `in.xml`: it declares the encoding `ISO-8859-1`, but is read as UTF-8; set the property `encoding` \
         to `ISO-8859-1`"
    );
    let contradicts = |label: &str, encoding: &str| {
        fails(
            document(label).replace('\u{fc}', "u"),
            &format!("encoding@reader={encoding}"),
            SKIP,
        )
    };
    assert_eq!(
        contradicts("UTF-8", "windows-1252"),
        "cannot read `in.xml`: it declares the encoding `UTF-8`, but is read as windows-1252; set the property `encoding` to `UTF-8`"
    );
    assert!(contradicts("windows-1251", "windows-1252").contains("declares the encoding `windows-1251`"));
    assert_eq!(
        contradicts("cp850", "utf-8"),
        "cannot read `in.xml`: it declares the encoding `cp850`, but is read as UTF-8; this encoding is not known: convert the file"
    );
    for label in ["US-ASCII", "ascii", "ANSI_X3.4-1968"] {
        let ascii = document(label).replace('\u{fc}', "u");
        assert_eq!(copy(&ascii, "encoding@reader=iso-8859-2").0, 0, "{label}");
        assert_eq!(copy(&ascii, "").0, 0, "{label}");
    }
    let utf16: Vec<u8> = format!("\u{FEFF}{}", document("UTF-16"))
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(copy(&utf16, "encoding@reader=utf-16le"), expected);
    let bad = b"<fs>\n<f><origin>M\xFC</origin><note/></f></fs>";
    assert_eq!(
        fails(bad, "", ""),
        "in.xml:2: the text is not valid UTF-8 (byte 13 of it); set the property `encoding`"
    );
    let name = "<fs><gr\u{fc}n><origin>M\u{fc}</origin><note/></gr\u{fc}n></fs>";
    let latin: Vec<u8> = name.chars().map(|c| c as u8).collect();
    assert_eq!(
        copy(&latin, "encoding@reader=iso-8859-1\nelement=gr\u{fc}n"),
        expected
    );
}

#[test]
fn a_bad_element_is_named_and_can_be_skipped() {
    for (bad, message) in [
        (
            "<f>\n<origin>C</origin><delay>late</delay><note/></f>",
            "field `delay`: invalid type: string \"late\", expected i32",
        ),
        ("<f/>", "missing field `origin`"),
        (
            "<f><origin>C</note></f>",
            "field `origin`: ill-formed document: expected `</origin>`, but `</note>` was found",
        ),
        (
            "<f><origin>C</f>",
            "field `origin`: ill-formed document: expected `</origin>`, but `</f>` was found",
        ),
        (
            "<f><origin>&c;</origin><note/></f>",
            "field `origin`: at 0..1: unrecognized entity `c`",
        ),
        (
            "<f><origin>1 < 2</origin><note/></f>",
            "the element has a `<` that does not begin a tag, or a tag without its `>`",
        ),
        (
            "<f a=\"1><origin>C</origin><note/></f>",
            "the element has a `<` that does not begin a tag, or a tag without its `>`",
        ),
        (
            "<f><origin>C</origin><note/></f <b>",
            "the element has a `<` that does not begin a tag, or a tag without its `>`",
        ),
    ] {
        let content = format!("<fs>{A}\n{bad}{B}<b/></fs>").replace("<b><f>", "<f>");
        assert_eq!(fails(&content, "", ""), format!("in.xml:2: {message}"));
        assert_eq!(copy(&content, ""), (1, ROWS.to_owned()), "{bad}");
    }
    let long = format!("<fs>{A}<f><origin>{}</origin></f>{B}</fs>", "x".repeat(200_000));
    assert_eq!(
        fails(&long, "max.record.length=1000", ""),
        "in.xml:1: the element is longer than `max.record.length`, 1000 bytes"
    );
    assert_eq!(copy(&long, "max.record.length=1000"), (1, ROWS.to_owned()));
}

/// A number that is optional, and one that is not.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Numbers {
    maybe: Option<i32>,
    day: Option<Day>,
    always: u8,
    text: String,
    #[serde(default)]
    list: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
enum Day {
    Monday,
}

/// A file without the element may have it under another name than the property.
#[test]
fn a_file_with_other_elements_only_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_writer(File::create(&log).unwrap())
        .init();
    let warnings = |content: String| {
        let stage = flights(content, "", "");
        stage.completes();
        let file = stage.path().join("in.xml").display().to_string();
        let text = fs::read_to_string(&log).unwrap();
        let warning = "the file has elements, but none with the name `f`";
        text.lines()
            .filter(|line| line.contains(&file) && line.contains(warning))
            .count()
    };
    assert_eq!(warnings("<fs><g/></fs>".to_owned()), 1);
    assert_eq!(warnings(format!("<fs><g/>{A}</fs>")), 0);
    assert_eq!(warnings("<fs/>".to_owned()), 0);
}

#[item_reader("XmlNumbers")]
type XmlNumbers = XmlItemReader<Numbers>;
#[item_writer("NumbersJson")]
type NumbersJson = batch_items::JsonLinesItemWriter<Numbers>;
pass!(PassNumbers: Numbers);

/// As in files of text, an empty value is `None`.
#[test]
fn an_empty_element_is_a_missing_one() {
    let read = |elements: &str| {
        let stage = Stage::new(
            "reader=\"XmlNumbers\" processor=\"PassNumbers\" writer=\"NumbersJson\"",
            "resource=${dir}/in.xml\noutput=${dir}/out\nelement=n",
        );
        stage.write("in.xml", format!("<ns><n>{elements}</n></ns>"));
        let ended = stage.start(());
        match ended.status {
            BatchStatus::Completed => stage.read("out"),
            _ => ended.message.lines().next().unwrap().to_owned(),
        }
    };
    let none = "{\"maybe\":null,\"day\":null,\"always\":1,\"text\":\"\",\"list\":[]}\n";
    assert_eq!(read("<always>1</always><text/>"), none);
    assert_eq!(read("<maybe/><day></day><always>1</always><text></text>"), none);
    assert_eq!(
        read("<maybe> </maybe><always>1</always><text/>"),
        "in.xml:1: field `maybe`: invalid type: string \" \", expected i32"
    );
    assert_eq!(
        read("<maybe/><always/><text/>"),
        "in.xml:1: field `always`: invalid type: string \"\", expected u8"
    );
    assert_eq!(
        read("<always/><text/>"),
        "in.xml:1: field `always`: invalid type: string \"\", expected u8"
    );
    assert_eq!(
        read("<always>1</always><text/><list>1</list><list/>"),
        "in.xml:1: field `list[1]`: invalid type: string \"\", expected u8"
    );
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Trade {
    price: Option<f64>,
    name: Option<String>,
    fee: Option<Fee>,
    leg: Vec<String>,
    other: Vec<u8>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Fee {
    #[serde(rename = "@currency")]
    currency: String,
    #[serde(rename = "$text")]
    amount: f64,
}

#[item_reader("XmlTrades")]
type XmlTrades = XmlItemReader<Trade>;
#[item_writer("TradesJson")]
type TradesJson = batch_items::JsonLinesItemWriter<Trade>;
pass!(PassTrade: Trade);

fn trade(elements: &str) -> String {
    let stage = Stage::new(
        "reader=\"XmlTrades\" processor=\"PassTrade\" writer=\"TradesJson\"",
        "resource=${dir}/in.xml\noutput=${dir}/out\nelement=t",
    );
    let xsi = "http://www.w3.org/2001/XMLSchema-instance";
    stage.write(
        "in.xml",
        format!("<ts xmlns:xsi=\"{xsi}\" xmlns:i=\"{xsi}\"><t>{elements}</t><t/></ts>"),
    );
    let ended = stage.start(());
    match ended.status {
        BatchStatus::Completed => stage.read("out").lines().next().unwrap().to_owned(),
        _ => ended.message.lines().next().unwrap().to_owned(),
    }
}

/// An element that says that it has no value has none, with attributes and comments too. The prefix of `nil` is declared in the root.
///
/// Spec: INPUT-08
#[test]
fn an_element_without_a_value_is_none() {
    let none = "{\"price\":null,\"name\":null,\"fee\":null,\"leg\":[],\"other\":[]}";
    for elements in [
        "",
        "<price xsi:nil=\"true\"/>",
        "<price i:nil='1'></price>",
        "<price currency=\"EUR\"/>",
        "<price currency=\"EUR\"></price>",
        "<price><!-- none --></price>",
        "<price><!-- <price>1</price> --></price><fee/>",
        "<name xsi:nil=\"true\"/>",
        "<fee currency=\"EUR\" xsi:nil=\"true\"/>",
        "<price xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:nil=\"true\"/>",
    ] {
        assert_eq!(trade(elements), none, "{elements}");
    }
    assert_eq!(
        trade("<price xsi:nil=\"false\">1.5</price>"),
        none.replace("\"price\":null", "\"price\":1.5")
    );
    // An attribute is not dropped with its element.
    let message = trade("<fee currency=\"EUR\"/>");
    assert!(message.starts_with("in.xml:1: field `fee"), "{message}");
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Placed {
    line: u64,
    count: u8,
}

#[item_reader("XmlPlaced")]
type XmlPlaced = XmlItemReader<Placed>;
#[item_writer("PlacedJson")]
type PlacedJson = batch_items::JsonLinesItemWriter<Placed>;
pass!(PassXmlPlaced: Placed);

/// The error is the error of the record, not that it lacks a field that the reader adds.
#[test]
fn a_bad_element_with_added_fields_is_named() {
    let stage = Stage::new(
        "reader=\"XmlPlaced\" processor=\"PassXmlPlaced\" writer=\"PlacedJson\"",
        "resource=${dir}/in.xml\noutput=${dir}/out\nelement=t\nline.field@reader=line",
    );
    stage.write(
        "in.xml",
        "<ts>\n<t><count>1</count></t>\n<t><count>300</count></t></ts>",
    );
    let message = stage.fails();
    assert!(
        message.starts_with("in.xml:3: field `count`: invalid type: string \"300\", expected u8"),
        "{message}"
    );
}

/// Spec: INPUT-08
#[test]
fn the_elements_of_a_list_may_have_others_between_them() {
    assert_eq!(
        trade("<leg>x</leg><other>1</other><leg>y</leg><price>2</price><other>2</other><leg>z</leg>"),
        "{\"price\":2.0,\"name\":null,\"fee\":null,\"leg\":[\"x\",\"y\",\"z\"],\"other\":[1,2]}"
    );
    let message = trade("<price>1</price><leg>x</leg><price>2</price>");
    assert!(message.contains("duplicate field `price`"), "{message}");
}

/// A nested field is named with its path.
#[test]
fn a_bad_field_has_a_path() {
    let properties = "resource=${dir}/in.xml\noutput=${dir}/out\nelement=order";
    let stage = Stage::new(
        "reader=\"XmlOrderReader\" processor=\"PassOrder\" writer=\"XmlOrderWriter\"",
        properties,
    );
    stage.write(
        "in.xml",
        "<o><order id='1'><line amount='1'/><line amount='300'/></order></o>",
    );
    assert_eq!(
        stage.fails().lines().next().unwrap(),
        "in.xml:1: field `line[1].@amount`: invalid type: string \"300\", expected u8"
    );
}

/// A wrong file is not a wrong record: it is not skipped.
#[test]
fn a_malformed_file_fails_the_step() {
    for (content, message) in [
        ("", "line 1: the file has no element"),
        ("a;b\n1;2\n", "line 3: the file has text outside of its elements"),
        (
            "<orders/>\nmore\n",
            "line 3: the file has text outside of its elements",
        ),
        (
            "<fs>",
            "line 1: the file ends within an element that is not closed",
        ),
        (
            "<fs>\n<a>\n",
            "line 3: the file ends within 2 elements that are not closed",
        ),
        (
            "<fs><f>\n<origin>",
            "line 2: the file ends within the element `f` that begins in line 1",
        ),
        ("<fs>\n<f", "line 2: the file ends within a tag or a comment"),
        (
            "<fs><!-- </fs>",
            "line 1: the file ends within a tag or a comment",
        ),
        ("<fs></fs>\n</gs>", "line 2: `</gs>` has no start tag before it"),
        (
            "<fs>\n1 < 2</fs>",
            "line 2: a `<` that does not begin a tag, or a tag without its `>`",
        ),
        (
            "<!DOCTYPE fs [<!ENTITY a \"b\">]>\n<fs/>",
            "line 1: `<!DOCTYPE` and other declarations are rejected, because they can define entities that expand \
             without limit; remove them from the file",
        ),
        (
            "<fs><f><!DOCTYPE fs></f></fs>",
            "line 1: `<!DOCTYPE` and other declarations are rejected, because they can define entities that expand \
             without limit; remove them from the file",
        ),
    ] {
        assert_eq!(
            fails(content, "", SKIP),
            format!("cannot read `in.xml`: {message}")
        );
    }
}

/// A restart knows the elements around its position, so that the end of a truncated file is an error there too.
#[test]
fn a_truncated_file_fails_after_a_restart_too() {
    let stage = flights(format!("<all><fs>{A}{B}{A}{B}</fs>"), "", "");
    let failed = stage.start([("fail.at", "3")]);
    assert_eq!(failed.writes, 2);
    let again = stage.restart(&failed, [("fail.at", "0")]);
    assert_eq!(again.status, BatchStatus::Failed);
    let message = "cannot read `in.xml`: line 1: the file ends within an element that is not closed";
    assert_eq!(again.message.lines().next().unwrap(), message);
    let once_more = stage.restart(&again, [("fail.at", "0")]);
    assert_eq!(once_more.status, BatchStatus::Failed);
    assert_eq!(once_more.message.lines().next().unwrap(), message);
    stage.write("in.xml", format!("<all><fs>{A}{B}{A}{B}</fs></all>"));
    let corrected = stage.restart(&once_more, [("fail.at", "0"), ("if.changed", "resume")]);
    assert_eq!(corrected.status, BatchStatus::Completed, "{}", corrected.message);
    assert_eq!(stage.read("out").lines().count(), 5);
}

/// An item that may be in another one.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Node {
    #[serde(rename = "@id")]
    id: u32,
    #[serde(default)]
    node: Vec<Node>,
}

#[item_reader("NodeReader")]
type NodeReader = XmlItemReader<Node>;
#[item_writer("NodeLines")]
type NodeLines = batch_items::JsonLinesItemWriter<Node>;
pass!(PassNode: Node);
#[item_reader("XmlRecords")]
type XmlRecords = XmlItemReader<batch_items::Record>;
pass!(PassXmlRecord: batch_items::Record);

/// An element that is not an item, because it is in another one, is part of that one, or an error.
///
/// Spec: INPUT-21
#[test]
fn an_element_in_another_one_does_not_vanish() {
    let content = format!("<fs>{A}<f><origin>C</origin><note/>{A}</f>{B}</fs>");
    assert_eq!(
        fails(&content, "", ""),
        "in.xml:1: it contains another element `f` in `f`, for which the item type has no field; the inner element would be lost"
    );
    let deeper = content.replace(
        &format!("<note/>{A}"),
        &format!("<note/><x:more><y:f/>{A}</x:more>"),
    );
    assert!(fails(&deeper, "", "").contains("another element `f` in `more`"));
    assert_eq!(copy(&content, ""), (1, ROWS.to_owned()));
    let nodes = |reader: &str, processor: &str, writer: &str| {
        let stage = Stage::new(
            &format!("reader=\"{reader}\" processor=\"{processor}\" writer=\"{writer}\""),
            "resource=${dir}/in.xml\noutput=${dir}/out\nelement=node",
        );
        stage.write("in.xml", "<ns><node id='1'><node id='2'/></node></ns>");
        stage.completes();
        stage.read("out")
    };
    assert_eq!(
        nodes("NodeReader", "PassNode", "NodeLines"),
        "{\"@id\":1,\"node\":[{\"@id\":2,\"node\":[]}]}\n"
    );
    assert_eq!(
        nodes("XmlRecords", "PassXmlRecord", "recordJsonlWriter"),
        "{\"@id\":\"1\",\"node\":{\"@id\":\"2\"}}\n"
    );
}

#[item_writer("RecordsXml")]
type RecordsXml = XmlItemWriter<batch_items::Record>;

fn node_records(node: &str) -> Stage {
    node_records_with("", node)
}

fn node_records_with(properties: &str, node: &str) -> Stage {
    let stage = Stage::new(
        "reader=\"XmlRecords\" processor=\"PassXmlRecord\" writer=\"recordJsonlWriter\" commit-interval=\"2\"",
        &format!("resource=${{dir}}/in.xml\noutput=${{dir}}/out\nelement=node\n{properties}"),
    );
    let namespace = "http://www.w3.org/2001/XMLSchema-instance";
    stage.write("in.xml", format!("<ns xmlns:xsi=\"{namespace}\">{node}</ns>"));
    stage
}

/// Spec: ITEM-VALUE-01, ITEM-VALUE-02
#[test]
fn a_record_has_all_of_its_element_or_is_an_error() {
    for (node, expected) in [
        (
            "<node><id>7</id><v xsi:nil='true'/></node><node><id>8</id><v>a</v></node>",
            "{\"id\":\"7\",\"v\":null}\n{\"id\":\"8\",\"v\":\"a\"}\n",
        ),
        (
            "<node><v unit='kg' xsi:nil='1'/><w/></node>",
            "{\"v\":{\"@unit\":\"kg\",\"@nil\":\"1\"},\"w\":null}\n",
        ),
        (
            "<node><v> <x>1</x> <y b='2'>3</y></v></node>",
            "{\"v\":{\"x\":{\"$text\":\"1\"},\"y\":{\"@b\":\"2\",\"$text\":\"3\"}}}\n",
        ),
    ] {
        let stage = node_records(node);
        stage.completes();
        assert_eq!(stage.read("out"), expected, "{node}");
    }
    let deep = format!("<node>{}{}</node>", "<a>".repeat(2000), "</a>".repeat(2000));
    for (node, expected) in [
        (
            "<node><ls><l>pen</l><l>ink</l></ls></node>",
            "two fields have the name `l`; if it may occur several times, name it in `lists`",
        ),
        (
            "<node><l>a</l><b/><l>a</l></node>",
            "two fields have the name `l`; if",
        ),
        ("<node><p><l>a</l><l/></p></node>", "two fields have the name `l`"),
        (
            "<node><a>hello <b>x</b> world</a></node>",
            "there is an element in its text",
        ),
        (&deep, "it has more than 128 elements in one another"),
    ] {
        let message = node_records(node).fails();
        assert!(message.contains(expected), "{node}: {message}");
    }
}

/// An element that may occur several times is a list also where it occurs once, so its shape does not depend on the data.
///
/// Spec: ITEM-VALUE-02
#[test]
fn elements_that_may_repeat_are_lists() {
    for (node, expected) in [
        (
            "<node><l>a</l><id>1</id><l k='v'>b</l></node><node><id>2</id><l>c</l></node><node><id>3</id></node><node><l/></node>",
            "{\"id\":\"1\",\"l\":[{\"$text\":\"a\"},{\"@k\":\"v\",\"$text\":\"b\"}]}\n{\"id\":\"2\",\"l\":[{\"$text\":\"c\"}]}\n\
             {\"id\":\"3\"}\n{\"l\":[{}]}\n",
        ),
        (
            "<node><p><l>a</l><x>1</x><l><m>2</m></l><m/><l/></p></node><node><p><l>b</l></p></node><node><p>t</p></node>",
            "{\"p\":{\"x\":{\"$text\":\"1\"},\"l\":[{\"$text\":\"a\"},{\"m\":[{\"$text\":\"2\"}]},{}],\"m\":[{}]}}\n\
             {\"p\":{\"l\":[{\"$text\":\"b\"}]}}\n{\"p\":\"t\"}\n",
        ),
        (
            "<node><l>a</l><l>b</l><y>1</y></node><node><y>2</y><l>c</l><z>3</z></node><node><z>4</z><y>5</y></node>",
            "{\"y\":\"1\",\"l\":[{\"$text\":\"a\"},{\"$text\":\"b\"}]}\n{\"y\":\"2\",\"z\":\"3\",\"l\":[{\"$text\":\"c\"}]}\n\
             {\"z\":\"4\",\"y\":\"5\"}\n",
        ),
    ] {
        let stage = node_records_with("lists=l, m", node);
        stage.completes();
        assert_eq!(stage.read("out"), expected, "{node}");
    }
    for (node, expected) in [
        (
            "<node><p>text <l>a</l> more</p></node>",
            "there is an element in its text",
        ),
        ("<node><l>a</l><x/><x/></node>", "two fields have the name `x`"),
    ] {
        let message = node_records_with("lists=l", node).fails();
        assert!(message.contains(expected), "{node}: {message}");
    }
    for (lists, expected) in [
        ("ns:l", "prefixes are ignored; write `l`"),
        ("@l", "expected the name of an element"),
        ("$text", "expected the name of an element"),
    ] {
        let rejected = node_records_with(&format!("lists={lists}"), "").rejected();
        assert!(rejected.contains(expected), "{rejected}");
    }
    let message = node_records_with("lists=l\nline.field@reader=l", "<node><l>a</l></node>").fails();
    assert!(
        message.contains("`lists` has the name `l` of an added field"),
        "{message}"
    );
    let long = format!("<node><p>{}</p></node>", "<l/>".repeat(100_000));
    node_records_with("lists=l", &long).completes();
}

/// Spec: ITEM-VALUE-01
#[test]
fn a_field_without_a_name_is_no_element() {
    let stage = Stage::new(
        "reader=\"jsonlRecordReader\" processor=\"PassXmlRecord\" writer=\"RecordsXml\"",
        "resource=${dir}/in\noutput=${dir}/out\nelement=node",
    );
    stage.write("in", "{\"a\":\"<>\",\"b\":1}\n{\"a\":2,\"\":3}\n");
    assert!(stage.fails().contains("a field has no name"));
}

/// Elements in each other are limited by the deserializer, and skipped ones take no stack.
#[test]
fn deep_elements_are_no_danger() {
    let deep = |depth: usize| format!("<fs>{}{}{A}{B}</fs>", "<g>".repeat(depth), "</g>".repeat(depth));
    assert_eq!(copy(deep(100_000), ""), (0, ROWS.to_owned()));
    let within = format!(
        "<note>x</note>{}{}</f>",
        "<g>".repeat(50_000),
        "</g>".repeat(50_000)
    );
    let content = format!("<fs>{A}{B}</fs>").replace("<note>x</note></f>", &within);
    assert_eq!(copy(content, ""), (0, ROWS.to_owned()));
}

#[test]
fn orders_are_written_as_they_are_read() {
    let orders = "<order id=\"1\">\n<customer><name>A &amp; B</name></customer><line amount=\"3\"/><line amount=\"4\"/></order>\
                  <order id=\"2\">by hand</order>";
    let written = "<order id=\"1\"><customer><name>A &amp; B</name></customer><line amount=\"3\"/><line amount=\"4\"/></order>\n\
                   <order id=\"2\">by hand</order>\n";
    for (writer, properties, frame) in [
        ("XmlOrderWriter", "", ["<items>\n", "</items>\n"]),
        (
            "XmlTotalsWriter",
            "root=orders",
            ["<orders>\n<!-- orders -->\n", "<count>2</count>\n</orders>\n"],
        ),
    ] {
        let stage = Stage::new(
            &format!(
                "reader=\"XmlOrderReader\" processor=\"PassOrder\" writer=\"{writer}\" commit-interval=\"1\""
            ),
            &format!("resource=${{dir}}/in.xml\noutput=${{dir}}/out\nelement=order\n{properties}"),
        );
        stage.write("in.xml", format!("<o>{orders}</o>"));
        let failed = stage.start([("fail.at", "2")]);
        let again = stage.restart(&failed, [("fail.at", "0")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        let [begin, end] = frame;
        assert_eq!(
            stage.read("out"),
            format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{begin}{written}{end}")
        );
    }
}

#[derive(Serialize)]
struct Text {
    text: String,
}

#[item_writer("XmlTextWriter")]
type XmlTextWriter = XmlItemWriter<Text>;

#[derive(BatchArtifact)]
struct ToText;

#[item_processor("ToText")]
impl ToText {
    #[process_item]
    fn process(&mut self, line: String) -> Option<Text> {
        Some(Text {
            text: line.replace("NUL", "\0"),
        })
    }
}

#[item_reader("TextReader")]
type TextReader = batch_items::LineItemReader<String>;

/// The encoding is declared; what cannot be written is an error of the item.
#[test]
fn the_document_is_readable_by_others() {
    let write = |lines: &str, properties: &str| {
        let stage = Stage::with_children(
            "reader=\"TextReader\" processor=\"ToText\" writer=\"XmlTextWriter\" skip-limit=\"9\"",
            &format!("resource=${{dir}}/in\noutput=${{dir}}/out\nelement=t\n{properties}"),
            r#"<skippable-exception-classes><include class="EncodeError"/></skippable-exception-classes>"#,
        );
        stage.write("in", lines);
        let ended = stage.completes();
        (ended.skips, std::fs::read(stage.path().join("out")).unwrap())
    };
    let (skips, bytes) = write(
        "M\u{fc}\n\u{4e2d}\nNUL\nb\n",
        "encoding@writer=windows-1252\nline.end=crlf",
    );
    assert_eq!(skips, 2);
    assert_eq!(
        bytes,
        b"<?xml version=\"1.0\" encoding=\"windows-1252\"?>\r\n<items>\r\n<t><text>M\xFC</text></t>\r\n\
          <t><text>b</text></t>\r\n</items>\r\n"
    );
}

#[test]
fn the_names_are_checked_before_the_job_starts() {
    let rejected = |properties: &str| {
        let properties = format!("resource=${{dir}}/in\noutput=${{dir}}/out\n{properties}");
        Stage::new(
            "reader=\"XmlOrderReader\" processor=\"PassOrder\" writer=\"XmlOrderWriter\"",
            &properties,
        )
        .rejected()
    };
    let error = rejected("element=an order");
    assert!(
        error.contains("expected the name of an element, such as `order`"),
        "{error}"
    );
    let error = rejected("element=order\nroot=a b=c");
    assert!(error.contains("such as `orders xmlns=\"urn:orders\"`"), "{error}");
    let error = rejected("");
    assert!(error.contains("`element`"), "{error}");
}

/// Blanks are a value of a record, in any form that XML has for them. No other type sees the mark that the parser needs for it.
///
/// Spec: ITEM-VALUE-02
#[test]
fn blanks_alone_are_a_value() {
    let read = |chunk: &str| {
        let stage = Stage::new(
            chunk,
            "resource@reader=${dir}/in.xml\nelement@reader=r\noutput@writer=${dir}/out",
        );
        stage.write(
            "in.xml",
            "<rs>\n <r>\n  <a> </a><b>&#9;</b><c><![CDATA[  ]]></c>\n </r>\n</rs>\n",
        );
        stage.completes();
        stage.read("out")
    };
    assert_eq!(
        read("reader=\"xmlRecordReader\" processor=\"recordProcessor\" writer=\"recordJsonlWriter\""),
        "{\"a\":\" \",\"b\":\"\\t\",\"c\":\"  \"}\n"
    );
    let open = read("reader=\"XmlOpenReader\" processor=\"PassOpen\" writer=\"JsonOpenWriter\"");
    assert!(!open.contains("blanks"), "{open}");
}
