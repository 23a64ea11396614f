//! Random jobs with properties: after a conversion without errors, each artifact gets the values that it got before.
//!
//! Spec: JAK-41

use std::collections::BTreeMap;

use batch_xml::model::{ArtifactRef, ExecutionElement, Step, StepBody};
use batch_xml::{
    DeclaredProperty, Dialect, Document, Effective, Limits, PartitionView, Source, Values, parse, resolve,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

type Known = BTreeMap<String, Vec<DeclaredProperty>>;
type Texts = BTreeMap<String, String>;

/// Returns a list of properties, each with a name of `keys`.
fn list(
    keys: &[&'static str],
    value: &(impl Strategy<Value = String> + Clone + 'static),
) -> BoxedStrategy<String> {
    let entries = btree_map(select(keys.to_vec()), value.clone(), 0..3);
    let text = entries.prop_map(|entries| {
        let property = |(key, value): (&str, String)| match key.split_once(' ') {
            Some((name, target)) => format!("<property name='{name}' target='{target}' value=\"{value}\"/>"),
            None => format!("<property name='{key}' value=\"{value}\"/>"),
        };
        let entries: String = entries.into_iter().map(property).collect();
        match entries.as_str() {
            "" => String::new(),
            entries => format!("<properties>{entries}</properties>"),
        }
    });
    text.boxed()
}

/// Generates the text or nothing.
fn perhaps(text: impl Strategy<Value = String> + 'static) -> BoxedStrategy<String> {
    prop_oneof![Just(String::new()), text].boxed()
}

/// Generates jobs of the draft with one step.
fn draft() -> impl Strategy<Value = String> {
    let value =
        vec(select(vec!["x", "-", "${a}", "${b}", "${c}", "${d}"]), 1..4).prop_map(|parts| parts.concat());
    let targeted = ["a", "b", "c", "a reader", "b writer", "c processor", "d reader"];
    let numbered = ["a.1", "a.2", "b.1", "b.2", "c.2", "d.1"];
    let listener = perhaps(
        list(&NAMES, &value)
            .prop_map(|own| format!("<listeners><listener ref='D'>{own}</listener></listeners>")),
    );
    let body = prop_oneof![
        list(&targeted, &value)
            .prop_map(|own| format!("<chunk reader='A' processor='B' writer='C'>{own}</chunk>")),
        list(&NAMES, &value).prop_map(|own| format!("<batchlet ref='A'>{own}</batchlet>")),
    ];
    let collector =
        perhaps(list(&NAMES, &value).prop_map(|own| format!("<collector ref='D'>{own}</collector>")));
    let partition = perhaps(
        (list(&numbered, &value), collector)
            .prop_map(|(own, collector)| format!("<partition instances='2'>{own}{collector}</partition>")),
    );
    let lists = (list(&NAMES, &value), list(&targeted, &value));
    (lists, listener, body, partition).prop_map(|((of_job, of_step), listener, body, partition)| {
        format!("<job id='j'>{of_job}<step id='s'>{of_step}{listener}{partition}{body}</step></job>")
    })
}

/// Generates jobs of Jakarta Batch with one step.
fn jakarta() -> impl Strategy<Value = String> {
    let mut parts = vec!["x".to_owned(), "-".to_owned()];
    for name in ["a", "b", "p", "q"] {
        parts.push(format!("#{{jobParameters['{name}']}}"));
        parts.push(format!("#{{jobParameters['{name}']}}?:z;"));
        parts.push(format!("#{{jobProperties['{name}']}}"));
        parts.push(format!("#{{jobProperties['{name}']}}?:w;"));
    }
    let value = vec(select(parts.clone()), 1..3).prop_map(|parts| parts.concat());
    for name in ["a", "b", "p"] {
        parts.push(format!("#{{partitionPlan['{name}']}}"));
        parts.push(format!("#{{partitionPlan['{name}']}}?:v;"));
    }
    let inner = vec(select(parts), 1..3).prop_map(|parts| parts.concat());
    let plan = ["a", "b", "p"];
    let lists = (list(&plan, &value), list(&plan, &value));
    let partition = perhaps(lists.prop_map(|lists| {
        let numbered = |(list, number): (String, u32)| {
            list.replacen("<properties>", &format!("<properties partition='{number}'>"), 1)
        };
        let lists = [numbered((lists.0, 0)), numbered((lists.1, 1))].concat();
        format!("<partition><plan partitions='2'>{lists}</plan></partition>")
    }));
    let body = prop_oneof![
        (list(&NAMES, &inner), list(&NAMES, &inner)).prop_map(|(reader, writer)| format!(
            "<chunk><reader ref='A'>{reader}</reader><processor ref='B'/><writer ref='C'>{writer}</writer></chunk>"
        )),
        list(&NAMES, &inner).prop_map(|own| format!("<batchlet ref='A'>{own}</batchlet>")),
    ];
    let lists = (list(&NAMES, &value), list(&NAMES, &value));
    (lists, body, partition).prop_map(|((of_job, of_step), body, partition)| {
        format!(
            "<job id='j' xmlns='https://jakarta.ee/xml/ns/jakartaee' version='2.0'>{of_job}\
             <step id='s'>{of_step}{body}{partition}</step></job>"
        )
    })
}

/// Generates the properties that the artifacts declare.
fn known() -> impl Strategy<Value = Known> {
    let field = |name: &str| {
        let name = name.to_owned();
        (select(vec![None, Some("default")]), any::<bool>()).prop_map(move |(default, is_optional)| {
            DeclaredProperty {
                name: name.clone(),
                default: default.map(str::to_owned),
                is_optional,
            }
        })
    };
    let fields = || {
        let names = subsequence(NAMES.to_vec(), 0..=NAMES.len());
        names.prop_flat_map(move |names| names.into_iter().map(field).collect::<Vec<_>>())
    };
    [fields(), fields(), fields(), fields()].prop_map(|all| {
        ["A", "B", "C", "D"]
            .map(str::to_owned)
            .into_iter()
            .zip(all)
            .collect()
    })
}

fn read(text: &str) -> (Document, Effective) {
    let limits = Limits::default();
    let document =
        parse(&Source::new("j.xml", text), &limits).unwrap_or_else(|errors| panic!("{text}\n{errors}"));
    let effective = Effective::new(&document, &Vec::new(), &limits);
    let effective = effective.unwrap_or_else(|errors| panic!("{text}\n{errors}"));
    (document, effective)
}

/// Returns the artifacts that run in the partitions, if there are any.
fn artifacts(step: &Step) -> Vec<&ArtifactRef> {
    let collector = step.partition.iter().flat_map(|partition| &partition.collector);
    match &step.body {
        StepBody::Chunk(chunk) => [&chunk.reader, &chunk.writer]
            .into_iter()
            .chain(&chunk.processor)
            .chain(collector)
            .collect(),
        StepBody::Batchlet(batchlet) => [batchlet].into_iter().chain(collector).collect(),
    }
}

/// Returns the value of each declared property at each place; `None` if the job does not start with these parameters.
fn values(text: &str, known: &Known, parameters: &Texts) -> Option<BTreeMap<String, Option<String>>> {
    let (document, effective) = read(text);
    let (limits, system) = (Limits::default(), Texts::new());
    let given = Values {
        parameters,
        system: &system,
    };
    let job = resolve(&document, &Vec::new(), &given, &limits).ok()?.job;
    let mut values = BTreeMap::new();
    let mut add = |place: String, artifact: &ArtifactRef| -> Option<()> {
        for field in &known[&artifact.name.value] {
            let written = artifact.property(&field.name).map(|value| value.value.clone());
            // A job parameter of the draft sets a property that is not written, too.
            let set = parameters
                .get(&field.name)
                .filter(|_| job.dialect == Dialect::Draft);
            let value = written.or_else(|| set.cloned()).or_else(|| field.default.clone());
            if value.is_none() && !field.is_optional {
                return None;
            }
            values.insert(format!("{place} {} {}", artifact.name.value, field.name), value);
        }
        Some(())
    };
    let ExecutionElement::Step(step) = &job.elements[0] else {
        panic!("{text}");
    };
    if step.partition.is_none() {
        let all = step.listeners.iter().chain(artifacts(step));
        all.map(|artifact| add("step".to_owned(), artifact))
            .collect::<Option<Vec<_>>>()?;
        return Some(values);
    }
    for number in 1..=2 {
        let view = PartitionView {
            element: "s",
            number,
            plan: None,
        };
        let element = effective.resolve_partition(&[view], &given, &limits).ok()?;
        let ExecutionElement::Step(step) = &element else {
            panic!("{text}");
        };
        for artifact in artifacts(step) {
            add(format!("partition {number}"), artifact)?;
        }
    }
    Some(values)
}

/// Returns the number of random jobs.
fn job_count() -> u32 {
    super::cases(600, 1_500)
}

/// Converts random jobs, and compares the values with each set of parameters. Returns the number of comparisons. Jobs with warnings of
/// values that differ are left out, except for those about all jobs, which begin with `general`.
fn compare(
    jobs: impl Strategy<Value = String>,
    general: &str,
    parameter_sets: impl Fn(&str) -> Vec<Texts>,
) -> usize {
    let config = Config {
        cases: job_count(),
        failure_persistence: None,
        ..Config::default()
    };
    let compared = std::cell::Cell::new(0);
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]));
    let tested = runner.run(&(jobs, known()), |(text, known)| {
        let (_, effective) = read(&text);
        let converted = effective.convert(effective.dialect().other(), &known);
        let differs = |code: &str, message: &str| code == "JSL0080" && !message.starts_with(general);
        let mut problems = converted.problems.iter();
        if !converted.is_complete || problems.any(|one| differs(one.code, &one.message)) {
            return Ok(());
        }
        for parameters in parameter_sets(&text) {
            let Some(before) = values(&text, &known, &parameters) else {
                continue;
            };
            let after = values(&converted.xml, &known, &parameters);
            if after.as_ref() != Some(&before) {
                let shown = format!("{text}\n{}\n{parameters:?}\n{before:?}\n{after:?}", converted.xml);
                return Err(TestCaseError::fail(shown));
            }
            compared.set(compared.get() + 1);
        }
        Ok(())
    });
    tested.unwrap_or_else(|failure| panic!("{failure}"));
    compared.get()
}

