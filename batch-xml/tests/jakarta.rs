//! Documents in the dialect of Jakarta Batch.

use std::collections::BTreeMap;
use std::path::PathBuf;

use batch_xml::{Dialect, Limits, Source, Values, parse, parse_as, resolve};

/// The job files of the public TCK, which are not part of this repository.
fn tck() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/tck/jobs");
    let folder = std::env::var_os("BATCH_TCK").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    folder.is_dir().then_some(folder)
}

/// Every job file of the TCK is accepted as it is, except the one that is not XML and those that have to be rejected.
///
/// Spec: JAK-01
#[test]
fn job_files_of_the_tck_are_accepted() {
    let Some(folder) = tck() else {
        println!("NOT RUN: the job files of the TCK are not there; set BATCH_TCK to their folder");
        return;
    };
    let limits = Limits::default();
    let none = BTreeMap::new();
    let mut rejected = Vec::new();
    let (mut count, mut text) = (0, String::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        count += 1;
        // The tests set all of them. `1` is a boolean, an integer and a name.
        let text_of_file = String::from_utf8_lossy(&bytes);
        let names = text_of_file.split("jobParameters['").skip(1);
        let names = names.filter_map(|rest| Some(rest.split_once('\'')?.0.to_owned()));
        let parameters: BTreeMap<_, _> = names.map(|name| (name, "1".to_owned())).collect();
        let values = Values {
            parameters: &parameters,
            system: &none,
        };
        let resolved = Source::from_bytes(name.as_str(), &bytes, &limits)
            .and_then(|source| parse(&source, &limits))
            .and_then(|document| resolve(&document, &Vec::new(), &values, &limits));
        match resolved {
            Ok(resolved) => {
                assert_eq!(resolved.job.dialect, Dialect::Jakarta, "{name}");
                // What is written is read as the same job.
                let written = Source::new(name.as_str(), resolved.job.to_xml());
                let document = parse(&written, &limits).unwrap_or_else(|errors| panic!("{name}\n{errors}"));
                let again = resolve(&document, &Vec::new(), &values, &limits);
                let again = again.unwrap_or_else(|errors| panic!("{name}\n{errors}"));
                assert_eq!(again.job.to_xml(), resolved.job.to_xml(), "{name}");
            }
            Err(errors) => {
                text += &format!("{name}\n{errors}\n");
                rejected.push(name);
            }
        }
    }
    rejected.sort();
    assert_eq!(
        rejected,
        [
            "chunkSkipOnErrorCallTest",
            "decider_as_first_job_element_fails",
            "flow_transition_to_step_out_of_scope",
            "job_executable_sequence_invalid",
            "split_level_flow_tries_its_own_transition",
            "split_transition_to_step_out_of_scope",
        ],
        "{text}"
    );
    assert_eq!(count, 116);
}

/// The caller can choose the dialect.
///
/// Spec: JAK-02
#[test]
fn a_dialect_can_be_chosen() {
    let source = Source::new("j.xml", "<job id='j' version='2.0'/>");
    let limits = Limits::default();
    let document = parse_as(&source, &limits, Some(Dialect::Jakarta)).unwrap();
    assert_eq!(document.dialect(), Dialect::Jakarta);
    assert!(document.errors().iter().next().is_none());
    let document = parse(&source, &limits).unwrap();
    assert_eq!(
        (document.dialect(), document.errors().iter().count()),
        (Dialect::Draft, 1)
    );
}
