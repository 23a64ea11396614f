//! Warnings, and errors about a file as a whole: code, place, remedy.

use batch_runtime::prelude::*;
use batch_runtime::xml::{Diagnostic, Severity};
use batch_tests::stage::Stage;
use insta::assert_snapshot;

use super::artifacts::{assert_contains, assert_starts, job};
use super::sequence::flow;

fn warnings(elements: &str) -> Vec<Diagnostic> {
    let stage = Stage::new(&job(elements));
    let operator = stage.operator();
    let warnings = operator.check("job", ()).unwrap();
    assert!(warnings.iter().all(|one| one.severity == Severity::Warning));
    warnings
}

fn help(one: &Diagnostic) -> &str {
    one.help.as_deref().unwrap()
}

/// A writer outside of the transaction that does not know where its output ended.
#[item_writer("Anywhere")]
fn anywhere(_labels: &[String]) {}

/// Spec: LOADER-08
#[test]
fn a_writer_without_transaction_and_checkpoint_is_reported() {
    let found = warnings(
        r#"<step id="one" next="two"><chunk reader="Numbers" processor="Labels" writer="Anywhere"/></step>
           <step id="two"><chunk reader="Numbers" processor="Labels" writer="Lines"/></step>"#,
    );
    let [one] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((one.code, one.span.text()), ("ART0009", "Anywhere"));
    assert_snapshot!(one.message, @"writer `Anywhere` cannot know where its output ended: after a crash, items may be missing or written again");
    assert_contains(help(one), "write through `tx: &mut ChunkTransaction`");
}

/// An error of a service that may be asked again.
#[derive(Debug, BatchException)]
#[batch_exception(extends = "java.io.IOException")]
enum ServiceError {
    #[batch_exception(class = "com.example.Offline")]
    Offline,
    Excluded,
}

impl std::fmt::Display for ServiceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the service is offline")
    }
}

impl std::error::Error for ServiceError {}

#[item_processor("AskService")]
fn ask_service(number: &u64) -> Result<Option<String>, ServiceError> {
    match *number {
        0 => Err(ServiceError::Offline),
        1 => Err(ServiceError::Excluded),
        number => Ok(Some(number.to_string())),
    }
}

/// Reads nothing, and may be offline.
#[derive(BatchArtifact)]
struct ServiceNumbers;

#[item_reader("ServiceNumbers")]
impl ServiceNumbers {
    #[open]
    fn open(&mut self, _: Option<u64>) {}
    #[read_item]
    fn read(&mut self) -> Result<Option<u64>, ServiceError> {
        Ok(None)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        0
    }
}

