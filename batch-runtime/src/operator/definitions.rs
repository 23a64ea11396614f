//! The jobs of the job path and the artifacts they can use. Knows no repository.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use batch_xml::model::Job;
use batch_xml::suggest::nearest;
use batch_xml::{Diagnostic, Document, Effective, JobXmlErrors, Resolved, Unresolved, Values};

use super::artifact_list::ArtifactDescription;
use super::{JobOperatorError, Result, StartError};
use crate::dispatch::Dispatchers;
use crate::execution::JobExecution;
use crate::exit_codes::{EXIT_CODES, ExitCodes};
use crate::job_path::{JOB_PATH_HELP, JobPath, JobPathReport, Lookup, contains_id};
use crate::loader::{Artifacts, BindOutcome, ExternalValues, may_be_mistake};
use crate::parameters::JobParameters;
use crate::repository::RepositoryLayout;
use crate::secret::Secrets;

/// The jobs on the job path and the artifacts they can use, without a repository.
///
/// Made by [`BatchRuntimeBuilder::definitions`](crate::BatchRuntimeBuilder::definitions), or borrowed from an operator by
/// [`JobOperator::definitions`](crate::JobOperator::definitions).
///
/// ```
/// use batch_runtime::{BatchRuntime, JobParameters, xml::graph::JobGraph};
///
/// # let folder = tempfile::tempdir()?;
/// # std::fs::write(folder.path().join("daily.xml"), r#"<job id="daily"><step id="one"><batchlet ref="A"/></step></job>"#)?;
/// # let jobs = folder.path().display().to_string();
/// let definitions = BatchRuntime::builder().job_path(jobs).definitions()?;
/// let job = definitions.effective_job("daily", &JobParameters::new())?;
/// assert!(JobGraph::new(&job).to_mermaid().starts_with("flowchart"));
/// let explanation = definitions.explain("daily", &JobParameters::new())?;
/// assert_eq!(explanation.job.elements[0].artifacts[0].name, "A");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Definitions {
    pub(crate) job_path: JobPath,
    pub(crate) artifacts: Arc<Artifacts>,
    pub(crate) system: Arc<BTreeMap<String, String>>,
    /// The names of the databases beside the repository; `None` if they are not known.
    pub(crate) databases: Option<Arc<BTreeSet<String>>>,
    /// Whether the repository keeps nothing after the process.
    pub(crate) in_memory: bool,
}

/// How a job is looked up.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// By its id.
    Id(&'a str),
    /// By the name of its file.
    File(&'a str),
    /// By its id; if several files have a job with this id, in the file that an execution has recorded.
    Recorded { job: &'a str, file: Option<&'a str> },
}

impl<'a> Wanted<'a> {
    /// Returns the job of an execution.
    pub(super) fn of(execution: &'a JobExecution) -> Self {
        Self::Recorded {
            job: &execution.job_name,
            file: execution.configuration_location.as_deref(),
        }
    }

    pub(super) fn name(self) -> &'a str {
        match self {
            Self::Id(name) | Self::File(name) | Self::Recorded { job: name, .. } => name,
        }
    }
}

/// A job that passed all checks.
pub(super) struct Checked {
    pub(super) document: Arc<Document>,
    pub(super) bound: BindOutcome,
    /// Warnings about the XML alone.
    warnings: Vec<Diagnostic>,
}

/// The most warnings of a job that its launch logs.
const LOGGED_WARNINGS: usize = 3;

impl Checked {
    /// Logs the first warnings: they are often mistakes that change what the job does.
    pub(super) fn log_warnings(&self) {
        let warnings = self.warnings.iter().chain(&self.bound.warnings);
        let mistakes: Vec<_> = warnings.filter(|warning| may_be_mistake(warning)).collect();
        let (job, all) = (&self.document.id().value, mistakes.len());
        for (index, warning) in mistakes.into_iter().take(LOGGED_WARNINGS).enumerate() {
            let help = warning.help.as_ref().map(|help| format!("; {help}"));
            let more = match all.saturating_sub(LOGGED_WARNINGS) {
                more if more > 0 && index + 1 == LOGGED_WARNINGS => {
                    format!(" (`check {job}` shows {more} more)")
                }
                _ => String::new(),
            };
            tracing::warn!(
                code = warning.code,
                "{}: {}{}{more}",
                warning.span,
                warning.message,
                help.unwrap_or_default()
            );
        }
    }
}

