//! Artifacts made of others, and artifacts of one expression.

use batch_items::compose::{BulkLookup, Classified, ProcessItem, Validate, WriteItems};
use batch_items::file::FileFrame;
use batch_items::{
    ClassifierItemWriter, CompositeItemWriter, DelimitedItemWriter, EnrichingItemWriter,
    FlatteningItemWriter, JsonLinesItemWriter, LineItemWriter, ProcessorChain, ResourceError,
    TableItemWriter, ValidatingProcessor,
};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use diesel::connection::SimpleConnection;
use serde::{Deserialize, Serialize};

use super::stage::Stage;

batch_items::iterator_reader!(Numbers("numbers"): u64 = 1..=20);
batch_items::function_processor!(Rows("rows"): |number: &u64| -> Option<Row> {
    (*number != 13).then_some(Row { id: *number })
});
batch_items::function_processor!(Wides("wides"): |number: &u64| -> Option<Wide> {
    (*number != 13).then(|| Wide { id: *number, text: "x".repeat(100_000) })
});
batch_items::function_processor!(Copies("copies"): |number: &u64| -> Option<Vec<Row>> {
    Some((0..*number % 3).map(|_| Row { id: *number }).collect())
});

#[derive(Clone, Debug, Serialize)]
struct Row {
    id: u64,
}

/// A row: eleven of them are more than a file keeps in memory.
#[derive(Clone, Debug, Serialize)]
struct Wide {
    id: u64,
    text: String,
}

impl Classified for Row {
    fn class(&self) -> usize {
        match self.id {
            19 => 3,
            20 => 4,
            id => 1 + usize::from(id.is_multiple_of(2)),
        }
    }
}

/// The sum of the ids, at the end of the file.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Sum(u64);

impl FileFrame<Row> for Sum {
    fn add(&mut self, row: &Row) {
        self.0 += row.id;
    }
    fn footer(&self) -> Option<String> {
        Some(format!("sum {}\n", self.0))
    }
}

/// The file comes first: it has to forget what the table rejects.
#[item_writer("everything")]
type Everything =
    CompositeItemWriter<Row, DelimitedItemWriter<Row, Sum>, TableItemWriter<Row>, JsonLinesItemWriter<Row>>;

#[item_writer("four")]
type Four = CompositeItemWriter<
    Row,
    DelimitedItemWriter<Row>,
    JsonLinesItemWriter<Row>,
    TableItemWriter<Row>,
    DelimitedItemWriter<Row>,
>;

#[item_writer("wide")]
type WideRows = CompositeItemWriter<Wide, DelimitedItemWriter<Wide>, TableItemWriter<Wide>>;

#[item_writer("byClass")]
type ByClass = ClassifierItemWriter<
    Row,
    DelimitedItemWriter<Row>,
    TableItemWriter<Row>,
    DelimitedItemWriter<Row>,
    JsonLinesItemWriter<Row>,
>;

#[item_writer("twoClasses")]
type TwoClasses = ClassifierItemWriter<Row, DelimitedItemWriter<Row>, TableItemWriter<Row>>;

#[item_writer("flattened")]
type Flattened = FlatteningItemWriter<Row, DelimitedItemWriter<Row>>;

/// Adds the number of items of the list.
#[derive(BatchArtifact)]
struct Neighbours;

impl BulkLookup<Row> for Neighbours {
    type Output = String;

    fn look_up(&mut self, rows: &[&Row], _tx: &mut ChunkTransaction) -> Result<Vec<String>, BatchError> {
        Ok(rows
            .iter()
            .map(|row| format!("{} of {}", row.id, rows.len()))
            .collect())
    }
}

#[item_writer("enriched")]
type Enriched = EnrichingItemWriter<Row, Neighbours, LineItemWriter<String>>;

/// Creates a file when it is closed.
#[derive(BatchArtifact)]
struct ClosedWriter {
    #[batch_property(name = "closed")]
    closed: String,
}

impl WriteItems<Row> for ClosedWriter {
    type Position = ();

    fn open(&mut self, _checkpoint: Option<()>) -> Result<(), BatchError> {
        Ok(())
    }

    fn write(&mut self, _rows: &[&Row], _tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        Ok(())
    }

    fn position(&mut self) -> Result<(), BatchError> {
        Ok(())
    }

    fn close(&mut self) {
        std::fs::write(&self.closed, "").unwrap();
    }
}

#[item_writer("fourClosed")]
type FourClosed = CompositeItemWriter<Row, ClosedWriter, ClosedWriter, ClosedWriter, ClosedWriter>;

