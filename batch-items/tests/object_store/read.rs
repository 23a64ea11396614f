//! Objects as input.

use std::io::Write;

use batch_items::{DelimitedItemReader, DelimitedItemWriter};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use batch_test_servers::ObjectServer;
use serde::{Deserialize, Serialize};

use super::proxy::Proxy;
use super::reading;
use super::stage::{Stage, pass};

const HEADER: &str = "id,text\n";

/// Returns rows with these numbers.
fn rows(ids: std::ops::RangeInclusive<u64>, text: &str) -> String {
    let rows = ids.map(|id| format!("{id},{text}\n"));
    HEADER.to_owned() + &rows.collect::<String>()
}

/// Returns the numbers and files of the output.
fn output(stage: &Stage) -> Vec<(u64, String)> {
    let mut rows = csv::Reader::from_path(stage.path().join("out")).unwrap();
    let rows = rows.records().map(|row| row.unwrap());
    rows.map(|row| (row[0].parse().unwrap(), row[2].to_owned()))
        .collect()
}

fn ids(stage: &Stage) -> Vec<u64> {
    output(stage).into_iter().map(|(id, _)| id).collect()
}

#[test]
fn objects_of_each_format_are_read() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    let bucket = server.new_bucket();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(rows(1..=3, "x").as_bytes()).unwrap();
    server.put(&format!("{bucket}/in/a.csv"), rows(1..=3, "x"));
    server.put(&format!("{bucket}/in/a.csv.gz"), gzip.finish().unwrap());
    server.put(
        &format!("{bucket}/in/a.jsonl"),
        "{\"id\":1,\"text\":\"x\"}\n{\"id\":2,\"text\":\"y\"}\n{\"id\":3,\"text\":\"\"}\n",
    );
    server.put(&format!("{bucket}/in/empty.jsonl"), "");
    for (reader, key) in [
        ("RowReader", "in/a.csv"),
        ("RowReader", "in/a.csv.gz"),
        ("JsonRowReader", "in/a.jsonl"),
    ] {
        let stage = reading(reader, 2, &format!("resource=s3://{bucket}/{key}"), &proxy);
        stage.completes();
        let file = format!("s3://{bucket}/{key}");
        assert_eq!(output(&stage), [1, 2, 3].map(|id| (id, file.clone())));
    }
    let stage = reading(
        "JsonRowReader",
        2,
        &format!("resource=s3://{bucket}/in/empty.jsonl"),
        &proxy,
    );
    assert_eq!(stage.completes().reads, 0);
}

