//! Every kind of field: properties, lists, contexts, defaults.
//!
//! Spec: BPROP-01, BPROP-02, BPROP-07, BPROP-09, BPROP-10, CTX-02, CTX-03, CTX-05, ART-10
#![deny(warnings)]

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

fn artifact<T: BatchArtifact>() {}

#[test]
fn properties_and_contexts_are_described() {
    artifact::<Everything>();
    artifact::<Unit>();
    artifact::<Empty>();
    artifact::<Tuple>();
    let _ = |Tuple(a, b)| (a, b);

    let properties: Vec<_> = Everything::properties()
        .iter()
        .map(|property| (property.field, property.name, property.default, property.optional))
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
    let contexts: Vec<_> = Everything::contexts()
        .iter()
        .map(|context| (context.field, context.kind, context.optional))
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
