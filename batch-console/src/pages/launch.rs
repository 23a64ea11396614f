//! The form that launches a job, made from its properties.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{Form as Fields, Path};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use batch_runtime::operator::{Definitions, ElementExplanation, PropertyExplanation, ValueOrigin};
use batch_runtime::parameters::NamedParameter;
use batch_runtime::{JobOperator, JobOperatorError, JobParameters};

use super::{check_form, job};
use crate::app::Visit;
use crate::operations::Launched;
use crate::problem::Problem;

/// The prefix of the fields that hold values of parameters.
const VALUE: &str = "p.";
/// The prefix of the boxes of parameters that do not identify the instance.
const OTHER: &str = "n.";
/// The longest default that a form shows, in characters.
const LONGEST_DEFAULT: usize = 80;
/// The queue of workers, unless another one is entered.
const QUEUE: &str = "default";

/// What was entered.
#[derive(Clone, Debug, Default)]
pub(super) struct Form {
    token: String,
    action: String,
    values: BTreeMap<String, String>,
    not_identifying: BTreeSet<String>,
    /// Further parameters, one on each line.
    more: String,
    on_worker: bool,
    queue: String,
}

impl Form {
    fn new(fields: Vec<(String, String)>) -> Self {
        let mut form = Self::default();
        for (name, value) in fields {
            match name.as_str() {
                "form" => form.token = value,
                "action" => form.action = value,
                // Browsers end lines by CR LF.
                "more" => form.more = value.replace("\r\n", "\n"),
                "worker" => form.on_worker = true,
                "queue" => form.queue = value,
                name => {
                    if let Some(parameter) = name.strip_prefix(VALUE) {
                        form.values.insert(parameter.to_owned(), value);
                    } else if let Some(parameter) = name.strip_prefix(OTHER) {
                        form.not_identifying.insert(parameter.to_owned());
                    }
                }
            }
        }
        form
    }

    /// Returns the parameters: those with a value, and those of the lines.
    fn parameters(&self) -> Result<JobParameters, Problem> {
        let mut all = Vec::new();
        for (name, value) in self.values.iter().filter(|(_, value)| !value.is_empty()) {
            let parameter = batch_runtime::parameters::JobParameter {
                value: batch_runtime::ParameterValue::String(value.clone()),
                identifying: !self.not_identifying.contains(name),
            };
            let name = name.clone();
            all.push(NamedParameter { name, parameter });
        }
        for (number, line) in (1..).zip(self.more.lines()) {
            if !line.trim().is_empty() {
                let parsed = line.trim_end().parse();
                all.push(parsed.map_err(|problem: String| {
                    Problem::invalid(format!("line {number} of the further parameters: {problem}"))
                })?);
            }
        }
        let mut names = BTreeSet::new();
        match all.iter().find(|one| !names.insert(one.name.clone())) {
            Some(twice) => Err(Problem::invalid(format!(
                "parameter `{}` is given twice",
                twice.name
            ))),
            None => Ok(all.into_iter().collect()),
        }
    }
}

/// The form as the page shows it.
pub(super) struct LaunchForm {
    pub(super) parameters: Vec<Parameter>,
    /// Properties that a launch seldom sets.
    pub(super) others: Vec<Parameter>,
    pub(super) more: String,
    pub(super) on_worker: bool,
    pub(super) queue: String,
    /// True if a worker of some queue is alive.
    pub(super) has_workers: bool,
    pub(super) problem: String,
    pub(super) done: String,
    /// False if the job path has no such job.
    pub(super) can_launch: bool,
}

/// A field of the form.
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) default: String,
    pub(super) is_required: bool,
    pub(super) value: String,
    pub(super) is_not_identifying: bool,
}

impl LaunchForm {
    pub(super) fn of(operator: &JobOperator, job: &str, form: &Form) -> Result<Self, JobOperatorError> {
        let workers = operator.workers()?;
        let can_launch = operator.job_path().jobs.contains(job);
        let (mut parameters, mut others) = match can_launch {
            true => parameters(operator.definitions(), job),
            false => (Vec::new(), Vec::new()),
        };
        for parameter in parameters.iter_mut().chain(&mut others) {
            let entered = form.values.get(&parameter.name);
            parameter.value = entered.cloned().unwrap_or_default();
            parameter.is_not_identifying = form.not_identifying.contains(&parameter.name);
        }
        Ok(Self {
            parameters,
            others,
            more: form.more.clone(),
            on_worker: form.on_worker,
            queue: match form.queue.as_str() {
                "" => QUEUE.into(),
                queue => queue.into(),
            },
            has_workers: workers.iter().any(|worker| worker.is_alive),
            problem: String::new(),
            done: String::new(),
            can_launch,
        })
    }
}

