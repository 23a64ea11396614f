//! One repository, used by this runtime and by Spring Batch in a JVM.

use std::fmt::Debug;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};

use batch_runtime::execution::{JobExecution, StepExecution};
use batch_runtime::repository::{ExecutionFilter, RepositoryUrl};
use batch_runtime::{BatchRuntime, JobOperator, JobParameters, ParameterValue, Timestamp, time::TimeZone};
use batch_tests::database::{Database, Place};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::artifacts::JOBS;
use super::spring::{Spring, Version};

/// The program that creates the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TablesOf {
    SpringBatch,
    Us,
}

/// A version of Spring Batch, whose layout the tables have, and a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct On {
    pub(super) version: Version,
    pub(super) database: Database,
}

impl On {
    /// Each version on each database.
    pub(super) const ALL: [Self; 9] = {
        let mut all = [Self {
            version: Version::V4,
            database: Database::Sqlite,
        }; 9];
        let mut at = 0;
        while at < 9 {
            all[at] = Self {
                version: Version::ALL[at / 3],
                database: Database::ALL[at % 3],
            };
            at += 1;
        }
        all
    };

    pub(super) fn of_4_3(database: Database) -> Self {
        Self {
            version: Version::V4,
            database,
        }
    }

    /// Each version on each database, where either program creates the tables in turn.
    pub(super) fn with_tables() -> impl Iterator<Item = (Self, TablesOf)> {
        let tables = [TablesOf::SpringBatch, TablesOf::Us].into_iter().cycle();
        Self::ALL.into_iter().zip(tables)
    }
}

pub(super) struct Shared {
    on: On,
    folder: TempDir,
    pub(super) place: Place,
    pub(super) operator: JobOperator,
    pub(super) spring: Spring,
    /// The name of the waiting job of this repository.
    pub(super) name: String,
}

impl Shared {
    pub(super) fn new(on: On, tables: TablesOf) -> Self {
        Self::in_zone(on, tables, "UTC")
    }

    /// Creates a repository whose JVM is in a time zone, which this runtime is given too.
    pub(super) fn in_zone(on: On, tables: TablesOf, zone: &str) -> Self {
        Self::create(on, tables, zone, |_, _| {})
    }

    /// Creates a repository that Spring Batch has used before this runtime.
    pub(super) fn after(on: On, before: impl FnOnce(&mut Spring, &Place)) -> Self {
        Self::create(on, TablesOf::SpringBatch, "UTC", before)
    }

    fn create(on: On, tables: TablesOf, zone: &str, before: impl FnOnce(&mut Spring, &Place)) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let folder = tempfile::tempdir().unwrap();
        for (id, xml) in JOBS {
            std::fs::write(folder.path().join(format!("{id}.xml")), xml).unwrap();
        }
        let place = Place::new(on.database, folder.path()).with_option("layout", on.version.layout());
        let mut spring = Spring::of(on.version, zone);
        if tables == TablesOf::SpringBatch {
            spring.make(&place);
        }
        before(&mut spring, &place);
        let name = format!("shared-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let operator = operator(folder.path(), &place, zone, &name);
        Self {
            on,
            folder,
            place,
            operator,
            spring,
            name,
        }
    }

    /// Returns a further runtime on the repository, which assumes this zone for its times.
    pub(super) fn operator_in(&self, zone: &str) -> JobOperator {
        operator(self.folder.path(), &self.place, zone, &self.name)
    }

    /// Returns a runtime that assumes a zone, if it knows that.
    pub(super) fn operator_if_known(&self, zone: &str) -> Option<JobOperator> {
        zone.parse::<TimeZone>().ok().map(|_| self.operator_in(zone))
    }

    /// Converts the tables to the layout of another version, whose JVM is used from then on.
    pub(super) fn convert(&mut self, version: Version) {
        let place = self.place.clone().without_options();
        let url: RepositoryUrl = place.url().parse().unwrap();
        let layout = version.layout().parse().unwrap();
        url.convert(layout, &TimeZone::UTC, &mut std::io::sink()).unwrap();
        self.on.version = version;
        self.place = place.with_option("layout", version.layout());
        self.spring = Spring::of(version, "UTC");
        self.operator = operator(self.folder.path(), &self.place, "UTC", &self.name);
    }

    /// Launches a job in this runtime, and waits for its end.
    pub(super) fn launch(&self, job: &str, parameters: &JobParameters) -> JobExecution {
        let execution = self.operator.launch(job, parameters.clone());
        let execution = execution.unwrap_or_else(|error| panic!("{job}: {error}"));
        self.operator.wait(execution).unwrap()
    }

