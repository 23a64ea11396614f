//! Groups of records that are dropped, and their records in the rejects.

use batch_items::{Record, RejectListener};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;

use super::stage::Stage;

#[skip_listener("JoinedRejects")]
#[checkpoint_listener("JoinedRejects")]
type JoinedRejects = RejectListener<Vec<Record>, String>;

pub(crate) const SKIP: &str = r#"<skippable-exception-classes>
  <include class="MappingError"/><include class="RecordError"/><include class="GroupError"/>
</skippable-exception-classes>"#;

/// A job of records that skips; the file `rejects` gets what it skips.
pub(crate) fn skipping(properties: &str, input: &str, commit_interval: u32) -> Stage {
    let listener = r#"<listeners><listener ref="JoinedRejects"><properties>
        <property name="rejects.output" value="${dir}/rejects"/><property name="rejects.raw" value="${dir}/raw"/>
        </properties></listener></listeners>"#;
    let stage = Stage::with_listeners(
        listener,
        &format!(
            "reader=\"csvRecordGroupReader\" processor=\"JoinedRecords\" writer=\"GroupLines\" commit-interval=\"{commit_interval}\""
        ),
        &format!("resource=${{dir}}/in\noutput@writer=${{dir}}/out\n{properties}"),
        SKIP,
    );
    stage.write("in", input);
    stage
}

/// Checks the groups, and the lines of the rejects with their skips, without a restart and with one after a failure at each group. The
/// text of the rejects is the text of the input.
fn check_skips(properties: &str, input: &str, groups: &[&str], rejects: &[(i64, &str)]) {
    for commit_interval in 1..=3 {
        for fail_at in 0..=groups.len() {
            let stage = skipping(properties, input, commit_interval);
            let first = stage.start([("fail.at", fail_at.to_string())]);
            let (mut read, mut skips) = (first.writes, first.skips);
            if fail_at > 0 {
                assert_eq!(first.status, BatchStatus::Failed);
                let again = stage.restart(&first, [("fail.at", "0")]);
                assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
                (read, skips) = (read + again.writes, skips + again.skips);
            } else {
                assert_eq!(first.status, BatchStatus::Completed, "{}", first.message);
            }
            let context = format!("interval {commit_interval}, failed at {fail_at}");
            let output: String = groups.iter().map(|group| format!("{group}\n")).collect();
            assert_eq!(stage.read("out"), output, "{context}");
            assert_eq!(read, groups.len() as i64, "{context}");
            assert_eq!(skips, rejects.last().unwrap().0, "{context}");
            let report = stage.read("rejects");
            assert_eq!(report.lines().count(), rejects.len(), "{context}\n{report}");
            for (line, (skip, reject)) in report.lines().zip(rejects) {
                assert!(line.contains(&format!("\"skip\":{skip},")), "{context}: {line}");
                assert!(line.contains(reject), "{context}: {line}, not {reject}");
            }
            let rejected: Vec<String> = stage.read("raw").lines().map(str::to_owned).collect();
            let in_input = |line: &String| input.lines().skip(1).any(|other| other == line);
            assert!(rejected.iter().all(in_input), "{context}: {rejected:?}");
            let of_records = report.lines().filter(|line| line.contains("\"raw\":")).count();
            assert_eq!(rejected.len(), of_records, "{context}");
        }
    }
}

/// A record is in exactly one place: in a group that is written, or in the rejects.
///
/// Spec: INPUT-04
#[test]
fn the_records_of_a_dropped_group_are_rejects() {
    let input = "k,n\na,1\na,2\nbad\nc,1\nc,2\nd,1\n";
    let stage = skipping("group=key k", input, 10);
    let ended = stage.completes();
    assert_eq!((ended.reads, ended.writes, ended.skips), (1, 1, 1));
    assert_eq!(stage.read("out"), "d1\n");
    assert_eq!(
        stage.read("raw"),
        "a,1\na,2\nbad\nc,1\nc,2\n",
        "in their order: corrected, they are input"
    );
    let report = stage.read_relative("rejects");
    let first = report.lines().next().unwrap();
    assert_eq!(
        first,
        "{\"skip\":1,\"instance\":1,\"step\":\"copy\",\"phase\":\"read\",\"error\":\"dropped with its group: in:4: the row has 1 \
         fields, but 2 are expected\",\"resource\":\"in\",\"line\":2,\"raw\":\"a,1\",\"raw_end\":4}"
    );
}

