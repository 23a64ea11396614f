//! What only Kafka has: transactions, compression, keys, partitions.

use std::{fs, thread};

use super::broker::{Queue, kafka};
use super::items;
use super::stage::{Stage, Step, loading};

fn messages(ids: std::ops::RangeInclusive<i64>) -> Vec<String> {
    let items = items(ids);
    items
        .iter()
        .map(|item| format!("{}|{}", item.id, serde_json::to_string(item).unwrap()))
        .collect()
}

fn send(topic: &str, how: &str, compression: &str, ids: std::ops::RangeInclusive<i64>) {
    let messages = messages(ids);
    let mut words = vec![how, topic, compression];
    words.extend(messages.iter().map(String::as_str));
    kafka().client(&words);
}

/// Messages of aborted transactions are not read, and markers of transactions are no messages: the end of a run may be one.
///
/// Spec: QUEUE-01, QUEUE-03
#[test]
fn only_committed_messages_are_read() {
    for partitions in [1, 3] {
        let queue = Queue::on_kafka(kafka(), partitions);
        send(&queue.name, "commit", "none", 1..=20);
        send(&queue.name, "abort", "none", 100..=130);
        send(&queue.name, "send", "none", 21..=30);
        send(&queue.name, "commit", "zstd", 31..=40);
        send(&queue.name, "abort", "none", 200..=205);
        let stage = Stage::new(&loading(queue.reader(&[])));
        let failed = stage.start([("fail.at", "17")]).failed(&["stopped by the test"]);
        let again = stage.restart(&failed, [("fail.at", "0")]).completed();
        assert_eq!(stage.rows(), items(1..=40));
        assert_eq!(failed.reads + again.reads, 40);
        // Nothing but a marker is new.
        send(&queue.name, "abort", "none", 300..=305);
        assert_eq!(
            Stage::new(&loading(queue.reader(&[])))
                .start(())
                .completed()
                .reads,
            40
        );
    }
}

/// Spec: QUEUE-01
#[test]
fn each_compression_is_read() {
    let queue = Queue::on_kafka(kafka(), 2);
    for (number, compression) in (0..).zip(["none", "gzip", "snappy", "lz4", "zstd"]) {
        send(
            &queue.name,
            "send",
            compression,
            number * 100 + 1..=number * 100 + 100,
        );
    }
    let stage = Stage::new(&loading(queue.reader(&[])));
    stage.start(()).completed();
    assert_eq!(stage.rows(), items(1..=500));
}

/// A message without a value is an error, unless the job does not want to read such.
///
/// Spec: QUEUE-05
#[test]
fn messages_without_a_value_can_be_left_out() {
    let queue = Queue::on_kafka(kafka(), 1);
    queue.send(1..=3);
    kafka().client(&["send", &queue.name, "none", "2"]);
    queue.send(4..=5);
    let strict = Stage::new(&loading(queue.reader(&[])));
    strict
        .start(())
        .failed(&["offset 3: the message has no value", "`if.null` = `skip`"]);
    let lenient = Stage::new(&loading(queue.reader(&[("if.null", "skip")])));
    lenient.start(()).completed();
    assert_eq!(lenient.rows(), items(1..=5));
}

/// The partitions of a step read the partitions of the topic, each once, also after a restart.
///
/// Spec: QUEUE-02
#[test]
fn a_partitioned_step_reads_each_partition_once() {
    for limit in ["", "<property name=\"partitions.limit\" value=\"2\"/>"] {
        let queue = Queue::on_kafka(kafka(), 5);
        queue.send(1..=100);
        let servers = format!(
            "<property name=\"servers\" value=\"{}\"/><property name=\"topic\" value=\"{}\"/>",
            queue.address, queue.name
        );
        let stage = Stage::of(&format!(
            "<step id=\"step\"><partition><algorithm ref=\"kafkaPartitions\"><properties>{servers}{limit}</properties></algorithm></partition>\
             <chunk reader=\"FromKafka\" processor=\"Pass\" writer=\"ToTable\" commit-interval=\"3\"><properties>{servers}\
             <property name=\"partitions\" value=\"${{partitions}}\"/><property name=\"partition.field\" value=\"part\"/>\
             <property name=\"table\" value=\"item\"/><property name=\"fail.at\" value=\"0\"/></properties></chunk></step>"
        ));
        let failed = stage.start([("fail.at", "8")]).failed(&[]);
        stage.restart(&failed, [("fail.at", "0")]).completed();
        let mut rows = stage.rows();
        assert!(rows.iter().any(|row| row.part == Some(4)));
        rows.iter_mut().for_each(|row| row.part = None);
        assert_eq!(rows, items(1..=100));
    }
}

/// A reader of some partitions reads only those.
#[test]
fn some_partitions_are_read() {
    let queue = Queue::on_kafka(kafka(), 3);
    queue.send(1..=60);
    let reader = queue.reader(&[("partitions", "0,2"), ("partition.field", "part")]);
    let stage = Stage::new(&loading(reader));
    let ended = stage.start(()).completed();
    let rows = stage.rows();
    assert!(ended.reads > 0 && ended.reads < 60);
    assert!(rows.iter().all(|row| row.part != Some(1)));
}

