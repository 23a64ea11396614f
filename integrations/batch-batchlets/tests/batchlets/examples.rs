//! The Job XML in the documentation: every property exists, and every value is valid.

use std::fs;
use std::path::Path;

use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, JobParameters};

/// The chunk step of the guide.
#[derive(BatchArtifact)]
struct Orders {}

#[item_reader("OrderReader")]
impl Orders {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[read_item]
    fn read(&mut self) -> Option<String> {
        None
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

#[item_processor("OrderProcessor")]
impl Orders {
    #[process_item]
    fn process(&mut self, order: String) -> Option<String> {
        Some(order)
    }
}

#[item_writer("OrderWriter")]
impl Orders {
    #[open]
    fn open_output(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, _orders: &[String]) {}
    #[get_checkpoint_info]
    fn output_checkpoint(&mut self) {}
}

/// Returns the XML blocks of a text.
fn blocks(text: &str) -> Vec<String> {
    let parts = text.split("```xml\n").skip(1);
    parts
        .map(|part| part.split("```").next().unwrap().to_owned())
        .collect()
}

/// Checks examples; some are a step of a job.
fn check(examples: &[String]) {
    let folder = tempfile::tempdir().unwrap();
    let mut checked = 0;
    for example in examples {
        if example.contains("httpCall") && !cfg!(feature = "http") {
            continue;
        }
        let xml = match example.contains("<job ") {
            true => example.clone(),
            // The example of a wait continues with another step.
            false => {
                let load = "<step id='load'><batchlet ref='deleteFiles'>\
                            <properties><property name='resource' value='x'/></properties></batchlet></step>";
                let load = if example.contains("to=\"load\"") { load } else { "" };
                format!("<job id=\"example{checked}\">{example}{load}</job>")
            }
        };
        let id = xml.split("<job id=\"").nth(1).unwrap().split('"').next().unwrap();
        fs::write(folder.path().join(format!("{id}.xml")), &xml).unwrap();
        checked += 1;
    }
    // The jobs that an example runs.
    for nested in ["bookings", "statements"] {
        let job = format!(
            "<job id=\"{nested}\"><step id=\"only\"><batchlet ref=\"deleteFiles\"><properties>\
                           <property name=\"resource\" value=\"x\"/></properties></batchlet></step></job>"
        );
        fs::write(folder.path().join(format!("{nested}.xml")), job).unwrap();
    }
    let parameters = [
        ("day", "2026-11-20"),
        ("month", "2026-11"),
        ("token", "x"),
        ("password", "y"),
    ];
    let report = BatchRuntime::builder()
        .job_path(folder.path().display().to_string())
        .check(JobParameters::from(parameters));
    report.deny_warnings().assert_ok();
    assert!(checked >= 4, "{checked}");
}

#[test]
fn the_examples_of_the_guide_are_valid() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/batchlets.md");
    check(&blocks(&fs::read_to_string(page).unwrap()));
}

#[test]
fn the_examples_of_the_documentation_are_valid() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut examples = Vec::new();
    for file in [
        "command/mod.rs",
        "sql/mod.rs",
        "files/mod.rs",
        "wait.rs",
        "http/mod.rs",
    ] {
        let text = fs::read_to_string(sources.join(file)).unwrap();
        examples.extend(blocks(&text.replace("/// ", "")));
    }
    check(&examples);
}
