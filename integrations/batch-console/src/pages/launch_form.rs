//! The form that launches a job, made from its properties.

use std::collections::{BTreeMap, BTreeSet};

use batch_runtime::operator::{
    ArtifactType, Definitions, ElementExplanation, PropertyExplanation, ValueOrigin,
};
use batch_runtime::parameters::{JobParameter, NamedParameter};
use batch_runtime::{JobExecutionId, JobOperator, JobOperatorError, JobParameters, ParameterValue};

use crate::problem::Problem;

/// The prefix of the fields that hold values of parameters.
const VALUE: &str = "p.";
/// The prefix of the boxes of parameters that do not identify the instance.
const OTHER: &str = "n.";
/// The prefix of the hidden fields that hold types, of parameters that are not strings.
const TYPE: &str = "t.";
/// The longest default that a form shows, in characters.
const LONGEST_DEFAULT: usize = 80;
/// The queue of workers, unless another one is entered.
const QUEUE: &str = "default";

/// What was entered.
#[derive(Clone, Debug, Default)]
pub(super) struct Form {
    pub(super) token: String,
    pub(super) action: String,
    values: BTreeMap<String, String>,
    /// The types of the values that are not strings.
    types: BTreeMap<String, String>,
    not_identifying: BTreeSet<String>,
    /// Further parameters, one on each line.
    more: String,
    pub(super) on_worker: bool,
    pub(super) queue: String,
    /// The execution whose parameters these are.
    pub(super) again: Option<JobExecutionId>,
}

impl Form {
    /// Returns the form with the parameters of an execution of a job.
    pub(super) fn again(
        operator: &JobOperator,
        job: &str,
        id: JobExecutionId,
    ) -> Result<Self, JobOperatorError> {
        let found = operator.job_execution(id)?.filter(|found| found.job_name == job);
        found.ok_or(JobOperatorError::NoSuchJobExecution(id))?;
        let mut form = Self {
            again: Some(id),
            ..Self::default()
        };
        for (name, parameter) in operator.parameters(id)?.iter() {
            let name = name.to_owned();
            let Some(kind) = field_type(&name, &parameter.value) else {
                form.more += &(parameter.to_text(&name) + "\n");
                continue;
            };
            if !parameter.identifying {
                form.not_identifying.insert(name.clone());
            }
            if !kind.is_empty() {
                form.types.insert(name.clone(), kind);
            }
            form.values.insert(name, parameter.value.to_text());
        }
        Ok(form)
    }

    pub(super) fn new(fields: Vec<(String, String)>) -> Self {
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
                    } else if let Some(parameter) = name.strip_prefix(TYPE) {
                        form.types.insert(parameter.to_owned(), value);
                    } else if let Some(parameter) = name.strip_prefix(OTHER) {
                        form.not_identifying.insert(parameter.to_owned());
                    }
                }
            }
        }
        form
    }

    /// Returns whether nothing was entered yet.
    pub(super) fn is_new(&self) -> bool {
        self.token.is_empty() && self.again.is_none()
    }

    /// Returns the parameters: the fields with a value, and the lines.
    pub(super) fn parameters(&self) -> Result<JobParameters, Problem> {
        let mut all = Vec::new();
        for (name, value) in self.values.iter().filter(|(_, value)| !value.is_empty()) {
            let value = match self.types.get(name) {
                None => ParameterValue::String(value.clone()),
                Some(kind) => {
                    let parsed = format!("{name}({kind})={value}").parse::<NamedParameter>();
                    let invalid = |problem| Problem::invalid(format!("parameter `{name}`: {problem}"));
                    parsed.map_err(invalid)?.parameter.value
                }
            };
            let parameter = JobParameter {
                value,
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

/// Returns the type of a value as parameters name it, empty for a string; `None` if a field cannot hold the parameter.
fn field_type(name: &str, value: &ParameterValue) -> Option<String> {
    if name.contains(['=', '(']) || name.starts_with(['-', ' ']) {
        return None;
    }
    match value {
        ParameterValue::String(text) if !text.is_empty() && !text.contains('\n') => Some(String::new()),
        ParameterValue::Long(_) => Some("long".into()),
        ParameterValue::Double(_) => Some("double".into()),
        ParameterValue::Date(_) => Some("date".into()),
        ParameterValue::Java(java) => Some(java.class.clone()),
        _ => None,
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
    /// False if the job path has no such job, or its definition is not valid.
    pub(super) can_launch: bool,
    /// The execution whose parameters it has.
    pub(super) again: Option<JobExecutionId>,
}

/// A field of the form.
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) default: String,
    pub(super) is_required: bool,
    pub(super) value: String,
    /// The type of the parameter itself, if it is not a string.
    pub(super) value_type: String,
    /// The value in the latest execution.
    pub(super) last: String,
    pub(super) is_not_identifying: bool,
}

impl Parameter {
    fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: String::new(),
            default: String::new(),
            is_required: false,
            value: String::new(),
            value_type: String::new(),
            last: String::new(),
            is_not_identifying: false,
        }
    }
}

