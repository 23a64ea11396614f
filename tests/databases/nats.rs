//! The dispatcher over NATS JetStream: every test of dispatchers, and what only a broker can do.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::{self, stream::Stream};
use batch_test_servers::NatsServer;
use batch_tests::database::{Database, Place};
use batch_tests::fleet::{Fleet, Queue, until};
use batch_tests::{dispatcher_tests, dispatching, slow};

/// Returns an address that no other test uses on the server.
fn address(server: &NatsServer) -> (String, String) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let prefix = format!("test{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    (format!("{}?prefix={prefix}", server.url()), prefix)
}

fn fleet_on(server: &NatsServer) -> Fleet {
    let (address, prefix) = address(server);
    fleet_at(address).with_queue(Tickets::new(server, prefix))
}

fn fleet_at(address: String) -> Fleet {
    let place = |folder: &Path| Place::new(Database::Postgres, folder);
    Fleet::new(env!("CARGO_BIN_EXE_fleet"), place, address)
}

/// The work queue of a fleet.
struct Tickets {
    url: String,
    prefix: String,
    kept: Mutex<Vec<(String, Vec<u8>)>>,
}

impl Tickets {
    fn new(server: &NatsServer, prefix: String) -> Self {
        Self {
            url: server.url().to_owned(),
            prefix,
            kept: Mutex::default(),
        }
    }

    fn with<T>(&self, act: impl AsyncFnOnce(jetstream::Context, Stream) -> T) -> Option<T> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let client = async_nats::connect(&self.url).await.unwrap();
            let jetstream = jetstream::new(client);
            let name = format!("{}_PARTITIONS", self.prefix.to_uppercase());
            // Until the first process has connected, there is none.
            match jetstream.get_stream(name).await {
                Ok(stream) => Some(act(jetstream, stream).await),
                Err(_) => None,
            }
        })
    }
}

impl Queue for Tickets {
    /// The tickets of partitions that run wait, too, until they are acknowledged.
    fn waiting(&self, _: &Fleet) -> i64 {
        self.with(async |_, mut stream| {
            let info = stream.info().await.unwrap();
            i64::try_from(info.state.messages).unwrap()
        })
        .unwrap_or(0)
    }

    fn lose(&self, _: &Fleet) -> i64 {
        self.with(async |_, stream| {
            let purged = stream.purge().await.unwrap().purged;
            i64::try_from(purged).unwrap()
        })
        .unwrap()
    }

    fn keep(&self, _: &Fleet) {
        let kept = self.with(async |_, mut stream| {
            let last = stream.info().await.unwrap().state.last_sequence;
            let mut kept = Vec::new();
            for sequence in 1..=last {
                if let Ok(message) = stream.get_raw_message(sequence).await {
                    kept.push((message.subject.to_string(), message.payload.to_vec()));
                }
            }
            kept
        });
        *self.kept.lock().unwrap() = kept.unwrap();
    }

    fn repeat(&self, _: &Fleet) {
        let kept = self.kept.lock().unwrap().clone();
        self.with(async |jetstream, _| {
            for (subject, payload) in kept {
                jetstream
                    .publish(subject, payload.into())
                    .await
                    .unwrap()
                    .await
                    .unwrap();
            }
        })
        .unwrap();
    }
}

dispatcher_tests!(nats, fleet_on(NatsServer::shared()));

/// The broker dies in the middle of a run, and comes back: reports and tickets that were on their way arrive late, or again.
///
/// Spec: DISP-05, DISP-14
#[test]
fn a_killed_broker_costs_time_only() {
    let mut server = NatsServer::start("");
    let fleet = fleet_on(&server);
    let logging = ["--log", "info"];
    let mut workers = [fleet.worker(&logging), fleet.worker(&logging)];
    let mut job = fleet.start(&["launch", "fleet", "parts=6", "items=3000", "-pace=1"]);
    for part in [2, 4] {
        let begun = format!("SELECT COUNT(DISTINCT part) AS n FROM processed WHERE part < {part}");
        until("partitions have committed", || {
            (fleet.number(&begun) == part).then_some(())
        });
        server.crash();
        let rows = fleet.number("SELECT COUNT(*) AS n FROM processed");
        until("the partitions go on without the broker", || {
            (fleet.number("SELECT COUNT(*) AS n FROM processed") > rows).then_some(())
        });
        server.restart();
    }
    job.ends(0);
    fleet.is_exact(18_000);
    for worker in &mut workers {
        worker.says("disconnected from the NATS server; reconnecting");
        worker.says("connected to the NATS server again");
    }
}

/// Tickets that are submitted while the broker is away are published when it is back.
///
/// Spec: DISP-05, DISP-14
#[test]
fn partitions_are_submitted_to_a_broker_that_is_away() {
    let mut server = NatsServer::start("");
    let fleet = fleet_on(&server);
    let _worker = fleet.worker(&[]);
    fleet.hold();
    let mut job = fleet.start(&["launch", "fleet", "holds=0", "batch.partition.threads=1"]);
    fleet.is_held();
    server.crash();
    fleet.release();
    job.says("has not acknowledged tickets");
    server.restart();
    job.ends(0);
    fleet.is_exact(200);
}

