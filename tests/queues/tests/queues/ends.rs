//! The ends of runs, and stops while a reader waits.

use std::thread;
use std::time::{Duration, Instant};

use batch_runtime::BatchStatus;

use super::broker::{Kind, Queue};
use super::items;
use super::stage::{Stage, loading};

/// Returns a stage whose end is a parameter of the job.
fn until(queue: &Queue) -> Stage {
    Stage::new(&loading(queue.reader(&[("until", "end")])))
}

/// A run ends after a number of items, also over restarts; the next message is not read.
///
/// Spec: QUEUE-03
#[test]
fn a_run_ends_after_a_number_of_items() {
    for kind in Kind::ALL {
        let queue = Queue::new(kind);
        queue.send(1..=40);
        let stage = until(&queue);
        let failed = stage.start([("until", "items 25"), ("fail.at", "16")]);
        let failed = failed.failed(&["stopped by the test"]);
        let ended = stage
            .restart(&failed, [("until", "items 25"), ("fail.at", "0")])
            .completed();
        assert_eq!(failed.reads + ended.reads, 25);
        let rows = stage.rows();
        assert_eq!(rows.len(), 25);
        if kind == Kind::Nats {
            assert_eq!(rows, items(1..=25));
        }
        let fewer = until(&queue);
        assert_eq!(fewer.start([("until", "items 100, end")]).completed().reads, 40);
        assert_eq!(fewer.rows(), items(1..=40));
    }
}

/// A run ends when no message has arrived for a while: those that arrive meanwhile are read.
///
/// Spec: QUEUE-03
#[test]
fn a_run_ends_when_no_message_arrives() {
    for kind in Kind::ALL {
        let queue = Queue::new(kind);
        let stage = until(&queue);
        queue.send(1..=5);
        let id = stage.operator().start("job", [("until", "idle 3s")]).unwrap();
        for first in [6, 11, 16] {
            queue.send(first..first + 5);
        }
        stage.ended(id).completed();
        assert_eq!(stage.rows(), items(1..=20));
        let begin = Instant::now();
        assert_eq!(
            until(&Queue::new(kind))
                .start([("until", "idle 1s")])
                .completed()
                .reads,
            0
        );
        assert!(begin.elapsed() >= Duration::from_secs(1));
    }
}

/// An empty queue, and one whose messages are all removed, end at once.
///
/// Spec: QUEUE-03
#[test]
fn an_empty_queue_ends_at_once() {
    for kind in Kind::ALL {
        let stage = until(&Queue::new(kind));
        assert_eq!(stage.start(()).completed().reads, 0);
    }
}

/// A stop ends a reader that waits, and a restart continues.
///
/// Spec: QUEUE-11
#[test]
fn a_stop_ends_a_reader_that_waits() {
    for kind in Kind::ALL {
        let queue = Queue::new(kind);
        queue.send(1..=9);
        let stage = until(&queue);
        let operator = stage.operator();
        let id = operator.start("job", [("until", "items 20")]).unwrap();
        // The reader waits for the items behind the first chunk.
        while stage.rows().len() < 7 {
            thread::yield_now();
        }
        assert!(operator.stop(id).unwrap());
        let stopped = stage.ended(id);
        assert_eq!(stopped.status, BatchStatus::Stopped, "{}", stopped.message);
        assert_eq!(stage.rows(), items(1..=9), "{kind:?}");
        queue.send(10..=30);
        stage.restart(&stopped, [("until", "items 20")]).completed();
        let rows = stage.rows();
        assert_eq!(rows.len(), 20);
        if kind == Kind::Nats {
            assert_eq!(rows, items(1..=20));
        }
    }
}

/// A step that takes too long ends, although its reader waits; the job may continue with another step.
///
/// Spec: QUEUE-11
#[test]
fn a_limit_ends_a_reader_that_waits() {
    for kind in Kind::ALL {
        let queue = Queue::new(kind);
        queue.send(1..=9);
        let step = loading(queue.reader(&[("until", "items 20")])).xml();
        let limited = step.replacen(
            "<chunk",
            "<properties><property name=\"batch.step.timeout\" value=\"1\"/></properties><chunk",
            1,
        );
        let next = loading(queue.reader(&[])).xml();
        let limited = limited
            .replacen("<step id=\"step\">", "<step id=\"limited\">", 1)
            .replacen("</step>", "<next on=\"FAILED\" to=\"step\"/></step>", 1);
        let stage = Stage::of(&(limited + &next));
        stage.start(()).completed();
        let rows: Vec<_> = stage.rows();
        let mut expected = items(1..=9);
        expected.extend(items(1..=9));
        expected.sort();
        assert_eq!(rows, expected, "{kind:?}");
    }
}