/// A message with a key goes where Kafka's own producer puts it, and has its headers.
///
/// Spec: QUEUE-07
#[test]
fn keys_and_headers_are_those_of_other_producers() {
    for compression in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let (ours, theirs) = (Queue::on_kafka(kafka(), 7), Queue::on_kafka(kafka(), 7));
        theirs.send(1..=200);
        let further = [
            ("key", "{id}"),
            ("headers", "source=test; number={id}; none={source}"),
            ("compression", compression),
        ];
        let stage = Stage::new(&Step {
            reader: ("Items", vec![("items", "200".to_owned())]),
            writer: ours.writer(&further),
            attributes: "commit-interval=\"60\"",
            children: "",
        });
        // `source` is not a field of the message when it is null.
        let missing = stage.start(()).failed(&["`headers`: there is no field `source`"]);
        assert_eq!(missing.reads, 0);
        let further = [further[0], ("headers", "source=test; number={id}"), further[2]];
        let stage = Stage::new(&Step {
            reader: ("Items", vec![("items", "200".to_owned())]),
            writer: ours.writer(&further),
            attributes: "commit-interval=\"60\"",
            children: "",
        });
        stage.start(()).completed();
        let lines = |queue: &Queue| {
            let mut lines = kafka().client(&["read", &queue.name]);
            lines.sort();
            lines
        };
        let with_headers = lines(&theirs).into_iter().map(|line| {
            let key = line.split('\t').nth(1).unwrap();
            format!("{line}source=test;number={key};")
        });
        assert_eq!(lines(&ours), with_headers.collect::<Vec<_>>(), "{compression}");
    }
}

/// Texts are items, too; messages without a key are in all partitions.
#[test]
fn messages_without_a_key_go_to_all_partitions() {
    let queue = Queue::on_kafka(kafka(), 3);
    let stage = Stage::new(&Step {
        reader: ("Items", vec![("items", "60".to_owned())]),
        writer: queue.writer(&[]),
        attributes: "commit-interval=\"10\"",
        children: "",
    });
    stage.start(()).completed();
    assert_eq!(queue.stored(), items(1..=60));
    let lines = kafka().client(&["read", &queue.name]);
    let partitions: std::collections::BTreeSet<_> = lines
        .iter()
        .map(|line| line.split('\t').next().unwrap())
        .collect();
    assert_eq!(partitions.len(), 3);
    let (_, properties) = queue.reader(&[]);
    let copy = Stage::of(&format!(
        "<step id=\"step\"><chunk reader=\"TextFromKafka\" processor=\"ToLine\" writer=\"TextToFile\"><properties>{}\
         <property name=\"output\" value=\"${{dir}}/out\"/></properties></chunk></step>",
        super::stage::properties(&properties, "reader")
    ));
    copy.start([("dir", copy.path().display().to_string())])
        .completed();
    let text = std::fs::read_to_string(copy.path().join("out")).unwrap();
    assert_eq!(text.lines().count(), 60);
}

/// A restart reads the same partitions: others would be read twice, or not to their end.
///
/// Spec: QUEUE-02
#[test]
fn a_restart_reads_the_same_partitions() {
    let queue = Queue::on_kafka(kafka(), 3);
    queue.send(1..=60);
    let stage = Stage::new(&loading(queue.reader(&[("partitions", "0,1")])));
    let mut failed = stage.start([("fail.at", "15")]).failed(&["stopped by the test"]);
    for (partitions, other) in [("0", "1"), ("0-2", "2")] {
        let message = format!("which differ in {other}; restart the job with the same");
        failed = stage
            .restart(&failed, [("fail.at", "0"), ("partitions", partitions)])
            .failed(&[&message]);
    }
    stage
        .restart(&failed, [("fail.at", "0"), ("partitions", "0,1")])
        .completed();
    let rows = stage.rows();
    assert_eq!(
        rows.len(),
        Stage::new(&loading(queue.reader(&[("partitions", "0,1")])))
            .start(())
            .completed()
            .reads as usize
    );
    let mut ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    ids.dedup();
    assert_eq!(ids.len(), rows.len(), "none is there twice");
}

/// Messages that the broker removes while the step reads are missed if the job accepts that, and else fail the step.
///
/// Spec: QUEUE-04
#[test]
fn messages_are_removed_while_the_step_reads() {
    for if_removed in ["continue", "fail"] {
        let queue = Queue::on_kafka(kafka(), 1);
        queue.send(1..=10);
        let reader = queue.reader(&[("until", "items 20"), ("if.removed", if_removed)]);
        let stage = Stage::new(&loading(reader));
        let held = stage.path().join("held");
        let parameters = [
            ("hold.at", "10"),
            ("held", &held.display().to_string()),
            // It ends a reader that asks for the same offset forever.
            ("batch.step.timeout", "60"),
        ];
        let id = stage.operator().start("job", parameters).unwrap();
        while !held.exists() {
            thread::yield_now();
        }
        // The reader has fetched what was there, and continues at offset 10.
        queue.send(11..=40);
        kafka().client(&["trim", &queue.name, "0", "24"]);
        fs::remove_file(&held).unwrap();
        let ended = stage.ended(id);
        if if_removed == "continue" {
            ended.completed();
            assert_eq!(stage.rows(), items((1..=10).chain(25..=34)));
        } else {
            ended.failed(&[
                "the broker no longer has offset 10 of",
                "14 messages were removed",
            ]);
            assert_eq!(stage.rows(), items(1..=7));
        }
    }
}