#[item_writer("flattenedClosed")]
type FlattenedClosed = FlatteningItemWriter<Row, ClosedWriter>;

batch_items::function_processor!(Twice("twice"): |number: &u64| -> Option<Vec<Row>> {
    Some(vec![Row { id: *number }, Row { id: *number }])
});
batch_items::function_processor!(Single("single"): |number: &u64| -> Option<Row> { Some(Row { id: *number }) });

/// Rejects the row 6, whose place in its list the error names.
#[derive(BatchArtifact)]
struct NamesBadRow {
    #[batch_artifact]
    rows: DelimitedItemWriter<Row>,
}

#[derive(Debug, BatchException)]
struct BadRow;

impl std::fmt::Display for BadRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a bad row")
    }
}

impl std::error::Error for BadRow {}

impl WriteItems<Row> for NamesBadRow {
    type Position = <DelimitedItemWriter<Row> as WriteItems<Row>>::Position;

    fn open(&mut self, checkpoint: Option<Self::Position>) -> Result<(), BatchError> {
        WriteItems::open(&mut self.rows, checkpoint)
    }

    fn write(&mut self, rows: &[&Row], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        match rows.iter().position(|row| row.id == 6) {
            Some(index) => Err(BatchError::at_item(index, BadRow)),
            None => WriteItems::write(&mut self.rows, rows, tx),
        }
    }

    fn mark(&mut self) {
        WriteItems::mark(&mut self.rows);
    }

    fn undo(&mut self) -> bool {
        WriteItems::undo(&mut self.rows)
    }

    fn position(&mut self) -> Result<Self::Position, BatchError> {
        WriteItems::position(&mut self.rows)
    }

    fn finish(&mut self) -> Result<(), BatchError> {
        WriteItems::finish(&mut self.rows)
    }
}

#[item_writer("namesInLists")]
type NamesInLists = FlatteningItemWriter<Row, NamesBadRow>;

#[item_writer("namesInClasses")]
type NamesInClasses = ClassifierItemWriter<Row, NamesBadRow, NamesBadRow, NamesBadRow, NamesBadRow>;

/// Creates the table `row`, with two rows that are in the way of items.
#[derive(BatchArtifact)]
struct CreateTable {
    #[batch_context]
    job: JobContext,
}

#[batchlet("createTable")]
impl CreateTable {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let table = "CREATE TABLE row (id INTEGER PRIMARY KEY); INSERT INTO row VALUES (5), (12)";
        self.job.connect()?.sqlite()?.batch_execute(table)?;
        Ok("CREATED".into())
    }

    #[cancel]
    fn cancel(&self) {}
}

const SKIP: &str =
    r#"<skippable-exception-classes><include class="TableError"/></skippable-exception-classes>"#;

