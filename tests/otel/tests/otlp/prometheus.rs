//! Metrics for Prometheus, while a job runs.

use std::collections::BTreeMap;
use std::fs;

use batch_tests::http::get;
use batch_tests::operated::Operated;
use tempfile::TempDir;

const JOB: &str = r#"<job id="counts">
  <step id="count" next="wait"><chunk reader="Numbers" processor="Same" writer="Nowhere" commit-interval="4"/></step>
  <step id="wait"><batchlet ref="Patient"/></step>
</job>"#;

/// Returns the values of metrics by name and labels, which may be in any order.
fn samples(body: &str) -> BTreeMap<String, f64> {
    body.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = name.split_once('{').unwrap_or((name, ""));
            let mut labels: Vec<&str> = labels.trim_end_matches('}').split(',').collect();
            labels.sort_unstable();
            (format!("{name} {}", labels.join(" ")), value.parse().unwrap())
        })
        .collect()
}

/// Launches the job, whose last step waits. Returns its folder, its process and its metrics.
///
/// The folder has the database of the job, which cannot be stopped once the folder is gone.
fn waiting(job: &str) -> (TempDir, Operated, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("counts.xml"), job).unwrap();
    fs::write(folder.path().join("go"), "").unwrap();
    let arguments = ["launch", "counts", "--metrics-port", "0"];
    let mut job = Operated::run(env!("CARGO_BIN_EXE_metered"), folder.path(), &arguments);
    let address = job.address_of("metrics");
    job.until("waiting");
    let (status, body) = get(&address, "GET /metrics");
    assert_eq!(status, "HTTP/1.1 200 OK");
    (folder, job, body)
}

/// Metrics have the names of Spring Batch, and labels of job, step and status.
#[test]
fn metrics_are_served_while_the_job_runs() {
    let (_folder, mut job, body) = waiting(JOB);
    let samples = samples(&body);
    for (sample, value) in [
        (r#"spring_batch_job_launch_count job="counts""#, 1.0),
        (r#"spring_batch_job_active job="counts""#, 1.0),
        (r#"spring_batch_step_active job="counts" step="count""#, 0.0),
        (r#"spring_batch_step_active job="counts" step="wait""#, 1.0),
        (
            r#"spring_batch_step_count job="counts" status="COMPLETED" step="count""#,
            1.0,
        ),
        (
            r#"spring_batch_item_read job="counts" status="SUCCESS" step="count""#,
            10.0,
        ),
        (
            r#"spring_batch_item_process job="counts" status="SUCCESS" step="count""#,
            10.0,
        ),
        (
            r#"spring_batch_item_write job="counts" status="SUCCESS" step="count""#,
            10.0,
        ),
        (
            r#"spring_batch_chunk_write_count job="counts" status="SUCCESS" step="count""#,
            3.0,
        ),
    ] {
        assert_eq!(samples.get(sample), Some(&value), "{sample}\n{body}");
    }
    job.signal("TERM");
    assert_eq!(job.ends().code(), Some(3));
}

/// Read, processed, filtered and skipped items are counted apart.
#[test]
fn metrics_count_skipped_and_filtered_items() {
    let rules = r#"skip-limit="2"><skippable-exception-classes><include class="Refused"/></skippable-exception-classes></chunk>"#;
    let chunk = r#"processor="Same" writer="Nowhere" commit-interval="4"/>"#;
    let choosy = format!(r#"processor="Choosy" writer="Choosy" commit-interval="4" {rules}"#);
    let job = JOB.replace(chunk, &choosy);
    let (_folder, mut job, body) = waiting(&job);
    let samples = samples(&body);
    for (item, status, value) in [
        ("read", "SUCCESS", 10.0),
        ("read", "SKIPPED", 0.0),
        ("process", "SUCCESS", 7.0),
        ("process", "FILTERED", 2.0),
        ("process", "SKIPPED", 1.0),
        ("write", "SUCCESS", 6.0),
        ("write", "SKIPPED", 1.0),
    ] {
        let sample = format!(r#"spring_batch_item_{item} job="counts" status="{status}" step="count""#);
        assert_eq!(samples.get(&sample), Some(&value), "{sample}");
    }
    job.signal("TERM");
    assert_eq!(job.ends().code(), Some(3));
}

/// Chunks that are rolled back are counted apart from those that are committed.
#[test]
fn metrics_count_failed_chunks() {
    let job = JOB.replace(
        r#"writer="Nowhere" commit-interval="4"/>"#,
        r#"writer="Choosy" commit-interval="4"/><next on="*" to="wait"/>"#,
    );
    let job = job.replace(r#"id="count" next="wait""#, r#"id="count""#);
    let (_folder, mut job, body) = waiting(&job);
    let samples = samples(&body);
    for (status, value) in [("SUCCESS", 2.0), ("FAILURE", 1.0)] {
        let sample = format!(r#"spring_batch_chunk_write_count job="counts" status="{status}" step="count""#);
        assert_eq!(samples.get(&sample), Some(&value), "{sample}");
    }
    job.signal("TERM");
    job.ends();
}
