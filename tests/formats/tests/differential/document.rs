//! Tables with nasty values, made from a seed.

use batch_items::{Record, Value};
use batch_tests::random::Random;
use serde_json::json;

/// The kind of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Int,
    Float,
    Decimal,
    Bool,
    Bytes,
    Date,
    Timestamp,
    /// A text that is JSON; in files of JSON, the JSON itself.
    Json,
}

/// Properties of an artifact, or columns of Arrow with their types.
pub(crate) type Options = Vec<(&'static str, String)>;

/// A table and its properties in Job XML, which the independent program gets as well.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) seed: u64,
    /// The name of the files, or of the tables.
    pub(crate) name: String,
    pub(crate) names: Vec<String>,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) rows: Vec<Vec<Value>>,
    /// The properties of the writer.
    pub(crate) writing: Options,
    /// The properties of the reader.
    pub(crate) reading: Options,
}

impl Document {
    pub(crate) fn records(&self) -> Vec<Record> {
        let record = |row: &Vec<Value>| {
            let mut record = Record::new();
            for (name, value) in self.names.iter().zip(row) {
                record.set(name, value.clone());
            }
            record
        };
        self.rows.iter().map(record).collect()
    }

    /// Returns the document as JSON: every value is a text or null.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let text = |value: &Value| match value {
            Value::Null => None,
            // The digits, without the `\x` before them.
            Value::Bytes(_) => Some(value.to_string().split_off(2)),
            _ => Some(value.to_string()),
        };
        let row = |row: &Vec<Value>| row.iter().map(text).collect::<Vec<_>>();
        let options = |options: &Options| {
            let pairs = options.iter().map(|(name, value)| (*name, json!(value)));
            pairs.collect::<serde_json::Value>()
        };
        json!({
            "seed": self.seed,
            "name": self.name,
            "names": self.names,
            "kinds": self.kinds.iter().map(|kind| format!("{kind:?}")).collect::<Vec<_>>(),
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "writing": options(&self.writing),
            "reading": options(&self.reading),
        })
    }
}

/// Parts of texts. What a format cannot contain, it leaves out.
const PARTS: &[&str] = &[
    "a",
    "x y",
    " ",
    "  ",
    "\t",
    ",",
    ";",
    "|",
    ":",
    "\"",
    "\"\"",
    "'",
    "''",
    "`",
    "\\",
    "\\\\",
    "\\\"",
    "\\'",
    "\\n",
    "\\t",
    "\\N",
    "\\.",
    "\\x41",
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "\n\r",
    "#",
    "%",
    "--",
    "/*",
    "\0",
    "\u{1}",
    "\u{8}",
    "\u{b}",
    "\u{c}",
    "\u{1a}",
    "\u{1b}[0m",
    "\u{1f}",
    "\u{7f}",
    "\u{85}",
    "\u{a0}",
    "\u{ad}",
    "\u{200b}",
    "\u{200e}",
    "\u{2028}",
    "\u{2029}",
    "\u{202e}",
    "\u{feff}",
    "\u{fffd}",
    "\u{fffe}",
    "\u{ffff}",
    "\u{e000}",
    "\u{10ffff}",
    "\u{fdd0}",
    "ä",
    "ß",
    "é",
    "e\u{301}",
    "€",
    "Ž",
    "İ",
    "ﬁ",
    "ソ",
    "表",
    "ポ",
    "ク",
    "乗",
    "寍",
    "丂",
    "а",
    "Ж",
    "😀",
    "👩\u{200d}👩\u{200d}👧",
    "🇩🇪",
    "𝄞",
    "ก็",
    "مرحبا",
    "<",
    ">",
    "&",
    "]]>",
    "<![CDATA[",
    "&amp;",
    "&lt;",
    "&#13;",
    "&#x0;",
    "&unknown;",
    "<!--",
    "-->",
    "</row>",
    "<?xml?>",
    "%20",
    "null",
    "NULL",
    "None",
    "true",
    "NaN",
    "inf",
    "-0",
    "007",
    "1e5",
    "0x10",
    "1.50",
    "=1+1",
    "@SUM(A1)",
    "+1",
    "-1",
    "2024-02-29",
    "{\"a\":[1,null]}",
    "[",
    "]",
    "{",
    "}",
    "$1",
    "${a}",
    "#{b}",
    "%s",
    "\u{fb03}",
    "x\u{308}\u{323}",
];