    /// Runs a job in Spring Batch, to its end.
    pub(super) fn run(&mut self, job: &str, parameters: &JobParameters) -> Result<Value, String> {
        let parameters = shown_parameters(parameters);
        self.spring.ask(&self.place, json!(["run", job, parameters]))
    }

    /// Returns everything that Spring Batch sees, except the creation of steps and the classes of data.
    pub(super) fn seen_there(&mut self) -> Vec<Value> {
        let mut all = self.seen_with_classes();
        for execution in &mut all {
            execution.as_object_mut().unwrap().remove("classes").unwrap();
        }
        all
    }

    /// The same, with the classes of the data of jobs.
    pub(super) fn seen_with_classes(&mut self) -> Vec<Value> {
        let all = self.spring.done(&self.place, json!(["read"]));
        let mut all: Vec<Value> = serde_json::from_value(all).unwrap();
        let steps = all
            .iter_mut()
            .flat_map(|one| one["steps"].as_array_mut().unwrap());
        for step in steps {
            let created = step.as_object_mut().unwrap().remove("created");
            assert_eq!(created.is_some(), self.on.version != Version::V4, "{step}");
            let created = created.map(|time| time.as_i64().unwrap());
            assert!(created <= step["started"].as_i64(), "{created:?}: {step}");
        }
        all
    }

    /// Returns everything that this runtime sees, except contexts, and the file of the job, which Spring Batch 5 and 6 do not read.
    pub(super) fn seen_here(&self) -> Vec<Value> {
        let mut all = seen_by(&self.operator);
        if self.on.version != Version::V4 {
            all.iter_mut().for_each(|one| one["definition"] = Value::Null);
        }
        all
    }

    /// Returns the output of this runtime's command line about the repository.
    pub(super) fn command(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_operated"))
            .args(arguments)
            .args(["--repository", self.place.url()])
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }

    /// The same, as JSON.
    pub(super) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments:?}: {error}"))
    }

    /// Returns a column of an execution as stored.
    pub(super) fn column(&self, column: &str, execution: i64) -> String {
        let query = format!(
            "SELECT {column} AS text FROM BATCH_JOB_EXECUTION E
                 JOIN BATCH_JOB_INSTANCE I ON I.JOB_INSTANCE_ID = E.JOB_INSTANCE_ID
                 WHERE E.JOB_EXECUTION_ID = {execution}"
        );
        self.place.connect().rows(&query).remove(0)
    }
}

fn operator(folder: &Path, place: &Place, zone: &str, name: &str) -> JobOperator {
    let zone: TimeZone = zone.parse().unwrap();
    let runtime = BatchRuntime::builder()
        .repository(place.url())
        .repository_time_zone(zone)
        .job_path(folder.display().to_string())
        .system_property("name", name)
        .build();
    runtime.unwrap_or_else(|error| panic!("{error}")).job_operator()
}

/// Returns all executions, in the order of their ids, in the format of `Reading.java`, without contexts.
pub(super) fn seen_by(operator: &JobOperator) -> Vec<Value> {
    let mut all = operator.find_executions(&ExecutionFilter::default()).unwrap();
    lists_agree(operator, &all);
    all.reverse();
    all.iter()
        .map(|execution| execution_of(operator, execution))
        .collect()
}

/// The lists of the console read the same as a page of one execution does.
fn lists_agree(operator: &JobOperator, all: &[JobExecution]) {
    let ids: Vec<_> = all.iter().map(|execution| execution.id).collect();
    let (steps, counters) = (
        operator.steps_of(&ids).unwrap(),
        operator.counters_of(&ids).unwrap(),
    );
    let states = operator.execution_states(all).unwrap();
    for execution in all {
        let mut single = operator.step_executions(execution.id).unwrap();
        let written: i64 = single.iter().map(|step| step.counters.writes).sum();
        assert_eq!(counters.get(&execution.id).map_or(0, |sum| sum.writes), written);
        single.retain(|step| !step.step_name.contains(':'));
        let listed = steps.get(&execution.id).cloned().unwrap_or_default();
        let shown = |steps: &[StepExecution]| steps.iter().map(step_of).collect::<Vec<_>>();
        assert_eq!(shown(&listed), shown(&single));
        let state = &states[&execution.id];
        assert!(
            state.is_of_other_program || state.owner.is_none() || state.is_alive,
            "{state:?}"
        );
    }
}

