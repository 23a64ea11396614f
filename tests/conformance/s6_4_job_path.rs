//! 6.4: the directories of Job XML files.

use std::fs;
use std::path::Path;
use std::process::Command;

use batch_runtime::{BatchRuntime, BatchStatus, JobOperator, JobOperatorError, operator::StartError};
use batch_tests::own_process;
use batch_tests::stage::Stage;

use super::artifacts::{assert_contains, assert_contains_all, assert_matches, job_execution, plain, refused};

fn of(id: &str) -> String {
    format!(r#"<job id="{id}"><step id="one"><batchlet ref="ByItsType"/></step></job>"#)
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    fs::create_dir_all(folder).unwrap();
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
}

fn operator(job_path: Option<&str>, system: Option<&str>) -> JobOperator {
    let mut builder = BatchRuntime::builder().repository("sqlite://:memory:");
    if let Some(directories) = job_path {
        builder = builder.job_path(directories);
    }
    if let Some(directories) = system {
        builder = builder.system_property("javax.jobpath", directories);
    }
    builder.build().unwrap().job_operator()
}

fn names(operator: &JobOperator) -> Vec<String> {
    operator.job_names().unwrap().into_iter().collect()
}

fn run(operator: &JobOperator, job: &str) -> BatchStatus {
    let execution = operator.start(job, ()).unwrap();
    operator.wait(execution).unwrap().status
}

/// Several directories, with the platform's separator; a missing one is ignored. Files are recognised by their
/// extension, jobs by their id; subdirectories are not searched.
///
/// Spec: PATH-01, PATH-03, PATH-04, PATH-05, PATH-06, PATH-08, PATH-09, PATH-13, OP-08, OP-21
#[test]
fn jobs_are_read_from_all_directories_and_known_by_their_ids() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    write(&a, &[("z.xml", &of("first")), ("first.txt", &of("text"))]);
    write(&a, &[("upper.XML", &of("upper"))]);
    write(&a.join("below"), &[("c.xml", &of("below"))]);
    write(&b, &[("first.xml", &of("second"))]);
    let list = std::env::join_paths([&a, &folder.path().join("missing"), &b]).unwrap();
    let list = list.to_str().unwrap();
    for operator in [operator(Some(list), None), operator(None, Some(list))] {
        assert_eq!(names(&operator), ["first", "second"]);
        assert_eq!(run(&operator, "second"), BatchStatus::Completed);
    }
    // The job path set by the program comes before the system property.
    let a = a.to_str().unwrap();
    assert_eq!(names(&operator(Some(a), Some(list))), ["first"]);
}

/// Without a job path the current directory is searched.
///
/// Spec: PATH-02
#[test]
fn the_default_is_the_current_directory() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("job.xml", &of("here"))]);
    let test = "s6_4_job_path::the_default_is_the_current_directory";
    own_process::run(test, folder.path(), || {
        let operator = operator(None, None);
        assert_eq!(names(&operator), ["here"]);
        assert_eq!(run(&operator, "here"), BatchStatus::Completed);
    });
}

/// A file written after the runtime was built is found at the next start; a known file is not read again.
///
/// Spec: PATH-05, PATH-07, PATH-08, OP-32
#[test]
fn new_files_are_found_at_each_start() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("a.xml", &of("a"))]);
    let operator = operator(folder.path().to_str(), None);
    assert!(operator.start("b", ()).is_err());
    write(folder.path(), &[("b.xml", &of("b")), ("a.xml", &of("changed"))]);
    assert_eq!(run(&operator, "b"), BatchStatus::Completed);
    assert_eq!(names(&operator), ["a", "b"]);
    assert_eq!(run(&operator, "a"), BatchStatus::Completed);
}

/// A broken file affects its own job only; a launch of that job reports the reason.
///
/// Spec: PATH-11, OP-11
#[test]
fn a_broken_file_disables_its_own_jobs_only() {
    let stage = Stage::new(&of("good"));
    let jobs = stage.path().join("jobs");
    let broken = "<job id=\"broken\">\n  <step id=\"one\"></job>";
    write(&jobs, &[("broken.xml", broken), ("empty.xml", "")]);
    write(&jobs, &[("pom.xml", "<project><job id=\"foreign\"/></project>")]);
    let text = refused(&stage, "broken", ());
    assert_contains(&text, "unknown job `broken`");
    assert_contains_all(&text, &["`step` is not closed", "jobs/broken.xml:2:3"]);
    let text = refused(&stage, "absent", ());
    assert_contains_all(&text, &["unknown job `absent`", "`good`"]);
    assert_contains_all(&text, &["jobs/broken.xml:2:3", "jobs/empty.xml:1:1"]);
    assert!(!text.contains("pom.xml"), "no Job XML, and no mistake: {text}");
    assert_eq!(names(&stage.operator()), ["good"]);
    stage.start("good", ());
}

