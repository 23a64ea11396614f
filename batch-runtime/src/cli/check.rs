//! `check`: what it prints.

use batch_xml::{Severity, Span};
use serde_json::{Value, json};

use super::output::print_json;
use super::print::{err, out};
use crate::check::{CheckReport, Finding, Remark};

/// Prints what was found. Returns whether all of it is right.
pub(super) fn print(report: &CheckReport, as_json: bool) -> bool {
    if as_json {
        print_json(&report.findings.iter().map(to_json).collect());
    } else {
        report.findings.iter().for_each(print_finding);
    }
    report.is_right()
}

fn print_finding(finding: &Finding) {
    let report = finding.report();
    if !report.is_empty() {
        err(format_args!("{report}\n"));
    }
    if let Some(job) = &finding.job {
        let verdict = if finding.right { "right" } else { "wrong" };
        out(format_args!("{job}: {verdict}"));
    }
}

fn to_json(finding: &Finding) -> Value {
    let diagnostics: Vec<Value> = finding.remarks.iter().map(remark_to_json).collect();
    json!({
        "job": finding.job,
        "right": finding.right,
        "report": finding.report(),
        "diagnostics": diagnostics,
        "omitted": finding.omitted,
    })
}

fn remark_to_json(remark: &Remark) -> Value {
    match remark {
        Remark::Diagnostic(diagnostic) => {
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
        Remark::Plain { message, file, help } => json!({
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
