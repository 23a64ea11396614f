//! Steps that are partitioned by files and by ranges of keys.

use std::fs;

use batch_runtime::{BatchRuntime, BatchStatus};

/// Runs a job of records with this step, after one that creates a table `account` with the keys 1 to 23.
fn run(step: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    fs::create_dir(dir.join("jobs")).unwrap();
    let xml = format!(
        r#"<job id="job">
          <step id="create" next="work"><batchlet ref="sqlScript"><properties><property name="sql" value="
            CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT);
            WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id &lt; 23)
            INSERT INTO account SELECT id, 'owner ' || id FROM n"/></properties></batchlet></step>
          <step id="work">{step}</step></job>"#
    );
    fs::write(dir.join("jobs/job.xml"), xml).unwrap();
    for (name, content) in files {
        fs::write(dir.join(name), content).unwrap();
    }
    let runtime = BatchRuntime::builder()
        .job_path(dir.join("jobs").display().to_string())
        .repository(format!(
            "sqlite://{}?synchronous=normal",
            dir.join("batch.db").display()
        ))
        .system_property("dir", dir.display().to_string())
        .build()
        .unwrap();
    let operator = runtime.job_operator();
    let execution = operator
        .start("job", ())
        .unwrap_or_else(|error| panic!("{error}"));
    let ended = operator.wait(execution).unwrap();
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    folder
}

#[test]
fn each_file_is_a_partition() {
    let step = r#"<partition><algorithm ref="filePartitions"><properties>
          <property name="resource" value="${dir}/in-*.csv"/></properties></algorithm></partition>
        <chunk reader="csvRecordReader" processor="recordProcessor" writer="recordJsonlWriter">
          <properties><property name="output" value="${dir}/out-${file.name}.jsonl"/></properties></chunk>"#;
    let folder = run(step, &[("in-a.csv", "id\n1\n2\n"), ("in-b.csv", "id\n3\n")]);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("out-in-a.jsonl"), "{\"id\":\"1\"}\n{\"id\":\"2\"}\n");
    assert_eq!(read("out-in-b.jsonl"), "{\"id\":\"3\"}\n");
}

#[test]
fn each_range_of_keys_is_a_partition() {
    let step = r#"<partition><algorithm ref="keyRangePartitions"><properties>
          <property name="query" value="SELECT MIN(id), MAX(id) FROM account"/>
          <property name="partitions" value="4"/></properties></algorithm></partition>
        <chunk reader="queryRecordReader" processor="recordProcessor" writer="recordCsvWriter">
          <properties>
            <property name="query" value="SELECT id, owner FROM account WHERE id BETWEEN :low AND :high" target="reader"/>
            <property name="parameters" value="low=${low}; high=${high}" target="reader"/>
            <property name="key" value="id" target="reader"/>
            <property name="output" value="${dir}/out-${low}.csv"/>
          </properties></chunk>"#;
    let folder = run(step, &[]);
    let mut ids = Vec::new();
    for low in [1, 6, 12, 18] {
        let text = fs::read_to_string(folder.path().join(format!("out-{low}.csv"))).unwrap();
        ids.extend(
            text.lines()
                .skip(1)
                .map(|line| line.split(',').next().unwrap().parse::<u32>().unwrap()),
        );
    }
    assert_eq!(ids, (1..=23).collect::<Vec<_>>());
}