/// Returns the parameters that a job declares: first its own properties, those that the Job XML refers to and those of the program's
/// artifacts, then those of ready-made artifacts.
fn parameters(definitions: &Definitions, job: &str) -> (Vec<Parameter>, Vec<Parameter>) {
    let mut found = Declared::default();
    if let Ok(effective) = definitions.effective_job(job, &JobParameters::new()) {
        let symbols: BTreeSet<&String> = effective.parameter_names().collect();
        if let Ok(explanation) = definitions.explain(job, &JobParameters::new()) {
            for property in &explanation.job.properties {
                found.add(property, true);
            }
            found.element(&explanation.job);
        }
        for name in symbols {
            found.name(name);
        }
    }
    found.into_fields()
}

/// The declared parameters, in the order in which they are found.
#[derive(Default)]
struct Declared {
    fields: Vec<(Parameter, bool)>,
    places: BTreeMap<String, usize>,
}

impl Declared {
    fn element(&mut self, element: &ElementExplanation) {
        let of_partition = element
            .partition
            .iter()
            .flat_map(|partition| &partition.artifacts);
        for artifact in element.artifacts.iter().chain(of_partition) {
            let is_own = !artifact
                .types
                .iter()
                .any(|one| one.class.starts_with("batch_items::"));
            let declared = artifact
                .properties
                .iter()
                .filter(|property| property.field.is_some());
            declared.for_each(|property| self.add(property, is_own));
        }
        element.elements.iter().for_each(|inner| self.element(inner));
    }

    fn add(&mut self, property: &PropertyExplanation, is_main: bool) {
        let field = property.field.as_ref();
        let kind = field.map(batch_runtime::operator::FieldExplanation::short_type_name);
        if let Some(place) = self.places.get(&property.name) {
            let (known, was_main) = &mut self.fields[*place];
            // A property of the job gets the type of the field that takes it.
            if known.kind.is_empty() {
                known.kind = kind.unwrap_or_default();
            }
            *was_main |= is_main;
            return;
        }
        let default = property.value.as_deref().unwrap_or_default();
        let is_required =
            matches!(property.origin, ValueOrigin::Unset) && field.is_some_and(|field| !field.optional);
        let field = Parameter {
            name: property.name.clone(),
            kind: kind.unwrap_or_default(),
            default: shown_default(&property.name, default),
            is_required,
            value: String::new(),
            is_not_identifying: false,
        };
        self.places.insert(property.name.clone(), self.fields.len());
        self.fields.push((field, is_main || is_required));
    }

    fn name(&mut self, name: &str) {
        if !self.places.contains_key(name) && !name.starts_with("batch.") {
            self.places.insert(name.to_owned(), self.fields.len());
            let parameter = Parameter {
                name: name.to_owned(),
                kind: String::new(),
                default: String::new(),
                is_required: false,
                value: String::new(),
                is_not_identifying: false,
            };
            self.fields.push((parameter, true));
        }
    }

    fn into_fields(self) -> (Vec<Parameter>, Vec<Parameter>) {
        let (main, others): (Vec<_>, Vec<_>) = self.fields.into_iter().partition(|(_, is_main)| *is_main);
        let field = |(field, _)| field;
        (
            main.into_iter().map(field).collect(),
            others.into_iter().map(field).collect(),
        )
    }
}

/// Returns a default as the form shows it: on one line, cut, and masked if it may be a secret.
fn shown_default(name: &str, value: &str) -> String {
    let name = name.to_ascii_lowercase();
    let is_secret = ["password", "secret", "token", "credential"]
        .iter()
        .any(|word| name.contains(word));
    if is_secret && !value.is_empty() {
        return "•••".into();
    }
    let line = value.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_DEFAULT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Launches the job, or checks what was entered.
pub(super) async fn launch(
    visit: Visit,
    Path(job): Path<String>,
    Fields(fields): Fields<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    let form = Form::new(fields);
    check_form(&visit, &form.token)?;
    let result = match form.parameters() {
        Ok(parameters) => act(&visit, &job, &form, parameters).await,
        Err(problem) => Err(problem),
    };
    match result {
        Ok(Done::At(page)) => Ok((StatusCode::SEE_OTHER, [(LOCATION, page)]).into_response()),
        Ok(Done::Checked(text)) => job::page(visit, job, form, Some(Ok(text))).await,
        Err(problem) => job::page(visit, job, form, Some(Err(problem))).await,
    }
}

/// What came of a form.
enum Done {
    /// The page that shows it.
    At(String),
    /// The job was only checked.
    Checked(String),
}

async fn act(visit: &Visit, job: &str, form: &Form, parameters: JobParameters) -> Result<Done, Problem> {
    let (name, root, workbench) = (job.to_owned(), &visit.root.0, &visit.app.workbench);
    if form.action == "check" {
        let warnings = workbench
            .run(move |operator| operator.check(&name, parameters))
            .await?;
        let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        return Ok(Done::Checked(match warnings.is_empty() {
            true => "The job can be launched with these parameters.".into(),
            false => format!(
                "The job can be launched, with warnings:\n\n{}",
                warnings.join("\n")
            ),
        }));
    }
    let queue = form.on_worker.then(|| form.queue.clone());
    let page = match visit.launch(name, parameters, queue).await? {
        Launched::Here(execution) => format!("{root}/executions/{execution}"),
        Launched::Queued(_) => format!("{root}/workers"),
    };
    Ok(Done::At(page))
}
