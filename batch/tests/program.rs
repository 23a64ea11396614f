//! The program as its users run it.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;

fn batch(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_batch"));
    command.args(arguments).current_dir(folder);
    command
}

/// Runs the program to its end.
fn run(folder: &Path, arguments: &[&str]) -> Output {
    batch(folder, arguments).output().unwrap()
}

#[track_caller]
fn completed(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    let (printed, errors) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{arguments:?}: {printed}{errors}");
    printed
}

/// The page of properties lists what the crates register.
///
/// Spec: LOADER-01
#[test]
fn every_ready_made_artifact_is_linked() {
    let folder = tempfile::tempdir().unwrap();
    let listed = completed(folder.path(), &["artifacts"]);
    let linked: BTreeSet<&str> = listed
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/properties.md");
    let page = fs::read_to_string(page).unwrap();
    let mut expected = BTreeSet::new();
    for chapter in page.split("\n## ").skip(1) {
        if cfg!(feature = "odbc") || !chapter.starts_with("batch-odbc\n") {
            expected.extend(chapter.lines().filter_map(|line| line.strip_prefix("### ")));
        }
    }
    assert_eq!(linked, expected);
}

const ROWS: u64 = 6_000;

const LOAD: &str = r#"<job id="load">
  <step id="table" next="rows">
    <batchlet ref="sqlScript">
      <properties><property name="sql" value="CREATE TABLE IF NOT EXISTS payment (number INTEGER PRIMARY KEY, cents INTEGER NOT NULL)"/></properties>
    </batchlet>
  </step>
  <step id="rows" next="sums">
    <chunk reader="csvRecordReader" processor="recordProcessor" writer="recordTableWriter" commit-interval="1">
      <properties>
        <property name="resource" value="in/*.csv.gz"/>
        <property name="where" value="cents &lt;&gt; 0"/>
        <property name="table" value="payment"/>
      </properties>
    </chunk>
  </step>
  <step id="sums">
    <chunk reader="queryRecordReader" writer="recordJsonlWriter">
      <properties>
        <property name="query" value="SELECT COUNT(*) AS payments, SUM(number) AS numbers, SUM(cents) AS cents FROM payment"/>
        <property name="output" value="sums.jsonl"/>
      </properties>
    </chunk>
  </step>
</job>"#;

/// Spec: RESTART-07
#[test]
fn a_job_without_code_resumes_after_its_process_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("load.xml"), LOAD).unwrap();
    fs::create_dir(folder.join("in")).unwrap();
    let (mut payments, mut numbers, mut cents) = (0, 0, 0);
    for file in 0..2 {
        let path = folder.join(format!("in/{file}.csv.gz"));
        let mut rows = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
        writeln!(rows, "number,cents").unwrap();
        for number in (1..=ROWS).filter(|number| number % 2 == file) {
            let amount = number % 7;
            writeln!(rows, "{number},{amount}").unwrap();
            if amount != 0 {
                (payments, numbers, cents) = (payments + 1, numbers + number, cents + amount);
            }
        }
        rows.finish().unwrap();
    }
    completed(folder, &["check"]);

    let mut first = batch(folder, &["launch", "load"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The step has committed rows.
    while !has_written(folder) {
        assert!(
            first.try_wait().unwrap().is_none(),
            "the job ended before it was killed"
        );
    }
    first.kill().unwrap();
    first.wait().unwrap();
    completed(folder, &["launch", "load"]);

    let sums = fs::read_to_string(folder.join("sums.jsonl")).unwrap();
    let sums: serde_json::Value = serde_json::from_str(&sums).unwrap();
    let expected = serde_json::json!({"payments": payments, "numbers": numbers, "cents": cents});
    assert_eq!(sums, expected);
    // The second execution is of the same instance, which is complete now.
    assert_eq!(run(folder, &["launch", "load"]).status.code(), Some(10));
}

/// Returns whether execution 1 has written rows.
fn has_written(folder: &Path) -> bool {
    let output = run(folder, &["show", "1", "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let steps = shown["steps"].as_array().cloned().unwrap_or_default();
    steps
        .iter()
        .any(|step| step["step"] == "rows" && step["writes"].as_u64() > Some(100))
}

/// Columns of Parquet hold what the file of texts has, and are read again.
///
/// Spec: ITEM-VALUE-10
#[test]
fn records_go_to_parquet_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let job = r#"<job id="lake">
      <step id="write" next="read">
        <chunk reader="csvRecordReader" writer="recordParquetWriter"><properties>
          <property name="resource" value="in.csv"/>
          <property name="output" value="out.parquet"/>
          <property name="columns" value="id Int64, day Date32, price Decimal128(10, 2), note? Utf8" target="writer"/>
        </properties></chunk>
      </step>
      <step id="read">
        <chunk reader="parquetRecordReader" writer="recordJsonlWriter"><properties>
          <property name="resource" value="out.parquet"/>
          <property name="output" value="out.jsonl"/>
        </properties></chunk>
      </step>
    </job>"#;
    fs::write(folder.join("lake.xml"), job).unwrap();
    fs::write(
        folder.join("in.csv"),
        "id,day,price\n1,2024-02-29,12.30\n2,2026-11-30,-0.05\n",
    )
    .unwrap();
    completed(folder, &["launch", "lake"]);
    let lines = fs::read_to_string(folder.join("out.jsonl")).unwrap();
    let expected = "{\"id\":1,\"day\":\"2024-02-29\",\"price\":\"12.30\",\"note\":null}\n\
                    {\"id\":2,\"day\":\"2026-11-30\",\"price\":\"-0.05\",\"note\":null}\n";
    assert_eq!(lines, expected);
}

/// The properties of a part have an effect in partitions, too, whose files have names only there.
///
/// Spec: ITEM-SETTING-05, ITEM-ROUTE-01
#[test]
fn parts_of_a_routing_writer_are_partitioned() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let job = r#"<job id="split"><step id="copy">
        <chunk reader="csvRecordReader" writer="recordRoutingWriter"><properties>
          <property name="resource" value="${resource}"/>
          <property name="1.output" value="out/${file.name}.csv"/>
          <property name="1.delimiter" value=";"/>
          <property name="2.where" value="id = 2"/>
          <property name="2.output" value="out/${file.name}.jsonl"/>
        </properties></chunk>
        <partition><algorithm ref="filePartitions"><properties><property name="resource" value="in/*.csv"/></properties></algorithm></partition>
      </step></job>"#;
    fs::write(folder.join("split.xml"), job).unwrap();
    fs::create_dir(folder.join("in")).unwrap();
    for name in ["a", "b"] {
        fs::write(
            folder.join(format!("in/{name}.csv")),
            format!("id,name\n1,{name}\n2,x\n"),
        )
        .unwrap();
    }
    completed(folder, &["launch", "split"]);
    for name in ["a", "b"] {
        let rows = fs::read_to_string(folder.join(format!("out/{name}.csv"))).unwrap();
        assert_eq!(rows, format!("id;name\n1;{name}\n2;x\n"));
        let large = fs::read_to_string(folder.join(format!("out/{name}.jsonl"))).unwrap();
        assert_eq!(large, "{\"id\":\"2\",\"name\":\"x\"}\n");
    }
}
