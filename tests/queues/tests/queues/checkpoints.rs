//! A checkpoint is the place in the queue: restarts after failures, skipped messages, messages that are gone.

use super::broker::{Kind, Queue, kafka, on_nats};
use super::stage::{Stage, Step, loading};
use super::{item, items};

/// Wherever the step fails, each message is a row once. A restart ends at the messages that were there when the step first started.
///
/// Spec: QUEUE-01, QUEUE-02, QUEUE-03
#[test]
fn a_restart_reads_each_message_once() {
    for kind in Kind::ALL {
        for fail_at in [1, 7, 8, 30, 50] {
            let queue = Queue::new(kind);
            queue.send(1..=50);
            let stage = Stage::new(&loading(queue.reader(&[])));
            let failed = stage.start([("fail.at", fail_at.to_string())]);
            let failed = failed.failed(&["stopped by the test"]);
            assert_eq!(stage.rows().len(), (fail_at - 1) / 7 * 7, "{kind:?}");
            // At the first start the end was not committed, unless a chunk was.
            queue.send(51..=60);
            let again = stage.restart(&failed, [("fail.at", "0")]).completed();
            let last = if fail_at <= 7 { 60 } else { 50 };
            assert_eq!(stage.rows(), items(1..=last), "{kind:?} {fail_at}");
            assert_eq!(failed_reads(&failed) + again.reads, last);
        }
    }
}

fn failed_reads(failed: &super::stage::Ended) -> i64 {
    failed.reads
}

/// A message that is not an item is skipped alone, and named by its place. Without a skip the step fails, at each restart.
///
/// Spec: QUEUE-05
#[test]
fn a_bad_message_is_named_and_skipped() {
    for kind in Kind::ALL {
        let queue = match kind {
            Kind::Kafka => Queue::on_kafka(kafka(), 1),
            Kind::Nats => Queue::new(kind),
        };
        queue.send(1..=3);
        let bad = |key: &str, text: &str| (key.to_owned(), text.to_owned());
        queue.send_texts(vec![bad("a", "{\"id\": \"x\"}"), bad("b", "no JSON")]);
        queue.send(4..=20);
        let place = match kind {
            Kind::Kafka => format!(
                "partition 0 of topic `{}`, offset 3: invalid type: string \"x\"",
                queue.name
            ),
            Kind::Nats => format!("stream `{}`, sequence 4: invalid type: string \"x\"", queue.name),
        };
        let strict = Stage::new(&loading(queue.reader(&[])));
        let failed = strict.start(()).failed(&[&place]);
        strict.restart(&failed, ()).failed(&[&place]);
        let lenient = Stage::new(&Step {
            attributes: "commit-interval=\"7\" skip-limit=\"2\"",
            children: "<skippable-exception-classes><include class=\"RecordError\"/></skippable-exception-classes>",
            ..loading(queue.reader(&[]))
        });
        let failed = lenient.start([("fail.at", "9")]).failed(&["stopped by the test"]);
        assert_eq!(failed.skips, 2);
        assert_eq!(lenient.restart(&failed, [("fail.at", "0")]).completed().skips, 0);
        assert_eq!(lenient.rows(), items(1..=20), "{kind:?}");
    }
}

