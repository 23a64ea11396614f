//! The events of jobs that end as they should.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::program::{CREATE, Tracked};
use crate::shown::lines;

const LOAD: &str = r#"<step id="load" next="report">
  <chunk reader="csvRecordReader" processor="recordProcessor" writer="recordTableWriter" commit-interval="2"><properties>
    <property name="resource" value="in.csv"/>
    <property name="if.changed" value="resume"/>
    <property name="where" value="id != 2"/>
    <property name="types" value="id=int"/>
    <property name="table" value="payment"/>
  </properties></chunk>
</step>
<step id="report">
  <chunk reader="queryRecordReader" processor="recordProcessor" writer="recordCsvWriter"><properties>
    <property name="query" value="SELECT id FROM payment ORDER BY id"/>
    <property name="tables" value="payment"/>
    <property name="output" value="out/report.csv"/>
  </properties></chunk>
</step>"#;

fn job() -> Tracked {
    Tracked::new(&format!("{CREATE}{LOAD}")).with_payments("in.csv", 1..=5)
}

/// Jobs and steps are runs; steps name their files and tables, with columns and the numbers of rows.
///
/// Spec: LIN-02, LIN-03, LIN-06, LIN-07
#[test]
fn a_job_is_a_run_of_runs() {
    let tracked = job();
    tracked.launch(0, &[]);
    assert_snapshot!(lines(&tracked.receiver.events(), &tracked.path()), @r#"
    START #1 job
    START #2 job.create parent=#1:job root=#1:job
    COMPLETE #2 job.create parent=#1:job root=#1:job
    START #3 job.load parent=#1:job root=#1:job
    RUNNING #3 job.load parent=#1:job root=#1:job
      <- file /in.csv
      -> sqlite:///batch.db payment (id INTEGER, amount REAL)
    COMPLETE #3 job.load parent=#1:job root=#1:job
      <- file /in.csv 5 rows
      -> sqlite:///batch.db payment (id INTEGER, amount REAL) 4 rows
    START #4 job.report parent=#1:job root=#1:job
    RUNNING #4 job.report parent=#1:job root=#1:job
      <- sqlite:///batch.db payment (id INTEGER, amount REAL)
      -> file /out/report.csv
    COMPLETE #4 job.report parent=#1:job root=#1:job
      <- sqlite:///batch.db payment (id INTEGER, amount REAL) 4 rows
      -> file /out/report.csv 4 rows
    COMPLETE #1 job
    "#);
}

/// An event as it is sent.
///
/// Spec: LIN-03, LIN-06
#[test]
fn an_event_has_all_facets() {
    let tracked = job();
    tracked.launch(0, &[("OPENLINEAGE_NAMESPACE", "nightly")]);
    let events = tracked.receiver.events();
    let is_end = |event: &&Value| event["eventType"] == "COMPLETE" && event["job"]["name"] == "job.load";
    let mut event = events.iter().find(is_end).unwrap().clone();
    // A feature of serde_json keeps the order of keys.
    event.sort_all_objects();
    let mut shown = serde_json::to_string_pretty(&event).unwrap();
    let runs = [&event["run"], &event["run"]["facets"]["parent"]["run"]];
    for (run, name) in runs.into_iter().zip(["STEP", "JOB"]) {
        shown = shown.replace(run["runId"].as_str().unwrap(), name);
    }
    for (varying, name) in [
        (event["eventTime"].as_str().unwrap(), "TIME"),
        (tracked.path().to_str().unwrap(), ""),
        (env!("CARGO_PKG_VERSION"), "VERSION"),
    ] {
        shown = shown.replace(varying, name);
    }
    assert_snapshot!(shown, @r#"
    {
      "eventTime": "TIME",
      "eventType": "COMPLETE",
      "inputs": [
        {
          "facets": {},
          "inputFacets": {
            "inputStatistics": {
              "_producer": "https://docs.rs/batch-lineage/VERSION",
              "_schemaURL": "https://openlineage.io/spec/facets/1-0-0/InputStatisticsInputDatasetFacet.json#/$defs/InputStatisticsInputDatasetFacet",
              "rowCount": 5
            }
          },
          "name": "/in.csv",
          "namespace": "file"
        }
      ],
      "job": {
        "facets": {
          "jobType": {
            "_producer": "https://docs.rs/batch-lineage/VERSION",
            "_schemaURL": "https://openlineage.io/spec/facets/2-0-4/JobTypeJobFacet.json#/$defs/JobTypeJobFacet",
            "integration": "BATCH_RUNTIME",
            "jobType": "STEP",
            "processingType": "BATCH"
          }
        },
        "name": "job.load",
        "namespace": "nightly"
      },
      "outputs": [
        {
          "facets": {
            "schema": {
              "_producer": "https://docs.rs/batch-lineage/VERSION",
              "_schemaURL": "https://openlineage.io/spec/facets/1-2-0/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet",
              "fields": [
                {
                  "name": "id",
                  "type": "INTEGER"
                },
                {
                  "name": "amount",
                  "type": "REAL"
                }
              ]
            }
          },
          "name": "payment",
          "namespace": "sqlite:///batch.db",
          "outputFacets": {
            "outputStatistics": {
              "_producer": "https://docs.rs/batch-lineage/VERSION",
              "_schemaURL": "https://openlineage.io/spec/facets/1-0-2/OutputStatisticsOutputDatasetFacet.json#/$defs/OutputStatisticsOutputDatasetFacet",
              "rowCount": 4
            }
          }
        }
      ],
      "producer": "https://docs.rs/batch-lineage/VERSION",
      "run": {
        "facets": {
          "parent": {
            "_producer": "https://docs.rs/batch-lineage/VERSION",
            "_schemaURL": "https://openlineage.io/spec/facets/1-2-0/ParentRunFacet.json#/$defs/ParentRunFacet",
            "job": {
              "name": "job",
              "namespace": "nightly"
            },
            "root": {
              "job": {
                "name": "job",
                "namespace": "nightly"
              },
              "run": {
                "runId": "JOB"
              }
            },
            "run": {
              "runId": "JOB"
            }
          },
          "processing_engine": {
            "_producer": "https://docs.rs/batch-lineage/VERSION",
            "_schemaURL": "https://openlineage.io/spec/facets/1-1-1/ProcessingEngineRunFacet.json#/$defs/ProcessingEngineRunFacet",
            "name": "batch-runtime",
            "openlineageAdapterVersion": "VERSION",
            "version": "VERSION"
          }
        },
        "runId": "STEP"
      },
      "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
    }
    "#);
}

/// A restart of a failed job is a new run; so is the restart of its step, with the rows that it has read and written.
///
/// Spec: LIN-03, LIN-05
#[test]
fn a_restart_is_another_run() {
    let tracked = job();
    let bad = "id,amount\n1,1.5\n3,2.5\n4,x\n5,3.5\n";
    fs::write(tracked.path().join("in.csv"), bad).unwrap();
    tracked.launch(1, &[]);
    fs::write(tracked.path().join("in.csv"), bad.replace('x', "9")).unwrap();
    tracked.launch(0, &[]);
    let shown = lines(&tracked.receiver.events(), &tracked.path());
    assert_snapshot!(shown, @r#"
    START #1 job
    START #2 job.create parent=#1:job root=#1:job
    COMPLETE #2 job.create parent=#1:job root=#1:job
    START #3 job.load parent=#1:job root=#1:job
    RUNNING #3 job.load parent=#1:job root=#1:job
      <- file /in.csv
      -> sqlite:///batch.db payment (id INTEGER, amount REAL)
    FAIL #3 job.load parent=#1:job root=#1:job error="cannot write item 1 of the chunk to `payment`: field `amount`: expected a number, found \"x\""
      <- file /in.csv 2 rows
      -> sqlite:///batch.db payment (id INTEGER, amount REAL) 2 rows
    FAIL #1 job error="cannot write item 1 of the chunk to `payment`: field `amount`: expected a number, found \"x\""
    START #4 job
    START #5 job.load parent=#4:job root=#4:job
    RUNNING #5 job.load parent=#4:job root=#4:job
      <- file /in.csv
      -> sqlite:///batch.db payment (id INTEGER, amount REAL)
    COMPLETE #5 job.load parent=#4:job root=#4:job
      <- file /in.csv 2 rows
      -> sqlite:///batch.db payment (id INTEGER, amount REAL) 2 rows
    START #6 job.report parent=#4:job root=#4:job
    RUNNING #6 job.report parent=#4:job root=#4:job
      <- sqlite:///batch.db payment (id INTEGER, amount REAL)
      -> file /out/report.csv
    COMPLETE #6 job.report parent=#4:job root=#4:job
      <- sqlite:///batch.db payment (id INTEGER, amount REAL) 4 rows
      -> file /out/report.csv 4 rows
    COMPLETE #4 job
    "#);
}

/// Spec: LIN-04
#[test]
fn the_environment_names_the_parent() {
    let tracked = job();
    let parent = "https://airflow/dag.task/f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11";
    let root = "airflow/dag/11111111-3c3c-1a1a-2b2b-c1b95c24ff11";
    let variables = [
        ("OPENLINEAGE_PARENT_ID", parent),
        ("OPENLINEAGE_ROOT_PARENT_ID", root),
    ];
    tracked.launch(0, &variables);
    let events = tracked.receiver.events();
    let shown = lines(&events[..2], &tracked.path());
    assert_snapshot!(shown, @r#"
    START #1 job parent=f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11:dag.task root=11111111-3c3c-1a1a-2b2b-c1b95c24ff11:dag
    START #2 job.create parent=#1:job root=11111111-3c3c-1a1a-2b2b-c1b95c24ff11:dag
    "#);
    assert_eq!(
        events[0]["run"]["facets"]["parent"]["job"]["namespace"],
        "https://airflow"
    );
}
