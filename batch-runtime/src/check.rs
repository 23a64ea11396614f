//! The check of the jobs of a project against its artifacts: nothing is started and no repository is opened. What is
//! checked, the loader says.

use std::fmt;

use batch_xml::suggest::nearest;
use batch_xml::{Diagnostic, JobXmlErrors};

use crate::job_path::ROOTS;
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
    /// Whether there are jobs, and all of them and everything around them is right. Warnings are no mistakes.
    pub fn is_right(&self) -> bool {
        self.findings.iter().all(|finding| finding.right)
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
        let jobs = match job {
            Some(job) => vec![job.to_owned()],
            None => {
                let found = definitions.job_path();
                let unreadable = found.unreadable.into_iter();
                findings.extend(unreadable.map(|directory| Finding::about_path(Remark::plain(directory))));
                findings.extend(found.broken.into_iter().map(Finding::of_errors));
                let foreign = found.foreign.iter();
                let misspelt = foreign.filter_map(|(file, root)| misspelt_root(file, root));
                findings.extend(misspelt.map(Finding::about_path));
                // A check that checks nothing is not green.
                if found.jobs.is_empty() {
                    let nothing = Remark::plain("the job path holds no job");
                    findings.push(Finding::about_path(nothing));
                }
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
/// The artifacts have to be linked into the test: put it into the crate that has them, or name that crate
/// (`use my_artifacts as _;`).
///
/// ```no_run
/// // In the body of a `#[test]`:
/// batch_runtime::check_jobs!("jobs");
/// batch_runtime::check_jobs!("jobs/monthly", month = "1", "report.file" = "report.csv");
/// ```
///
/// # Panics
///
/// When a job cannot be started as it is, or when there is no job.
#[macro_export]
macro_rules! check_jobs {
    ($directory:literal $(, $name:tt = $value:expr)* $(,)?) => {{
        let report = $crate::BatchRuntime::builder()
            .job_path(::std::concat!(::std::env!("CARGO_MANIFEST_DIR"), "/", $directory))
            .check($crate::JobParameters::new()$(.with($crate::__parameter_name!($name), $value))*);
        ::std::assert!(report.is_right(), "\n{report}\n");
    }};
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