fn execution_of(operator: &JobOperator, execution: &JobExecution) -> Value {
    let parameters = operator.parameters(execution.id).unwrap();
    let instance = operator.job_instance(execution.instance_id).unwrap().unwrap();
    let steps = operator.step_executions(execution.id).unwrap();
    json!({
        "execution": execution.id.0,
        "version": execution.version,
        "instance": execution.instance_id.0,
        "job": execution.job_name,
        "key": instance.job_key,
        "parameters": shown_parameters(&parameters),
        "status": execution.status.as_str(),
        "exitStatus": execution.exit_status,
        "exitMessage": execution.exit_message,
        "created": execution.created.0,
        "started": execution.started.map(|time| time.0),
        "ended": execution.ended.map(|time| time.0),
        "lastUpdated": execution.last_updated.0,
        "definition": execution.configuration_location,
        "steps": steps.iter().map(step_of).collect::<Vec<_>>(),
    })
}

fn step_of(step: &StepExecution) -> Value {
    let counters = step.counters;
    json!({
        "step": step.step_name,
        "stepExecution": step.id.0,
        "version": step.version,
        "status": step.status.as_str(),
        "exitStatus": step.exit_status,
        "exitMessage": step.exit_message,
        "started": step.started.0,
        "ended": step.ended.map(|time| time.0),
        "lastUpdated": step.last_updated.0,
        "counters": {
            "reads": counters.reads,
            "writes": counters.writes,
            "filters": counters.filters,
            "commits": counters.commits,
            "rollbacks": counters.rollbacks,
            "readSkips": counters.read_skips,
            "processSkips": counters.process_skips,
            "writeSkips": counters.write_skips,
        },
    })
}

const NULLS: [&str; 4] = ["STRING", "LONG", "DOUBLE", "DATE"];

/// Returns parameters in the format of `Parameters.java`.
pub(super) fn shown_parameters(parameters: &JobParameters) -> Value {
    let shown = parameters.iter().map(|(name, parameter)| {
        let (kind, value) = match &parameter.value {
            ParameterValue::String(text) => ("STRING", json!(text)),
            ParameterValue::Long(number) => ("LONG", json!(number)),
            ParameterValue::Double(number) => ("DOUBLE", json!(number)),
            ParameterValue::Date(time) => ("DATE", json!(time.0)),
            ParameterValue::Null(kind) => (NULLS[*kind as usize], Value::Null),
            // The stored value is the text of a reference.
            ParameterValue::Secret(reference) => ("STRING", json!(format!("secret:{reference}"))),
            ParameterValue::Java(value) => (value.class.as_str(), json!(value.text)),
        };
        json!({ "name": name, "type": kind, "value": value, "identifying": parameter.identifying })
    });
    shown.collect()
}

/// Parameters of all types; `run` distinguishes instances.
pub(super) fn parameters(run: i64) -> JobParameters {
    let date = Timestamp(1_704_067_200_123);
    JobParameters::new()
        .with("input.file", "/data/größer 漢字 😀.csv")
        .with_parameter("run.id", ParameterValue::Long(run), true)
        .with_parameter("rate", ParameterValue::Double(1.5), true)
        .with_parameter("date", ParameterValue::Date(date), true)
        .with_non_identifying("note", "")
        .with_parameter("big", ParameterValue::Long(i64::MIN), false)
        .with_parameter("tiny", ParameterValue::Double(1e-7), false)
        .with_parameter("until", ParameterValue::Date(Timestamp(-1)), false)
}

/// Removes the contexts from the view of Spring Batch.
pub(super) fn contexts(executions: &mut [Value]) -> Vec<Value> {
    let mut contexts = Vec::new();
    for execution in executions {
        contexts.push(execution.as_object_mut().unwrap().remove("context").unwrap());
        for step in execution["steps"].as_array_mut().unwrap() {
            contexts.push(step.as_object_mut().unwrap().remove("context").unwrap());
        }
    }
    contexts
}

/// Checks that both programs see the same; the error shows the difference.
pub(super) fn assert_same(there: &Value, here: &Value, what: impl Debug) {
    fn differences(path: &str, there: &Value, here: &Value, all: &mut Vec<String>) {
        match (there, here) {
            (Value::Object(these), Value::Object(those)) if these.keys().eq(those.keys()) => {
                for (key, value) in these {
                    differences(&format!("{path}.{key}"), value, &those[key], all);
                }
            }
            (Value::Array(these), Value::Array(those)) if these.len() == those.len() => {
                for (number, (this, that)) in these.iter().zip(those).enumerate() {
                    differences(&format!("{path}[{number}]"), this, that, all);
                }
            }
            _ if there == here => {}
            _ => all.push(format!("{path}: there {there}, here {here}")),
        }
    }
    let mut all = Vec::new();
    differences("", there, here, &mut all);
    assert!(all.is_empty(), "{what:?}\n{}", all.join("\n"));
}
