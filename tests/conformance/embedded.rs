//! Jobs inside the program, beside the job path.

use std::fs;
use std::path::Path;

use batch_runtime::xml::builder::{ArtifactBuilder, JobBuilder, StepBuilder};
use batch_runtime::{BatchRuntime, BatchRuntimeBuilder, BatchStatus, JobOperator, JobParameters, embed_jobs};
use batch_tests::own_process;
use insta::assert_snapshot;

use crate::artifacts::{assert_contains, assert_contains_all};

fn of(id: &str) -> String {
    format!(r#"<job id="{id}"><step id="one"><batchlet ref="ByItsType"/></step></job>"#)
}

fn builder() -> BatchRuntimeBuilder {
    BatchRuntime::builder().repository("memory:")
}

fn operator(builder: BatchRuntimeBuilder) -> JobOperator {
    builder.build().unwrap().job_operator()
}

fn names(operator: &JobOperator) -> Vec<String> {
    operator.job_names().unwrap().into_iter().collect()
}

/// Runs a job; returns the name of its file as the execution records it.
fn run(operator: &JobOperator, job: &str) -> String {
    let execution = operator.start(job, ()).unwrap();
    let ended = operator.wait(execution).unwrap();
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    ended.configuration_location.unwrap()
}

fn refused(operator: &JobOperator, job: &str) -> String {
    operator.start(job, ()).unwrap_err().to_string()
}

fn path(folder: &Path) -> String {
    folder.display().to_string()
}

/// The files of a directory become a part of the program: jobs, and what they inherit. Files with other roots are ignored.
///
/// Spec: EMBED-01
#[test]
fn the_files_of_a_directory_are_embedded() {
    let files = embed_jobs!("jobs");
    let file_names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let expected = ["jobs/daily.xml", "jobs/greeting.xml", "jobs/other.xml"];
    assert_eq!(file_names, expected);
    // Relative to the crate, also with a slash at the end.
    assert_eq!(embed_jobs!("jobs/"), files);
    let operator = operator(builder().jobs(files));
    assert_eq!(names(&operator), ["daily"]);
    assert_eq!(run(&operator, "daily"), "jobs/daily.xml");
    let started = operator.start_xml("daily", ()).unwrap();
    assert_eq!(operator.wait(started).unwrap().status, BatchStatus::Completed);
    assert!(builder().jobs(files).check(()).is_ok());
    let definitions = operator.definitions();
    definitions.effective_job("daily", &JobParameters::new()).unwrap();
}

/// Spec: EMBED-01
#[test]
fn a_job_built_in_rust_runs() {
    let step = StepBuilder::batchlet("one", ArtifactBuilder::new("ByItsType"));
    let job = JobBuilder::new("built").element(step).to_xml();
    assert_snapshot!(run(&operator(builder().job_xml("built.xml", job)), "built"), @"built.xml");
}

/// A program with embedded jobs reads a directory only if it is configured; a program without them reads the current one.
///
/// Spec: EMBED-02, PATH-02
#[test]
fn the_current_directory_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("daily.xml"), "<job").unwrap();
    fs::write(folder.path().join("here.xml"), of("here")).unwrap();
    let test = "embedded::the_current_directory_is_not_read";
    own_process::run(test, folder.path(), || {
        let with_jobs = || builder().job_xml("jobs/daily.xml", of("daily"));
        let inside = operator(with_jobs());
        assert_eq!(names(&inside), ["daily"]);
        assert_snapshot!(refused(&inside, "here"), @"unknown job `here`; the program contains `daily`");
        assert!(inside.job_path().directories.is_empty());
        let both = operator(with_jobs().system_property("javax.jobpath", "."));
        assert_eq!(names(&both), ["daily", "here"]);
        assert_eq!(names(&operator(builder())), ["here"]);
    });
}

