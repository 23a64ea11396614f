//! The cells of a row that is written. A value that a cell does not hold exactly is rejected.

use std::fmt::Write as _;
use std::ops::Range;

use batch_items::record::decimal;
use batch_items::rows::{FieldSink, FieldValue};

use super::columns::{Column, Kind};
use crate::iso;

/// The longest text of a cell, in the units of UTF-16.
const LONGEST_TEXT: usize = 32_767;
const NANOS_OF_MILLI: i128 = 1_000_000;
const MILLIS_OF_DAY: i128 = iso::NANOS_OF_DAY / NANOS_OF_MILLI;
/// The days from the beginning of Excel's calendar to 1970.
const DAYS_TO_1970: i128 = 25_569;
/// From 1900-03-01 to 9999-12-31. Before it, Excel has a day that never was, 1900-02-29.
const DAYS: Range<i128> = 61..2_958_466;

/// The cells of an item.
#[derive(Default)]
pub(super) struct Cells {
    xml: String,
    /// For each column the range of its cell in `xml`, without `<c r=".."`.
    ranges: Vec<Option<Range<usize>>>,
    /// True if a cell has more than an empty text.
    has_value: bool,
    /// The column of the first value that its cell cannot hold, and the cause.
    error: Option<(usize, String)>,
}

/// Takes the fields of an item.
pub(super) struct CellSink<'c> {
    pub(super) columns: &'c [Column],
    pub(super) cells: &'c mut Cells,
}

impl Cells {
    /// Clears the cells.
    pub(super) fn clear(&mut self) {
        self.xml.clear();
        self.ranges.clear();
        (self.has_value, self.error) = (false, None);
    }

    /// Returns the column of the first value that its cell cannot hold, and the cause.
    pub(super) fn take_error(&mut self) -> Option<(usize, String)> {
        self.error.take()
    }

    pub(super) fn has_value(&self) -> bool {
        self.has_value
    }

    /// Appends the cells as row `number`, from 1.
    pub(super) fn append_row(&self, number: u64, letters: &[String], out: &mut Vec<u8>) {
        let cell = |range: &Option<Range<usize>>| range.clone().map(|range| &self.xml[range]);
        append_row(number, letters, self.ranges.iter().map(cell), out);
    }
}

/// Appends the names of the columns as the first row.
pub(super) fn append_names(names: &[String], letters: &[String], out: &mut Vec<u8>) {
    let cell = |name: &String| {
        let mut xml = String::new();
        append_text_cell(name, &mut xml);
        Some(xml)
    };
    append_row(1, letters, names.iter().map(cell), out);
}

fn append_row<C: AsRef<str>>(
    number: u64,
    letters: &[String],
    cells: impl Iterator<Item = Option<C>>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(format!("<row r=\"{number}\">").as_bytes());
    for (letters, cell) in letters.iter().zip(cells) {
        if let Some(cell) = cell {
            out.extend_from_slice(format!("<c r=\"{letters}{number}\"").as_bytes());
            out.extend_from_slice(cell.as_ref().as_bytes());
        }
    }
    out.extend_from_slice(b"</row>");
}

impl FieldSink for CellSink<'_> {
    fn field(&mut self, index: usize, value: FieldValue<'_>) {
        let general = Column::default();
        let column = self.columns.get(index).unwrap_or(&general);
        let cells = &mut *self.cells;
        let start = cells.xml.len();
        match append_cell(value, column, &mut cells.xml) {
            Ok(()) if cells.xml.len() > start => {
                if cells.ranges.len() <= index {
                    cells.ranges.resize(index + 1, None);
                }
                cells.ranges[index] = Some(start..cells.xml.len());
                cells.has_value |= !matches!(value, FieldValue::Text(""));
            }
            Ok(()) => {}
            Err(cause) => {
                cells.error.get_or_insert((index, cause));
            }
        }
    }
}

