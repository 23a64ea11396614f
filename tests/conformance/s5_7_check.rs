//! 5.7: the check of all jobs before anything runs, by `check`, `check_jobs!` and programs.

use std::fs;
use std::panic::{UnwindSafe, catch_unwind};

use batch_runtime::operator::{CheckReport, Problem};
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, JobName, JobParameters, check_jobs};

use super::artifacts::{assert_contains, assert_contains_all, error_types, job};

/// Returns the report on a job path with these files. The repository would be a file in the folder.
fn check(files: &[(&str, &str)], parameters: impl Into<JobParameters>) -> CheckReport {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let report = BatchRuntime::builder()
        .job_path(folder.path().display().to_string())
        .repository(format!("sqlite://{}", folder.path().join("batch.db").display()))
        .system_property("log", "nobody reads this")
        .check(parameters);
    let found = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(found, files.len(), "something was made");
    report
}

fn of_id(id: &str, elements: &str) -> String {
    job(elements).replacen("\"job\"", &format!("\"{id}\""), 1)
}

/// Every job is checked, even if another is invalid, and no repository is opened.
///
/// Spec: LOADER-08, ART-09, CHUNK-LOOP-17, OP-11
#[test]
fn all_jobs_are_checked_and_nothing_is_opened() {
    let right = of_id("right", r#"<step id="one"><batchlet ref="Task"/></step>"#);
    let steps = r#"<step id="one" next="two"><batchlet ref="Taks"/></step>
           <step id="two"><chunk reader="Numbers" processor="Lengths" writer="Numbers"/></step>"#;
    let wrong = of_id("wrong", steps);
    let files = [("a.xml", right.as_str()), ("b.xml", &wrong), ("c.xml", "<job")];
    let report = check(&files, JobParameters::new());
    assert!(!report.is_ok());
    let checks = report
        .checks
        .iter()
        .map(|check| (check.job.as_deref(), check.is_ok));
    assert!(checks.eq([(None, false), (Some("right"), true), (Some("wrong"), false)]));
    let types = "expected `String`, found `u64`";
    assert_contains_all(&report, &["c.xml:1:1", "b.xml:2:", "`Taks`", types, "ART0002"]);
    assert!(check(&files[..1], JobParameters::new()).is_ok());
}

/// A check without jobs fails; so does a check whose batch.xml cannot be read.
///
/// Spec: LOADER-15, PATH-06
#[test]
fn a_check_without_jobs_fails() {
    assert!(!check(&[], JobParameters::new()).is_ok());
    let builder = BatchRuntime::builder().batch_xml("batch.xml", "<b>");
    let report = builder.check(JobParameters::new());
    assert!(!report.is_ok());
    assert_contains(&report, "batch.xml:1:1");
}

/// Spec: BPROP-10, SUBST-12
#[test]
fn parameters_are_those_of_a_start() {
    let text = job(r#"<step id="one"><batchlet ref="${which}"/></step>"#);
    let files = [("a.xml", text.as_str())];
    assert!(check(&files, [("which", "Task")]).is_ok());
    assert!(!check(&files, [("which", "Taks")]).is_ok());
    assert!(!check(&files, JobParameters::new()).is_ok());
}

/// Returns the message of a panic.
fn panic_of(check: impl FnOnce() + UnwindSafe) -> String {
    *catch_unwind(check).unwrap_err().downcast().unwrap()
}

/// The macro's directory is relative to the crate, and its panic lists all mistakes.
///
/// Spec: LOADER-08
#[test]
fn check_jobs_panics_with_everything_that_is_wrong() {
    let text = panic_of(|| check_jobs!("../examples/flights", data = "data", "no.such" = "x"));
    // The artifacts of the examples are not linked here.
    assert_contains(&text, "unknown item reader `FlightReader`");
    assert_contains_all(&text, &["/../examples/flights/flights.xml:", "`FlightProcessor`"]);
    assert!(!text.contains("JSL0041"), "the parameter is given: {text}");
    let text = panic_of(|| check_jobs!("support"));
    assert_contains(&text, "the job path contains no job: searched `/");
    assert_contains(&text, "/tests/support`; set the job path by `--job-path DIRS`, ");
}

/// Mistakes in the XML cause no errors of the wiring, and hide neither its errors nor warnings.
///
/// Spec: LOADER-08, JSL-DOC-12
#[test]
fn mistakes_of_the_xml_hide_no_others() {
    let text = job(r#"<step id="one" next="twoo"><batchlet ref="Taks"/></step>
           <step id="two">
             <properties><property name="items" value="${nobody}"/></properties>
             <chunk reader="Numbers" processor="Labels" writer="Lines" skip-limt="3"/>
             <next on="*" to="three"/>
           </step>
           <step id="three"><chunk reader="Numbers" processor="Labels"/></step>
           <step id="four"><batchlet ref="Needs"/></step>"#);
    let report = check(&[("a.xml", text.as_str())], JobParameters::new());
    let [only] = report.checks.as_slice() else {
        panic!("{report}")
    };
    let codes = only.problems.iter().map(|problem| match problem {
        Problem::Diagnostic(one) => one.code,
        other => panic!("{other}"),
    });
    let expected = ["JSL0012", "JSL0041", "JSL0011", "JSL0015", "ART0001", "ART0001"];
    assert!(codes.eq(expected), "{report}");
    // Wrong wiring hides no warning, neither of the XML nor of the wiring.
    let text = job(
        r#"<step id="one"><batchlet ref="Taks"/><next on="AGAIN" to="one"/></step>
           <step id="two"><batchlet ref="Task"><properties><property name="x" value=""/></properties></batchlet></step>"#,
    );
    let report = check(&[("a.xml", text.as_str())], JobParameters::new());
    assert_contains_all(&report, &["error[ART0001]", "warning[ART0010]"]);
    assert_contains_all(&report, &["warning[JSL0051]", "warning[JSL0054]"]);
}

/// Spec: LOADER-08
#[test]
fn warnings_may_be_denied() {
    let chunk = |properties: &str| {
        let text = job(&format!(
            r#"<step id="one"><chunk reader="Numbers" processor="Labels" writer="Anywhere">{properties}</chunk></step>"#
        ));
        check(&[("a.xml", text.as_str())], JobParameters::new())
    };
    let misspelt = chunk(r#"<properties><property name="itmes" value="3"/></properties>"#);
    assert!(misspelt.is_ok(), "{misspelt}");
    assert_contains(&misspelt, "ART0010");
    assert!(!misspelt.deny_warnings().is_ok());
    // Some destinations have no position.
    let right = chunk("");
    assert_contains(&right, "ART0009");
    assert!(right.deny_warnings().is_ok());
    // Warnings about batch.xml are reported too.
    let text = job(r#"<step id="one"><batchlet ref="Task"/></step>"#);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.xml"), text).unwrap();
    let builder = BatchRuntime::builder().batch_xml("batch.xml", "<batch-artifacts/>");
    let report = builder.job_path(folder.path().display().to_string()).check(());
    assert!(report.is_ok(), "{report}");
    assert_contains(&report, "warning[JSL0062]");
    assert!(!report.deny_warnings().is_ok());
}

/// Spec: LOADER-08
#[test]
fn check_jobs_may_deny_warnings() {
    check_jobs!("jobs/strange");
    let text = panic_of(|| check_jobs!(deny_warnings, "jobs/strange", "any" = "1"));
    assert_contains(&text, "warning[JSL0054]");
}

error_types! {
    #[batch_exception(class = "com.example.Unreadable", extends = "java.io.IOException")]
    Unreadable => "unreadable";
}

/// An exception class that no error type declares is a warning only, because every error type is also known by its
/// path.
///
/// Spec: CHUNK-EXC-01
#[test]
fn an_undeclared_exception_class_is_a_warning() {
    let excluded = |class: &str| {
        let text = job(&format!(
            r#"<step id="one"><chunk reader="Numbers" processor="Labels" writer="Lines">
               <skippable-exception-classes><exclude class="{class}"/></skippable-exception-classes></chunk></step>"#
        ));
        let report = check(&[("a.xml", text.as_str())], JobParameters::new());
        assert!(report.is_ok(), "{report}");
        report.to_string()
    };
    for known in [
        "com.example.Unreadable",
        "Unreadable",
        "conformance::s5_7_check::Unreadable",
        "s5_7_check::Unreadable",
        "conformance::Unreadable",
        "java.io.IOException",
        "java.lang.Exception",
        "std::io::Error",
    ] {
        let text = excluded(known);
        assert!(!text.contains("ART0023"), "{known}: {text}");
    }
    for (unknown, help) in [
        ("com.example.Unreadible", "did you mean `com.example.Unreadable`?"),
        ("Unreadible", "did you mean `Unreadable`?"),
        ("java.sql.SQLSyntaxErrorException", "#[derive(BatchException)]"),
    ] {
        let text = excluded(unknown);
        let problem = format!("warning[ART0023]: no error type declares the exception class `{unknown}`");
        assert_contains_all(&text, &[&problem, help]);
    }
}

/// Runs another job.
#[batchlet("RunsJob")]
fn runs_job(#[batch_property] which: Option<JobName>) -> String {
    which.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// A check reports the jobs that artifacts name: unknown ones, and each cycle once, with the chain, at its place.
///
/// Spec: NEST-05
#[test]
fn jobs_that_artifacts_run_are_checked() {
    let runs = |id: &str, which: &str| {
        let step = format!(
            r#"<step id="one"><batchlet ref="RunsJob"><properties><property name="which" value="{which}"/></properties>
               </batchlet></step>"#
        );
        of_id(id, &step)
    };
    let last = of_id("last", r#"<step id="one"><batchlet ref="RunsJob"/></step>"#);
    let (first, second) = (runs("first", "second"), runs("second", "last"));
    let files = [("a.xml", first.as_str()), ("b.xml", &second), ("c.xml", &last)];
    let report = check(&files, JobParameters::new());
    assert!(report.is_ok(), "{report}");
    let (misspelt, back) = (runs("second", "lats"), runs("last", "first"));
    let report = check(&[files[0], ("b.xml", misspelt.as_str()), files[2]], ());
    assert_contains_all(
        &report,
        &[
            "ART0024",
            "unknown job `lats`",
            "did you mean `last`?",
            "b.xml:2:",
        ],
    );
    // The file of the job is not valid.
    let broken = "<job id='lost'>\n<step id='one'></job>";
    let lost = runs("first", "lost");
    let report = check(&[("a.xml", lost.as_str()), ("lost.xml", broken)], ());
    assert_contains(&report, "unknown job `lost`");
    assert_contains(&report, "= help: a file that may define it is not valid:");
    // A job that runs the jobs of a cycle, and a cycle of one.
    let (outside, loops) = (runs("above", "second"), runs("loops", "loops"));
    let (back, others) = (
        ("c.xml", back.as_str()),
        [("d.xml", &*outside), ("e.xml", &*loops)],
    );
    let report = check(&[files[0], files[1], back, others[0], others[1]], ());
    assert!(report.checks.iter().all(|check| !check.is_ok), "{report}");
    let text = report.to_string();
    for part in [
        "job `first` would run itself: first runs second runs last runs first",
        "c.xml:2:",
        "job `loops` would run itself: loops runs loops",
        "e.xml:2:",
    ] {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
    assert_eq!(text.matches("ART0025").count(), 2, "{text}");
}