const INTS: &[i64] = &[
    0,
    1,
    -1,
    i64::MIN,
    i64::MIN + 1,
    i64::MAX,
    i64::MAX - 1,
    i32::MAX as i64 + 1,
    i32::MIN as i64 - 1,
    1 << 53,
    (1 << 53) + 1,
    -(1 << 53) - 1,
    1_000_000_000_000_000_000,
];

const FLOATS: &[f64] = &[
    0.0,
    -0.0,
    0.1,
    0.1 + 0.2,
    1.0 / 3.0,
    1e23,
    -1e22,
    1e21,
    1e-7,
    1e16,
    9_007_199_254_740_993.0,
    5e-324,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    2.225_073_858_507_201e-308,
    1.5,
    -3.0,
    1e15,
];

const DECIMALS: &[&str] = &[
    "0",
    "0.1",
    "-0.1",
    "1.50",
    "0.3000000001",
    "18446744073709551615",
    "-9223372036854775809",
    "9007199254740993.0000000001",
    "1234567890123456789012345678.0123456789",
    "-9999999999999999999999999999.9999999999",
    "0.0000000001",
    "100000000000000000000",
    "1000",
    "0.0001",
    "10000.0001",
];

const DATES: &[&str] = &[
    "1970-01-01",
    "1969-12-31",
    "0001-01-01",
    "0999-12-31",
    "1582-10-10",
    "1900-02-28",
    "2000-02-29",
    "2024-02-29",
    "9999-12-31",
];

const JSON: &[&str] = &[
    "[]",
    "{}",
    "[1,null,true,\"x\"]",
    "{\"a\":{\"b\":[[],{}]}}",
    "{\"\":\"\",\"a b\":\"] }\"}",
    "[12345678901234567890123.4567890123456789]",
    "[-0.0,1e400,1.50,18446744073709551615]",
    "{\"t\":\"\\\" \\\\ \\n \\u0000 \\u2028 \\ud83d\\ude00\"}",
    "[[[[[[[[[[[[1]]]]]]]]]]]]",
];

/// Makes documents for a format.
pub(crate) struct Generator<'r> {
    pub(crate) random: &'r mut Random,
    /// Whether the format can contain a part of a text.
    pub(crate) allows: fn(&str) -> bool,
    /// The first year that the format has.
    pub(crate) first_year: usize,
    /// Further dates and timestamps of the format.
    pub(crate) eternal: &'static [(Kind, &'static str)],
}