impl Definitions {
    /// Reads the job path again and returns what is there.
    pub fn job_path(&self) -> JobPathReport {
        self.job_path.look_for_new_files();
        self.job_path.report()
    }

    /// Returns the artifacts that a job file can name, ordered by name.
    pub fn artifacts(&self) -> Vec<ArtifactDescription> {
        ArtifactDescription::all(self.artifacts.registered())
    }

    /// Logs the problems of batch.xml and of the job path, which a check reports.
    pub(crate) fn log_problems(&self) {
        for warning in &self.artifacts.warnings {
            tracing::warn!("{warning}");
        }
        self.job_path.log_problems();
        self.job_path.log_replaced();
    }

    /// Checks a job as its start does, and returns the warnings.
    ///
    /// # Errors
    /// As [`JobOperator::start`](crate::JobOperator::start).
    pub fn check(&self, job: &str, parameters: &JobParameters) -> Result<Vec<Diagnostic>> {
        let reject = rejecting(job);
        // The limits of the repository are checked when the job is started.
        parameters
            .validate(None)
            .map_err(|error| reject(StartError::Parameter(error)))?;
        let secrets = Secrets::unread(parameters.secrets());
        let mut checked = self.bind(Wanted::Id(job), parameters, parameters, secrets, &reject)?;
        self.check_nested(&mut checked, &reject)?;
        let mut warnings = checked.warnings;
        warnings.extend(checked.bound.warnings);
        Ok(warnings)
    }

    /// Checks everything of a start that needs no repository. `layout` is the layout of a new repository, `dispatchers` are the dispatchers
    /// of the runtime.
    pub(crate) fn check_start(
        &self,
        wanted: Wanted<'_>,
        parameters: &JobParameters,
        layout: RepositoryLayout,
        dispatchers: &Dispatchers,
    ) -> Result<()> {
        let reject = rejecting(wanted.name());
        parameters
            .validate_for_launch(layout)
            .map_err(|error| reject(StartError::Parameter(error)))?;
        let secrets = Secrets::read_but_pipes(parameters.secrets())
            .map_err(|error| reject(StartError::Secret(error)))?;
        let mut checked = self.bind(wanted, parameters, parameters, secrets, &reject)?;
        self.check_nested(&mut checked, &reject)?;
        for partition in checked.bound.job.elements.partitions() {
            find_dispatcher(dispatchers, partition.dispatcher.as_deref()).map_err(&reject)?;
        }
        Ok(())
    }

    /// Finds, substitutes, validates and binds a job. `given` are the parameters whose names are checked, `effective` those
    /// that are used, `secrets` the values of the secret ones.
    // Spec: JSL-DOC-13, RESTART-03
    pub(super) fn bind(
        &self,
        wanted: Wanted<'_>,
        given: &JobParameters,
        effective: &JobParameters,
        secrets: Secrets,
        reject: &dyn Fn(StartError) -> JobOperatorError,
    ) -> Result<Checked> {
        let document = self.find(wanted, reject)?;
        let (bound, warnings) = self
            .bind_document(&document, self.external_values(effective, secrets))
            .map_err(|errors| reject(StartError::Definition(errors)))?;
        check_names(given, &bound.parameter_names).map_err(reject)?;
        Ok(Checked {
            document,
            bound,
            warnings,
        })
    }

    /// Returns a job as it would run with these parameters: inherited, substituted and validated, but bound to no artifact.
    ///
    /// # Errors
    /// `NoSuchJob`, or `JobStart` with everything that is wrong with the job's definition or parameters.
    pub fn effective_job(&self, job: &str, parameters: &JobParameters) -> Result<Job> {
        self.resolve(Wanted::Id(job), parameters)
            .map(|(resolved, _)| resolved.job)
    }

    /// Returns the document of a job with everything it inherits, before substitution. Its text needs no other files.
    ///
    /// # Errors
    /// As [`effective_job`](Self::effective_job).
    pub fn effective_document(&self, job: &str, parameters: &JobParameters) -> Result<Effective> {
        self.resolve(Wanted::Id(job), parameters)
            .map(|(resolved, _)| resolved.effective)
    }

