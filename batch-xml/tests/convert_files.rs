//! Conversions of whole files: of `tests/jsl`, of the examples, and of the public TCK.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use batch_xml::model::{ArtifactRef, ExecutionElement, Job, Property, StepBody};
use batch_xml::{
    Conversion, DeclaredProperty, Dialect, Document, Effective, JobXmlErrors, Limits, Severity, Source,
    Values, parse, resolve,
};

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn xml_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            xml_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "xml") {
            found.push(path);
        }
    }
}

/// A job file with the documents beside it, and the parameters that it needs.
struct Case {
    name: String,
    document: Document,
    library: Vec<Arc<Document>>,
    parameters: BTreeMap<String, String>,
}

/// Returns the parameters that a comment of the file names, and one for each other name that the examples need.
fn parameters(text: &str) -> BTreeMap<String, String> {
    let list = text
        .split_once("<!-- Parameters: ")
        .and_then(|(_, rest)| Some(rest.split_once("-->")?.0));
    let pairs = list.into_iter().flat_map(|list| list.split(';'));
    let pairs = pairs.filter_map(|pair| pair.trim().split_once('='));
    let named = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let data = ("data".to_owned(), "files".to_owned());
    named.chain([data]).collect()
}

fn cases(folders: &[&str]) -> Vec<Case> {
    let limits = Limits::default();
    let mut cases = Vec::new();
    for folder in folders {
        let mut files = Vec::new();
        xml_files(&project().join(folder), &mut files);
        let read = |path: &PathBuf| {
            let bytes = std::fs::read(path).unwrap();
            let name = path.strip_prefix(project()).unwrap().display().to_string();
            let source = Source::from_bytes(name.as_str(), &bytes, &limits).ok()?;
            Some((path.clone(), parse(&source, &limits).ok()?))
        };
        let documents: Vec<(PathBuf, Document)> = files.iter().filter_map(read).collect();
        for (path, document) in &documents {
            let beside = documents
                .iter()
                .filter(|(other, _)| other.parent() == path.parent());
            cases.push(Case {
                name: document.source().name().to_owned(),
                document: document.clone(),
                library: beside.map(|(_, other)| Arc::new(other.clone())).collect(),
                parameters: parameters(document.source().text()),
            });
        }
    }
    cases
}

fn resolved(
    document: &Document,
    library: &Vec<Arc<Document>>,
    parameters: &BTreeMap<String, String>,
) -> Result<Job, JobXmlErrors> {
    let system = BTreeMap::from([("file.separator".to_owned(), "/".to_owned())]);
    let values = Values {
        parameters,
        system: &system,
    };
    resolve(document, library, &values, &Limits::default()).map(|resolved| resolved.job)
}

fn read(name: &str, conversion: &Conversion) -> Document {
    let source = Source::new(name, conversion.xml.as_str());
    parse(&source, &Limits::default()).unwrap_or_else(|errors| panic!("{name}\n{}\n{errors}", conversion.xml))
}

fn convert(document: &Document, library: &Vec<Arc<Document>>, to: Dialect) -> Conversion {
    let effective = Effective::new(document, library, &Limits::default()).unwrap();
    let none: BTreeMap<String, Vec<DeclaredProperty>> = BTreeMap::new();
    let conversion = effective.convert(to, &none);
    let has_errors = conversion
        .problems
        .iter()
        .any(|one| one.severity == Severity::Error);
    assert!(conversion.is_complete || has_errors || conversion.problems.omitted() > 0);
    assert!(
        conversion
            .problems
            .iter()
            .all(|one| one.help.is_some() || one.code == "JSL0075"),
        "{}",
        conversion.problems
    );
    conversion
}

/// Returns the XML of a job without what a conversion there and back may change although it is the same job: the order of properties, the
/// properties of the job that stand for parameters, and what is written in Jakarta Batch because it is the rule of the draft: that a job
/// fails if nothing matches, and that it resumes where it has stopped.
fn comparable(job: &Job, added: &[String]) -> String {
    let xml = job.to_xml();
    let is_added = |line: &str| {
        let mut names = added.iter().map(|name| format!("    <property name=\"{name}\" "));
        names.any(|start| line.starts_with(&start))
    };
    let lines = xml
        .lines()
        .filter(|line| line.trim() != "<fail on=\"*\"/>" && !is_added(line));
    let lines = lines.filter(|line| !line.ends_with("properties>"));
    let mut lines: Vec<&str> = lines
        .map(|line| line.split(" restart=").next().unwrap())
        .collect();
    for run in lines.chunk_by_mut(|one, other| one.contains("<property ") == other.contains("<property ")) {
        if run[0].contains("<property ") {
            run.sort_unstable();
        }
    }
    let lines = lines.into_iter().map(|line| line.trim_end_matches("/>"));
    lines.collect::<Vec<_>>().join("\n")
}

