//! `check`: what it prints.

use serde_json::{Value, json};

use super::output::print_json;
use super::print::{err, out};
use crate::check::{CheckReport, Finding};

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
    if !finding.report.is_empty() {
        err(format_args!("{}\n", finding.report));
    }
    if let Some(job) = &finding.job {
        let verdict = if finding.right { "right" } else { "wrong" };
        out(format_args!("{job}: {verdict}"));
    }
}

fn to_json(finding: &Finding) -> Value {
    json!({ "job": finding.job, "right": finding.right, "report": finding.report })
}
