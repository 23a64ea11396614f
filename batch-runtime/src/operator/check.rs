//! Checks the jobs of a project against its artifacts. Starts nothing and opens no repository.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write};

use batch_xml::suggest::nearest;
use batch_xml::{Diagnostic, JobXmlErrors};

use super::nested::RUNS_ITSELF;
use super::{Definitions, Guarantee, JobExplanation, JobOperatorError, StartError};
use crate::job_path::{JOB_PATH_HELP, ROOTS};
use crate::loader::may_be_mistake;
use crate::parameters::JobParameters;

/// The result of [`BatchRuntimeBuilder::check`](crate::BatchRuntimeBuilder::check). Displays all problems, job by job.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// The checks of batch.xml and of the job path first, then one for each job.
    pub checks: Vec<JobCheck>,
}

/// The check of one job, or of batch.xml or the job path.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct JobCheck {
    /// The id of the job; `None` for batch.xml and the job path.
    pub job: Option<String>,
    /// True if the job can be started.
    pub is_ok: bool,
    /// Errors and warnings. A cycle of jobs that would run themselves is only with the first of the jobs that cannot be started for it.
    pub problems: Vec<Problem>,
    /// The number of further diagnostics that were dropped.
    pub omitted: usize,
    /// The ids of the steps of a job that can be started, with what a crash does to their items.
    // Spec: MARK-14
    pub guarantees: Vec<(String, Guarantee)>,
}

/// An error or a warning.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Problem {
    /// A problem at a place in a file.
    Diagnostic(Box<Diagnostic>),
    /// An error without a single place.
    Plain {
        /// The message.
        message: String,
        /// The file that it concerns, if any.
        file: Option<String>,
        /// The remedy.
        help: Option<String>,
    },
}

impl Problem {
    fn plain(message: impl fmt::Display) -> Self {
        Self::Plain {
            message: message.to_string(),
            file: None,
            help: None,
        }
    }

    /// Returns whether it is a warning that can be denied: some destinations have no position.
    fn is_deniable(&self) -> bool {
        matches!(self, Self::Diagnostic(one) if may_be_mistake(one))
    }

    fn diagnostic(diagnostic: Diagnostic) -> Self {
        Self::Diagnostic(Box::new(diagnostic))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Diagnostic(diagnostic) => diagnostic.fmt(f),
            Self::Plain { message, help, .. } => {
                let help = help.as_ref().map(|help| format!("; {help}"));
                write!(f, "error: {message}{}", help.unwrap_or_default())
            }
        }
    }
}

impl CheckReport {
    /// Treats warnings as errors. `ART0009` stays a warning: it reports that a writer cannot know where its output ended,
    /// which some destinations do not report.
    #[must_use]
    pub fn deny_warnings(mut self) -> Self {
        for check in &mut self.checks {
            check.is_ok &= !check.problems.iter().any(Problem::is_deniable);
        }
        self
    }

    /// Reports whether there are jobs and all checks passed. Warnings do not count, unless they are
    /// [denied](CheckReport::deny_warnings).
    pub fn is_ok(&self) -> bool {
        self.checks.iter().all(|check| check.is_ok)
    }

    /// Prints the warnings to the standard error, also of a test that passes.
    ///
    /// # Panics
    /// With all problems, when a check failed.
    #[track_caller]
    pub fn assert_ok(&self) {
        let report = self.to_string();
        assert!(self.is_ok(), "\n{report}\n");
        if !report.is_empty() {
            // The test harness captures what macros print.
            let _ = writeln!(io::stderr(), "\n{report}\n");
        }
    }

    /// The report of definitions that cannot be read.
    pub(crate) fn broken(errors: JobXmlErrors) -> Self {
        Self {
            checks: vec![JobCheck::of_errors(errors)],
        }
    }

    /// Adds an error that belongs to no job, before the others.
    pub(crate) fn and_failed(mut self, message: String) -> Self {
        self.checks.insert(0, JobCheck::failed(Problem::plain(message)));
        self
    }

