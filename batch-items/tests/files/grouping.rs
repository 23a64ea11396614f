//! Items that are groups of others, read from files and queries, and resumed.

use std::fs;

use batch_items::compose::{BySize, ReadItems, WriteItems};
use batch_items::file::ReadPosition;
use batch_items::registered::{CsvRecordGroupReader, QueryRecordGroupReader};
use batch_items::{
    DelimitedItemReader, DelimitedItemWriter, FlatteningItemWriter, GroupingItemReader, LineItemReader,
    LineItemWriter, PeekableItemReader, Record,
};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use batch_testing::ArtifactTest;
use serde::Deserialize;

use super::group_rejects::{SKIP, skipping};
use super::stage::{Stage, check_restarts};

#[item_writer("GroupLines")]
type GroupLines = LineItemWriter<String>;

/// Declares a processor that returns a group as a text, and fails at the group of this number, if the property is set.
macro_rules! joined {
    ($name:ident: |$item:ident: &$ty:ty| $text:expr) => {
        #[derive(BatchArtifact)]
        struct $name {
            #[batch_property(name = "fail.at", value = "0")]
            fail_at: u64,
            groups: u64,
        }

        #[item_processor]
        impl $name {
            #[process_item]
            fn process(&mut self, group: Vec<$ty>) -> Result<Option<String>, BatchError> {
                self.groups += 1;
                if self.groups == self.fail_at {
                    return Err(BatchError::msg("stopped by the test"));
                }
                let items: Vec<String> = group.iter().map(|$item| $text).collect();
                Ok(Some(items.join(" ")))
            }
        }
    };
}

joined!(JoinedRecords: |record: &Record| record.iter().map(|(_, value)| value.to_string()).collect());

