//! The check of the jobs of a project against its artifacts: nothing is started and no repository is opened. What is
//! checked, the loader says.

use std::fmt;
use std::io::{self, Write};

use batch_xml::suggest::nearest;
use batch_xml::{Diagnostic, JobXmlErrors, Severity};

use crate::job_path::{JOB_PATH_HELP, ROOTS};
use crate::loader::AT_LEAST_ONCE;
use crate::operator::{Definitions, JobOperatorError, StartCause};
use crate::parameters::JobParameters;

/// What [`BatchRuntimeBuilder::check`](crate::BatchRuntimeBuilder::check) found. Displays as everything that is to be
/// said, one finding below the other.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// What concerns batch.xml and the job path first, then job by job.
    pub findings: Vec<Finding>,
}

/// What was found of one job, or beside the jobs.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Finding {
    /// The id of the job; `None` for what concerns batch.xml or the job path.
    pub job: Option<String>,
    /// Whether it can be started.
    pub right: bool,
    /// Errors and warnings.
    pub remarks: Vec<Remark>,
    /// How many further diagnostics were not kept.
    pub omitted: usize,
}

/// One thing that is to be said.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Remark {
    /// About a place in a file.
    Diagnostic(Box<Diagnostic>),
    /// What is wrong with no single place.
    Plain {
        /// What it is.
        message: String,
        /// The file, if it is one.
        file: Option<String>,
        /// What to do.
        help: Option<String>,
    },
}

impl Remark {
    fn plain(message: impl fmt::Display) -> Self {
        Self::Plain {
            message: message.to_string(),
            file: None,
            help: None,
        }
    }

    /// A warning that can be denied. That a writer writes at least once is no mistake, and nothing may be done about it.
    fn is_deniable(&self) -> bool {
        matches!(self, Self::Diagnostic(one) if one.severity == Severity::Warning && one.code != AT_LEAST_ONCE)
    }

    fn diagnostic(diagnostic: Diagnostic) -> Self {
        Self::Diagnostic(Box::new(diagnostic))
    }
}

impl fmt::Display for Remark {
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
    /// The same with warnings as mistakes: what has one is not right. `ART0009` stays a remark: it says what a writer
    /// does after a crash, and some writers cannot do better.
    #[must_use]
    pub fn deny_warnings(mut self) -> Self {
        for finding in &mut self.findings {
            finding.right &= !finding.remarks.iter().any(Remark::is_deniable);
        }
        self
    }

    /// Whether there are jobs, and all of them and everything around them is right. Warnings are no mistakes, unless
    /// they are [denied](CheckReport::deny_warnings).
    pub fn is_right(&self) -> bool {
        self.findings.iter().all(|finding| finding.right)
    }

    /// Panics with everything that is to be said if not all is right; else prints it, if it is anything.
    #[doc(hidden)]
    #[track_caller]
    pub fn expect_right(&self) {
        let report = self.to_string();
        assert!(self.is_right(), "\n{report}\n");
        if !report.is_empty() {
            // Not by a macro: of those the test harness shows nothing when a test succeeds.
            let _ = writeln!(io::stderr(), "\n{report}\n");
        }
    }

    /// Of definitions that cannot even be read.
    pub(crate) fn broken(errors: JobXmlErrors) -> Self {
        Self {
            findings: vec![Finding::of_errors(errors)],
        }
    }

    /// Checks one job, or all of the job path.
    pub(crate) fn of(definitions: &Definitions, job: Option<&str>, parameters: &JobParameters) -> Self {
        let mut findings = Vec::new();
        let strange = &definitions.artifacts.warnings;
        if !strange.is_empty() {
            findings.push(Finding {
                right: true,
                remarks: strange.iter().cloned().map(Remark::diagnostic).collect(),
                ..Finding::default()
            });
        }
        let jobs = match job {
            Some(job) => vec![job.to_owned()],
            None => {
                let found = definitions.job_path();
                let no_job = found.jobs.is_empty().then(|| found.no_job());
                let unreadable = found.unreadable.into_iter();
                findings.extend(unreadable.map(|directory| Finding::about_path(Remark::plain(directory))));
                findings.extend(found.broken.into_iter().map(Finding::of_errors));
                let foreign = found.foreign.iter();
                let misspelt = foreign.filter_map(|(file, root)| misspelt_root(file, root));
                findings.extend(misspelt.map(Finding::about_path));
                // A check that checks nothing is not green.
                findings.extend(no_job.map(|message| {
                    Finding::about_path(Remark::Plain {
                        message,
                        file: None,
                        help: Some(JOB_PATH_HELP.into()),
                    })
                }));
                found.jobs.into_iter().collect()
            }
        };
        let checked = jobs
            .into_iter()
            .map(|job| check_job(definitions, job, parameters));
        findings.extend(checked);
        Self { findings }
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reports = self.findings.iter().map(Finding::report);
        let reports: Vec<String> = reports.filter(|report| !report.is_empty()).collect();
        f.write_str(&reports.join("\n\n"))
    }
}

