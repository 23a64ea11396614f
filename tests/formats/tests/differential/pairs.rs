//! The pairs of a format of ours and an independent program, and the documents of each.

use batch_items::Value;
use batch_tests::random::Random;

use super::document::{Document, Generator, Kind, Options};

/// A format, its artifacts, and the form of its documents.
pub(crate) struct Pair {
    pub(crate) name: &'static str,
    /// What our files are called, after their number.
    pub(crate) extension: &'static str,
    /// There is none for some formats.
    pub(crate) writer: Option<&'static str>,
    pub(crate) reader: &'static str,
    /// Makes records of what is read.
    pub(crate) processor: &'static str,
    form: fn(&mut Generator<'_>) -> Form,
}

/// The columns of a document, and how it is written.
#[derive(Default)]
struct Form {
    names: Vec<String>,
    kinds: Vec<Kind>,
    writing: Options,
    reading: Options,
}

use Kind::{Bool, Bytes, Date, Decimal, Float, Int, Json, Text, Timestamp};

const PAIRS: &[Pair] = &[
    Pair {
        name: "csv",
        extension: "csv",
        writer: Some("recordCsvWriter"),
        reader: "csvRecordReader",
        processor: "recordProcessor",
        form: csv,
    },
    Pair {
        name: "json_lines",
        extension: "jsonl",
        writer: Some("recordJsonlWriter"),
        reader: "jsonlRecordReader",
        processor: "recordProcessor",
        form: json,
    },
    Pair {
        name: "json_array",
        extension: "json",
        writer: Some("recordJsonArrayWriter"),
        reader: "jsonArrayRecordReader",
        processor: "recordProcessor",
        form: json,
    },
    Pair {
        name: "gzip",
        extension: "jsonl.gz",
        writer: Some("recordJsonlWriter"),
        reader: "jsonlRecordReader",
        processor: "recordProcessor",
        form: json,
    },
    Pair {
        name: "zstd",
        extension: "jsonl.zst",
        writer: Some("recordJsonlWriter"),
        reader: "jsonlRecordReader",
        processor: "recordProcessor",
        form: json,
    },
    Pair {
        name: "xml",
        extension: "xml",
        writer: Some("recordXmlWriter"),
        reader: "xmlRecordReader",
        processor: "elementFields",
        form: xml,
    },
    Pair {
        name: "parquet",
        extension: "parquet",
        writer: Some("recordParquetWriter"),
        reader: "parquetRecordReader",
        processor: "recordProcessor",
        form: parquet,
    },
    Pair {
        name: "arrow",
        extension: "arrow",
        writer: None,
        reader: "arrowRecordReader",
        processor: "recordProcessor",
        form: arrow,
    },
    Pair {
        name: "xlsx",
        extension: "xlsx",
        writer: Some("recordXlsxWriter"),
        reader: "xlsxRecordReader",
        processor: "recordProcessor",
        form: xlsx,
    },
    Pair {
        name: "sqlite",
        extension: "",
        writer: Some("recordTableWriter"),
        reader: "queryRecordReader",
        processor: "recordProcessor",
        form: sqlite,
    },
    Pair {
        name: "postgres",
        extension: "",
        writer: Some("recordTableWriter"),
        reader: "queryRecordReader",
        processor: "recordProcessor",
        form: postgres,
    },
];

/// Returns the pair of a name.
pub(crate) fn pair(name: &str) -> &'static Pair {
    PAIRS
        .iter()
        .find(|pair| pair.name == name)
        .expect("a name of a pair")
}

impl Pair {
    /// Returns whether documents are tables of a database.
    pub(crate) fn is_table(&self) -> bool {
        self.reader == "queryRecordReader"
    }

    /// Returns the document of a seed, always the same.
    pub(crate) fn document(&self, seed: u64) -> Document {
        let mut random = Random::seeded(seed);
        let mut generator = Generator {
            random: &mut random,
            allows: |_| true,
            first_year: 1,
            eternal: &[],
        };
        let Form {
            mut names,
            kinds,
            mut writing,
            reading,
        } = (self.form)(&mut generator);
        let mut rows = generator.rows(&kinds);
        if self.name == "xlsx" {
            writing = sheet_columns(&mut generator, &mut names, &kinds, &mut rows);
        }
        if self.is_table() {
            // The first column is the key, which orders the rows when they are read.
            let keys = rows.iter_mut().zip(1_i64..);
            keys.for_each(|(row, number)| row[0] = Value::Int(number));
        }
        let name = match self.is_table() {
            true => format!("t{seed}"),
            false => format!("{seed}.{}", self.extension),
        };
        Document {
            seed,
            name,
            names,
            kinds,
            rows,
            writing,
            reading,
        }
    }
}

fn option(name: &'static str, value: impl Into<String>) -> (&'static str, String) {
    (name, value.into())
}