/// The readers of records with their properties, the files that they read, and their groups.
type Form = (&'static str, &'static str, [&'static str; 3], &'static str);

const BY_KEY: &str = "1x 1y\n2x\n3x 3y 3z\n4x 4y\n5x\n6x\n7x 7y\n";
const AT_HEADERS: &str = "H1 Dx Dy\nH2\nH3 Dx\nH4 Dx Dy\nH5\nH6 Dx\nH7\n";
const BY_SIZE: &str = "1 2\n3 4\n5 6\n7 8\n9 10\n11 12\n13\n";

/// Groups reach from one file into the next.
const FORMS: &[Form] = &[
    (
        "csvRecordGroupReader",
        "group=key order",
        [
            "order,article\n1,x\n1,y\n2,x\n3,x\n",
            "order,article\n",
            "order,article\r\n3,y\r\n3,z\r\n4,x\r\n4,y\r\n5,x\r\n6,x\r\n7,x\r\n7,y",
        ],
        BY_KEY,
    ),
    (
        "csvRecordGroupReader",
        "group=header kind = 'H'\nstrict@reader=false\ncolumns@reader=kind,text",
        [
            "H,1\nD,x\nD,y\nH,2\nH,3\n",
            "D,x\n\n",
            "H,4\nD,x\nD,y\nH,5\nH,6\nD,x\nH,7",
        ],
        AT_HEADERS,
    ),
    (
        "fixedWidthRecordGroupReader",
        "group=header kind = 'H'\ncolumns@reader=kind 1, text 2-3",
        [
            "H1 \nDx \nDy \nH2 \nH3 \n",
            "Dx \n",
            "H4 \nDx \nDy \nH5 \nH6 \nDx \nH7 ",
        ],
        AT_HEADERS,
    ),
    (
        "patternRecordGroupReader",
        "group=header text ~ '^H'\npattern=^(?<text>\\w+)$",
        ["H1\nDx\nDy\nH2\nH3\n", "Dx\n", "\nH4\nDx\nDy\nH5\nH6\nDx\nH7"],
        AT_HEADERS,
    ),
    (
        "jsonlRecordGroupReader",
        "group=size 2",
        [
            "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n",
            "\n",
            "{\"n\":4}\n{\"n\":5}\n{\"n\":6}\n{\"n\":7}\n{\"n\":8}\n{\"n\":9}\n{\"n\":10}\n{\"n\":11}\n{\"n\":12}\n{\"n\":13}",
        ],
        BY_SIZE,
    ),
    (
        "jsonArrayRecordGroupReader",
        "group=key o, year\nmax.group.size=2",
        [
            "[{\"o\":1,\"year\":null,\"t\":\"x\"},{\"o\":1,\"year\":null,\"t\":\"y\"},{\"o\":1,\"year\":2,\"t\":\"z\"}]",
            "[]",
            "[{\"o\":2,\"year\":2},{\"o\":3,\"year\":2},{\"o\":4,\"year\":2},{\"o\":5,\"year\":2},\n{\"o\":6,\"year\":2}]",
        ],
        "1x 1y\n12z\n22\n32\n42\n52\n62\n",
    ),
];

fn job(form: &Form, processor: &str, commit_interval: u32) -> Stage {
    let (reader, properties, files, _) = form;
    let stage = Stage::new(
        &format!(
            "reader=\"{reader}\" processor=\"{processor}\" writer=\"GroupLines\" commit-interval=\"{commit_interval}\""
        ),
        &format!("resource=${{dir}}/in-*\noutput=${{dir}}/out\n{properties}"),
    );
    for (index, content) in files.iter().enumerate() {
        stage.write(&format!("in-{index}"), content);
    }
    stage
}

#[test]
fn groups_of_records_resume_in_every_format() {
    for form in FORMS {
        check_restarts(
            |commit_interval| job(form, "JoinedRecords", commit_interval),
            form.3,
        );
    }
}

#[derive(Clone, Deserialize)]
struct OrderLine {
    order: String,
    article: String,
}

batch_items::group_rule!(ByOrder: key |line: &OrderLine| &line.order);
batch_items::group_rule!(AtOrder: header |line: &String| line.starts_with('H'));

#[item_reader("Orders")]
type Orders = GroupingItemReader<DelimitedItemReader<OrderLine>, ByOrder>;
#[item_reader("OrdersOfLines")]
type OrdersOfLines = GroupingItemReader<LineItemReader<String>, AtOrder>;
#[item_reader("Pairs")]
type Pairs = GroupingItemReader<LineItemReader<String>, BySize>;

joined!(JoinedLines: |line: &String| line.clone());
joined!(JoinedOrderLines: |line: &OrderLine| format!("{}{}", line.order, line.article));

#[test]
fn groups_of_rust_types_resume() {
    let rows = [
        "order,article\n1,x\n1,y\n2,x\n3,x\n3,y\n",
        "order,article\n3,z\n4,x\n4,y\n5,x\n",
        "order,article\n6,x\n7,x\n7,y\n",
    ];
    let orders: Form = ("Orders", "", rows, BY_KEY);
    check_restarts(
        |commit_interval| job(&orders, "JoinedOrderLines", commit_interval),
        orders.3,
    );
    let lines = ["H1\nDx\nDy\nH2\nH3\n", "Dx\nH4\nDx\n", "Dy\nH5\nH6\nDx\nH7\n"];
    let lines: Form = ("OrdersOfLines", "", lines, AT_HEADERS);
    check_restarts(
        |commit_interval| job(&lines, "JoinedLines", commit_interval),
        lines.3,
    );
    let numbers = ["1\n2\n3\n", "4\n5\n6\n7\n8\n", "9\n10\n11\n12\n13\n"];
    let pairs: Form = ("Pairs", "group.size=2", numbers, BY_SIZE);
    check_restarts(
        |commit_interval| job(&pairs, "JoinedLines", commit_interval),
        pairs.3,
    );
}

/// Joins lines that begin with a blank to the line before them.
#[derive(BatchArtifact)]
struct FoldedLines {
    #[batch_artifact]
    lines: PeekableItemReader<LineItemReader<String>>,
}

#[item_reader(rewindable = true)]
impl FoldedLines {
    #[open]
    fn open(&mut self, checkpoint: Option<ReadPosition>) -> Result<(), BatchError> {
        self.lines.open(checkpoint)
    }

    #[read_item]
    fn read(&mut self) -> Result<Option<String>, BatchError> {
        let Some(mut line) = self.lines.read()? else {
            return Ok(None);
        };
        while matches!(self.lines.peek(), Ok(Some(next)) if next.starts_with(' ')) {
            line += &self.lines.read()?.unwrap_or_default();
        }
        Ok(Some(line))
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Result<ReadPosition, BatchError> {
        self.lines.position()
    }
}

#[test]
fn a_reader_that_looks_ahead_resumes() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in-1"), "a\n b\nc\n").unwrap();
    fs::write(folder.path().join("in-2"), " d\n e\nf\n").unwrap();
    ArtifactTest::new()
        .property("resource", folder.path().join("in-*").display())
        .assert_restartable(
            LoadedArtifact::of::<FoldedLines>,
            ["a b", "c d e", "f"].map(str::to_owned),
        );
}

#[test]
fn the_checkpoint_of_a_registered_reader_is_exact() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in.csv");
    fs::write(&file, "order\n1\n1\n2\n3\n3\n3\n").unwrap();
    let group = |order: &str, count| {
        let mut record = Record::new();
        record.set("order", order);
        vec![record; count]
    };
    ArtifactTest::new()
        .property("resource", file.display())
        .property("group", "key order")
        .assert_restartable(
            LoadedArtifact::of::<CsvRecordGroupReader>,
            [group("1", 2), group("2", 1), group("3", 3)],
        );
}