impl Finding {
    /// A mistake beside the jobs.
    fn about_path(remark: Remark) -> Self {
        Self {
            remarks: vec![remark],
            ..Self::default()
        }
    }

    fn of_errors(errors: JobXmlErrors) -> Self {
        Self {
            omitted: errors.omitted(),
            remarks: errors.into_iter().map(Remark::diagnostic).collect(),
            ..Self::default()
        }
    }

    /// All remarks with file, line and column; empty where all is well.
    pub fn report(&self) -> String {
        let mut texts: Vec<String> = self.remarks.iter().map(ToString::to_string).collect();
        if self.omitted > 0 {
            texts.push(format!("… and {} more", self.omitted));
        }
        texts.join("\n\n")
    }
}

fn check_job(definitions: &Definitions, job: String, parameters: &JobParameters) -> Finding {
    let job = Some(job);
    match definitions.check(job.as_deref().unwrap_or_default(), parameters) {
        Ok(warnings) => Finding {
            job,
            right: true,
            remarks: warnings.into_iter().map(Remark::diagnostic).collect(),
            omitted: 0,
        },
        Err(JobOperatorError::JobStart {
            cause: StartCause::Definition(errors),
            ..
        }) => Finding {
            job,
            ..Finding::of_errors(errors)
        },
        Err(error) => Finding {
            job,
            ..Finding::about_path(Remark::plain(error))
        },
    }
}

/// A file for something else is none of our business; one whose root is nearly ours probably is.
fn misspelt_root(file: &str, root: &str) -> Option<Remark> {
    let meant = nearest(root, ROOTS)?;
    Some(Remark::Plain {
        message: format!("{file} is passed over: its root element is `{root}`"),
        file: Some(file.to_owned()),
        help: Some(format!("did you mean `{meant}`?")),
    })
}

/// Checks every Job XML of a directory of the crate against the artifacts in the program, and panics with everything that
/// is wrong: one line in a `#[test]` makes wiring mistakes fail the build.
///
/// Checked is what a start checks: the XML itself; that every `ref` names an artifact of the right role; that the item
/// types of reader, processor, writer and listeners fit; that properties have values and that these parse; that exception
/// classes are declared (else a warning). Nothing is run, and no repository is opened.
///
/// The directory is one below the crate's `Cargo.toml`. Job parameters that the jobs need follow as `name = value`; a
/// name with dots is written in quotes. For jobs that need more - several directories, system properties, an artifact
/// loader of the program's own - call [`BatchRuntimeBuilder::check`](crate::BatchRuntimeBuilder::check).
///
/// Warnings are printed to the standard error of the test, and fail nothing. With `deny_warnings` in front they fail it
/// too, but for `ART0009`, see [`CheckReport::deny_warnings`](crate::CheckReport::deny_warnings).
///
/// The artifacts have to be linked into the test: put it into the crate that has them, or name that crate
/// (`use my_artifacts as _;`).
///
/// ```no_run
/// // In the body of a `#[test]`:
/// batch_runtime::check_jobs!("jobs");
/// batch_runtime::check_jobs!("jobs/monthly", month = "1", "report.file" = "report.csv");
/// batch_runtime::check_jobs!(deny_warnings, "jobs");
/// ```
///
/// # Panics
///
/// When a job cannot be started as it is, or when there is no job; with `deny_warnings` also when there is a warning.
#[macro_export]
macro_rules! check_jobs {
    (deny_warnings, $directory:literal $(, $name:tt = $value:expr)* $(,)?) => {
        $crate::__check!($directory $(, $name = $value)*).deny_warnings().expect_right()
    };
    ($directory:literal $(, $name:tt = $value:expr)* $(,)?) => {
        $crate::__check!($directory $(, $name = $value)*).expect_right()
    };
}

/// What `check_jobs!` has found.
#[doc(hidden)]
#[macro_export]
macro_rules! __check {
    ($directory:literal $(, $name:tt = $value:expr)*) => {
        $crate::BatchRuntime::builder()
            .job_path(::std::concat!(::std::env!("CARGO_MANIFEST_DIR"), "/", $directory))
            .check($crate::JobParameters::new()$(.with($crate::__parameter_name!($name), $value))*)
    };
}

/// The name of a parameter of `check_jobs!`: an identifier, or text in quotes.
#[doc(hidden)]
#[macro_export]
macro_rules! __parameter_name {
    ($name:ident) => {
        ::std::stringify!($name)
    };
    ($name:literal) => {
        $name
    };
}