/// A document of the draft that is converted without errors is valid in Jakarta Batch; converted back, it is the same job.
///
/// Spec: JAK-40, JAK-42
#[test]
fn converted_files_of_the_draft_are_the_same_job() {
    let mut incomplete = Vec::new();
    let mut same = 0;
    for case in cases(&["tests/jsl/valid", "examples"]) {
        if case.document.dialect() != Dialect::Draft {
            continue;
        }
        let Ok(job) = resolved(&case.document, &case.library, &case.parameters) else {
            continue;
        };
        let name = &case.name;
        let there = convert(&case.document, &case.library, Dialect::Jakarta);
        if !there.is_complete {
            incomplete.push(name.clone());
            continue;
        }
        let document = read(name, &there);
        let of_jakarta = resolved(&document, &Vec::new(), &case.parameters);
        let of_jakarta = of_jakarta.unwrap_or_else(|errors| panic!("{name}\n{}\n{errors}", there.xml));
        assert_eq!(of_jakarta.dialect, Dialect::Jakarta);

        let back = convert(&document, &Vec::new(), Dialect::Draft);
        assert!(back.is_complete, "{name}\n{}\n{}", there.xml, back.problems);
        let again = resolved(&read(name, &back), &Vec::new(), &case.parameters);
        let again = again.unwrap_or_else(|errors| panic!("{name}\n{}\n{errors}", back.xml));
        let names =
            |job: &Job| -> Vec<String> { job.properties.iter().map(|own| own.name.value.clone()).collect() };
        let known = names(&job);
        let added: Vec<String> = names(&again)
            .into_iter()
            .filter(|name| !known.contains(name))
            .collect();
        assert_eq!(
            comparable(&again, &added),
            comparable(&job, &[]),
            "{name}\n{}\n{}",
            there.xml,
            back.xml
        );
        same += 1;
    }
    assert_eq!(
        incomplete,
        [
            "tests/jsl/valid/everything.xml",
            "tests/jsl/valid/jakarta-symbols-in-draft.xml",
            "tests/jsl/valid/substitution-everywhere.xml",
            "tests/jsl/valid/warnings.xml",
            "tests/jsl/valid/whole-language.xml",
            "examples/two-processes/jobs/flow.xml",
        ]
    );
    assert_eq!(same, 27);
}

/// Returns the properties that each artifact gets, except those of the runtime; `None` is a value that only a partition knows.
fn handed(job: &Job) -> Vec<(String, BTreeMap<String, Option<String>>)> {
    let mut artifacts: Vec<&ArtifactRef> = job.listeners.iter().collect();
    collect_artifacts(&job.elements, &mut artifacts);
    let handed = artifacts.into_iter().map(|artifact| {
        let properties = artifact.properties.iter();
        let own = properties.filter(|own| !own.name.value.starts_with("batch."));
        let value = |own: &Property| (!own.deferred).then(|| own.value.value.clone());
        let values = own.map(|own| (own.name.value.clone(), value(own)));
        (artifact.name.value.clone(), values.collect())
    });
    handed.collect()
}

fn collect_artifacts<'j>(elements: &'j [ExecutionElement], found: &mut Vec<&'j ArtifactRef>) {
    for element in elements {
        match element {
            ExecutionElement::Step(step) => {
                found.extend(&step.listeners);
                match &step.body {
                    StepBody::Chunk(chunk) => {
                        found.extend([&chunk.reader, &chunk.writer]);
                        found.extend(&chunk.processor);
                        found.extend(&chunk.checkpoint_algorithm);
                    }
                    StepBody::Batchlet(batchlet) => found.push(batchlet),
                }
                let partition = step.partition.iter();
                found.extend(partition.flat_map(|partition| {
                    let parts = [
                        &partition.algorithm,
                        &partition.logical_tx,
                        &partition.collector,
                        &partition.analyzer,
                    ];
                    parts.into_iter().flatten()
                }));
            }
            ExecutionElement::Decision(decision) => found.push(&decision.decider),
            _ => {}
        }
        collect_artifacts(element.elements(), found);
    }
}