/// Spec: PATH-11
#[test]
fn unreadable_files_are_ignored() {
    let stage = Stage::new(&of("good"));
    let jobs = stage.path().join("jobs");
    fs::write(jobs.join("bytes.xml"), [0x3c, 0x6a, 0xff, 0xfe, 0x00, 0xc3]).unwrap();
    let large = format!("<!-- {} -->{}", "x".repeat(4 << 20), of("large"));
    fs::write(jobs.join("large.xml"), large).unwrap();
    fs::create_dir(jobs.join("folder.xml")).unwrap();
    #[cfg(unix)]
    {
        let fifo = Command::new("mkfifo").arg(jobs.join("fifo.xml")).status();
        assert!(fifo.unwrap().success());
        std::os::unix::fs::symlink(jobs.join("nowhere"), jobs.join("dangling.xml")).unwrap();
        std::os::unix::fs::symlink(jobs.join("fifo.xml"), jobs.join("linked.xml")).unwrap();
    }
    stage.start("good", ());
    assert_eq!(names(&stage.operator()), ["good"]);
    let text = refused(&stage, "large", ());
    assert_contains_all(&text, &["large.xml", "bytes.xml"]);
    for other in ["fifo.xml", "folder.xml"] {
        assert!(!text.contains(other), "{text}");
    }
}

/// A link to another name in the directory is followed, as in a volume of Kubernetes. One that leads out of it is not, because
/// messages show lines of invalid files; one that leads nowhere is reported.
///
/// Spec: PATH-08, PATH-11
#[test]
#[cfg(unix)]
fn links_are_followed_within_the_directory() {
    use std::os::unix::fs::symlink;
    let stage = Stage::new(&of("good"));
    let jobs = stage.path().join("jobs");
    fs::create_dir(jobs.join("..data")).unwrap();
    fs::write(jobs.join("..data/inside.xml"), of("inside")).unwrap();
    symlink("..data/inside.xml", jobs.join("inside.xml")).unwrap();
    let outside = "<job id='outside'> root:x:0:0 </job";
    fs::write(stage.path().join("outside.xml"), outside).unwrap();
    symlink("../outside.xml", jobs.join("outside.xml")).unwrap();
    symlink("nowhere", jobs.join("dangling.xml")).unwrap();
    stage.start("inside", ());
    let text = refused(&stage, "outside", ());
    assert_contains_all(
        &text,
        &["jobs/outside.xml", "the symbolic link leads out of the directory"],
    );
    assert_contains_all(&text, &["jobs/dangling.xml", "cannot read the file"]);
    assert!(!text.contains("root:x"), "{text}");
}

/// An id in two files is unusable; other jobs are not affected.
///
/// Spec: PATH-12, INH-16
#[test]
fn a_duplicate_id_is_unusable_and_names_both_files() {
    let stage = Stage::new(&of("twice"));
    let files = [("other.xml", &*of("twice")), ("third.xml", &*of("once"))];
    write(&stage.path().join("jobs"), &files);
    let error = stage.operator().start("twice", ()).unwrap_err();
    assert_matches!(&error, JobOperatorError::JobStart { cause: StartError::DuplicateId(files), .. } if files.len() == 2);
    let expected = "cannot start job `twice`: several files define it: jobs/job.xml, jobs/other.xml";
    assert_eq!(plain(&stage, &error), expected);
    stage.start("once", ());
}

/// Steps and flows in the job path share their names with the jobs, and are not jobs.
///
/// Spec: PATH-08, PATH-12, INH-16, JSL-DOC-03
#[test]
fn a_document_of_another_kind_is_no_job() {
    let stage = Stage::new(&of("good"));
    let jobs = stage.path().join("jobs");
    let step = |id: &str| format!(r#"<step id="{id}" abstract="true"><batchlet ref="Task"/></step>"#);
    write(&jobs, &[("step.xml", &step("alone"))]);
    let error = stage.operator().start("alone", ()).unwrap_err();
    assert_matches!(error, JobOperatorError::NoSuchJob { .. });
    write(&jobs, &[("same.xml", &step("good"))]);
    assert_contains(&refused(&stage, "good", ()), "several files define it");
}

/// The file of a job is recorded with its executions.
///
/// Spec: PATH-14, ID-02
#[test]
fn an_execution_names_its_file() {
    let stage = Stage::new(&of("job"));
    let execution = job_execution(&stage, stage.start("job", ()));
    let location = execution.configuration_location.unwrap();
    assert!(Path::new(&location).ends_with("jobs/job.xml"), "{location}");
}

/// A file may be incomplete when the runtime first sees it. A valid one is not read again.
///
/// Spec: PATH-06, PATH-11, PATH-12, LOADER-08
#[test]
fn a_repaired_file_is_found_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let right = of("job");
    let half = &right[..right.len() / 2];
    write(folder.path(), &[("job.xml", half), ("other.xml", &of("other"))]);
    let operator = operator(Some(&folder.path().display().to_string()), None);
    for _ in 0..2 {
        let refused = operator.start("job", ()).unwrap_err();
        assert_contains_all(&refused, &["unknown job `job`", "job.xml:1:"]);
    }
    write(folder.path(), &[("job.xml", &right), ("other.xml", "<job")]);
    assert_eq!(run(&operator, "job"), BatchStatus::Completed);
    assert_eq!(run(&operator, "other"), BatchStatus::Completed);
    assert_eq!(names(&operator), ["job", "other"]);
}