fn chunk(processor: &str, writer: &str, attributes: &str) -> String {
    format!(r#"reader="numbers" processor="{processor}" writer="{writer}" {attributes}"#)
}

/// The ids that reach the outputs.
fn ids(without: &[u64]) -> Vec<u64> {
    (1..=20).filter(|id| *id != 13 && !without.contains(id)).collect()
}

fn lines(ids: &[u64], line: impl Fn(u64) -> String) -> String {
    ids.iter().map(|id| line(*id)).collect()
}

/// An item that one writer rejects is in no output, whatever the sizes of lists and intervals.
#[test]
fn all_writers_write_the_same_items() {
    for attributes in [
        r#"commit-interval="20""#,
        r#"commit-interval="7" chunk-size="3""#,
        r#"commit-interval="1""#,
        r#"commit-interval="6" buffer-reads="false""#,
    ] {
        let stage = Stage::after_step(
            "createTable",
            &chunk("rows", "everything", attributes),
            "1.output=${dir}/first.csv\n2.table=row\n3.output=${dir}/third.jsonl",
            SKIP,
        );
        let ended = stage.completes();
        assert_eq!(ended.skips, 2, "{attributes}");
        let ids = ids(&[5, 12]);
        let sum: u64 = ids.iter().sum();
        assert_eq!(
            stage.read("first.csv"),
            format!("id\n{}sum {sum}\n", lines(&ids, |id| format!("{id}\n"))),
            "{attributes}"
        );
        assert_eq!(
            stage.read("third.jsonl"),
            lines(&ids, |id| format!("{{\"id\":{id}}}\n"))
        );
        assert_eq!(stage.number("SELECT COUNT(*) FROM row"), ids.len() as i64 + 2);
    }
}

/// The place of an item in the list of an inner writer is not its place in the list of the step.
///
/// Spec: LOSS-07, LOSS-12, D-10
#[test]
fn the_item_that_an_inner_writer_names_is_skipped() {
    for (processor, writer, outputs, description) in [
        (
            "twice",
            "namesInLists",
            "output=${dir}/all.csv",
            "38 records written",
        ),
        (
            "single",
            "namesInClasses",
            "1.output=${dir}/odd.csv\n2.output=${dir}/even.csv\n3.output=${dir}/third.csv\n4.output=${dir}/fourth.csv",
            "",
        ),
    ] {
        for interval in [1, 7, 100] {
            let stage = Stage::with_children(
                &chunk(processor, writer, &format!("commit-interval=\"{interval}\"")),
                outputs,
                r#"<skippable-exception-classes><include class="BadRow"/></skippable-exception-classes>"#,
            );
            let ended = stage.completes();
            assert_eq!((ended.writes, ended.skips), (19, 1), "{writer} {interval}");
            assert_eq!(ended.description, description, "{writer} {interval}");
            let names = outputs
                .split("${dir}/")
                .skip(1)
                .map(|rest| rest.split('\n').next().unwrap());
            let rows: String = names.map(|name| stage.read(name)).collect();
            for id in (1..=20).filter(|id| *id != 6) {
                assert!(rows.contains(&format!("\n{id}\n")), "{writer} {interval}: {id}");
            }
        }
    }
}

/// Each of the writers forgets what one of them rejects, and nothing else.
#[test]
fn four_writers_forget_together() {
    for interval in [1, 4, 100] {
        let stage = Stage::after_step(
            "createTable",
            &chunk(
                "rows",
                "four",
                &format!("commit-interval=\"{interval}\" chunk-size=\"2\""),
            ),
            "1.output=${dir}/first.csv\n2.output=${dir}/second.jsonl\n3.table=row\n4.output=${dir}/fourth.csv",
            SKIP,
        );
        assert_eq!(stage.completes().skips, 2, "{interval}");
        let ids = ids(&[5, 12]);
        let rows = format!("id\n{}", lines(&ids, |id| format!("{id}\n")));
        assert_eq!(stage.read("first.csv"), rows, "{interval}");
        assert_eq!(
            stage.read("second.jsonl"),
            lines(&ids, |id| format!("{{\"id\":{id}}}\n")),
            "{interval}"
        );
        assert_eq!(stage.read("fourth.csv"), rows, "{interval}");
    }
}

/// Items that a file has to forget take no room in it.
///
/// Spec: LOSS-12
#[test]
fn forgotten_items_take_no_room_in_a_file() {
    let stage = Stage::after_step(
        "createTable",
        &chunk("rows", "four", "commit-interval=\"1\""),
        "1.output=${dir}/first.csv\n1.max.items.per.file=6\n2.output=${dir}/second.jsonl\n3.table=row\n4.output=${dir}/fourth.csv",
        SKIP,
    );
    assert_eq!(stage.completes().skips, 2);
    let rows: Vec<_> = ids(&[5, 12]).iter().map(|id| format!("{id}\n")).collect();
    for (index, rows) in rows.chunks(6).enumerate() {
        let name = format!("first-{:04}.csv", index + 1);
        assert_eq!(stage.read(&name), format!("id\n{}", rows.concat()), "{name}");
    }
}

/// Items that are in the file already are taken out of it, but not the items of earlier calls.
///
/// Spec: LOSS-12
#[test]
fn a_file_forgets_items_that_are_no_longer_in_memory() {
    for chunk_size in [1, 20] {
        let stage = Stage::after_step(
            "createTable",
            &chunk(
                "wides",
                "wide",
                &format!("commit-interval=\"20\" chunk-size=\"{chunk_size}\""),
            ),
            "1.output=${dir}/out.csv\n2.table=row\n2.columns=id",
            SKIP,
        );
        assert_eq!(stage.completes().skips, 2, "{chunk_size}");
        let text = "x".repeat(100_000);
        let rows = lines(&ids(&[5, 12]), |id| format!("{id},{text}\n"));
        assert!(
            stage.read("out.csv") == format!("id,text\n{rows}"),
            "{chunk_size}"
        );
    }
}

/// A writer of a program may hold more than its memory.
#[test]
fn each_writer_is_closed() {
    let four = "1.closed=${dir}/1\n2.closed=${dir}/2\n3.closed=${dir}/3\n4.closed=${dir}/4";
    for (processor, writer, properties, count) in [
        ("rows", "fourClosed", four, 4),
        ("copies", "flattenedClosed", "closed=${dir}/1", 1),
    ] {
        let stage = Stage::new(&chunk(processor, writer, ""), properties);
        stage.completes();
        for number in 1..=count {
            let closed = stage.path().join(number.to_string());
            assert!(closed.exists(), "{writer} {number}");
        }
    }
}

/// Writes items again that were rejected.
#[derive(BatchArtifact)]
struct StubbornWriter {
    #[batch_artifact]
    writer: CompositeItemWriter<Row, DelimitedItemWriter<Row>, TableItemWriter<Row>>,
}

#[item_writer("stubborn")]
impl StubbornWriter {
    #[open]
    fn open(&mut self) -> Result<(), BatchError> {
        self.writer.open(None)
    }

    #[write_items]
    fn write(&mut self, rows: &[Row], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let written = self.writer.write(rows, tx);
        written.or_else(|_| self.writer.write(rows, tx))
    }
}

/// A file that could not forget items takes no more of them.
///
/// Spec: LOSS-12
#[test]
fn a_file_with_rejected_items_is_not_written() {
    let stage = Stage::after_step(
        "createTable",
        &chunk("rows", "stubborn", r#"commit-interval="20""#),
        "1.output=${dir}/out.csv\n1.max.items.per.file=2\n2.table=row",
        "",
    );
    let message = stage.fails();
    assert!(
        message.contains("an earlier error has left items in it that are not committed"),
        "{message}"
    );
}

batch_items::function_processor!(Texts("texts"): |number: &u64| -> Option<String> {
    (*number != 13).then(|| match number {
        5 | 12 => "two\nlines".to_owned(),
        _ => number.to_string(),
    })
});

#[item_writer("lines")]
type Lines = LineItemWriter<String>;

/// Writes lines again that were rejected.
#[derive(BatchArtifact)]
struct StubbornLines {
    #[batch_artifact]
    writer: Lines,
}

#[item_writer("stubbornLines")]
impl StubbornLines {
    #[open]
    fn open(&mut self) -> Result<(), ResourceError> {
        self.writer.open(None)
    }

    #[write_items]
    fn write(&mut self, lines: &[String]) -> Result<(), BatchError> {
        let written = self.writer.write(lines);
        written.or_else(|_| self.writer.write(&lines[..1]))
    }
}

/// What precedes an item that cannot be written is in files that are complete: the interval is rolled back, and until then the file takes no
/// more items.
///
/// Spec: LOSS-12
#[test]
fn an_item_that_fails_after_a_file_is_complete_is_in_no_file() {
    let stage = |writer: &str, children: &str| {
        Stage::with_children(
            &chunk("texts", writer, r#"commit-interval="20""#),
            "output=${dir}/out.txt\nmax.items.per.file=2",
            children,
        )
    };
    let skip = r#"<skippable-exception-classes><include class="EncodeError"/></skippable-exception-classes>"#;
    let skipping = stage("lines", skip);
    let ended = skipping.completes();
    assert_eq!((ended.writes, ended.skips), (17, 2));
    for (index, ids) in ids(&[5, 12]).chunks(2).enumerate() {
        let name = format!("out-{:04}.txt", index + 1);
        assert_eq!(skipping.read(&name), lines(ids, |id| format!("{id}\n")), "{name}");
    }
    let message = stage("stubbornLines", "").fails();
    let expected = "an earlier error has left items in it that are not committed";
    assert!(message.contains(expected), "{message}");
}

/// Without a rule to skip it, a rejected item leaves the committed ones.
#[test]
fn a_composite_restarts_at_its_checkpoint() {
    let stage = Stage::after_step(
        "createTable",
        &chunk("rows", "everything", r#"commit-interval="3""#),
        "1.output=${dir}/first.csv\n2.table=row\n3.output=${dir}/third.jsonl",
        "",
    );
    let failed = stage.start(());
    assert_eq!(failed.status, BatchStatus::Failed);
    assert!(
        failed
            .message
            .contains("cannot insert 3 rows in table `row`: UNIQUE constraint failed"),
        "{}",
        failed.message
    );
    assert_eq!(stage.read("first.csv.part"), "id\n1\n2\n3\n");
    stage.execute("DELETE FROM row WHERE id IN (5, 12)");
    let again = stage.restart(&failed, ());
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    let ids = ids(&[]);
    assert_eq!(
        stage.read("third.jsonl"),
        lines(&ids, |id| format!("{{\"id\":{id}}}\n"))
    );
    assert_eq!(stage.number("SELECT COUNT(*) FROM row"), ids.len() as i64);
}

#[test]
fn each_item_goes_to_the_writer_of_its_class() {
    let properties =
        "1.output=${dir}/odd.csv\n2.table=row\n3.output=${dir}/nineteen.csv\n4.output=${dir}/twenty.jsonl";
    let stage = Stage::after_step(
        "createTable",
        &chunk("rows", "byClass", r#"commit-interval="4""#),
        properties,
        SKIP,
    );
    assert_eq!(stage.completes().skips, 1);
    let odd: Vec<u64> = ids(&[])
        .into_iter()
        .filter(|id| id % 2 == 1 && *id != 19)
        .collect();
    assert_eq!(
        stage.read("odd.csv"),
        format!("id\n{}", lines(&odd, |id| format!("{id}\n")))
    );
    assert_eq!(stage.read("nineteen.csv"), "id\n19\n");
    assert_eq!(stage.read("twenty.jsonl"), "{\"id\":20}\n");
    assert_eq!(
        stage.number("SELECT COUNT(*) FROM row WHERE id NOT IN (5, 12)"),
        8
    );

    let stage = Stage::after_step(
        "createTable",
        &chunk("rows", "twoClasses", r#"commit-interval="4""#),
        "1.output=${dir}/odd.csv\n2.table=row",
        SKIP,
    );
    let message = stage.fails();
    assert!(
        message.contains("an item has class 3, but there are 2 writers"),
        "{message}"
    );
}

#[test]
fn lists_are_flattened_and_lists_are_enriched() {
    let stage = Stage::new(
        &chunk("copies", "flattened", r#"commit-interval="4""#),
        "output=${dir}/out.csv",
    );
    assert_eq!(stage.completes().writes, 20, "each list counts once");
    let copies: String = (1..=20u64)
        .map(|id| format!("{id}\n").repeat(id as usize % 3))
        .collect();
    assert_eq!(stage.read("out.csv"), format!("id\n{copies}"));

    let stage = Stage::new(
        &chunk("rows", "enriched", r#"commit-interval="8""#),
        "output=${dir}/out.txt",
    );
    stage.completes();
    let output = stage.read("out.txt");
    assert!(
        output.starts_with("1 of 8\n2 of 8\n") && output.ends_with("20 of 4\n"),
        "{output}"
    );
}

#[derive(BatchArtifact)]
struct AddOne;

impl ProcessItem for AddOne {
    type Input = u64;
    type Output = u64;
    fn process(&mut self, number: &u64) -> Result<Option<u64>, BatchError> {
        Ok(Some(number + 1))
    }
}

#[derive(BatchArtifact)]
struct AtMost {
    #[batch_property(name = "most")]
    most: u64,
}

impl ProcessItem for AtMost {
    type Input = u64;
    type Output = u64;
    fn process(&mut self, number: &u64) -> Result<Option<u64>, BatchError> {
        Ok((*number <= self.most).then_some(*number))
    }
}

#[item_processor("chain")]
type Chain = ProcessorChain<AddOne, ProcessorChain<AtMost, AddOne>>;

#[derive(Clone)]
struct Small(u64);

impl Validate for Small {
    fn validate(&self) -> Result<(), String> {
        if self.0 < 19 {
            Ok(())
        } else {
            Err(format!("{} is too large", self.0))
        }
    }
}

impl std::fmt::Display for Small {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

batch_items::iterator_reader!(Smalls("smalls"): Small = (15..=20).map(Small));

#[item_processor("valid")]
type Valid = ValidatingProcessor<Small>;

#[item_writer("smallWriter")]
type SmallWriter = LineItemWriter<Small>;

#[item_writer("numberWriter")]
type NumberWriter = LineItemWriter<u64>;

#[test]
fn processors_are_chained_and_items_validated() {
    let stage = Stage::new(
        &chunk("chain", "numberWriter", ""),
        "output=${dir}/out.txt\n2.1.most=4",
    );
    let ended = stage.completes();
    assert_eq!((ended.reads, ended.writes), (20, 3));
    assert_eq!(stage.read("out.txt"), "3\n4\n5\n");

    let small = r#"reader="smalls" processor="valid" writer="smallWriter""#;
    let stage = Stage::new(small, "output=${dir}/out.txt\nif.invalid=filter");
    assert_eq!(stage.completes().writes, 4);
    let stage = Stage::new(small, "output=${dir}/out.txt");
    let message = stage.fails();
    assert!(
        message.starts_with("the item is not valid: 19 is too large"),
        "{message}"
    );
    let skip =
        r#"<skippable-exception-classes><include class="ValidationError"/></skippable-exception-classes>"#;
    let stage = Stage::with_children(small, "output=${dir}/out.txt", skip);
    assert_eq!(stage.completes().skips, 2);
}
