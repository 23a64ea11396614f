//! Every kind of field: properties, lists, contexts, artifacts, defaults.
//!
//! Spec: BPROP-01, BPROP-02, BPROP-07, BPROP-09, BPROP-10, CTX-02, CTX-03, CTX-05, ART-10, D-97
#![deny(warnings)]

use std::marker::PhantomData;
use std::path::PathBuf;

use batch_runtime::__private::{BatchArtifact, ContextKind};
use batch_runtime::prelude::*;

// The struct itself is not `Default`.
#[derive(BatchArtifact)]
#[allow(dead_code)]
struct Everything {
    #[batch_property(name = "fileName", value = "/tmp/input.txt")]
    file: PathBuf,
    #[batch_property(name = "fileName")]
    again: String,
    #[batch_property(name = "limit")]
    limit: Option<u32>,
    #[batch_property(name = "prefix", value = "")]
    prefix: std::option::Option<String>,
    #[batch_property(name = "r#type", value = "csv")]
    r#type: String,
    #[batch_property]
    month: u8,
    #[batch_property(value = "1; 2", separator = ";")]
    weeks: Vec<u8>,
    #[batch_property]
    airports: Option<Vec<String>>,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
    #[batch_context]
    flow: Option<FlowContext>,
    #[batch_context]
    split: Option<SplitContext>,
    rows: Vec<String>,
}

#[derive(BatchArtifact)]
struct Unit;

#[derive(BatchArtifact)]
struct Empty {}

#[derive(BatchArtifact)]
struct Tuple(Vec<u8>, u32);

/// Nested artifacts in a field with a name, without one, of a path, of generic types, and with nothing to inject.
#[derive(BatchArtifact)]
#[allow(dead_code)]
struct Nesting {
    #[batch_artifact(prefix = "pair.")]
    r#pair: Pair<Limit<u8>, self::Limit<u16>>,
    #[batch_artifact]
    empty: Empty,
    #[batch_property]
    own: String,
}

#[derive(BatchArtifact)]
#[allow(dead_code)]
struct Pair<A, B>(
    #[batch_artifact(prefix = "1.")] A,
    #[batch_artifact(prefix = "2.")] B,
    PhantomData<fn(A) -> B>,
);

#[derive(BatchArtifact)]
#[allow(dead_code)]
struct Limit<T> {
    #[batch_property(value = "7")]
    limit: T,
    #[batch_context]
    step: Option<StepContext>,
}

fn artifact<T: BatchArtifact>() {}

#[test]
fn properties_and_contexts_are_described() {
    artifact::<Everything>();
    artifact::<Unit>();
    artifact::<Empty>();
    artifact::<Tuple>();
    artifact::<Nesting>();
    let _ = |Tuple(a, b)| (a, b);

    let properties = Everything::properties();
    let properties: Vec<_> = properties
        .iter()
        .map(|property| {
            let names = (property.field.as_str(), property.name.as_str());
            (names.0, names.1, property.default, property.optional)
        })
        .collect();
    assert_eq!(
        properties,
        [
            ("file", "fileName", Some("/tmp/input.txt"), false),
            ("again", "fileName", None, true),
            ("limit", "limit", None, true),
            ("prefix", "prefix", Some(""), true),
            ("type", "r#type", Some("csv"), true),
            ("month", "month", None, false),
            ("weeks", "weeks", Some("1; 2"), true),
            ("airports", "airports", None, true),
        ]
    );
    let contexts = Everything::contexts();
    let contexts: Vec<_> = contexts
        .iter()
        .map(|context| (context.field.as_str(), context.kind, context.optional))
        .collect();
    assert_eq!(
        contexts,
        [
            ("job", ContextKind::Job, false),
            ("step", ContextKind::Step, false),
            ("flow", ContextKind::Flow, true),
            ("split", ContextKind::Split, true),
        ]
    );
}

/// The own fields come first, then the fields of the nested artifacts.
#[test]
fn fields_of_nested_artifacts_are_described_with_their_paths() {
    let properties = Nesting::properties();
    let properties: Vec<_> = properties
        .iter()
        .map(|property| (property.field.as_str(), property.name.as_str()))
        .collect();
    assert_eq!(
        properties,
        [
            ("own", "own"),
            ("pair.0.limit", "pair.1.limit"),
            ("pair.1.limit", "pair.2.limit"),
        ]
    );
    let contexts = Nesting::contexts();
    let contexts: Vec<_> = contexts.iter().map(|context| context.field.as_str()).collect();
    assert_eq!(contexts, ["pair.0.step", "pair.1.step"]);
}