/// Each artifact gets the values that it has in the draft, whatever the job parameters are.
///
/// Spec: JAK-41
#[test]
fn artifacts_of_converted_files_get_the_same_values() {
    let mut compared = 0;
    for case in cases(&["tests/jsl/valid", "examples"]) {
        let Ok(job) = resolved(&case.document, &case.library, &case.parameters) else {
            continue;
        };
        let there = convert(&case.document, &case.library, Dialect::Jakarta);
        if case.document.dialect() != Dialect::Draft || !there.is_complete {
            continue;
        }
        let document = read(&case.name, &there);
        let names = job
            .property_names
            .iter()
            .filter(|name| !case.parameters.contains_key(*name));
        let mut all = vec![case.parameters.clone()];
        // A value is the number of an item or a name, too.
        for name in names {
            let given = (name.clone(), "7".to_owned());
            all.push(case.parameters.clone().into_iter().chain([given]).collect());
        }
        for mut parameters in all {
            parameters.insert("file.separator".to_owned(), "/".to_owned());
            let of_draft = resolved(&case.document, &case.library, &parameters).unwrap();
            let of_jakarta = resolved(&document, &Vec::new(), &parameters).unwrap();
            let (of_draft, of_jakarta) = (handed(&of_draft), handed(&of_jakarta));
            for ((artifact, draft), (_, jakarta)) in of_draft.iter().zip(&of_jakarta) {
                for (name, value) in jakarta {
                    // A text with `;` cannot be the default of an expression, which is reported.
                    let Some(value) = value.as_ref().filter(|value| !value.contains(';')) else {
                        continue;
                    };
                    let expected = draft.get(name).and_then(Option::as_ref);
                    assert_eq!(
                        Some(value),
                        expected,
                        "{} {artifact} {name} {parameters:?}\n{}",
                        case.name,
                        there.xml
                    );
                    compared += 1;
                }
                assert!(
                    draft.keys().all(|name| jakarta.contains_key(name)),
                    "{}\n{}",
                    case.name,
                    there.xml
                );
            }
            assert_eq!(of_draft.len(), of_jakarta.len());
        }
    }
    assert!(compared > 400, "{compared}");
}

/// Spec: JAK-40
#[test]
fn files_of_the_tck_are_converted() {
    let beside = project().join("../shared/tck/jobs");
    let folder = std::env::var_os("BATCH_TCK").map_or(beside, PathBuf::from);
    if !folder.is_dir() {
        println!("NOT RUN: the job files of the TCK are not there; set BATCH_TCK to their folder");
        return;
    }
    let mut files = Vec::new();
    xml_files(&folder, &mut files);
    let limits = Limits::default();
    let (mut valid, mut complete) = (0, 0);
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&file).unwrap();
        // The tests set all of them. `1` is a boolean, an integer and a name.
        let text = String::from_utf8_lossy(&bytes);
        let names = text.split("jobParameters['").skip(1);
        let names = names.filter_map(|rest| Some(rest.split_once('\'')?.0.to_owned()));
        let parameters: BTreeMap<_, _> = names.map(|name| (name, "1".to_owned())).collect();
        let document =
            Source::from_bytes(name.as_str(), &bytes, &limits).and_then(|source| parse(&source, &limits));
        let Ok(document) = document else { continue };
        if resolved(&document, &Vec::new(), &parameters).is_err() {
            continue;
        }
        valid += 1;
        let there = convert(&document, &Vec::new(), Dialect::Draft);
        if !there.is_complete {
            continue;
        }
        complete += 1;
        let converted = resolved(&read(&name, &there), &Vec::new(), &parameters);
        let converted = converted.unwrap_or_else(|errors| panic!("{name}\n{}\n{errors}", there.xml));
        assert_eq!(converted.dialect, Dialect::Draft);
    }
    assert_eq!((valid, complete), (110, 105));
}

/// A document whose mistakes only show with its values is converted as it is, into either dialect.
///
/// Spec: JAK-40
#[test]
fn files_with_mistakes_are_converted() {
    let mut count = 0;
    for case in cases(&["tests/jsl"]) {
        let limits = Limits::default();
        let Ok(effective) = Effective::new(&case.document, &case.library, &limits) else {
            continue;
        };
        for to in Dialect::ALL {
            let none: BTreeMap<String, Vec<DeclaredProperty>> = BTreeMap::new();
            let conversion = effective.convert(to, &none);
            let source = Source::new(case.name.as_str(), conversion.xml.as_str());
            let read = parse(&source, &limits);
            assert!(
                read.is_ok() || !conversion.is_complete,
                "{}\n{}",
                case.name,
                conversion.xml
            );
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}
