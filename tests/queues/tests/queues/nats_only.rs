//! What only NATS has: subjects, ids of messages.

use async_nats::jetstream::stream;

use super::broker::{Kind, Queue, nats, on_nats};
use super::stage::{Stage, Step, loading};
use super::{item, items};

fn text(id: i64) -> String {
    serde_json::to_string(&item(id)).unwrap()
}

/// Only messages of the subject are read, and a run ends although the last message has another one.
///
/// Spec: QUEUE-01, QUEUE-03
#[test]
fn a_subject_selects_messages() {
    let queue = Queue::new(Kind::Nats);
    for id in 1..=30 {
        queue.publish(vec![
            (format!("eu.{id}"), text(id)),
            ("us.1".to_owned(), text(-id)),
        ]);
    }
    let subject = format!("{}.eu.*", queue.name);
    let stage = Stage::new(&loading(queue.reader(&[("subject", &subject)])));
    let failed = stage.start([("fail.at", "20")]).failed(&["stopped by the test"]);
    queue.publish(vec![("eu.31".to_owned(), text(31))]);
    stage.restart(&failed, [("fail.at", "0")]).completed();
    assert_eq!(stage.rows(), items(1..=30));
}

/// Messages that were deleted one by one are no loss, wherever they were.
///
/// Spec: QUEUE-03, QUEUE-04
#[test]
fn deleted_messages_leave_gaps() {
    let queue = Queue::new(Kind::Nats);
    queue.send(1..=40);
    on_nats(&queue.address, async |jetstream| {
        let stream = jetstream.get_stream(&queue.name).await.unwrap();
        for sequence in [3, 4, 20, 39, 40] {
            stream.delete_message(sequence).await.unwrap();
        }
    });
    let stage = Stage::new(&loading(queue.reader(&[])));
    let failed = stage.start([("fail.at", "17")]).failed(&["stopped by the test"]);
    stage.restart(&failed, [("fail.at", "0")]).completed();
    let left = (1..=38).filter(|id| ![3, 4, 20].contains(id));
    assert_eq!(stage.rows(), items(left));
}

/// A stream that keeps the last message of each subject removes others as intended.
///
/// Spec: QUEUE-04
#[test]
fn a_compacted_stream_is_read() {
    let config = stream::Config {
        max_messages_per_subject: 1,
        ..Default::default()
    };
    let queue = Queue::on_nats(nats(), config);
    let publish = |ids: std::ops::RangeInclusive<i64>| {
        queue.publish(ids.map(|id| (format!("key{}", id % 10), text(id))).collect());
    };
    publish(1..=20);
    let stage = Stage::new(&loading(queue.reader(&[("until", "idle 1s")])));
    let failed = stage.start([("fail.at", "9")]).failed(&["stopped by the test"]);
    assert_eq!(stage.rows(), items(11..=17));
    publish(21..=30);
    stage.restart(&failed, [("fail.at", "0")]).completed();
    assert_eq!(stage.rows(), items((11..=17).chain(21..=30)));
}

fn writing(queue: &Queue, further: &[(&'static str, &str)]) -> Stage {
    Stage::new(&Step {
        reader: ("Items", vec![("items", "50".to_owned())]),
        writer: queue.writer(further),
        attributes: "commit-interval=\"7\"",
        children: "",
    })
}

/// With ids, a stream stores a message once that is written again: by another instance if the ids name the item, by a restart of the
/// instance if they are positions.
///
/// Spec: QUEUE-10
#[test]
fn ids_keep_messages_from_being_stored_twice() {
    let twice = |queue: &Queue, further: &[(&'static str, &str)]| {
        for _ in 0..2 {
            writing(queue, further).start(()).completed();
        }
        queue.stored().len()
    };
    let by_field = Queue::new(Kind::Nats);
    assert_eq!(twice(&by_field, &[("message.id", "{id}")]), 50);
    assert_eq!(by_field.stored(), items(1..=50));
    let without = Queue::new(Kind::Nats);
    assert_eq!(twice(&without, &[]), 100);
    // Each stage is a separate repository, with the same names and numbers.
    let by_position = Queue::new(Kind::Nats);
    assert_eq!(twice(&by_position, &[("message.id", "position")]), 50);
    let stage = writing(&by_position, &[("message.id", "position")]);
    stage.start([("instance", "1")]).completed();
    stage.start([("instance", "2")]).completed();
    assert_eq!(by_position.stored().len(), 100, "another instance has other ids");
}

/// Subjects and headers have fields of the item. An item whose subject is not one is an error.
///
/// Spec: QUEUE-07
#[test]
fn subjects_and_headers_have_fields() {
    let queue = Queue::new(Kind::Nats);
    let subject = format!("{}.item.{{id}}", queue.name);
    let headers = "source=test; number={id}";
    writing(&queue, &[("subject", &subject), ("headers", headers)])
        .start(())
        .completed();
    on_nats(&queue.address, async |jetstream| {
        let stream = jetstream.get_stream(&queue.name).await.unwrap();
        let message = stream.get_raw_message(9).await.unwrap();
        assert_eq!(message.subject.as_str(), format!("{}.item.9", queue.name));
        assert_eq!(message.headers.get("number").unwrap().as_str(), "9");
        assert_eq!(message.headers.get("source").unwrap().as_str(), "test");
    });
    let blank = format!("{}.{{text}}", queue.name);
    writing(&queue, &[("subject", &blank)])
        .start(())
        .failed(&["item 1 of the chunk", "not a valid subject"]);
    writing(&queue, &[("headers", "Nats-Msg-Id={id}")])
        .start(())
        .failed(&["set `message.id`"]);
}

/// If a restart gets other items, a position belongs to another message: all are stored.
///
/// Spec: QUEUE-10
#[test]
fn a_position_hides_no_other_message() {
    let queue = Queue::new(Kind::Nats);
    let step = Step {
        reader: (
            "Items",
            vec![("items", "30".to_owned()), ("suffix", String::new())],
        ),
        writer: queue.writer(&[("message.id", "position")]),
        attributes: "commit-interval=\"7\"",
        children: "",
    };
    let listener = "<listeners><listener ref=\"FailingCommit\"><properties><property name=\"fail.commit\" value=\"0\"/></properties>\
                    </listener></listeners><chunk";
    let stage = Stage::of(&step.xml().replacen("<chunk", listener, 1));
    let failed = stage.start([("fail.commit", "3")]).failed(&["the commit fails"]);
    let parameters = [("fail.commit", "0"), ("suffix", ", corrected")];
    stage.restart(&failed, parameters).completed();
    let stored = queue.stored();
    let corrected: Vec<i64> = stored
        .iter()
        .filter(|item| item.text.ends_with("corrected"))
        .map(|item| item.id)
        .collect();
    assert_eq!(corrected, Vec::from_iter(15..=30));
    assert_eq!(stored.len(), 21 + 16);
}
