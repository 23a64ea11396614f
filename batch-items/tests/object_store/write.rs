//! Objects as output.

use std::fs;

use batch_runtime::BatchStatus;
use batch_test_servers::ObjectServer;

use super::proxy::Proxy;
use super::stage::Stage;
use super::writing;

/// Returns the lines of the numbers up to `last`.
fn lines(last: u64) -> String {
    (1..=last).map(|number| format!("{number}\n")).collect()
}

/// Returns the objects of a bucket.
fn objects(bucket: &str) -> Vec<(String, Vec<u8>)> {
    let server = ObjectServer::shared();
    let keys = server.keys(bucket).into_iter();
    keys.map(|key| {
        let content = server.get(&format!("{bucket}/{key}")).unwrap();
        (key, content)
    })
    .collect()
}

/// Returns the files in the spool.
fn spool(stage: &Stage) -> Vec<String> {
    let folders = fs::read_dir(stage.path().join("spool")).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Whichever item a job fails at, the restart ends with the objects of an undisturbed run. Before, there are none.
#[test]
fn a_restart_ends_with_the_same_objects() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    for properties in ["", "max.items.per.file=4", "compression@writer=gzip"] {
        let run = |fail_at: Option<u64>| {
            let bucket = server.new_bucket();
            let stage = writing(&format!("output=s3://{bucket}/a/out.txt\n{properties}"), &proxy);
            stage.write("in", lines(10));
            match fail_at {
                None => drop(stage.completes()),
                Some(fail_at) => {
                    let failed = stage.start([("fail.at", fail_at.to_string())]);
                    assert_eq!(failed.status, BatchStatus::Failed);
                    assert!(
                        failed.message.contains("stopped by the test"),
                        "{}",
                        failed.message
                    );
                    assert_eq!(objects(&bucket), []);
                    let again = stage.restart(&failed, [("fail.at", "0")]);
                    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
                }
            }
            assert!(spool(&stage).is_empty(), "{:?}", spool(&stage));
            assert!(server.uploads(&bucket).is_empty());
            objects(&bucket)
        };
        let undisturbed = run(None);
        let count = if properties.starts_with("max") { 3 } else { 1 };
        assert_eq!(undisturbed.len(), count);
        if count == 1 && properties.is_empty() {
            assert_eq!(undisturbed, [("a/out.txt".to_owned(), lines(10).into_bytes())]);
        } else if count == 3 {
            assert_eq!(undisturbed[2], ("a/out-0003.txt".to_owned(), b"9\n10\n".to_vec()));
        }
        for fail_at in 1..=10 {
            assert_eq!(run(Some(fail_at)), undisturbed, "{properties} {fail_at}");
        }
    }
}

/// Returns a stage that writes 50 MiB, its bucket, and the content.
fn large(proxy: &Proxy) -> (Stage, String, Vec<u8>) {
    let bucket = ObjectServer::shared().new_bucket();
    let stage = writing(&format!("output=s3://{bucket}/out\nrepeat=1048575"), proxy);
    let letters = (0..50u8).map(|index| char::from(b'a' + index % 26));
    stage.write(
        "in",
        letters
            .clone()
            .map(|letter| format!("{letter}\n"))
            .collect::<String>(),
    );
    let content = letters.map(|letter| letter.to_string().repeat((1 << 20) - 1) + "\n");
    let content = content.collect::<String>().into_bytes();
    (stage, bucket, content)
}

fn parts(proxy: &Proxy) -> Vec<String> {
    let requests = proxy.requests().into_iter();
    let numbers = requests.filter_map(|request| {
        let (_, number) = request.split_once("partNumber=")?;
        Some(number.split('&').next()?.to_owned())
    });
    numbers.collect()
}