    /// Checks one job, or all of the job path.
    pub(crate) fn of(definitions: &Definitions, job: Option<&str>, parameters: &JobParameters) -> Self {
        let mut checks = Vec::new();
        definitions.job_path.log_replaced();
        let warnings = &definitions.artifacts.warnings;
        if !warnings.is_empty() {
            checks.push(JobCheck {
                is_ok: true,
                problems: warnings.iter().cloned().map(Problem::diagnostic).collect(),
                ..JobCheck::default()
            });
        }
        let jobs = match job {
            Some(job) => vec![job.to_owned()],
            None => {
                let found = definitions.job_path();
                let no_job = (found.jobs.is_empty() && found.broken.is_empty()).then(|| found.no_job());
                let unreadable = found.unreadable.into_iter();
                checks.extend(unreadable.map(|directory| JobCheck::failed(Problem::plain(directory))));
                checks.extend(found.broken.into_iter().map(JobCheck::of_errors));
                let other_roots = found.other_roots.iter();
                let misspelt = other_roots.filter_map(|(file, root)| misspelt_root(file, root));
                checks.extend(misspelt.map(JobCheck::failed));
                // A check without jobs must not pass.
                checks.extend(no_job.map(|message| {
                    JobCheck::failed(Problem::Plain {
                        message,
                        file: None,
                        help: Some(JOB_PATH_HELP.into()),
                    })
                }));
                found.jobs.into_iter().collect()
            }
        };
        let mut cycles = HashSet::new();
        let checked = jobs.into_iter().map(|job| {
            let mut check = check_job(definitions, job, parameters);
            check.problems.retain(|problem| match problem {
                Problem::Diagnostic(one) if one.code == RUNS_ITSELF => {
                    cycles.insert((one.span.to_string(), one.message.clone()))
                }
                _ => true,
            });
            check
        });
        checks.extend(checked);
        Self { checks }
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reports = self.checks.iter().map(JobCheck::report);
        let reports: Vec<String> = reports.filter(|report| !report.is_empty()).collect();
        f.write_str(&reports.join("\n\n"))
    }
}

impl JobCheck {
    fn failed(problem: Problem) -> Self {
        Self {
            problems: vec![problem],
            ..Self::default()
        }
    }

    fn of_errors(errors: JobXmlErrors) -> Self {
        Self {
            omitted: errors.omitted(),
            problems: errors.into_iter().map(Problem::diagnostic).collect(),
            ..Self::default()
        }
    }

    /// Returns all problems with file, line and column; empty if there are none.
    pub fn report(&self) -> String {
        let mut texts: Vec<String> = self.problems.iter().map(ToString::to_string).collect();
        if self.omitted > 0 {
            texts.push(format!("… and {} more", self.omitted));
        }
        texts.join("\n\n")
    }
}

fn check_job(definitions: &Definitions, job: String, parameters: &JobParameters) -> JobCheck {
    let job = Some(job);
    match definitions.check(job.as_deref().unwrap_or_default(), parameters) {
        Ok(warnings) => JobCheck {
            is_ok: true,
            problems: warnings.into_iter().map(Problem::diagnostic).collect(),
            omitted: 0,
            guarantees: guarantees(definitions, job.as_deref().unwrap_or_default(), parameters),
            job,
        },
        Err(JobOperatorError::JobStart {
            cause: StartError::Definition(errors),
            ..
        }) => JobCheck {
            job,
            ..JobCheck::of_errors(errors)
        },
        Err(error) => JobCheck {
            job,
            ..JobCheck::failed(Problem::plain(error))
        },
    }
}

fn guarantees(definitions: &Definitions, job: &str, parameters: &JobParameters) -> Vec<(String, Guarantee)> {
    let explained = definitions.explain(job, parameters).ok();
    let guarantees = explained.iter().flat_map(JobExplanation::guarantees);
    guarantees
        .map(|(step, guarantee)| (step.to_owned(), guarantee.clone()))
        .collect()
}

/// XML files of other programs are ignored; one whose root nearly matches is probably a misspelt job.
fn misspelt_root(file: &str, root: &str) -> Option<Problem> {
    let meant = nearest(root, ROOTS)?;
    Some(Problem::Plain {
        message: format!("ignored {file}: its root element is `{root}`"),
        file: Some(file.to_owned()),
        help: Some(format!("did you mean `{meant}`?")),
    })
}