/// If the broker has removed messages that were not read, a restart fails before it reads, and can continue with those that are left.
///
/// Spec: QUEUE-04
#[test]
fn messages_that_are_gone_are_missed() {
    for kind in Kind::ALL {
        let queue = match kind {
            Kind::Kafka => Queue::on_kafka(kafka(), 1),
            Kind::Nats => Queue::new(kind),
        };
        queue.send(1..=40);
        let stage = Stage::new(&loading(queue.reader(&[("if.removed", "fail")])));
        let failed = stage.start([("fail.at", "15")]).failed(&["stopped by the test"]);
        assert_eq!(stage.rows(), items(1..=14));
        let message = match kind {
            Kind::Kafka => {
                kafka().client(&["trim", &queue.name, "0", "24"]);
                "the broker no longer has offset 14 of partition 0 of topic"
            }
            Kind::Nats => {
                on_nats(&queue.address, async |jetstream| {
                    let stream = jetstream.get_stream(&queue.name).await.unwrap();
                    stream.purge().sequence(25).await.unwrap();
                });
                "the stream no longer has sequence 15, and begins at 25"
            }
        };
        let parts = [
            message,
            "10 messages were removed",
            "restart with `if.removed` = `continue`",
        ];
        let failed = stage.restart(&failed, [("fail.at", "0")]).failed(&parts);
        assert_eq!(failed.reads, 0);
        // The timeout ends a reader that asks for the same offset forever.
        let parameters = [
            ("fail.at", "0"),
            ("if.removed", "continue"),
            ("batch.step.timeout", "60"),
        ];
        stage.restart(&failed, parameters).completed();
        assert_eq!(stage.rows(), items((1..=14).chain(25..=40)), "{kind:?}");
    }
}

/// A queue that was created again has other messages at the same places.
///
/// Spec: QUEUE-04
#[test]
fn a_queue_that_is_created_again_is_noticed() {
    for kind in Kind::ALL {
        let queue = Queue::new(kind);
        queue.send(1..=40);
        let stage = Stage::new(&loading(queue.reader(&[])));
        let failed = stage.start([("fail.at", "15")]).failed(&["stopped by the test"]);
        match kind {
            Kind::Kafka => {
                kafka().client(&["delete", &queue.name]);
                kafka().client(&["create", &queue.name, "3"]);
            }
            Kind::Nats => {
                on_nats(&queue.address, async |jetstream| {
                    jetstream.delete_stream(&queue.name).await.unwrap();
                });
                queue.create_stream(Default::default());
            }
        }
        queue.send(1..=40);
        let parts = ["has been deleted and created again", "launch a new"];
        stage.restart(&failed, [("fail.at", "0")]).failed(&parts);
        assert_eq!(stage.rows().len(), 14);
    }
}

/// The next instance reads what has arrived since the last one, if the rows have their places.
///
/// Spec: QUEUE-06
#[test]
fn a_new_instance_starts_where_the_rows_end() {
    for kind in Kind::ALL {
        let queue = Queue::new(kind);
        let (fields, query): (&[_], _) = match kind {
            Kind::Kafka => (
                &[
                    ("partition.field", "part"),
                    ("offset.field", "place"),
                    ("key.field", "source"),
                ],
                "SELECT part AS \"partition\", MAX(place) + 1 AS \"offset\" FROM item GROUP BY part",
            ),
            Kind::Nats => (
                &[("sequence.field", "place"), ("subject.field", "source")],
                "SELECT MAX(place) + 1 AS sequence FROM item",
            ),
        };
        let properties = [fields, &[("start.query", query)]].concat();
        let stage = Stage::new(&loading(queue.reader(&properties)));
        for (run, ids) in [1..=20, 21..=21, 22..=60].into_iter().enumerate() {
            queue.send(ids.clone());
            let ended = stage.start([("run", run.to_string())]).completed();
            assert_eq!(ended.reads, ids.count() as i64);
        }
        stage.start([("run", "none")]).completed();
        let rows = stage.rows();
        let plain: Vec<_> = rows.iter().map(|row| (row.id, row.text.clone())).collect();
        let expected: Vec<_> = (1..=60).map(|id| (id, item(id).text)).collect();
        assert_eq!(plain, expected);
        for row in rows {
            match kind {
                Kind::Kafka => assert_eq!(row.source, Some(row.id.to_string())),
                Kind::Nats => {
                    assert_eq!(row.source, Some(format!("{}.old", queue.name)));
                    assert_eq!(row.place, Some(row.id));
                }
            }
        }
    }
}
