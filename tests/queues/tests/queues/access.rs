//! Connections: what a user may set wrongly is named, and no secret is in a message.

use std::fs;
use std::net::TcpListener;

use batch_runtime::JobParameters;
use batch_runtime::parameters::SecretReference;
use batch_test_servers::{KAFKA_PASSWORD, NatsServer};

use super::broker::{Kind, Queue, kafka, nats};
use super::items;
use super::stage::{Stage, Step, loading};

/// Runs a job that loads the queue, with these properties of its reader. Returns the message of its failure.
#[track_caller]
fn fails(queue: &Queue, properties: &[(&'static str, &str)], parts: &[&str]) {
    let stage = Stage::new(&loading(queue.reader(properties)));
    let failed = stage.start(()).failed(parts);
    for secret in [KAFKA_PASSWORD, "wr0ng"] {
        assert!(!failed.message.contains(secret), "{}", failed.message);
    }
}

/// Spec: QUEUE-12
#[test]
fn wrong_addresses_are_named() {
    // Nothing listens at this port any more.
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let queue = Queue::new(Kind::Kafka);
    let parts = [
        "cannot connect to 127.0.0.1",
        "check that a broker runs at this address",
    ];
    fails(&queue, &[("servers", &closed)], &parts);
    fails(
        &queue,
        &[("servers", "no-host.invalid:1")],
        &["check the name of the host"],
    );
    // One of several is enough.
    let both = format!("{closed},{}", queue.address);
    Stage::new(&loading(queue.reader(&[("servers", &both)])))
        .start(())
        .completed();
    let queue = Queue::new(Kind::Nats);
    let url = format!("nats://{closed}");
    fails(
        &queue,
        &[("servers", &url), ("user", "ann"), ("password", "wr0ng")],
        &["cannot connect", "check that a server runs at this address"],
    );
    let both = format!("nats://{closed},{}", queue.address);
    Stage::new(&loading(queue.reader(&[("servers", &both)])))
        .start(())
        .completed();
}

/// Spec: QUEUE-12
#[test]
fn queues_that_do_not_exist_are_named() {
    let queue = Queue::new(Kind::Kafka);
    let almost = queue.name.replace("queue", "qeue");
    let nearest = format!("there is no topic `{almost}`; did you mean `queue");
    fails(&queue, &[("topic", &almost)], &[&nearest, "create it"]);
    fails(
        &queue,
        &[("partitions", "0,3")],
        &["the topic has no partition 3; its 3 partitions are numbered from 0"],
    );
    let queue = Queue::new(Kind::Nats);
    let almost = queue.name.replace("queue", "qeue");
    let nearest = format!("there is no stream `{almost}`; did you mean `queue");
    fails(&queue, &[("stream", &almost)], &[&nearest, "create it"]);
    fails(&queue, &[("stream", "a.b")], &["is not the name of a stream"]);
    queue.send(1..=1);
    fails(&queue, &[("subject", "other.>")], &["cannot create a consumer"]);
    let stage = |further: &[(&'static str, &str)]| {
        Stage::new(&Step {
            reader: ("Items", vec![("items", "1".to_owned())]),
            writer: queue.writer(further),
            attributes: "",
            children: "",
        })
    };
    stage(&[("subject", "none.here")])
        .start(())
        .failed(&["no stream has the subject `none.here`", "create one"]);
    stage(&[("subject", "none.{id}")])
        .start(())
        .failed(&["no stream has the subject `none.1`; create one"]);
    stage(&[("stream", "none")])
        .start(())
        .failed(&["cannot find the stream `none`"]);
}

/// Every mechanism of Kafka works, and a wrong password is named without being shown.
///
/// Spec: QUEUE-12
#[test]
fn users_of_kafka_are_authenticated() {
    let server = kafka();
    let queue = Queue::on_kafka(server, 1);
    queue.send(1..=3);
    let address = server.sasl_address();
    let user = [("servers", address.as_str()), ("user", "ann")];
    for mechanism in ["plain", "scram-sha-256", "scram-sha-512"] {
        let with = |password| [&user[..], &[("password", password), ("mechanism", mechanism)]].concat();
        let stage = Stage::new(&loading(queue.reader(&with(KAFKA_PASSWORD))));
        stage.start(()).completed();
        assert_eq!(stage.rows(), items(1..=3), "{mechanism}");
        fails(
            &queue,
            &with("wr0ng"),
            &[
                "rejects the user `ann`",
                "check `user`, `password` and `mechanism`",
            ],
        );
    }
    let parts = [
        "has closed the connection",
        "check that it runs, and `tls`, `user` and `mechanism`",
    ];
    fails(&queue, &[("servers", &address), ("timeout", "1s")], &parts);
    fails(&queue, &user, &["`user` and `password` are set together"]);
    // A listener without users.
    let properties = [("user", "ann"), ("password", KAFKA_PASSWORD)];
    fails(
        &queue,
        &properties,
        &["does not accept the mechanism `scram-sha-512`"],
    );
}

/// Spec: QUEUE-12
#[test]
fn connections_to_kafka_are_encrypted() {
    let server = kafka();
    let queue = Queue::on_kafka(server, 1);
    queue.send(1..=3);
    let (address, certificate) = (server.tls_address(), server.certificate().display().to_string());
    let tls = [("servers", address.as_str()), ("tls", "true")];
    let trusted = [&tls[..], &[("tls.ca", &certificate)]].concat();
    let stage = Stage::new(&loading(queue.reader(&trusted)));
    stage.start(()).completed();
    assert_eq!(stage.rows(), items(1..=3));
    fails(
        &queue,
        &tls,
        &[
            "invalid peer certificate",
            "check that the broker expects TLS here, and `tls.ca`",
        ],
    );
    let plain = [("tls", "true"), ("tls.ca", &certificate), ("timeout", "1s")];
    fails(&queue, &plain, &["check that the broker expects TLS here"]);
    fails(&queue, &[("servers", &address), ("timeout", "1s")], &["check"]);
    fails(
        &queue,
        &[("tls", "true"), ("tls.ca", "/nowhere/ca.pem")],
        &["cannot read `/nowhere/ca.pem` of `tls.ca`"],
    );
    fails(
        &queue,
        &[("tls.ca", &certificate)],
        &["the properties `tls.*` need `tls` = `true`"],
    );
    let one = [&trusted[..], &[("tls.certificate", certificate.as_str())]].concat();
    fails(
        &queue,
        &one,
        &["`tls.certificate` and `tls.key` are set together"],
    );
}

/// Spec: QUEUE-12
#[test]
fn users_of_nats_are_authenticated() {
    let server = NatsServer::start("authorization { user: ann, password: \"s3cretpass\" }\n");
    let queue = Queue {
        kind: Kind::Nats,
        name: "secured".to_owned(),
        address: server.url().replace("nats://", "nats://ann:s3cretpass@"),
    };
    queue.create_stream(Default::default());
    queue.send(1..=3);
    let user = [("servers", server.url()), ("user", "ann")];
    let with = |password| [&user[..], &[("password", password)]].concat();
    let stage = Stage::new(&loading(queue.reader(&with("s3cretpass"))));
    stage.start(()).completed();
    assert_eq!(stage.rows(), items(1..=3));
    let parts = ["check `user` and `password`"];
    fails(&queue, &with("wr0ng"), &parts);
    fails(&queue, &[("servers", server.url())], &parts);
    fails(&queue, &user, &["`user` and `password` are set together"]);
    fails(
        &queue,
        &[("servers", server.url()), ("nkey", "/nowhere")],
        &["cannot read `/nowhere` of `nkey`"],
    );
}

/// A stream that removes what is acknowledged has no places to restart at.
///
/// Spec: QUEUE-12
#[test]
fn a_stream_must_keep_its_messages() {
    use async_nats::jetstream::stream;
    let config = stream::Config {
        retention: stream::RetentionPolicy::WorkQueue,
        ..Default::default()
    };
    let queue = Queue::on_nats(nats(), config);
    fails(
        &queue,
        &[],
        &[
            "removes messages when they are acknowledged",
            "read a stream with the retention `limits`",
        ],
    );
}

/// A password may be a secret of the job, which no message shows.
///
/// Spec: QUEUE-12
#[test]
fn a_password_may_be_a_secret() {
    let server = kafka();
    let queue = Queue::on_kafka(server, 1);
    queue.send(1..=3);
    let address = server.sasl_address();
    let user = [
        ("servers", address.as_str()),
        ("user", "ann"),
        ("password", "${secret}"),
    ];
    let stage = Stage::new(&loading(queue.reader(&user)));
    let with = |password: &str| {
        let file = stage.path().join("password");
        fs::write(&file, password).unwrap();
        let reference = SecretReference::File(file.display().to_string());
        stage.start(JobParameters::new().with_secret("secret", reference))
    };
    let failed = with("wr0ng-s3cret").failed(&["rejects the user `ann`"]);
    assert!(!failed.message.contains("wr0ng"), "{}", failed.message);
    with(KAFKA_PASSWORD).completed();
    assert_eq!(stage.rows(), items(1..=3));
}