/// Pages of two rows, which end within groups.
#[test]
fn groups_of_a_query_resume() {
    let group = |customer: i64, rows: &[i64]| -> Vec<Record> {
        let record = |row: &i64| {
            let mut record = Record::new();
            record.set("customer", customer);
            record.set("id", *row);
            record
        };
        rows.iter().map(record).collect()
    };
    for key in ["customer, id", ""] {
        ArtifactTest::new()
            .prepare(|database| {
                database.execute("CREATE TABLE item (customer BIGINT, id BIGINT)");
                database.execute("INSERT INTO item VALUES (1, 1), (1, 2), (1, 3), (2, 4), (3, 5), (3, 6)");
            })
            .property("query", "SELECT customer, id FROM item ORDER BY customer, id")
            .property("key", key)
            .property("page.size", 1)
            .property("group", "key customer")
            .assert_restartable(
                LoadedArtifact::of::<QueryRecordGroupReader>,
                [group(1, &[1, 2, 3]), group(2, &[4]), group(3, &[5, 6])],
            );
    }
}

#[test]
fn a_group_of_rows_that_is_too_large_names_the_row() {
    let failure = ArtifactTest::new()
        .property(
            "query",
            "SELECT 1 AS customer UNION ALL SELECT 1 UNION ALL SELECT 2 ORDER BY 1",
        )
        .property("group", "key customer")
        .property("max.group.size", 1)
        .read::<Vec<Record>>(LoadedArtifact::of::<QueryRecordGroupReader>)
        .unwrap_err();
    let message = failure.to_string();
    assert!(
        message.contains("row 2 of the query: the group has more than 1 items"),
        "{message}"
    );
}

/// Rows with different numbers of fields.
#[test]
fn the_header_is_not_in_the_result() {
    let stage = Stage::new(
        "reader=\"csvRecordGroupReader\" processor=\"recordGroupProcessor\" writer=\"recordGroupCsvWriter\"",
        "resource=${dir}/in\noutput@writer=${dir}/out\ncolumns@reader=kind,text,count\nstrict@reader=false\n\
         group=header kind = 'H'\nheader.fields=order=text",
    );
    stage.write("in", "H,1001\nD,pen,3\nD,ink,1\nH,1002\nD,cap,2\n");
    stage.completes();
    assert_eq!(
        stage.read("out"),
        "kind,text,count,order\nD,pen,3,1001\nD,ink,1,1001\nD,cap,2,1002\n"
    );
}

