//! The JSON of run events.

use batch_runtime::Timestamp;
use batch_runtime::observer::{DatasetField, DatasetRole};
use serde_json::{Map, Value, json};

use crate::parent::RunOf;
use crate::steps::Used;

const SPEC: &str = "https://openlineage.io/spec";
const ENGINE: &str = "batch-runtime";

/// The kinds of run events that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventType {
    Start,
    Running,
    Complete,
    Fail,
    Abort,
}

impl EventType {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Start => "START",
            Self::Running => "RUNNING",
            Self::Complete => "COMPLETE",
            Self::Fail => "FAIL",
            Self::Abort => "ABORT",
        }
    }

    fn is_end(self) -> bool {
        matches!(self, Self::Complete | Self::Fail | Self::Abort)
    }
}

/// A run event.
pub(crate) struct RunEvent<'e> {
    pub(crate) kind: EventType,
    pub(crate) at: Timestamp,
    pub(crate) run: &'e RunOf,
    /// `JOB` or `STEP`.
    pub(crate) job_type: &'static str,
    pub(crate) parent: Option<&'e RunOf>,
    pub(crate) root: Option<&'e RunOf>,
    /// The message of a failure.
    pub(crate) error: Option<&'e str>,
    pub(crate) datasets: &'e [Used],
}

impl RunEvent<'_> {
    /// Returns the event as a line of JSON.
    pub(crate) fn to_json(&self) -> String {
        let RunOf { namespace, job, run } = self.run;
        let datasets = |role| {
            let of_role = self.datasets.iter().filter(move |used| used.role == role);
            of_role
                .map(|used| dataset(used, self.kind.is_end()))
                .collect::<Vec<_>>()
        };
        json!({
            "eventType": self.kind.as_str(),
            "eventTime": self.at,
            "producer": producer(),
            "schemaURL": format!("{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"),
            "run": {"runId": run, "facets": self.run_facets()},
            "job": {
                "namespace": namespace,
                "name": job,
                "facets": {"jobType": facet("2-0-4", "JobTypeJobFacet", json!({
                    "processingType": "BATCH",
                    "integration": "BATCH_RUNTIME",
                    "jobType": self.job_type,
                }))},
            },
            "inputs": datasets(DatasetRole::Input),
            "outputs": datasets(DatasetRole::Output),
        })
        .to_string()
    }

    fn run_facets(&self) -> Value {
        let version = env!("CARGO_PKG_VERSION");
        let mut facets = Map::new();
        let mut add = |name: &str, facet| facets.insert(name.to_owned(), facet);
        add(
            "processing_engine",
            facet(
                "1-1-1",
                "ProcessingEngineRunFacet",
                json!({"name": ENGINE, "version": version, "openlineageAdapterVersion": version}),
            ),
        );
        if let Some(parent) = self.parent {
            let mut fields = parent.to_json();
            if let Some(root) = self.root {
                fields["root"] = root.to_json();
            }
            add("parent", facet("1-2-0", "ParentRunFacet", fields));
        }
        if let Some(message) = self.error {
            let fields = json!({"message": message, "programmingLanguage": "RUST"});
            add("errorMessage", facet("1-0-1", "ErrorMessageRunFacet", fields));
        }
        Value::Object(facets)
    }
}

/// Returns a dataset; with its number of rows in the event that ends the run.
fn dataset(used: &Used, with_rows: bool) -> Value {
    let mut dataset = json!({"namespace": used.namespace, "name": used.name, "facets": {}});
    if !used.fields.is_empty() {
        let fields: Vec<_> = used.fields.iter().map(field).collect();
        let schema = facet("1-2-0", "SchemaDatasetFacet", json!({"fields": fields}));
        dataset["facets"]["schema"] = schema;
    }
    if let Some(rows) = used.rows().filter(|_| with_rows) {
        let fields = json!({"rowCount": rows});
        match used.role {
            DatasetRole::Input => {
                let statistics = facet("1-0-0", "InputStatisticsInputDatasetFacet", fields);
                dataset["inputFacets"] = json!({"inputStatistics": statistics});
            }
            DatasetRole::Output => {
                let statistics = facet("1-0-2", "OutputStatisticsOutputDatasetFacet", fields);
                dataset["outputFacets"] = json!({"outputStatistics": statistics});
            }
        }
    }
    dataset
}

fn field(field: &DatasetField) -> Value {
    match &field.kind {
        Some(kind) => json!({"name": field.name, "type": kind}),
        None => json!({"name": field.name}),
    }
}

fn facet(version: &str, name: &str, mut fields: Value) -> Value {
    fields["_producer"] = producer().into();
    fields["_schemaURL"] = format!("{SPEC}/facets/{version}/{name}.json#/$defs/{name}").into();
    fields
}

/// Returns the URI of this producer.
fn producer() -> String {
    format!("https://docs.rs/batch-lineage/{}", env!("CARGO_PKG_VERSION"))
}