impl LaunchForm {
    /// Returns the form with the declared parameters and the parameters of the latest execution.
    pub(super) fn of(
        operator: &JobOperator,
        job: &str,
        form: &Form,
        latest: Option<&JobParameters>,
    ) -> Result<Self, JobOperatorError> {
        let workers = operator.workers()?;
        let can_launch = operator.job_path().jobs.contains(job);
        let (mut parameters, mut others) = match can_launch {
            true => parameters(operator.definitions(), job),
            false => (Vec::new(), Vec::new()),
        };
        let known: BTreeSet<String> = parameters
            .iter()
            .chain(&others)
            .map(|one| one.name.clone())
            .collect();
        parameters.extend(of_executions(form, latest).filter(|one| !known.contains(&one.name)));
        for parameter in parameters.iter_mut().chain(&mut others) {
            let name = &parameter.name;
            parameter.value = form.values.get(name).cloned().unwrap_or_default();
            if let Some(kind) = form.types.get(name) {
                parameter.value_type.clone_from(kind);
            }
            if !form.is_new() {
                parameter.is_not_identifying = form.not_identifying.contains(name);
            }
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
            again: form.again,
        })
    }
}

/// What the page asks.
impl LaunchForm {
    fn all(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().chain(&self.others)
    }

    pub(super) fn all_parameters(&self) -> Vec<&Parameter> {
        self.all().collect()
    }

    pub(super) fn has_parameters(&self) -> bool {
        self.all().next().is_some()
    }

    pub(super) fn has_not_identifying(&self) -> bool {
        self.all().any(|parameter| parameter.is_not_identifying)
    }

    pub(super) fn has_other_values(&self) -> bool {
        self.others.iter().any(|parameter| !parameter.value.is_empty())
    }
}

/// Returns the parameters of the latest execution, and of the execution that is launched again.
fn of_executions(form: &Form, latest: Option<&JobParameters>) -> impl Iterator<Item = Parameter> {
    let mut all: BTreeMap<String, Parameter> = BTreeMap::new();
    for name in form.values.keys() {
        all.insert(name.clone(), Parameter::named(name));
    }
    for (name, one) in latest.into_iter().flat_map(JobParameters::iter) {
        let Some(kind) = field_type(name, &one.value).filter(|_| !name.starts_with("batch.")) else {
            continue;
        };
        let parameter = Parameter {
            last: shown_default(name, &one.value.to_text()),
            kind: kind.clone(),
            value_type: kind,
            is_not_identifying: !one.identifying,
            ..Parameter::named(name)
        };
        all.insert(name.to_owned(), parameter);
    }
    all.into_values()
}

/// Returns the parameters that a job declares: first its own properties, the names that the Job XML refers to and the properties of
/// the program's artifacts, then the properties of ready-made artifacts.
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
    } else if let Ok(names) = definitions.parameter_names(job) {
        // It is valid only with parameters, whose types and defaults are not known without them.
        names.iter().for_each(|name| found.name(name));
    }
    found.into_fields()
}

/// The declared parameters, in the order of discovery.
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
            let is_own = !artifact.types.iter().any(ArtifactType::is_ready_made);
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
            kind: kind.unwrap_or_default(),
            default: shown_default(&property.name, default),
            is_required,
            ..Parameter::named(&property.name)
        };
        self.places.insert(property.name.clone(), self.fields.len());
        self.fields.push((field, is_main || is_required));
    }

    fn name(&mut self, name: &str) {
        if !self.places.contains_key(name) && !name.starts_with("batch.") {
            self.places.insert(name.to_owned(), self.fields.len());
            self.fields.push((Parameter::named(name), true));
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