/// The encodings of text, and whether both sides have the characters of a part.
type Encoding = (&'static str, fn(&str) -> bool);

const ENCODINGS: &[Encoding] = &[
    ("utf-8", |_| true),
    ("windows-1252", |part| has_only(part, "äßéŽ€\u{a0}\u{ad}")),
    ("iso-8859-15", |part| has_only(part, "äßéŽ€\u{a0}\u{ad}")),
    ("koi8-r", |part| has_only(part, "аЖ\u{a0}")),
    ("shift_jis", |part| has_only(part, "ソ表ポク乗аЖ")),
    ("euc-jp", |part| has_only(part, "ソ表ポク乗аЖ")),
    ("gbk", |part| has_only(part, "表寍丂аЖ")),
    ("gb18030", |part| part != "\u{e000}"),
    ("iso-2022-jp", |part| {
        has_only(part, "ソ表ポク乗аЖ") && !part.contains(['\u{1b}', '\u{e}', '\u{f}', '\\', '~'])
    }),
];

fn has_only(part: &str, others: &str) -> bool {
    part.chars().all(|c| c.is_ascii() || others.contains(c))
}

fn csv(g: &mut Generator<'_>) -> Form {
    let mut form = Form::default();
    let both = |form: &mut Form, name, value: &str| {
        form.writing.push(option(name, value));
        form.reading.push(option(name, value));
    };
    let (encoding, allows) = g.pick(ENCODINGS);
    g.allows = allows;
    both(&mut form, "encoding", encoding);
    both(&mut form, "delimiter", g.pick(&[",", ";", "tab", "|", ":", "^"]));
    both(&mut form, "quote", g.pick(&["\"", "\"", "'", "`"]));
    if g.one_in(3) {
        both(&mut form, "escape", "\\");
    }
    form.writing
        .push(option("quotes", g.pick(&["necessary", "always", "text"])));
    form.writing.push(option("line.end", g.pick(&["lf", "crlf"])));
    if g.one_in(4) {
        form.reading.push(option("comment", g.pick(&["#", "%"])));
    }
    if encoding == "utf-8" && g.one_in(4) {
        form.reading[0].1 = "utf-16".to_owned();
    }
    form.names = g.names(5);
    if g.one_in(3) {
        // A list cannot contain odd names.
        form.names = (0..form.names.len())
            .map(|number| format!("column{number}"))
            .collect();
        both(&mut form, "header", "false");
        let columns = form.names.join(",");
        both(&mut form, "columns", &columns);
    }
    form.kinds = g.kinds(
        form.names.len(),
        &[Text, Text, Text, Int, Float, Decimal, Bool, Bytes],
    );
    form
}

fn json(g: &mut Generator<'_>) -> Form {
    let names = g.names(5);
    Form {
        kinds: g.kinds(names.len(), &[Text, Text, Int, Float, Decimal, Bool, Bytes, Json]),
        names,
        ..Form::default()
    }
}

/// The names of elements and, with `@`, of attributes.
pub(crate) const MARKUP_NAMES: &[&str] = &["@id", "@größe", "a", "b-c", "d.e", "_f", "größe", "row", "x1"];

fn xml(g: &mut Generator<'_>) -> Form {
    // Both directions have the same encoding, which has all characters of names. A reference stands for others.
    let encoding = g.pick(&["utf-8", "windows-1252"]);
    g.allows = match encoding {
        "utf-8" => is_markup_text,
        _ => |part| is_markup_text(part) && has_only(part, "äßéŽ€\u{a0}"),
    };
    let names: Vec<String> = MARKUP_NAMES
        .iter()
        .filter(|_| g.one_in(2))
        .map(|name| (*name).to_owned())
        .collect();
    let names = if names.is_empty() {
        vec!["a".to_owned()]
    } else {
        names
    };
    let options = vec![option("element", "row"), option("encoding", encoding)];
    Form {
        kinds: g.kinds(names.len(), &[Text, Text, Text, Int, Float, Decimal, Bool]),
        names,
        writing: options.clone(),
        reading: options,
    }
}

/// Returns whether XML 1.0 can contain a text.
fn is_markup_text(part: &str) -> bool {
    part.chars()
        .all(|c| matches!(c, '\t' | '\n' | '\r') || (c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}')))
}

fn parquet(g: &mut Generator<'_>) -> Form {
    // Job XML has no other characters, and takes `${a}` for a symbol.
    g.allows = |part| is_markup_text(part) && !part.contains(['$', '#']);
    let mut form = arrow(g);
    g.allows = |_| true;
    for (number, name) in form.names.iter_mut().enumerate() {
        // The property `columns` separates them by commas and blanks.
        if name.contains(|c: char| c.is_whitespace() || ",()".contains(c)) {
            *name = format!("column{number}");
        }
    }
    let column = |(name, kind): (&String, &Kind)| {
        let kind = match kind {
            Text | Json => "Utf8",
            Int => "Int64",
            Float => "Float64",
            Decimal => "Decimal128(38, 10)",
            Bool => "Boolean",
            Bytes => "Binary",
            Date => "Date32",
            Timestamp => "Timestamp(µs)",
        };
        format!("{name} {kind}")
    };
    let columns: Vec<_> = form.names.iter().zip(&form.kinds).map(column).collect();
    form.writing = vec![
        option("columns", columns.join(", ")),
        option("codec", g.pick(&["none", "snappy", "gzip", "zstd"])),
        option("row.group.size", g.pick(&["1", "2", "100000"])),
    ];
    form
}

fn arrow(g: &mut Generator<'_>) -> Form {
    let names = g.names(6);
    Form {
        kinds: g.kinds(
            names.len(),
            &[Text, Text, Int, Float, Decimal, Bool, Bytes, Date, Timestamp],
        ),
        names,
        ..Form::default()
    }
}

fn xlsx(g: &mut Generator<'_>) -> Form {
    // openpyxl writes neither other controls nor the escape of a character, `_x0041_`, and cuts a text after 32,767 characters: a long one
    // has 3,000 parts.
    g.allows = |part| is_markup_text(part) && !part.contains('\r') && part.len() <= 10;
    g.first_year = 1900;
    // Blanks around the names of columns are removed.
    let mut names = g.names(5);
    for (number, name) in names.iter_mut().enumerate() {
        if name.trim() != name {
            *name = format!("column{number}");
        }
    }
    Form {
        kinds: g.kinds(names.len(), &[Text, Text, Int, Float, Bool, Date, Timestamp]),
        names,
        ..Form::default()
    }
}

/// Returns the properties of the writer of a sheet: the types that hold the values. Timestamps get milliseconds, which Excel has.
fn sheet_columns(
    g: &mut Generator<'_>,
    names: &mut [String],
    kinds: &[Kind],
    rows: &mut [Vec<Value>],
) -> Options {
    let mut columns = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        let mut values: Vec<_> = rows.iter_mut().map(|row| &mut row[index]).collect();
        for value in &mut values {
            if let (Timestamp, Value::Text(text)) = (kind, &mut **value) {
                text.truncate("2024-02-29T12:30:00.125".len());
            }
        }
        let is_held = values.iter().all(|value| match value {
            Value::Int(number) => *number as f64 as i128 == i128::from(*number),
            Value::Float(number) => *number == 0.0 || number.is_normal(),
            Value::Text(text) => **text >= *"1900-03-01",
            _ => true,
        });
        columns.push(match kind {
            Int | Float if is_held => g.pick(&["", " number", " number(0.00)", " text"]),
            Int | Float => " text",
            Date if is_held => g.pick(&["", " date", " date(dd.mm.yyyy)"]),
            Timestamp if is_held => g.pick(&[" timestamp", " timestamp(d/m/yy h:mm AM/PM)"]),
            _ => g.pick(&["", " text"]),
        });
    }
    let mut writing = Vec::new();
    if g.one_in(4) {
        writing.push(option("header", "false"));
    }
    if columns.iter().all(|column| column.is_empty()) && g.one_in(2) {
        return writing;
    }
    for (number, name) in names.iter_mut().enumerate() {
        // The property separates them by commas that are not in brackets.
        if name.contains([',', '(', ')', '$', '#']) {
            *name = format!("column{number}");
        }
    }
    let columns = names
        .iter()
        .zip(columns)
        .map(|(name, kind)| format!("{name}{kind}"));
    writing.push(option("columns", columns.collect::<Vec<_>>().join(", ")));
    writing
}

fn sqlite(g: &mut Generator<'_>) -> Form {
    let form = table(g);
    g.allows = |_| true;
    form
}

fn postgres(g: &mut Generator<'_>) -> Form {
    g.eternal = &[
        (Date, "infinity"),
        (Date, "-infinity"),
        (Date, "4713-01-01 BC"),
        (Date, "294276-12-31"),
        (Timestamp, "infinity"),
        (Timestamp, "-infinity"),
        (Timestamp, "0044-03-15 12:30:00.5 BC"),
    ];
    table(g)
}

fn table(g: &mut Generator<'_>) -> Form {
    // SQLite's shell has no CR in statements.
    g.allows = |part| !part.contains(['\0', '\r']);
    let mut names = g.names(6);
    names[0] = "n".to_owned();
    // PostgreSQL has no U+0000.
    g.allows = |part| !part.contains('\0');
    let mut kinds = g.kinds(
        names.len(),
        &[Text, Text, Int, Float, Decimal, Bool, Bytes, Date, Timestamp],
    );
    kinds[0] = Int;
    Form {
        kinds,
        names,
        ..Form::default()
    }
}
