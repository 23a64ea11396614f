//! Brokers that are gone for a while, in the middle of a run.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use batch_runtime::BatchStatus;
use batch_test_servers::{KafkaServer, NatsServer};

use super::broker::{Kind, Queue, start_nats};
use super::items;
use super::stage::{Ended, Stage, Step, loading};

/// What a test does with the broker that it has alone.
trait Broker {
    fn queue(&self) -> Queue;
    fn crash(&mut self);
    fn restart(&mut self);
    fn send(&self, queue: &Queue, ids: std::ops::RangeInclusive<i64>);
    fn stored(&self, queue: &Queue) -> Vec<super::Item>;
}

impl Broker for KafkaServer {
    fn queue(&self) -> Queue {
        Queue::on_kafka(self, 2)
    }

    fn crash(&mut self) {
        self.crash();
    }

    fn restart(&mut self) {
        self.restart();
    }

    fn send(&self, queue: &Queue, ids: std::ops::RangeInclusive<i64>) {
        let items = items(ids);
        let messages = items
            .iter()
            .map(|item| format!("{}|{}", item.id, serde_json::to_string(item).unwrap()));
        let messages: Vec<String> = messages.collect();
        let mut words = vec!["send", &queue.name, "none"];
        words.extend(messages.iter().map(String::as_str));
        self.client(&words);
    }

    fn stored(&self, queue: &Queue) -> Vec<super::Item> {
        queue.stored_on(self)
    }
}

impl Broker for NatsServer {
    fn queue(&self) -> Queue {
        Queue::on_nats(self, Default::default())
    }

    fn crash(&mut self) {
        self.crash();
    }

    fn restart(&mut self) {
        self.restart();
    }

    fn send(&self, queue: &Queue, ids: std::ops::RangeInclusive<i64>) {
        queue.send(ids);
    }

    fn stored(&self, queue: &Queue) -> Vec<super::Item> {
        queue.stored()
    }
}

/// Calls `act` with brokers that only these tests use, one at a time.
fn each(act: impl Fn(&mut dyn Broker)) {
    static KAFKA: LazyLock<Mutex<KafkaServer>> = LazyLock::new(|| Mutex::new(KafkaServer::start()));
    static NATS: LazyLock<Mutex<NatsServer>> = LazyLock::new(|| Mutex::new(start_nats()));
    for kind in Kind::ALL {
        match kind {
            Kind::Kafka => act(&mut *KAFKA.lock().unwrap_or_else(PoisonError::into_inner)),
            Kind::Nats => act(&mut *NATS.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

fn reading(queue: &Queue, further: &[(&'static str, &str)]) -> Stage {
    Stage::new(&Step {
        attributes: "commit-interval=\"3\"",
        ..loading(queue.reader(further))
    })
}

fn writing(queue: &Queue, further: &[(&'static str, &str)]) -> Stage {
    Stage::new(&Step {
        reader: ("Items", vec![("items", "400".to_owned())]),
        writer: queue.writer(further),
        attributes: "commit-interval=\"3\"",
        children: "",
    })
}

/// Runs a job, and crashes the broker when the job has committed some chunks. It starts again at once.
fn interrupted(stage: &Stage, broker: &mut dyn Broker, commits: i64) -> Ended {
    let operator = stage.operator();
    let id = operator.start("job", ()).unwrap();
    let committed = || {
        operator
            .step_executions(id)
            .unwrap()
            .first()
            .map_or(0, |step| step.counters.commits)
    };
    while committed() < commits {
        thread::yield_now();
    }
    broker.crash();
    broker.restart();
    stage.ended(id)
}

/// A reader that waits when its broker crashes continues when it is there again.
///
/// Spec: QUEUE-09
#[test]
fn a_reader_outlives_its_broker() {
    each(|broker| {
        let queue = broker.queue();
        broker.send(&queue, 1..=30);
        let stage = reading(&queue, &[("until", "items 60")]);
        let operator = stage.operator();
        let id = operator.start("job", ()).unwrap();
        while stage.rows().len() < 30 {
            thread::yield_now();
        }
        broker.crash();
        broker.restart();
        broker.send(&queue, 31..=60);
        stage.ended(id).completed();
        assert_eq!(stage.rows(), items(1..=60));
    });
}

/// A writer whose broker crashes continues: no message is lost, and none is there twice, because Kafka knows the numbers of the
/// producer, and NATS the ids.
///
/// Spec: QUEUE-09
#[test]
fn a_writer_outlives_its_broker() {
    each(|broker| {
        let queue = broker.queue();
        let further: &[_] = match queue.kind {
            Kind::Kafka => &[],
            Kind::Nats => &[("message.id", "{id}")],
        };
        let stage = writing(&queue, further);
        interrupted(&stage, broker, 10).completed();
        assert_eq!(broker.stored(&queue), items(1..=400));
    });
}

/// If the broker stays away for longer than `timeout`, the step fails, and a restart continues.
///
/// Spec: QUEUE-09
#[test]
fn a_step_fails_if_the_broker_stays_away() {
    each(|broker| {
        let (queue, copy) = (broker.queue(), broker.queue());
        broker.send(&queue, 1..=30);
        let stage = reading(&queue, &[("until", "items 60"), ("timeout", "1s")]);
        let operator = stage.operator();
        let id = operator.start("job", ()).unwrap();
        while stage.rows().len() < 30 {
            thread::yield_now();
        }
        broker.crash();
        let failed = stage.ended(id).failed(&["the `timeout` of 1 s is over"]);
        // As long as it is away, each restart fails.
        let failed = stage.restart(&failed, ()).failed(&["cannot connect"]);
        broker.restart();
        broker.send(&queue, 31..=90);
        assert_eq!(stage.restart(&failed, ()).status, BatchStatus::Completed);
        let rows = stage.rows();
        assert_eq!(rows.len(), 60);
        if queue.kind == Kind::Nats {
            assert_eq!(rows, items(1..=60));
        }

        let further: &[_] = match queue.kind {
            Kind::Kafka => &[("timeout", "1s")],
            Kind::Nats => &[("timeout", "1s"), ("message.id", "position")],
        };
        let stage = writing(&copy, further);
        let operator = stage.operator();
        let id = operator.start("job", ()).unwrap();
        while operator
            .step_executions(id)
            .unwrap()
            .first()
            .map_or(0, |step| step.counters.commits)
            < 5
        {
            thread::yield_now();
        }
        broker.crash();
        let failed = stage.ended(id).failed(&["the `timeout` of 1 s is over"]);
        broker.restart();
        stage.restart(&failed, ()).completed();
        let mut stored = broker.stored(&copy);
        if copy.kind == Kind::Kafka {
            stored.dedup();
        }
        assert_eq!(stored, items(1..=400));
    });
}