#[test]
fn errors_that_are_not_skipped_name_the_place_and_the_remedy() {
    let failing = |properties: &str| {
        let stage = Stage::new(
            "reader=\"csvRecordGroupReader\" processor=\"JoinedRecords\" writer=\"GroupLines\"",
            &format!("resource=${{dir}}/in\noutput=${{dir}}/out\n{properties}"),
        );
        stage.write("in", "order,article\n1,x\n1,y\n2,x\n");
        stage.fails()
    };
    let message = failing("group=header article = 'y'");
    assert!(
        message.contains("record 1 of `in`: the item comes before the first header; check the rule"),
        "{message}"
    );
    let message = failing("group=key order\nmax.group.size=1");
    assert!(
        message.contains("record 2 of `in`: the group has more than 1 items"),
        "{message}"
    );
    let message = failing("group=key customer");
    assert!(
        message.contains("the record has no field `customer`, but `order`, `article`"),
        "{message}"
    );
    let message = failing("group=header kind = 'H'");
    assert!(
        message.contains("the record has no field `kind`, but `order`, `article`"),
        "{message}"
    );
}

#[test]
fn a_wrong_rule_is_rejected_before_the_job_starts() {
    let rejected = |properties: &str| {
        Stage::new(
            "reader=\"csvRecordGroupReader\" processor=\"JoinedRecords\" writer=\"GroupLines\"",
            &format!("resource=${{dir}}/in\noutput=${{dir}}/out\n{properties}"),
        )
        .rejected()
    };
    for (properties, expected) in [
        ("", "group"),
        ("group=keys order", "did you mean `key`?"),
        ("group=header 1", "expected a condition, found a number"),
        ("group=size 0", "expected a number of records after `size`"),
        ("group=key order\nmax.group.size=0", "max.group.size"),
    ] {
        let message = rejected(properties);
        assert!(message.contains(expected), "{properties}: {message}");
    }
}

#[test]
fn an_input_may_be_empty_or_one_group() {
    for (input, output) in [("order\n", ""), ("order\n1\n1\n1", "1 1 1\n")] {
        let stage = skipping("group=key order", input, 10);
        let ended = stage.completes();
        assert_eq!((ended.reads, ended.skips), (i64::from(!output.is_empty()), 0));
        assert_eq!(stage.read("out"), output);
    }
}

/// Fails the step after its last commit, if the property is set.
#[derive(BatchArtifact)]
struct FailAfter {
    #[batch_property(name = "fails", value = "false")]
    fails: bool,
}

#[step_listener]
impl FailAfter {
    #[before_step]
    fn before(&mut self) {}

    #[after_step]
    fn after(&mut self) -> Result<(), BatchError> {
        match self.fails {
            true => Err(BatchError::msg("stopped by the test")),
            false => Ok(()),
        }
    }
}