impl Generator<'_> {
    pub(crate) fn index(&mut self, below: usize) -> usize {
        usize::try_from(self.random.below(below as u64)).unwrap()
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.random.below(count) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// Returns up to 10 rows.
    pub(crate) fn rows(&mut self, kinds: &[Kind]) -> Vec<Vec<Value>> {
        let count = self.index(11);
        let mut row = || kinds.iter().map(|kind| self.value(*kind)).collect();
        (0..count).map(|_| row()).collect()
    }

    /// Returns up to `most` different names of columns.
    pub(crate) fn names(&mut self, most: usize) -> Vec<String> {
        let count = 1 + self.index(most);
        let mut names: Vec<String> = Vec::new();
        for number in 0..count {
            let odd = self.short_text();
            let is_new =
                !odd.is_empty() && !names.iter().any(|name| name.to_lowercase() == odd.to_lowercase());
            names.push(if is_new && self.one_in(2) {
                odd
            } else {
                format!("column{number}")
            });
        }
        names
    }

    pub(crate) fn kinds(&mut self, count: usize, choices: &[Kind]) -> Vec<Kind> {
        (0..count).map(|_| self.pick(choices)).collect()
    }

    fn value(&mut self, kind: Kind) -> Value {
        if self.one_in(8) {
            return Value::Null;
        }
        match kind {
            Kind::Text => Value::Text(self.text()),
            Kind::Int if self.one_in(2) => Value::Int(self.pick(INTS)),
            Kind::Int => Value::Int(self.bits() as i64 >> self.index(64)),
            Kind::Float if self.one_in(2) => Value::Float(self.pick(FLOATS)),
            Kind::Float => Value::Float(self.float()),
            Kind::Decimal if self.one_in(2) => Value::Decimal(self.pick(DECIMALS).to_owned()),
            Kind::Decimal => Value::Decimal(self.decimal()),
            Kind::Bool => Value::Bool(self.one_in(2)),
            Kind::Bytes => {
                let length = self.index(20);
                Value::Bytes((0..length).map(|_| self.bits() as u8).collect())
            }
            Kind::Date | Kind::Timestamp if !self.eternal.is_empty() && self.one_in(6) => {
                let fitting = self.eternal.iter().filter(|(of, _)| *of == kind);
                let texts: Vec<_> = fitting.map(|(_, text)| *text).collect();
                Value::Text(self.pick(&texts).to_owned())
            }
            Kind::Date => Value::Text(self.date()),
            Kind::Timestamp => Value::Text(self.timestamp()),
            Kind::Json => Value::Text(self.pick(JSON).to_owned()),
        }
    }

    fn short_text(&mut self) -> String {
        let count = self.index(4);
        let mut part = || self.part();
        (0..count).map(|_| part()).collect()
    }

    fn text(&mut self) -> String {
        if self.one_in(60) {
            let (part, times) = (self.part(), 1000 + self.index(2000));
            return part.repeat(times);
        }
        let count = self.index(7);
        (0..count).map(|_| self.part()).collect()
    }

    fn part(&mut self) -> &'static str {
        loop {
            let part = self.pick(PARTS);
            if (self.allows)(part) {
                return part;
            }
        }
    }

    fn bits(&mut self) -> u64 {
        self.random.below(1 << 32) << 32 | self.random.below(1 << 32)
    }

    fn float(&mut self) -> f64 {
        let float = f64::from_bits(self.bits());
        if float.is_finite() { float } else { 0.5 }
    }

    /// Returns a number with 28 digits before the point and 10 after it, at most.
    fn decimal(&mut self) -> String {
        let mut digits = |most| {
            let count = 1 + self.index(most);
            (0..count)
                .map(|_| char::from(b'0' + self.index(10) as u8))
                .collect::<String>()
        };
        let (whole, fraction) = (digits(28), digits(10));
        let whole = whole.trim_start_matches('0');
        let sign = if self.one_in(2) { "-" } else { "" };
        let whole = if whole.is_empty() { "0" } else { whole };
        format!("{sign}{whole}.{fraction}")
    }

    fn date(&mut self) -> String {
        let date = self.pick(DATES);
        if self.one_in(2) && *date >= *format!("{:04}", self.first_year) {
            return date.to_owned();
        }
        let year = self.first_year + self.index(10_000 - self.first_year);
        let (month, day) = (1 + self.index(12), 1 + self.index(28));
        format!("{year:04}-{month:02}-{day:02}")
    }

    fn timestamp(&mut self) -> String {
        let clock = match self.index(4) {
            0 => "00:00:00".to_owned(),
            1 => "23:59:59.999999".to_owned(),
            2 => format!("12:30:00.{:06}", self.index(1_000_000)),
            _ => format!(
                "{:02}:{:02}:{:02}",
                self.index(24),
                self.index(60),
                self.index(60)
            ),
        };
        format!("{}T{clock}", self.date())
    }
}