/// Returns a value for each subset of names.
fn subsets(names: &[&str]) -> Vec<Texts> {
    let of = |bits: usize| {
        let chosen = names
            .iter()
            .enumerate()
            .filter(|(index, _)| bits >> index & 1 == 1);
        chosen
            .map(|(_, name)| ((*name).to_owned(), format!("P{name}")))
            .collect()
    };
    (0..1 << names.len()).map(of).collect()
}

/// Spec: JAK-41
#[test]
fn random_jobs_of_the_draft_keep_their_values() {
    let compared = compare(draft(), "system properties no longer", |_| subsets(&NAMES));
    assert!(compared > job_count() as usize * 4 / 3, "{compared}");
}

/// Spec: JAK-41
#[test]
fn random_jobs_of_jakarta_batch_keep_their_values() {
    // In the draft, a parameter overrides the properties of its name, which is a general warning.
    let free = |text: &str| -> Vec<Texts> {
        let is_free = |name: &&str| {
            text.contains(&format!("jobParameters['{name}']"))
                && !text.contains(&format!("<property name='{name}'"))
        };
        subsets(
            &["a", "b", "p", "q"]
                .into_iter()
                .filter(is_free)
                .collect::<Vec<_>>(),
        )
    };
    let compared = compare(jakarta(), "job parameters override the properties", free);
    assert!(compared > job_count() as usize / 15, "{compared}");
}