/// Whichever item a job fails at, the restart requests nothing before the position of the checkpoint, but the beginning by which it
/// recognizes the object.
#[test]
fn a_restart_requests_a_range_from_the_checkpoint() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    let bucket = server.new_bucket();
    // Rows of 1 MiB, so that each is farther than the beginning.
    let row = 1 << 20;
    let text = "x".repeat(row - "1,\n".len());
    server.put(&format!("{bucket}/in.csv"), rows(1..=5, &text).as_bytes());
    for fail_at in 1..=5 {
        let properties = format!("resource=s3://{bucket}/in.csv\nmax.record.length=2000000");
        let stage = reading("RowReader", 1, &properties, &proxy);
        let failed = stage.start([("fail.at", fail_at.to_string())]);
        assert_eq!(failed.status, BatchStatus::Failed, "{}", failed.message);
        proxy.requests();
        let again = stage.restart(&failed, [("fail.at", "0")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        assert_eq!(ids(&stage), [1, 2, 3, 4, 5]);
        let requests = proxy.requests();
        let starts: Vec<u64> = requests.iter().filter_map(|request| start(request)).collect();
        let checkpoint = HEADER.len() as u64 + (fail_at - 1) * row as u64;
        let read: Vec<_> = starts.into_iter().filter(|start| *start > 0).collect();
        if fail_at > 1 {
            assert_eq!(read[0], checkpoint - 1, "{requests:?}");
            assert!(read.iter().all(|start| *start >= checkpoint - 1), "{requests:?}");
        }
        // The header of the columns and the beginning.
        let from_zero = requests.iter().filter(|request| start(request) == Some(0));
        assert!(fail_at == 1 || from_zero.clone().count() <= 3, "{requests:?}");
    }
}

/// Returns the first byte of the range of a request.
fn start(request: &str) -> Option<u64> {
    let (_, range) = request.split_once("bytes=")?;
    range.split('-').next()?.parse().ok()
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Raw {
    id: u64,
    text: String,
    raw: String,
}

#[item_reader("RawReader")]
type RawReader = DelimitedItemReader<Raw>;
#[item_writer("RawWriter")]
type RawWriter = DelimitedItemWriter<Raw>;

pass!(PassRaw: Raw);

/// The text of a record is not requested again.
#[test]
fn the_text_of_records_needs_no_requests() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    let bucket = server.new_bucket();
    let content = rows(1..=9_999, &"x".repeat(60));
    server.put(&format!("{bucket}/in.csv"), content.as_bytes());
    let stage = Stage::new(
        "reader=\"RawReader\" processor=\"PassRaw\" writer=\"RawWriter\" commit-interval=\"1000\"",
        &format!(
            "resource=s3://{bucket}/in.csv\nraw.field=raw\noutput=${{dir}}/out\n{}",
            super::client(&proxy)
        ),
    );
    stage.completes();
    let mut rows = csv::Reader::from_path(stage.path().join("out")).unwrap();
    let raw = rows.records().map(|row| row.unwrap()[2].to_owned() + "\n");
    assert_eq!(HEADER.to_owned() + &raw.collect::<String>(), content);
    let requests = proxy.requests();
    assert!(requests.len() < 12, "{requests:?}");
}

/// A large object is read by few requests.
#[test]
fn requests_have_some_mib() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    let bucket = server.new_bucket();
    let content = rows(1..=200_000, &"x".repeat(60));
    server.put(&format!("{bucket}/in.csv"), content.as_bytes());
    let stage = reading(
        "RowReader",
        100_000,
        &format!("resource=s3://{bucket}/in.csv"),
        &proxy,
    );
    assert_eq!(stage.completes().reads, 200_000);
    let requests = proxy.requests();
    assert!(content.len() > 12 << 20 && requests.len() < 12, "{requests:?}");
}

