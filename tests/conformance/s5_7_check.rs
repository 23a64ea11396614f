//! 5.7: the check of all jobs before anything runs, by `check`, `check_jobs!` and programs.

use std::fs;
use std::panic::catch_unwind;

use batch_runtime::operator::{CheckReport, Problem};
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, JobName, JobParameters, check_jobs};

use super::artifacts::job;

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
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        files.len(),
        "something was made"
    );
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
    let wrong = of_id(
        "wrong",
        r#"<step id="one" next="two"><batchlet ref="Taks"/></step>
           <step id="two"><chunk reader="Numbers" processor="Lengths" writer="Numbers"/></step>"#,
    );
    let files = [("a.xml", right.as_str()), ("b.xml", &wrong), ("c.xml", "<job")];
    let report = check(&files, JobParameters::new());
    assert!(!report.is_ok());
    let checks: Vec<_> = report
        .checks
        .iter()
        .map(|check| (check.job.as_deref(), check.is_ok))
        .collect();
    assert_eq!(
        checks,
        [(None, false), (Some("right"), true), (Some("wrong"), false)]
    );
    let text = report.to_string();
    for part in [
        "c.xml:1:1",
        "b.xml:2:",
        "`Taks`",
        "expected `String`, found `u64`",
        "ART0002",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(check(&files[..1], JobParameters::new()).is_ok());
}

/// A check without jobs fails; so does a check whose batch.xml cannot be read.
///
/// Spec: LOADER-15, PATH-06
#[test]
fn a_check_without_jobs_fails() {
    assert!(!check(&[], JobParameters::new()).is_ok());
    let report = BatchRuntime::builder()
        .batch_xml("batch.xml", "<b>")
        .check(JobParameters::new());
    assert!(!report.is_ok());
    assert!(report.to_string().contains("batch.xml:1:1"), "{report}");
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

/// The macro's directory is relative to the crate, and its panic lists all mistakes.
///
/// Spec: LOADER-08
#[test]
fn check_jobs_panics_with_everything_that_is_wrong() {
    let panic =
        catch_unwind(|| check_jobs!("../examples/flights", data = "data", "no.such" = "x")).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    // The artifacts of the examples are not linked here.
    for part in [
        "unknown item reader `FlightReader`",
        "/../examples/flights/flights.xml:",
        "`FlightProcessor`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("JSL0041"), "the parameter is given: {text}");
    let panic = catch_unwind(|| check_jobs!("support")).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(
        text.contains("the job path contains no job: searched `/"),
        "{text}"
    );
    assert!(
        text.contains("/tests/support`; set the job path by `--job-path DIRS`, "),
        "{text}"
    );
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
    let codes: Vec<&str> = codes.collect();
    assert_eq!(
        codes,
        ["JSL0012", "JSL0041", "JSL0011", "JSL0015", "ART0001", "ART0001"],
        "{report}"
    );
    // Wrong wiring hides no warning, neither of the XML nor of the wiring.
    let text = job(
        r#"<step id="one"><batchlet ref="Taks"/><next on="AGAIN" to="one"/></step>
           <step id="two"><batchlet ref="Task"><properties><property name="x" value=""/></properties></batchlet></step>"#,
    );
    let report = check(&[("a.xml", text.as_str())], JobParameters::new()).to_string();
    for code in [
        "error[ART0001]",
        "warning[ART0010]",
        "warning[JSL0051]",
        "warning[JSL0054]",
    ] {
        assert!(report.contains(code), "{code}: {report}");
    }
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
    assert!(
        misspelt.is_ok() && misspelt.to_string().contains("ART0010"),
        "{misspelt}"
    );
    assert!(!misspelt.deny_warnings().is_ok());
    // Some destinations have no position.
    let right = chunk("");
    assert!(right.to_string().contains("ART0009"), "{right}");
    assert!(right.deny_warnings().is_ok());
    // Warnings about batch.xml are reported too.
    let text = job(r#"<step id="one"><batchlet ref="Task"/></step>"#);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.xml"), text).unwrap();
    let report = BatchRuntime::builder()
        .batch_xml("batch.xml", "<batch-artifacts/>")
        .job_path(folder.path().display().to_string())
        .check(JobParameters::new());
    assert!(
        report.is_ok() && report.to_string().contains("warning[JSL0062]"),
        "{report}"
    );
    assert!(!report.deny_warnings().is_ok());
}

/// Spec: LOADER-08
#[test]
fn check_jobs_may_deny_warnings() {
    check_jobs!("jobs/strange");
    let panic = catch_unwind(|| check_jobs!(deny_warnings, "jobs/strange", "any" = "1")).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("warning[JSL0054]"), "{text}");
}

#[derive(Debug, batch_runtime::BatchException)]
#[batch_exception(class = "com.example.Unreadable", extends = "java.io.IOException")]
struct Unreadable;

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("unreadable")
    }
}