    /// Returns the names of job parameters that have an effect on the values of a job's document. Unlike [`Job::parameter_names`], this
    /// also works for a job that is valid only with parameters.
    ///
    /// # Errors
    /// `NoSuchJob`, or `JobStart` if several files define the job, or its file cannot be read.
    // Spec: CON-09
    pub fn parameter_names(&self, job: &str) -> Result<BTreeSet<String>> {
        let document = self.find(Wanted::Id(job), &rejecting(job))?;
        let none = JobParameters::new();
        let external = self.external_values(&none, Secrets::unread(none.secrets()));
        let part = match self.resolved(&document, &external) {
            Ok(resolved) => Some(resolved.job),
            Err(unresolved) => unresolved.part.map(|part| *part),
        };
        let names = part.iter().flat_map(Job::parameter_names);
        Ok(names.cloned().collect())
    }

    /// As `effective_job`, with the values from outside the Job XML.
    pub(super) fn resolve(
        &self,
        wanted: Wanted<'_>,
        parameters: &JobParameters,
    ) -> Result<(Resolved, ExternalValues)> {
        let reject = rejecting(wanted.name());
        // The limits of the repository are checked when the job is started.
        parameters
            .validate(None)
            .map_err(|error| reject(StartError::Parameter(error)))?;
        let document = self.find(wanted, &reject)?;
        let external = self.external_values(parameters, Secrets::unread(parameters.secrets()));
        match self.resolved(&document, &external) {
            Ok(resolved) => Ok((resolved, external)),
            Err(unresolved) => Err(reject(StartError::Definition(unresolved.errors))),
        }
    }

    /// The exit codes that the job maps its exit statuses to, with the parameters of an execution; none if the job no longer
    /// exists or is no longer valid.
    pub(super) fn exit_codes(&self, ended: &JobExecution, parameters: &JobParameters) -> ExitCodes {
        let resolved = self.resolve(Wanted::of(ended), parameters).ok();
        let mapping = resolved.and_then(|(resolved, external)| {
            let properties = resolved.job.properties.iter();
            let mut mappings = properties.filter(|property| property.name.value == EXIT_CODES);
            let of_job = mappings.next().map(|property| &property.value.value);
            let mapping = match of_job {
                Some(of_job) => of_job.as_str(),
                None => external.get(EXIT_CODES)?,
            };
            mapping.parse().ok()
        });
        mapping.unwrap_or_default()
    }

    /// Reports whether a failed or stopped execution of the job can be restarted, as far as the job's definition is known
    /// without parameters: `false` for a job that is not restartable or no longer exists.
    pub fn is_restartable(&self, job: &str) -> bool {
        let resolved = self.resolve(Wanted::Id(job), &JobParameters::new());
        !matches!(&resolved, Ok((resolved, _)) if !resolved.job.restartable)
            && !matches!(resolved, Err(JobOperatorError::NoSuchJob { .. }))
    }

    pub(super) fn find(
        &self,
        wanted: Wanted<'_>,
        reject: &dyn Fn(StartError) -> JobOperatorError,
    ) -> Result<Arc<Document>> {
        self.job_path.look_for_new_files();
        let found = match wanted {
            Wanted::Id(job) => self.job_path.find(job, None),
            Wanted::Recorded { job, file } => self.job_path.find(job, file),
            Wanted::File(file) => self.job_path.find_file(file),
        };
        match found {
            Lookup::Found(document) => Ok(document),
            Lookup::Broken(errors) => Err(reject(StartError::Definition(JobXmlErrors::clone(&errors)))),
            Lookup::Duplicate(files) if matches!(wanted, Wanted::File(_)) => {
                Err(reject(StartError::DuplicateFile(files)))
            }
            Lookup::Duplicate(files) => Err(reject(StartError::DuplicateId(files))),
            Lookup::Unknown { known, broken } => Err(JobOperatorError::NoSuchJob {
                job: wanted.name().to_owned(),
                help: self.unknown_job_help(wanted, &known, &broken),
            }),
        }
    }

    fn unknown_job_help(
        &self,
        wanted: Wanted<'_>,
        known: &BTreeSet<String>,
        broken: &[Arc<JobXmlErrors>],
    ) -> String {
        let (job, hint) = named_by_path(wanted);
        let (likely, others): (Vec<_>, Vec<_>) = broken.iter().partition(|errors| contains_id(errors, job));
        let same = known.get(job).map(String::as_str);
        let list = match same.or_else(|| nearest(job, known.iter().map(String::as_str))) {
            Some(near) => format!("; did you mean `{near}`?"),
            None if !likely.is_empty() => String::new(),
            None if known.is_empty() && !others.is_empty() => "; no file of the job path is valid".into(),
            None if known.is_empty() => format!("; {}; {JOB_PATH_HELP}", self.job_path.report().no_job()),
            None => format!("; {} {}", self.job_path.list_intro(), quoted(known)),
        };
        let likely = likely
            .iter()
            .map(|errors| ("a file that may define it is not valid", errors));
        let others = others
            .iter()
            .map(|errors| ("cannot read a file of the job path", errors));
        let broken = likely.chain(others);
        let shown: String = broken
            .map(|(intro, errors)| format!("\n{intro}:\n{errors}"))
            .collect();
        format!("{hint}{list}{shown}")
    }