/// What is appended to the last group after it was read is another group, or details without a header.
#[test]
fn an_input_that_has_grown_since_its_last_group_is_read_to_its_end() {
    for (rule, output, skips) in [
        ("key order", "1x\n2x\n2y\n3x\n", 0),
        ("header article = 'x'", "1x\n2x\n3x\n", 1),
    ] {
        let stage = Stage::with_listeners(
            r#"<listeners><listener ref="FailAfter"/></listeners>"#,
            "reader=\"csvRecordGroupReader\" processor=\"JoinedRecords\" writer=\"GroupLines\" commit-interval=\"1\"",
            &format!("resource=${{dir}}/in\noutput=${{dir}}/out\ngroup={rule}"),
            SKIP,
        );
        stage.write("in", "order,article\n1,x\n2,x\n");
        let failed = stage.start([("fails", "true")]);
        assert_eq!((failed.status, failed.writes), (BatchStatus::Failed, 2));
        stage.write("in", "order,article\n1,x\n2,x\n2,y\n3,x\n");
        let unchanged = stage.restart(&failed, [("fails", "false")]);
        assert_eq!(unchanged.status, BatchStatus::Failed);
        assert!(
            unchanged.message.contains("cannot resume reading"),
            "{}",
            unchanged.message
        );
        let again = stage.restart(&unchanged, [("fails", "false"), ("if.changed", "resume")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        assert_eq!((stage.read("out").as_str(), again.skips), (output, skips));
    }
}

/// The records of groups are counted over the whole job instance, including records that the processor leaves out of a group.
///
/// Spec: LOSS-07
#[test]
fn records_of_groups_are_counted_also_after_a_restart() {
    for (bad, selected, description) in [
        ("1,x\n", "", "7 records read: 7 written"),
        (
            "bad\n",
            "",
            "7 records read: 4 written, 3 skipped\n1 skipped: see `rejects`",
        ),
        (
            "1,x\n",
            "where=article = 'x'",
            "7 records read: 6 written, 1 filtered",
        ),
        (
            "bad\n",
            "where=order > 3",
            "7 records read: 2 written, 2 filtered, 3 skipped\n1 skipped: see `rejects`",
        ),
    ] {
        let stage = Stage::with_listeners(
            r#"<listeners><listener ref="FailAfter"/><listener ref="recordGroupRejects"><properties>
                <property name="rejects.output" value="${dir}/rejects"/></properties></listener></listeners>"#,
            "reader=\"csvRecordGroupReader\" processor=\"recordGroupProcessor\" writer=\"recordGroupCsvWriter\" commit-interval=\"1\"",
            &format!("resource=${{dir}}/in\noutput@writer=${{dir}}/out\ngroup=key order\n{selected}"),
            SKIP,
        );
        stage.write(
            "in",
            format!("order,article\n1,x\n{bad}1,y\n2,x\n3,x\n4,x\n5,x\n"),
        );
        let failed = stage.start([("fails", "true")]);
        assert_eq!(failed.status, BatchStatus::Failed);
        let again = stage.restart(&failed, [("fails", "false")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        assert_eq!(again.description, description);
    }
}

/// Fails at its first call, and writes at the next ones.
#[derive(BatchArtifact)]
struct FailsOnce {
    #[batch_artifact]
    rows: DelimitedItemWriter<Record>,
    failed: bool,
}

impl WriteItems<Record> for FailsOnce {
    type Position = <DelimitedItemWriter<Record> as WriteItems<Record>>::Position;

    fn open(&mut self, checkpoint: Option<Self::Position>) -> Result<(), BatchError> {
        WriteItems::open(&mut self.rows, checkpoint)
    }

    fn write(&mut self, records: &[&Record], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        match std::mem::replace(&mut self.failed, true) {
            false => Err(std::io::Error::other("try again").into()),
            true => WriteItems::write(&mut self.rows, records, tx),
        }
    }

    fn position(&mut self) -> Result<Self::Position, BatchError> {
        WriteItems::position(&mut self.rows)
    }

    fn finish(&mut self) -> Result<(), BatchError> {
        WriteItems::finish(&mut self.rows)
    }
}

#[item_writer("FailsOnceGroups")]
type FailsOnceGroups = FlatteningItemWriter<Record, FailsOnce>;

/// After a rollback the same bad record is read again, and counts once.
///
/// Spec: LOSS-07
#[test]
fn records_that_are_read_again_are_counted_once() {
    for buffers in ["true", "false"] {
        let stage = Stage::with_children(
            &format!("reader=\"csvRecordGroupReader\" writer=\"FailsOnceGroups\" buffer-reads=\"{buffers}\""),
            "resource=${dir}/in\noutput@writer=${dir}/out\ngroup=key order",
            &format!(
                "{SKIP}<retryable-exception-classes><include class=\"std::io::Error\"/></retryable-exception-classes>"
            ),
        );
        stage.write("in", "order,article\n1,x\nbad\n1,y\n2,x\n3,x\n");
        let ended = stage.completes();
        assert_eq!(
            ended.description, "5 records read: 2 written, 3 skipped",
            "{buffers}"
        );
        assert_eq!(stage.read("out"), "order,article\n2,x\n3,x\n", "{buffers}");
    }
    // A retry of the read itself: no other record is read in between.
    let stage = Stage::with_listeners(
        "<properties><property name=\"batch.retry.input\" value=\"true\"/></properties>",
        "reader=\"csvRecordGroupReader\" writer=\"recordGroupCsvWriter\"",
        "resource=${dir}/in\noutput@writer=${dir}/out\ngroup=size 2",
        &format!(
            "{SKIP}<retryable-exception-classes><include class=\"RecordError\"/></retryable-exception-classes>"
        ),
    );
    stage.write("in", "order,article\nbad\n1,y\n2,x\n");
    let ended = stage.completes();
    assert_eq!(ended.description, "3 records read: 2 written, 1 skipped");
}

/// Returns the same error at each call, and never advances. After many calls it ends, so that the test does.
#[derive(BatchArtifact)]
struct Stuck {
    calls: u32,
}

impl ReadItems for Stuck {
    type Item = Record;
    type Position = u64;

    fn open(&mut self, _checkpoint: Option<u64>) -> Result<(), BatchError> {
        Ok(())
    }

    fn read(&mut self) -> Result<Option<Record>, BatchError> {
        self.calls += 1;
        match self.calls {
            ..=10_000 => Err(std::io::Error::other("stuck").into()),
            _ => Ok(None),
        }
    }

    fn position(&mut self) -> Result<u64, BatchError> {
        Ok(0)
    }
}

#[item_reader("StuckGroups")]
type StuckGroups = GroupingItemReader<Stuck, BySize>;

/// A reader of groups around one that never advances is not called forever.
///
/// Spec: CHUNK-SKIP-10
#[test]
fn a_reader_that_never_advances_fails_the_step() {
    let stage = Stage::with_children(
        "reader=\"StuckGroups\" writer=\"recordGroupCsvWriter\"",
        "output=${dir}/out\ngroup.size=2",
        r#"<skippable-exception-classes><include class="std::io::Error"/></skippable-exception-classes>"#,
    );
    let message = stage.fails();
    assert!(message.contains("position has not changed"), "{message}");
}

/// A job of Job XML alone: each line gets the number of its order. Lines without a count are filtered.
///
/// Spec: LOSS-07
#[test]
fn records_get_the_fields_of_their_header() {
    for (writer, output) in [
        (
            "recordGroupCsvWriter",
            "number,article,count\n1001,pen,3\n1001,ink,1\n1003,cap,2\n",
        ),
        (
            "recordGroupJsonlWriter",
            "{\"number\":\"1001\",\"article\":\"pen\",\"count\":3}\n{\"number\":\"1001\",\"article\":\"ink\",\"count\":1}\n\
             {\"number\":\"1003\",\"article\":\"cap\",\"count\":2}\n",
        ),
    ] {
        let stage = Stage::with_listeners(
            r#"<listeners><listener ref="recordGroupRejects"><properties>
                <property name="rejects.output" value="${dir}/rejects"/></properties></listener></listeners>"#,
            &format!(
                "reader=\"patternRecordGroupReader\" processor=\"recordGroupProcessor\" writer=\"{writer}\""
            ),
            r"resource=${dir}/in
              output@writer=${dir}/out
              pattern=^(?:ORDER;(?<order>\d+)|LINE;(?<article>\w+);(?<count>\d*))$
              group=header order is not null
              header.fields=number=order
              where=count is not null
              types=count=int
              fields=number, article, count",
            r#"<skippable-exception-classes>
              <include class="RecordError"/><include class="MappingError"/>
            </skippable-exception-classes>"#,
        );
        let input = "ORDER;1001\nLINE;pen;3\nLINE;cup;\nLINE;ink;1\nORDER;1002\nLINE;cup;\nORDER;1003\nLINE;cap;2\n\
                     ORDER;1004\nLINE;pad;1\nLINE\nORDER;1005\nLINE;pad;99999999999999999999\nORDER;1006\n";
        stage.write("in", input);
        let ended = stage.completes();
        assert_eq!((ended.reads, ended.writes, ended.skips), (5, 2, 2));
        let described = "14 records read: 3 written, 8 filtered or in skipped groups, 3 skipped\n2 skipped: see `rejects`";
        assert_eq!(ended.description, described);
        assert_eq!(stage.read("out"), output);
        let rejects = stage.read("rejects");
        assert!(rejects.contains("\"line\":11,\"raw\":\"LINE\""), "{rejects}");
        assert!(
            rejects.contains("field `count`: expected an integer"),
            "{rejects}"
        );
        assert!(
            rejects.contains("\"order\":\"1005\""),
            "the item is the group: {rejects}"
        );
    }
}