/// The broker is away while all partitions send their payloads and end: the coordinator finds the ends in the repository.
///
/// Spec: DISP-14, SUBJOB-09, SUBJOB-11
#[test]
fn payloads_do_not_need_the_broker() {
    let mut server = NatsServer::start("");
    let fleet = fleet_on(&server);
    let _worker = fleet.worker(&["--slots", "4"]);
    fleet.hold();
    let mut job = fleet.start(&["launch", "fleet", "parts=1", "items=200", "holds=0"]);
    fleet.is_held();
    server.crash();
    fleet.release();
    let shown = job.ends(0);
    assert!(shown.contains(" 200 items, 1 parts"), "{shown}");
    server.restart();
    fleet.is_exact(200);
}

/// A ticket is delivered to a second worker while the first one still runs its partition.
///
/// Spec: DISP-04, DISP-14
#[test]
fn a_partition_may_take_longer_than_the_broker_waits() {
    let server = NatsServer::shared();
    let (address, prefix) = address(server);
    let tickets = Tickets::new(server, prefix.clone());
    let fleet = fleet_at(address).with_queue(Tickets::new(server, prefix.clone()));
    let first = fleet.worker(&["--slots", "1"]);
    fleet.hold();
    let mut job = fleet.start(&["launch", "fleet", "parts=1", "holds=0"]);
    assert_eq!(fleet.is_held(), first.id());
    let _second = fleet.worker(&[]);
    // Less than the workers accept, which extend tickets every 5 s.
    let impatient = pull::Config {
        durable_name: Some("worker_default".into()),
        filter_subject: format!("{prefix}.part.default.*"),
        ack_policy: AckPolicy::Explicit,
        ack_wait: Duration::from_secs(1),
        max_ack_pending: 100_000,
        ..pull::Config::default()
    };
    let changed = tickets.with(async |_, stream| stream.create_consumer(impatient).await);
    changed.unwrap().unwrap();
    // It has acknowledged the ticket, because the partition is claimed.
    until("the ticket is delivered again", || {
        (fleet.waiting() == 0).then_some(())
    });
    fleet.release();
    job.ends(0);
    fleet.is_exact(50);
}

/// Tickets expire, and `ack-wait` takes effect for a queue that exists.
///
/// Spec: DISP-14
#[test]
fn options_change_an_existing_queue() {
    let server = NatsServer::shared();
    let (address, prefix) = address(server);
    let tickets = Tickets::new(server, prefix);
    for (options, seconds) in [("", 30), ("&ack-wait=15", 15)] {
        let fleet = fleet_at(format!("{address}{options}"));
        let _worker = fleet.worker(&[]);
        let read = tickets.with(async |_, stream| {
            let consumer = stream.consumer_info("worker_default").await.unwrap();
            (stream.cached_info().config.max_age, consumer.config.ack_wait)
        });
        let week = Duration::from_secs(7 * 24 * 60 * 60);
        assert_eq!(read, Some((week, Duration::from_secs(seconds))));
    }
}

/// A process whose user lacks a permission starts nothing.
///
/// Spec: DISP-12, DISP-14
#[test]
fn a_broker_that_refuses_is_named_before_anything_starts() {
    let users = r#"authorization { users: [
        { user: "ann", password: "right" },
        { user: "bob", password: "right", permissions: { publish: "other.>", subscribe: "other.>" } },
        { user: "cleo", password: "right",
          permissions: { publish: ["$JS.API.>", "$JS.ACK.>", "batch.part.>", "batch.stop"], subscribe: ["batch.stop", "batch.report.*", "_INBOX.>"] } },
        { user: "dora", password: "right",
          permissions: { publish: { allow: ["$JS.API.>", "$JS.ACK.>", "payroll.>"], deny: "$JS.API.STREAM.CREATE.>" },
                         subscribe: ["payroll.stop", "payroll.report.*", "_INBOX.>"] } } ] }"#;
    let server = NatsServer::start(users);
    let at = server.url().strip_prefix("nats://").unwrap().to_owned();
    for (address, parts) in [
        (
            format!("nats://ann:mistaken@{at}"),
            ["authorization violation", "check the user and password"],
        ),
        (
            format!("nats://bob:right@{at}"),
            [
                "cannot use the stream `BATCH_PARTITIONS`",
                "permit this user to publish",
            ],
        ),
        (
            format!("nats://cleo:right@{at}"),
            [
                "does not let this user publish to `batch.report.0`",
                "permit it to publish to `batch.>`, `$JS.API.>` and `$JS.ACK.>`, and to subscribe to `batch.stop`, `batch.report.*` and `_INBOX.>`",
            ],
        ),
        (
            format!("nats://dora:right@{at}?prefix=payroll"),
            [
                "cannot use the stream `PAYROLL_PARTITIONS`",
                "permit this user to publish",
            ],
        ),
        (
            "nats://127.0.0.1:1".to_owned(),
            [
                "cannot connect to the NATS server nats://127.0.0.1:1",
                "check that the server runs",
            ],
        ),
        (
            "nats://127.0.0.1:1?prefx=a".to_owned(),
            ["unknown option `prefx`", "the options are credentials"],
        ),
    ] {
        is_refused(address, &["launch", "fleet"], &parts);
    }
    // Once the streams exist, dora needs no permission to create them.
    for user in ["ann", "dora"] {
        let fleet = fleet_at(format!("nats://{user}:right@{at}?prefix=payroll"));
        let _worker = fleet.worker(&[]);
        fleet.run(0, &["launch", "fleet"]);
        fleet.is_exact(200);
    }
    // The checks have left no messages.
    assert_eq!(messages_of(&at, &["BATCH_PARTITIONS"]), [0]);
}

