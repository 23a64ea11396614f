//! A job instance with everything that belongs to it, as one line of JSON.

use serde::{Deserialize, Serialize};

use super::context_json::ContextError;
use super::rules::is_number;
use super::{JobState, StoredContext};
use crate::clock::Timestamp;
use crate::execution::{JobExecution, JobInstance, StepCounters, StepExecution};
use crate::ids::JobExecutionId;
use crate::layout::{RepositoryFormat, RepositoryLayout};
use crate::parameters::{JobParameters, ParameterValue};
use crate::status::BatchStatus;

/// The format that this version writes and reads.
pub(crate) const FORMAT: &str = "batch-instance/1";

/// Lengths of columns, in characters.
const KEY_LENGTH: usize = 32;
const TEXT_LENGTH: usize = 2_500;
/// The number of characters of an invalid id that a message shows.
const MAX_SHOWN: usize = 40;

/// A job instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ArchivedInstance {
    /// [`FORMAT`].
    pub(crate) format: String,
    /// Its id at the time of the export.
    pub(crate) instance: i64,
    pub(crate) job: String,
    pub(crate) job_key: String,
    /// The layout of the repository that exported it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) layout: RepositoryLayout,
    /// In the order of their start.
    pub(crate) executions: Vec<ArchivedExecution>,
}

/// A job execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ArchivedExecution {
    pub(crate) execution: i64,
    pub(crate) version: i64,
    pub(crate) status: BatchStatus,
    pub(crate) exit_status: String,
    pub(crate) exit_message: String,
    pub(crate) created: Timestamp,
    pub(crate) started: Option<Timestamp>,
    pub(crate) ended: Option<Timestamp>,
    pub(crate) last_updated: Timestamp,
    pub(crate) definition: Option<String>,
    pub(crate) parameters: Vec<ArchivedParameter>,
    pub(crate) context: Option<StoredContext>,
    /// In the order of their start.
    pub(crate) steps: Vec<ArchivedStep>,
}

/// A parameter of an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ArchivedParameter {
    pub(crate) name: String,
    pub(crate) value: ParameterValue,
    pub(crate) identifying: bool,
}

/// A step execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ArchivedStep {
    pub(crate) step_execution: i64,
    pub(crate) step: String,
    pub(crate) version: i64,
    pub(crate) status: BatchStatus,
    pub(crate) exit_status: String,
    pub(crate) exit_message: String,
    pub(crate) started: Timestamp,
    pub(crate) ended: Option<Timestamp>,
    pub(crate) last_updated: Timestamp,
    pub(crate) counters: StepCounters,
    pub(crate) context: Option<StoredContext>,
}

impl ArchivedExecution {
    /// Creates it from a job execution.
    pub(crate) fn of(
        row: JobExecution,
        parameters: &JobParameters,
        context: Option<StoredContext>,
        steps: Vec<ArchivedStep>,
    ) -> Self {
        Self {
            execution: row.id.0,
            version: row.version,
            status: row.status,
            exit_status: row.exit_status,
            exit_message: row.exit_message,
            created: row.created,
            started: row.started,
            ended: row.ended,
            last_updated: row.last_updated,
            definition: row.configuration_location,
            parameters: ArchivedParameter::all(parameters),
            context,
            steps,
        }
    }
}

impl ArchivedStep {
    /// Creates it from a step execution.
    pub(crate) fn of(row: StepExecution, context: Option<StoredContext>) -> Self {
        Self {
            step_execution: row.id.0,
            step: row.step_name,
            version: row.version,
            status: row.status,
            exit_status: row.exit_status,
            exit_message: row.exit_message,
            started: row.started,
            ended: row.ended,
            last_updated: row.last_updated,
            counters: row.counters,
            context,
        }
    }
}

impl ArchivedParameter {
    pub(crate) fn all(parameters: &JobParameters) -> Vec<Self> {
        let archived = |(name, parameter): (&str, &crate::parameters::JobParameter)| Self {
            name: name.to_owned(),
            value: parameter.value.clone(),
            identifying: parameter.identifying,
        };
        parameters.iter().map(archived).collect()
    }
}

fn is_default(layout: &RepositoryLayout) -> bool {
    *layout == RepositoryLayout::default()
}

impl ArchivedInstance {
    /// Returns the first value that a job could not have written: invalid ids, texts that are too long or contain NUL.
    pub(crate) fn problem(&self, layout: RepositoryLayout) -> Option<String> {
        let id = |what: &str, id: &str| {
            let shortened: String = id.chars().take(MAX_SHOWN).collect();
            batch_xml::id_problem(id).map(|problem| format!("{what} {shortened:?}: {problem}"))
        };
        let instance = id("job", &self.job).or_else(|| text_problem("job key", &self.job_key, KEY_LENGTH));
        instance.or_else(|| {
            self.executions.iter().find_map(|execution| {
                let steps = || {
                    execution
                        .steps
                        .iter()
                        .find_map(|step| id("step", &step.step).or_else(|| step.problem()))
                };
                let at = |problem| format!("execution {}: {problem}", execution.execution);
                execution.problem(layout).or_else(steps).map(at)
            })
        })
    }