    fn bind_document(
        &self,
        document: &Document,
        external: ExternalValues,
    ) -> std::result::Result<(BindOutcome, Vec<Diagnostic>), JobXmlErrors> {
        match self.resolved(document, &external) {
            Ok(resolved) => match self.artifacts.bind(&resolved, external, self.job_path.limits()) {
                Ok(bound) => Ok((bound, resolved.warnings)),
                Err(mut errors) => {
                    errors.extend(resolved.warnings);
                    Err(errors)
                }
            },
            Err(Unresolved { mut errors, part, .. }) => {
                let part = part.as_deref();
                errors.extend(part.map_or(Vec::new(), |job| self.artifacts.check_part(job, external)));
                Err(errors)
            }
        }
    }

    pub(super) fn external_values(&self, parameters: &JobParameters, secrets: Secrets) -> ExternalValues {
        ExternalValues {
            parameters: Arc::new(parameters.clone().without_run_id().as_text()),
            system: Arc::clone(&self.system),
            secrets,
            databases: self.databases.clone(),
        }
    }

    pub(super) fn resolved(
        &self,
        document: &Document,
        external: &ExternalValues,
    ) -> std::result::Result<Resolved, Unresolved> {
        let values = Values {
            parameters: &external.parameters,
            system: &external.system,
        };
        batch_xml::resolve_or_part(document, &self.job_path, &values, self.job_path.limits())
    }
}

/// Returns the name of the dispatcher of an element that names this one, or none.
pub(super) fn find_dispatcher<'a>(
    dispatchers: &'a Dispatchers,
    wanted: Option<&'a str>,
) -> std::result::Result<&'a str, StartError> {
    let name = dispatchers.name(wanted);
    let known = dispatchers.names();
    match known.contains(&name) {
        true => Ok(name),
        false => Err(StartError::UnknownDispatcher {
            name: name.to_owned(),
            known: known.into_iter().map(str::to_owned).collect(),
        }),
    }
}

/// Returns a constructor of errors for a job that cannot be started.
pub(super) fn rejecting(job: &str) -> impl Fn(StartError) -> JobOperatorError {
    move |cause| JobOperatorError::JobStart {
        job: job.to_owned(),
        cause,
    }
}

/// Minimum length for suggestions: shorter names are near too many others, such as `date` and `data`, or `long` and `log`.
const SHORTEST_TYPING_MISTAKE: usize = 5;

/// Accepts an unknown parameter, which may only identify the instance, unless its name nearly matches a known one. A short
/// name is accepted with a warning.
fn check_names(given: &JobParameters, known: &BTreeSet<String>) -> std::result::Result<(), StartError> {
    for (name, parameter) in given.iter().filter(|(name, _)| !known.contains(*name)) {
        let Some(nearest) = nearest(name, known.iter().map(String::as_str)) else {
            if !parameter.identifying {
                tracing::warn!(
                    "parameter `{name}` has no effect: the job does not use it, and it does not identify the instance; remove it"
                );
            }
            continue;
        };
        if name.chars().count() >= SHORTEST_TYPING_MISTAKE {
            return Err(StartError::UnknownParameter {
                name: name.to_owned(),
                nearest: nearest.to_owned(),
            });
        }
        tracing::warn!(
            "the job uses no parameter `{name}`, so it only identifies the instance; did you mean `{nearest}`?"
        );
    }
    Ok(())
}

fn quoted(names: &BTreeSet<String>) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Returns what the user may have meant by the path of a file: the name without folder and extension, and how to write it.
fn named_by_path(wanted: Wanted<'_>) -> (&str, &'static str) {
    let name = wanted.name();
    let has_folder = name.contains(['/', '\\']);
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let stem = file.strip_suffix(".xml").unwrap_or(file);
    match wanted {
        Wanted::Id(_) if has_folder || stem != file => (stem, "; give the id of the job, not its file"),
        Wanted::File(_) if has_folder => (stem, "; give the name of its file, without the folder"),
        Wanted::File(_) => (stem, ""),
        _ => (name, ""),
    }
}