/// Runs a command that has to name a problem, and to start nothing.
fn is_refused(address: String, command: &[&str], parts: &[&str]) {
    let fleet = fleet_at(address);
    let said = fleet.run(2, command);
    assert_eq!(fleet.number("SELECT COUNT(*) AS n FROM BATCH_JOB_EXECUTION"), 0);
    assert!(!said.contains("mistaken"), "the password is printed: {said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing in\n{said}");
    }
}

/// The permissions that only workers use, and the permissions for stop requests and for queues other than `default`.
///
/// Spec: DISP-12, DISP-14
#[test]
fn each_missing_permission_is_named_at_the_start() {
    let users = r#"authorization { users: [
        { user: "ann", password: "right" },
        { user: "ack", password: "right", permissions: { publish: { deny: "$JS.ACK.>" } } },
        { user: "consumers", password: "right", permissions: { publish: { deny: "$JS.API.CONSUMER.CREATE.>" } } },
        { user: "pull", password: "right", permissions: { publish: { deny: "$JS.API.CONSUMER.MSG.NEXT.>" } } },
        { user: "stop", password: "right", permissions: { publish: { deny: "batch.stop" } } },
        { user: "stopped", password: "right", permissions: { subscribe: { deny: "batch.stop" } } },
        { user: "reports", password: "right", permissions: { subscribe: { deny: "batch.report.*" } } },
        { user: "queue", password: "right", permissions: { publish: { deny: "batch.part.printers.>" } } } ] }"#;
    let server = NatsServer::start(users);
    let at = server.url().strip_prefix("nats://").unwrap().to_owned();
    for (user, command, forbidden) in [
        (
            "ack",
            ["launch", "fleet"].as_slice(),
            "publish to `$JS.ACK.BATCH_PARTITIONS.",
        ),
        ("stop", &["launch", "fleet"], "publish to `batch.stop`"),
        ("stopped", &["launch", "fleet"], "subscribe to `batch.stop`"),
        ("reports", &["launch", "fleet"], "subscribe to `batch.report.0`"),
        (
            "consumers",
            &["worker"],
            "publish to `$JS.API.CONSUMER.CREATE.BATCH_PARTITIONS.worker_default.",
        ),
        (
            "pull",
            &["worker"],
            "publish to `$JS.API.CONSUMER.MSG.NEXT.BATCH_PARTITIONS.worker_default`",
        ),
    ] {
        let forbidden = format!("does not let this user {forbidden}");
        let parts = [&forbidden, "permit it to publish to `batch.>`"];
        is_refused(format!("nats://{user}:right@{at}"), command, &parts);
    }
    // Only the step knows its queue.
    let fleet = fleet_at(format!("nats://queue:right@{at}"));
    let job = r#"<job id="printed"><step id="print">
        <properties><property name="batch.dispatch.queue" value="printers"/><property name="parts" value="2"/></properties>
        <batchlet ref="Tiny"/><partition><algorithm ref="PlanParts"/></partition></step></job>"#;
    std::fs::write(fleet.path().join("jobs/printed.xml"), job).unwrap();
    let said = fleet.run(1, &["launch", "printed"]);
    let forbidden = "does not let this user publish to `batch.part.printers.0`";
    assert!(said.contains(forbidden), "{said}");
}

/// Returns how many messages these streams have ever stored, as the user ann sees it.
fn messages_of(server: &str, names: &[&str]) -> Vec<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let ann = async_nats::ConnectOptions::with_user_and_password("ann".into(), "right".into());
        let jetstream = jetstream::new(ann.connect(server).await.unwrap());
        let mut stored = Vec::new();
        for name in names {
            let mut stream = jetstream.get_stream(name).await.unwrap();
            stored.push(stream.info().await.unwrap().state.last_sequence);
        }
        stored
    })
}

/// Eight workers, a coordinator and the broker are killed at random: 500 faults in the slow tier.
///
/// Spec: DISP-02, DISP-03, DISP-09, DISP-14
#[test]
fn chaos_with_a_broker_loses_and_doubles_nothing() {
    let mut server = NatsServer::start("");
    let fleet = fleet_on(&server).variable("BATCH_CRASH_LIMIT", "0");
    dispatching::chaos(&fleet, slow::times(12, 500), |random| {
        server.crash();
        let back = Instant::now() + Duration::from_millis(random.below(1_500));
        while Instant::now() < back {
            std::thread::yield_now();
        }
        server.restart();
    });
}
