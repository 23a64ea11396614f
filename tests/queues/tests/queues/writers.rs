//! Writers: each message is stored before its chunk commits.

use super::broker::{Kind, Queue};
use super::items;
use super::stage::{Stage, Step, loading};

/// A chunk is committed after its messages are stored, so after a failure none is missing; without a crash none is there twice either.
///
/// Spec: QUEUE-07
#[test]
fn a_restart_writes_the_rest() {
    for kind in Kind::ALL {
        let queue = Queue::new(kind);
        let stage = Stage::new(&Step {
            reader: ("Items", vec![("items", "50".to_owned())]),
            writer: queue.writer(&[]),
            attributes: "commit-interval=\"7\"",
            children: "",
        });
        let failed = stage.start([("fail.at", "30")]).failed(&["stopped by the test"]);
        assert_eq!(queue.stored(), items(1..=28));
        stage.restart(&failed, [("fail.at", "0")]).completed();
        assert_eq!(queue.stored(), items(1..=50), "{kind:?}");
    }
}

/// A process that dies between the flush and the commit is like a commit that fails: the messages of the chunk are written again, and
/// only a stream with ids stores them once.
///
/// Spec: QUEUE-08, QUEUE-10
#[test]
fn a_chunk_that_is_rolled_back_is_written_again() {
    for (kind, further, twice) in [
        (Kind::Kafka, &[][..], true),
        (Kind::Kafka, &[("key", "{id}")], true),
        (Kind::Nats, &[], true),
        (Kind::Nats, &[("message.id", "position")], false),
        (Kind::Nats, &[("message.id", "item {id}")], false),
    ] {
        let queue = Queue::new(kind);
        let step = Step {
            reader: ("Items", vec![("items", "50".to_owned())]),
            writer: queue.writer(further),
            attributes: "commit-interval=\"7\"",
            children: "",
        };
        let listener = "<listeners><listener ref=\"FailingCommit\"><properties><property name=\"fail.commit\" value=\"0\"/></properties>\
                        </listener></listeners><chunk";
        let stage = Stage::of(&step.xml().replacen("<chunk", listener, 1));
        let failed = stage.start([("fail.commit", "3")]).failed(&["the commit fails"]);
        assert_eq!(queue.stored(), items(1..=21), "the messages were flushed");
        stage.restart(&failed, [("fail.commit", "0")]).completed();
        let mut expected = items(1..=50);
        if twice {
            expected.extend(items(15..=21));
            expected.sort();
        }
        assert_eq!(queue.stored(), expected, "{kind:?} {further:?}");
    }
}

/// A message that is too large for the broker is skipped alone; the other messages of its chunk are written again in the search for it.
///
/// Spec: QUEUE-08
#[test]
fn a_message_that_is_too_large_is_skipped() {
    for kind in Kind::ALL {
        let queue = Queue::new(kind);
        let step = |attributes, children| Step {
            reader: (
                "Items",
                vec![("items", "20".to_owned()), ("large", "9".to_owned())],
            ),
            writer: queue.writer(&[]),
            attributes,
            children,
        };
        let failed = Stage::new(&step("", "")).start(());
        failed.failed(&["cannot write item 9 of the chunk", "bytes is larger than the "]);
        let skip =
            "<skippable-exception-classes><include class=\"EncodeError\"/></skippable-exception-classes>";
        let ended = Stage::new(&step("skip-limit=\"1\"", skip)).start(()).completed();
        assert_eq!(ended.skips, 1);
        let mut stored = queue.stored();
        stored.dedup();
        assert_eq!(stored, items((1..=20).filter(|id| *id != 9)));
    }
}

/// What is copied from one broker to the other is the same.
#[test]
fn messages_are_copied_between_brokers() {
    let (from, to) = (Queue::new(Kind::Kafka), Queue::new(Kind::Nats));
    // More than the messages that are sent or fetched at once.
    from.send(1..=1_200);
    let stage = Stage::new(&Step {
        reader: from.reader(&[]),
        writer: to.writer(&[("message.id", "{id}")]),
        attributes: "commit-interval=\"1100\"",
        children: "",
    });
    stage.start(()).completed();
    assert_eq!(to.stored(), items(1..=1_200));
    let back = Stage::new(&loading(to.reader(&[])));
    back.start(()).completed();
    assert_eq!(back.rows(), items(1..=1_200));
}