    /// Returns the content for a repository that may have another layout, or narrower columns, than the one of the export.
    // Spec: REPO-91
    pub(crate) fn converted_to(mut self, format: &RepositoryFormat) -> Self {
        let cut = |text: &mut String| *text = text.chars().take(format.max_varchar).collect();
        let from = std::mem::replace(&mut self.layout, format.layout);
        let convert = |context: &mut Option<StoredContext>| {
            let stored = context.take();
            *context = stored.map(|stored| {
                stored
                    .converted(from, format)
                    .unwrap_or(stored)
                    .cut_to(format.max_varchar)
            });
        };
        for execution in &mut self.executions {
            cut(&mut execution.exit_message);
            convert(&mut execution.context);
            for step in &mut execution.steps {
                cut(&mut step.exit_message);
                convert(&mut step.context);
            }
        }
        // The parameters of the first execution are those that identify the instance.
        let parameters = self.executions.first().map(ArchivedExecution::job_parameters);
        let key = parameters.and_then(|parameters| parameters.key_instead_of(&self.job_key, format));
        self.job_key = key.unwrap_or(self.job_key);
        self
    }

    /// Returns the content without the ids, which are different in each repository.
    pub(crate) fn without_ids(mut self) -> Self {
        self.instance = 0;
        for execution in &mut self.executions {
            execution.execution = 0;
            execution
                .steps
                .iter_mut()
                .for_each(|step| step.step_execution = 0);
        }
        self
    }

    /// Returns whether the instance cannot be resumed.
    pub(crate) fn is_over(&self) -> bool {
        let mut statuses = self.executions.iter().map(|one| one.status);
        statuses.any(|status| matches!(status, BatchStatus::Completed | BatchStatus::Abandoned))
    }
}

impl ArchivedStep {
    fn problem(&self) -> Option<String> {
        let counted = self.counters.metrics().into_iter().map(|metric| metric.value);
        text_problem("exit status", &self.exit_status, TEXT_LENGTH)
            .or_else(|| text_problem("exit message", &self.exit_message, TEXT_LENGTH))
            .or_else(|| counted.chain([self.version]).find_map(number_problem))
            .or_else(|| context_problem(self.context.as_ref()?))
    }
}

/// Returns the problem of a counter or version that no program has counted.
fn number_problem(number: i64) -> Option<String> {
    (!is_number(number)).then(|| format!("the number {number}, which no program has counted"))
}

impl ArchivedExecution {
    fn problem(&self, layout: RepositoryLayout) -> Option<String> {
        text_problem("exit status", &self.exit_status, TEXT_LENGTH)
            .or_else(|| text_problem("exit message", &self.exit_message, TEXT_LENGTH))
            .or_else(|| number_problem(self.version))
            .or_else(|| text_problem("definition", self.definition.as_ref()?, TEXT_LENGTH))
            .or_else(|| context_problem(self.context.as_ref()?))
            .or_else(|| {
                let invalid = self
                    .job_parameters()
                    .without_run_id()
                    .without_nulls()
                    .validate(Some(layout))
                    .err()?;
                Some(invalid.to_string())
            })
    }

    /// Returns whether its context contains states of parallel elements, or may contain some. One that Java has serialized is of Spring Batch.
    pub(crate) fn keeps_elements(&self) -> bool {
        self.context
            .as_ref()
            .is_some_and(|context| match JobState::decode(context.text()) {
                Ok(state) => !state.elements.is_empty(),
                Err(error) => !matches!(error, ContextError::Java),
            })
    }

    pub(crate) fn job_parameters(&self) -> JobParameters {
        self.parameters
            .iter()
            .fold(JobParameters::new(), |parameters, one| {
                parameters.with_parameter(&one.name, one.value.clone(), one.identifying)
            })
    }
}

/// The state of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstanceState {
    pub(crate) instance: JobInstance,
    /// The status of its last execution; `None` while one is open, or if there is none.
    pub(crate) status: Option<BatchStatus>,
    /// When its last execution ended.
    pub(crate) ended: Option<Timestamp>,
    /// The last execution.
    pub(crate) last: JobExecutionId,
}

/// Returns the problem of a text that not every database can store in a column of this length.
fn text_problem(what: &str, text: &str, max: usize) -> Option<String> {
    let length = text.chars().count();
    if length > max {
        Some(format!(
            "the {what} has {length} characters, but the repository stores at most {max}"
        ))
    } else {
        text.contains('\0')
            .then(|| format!("the {what} contains a NUL character"))
    }
}

fn context_problem(context: &StoredContext) -> Option<String> {
    let serialized = || text_problem("context", context.serialized.as_ref()?, usize::MAX);
    text_problem("short context", &context.short, TEXT_LENGTH).or_else(serialized)
}