/// Appends a cell without the beginning of its tag; nothing for null.
fn append_cell(value: FieldValue<'_>, column: &Column, xml: &mut String) -> Result<(), String> {
    if let FieldValue::Null = value {
        return Ok(());
    }
    let cell = cell(value, column.kind)?;
    if column.style > 0 {
        let _ = write!(xml, " s=\"{}\"", column.style);
    }
    match cell {
        Cell::Bool(value) => {
            let _ = write!(xml, " t=\"b\"><v>{}</v></c>", u8::from(value));
        }
        Cell::Number(number) => {
            let _ = write!(xml, "><v>{number}</v></c>");
        }
        Cell::Text(text) => append_text_cell(&text, xml),
    }
    Ok(())
}

fn append_text_cell(text: &str, xml: &mut String) {
    xml.push_str(" t=\"inlineStr\"><is><t xml:space=\"preserve\">");
    append_text(text, xml);
    xml.push_str("</t></is></c>");
}

/// The content of a cell.
#[derive(Debug, PartialEq)]
enum Cell {
    Bool(bool),
    Number(String),
    Text(String),
}

/// Returns a value as the content of a cell in a column of a type.
fn cell(value: FieldValue<'_>, kind: Kind) -> Result<Cell, String> {
    match (kind, value) {
        (Kind::Any, FieldValue::Bool(value)) => Ok(Cell::Bool(value)),
        (Kind::Any | Kind::Number, FieldValue::Int(_) | FieldValue::Float(_) | FieldValue::Number(_))
        | (Kind::Number, FieldValue::Text(_)) => number(value).map(Cell::Number),
        (Kind::Any | Kind::Text, value) => {
            let text = shown(value);
            check_text(&text).map(|()| Cell::Text(text))
        }
        (Kind::Date | Kind::Time | Kind::Timestamp, FieldValue::Text(text)) => {
            days(text, kind).map(Cell::Number)
        }
        _ => Err(format!(
            "a column of type `{}` cannot hold {}",
            kind.name(),
            quoted(value)
        )),
    }
}

fn shown(value: FieldValue<'_>) -> String {
    match value {
        FieldValue::Null => String::new(),
        FieldValue::Bool(value) => value.to_string(),
        FieldValue::Int(value) => value.to_string(),
        FieldValue::Float(value) => zmij::Buffer::new().format(value).to_owned(),
        FieldValue::Number(text) | FieldValue::Text(text) | FieldValue::Json(text) => text.to_owned(),
        FieldValue::Bytes(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("\\x{digits}")
        }
    }
}

fn quoted(value: FieldValue<'_>) -> String {
    match value {
        FieldValue::Text(text) => format!("{text:?}"),
        value => shown(value),
    }
}

/// Returns a number as a cell has it, which is a float of 64 bits.
fn number(value: FieldValue<'_>) -> Result<String, String> {
    let text = shown(value);
    let float = text.parse::<f64>().unwrap_or(f64::NAN);
    let is_exact = match value {
        FieldValue::Int(value) => float as i128 == i128::from(value),
        FieldValue::Float(_) => true,
        _ => decimal::is_exactly(&text, float),
    };
    // Excel takes a subnormal number for 0.
    if is_exact && (float == 0.0 || float.is_normal()) {
        return Ok(text.strip_prefix('+').unwrap_or(&text).to_owned());
    }
    Err(match value {
        FieldValue::Text(_) => format!(
            "{text:?} is not a number that a float of 64 bits, which is the number of Excel, holds exactly; remove the type from the column, \
             or set it to `text`"
        ),
        _ => format!(
            "a number of Excel is a float of 64 bits, which does not hold {text} exactly; set the type of the column to `text` in `columns`"
        ),
    })
}

/// Fails if a cell cannot hold a text.
pub(super) fn check_text(text: &str) -> Result<(), String> {
    let length = text.encode_utf16().count();
    if length > LONGEST_TEXT {
        return Err(format!(
            "the text has {length} characters in UTF-16, and a cell of Excel holds {LONGEST_TEXT}; shorten it, or write another format"
        ));
    }
    let is_missing = |c: &char| (*c < ' ' && !"\t\n\r".contains(*c)) || matches!(c, '\u{fffe}' | '\u{ffff}');
    match text.chars().find(is_missing) {
        Some(missing) => Err(format!(
            "the text has the character U+{:04X}, which a workbook cannot hold; remove it, or write another format",
            u32::from(missing)
        )),
        None => Ok(()),
    }
}