/// Parts that are committed are uploaded while the step runs, and a restart does not upload them again.
#[test]
fn a_restart_continues_the_upload() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    for fail_at in [17, 22, 37, 50] {
        let (stage, bucket, content) = large(&proxy);
        let failed = stage.start([("fail.at", fail_at.to_string())]);
        let early = parts(&proxy);
        assert_eq!(server.keys(&bucket), [""; 0]);
        let again = stage.restart(&failed, [("fail.at", "0")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        let late = parts(&proxy);
        assert_eq!([early.clone(), late].concat(), ["1", "2", "3", "4"], "{fail_at}");
        assert_eq!(
            early.len(),
            if fail_at == 17 { 0 } else { (fail_at - 4) / 16 },
            "{fail_at}"
        );
        assert!(server.get(&format!("{bucket}/out")).unwrap() == content);
        assert!(server.uploads(&bucket).is_empty() && spool(&stage).is_empty());
    }
}

/// What is noted of the upload is only an optimization.
#[test]
fn an_upload_that_is_lost_starts_again() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    let note = |stage: &Stage| {
        let folder = fs::read_dir(stage.path().join("spool")).unwrap().next().unwrap();
        folder.unwrap().path().join("out.part.upload")
    };
    let lose: [&dyn Fn(&Stage); 3] = [
        &|stage| fs::remove_file(note(stage)).unwrap(),
        &|stage| fs::write(note(stage), "{\"id\":").unwrap(),
        // As a lifecycle rule of the bucket does.
        &|stage| {
            let text = fs::read_to_string(note(stage)).unwrap();
            fs::write(note(stage), text.replace("\"id\":\"", "\"id\":\"2~x")).unwrap();
        },
    ];
    for lose in lose {
        let (stage, bucket, content) = large(&proxy);
        let failed = stage.start([("fail.at", "40")]);
        lose(&stage);
        let again = stage.restart(&failed, [("fail.at", "0")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        assert!(server.get(&format!("{bucket}/out")).unwrap() == content);
    }
}

/// An object that was published is published again, if the step did not complete.
#[test]
fn an_object_that_was_published_is_published_again() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    let bucket = server.new_bucket();
    let stage = writing(&format!("output=s3://{bucket}/out\nif.exists=fail"), &proxy);
    stage.write("in", lines(7));
    let failed = stage.start([("fail.at", "7")]);
    assert_eq!(failed.status, BatchStatus::Failed);
    // As the end of the step leaves it.
    server.put(&format!("{bucket}/out"), lines(7));
    fs::remove_dir_all(stage.path().join("spool")).unwrap();
    let again = stage.restart(&failed, [("fail.at", "0")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert_eq!(
        server.get(&format!("{bucket}/out")).unwrap(),
        lines(7).into_bytes()
    );
}

/// The same if the answer to the last request is lost: the object is there, and the job does not know.
#[test]
fn a_restart_recovers_from_a_lost_answer() {
    let proxy = Proxy::new();
    let server = ObjectServer::shared();
    let (stage, bucket, content) = large(&proxy);
    // The first request completes the upload; the repeated one finds none.
    proxy.lose(Some("POST /"));
    let failed = stage.start(());
    assert_eq!(
        failed.status,
        BatchStatus::Failed,
        "the upload could not even start"
    );
    proxy.lose(Some("?uploadId="));
    let failed = stage.restart(&failed, ());
    assert_eq!(failed.status, BatchStatus::Failed, "{}", failed.message);
    proxy.lose(None);
    let again = stage.restart(&failed, ());
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert!(server.get(&format!("{bucket}/out")).unwrap() == content);
}

/// On another host there is no spool.
#[test]
fn a_restart_without_the_spool_is_an_error() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    let bucket = server.new_bucket();
    let stage = writing(&format!("output=s3://{bucket}/out"), &proxy);
    stage.write("in", lines(7));
    let failed = stage.start([("fail.at", "7")]);
    fs::remove_dir_all(stage.path().join("spool")).unwrap();
    let message = |stage: &Stage| stage.restart(&failed, [("fail.at", "0")]).message;
    let expected =
        "the file of the last checkpoint does not exist here; restart the job on the host that it ran on";
    assert!(message(&stage).contains(expected), "{}", message(&stage));
    // An object of another run is not taken for it.
    let other = "other\n".repeat(99);
    server.put(&format!("{bucket}/out"), &other);
    let found = message(&stage);
    assert!(
        found.starts_with(&format!(
            "cannot resume writing `s3://{bucket}/out`: its content differs from"
        )),
        "{found}"
    );
    assert_eq!(server.get(&format!("{bucket}/out")).unwrap(), other.into_bytes());
}

#[test]
fn existing_and_empty_objects_are_as_the_properties_say() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    let bucket = server.new_bucket();
    let stage = |properties: &str, items| {
        let stage = writing(&format!("output=s3://{bucket}/out\n{properties}"), &proxy);
        stage.write("in", lines(items));
        stage
    };
    stage("if.exists=fail", 2).completes();
    let message = stage("if.exists=fail", 3).fails();
    let expected = "it exists already; set `if.exists` to `overwrite` to replace it";
    assert_eq!(
        message.lines().next().unwrap(),
        format!("cannot write `s3://{bucket}/out`: {expected}")
    );
    let message = stage("if.exists=append", 3).fails();
    assert!(message.contains("an object cannot be appended to"), "{message}");
    assert_eq!(objects(&bucket), [("out".to_owned(), lines(2).into_bytes())]);
    stage("", 3).completes();
    assert_eq!(objects(&bucket), [("out".to_owned(), lines(3).into_bytes())]);
    stage("", 0).completes();
    assert_eq!(objects(&bucket), [("out".to_owned(), Vec::new())]);
    stage("if.empty=delete", 0).completes();
    stage("if.empty=delete", 0).completes();
    assert_eq!(objects(&bucket), []);
    assert!(server.uploads(&bucket).is_empty());
}
