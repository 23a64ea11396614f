//! `check`: jobs against their artifacts; nothing is started and no repository is opened.

use batch_xml::suggest::nearest;
use serde_json::{Value, json};

use super::output::print_json;
use super::print::{err, out};
use crate::job_path::ROOTS;
use crate::operator::{JobOperator, JobOperatorError, StartCause};
use crate::parameters::JobParameters;

/// Checks one job, or all of the job path. Returns whether there is something, and all of it is right.
pub(super) fn run(operator: &JobOperator, job: Option<&str>, parameters: &JobParameters, json: bool) -> bool {
    let mut findings = Vec::new();
    let jobs = match job {
        Some(job) => vec![job.to_owned()],
        None => {
            let found = operator.job_path();
            findings.extend(
                found
                    .unreadable
                    .into_iter()
                    .map(|directory| Finding::about_path(false, directory)),
            );
            findings.extend(
                found
                    .broken
                    .into_iter()
                    .map(|report| Finding::about_path(false, report)),
            );
            findings.extend(
                found
                    .foreign
                    .iter()
                    .filter_map(|(file, root)| misspelt_root(file, root)),
            );
            if found.jobs.is_empty() {
                findings.push(Finding::about_path(false, "the job path holds no job".into()));
            }
            found.jobs.into_iter().collect()
        }
    };
    findings.extend(jobs.into_iter().map(|job| check_job(operator, job, parameters)));
    let right = findings.iter().all(|finding| finding.right);
    if json {
        print_json(&findings.iter().map(Finding::to_json).collect());
    } else {
        findings.iter().for_each(Finding::print);
    }
    right
}

struct Finding {
    /// The job; `None` for what concerns the job path.
    job: Option<String>,
    right: bool,
    report: String,
}

impl Finding {
    fn about_path(right: bool, report: String) -> Self {
        Self {
            job: None,
            right,
            report,
        }
    }

    fn print(&self) {
        if !self.report.is_empty() {
            err(format_args!("{}\n", self.report));
        }
        if let Some(job) = &self.job {
            out(format_args!(
                "{job}: {}",
                if self.right { "right" } else { "wrong" }
            ));
        }
    }

    fn to_json(&self) -> Value {
        json!({ "job": self.job, "right": self.right, "report": self.report })
    }
}

fn check_job(operator: &JobOperator, job: String, parameters: &JobParameters) -> Finding {
    let result = operator.check(&job, parameters.clone());
    let right = result.is_ok();
    let report = match result {
        Ok(warnings) => warnings
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n\n"),
        Err(JobOperatorError::JobStart {
            cause: StartCause::Definition(errors),
            ..
        }) => errors.to_string(),
        Err(error) => format!("error: {error}"),
    };
    Finding {
        job: Some(job),
        right,
        report,
    }
}

/// A file for something else is none of our business; one whose root is nearly ours probably is.
fn misspelt_root(file: &str, root: &str) -> Option<Finding> {
    let meant = nearest(root, ROOTS)?;
    let report = format!("{file} is passed over: its root element is `{root}`; did you mean `{meant}`?");
    Some(Finding::about_path(false, report))
}