/// Returns a date or a time as a number of days, which has milliseconds.
fn days(text: &str, kind: Kind) -> Result<String, String> {
    let (nanos, example) = match kind {
        Kind::Date => (iso::date(text), "date such as 2026-11-26"),
        Kind::Time => (iso::clock(text), "time such as 10:00:00"),
        _ => (
            iso::timestamp(text, false),
            "timestamp without a time zone, such as 2026-11-26T10:00:00",
        ),
    };
    let nanos = nanos.ok_or_else(|| format!("{text:?} is not a {example}"))?;
    if nanos % NANOS_OF_MILLI != 0 {
        return Err(format!(
            "{text:?} has a fraction of a millisecond, which Excel does not hold; round it, or set the type of the column to `text`"
        ));
    }
    let first = if kind == Kind::Time { 0 } else { DAYS_TO_1970 };
    let millis = nanos / NANOS_OF_MILLI + first * MILLIS_OF_DAY;
    let whole = millis.div_euclid(MILLIS_OF_DAY);
    if kind != Kind::Time && !DAYS.contains(&whole) {
        return Err(format!(
            "{text:?} is not a date of Excel, which are from 1900-03-01 to 9999-12-31; set the type of the column to `text`"
        ));
    }
    Ok(match millis % MILLIS_OF_DAY {
        0 => whole.to_string(),
        _ => (millis as f64 / MILLIS_OF_DAY as f64).to_string(),
    })
}

/// Appends a text or the value of an attribute.
pub(super) fn append_text(text: &str, xml: &mut String) {
    for (at, c) in text.char_indices() {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            // A parser would make a line feed of it.
            '\r' => xml.push_str("&#13;"),
            '_' if is_escape(&text[at..]) => xml.push_str("_x005F_"),
            c => xml.push(c),
        }
    }
}

