//! A program whose steps write files and tables, each with another writer; see `batch_tests::writing`, which runs and kills it.
#![allow(missing_docs, reason = "a program for tests")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a program for tests")]

use std::env;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

// Links the batchlets that the jobs name.
use batch_batchlets as _;
use batch_items::file::FileFrame;
use batch_items::{
    CompositeItemWriter, DelimitedItemReader, DelimitedItemWriter, FixedWidthItemWriter, JsonArrayItemReader,
    JsonArrayItemWriter, JsonLinesItemReader, JsonLinesItemWriter, LineItemReader, LineItemWriter, Record,
    TableItemWriter, XmlItemReader, XmlItemWriter, function_processor, insertable_writer,
};
use batch_runtime::prelude::*;
use batch_tests::writing::{EVENT, EVENTS, PEAK, WAITING, WRONG_FROM};
use diesel::connection::{Instrumentation, InstrumentationEvent, set_default_instrumentation};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};

/// True once a wrong row was read.
static WRONG: AtomicBool = AtomicBool::new(false);

/// Prints a line that lets the test kill the process.
fn event(what: &str) {
    if env::var_os(EVENTS).is_some() {
        // A test that has killed this process reads no more.
        let _ = writeln!(io::stdout(), "{what}");
    }
}

#[derive(Clone, Deserialize, Serialize)]
struct Row {
    id: i64,
    name: String,
    cents: Option<i64>,
}

/// Makes the rows up to `rows`. From the ordered row on they are wrong, and do not end.
#[derive(BatchArtifact)]
struct Rows {
    #[batch_context]
    step: StepContext,
    #[batch_property(name = "rows")]
    rows: i64,
    /// The additional characters of a row.
    #[batch_property(name = "width", value = "0")]
    width: usize,
    last: i64,
    /// The first wrong row.
    wrong_from: Option<i64>,
}

#[item_reader("Rows", rewindable = true)]
impl Rows {
    #[open]
    fn open(&mut self, checkpoint: Option<i64>) {
        self.last = checkpoint.unwrap_or(0);
        let order = env::var(WRONG_FROM).unwrap_or_default();
        let row = order.strip_prefix(self.step.id());
        self.wrong_from = row.and_then(|row| row.strip_prefix(':')?.parse().ok());
    }

    #[read_item]
    fn read(&mut self) -> Option<Row> {
        event(EVENT);
        let id = self.last + 1;
        let wrong = self.wrong_from.is_some_and(|first| id >= first);
        if id > self.rows && !wrong {
            return None;
        }
        self.last = id;
        WRONG.fetch_or(wrong, Ordering::SeqCst);
        let names = ["Ada", "", "\"quoted\", \\", "a, b; c", "two\nlines", "<ä & €😀>"];
        let (name, times) = match wrong {
            true => ("wrong", 2_000),
            false => (names[id as usize % names.len()], id as usize % 5 + 1),
        };
        Some(Row {
            id,
            name: name.repeat(times) + &digits(id, self.width),
            cents: (id % 3 != 0).then_some(id * 101),
        })
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) -> i64 {
        self.last
    }
}

/// Returns characters that do not compress well.
fn digits(seed: i64, count: usize) -> String {
    let mut state = seed.unsigned_abs().wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + (state >> 59) as u8 % 26)
    };
    std::iter::repeat_with(next).take(count).collect()
}

function_processor!(ToRow("ToRow"): |row: &Row| -> Option<Row> { Some(row.clone()) });
function_processor!(ToPlain("ToPlain"): |row: &Row| -> Option<Row> {
    let name: String = row.name.chars().map(|c| if c.is_ascii_graphic() { c } else { '.' }).collect();
    Some(Row { name: name.chars().take(20).collect(), ..row.clone() })
});
function_processor!(ToLine("ToLine"): |line: &String| -> Option<String> { Some(String::clone(line)) });
function_processor!(ToText("ToText"): |row: &Row| -> Option<String> {
    Some(format!("{} {}", row.id, row.name.replace('\n', " ")))
});

