//! Expressions: a million records through a condition and three computed fields, beside the same job without them.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use batch_bench::{Program, head, in_turn, report};
use batch_items as _;
use batch_runtime::{BatchRuntime, BatchStatus, JobParameters};

const ROWS: u32 = 1_000_000;

const ROUNDS: usize = 7;

/// The computed fields replace fields of the file, so that both jobs write as many.
const EXPRESSIONS: &str = r#"<property name="where" value="id > 0"/>
    <property name="set" value="net=round(net * 1.19, 2), name=upper(name), count=count + 1"/>"#;

fn copy(folder: &Path, properties: &str) -> Duration {
    let at = |name: &str| folder.join(name).display().to_string();
    let job = format!(
        r#"<job id="copy"><step id="copy"><chunk reader="csvRecordReader" processor="recordProcessor" writer="recordCsvWriter" commit-interval="1000">
        <properties><property name="resource" value="{}"/><property name="output" value="{}"/>{properties}</properties></chunk></step></job>"#,
        at("in.csv"),
        at("out.csv")
    );
    fs::write(at("copy.xml"), job).unwrap();
    let runtime = BatchRuntime::builder()
        .job_path(folder.display().to_string())
        .build()
        .unwrap();
    let operator = runtime.job_operator();
    let begin = Instant::now();
    let execution = operator.start("copy", JobParameters::new()).unwrap();
    let ended = operator.wait(execution).unwrap();
    let time = begin.elapsed();
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    time
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = String::from("id,name,net,count,city,day\n");
    for id in 1..=ROWS {
        let cents = id % 100;
        writeln!(
            rows,
            "{id},name {id},{}.{cents:02},{},Springfield,2026-11-30",
            id % 5_000,
            id % 9
        )
        .unwrap();
    }
    fs::write(folder.path().join("in.csv"), rows).unwrap();
    let mut programs: [Program<'_>; 2] = [
        ("copy", Box::new(|| copy(folder.path(), ""))),
        (
            "copy with expressions",
            Box::new(|| copy(folder.path(), EXPRESSIONS)),
        ),
    ];
    let times = in_turn(ROUNDS, &mut programs);
    let per_record = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(ROWS);
    let (plain, computed) = (per_record(times[0]), per_record(times[1]));
    head("Records through a condition and three computed fields, a million CSV rows to a CSV file");
    report("copy", plain, "ns/record", None);
    report("copy with expressions", computed, "ns/record", None);
    report("expressions", computed - plain, "ns/record", Some(500.0));
}