/// Returns whether Excel would take the beginning of a text for an escaped character, such as `_x000D_`.
fn is_escape(text: &str) -> bool {
    let [b'_', b'x', digits @ .., b'_'] = &text.as_bytes()[..text.len().min(7)] else {
        return false;
    };
    digits.len() == 4 && digits.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: Kind, value: FieldValue<'_>, expected: Cell) {
        assert_eq!(cell(value, kind), Ok(expected), "{kind:?} {value:?}");
    }

    fn fails(kind: Kind, value: FieldValue<'_>, expected: &str) {
        let error = cell(value, kind).unwrap_err();
        assert!(error.contains(expected), "{kind:?} {value:?}: {error}");
    }

    // Spec: ITEM-VALUE-13
    #[test]
    fn numbers_are_exact() {
        let number = |text: &str| Cell::Number(text.to_owned());
        for (value, expected) in [
            (FieldValue::Int(1 << 53), "9007199254740992"),
            (FieldValue::Int(i64::MIN), "-9223372036854775808"),
            (FieldValue::Float(0.1 + 0.2), "0.30000000000000004"),
            (FieldValue::Float(-0.0), "-0.0"),
            (FieldValue::Float(f64::MAX), "1.7976931348623157e+308"),
            (FieldValue::Number("18446744073709551616"), "18446744073709551616"),
        ] {
            check(Kind::Any, value, number(expected));
            check(Kind::Number, value, number(expected));
        }
        check(Kind::Number, FieldValue::Text("+1.50"), number("1.50"));
        for value in [
            FieldValue::Int((1 << 53) + 1),
            FieldValue::Int(i64::MAX),
            FieldValue::Float(f64::NAN),
            FieldValue::Float(f64::NEG_INFINITY),
            FieldValue::Float(5e-324),
            FieldValue::Number("18446744073709551615"),
            FieldValue::Number("0.1234567890123456789"),
            FieldValue::Number("99999999999999.99"),
            FieldValue::Number("1e400"),
            FieldValue::Number("1e-400"),
        ] {
            fails(
                Kind::Any,
                value,
                "set the type of the column to `text` in `columns`",
            );
            check(Kind::Text, value, Cell::Text(shown(value)));
        }
        for text in [
            "",
            " 1",
            "1,5",
            "NaN",
            "inf",
            "0x10",
            "2024-02-29",
            "9007199254740993",
        ] {
            fails(
                Kind::Number,
                FieldValue::Text(text),
                "is not a number that a float",
            );
        }
        fails(
            Kind::Number,
            FieldValue::Bool(true),
            "a column of type `number` cannot hold true",
        );
    }

    // Spec: ITEM-VALUE-13
    #[test]
    fn texts_are_whole() {
        let xml = |text: &str| {
            let mut xml = String::new();
            append_text(text, &mut xml);
            xml
        };
        for text in [
            "",
            "=1+1",
            "007",
            "2024-02-29",
            "http://example.com",
            "😀".repeat(16_383).as_str(),
        ] {
            check(Kind::Any, FieldValue::Text(text), Cell::Text(text.to_owned()));
        }
        fails(
            Kind::Any,
            FieldValue::Text(&"😀".repeat(16_384)),
            "has 32768 characters in UTF-16",
        );
        for (text, code) in [("a\0", "U+0000"), ("\u{1b}[0m", "U+001B"), ("\u{ffff}", "U+FFFF")] {
            fails(Kind::Any, FieldValue::Text(text), code);
            fails(Kind::Text, FieldValue::Text(text), code);
        }
        assert_eq!(xml("<a & \"b\">\t\r\n"), "&lt;a &amp; &quot;b&quot;&gt;\t&#13;\n");
        assert_eq!(
            xml("_x0041_x000d_ _x41_ _x004g_ __x"),
            "_x005F_x0041_x005F_x000d_ _x41_ _x004g_ __x"
        );
        assert_eq!(xml("_ä_x0041_"), "_ä_x005F_x0041_");
    }

    // Spec: ITEM-VALUE-13
    #[test]
    fn dates_and_times_are_exact() {
        for (kind, text, expected) in [
            (Kind::Date, "1900-03-01", "61"),
            (Kind::Date, "1970-01-01", "25569"),
            (Kind::Date, "2024-02-29", "45351"),
            (Kind::Date, "9999-12-31", "2958465"),
            (Kind::Time, "00:00", "0"),
            (Kind::Time, "18:00:00.000", "0.75"),
            (Kind::Timestamp, "2024-02-29T12:00", "45351.5"),
            (Kind::Timestamp, "2024-02-29 00:00:00", "45351"),
            (Kind::Timestamp, "2024-02-29", "45351"),
            (Kind::Timestamp, "9999-12-31T23:59:59.999", "2958465.9999999884"),
        ] {
            check(kind, FieldValue::Text(text), Cell::Number(expected.to_owned()));
        }
        for (kind, text, cause) in [
            (Kind::Date, "1900-02-28", "is not a date of Excel"),
            (
                Kind::Timestamp,
                "1900-02-28T23:59:59.999",
                "is not a date of Excel",
            ),
            (Kind::Date, "10000-01-01", "is not a date"),
            (Kind::Date, "29.2.2024", "is not a date such as"),
            (Kind::Date, "2024-02-29T00:00:00", "is not a date such as"),
            (Kind::Time, "24:00:00", "is not a time such as"),
            (Kind::Time, "10:00:00.0001", "a fraction of a millisecond"),
            (Kind::Timestamp, "2024-02-29T12:00:00Z", "without a time zone"),
            (
                Kind::Timestamp,
                "2024-02-29T12:00:00+01:00",
                "without a time zone",
            ),
            (
                Kind::Timestamp,
                "2024-02-29T12:00:00.000001",
                "a fraction of a millisecond",
            ),
        ] {
            fails(kind, FieldValue::Text(text), cause);
        }
        fails(
            Kind::Date,
            FieldValue::Int(45_351),
            "a column of type `date` cannot hold 45351",
        );
    }
}