/// A file of the job path replaces an embedded one of the same id, under any name.
///
/// Spec: EMBED-02
#[test]
fn a_file_of_the_job_path_replaces_an_embedded_one() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("patched.xml"), of("daily")).unwrap();
    let with_both = |jobs: &[(&str, &str)]| builder().jobs(jobs).job_path(path(folder.path()));
    let (daily, weekly) = (of("daily"), of("weekly"));
    let jobs = [("jobs/daily.xml", &*daily), ("jobs/weekly.xml", &*weekly)];
    let both = operator(with_both(&jobs));
    assert_eq!(names(&both), ["daily", "weekly"]);
    assert_eq!(run(&both, "daily"), path(&folder.path().join("patched.xml")));
    assert_eq!(run(&both, "weekly"), "jobs/weekly.xml");
    let report = both.job_path();
    assert_eq!(Vec::from_iter(report.replaced), ["daily"]);
    let unknown = refused(&both, "yearly");
    assert!(
        unknown.ends_with("the job path and the program contain `daily`, `weekly`"),
        "{unknown}"
    );
    // By the name of a file: an embedded one that is replaced is not found by its own.
    both.start_xml("patched", ()).unwrap();
    both.start_xml("daily", ()).unwrap_err();

    // What a job inherits is replaced, too.
    let parent = r#"<step id="greeting" abstract="true"><batchlet ref="NoSuch"/></step>"#;
    fs::write(folder.path().join("parent.xml"), parent).unwrap();
    fs::remove_file(folder.path().join("patched.xml")).unwrap();
    let errors = refused(&operator(with_both(embed_jobs!("jobs"))), "daily");
    assert_contains_all(&errors, &["NoSuch", "parent.xml"]);
}

/// A file of the job path that is not valid, and seems to be meant for an embedded job, is not ignored in favour of that.
///
/// Spec: EMBED-02, PATH-11
#[test]
fn a_broken_file_does_not_uncover_an_embedded_job() {
    let folder = tempfile::tempdir().unwrap();
    let broken = "<job id=\"daily\">\n  <step id=\"one\"></job>";
    fs::write(folder.path().join("patched.xml"), broken).unwrap();
    let (daily, weekly) = (of("daily"), of("weekly"));
    let jobs = [("jobs/daily.xml", &*daily), ("jobs/weekly.xml", &*weekly)];
    let operator = operator(builder().jobs(&jobs).job_path(path(folder.path())));
    let errors = refused(&operator, "daily");
    assert_contains(&errors, "patched.xml:2:3");
    assert_eq!(run(&operator, "weekly"), "jobs/weekly.xml");
}

/// Spec: EMBED-03
#[test]
fn mistakes_name_the_embedded_file() {
    let broken = builder().job_xml("jobs/load.xml", "<job id=\"load\">\n\n  <step id=\"one\"></job>");
    let report = broken.clone().check(());
    assert!(!report.is_ok());
    assert_contains(&report, "--> jobs/load.xml:3:3");
    let errors = refused(&operator(broken), "load");
    assert_contains(&errors, "--> jobs/load.xml:3:3");

    let unknown = builder().job_xml("jobs/load.xml", of("load").replace("ByItsType", "NoSuch"));
    let errors = refused(&operator(unknown), "load");
    assert_contains_all(&errors, &["`NoSuch`", "--> jobs/load.xml:1:"]);

    let other = builder().job_xml("jobs/load.xml", "<jbo id=\"load\"/>").check(());
    assert_contains(&other, "ignored jobs/load.xml: its root element is `jbo`");
    assert_contains(&other, "the embedded files contain no job");
}

/// Two embedded files with one id are an error of the start, as two files of the job path are. The job path settles it.
///
/// Spec: EMBED-02, PATH-12
#[test]
fn two_embedded_jobs_of_one_id_are_unusable() {
    let first = || builder().job_xml("a.xml", of("twice"));
    let twice = || first().job_xml("b.xml", of("twice"));
    let expected = "cannot start job `twice`: several files define it: a.xml, b.xml";
    assert_eq!(refused(&operator(twice()), "twice"), expected);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("c.xml"), of("twice")).unwrap();
    assert!(run(&operator(twice().job_path(path(folder.path()))), "twice").ends_with("c.xml"));
}
