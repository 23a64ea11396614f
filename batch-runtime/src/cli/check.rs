//! `check`: jobs against their artifacts; nothing is started and no repository is opened.

use batch_xml::suggest::nearest;
use batch_xml::{Diagnostic, Severity, Span};
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
            let unreadable = found.unreadable.into_iter();
            findings.extend(unreadable.map(|directory| Finding::about_path(Remark::plain(directory))));
            findings.extend(found.broken.into_iter().map(|errors| Finding {
                omitted: errors.omitted(),
                remarks: errors.into_iter().map(Remark::Diagnostic).collect(),
                ..Finding::default()
            }));
            let misspelt = found
                .foreign
                .iter()
                .filter_map(|(file, root)| misspelt_root(file, root));
            findings.extend(misspelt.map(Finding::about_path));
            if found.jobs.is_empty() {
                let nothing = Remark::plain("the job path holds no job".into());
                findings.push(Finding::about_path(nothing));
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

/// What is said about one job, or about something of the job path.
#[derive(Default)]
struct Finding {
    /// The job; `None` for what concerns the job path.
    job: Option<String>,
    right: bool,
    remarks: Vec<Remark>,
    /// How many further diagnostics were not kept.
    omitted: usize,
}

enum Remark {
    Diagnostic(Diagnostic),
    /// What is wrong with no single place of a Job XML.
    Plain {
        message: String,
        file: Option<String>,
        help: Option<String>,
    },
}

impl Remark {
    fn plain(message: String) -> Self {
        Self::Plain {
            message,
            file: None,
            help: None,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Diagnostic(diagnostic) => diagnostic.to_string(),
            Self::Plain { message, help, .. } => {
                let help = help.as_ref().map(|help| format!("; {help}"));
                format!("error: {message}{}", help.unwrap_or_default())
            }
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Diagnostic(diagnostic) => {
                let severity = match diagnostic.severity {
                    Severity::Error => "error",
                    Severity::Warning => "warning",
                };
                let mut value = place(&diagnostic.span);
                value["code"] = json!(diagnostic.code);
                value["severity"] = json!(severity);
                value["message"] = json!(diagnostic.message);
                value["label"] = json!(diagnostic.label);
                value["help"] = json!(diagnostic.help);
                let related = diagnostic.related.iter().map(|(span, message)| {
                    let mut value = place(span);
                    value["message"] = json!(message);
                    value
                });
                value["related"] = related.collect();
                value
            }
            Self::Plain { message, file, help } => json!({
                "code": null,
                "severity": "error",
                "message": message,
                "file": file,
                "line": null,
                "column": null,
                "endLine": null,
                "endColumn": null,
                "label": "",
                "help": help,
                "related": [],
            }),
        }
    }
}

/// From the first character to the one behind the last, lines and columns counted from 1.
fn place(span: &Span) -> Value {
    let (source, range) = (span.source(), span.range());
    let (line, column) = source.line_column(range.start);
    let (end_line, end_column) = source.line_column(range.end);
    json!({
        "file": source.name(),
        "line": line,
        "column": column,
        "endLine": end_line,
        "endColumn": end_column,
    })
}

impl Finding {
    fn about_path(remark: Remark) -> Self {
        Self {
            remarks: vec![remark],
            ..Self::default()
        }
    }

    fn report(&self) -> String {
        let mut texts: Vec<String> = self.remarks.iter().map(Remark::text).collect();
        if self.omitted > 0 {
            texts.push(format!("… and {} more", self.omitted));
        }
        texts.join("\n\n")
    }

    fn print(&self) {
        let report = self.report();
        if !report.is_empty() {
            err(format_args!("{report}\n"));
        }
        if let Some(job) = &self.job {
            out(format_args!(
                "{job}: {}",
                if self.right { "right" } else { "wrong" }
            ));
        }
    }

    fn to_json(&self) -> Value {
        let diagnostics: Vec<Value> = self.remarks.iter().map(Remark::to_json).collect();
        json!({
            "job": self.job,
            "right": self.right,
            "report": self.report(),
            "diagnostics": diagnostics,
            "omitted": self.omitted,
        })
    }
}

fn check_job(operator: &JobOperator, job: String, parameters: &JobParameters) -> Finding {
    let (right, omitted, remarks) = match operator.check(&job, parameters.clone()) {
        Ok(warnings) => (true, 0, warnings.into_iter().map(Remark::Diagnostic).collect()),
        Err(JobOperatorError::JobStart {
            cause: StartCause::Definition(errors),
            ..
        }) => {
            let omitted = errors.omitted();
            let remarks = errors.into_iter().map(Remark::Diagnostic).collect();
            (false, omitted, remarks)
        }
        Err(error) => (false, 0, vec![Remark::plain(error.to_string())]),
    };
    Finding {
        job: Some(job),
        right,
        remarks,
        omitted,
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