/// Each change of an object is seen, also if only the entity tag shows it.
#[test]
fn a_changed_object_is_an_error() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    let bucket = server.new_bucket();
    let path = format!("{bucket}/in.csv");
    // Nothing in the first 4 KiB changes, and nothing in the size.
    let (old, new) = (rows(1..=999, "old"), rows(1..=998, "old") + "999,new\n");
    // Within a second only the ETag shows the change.
    let same_size = [
        "its ETag is another, its size is the same; ",
        "its time of modification is another, its size is the same; ",
    ];
    let changes: [(&str, &[&str]); 2] = [
        (&new, &same_size),
        (&rows(1..=998, "old"), &["its size was 7892 and is 7884; "]),
    ];
    for (content, changes) in changes {
        let stage = reading("RowReader", 1, &format!("resource=s3://{path}"), &proxy);
        server.put(&path, &old);
        let failed = stage.start([("fail.at", "3")]);
        server.put(&path, content);
        let again = stage.restart(&failed, [("fail.at", "0")]);
        assert_eq!(again.status, BatchStatus::Failed);
        let begins_with = |change: &str| {
            let expected =
                format!("cannot resume reading `s3://{path}`: it has changed since the checkpoint: {change}");
            again.message.starts_with(&expected)
        };
        assert!(
            changes.iter().any(|change| begins_with(change)),
            "{}",
            again.message
        );
        server.delete(&path);
        let again = stage.restart(&again, [("fail.at", "0")]);
        assert!(again.message.contains("it does not exist"), "{}", again.message);
        // What follows the checkpoint may be corrected.
        server.put(&path, content);
        let again = stage.restart(&again, [("fail.at", "0"), ("if.changed", "resume")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    }
}

/// A reader sends one request to compare an object that was read to its end.
///
/// Spec: INPUT-24, READ-11
#[test]
fn a_change_of_an_object_that_was_read_is_an_error() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    let bucket = server.new_bucket();
    for (key, ids) in [("a", 1..=2), ("b", 3..=4), ("c", 5..=6)] {
        server.put(&format!("{bucket}/in/{key}.csv"), rows(ids, "x"));
    }
    let stage = reading(
        "RowReader",
        1,
        &format!("resource=s3://{bucket}/in/*.csv"),
        &proxy,
    );
    let failed = stage.start([("fail.at", "6")]);
    proxy.requests();
    let failed = stage.restart(&failed, [("fail.at", "1")]);
    assert!(
        failed.message.contains("stopped by the test"),
        "{}",
        failed.message
    );
    let requests = proxy.requests();
    for key in ["a", "b"] {
        let of_object = requests
            .iter()
            .filter(|request| request.contains(&format!("in/{key}.csv")));
        // The second one is of the reader that finds the origin of the failed item.
        assert_eq!(of_object.count(), 2, "{requests:?}");
    }
    server.put(&format!("{bucket}/in/a.csv"), rows(1..=2, "y"));
    let failed = stage.restart(&failed, [("fail.at", "0")]);
    // `b`, too, if it was written in the same second.
    let expected = format!(
        "cannot resume reading `s3://{bucket}/in/*.csv`: one of the 2 files that were read before the checkpoint has changed since, most recently `s3://{bucket}/in/a.csv`"
    );
    assert!(failed.message.starts_with(&expected), "{}", failed.message);
    let again = stage.restart(&failed, [("fail.at", "0"), ("if.changed", "resume")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert_eq!(ids(&stage), [1, 2, 3, 4, 5, 6]);
}

/// The objects of a pattern are one input, in the order of their names or times, also after a restart.
#[test]
fn the_objects_of_a_pattern_are_read_in_order() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    let bucket = server.new_bucket();
    for (key, ids) in [
        ("in/b.csv", 3..=4),
        ("in/a.csv", 1..=2),
        ("in/a.txt", 9..=9),
        ("in/deep/c.csv", 9..=9),
        ("in/x/d-1.csv", 5..=6),
        ("in/y/d-2.csv", 7..=8),
    ] {
        server.put(&format!("{bucket}/{key}"), rows(ids, "x"));
    }
    let stage = |properties: &str| {
        let properties = properties.replace("BUCKET", &bucket);
        reading("RowReader", 1, &properties, &proxy)
    };
    for (properties, expected) in [
        ("resource=s3://BUCKET/in/*.csv", vec![1, 2, 3, 4]),
        ("resource=s3://BUCKET/in/[b-z].csv", vec![3, 4]),
        ("resource=s3://BUCKET/in/?/d-*.csv", vec![]),
        ("resource=s3://BUCKET/in/[xy]/d-*.csv", vec![5, 6, 7, 8]),
        ("resource=s3://BUCKET/none/*.csv\nif.missing=empty", vec![]),
        ("resource=s3://BUCKET/none.csv\nif.missing=empty", vec![]),
    ] {
        if properties.contains('?') {
            assert!(stage(properties).fails().contains("have no user and no query"));
            continue;
        }
        let stage = stage(properties);
        stage.completes();
        assert_eq!(ids(&stage), expected, "{properties}");
    }
    for fail_at in 1..=4 {
        let stage = stage("resource=s3://BUCKET/in/*.csv");
        let failed = stage.start([("fail.at", fail_at.to_string())]);
        let again = stage.restart(&failed, [("fail.at", "0")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        assert_eq!(ids(&stage), [1, 2, 3, 4]);
    }
    // The times have a resolution of a millisecond or better.
    let stage = stage("resource=s3://BUCKET/in/*.csv\norder=modified");
    stage.completes();
    assert_eq!(ids(&stage), [3, 4, 1, 2]);
}