/// The row of a table with a separate row for each run.
#[derive(Insertable, Serialize)]
#[diesel(table_name = inserted)]
struct TableRow {
    run: i64,
    id: i64,
    name: String,
    cents: Option<i64>,
}

diesel::table! {
    inserted (run, id) {
        run -> BigInt,
        id -> BigInt,
        name -> Text,
        cents -> Nullable<BigInt>,
    }
}

#[derive(BatchArtifact)]
struct ToTableRow {
    #[batch_property(name = "run", value = "0")]
    run: i64,
}

#[item_processor("ToTableRow")]
impl ToTableRow {
    #[process_item]
    fn process(&mut self, row: Row) -> Option<TableRow> {
        let Row { id, name, cents } = row;
        Some(TableRow {
            run: self.run,
            id,
            name,
            cents,
        })
    }
}

/// The number of the rows and the sum of their cents, a footer.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Totals {
    count: u64,
    cents: i64,
}

impl FileFrame<Row> for Totals {
    fn header(&self) -> Option<String> {
        Some("rows of a test\n".to_owned())
    }
    fn add(&mut self, row: &Row) {
        self.count += 1;
        self.cents += row.cents.unwrap_or(0);
    }
    fn footer(&self) -> Option<String> {
        Some(format!("{} rows, {} cents\n", self.count, self.cents))
    }
}

#[item_reader("RowFile")]
type RowFile = DelimitedItemReader<Row>;
#[item_reader("LineFile")]
type LineFile = LineItemReader<String>;
#[item_reader("JsonLinesFile")]
type JsonLinesFile = JsonLinesItemReader<Row>;
#[item_reader("JsonArrayFile")]
type JsonArrayFile = JsonArrayItemReader<Row>;
#[item_reader("XmlFile")]
type XmlFile = XmlItemReader<Row>;

#[item_writer("DelimitedRows")]
type DelimitedRows = DelimitedItemWriter<Row>;
#[item_writer("DelimitedTotals")]
type DelimitedTotals = DelimitedItemWriter<Row, Totals>;
#[item_writer("FixedWidthRows")]
type FixedWidthRows = FixedWidthItemWriter<Row>;
#[item_writer("TextRows")]
type TextRows = LineItemWriter<String>;
#[item_writer("JsonLinesRows")]
type JsonLinesRows = JsonLinesItemWriter<Row>;
#[item_writer("JsonArrayRows")]
type JsonArrayRows = JsonArrayItemWriter<Row>;
#[item_writer("XmlRows")]
type XmlRows = XmlItemWriter<Row>;
#[item_writer("RecordsToBoth")]
type RecordsToBoth = CompositeItemWriter<Record, TableItemWriter<Record>, TableItemWriter<Record>>;
#[item_writer("TableRows")]
type TableRows = TableItemWriter<TableRow>;
insertable_writer!(InsertedRows("InsertedRows"): TableRow => inserted::table, sqlite);

/// Prints an event before each statement, and never commits a wrong row.
struct Statements;

impl Instrumentation for Statements {
    fn on_connection_event(&mut self, happened: InstrumentationEvent<'_>) {
        let InstrumentationEvent::StartQuery { query, .. } = happened else {
            return;
        };
        event(EVENT);
        if query.to_string() == "COMMIT" && WRONG.load(Ordering::SeqCst) {
            event(WAITING);
            loop {
                thread::park();
            }
        }
    }
}

fn statements() -> Option<Box<dyn Instrumentation>> {
    Some(Box::new(Statements))
}

fn main() -> ExitCode {
    set_default_instrumentation(statements).expect("the lock is not poisoned");
    event(EVENT);
    let code = batch_cli::main();
    if env::var_os(PEAK).is_some() {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        eprintln!("{PEAK}{}", peak.unwrap());
    }
    code
}