impl std::error::Error for Unreadable {}

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
        assert!(
            !excluded(known).contains("ART0023"),
            "{known}: {}",
            excluded(known)
        );
    }
    for (unknown, help) in [
        ("com.example.Unreadible", "did you mean `com.example.Unreadable`?"),
        ("Unreadible", "did you mean `Unreadable`?"),
        ("java.sql.SQLSyntaxErrorException", "#[derive(BatchException)]"),
    ] {
        let text = excluded(unknown);
        assert!(
            text.contains(&format!(
                "warning[ART0023]: no error type declares the exception class `{unknown}`"
            )),
            "{text}"
        );
        assert!(text.contains(help), "{text}");
    }
}

/// Runs another job.
#[derive(BatchArtifact)]
struct RunsJob {
    #[batch_property]
    which: Option<JobName>,
}

#[batchlet("RunsJob")]
impl RunsJob {
    #[process]
    fn process(&self) -> String {
        self.which.as_ref().map(ToString::to_string).unwrap_or_default()
    }
}

/// A check reports the jobs that artifacts name: unknown ones, and each cycle once, with the chain, at its place.
///
/// Spec: NEST-05
#[test]
fn jobs_that_artifacts_run_are_checked() {
    let runs = |id: &str, which: &str| {
        let properties = format!(r#"<properties><property name="which" value="{which}"/></properties>"#);
        of_id(
            id,
            &format!(r#"<step id="one"><batchlet ref="RunsJob">{properties}</batchlet></step>"#),
        )
    };
    let last = of_id("last", r#"<step id="one"><batchlet ref="RunsJob"/></step>"#);
    let (first, second) = (runs("first", "second"), runs("second", "last"));
    let files = [("a.xml", first.as_str()), ("b.xml", &second), ("c.xml", &last)];
    let report = check(&files, JobParameters::new());
    assert!(report.is_ok(), "{report}");
    let (misspelt, back) = (runs("second", "lats"), runs("last", "first"));
    let report = check(&[files[0], ("b.xml", misspelt.as_str()), files[2]], ());
    let text = report.to_string();
    for part in [
        "ART0024",
        "unknown job `lats`",
        "did you mean `last`?",
        "b.xml:2:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The file of the job is not valid.
    let broken = "<job id='lost'>\n<step id='one'></job>";
    let report = check(
        &[("a.xml", runs("first", "lost").as_str()), ("lost.xml", broken)],
        (),
    );
    let text = report.to_string();
    assert!(text.contains("unknown job `lost`"), "{text}");
    assert!(
        text.contains("= help: a file that may define it is not valid:"),
        "{text}"
    );
    // A job that runs the jobs of a cycle, and a cycle of one.
    let (outside, loops) = (runs("above", "second"), runs("loops", "loops"));
    let report = check(
        &[
            files[0],
            files[1],
            ("c.xml", back.as_str()),
            ("d.xml", &outside),
            ("e.xml", &loops),
        ],
        (),
    );
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
