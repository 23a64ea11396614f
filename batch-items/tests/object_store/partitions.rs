//! Partitions of a step by the objects of a pattern.

use std::fs;

use batch_runtime::{BatchRuntime, BatchStatus};
use batch_test_servers::ObjectServer;

use super::client;
use super::proxy::Proxy;

/// Runs a partitioned step that copies each object of a pattern, and returns its status and message.
fn run(pattern: &str, output: &str, options: &str) -> (BatchStatus, String) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().display();
    let options = format!("<property name=\"store.options\" value=\"{options}\"/>");
    let xml = format!(
        r#"<job id="job"><step id="copy">
          <partition><algorithm ref="filePartitions"><properties>
            <property name="resource" value="{pattern}"/>{options}</properties></algorithm></partition>
          <chunk reader="csvRecordReader" processor="recordProcessor" writer="recordJsonlWriter"><properties>
            <property name="output" value="{output}/${{file.name}}.jsonl"/>
            <property name="spool" value="{dir}/spool"/>{options}</properties></chunk>
        </step></job>"#
    );
    fs::create_dir(folder.path().join("jobs")).unwrap();
    fs::write(folder.path().join("jobs/job.xml"), xml).unwrap();
    let runtime = BatchRuntime::builder()
        .job_path(format!("{dir}/jobs"))
        .repository(format!("sqlite://{dir}/batch.db?synchronous=normal"))
        .build()
        .unwrap();
    let operator = runtime.job_operator();
    let ended = operator.wait(operator.start("job", ()).unwrap()).unwrap();
    (ended.status, ended.exit_message)
}

#[test]
fn each_object_is_a_partition() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    let bucket = server.new_bucket();
    server.put(&format!("{bucket}/in/a.csv"), "id\n1\n2\n");
    server.put(&format!("{bucket}/in/b.csv"), "id\n3\n");
    let (status, message) = run(
        &format!("s3://{bucket}/in/*.csv"),
        &format!("s3://{bucket}/out"),
        client(&proxy).trim_start_matches("store.options="),
    );
    assert_eq!(status, BatchStatus::Completed, "{message}");
    let read = |name: &str| String::from_utf8(server.get(&format!("{bucket}/out/{name}")).unwrap()).unwrap();
    assert_eq!(read("a.jsonl"), "{\"id\":\"1\"}\n{\"id\":\"2\"}\n");
    assert_eq!(read("b.jsonl"), "{\"id\":\"3\"}\n");
}

/// The plan is stored in the repository.
#[test]
fn a_plan_has_no_secrets() {
    let (status, message) = run("http://127.0.0.1:1/in.csv?key=hidden", "s3://bucket", "retries=0");
    assert_eq!(status, BatchStatus::Failed);
    let expected = "cannot plan the partitions of `http://127.0.0.1:1/in.csv`: a URL with a user or a query cannot be the input of partitions";
    assert!(
        message.starts_with(expected) && !message.contains("hidden"),
        "{message}"
    );
}
