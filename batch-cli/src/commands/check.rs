//! `check`: jobs against their artifacts.

use std::process::ExitCode;

use batch_runtime::operator::{Guarantee, JobCheck, Problem};
use batch_runtime::xml::{Severity, Span};
use clap::Args;
use serde_json::{Value, json as value};

use crate::databases;
use crate::error::{CliError, USAGE};
use crate::json;
use crate::notify;
use crate::parameters::Parameters;
use crate::print::{errln, outln};
use crate::session::{Outcome, Session};

/// Checks jobs against their artifacts, and starts nothing
#[derive(Args, Debug)]
pub(crate) struct Check {
    /// Id of the job [default: all jobs]
    job: Option<String>,
    #[command(flatten)]
    parameters: Parameters,
    /// Treats warnings as errors, except ART0009: a writer cannot know where its output ended
    #[arg(long)]
    deny_warnings: bool,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let parameters = self.parameters.into_parameters()?;
        let runtime = notify::queue(session.runtime(), &session.settings.targets);
        let runtime = databases::only_names(runtime, &session.settings.databases);
        let mut report = match self.job {
            Some(job) => runtime.check_job(&job, parameters),
            None => runtime.check(parameters),
        };
        if self.deny_warnings {
            report = report.deny_warnings();
        }
        let targets = CheckOfTargets::of(session, self.deny_warnings)?;
        if self.json {
            let targets = targets.to_json().into_iter();
            json::print(&targets.chain(report.checks.iter().map(to_json)).collect());
        } else {
            targets.print();
            report.checks.iter().for_each(print_check);
        }
        let is_ok = targets.is_ok && report.is_ok();
        Ok(ExitCode::from(if is_ok { 0 } else { USAGE }))
    }
}

/// The check of the notification targets in the settings.
struct CheckOfTargets {
    is_ok: bool,
    /// Messages with their severities.
    problems: Vec<(&'static str, String)>,
}

impl CheckOfTargets {
    /// Checks what the commands that run jobs check.
    ///
    /// # Errors
    /// When that cannot be checked.
    fn of(session: &Session, deny_warnings: bool) -> Result<Self, CliError> {
        let errors = match notify::add(session.runtime(), &session.settings.targets) {
            Ok(_) => Vec::new(),
            Err(CliError::Settings(problems)) => problems,
            Err(error) => return Err(error),
        };
        let warnings = session.unknown_notified_jobs();
        let is_ok = errors.is_empty() && (warnings.is_empty() || !deny_warnings);
        let errors = errors.into_iter().map(|message| ("error", message));
        let problems = errors.chain(warnings.into_iter().map(|message| ("warning", message)));
        Ok(Self {
            is_ok,
            problems: problems.collect(),
        })
    }

    fn lines(&self) -> Vec<String> {
        let lines = self.problems.iter();
        lines
            .map(|(severity, message)| format!("{severity}: {message}"))
            .collect()
    }

    fn print(&self) {
        self.lines().iter().for_each(|line| errln!("{line}"));
    }

    /// Returns it in the form of the check of a job; `None` without problems.
    fn to_json(&self) -> Option<Value> {
        let diagnostic = |(severity, message): &(&str, String)| plain(severity, message);
        (!self.problems.is_empty()).then(|| {
            value!({
                "job": null,
                "right": self.is_ok,
                "report": self.lines().join("\n"),
                "diagnostics": self.problems.iter().map(diagnostic).collect::<Value>(),
                "omitted": 0,
            })
        })
    }
}

fn print_check(check: &JobCheck) {
    let report = check.report();
    if !report.is_empty() {
        errln!("{report}\n");
    }
    if let Some(job) = &check.job {
        let result = match check.is_ok {
            true => "ok",
            // It runs jobs that would run themselves, which are reported once.
            false if report.is_empty() => "failed, as reported before",
            false => "failed",
        };
        outln!("{job}: {result}");
        for (step, Guarantee { word, why, .. }) in &check.guarantees {
            outln!("  {step}: {word}: {why}");
        }
    }
}

fn to_json(check: &JobCheck) -> Value {
    let guarantee = |(step, of_step): &(String, Guarantee)| value!({ "step": step, "guarantee": of_step.word, "why": of_step.why });
    value!({
        "guarantees": check.guarantees.iter().map(guarantee).collect::<Value>(),
        "job": check.job,
        "right": check.is_ok,
        "report": check.report(),
        "diagnostics": check.problems.iter().map(problem_to_json).collect::<Value>(),
        "omitted": check.omitted,
    })
}

fn problem_to_json(problem: &Problem) -> Value {
    let mut json = plain("error", &problem.to_string());
    match problem {
        Problem::Diagnostic(diagnostic) => {
            set_place(&mut json, &diagnostic.span);
            json["code"] = value!(diagnostic.code);
            json["severity"] = value!(match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            });
            json["message"] = value!(diagnostic.message);
            json["label"] = value!(diagnostic.label);
            json["help"] = value!(diagnostic.help);
            let related = diagnostic.related.iter().map(|(span, message)| {
                let mut json = value!({ "message": message });
                set_place(&mut json, span);
                json
            });
            json["related"] = related.collect();
        }
        Problem::Plain { message, file, help } => {
            json["message"] = value!(message);
            json["file"] = value!(file);
            json["help"] = value!(help);
        }
        // A kind that is newer than this crate is shown as its text.
        _ => {}
    }
    json
}

/// Returns a problem without a place.
fn plain(severity: &str, message: &str) -> Value {
    value!({
        "code": null, "severity": severity, "message": message, "file": null, "line": null, "column": null,
        "endLine": null, "endColumn": null, "label": "", "help": null, "related": [],
    })
}

/// Sets the place of a problem: from its first character to the one after its last, lines and columns counted from 1.
fn set_place(json: &mut Value, span: &Span) {
    let (source, range) = (span.source(), span.range());
    let (line, column) = source.line_column(range.start);
    let (end_line, end_column) = source.line_column(range.end);
    json["file"] = value!(source.name());
    json["line"] = value!(line);
    json["column"] = value!(column);
    json["endLine"] = value!(end_line);
    json["endColumn"] = value!(end_column);
}