/// Where only writes are retried, a retryable class that the reader or processor throws is reported, unless the step or the job
/// declares that this is intended.
///
/// Spec: CHUNK-RETRY-02
#[test]
fn retryable_errors_of_reader_and_processor_are_reported() {
    let in_job = |job: &str, properties: &str, artifacts: &str, class: &str| -> Vec<Diagnostic> {
        let mut found = warnings(&format!(
            r#"{job}<step id="one">{properties}<chunk {artifacts} writer="Lines" retry-limit="3">
                 <retryable-exception-classes><include class="{class}"/><exclude class="Excluded"/></retryable-exception-classes>
               </chunk></step>"#
        ));
        found.retain(|one| one.code == "ART0027");
        found
    };
    let asking = r#"reader="Numbers" processor="AskService""#;
    let both = r#"reader="ServiceNumbers" processor="AskService""#;
    for class in [
        "com.example.Offline",
        "Offline",
        "ServiceError",
        "java.io.IOException",
    ] {
        let [one] = &in_job("", "", asking, class)[..] else {
            panic!("{class}")
        };
        assert_eq!(one.span.text(), class);
        let expected = format!(
            "the error type of item processor `AskService` includes the class `{class}`, but only errors of the writer are retried"
        );
        assert_eq!(one.message, expected);
        assert_contains(help(one), "`batch.retry.input`");
    }
    let found = in_job("", "", both, "Offline");
    assert_eq!(found.len(), 2, "{found:?}");
    assert_starts(
        &found[0].message,
        "the error type of item reader `ServiceNumbers`",
    );
    let intended = |value: &str| list("batch.retry.input", value);
    for (job, properties, artifacts, class) in [
        ("", "", asking, "TableError"),
        ("", "", r#"reader="Numbers" processor="Labels""#, "Offline"),
        ("", "", asking, "Excluded"),
        ("", &*intended("true"), both, "Offline"),
        ("", &*intended("false"), both, "Offline"),
        (&*intended("true"), "", both, "Offline"),
        (&*intended("false"), "", both, "Offline"),
    ] {
        assert_eq!(
            in_job(job, properties, artifacts, class).len(),
            0,
            "{job} {properties} {class}"
        );
    }
}

/// Spec: BPROP-11, JSL-CHPROP-07
#[test]
fn an_unused_property_is_likely_misspelt() {
    let found = warnings(&chunk("one", "", &list("itmes", "3")));
    let unused = found.iter().find(|one| one.code == "ART0010").unwrap();
    assert_eq!(unused.span.text(), "itmes");
    assert_snapshot!(unused.message, @"no artifact in scope declares the property `itmes`");
    assert_eq!(unused.help.as_deref(), Some("did you mean `items`?"));
}

/// Returns the diagnostics about properties, each with its help.
fn unused(elements: &str) -> Vec<(String, Option<String>)> {
    let mut found = warnings(elements);
    found.retain(|one| one.code == "ART0010");
    let found = found.into_iter().map(|one| (one.span.to_string(), one.help));
    found.collect()
}

fn chunk(step: &str, of_step: &str, of_chunk: &str) -> String {
    format!(
        r#"<step id="{step}">{of_step}<chunk reader="Numbers" processor="Labels" writer="Lines">{of_chunk}</chunk></step>"#
    )
}

fn list(name: &str, value: &str) -> String {
    format!(r#"<properties><property name="{name}" value="{value}"/></properties>"#)
}

/// A property for one artifact of a chunk.
fn targeted(name: &str, target: &str) -> String {
    list(name, "3").replace("/>", &format!(" target=\"{target}\"/>"))
}

/// Each `<property>` is checked, not each name: one that is used at one place may be unused at another.
///
/// Spec: BPROP-11, JSL-CHPROP-04, JSL-CHPROP-07
#[test]
fn a_property_out_of_reach_is_reported_at_each_place() {
    let task = |lists: &str| format!(r#"<step id="two">{lists}<batchlet ref="Task"/></step>"#);
    let then = |chunk: String| chunk.replace("<step ", r#"<step next="two" "#);
    let (both, items) = (then(chunk("one", "", "")), list("items", "3"));
    for wrong in [
        // The wrong target, in the chunk and in the step.
        chunk("one", "", &targeted("items", "writer")),
        chunk("one", &targeted("items", "writer"), ""),
        // The wrong step, also where its context would show it.
        both.clone() + &task(&items),
    ] {
        let [(_, Some(help))] = &unused(&wrong)[..] else {
            panic!("{wrong}")
        };
        let expected =
            "`Numbers` declares it, but is not in scope: check the place of the property and its `target`";
        assert_eq!(help, expected, "{wrong}");
    }
    // A name that is misspelt twice is reported twice.
    let itmes = list("itmes", "3");
    let found = unused(&(then(chunk("one", "", &itmes)) + &chunk("two", "", &itmes)));
    assert!(found.len() == 2 && found[0].0 != found[1].0, "{found:?}");
    // Properties that are used, or meant for a context, are right; so are those that an artifact of a flow uses.
    let of_context = list("of.the.context", "3");
    for right in [
        chunk("one", "", &items),
        chunk("one", &targeted("items", "reader"), ""),
        both + &task(&of_context),
        flow("f", "", &chunk("one", &of_context, "")),
    ] {
        assert_eq!(unused(&right), [], "{right}");
    }
}

/// Spec: BPROP-11
#[test]
fn the_properties_of_the_runtime_are_taken_at_their_place_only() {
    let step = |name: &str| {
        format!(
            r#"<step id="one">{}<batchlet ref="Task"/></step>"#,
            list(name, "3")
        )
    };
    // Some are properties of a job only.
    let of_job = |name: &str| list(name, "3") + &step("batch.step.timeout");
    assert_eq!(unused(&step("batch.step.timeout")), []);
    assert_eq!(unused(&of_job("batch.job.deadline")), []);
    for (elements, right) in [
        (step("batch.step.timeuot"), "batch.step.timeout"),
        (of_job("batch.job.deadlnie"), "batch.job.deadline"),
    ] {
        let helps = unused(&elements).into_iter().map(|one| one.1);
        assert!(helps.eq([Some(format!("did you mean `{right}`?"))]), "{elements}");
    }
}

/// A file that cannot be read, even by the superuser, is reported as invalid: here a link that leads nowhere.
///
/// Spec: PATH-11
#[cfg(unix)]
#[test]
fn an_unreadable_file_disables_only_itself() {
    let stage = Stage::new(&job(r#"<step id="one"><batchlet ref="Task"/></step>"#));
    std::os::unix::fs::symlink("nowhere", stage.path().join("jobs/dangling.xml")).unwrap();
    let operator = stage.operator();
    operator.check("job", ()).unwrap();
    let broken = operator.job_path().broken;
    let [errors] = broken.as_slice() else {
        panic!("{broken:?}")
    };
    let found = errors.iter().next().unwrap();
    assert_eq!(found.code, "PATH0001");
    assert!(found.message.starts_with("cannot read the file: "), "{found}");
    assert!(found.span.to_string().ends_with("dangling.xml:1:1"), "{found}");
}

/// Spec: BPROP-11
#[test]
fn a_property_of_the_runtime_belongs_to_the_step() {
    let found = warnings(
        r#"<step id="one"><chunk reader="Numbers" processor="Labels" writer="Lines">
             <properties><property name="batch.retry.input" value="true"/><property name="batch.job.timeout" value="9"/></properties>
           </chunk></step>"#,
    );
    let helps = found
        .iter()
        .map(|one| format!("{} {}", one.span.text(), help(one)));
    assert_snapshot!(helps.collect::<Vec<_>>().join("\n"), @r"
    batch.retry.input it belongs to the properties of its step or job
    batch.job.timeout it belongs to the properties of its job
    ");
}