/// The bad rows belong to the groups 2, to 4 or 5, and to 7.
///
/// Spec: INPUT-04
#[test]
fn a_bad_record_skips_the_groups_that_it_may_belong_to() {
    let input =
        "order,article\n1,x\n1,y\n2,x\n2,x,x\n2,y\n2,z\n3,x\n4,x\n4,y,y\n5,y,y\n5,z\n6,x\n6,y\n7,x\n7,y,y\n";
    check_skips(
        "group=key order",
        input,
        &["1x 1y", "3x", "6x 6y"],
        &[
            (1, "\"raw\":\"2,x\""),
            (1, "\"line\":5,"),
            (1, "\"raw\":\"2,y\""),
            (1, "\"raw\":\"2,z\""),
            (2, "\"raw\":\"4,x\""),
            (2, "\"line\":10,"),
            (3, "\"line\":11,"),
            (3, "\"raw\":\"5,z\""),
            (4, "\"raw\":\"7,x\""),
            (4, "\"line\":16,"),
        ],
    );
}

/// Everything is skipped from the header of the bad record to the next header: that record may have been a header.
///
/// Spec: INPUT-04
#[test]
fn a_bad_record_skips_up_to_the_next_header() {
    let input = "kind,text\nH,1\nD,x\nH,2\nD,x\nH,3,3\nD,x\nD,y\nH,4\nD,x\n";
    check_skips(
        "group=header kind = 'H'",
        input,
        &["H1 Dx", "H4 Dx"],
        &[
            (1, "\"raw\":\"H,2\""),
            (1, "\"raw\":\"D,x\""),
            (1, "\"line\":6,"),
            (1, "\"raw\":\"D,x\""),
            (1, "\"raw\":\"D,y\""),
        ],
    );
}

#[test]
fn a_bad_record_ends_a_group_of_a_size_and_is_skipped_alone() {
    let input = "n\n1\n2\n3\n4,4\n5\n6\n7\n";
    check_skips(
        "group=size 2",
        input,
        &["1 2", "3", "5 6", "7"],
        &[(1, "\"line\":5,")],
    );
}

/// The rule cannot be applied to a row without the field.
#[test]
fn a_record_without_the_field_of_the_rule_is_skipped_like_a_bad_one() {
    let input = "kind,order\na,1\na,1\na,2\na\na,2\na,3\na,3\n";
    check_skips(
        "group=key order\nstrict@reader=false",
        input,
        &["a1 a1", "a3 a3"],
        &[
            (1, "\"raw\":\"a,2\""),
            (1, "dropped with its group: "),
            (1, "the record has no field `order`, but `kind`"),
            (1, "\"raw\":\"a,2\""),
        ],
    );
}

/// A group that the writer rejects is whole among the rejects, with the record whose fields the others got.
///
/// Spec: INPUT-04, LOSS-07
#[test]
fn the_header_of_a_group_is_a_reject_with_its_records() {
    let stage = Stage::with_listeners(
        r#"<listeners><listener ref="recordGroupRejects"><properties>
            <property name="rejects.output" value="${dir}/rejects"/><property name="rejects.raw" value="${dir}/raw"/>
            <property name="raw.field" value="raw"/></properties></listener></listeners>"#,
        "reader=\"patternRecordGroupReader\" processor=\"recordGroupProcessor\" writer=\"recordGroupCsvWriter\"",
        "resource=${dir}/in\noutput@writer=${dir}/out\npattern=ORDER;(?<order>.*)|LINE;(?<article>.*)\n\
         group=header order is not null\nheader.fields=number=order\nraw.field=raw\n\
         where@processor=article <> 'first'\ncolumns@writer=number,article\nquotes@writer=never",
        "<skippable-exception-classes><include class=\"EncodeError\"/></skippable-exception-classes>",
    );
    // The header is kept although the line after it is filtered.
    stage.write(
        "in",
        "ORDER;1\nLINE;first\nLINE;pen, red\nLINE;ink\nORDER;2\nLINE;pad\n",
    );
    let ended = stage.completes();
    assert_eq!((ended.writes, ended.skips), (1, 1));
    assert_eq!(stage.read("out"), "number,article\n2,pad\n");
    assert_eq!(stage.read("raw"), "ORDER;1\nLINE;pen, red\nLINE;ink\n");
}

#[test]
fn details_without_a_header_and_groups_that_are_too_large_are_skipped_once() {
    let input = "kind,text\nD,x\nD,y\nH,1\nH,2\nD,x\nD,y\nD,z\nD,z\nH,3\nD,x\nD,y\n";
    check_skips(
        "group=header kind = 'H'\nmax.group.size=3",
        input,
        &["H1", "H3 Dx Dy"],
        &[
            (1, "the item comes before the first header"),
            (1, "\"raw\":\"D,x\""),
            (1, "\"raw\":\"D,y\""),
            (2, "\"raw\":\"H,2\""),
            (2, "\"raw\":\"D,x\""),
            (2, "\"raw\":\"D,y\""),
            (2, "the group has more than 3 items"),
            (2, "\"raw\":\"D,z\""),
            (2, "\"raw\":\"D,z\""),
        ],
    );
}
