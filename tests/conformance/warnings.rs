//! What is worth a warning, or is wrong with a file as a whole: code, place, remedy.

use batch_runtime::JobParameters;
use batch_runtime::xml::{Diagnostic, Severity};
use batch_tests::stage::Stage;

use super::artifacts::job;

fn warnings(elements: &str) -> Vec<Diagnostic> {
    let stage = Stage::new(&job(elements));
    let operator = stage.operator();
    let warnings = operator.check("job", JobParameters::new()).unwrap();
    assert!(warnings.iter().all(|one| one.severity == Severity::Warning));
    warnings
}

/// Spec: LOADER-08
#[test]
fn a_writer_outside_of_the_transaction_is_at_least_once() {
    let found =
        warnings(r#"<step id="one"><chunk reader="Numbers" processor="Labels" writer="Lines"/></step>"#);
    let [one] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((one.code, one.span.text()), ("ART0009", "Lines"));
    assert_eq!(
        one.message,
        "writer `Lines` may write the items of one chunk again after a crash"
    );
    assert!(
        one.help
            .as_deref()
            .unwrap()
            .contains("take `tx: &mut ChunkTransaction`"),
        "{one}"
    );
}

/// Spec: BPROP-11, JSL-CHPROP-07
#[test]
fn a_property_that_nobody_takes_is_likely_misspelt() {
    let property = r#"<properties><property name="itmes" value="3"/></properties>"#;
    let found = warnings(&format!(
        r#"<step id="one"><chunk reader="Numbers" processor="Labels" writer="Lines">{property}</chunk></step>"#
    ));
    let unused = found.iter().find(|one| one.code == "ART0010").unwrap();
    assert_eq!(unused.span.text(), "itmes");
    assert_eq!(
        unused.message,
        "no artifact that property `itmes` reaches takes it"
    );
    assert_eq!(unused.help.as_deref(), Some("did you mean `items`?"));
}

/// A file that the operating system does not give is reported as a broken one. The memory of a process is one, also for
/// the superuser: nothing lies at its beginning.
///
/// Spec: PATH-11
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_cannot_be_read_takes_only_itself_with_it() {
    let stage = Stage::new(&job(r#"<step id="one"><batchlet ref="Task"/></step>"#));
    std::os::unix::fs::symlink("/proc/self/mem", stage.path().join("jobs/memory.xml")).unwrap();
    let operator = stage.operator();
    operator.check("job", JobParameters::new()).unwrap();
    let broken = operator.job_path().broken;
    let [errors] = broken.as_slice() else {
        panic!("{broken:?}")
    };
    let found = errors.iter().next().unwrap();
    assert_eq!(found.code, "PATH0001");
    assert!(found.message.starts_with("the file cannot be read: "), "{found}");
    assert!(found.span.to_string().ends_with("memory.xml:1:1"), "{found}");
}
