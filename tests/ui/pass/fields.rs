// Spec: BPROP-01, BPROP-02, BPROP-07, BPROP-09, BPROP-10, CTX-02, CTX-03, CTX-05, ART-10
#![deny(warnings)]

use std::path::PathBuf;

use batch_runtime::prelude::*;

// The struct itself is not `Default`.
#[derive(BatchArtifact)]
#[allow(dead_code)]
pub struct Everything {
    #[batch_property(name = "fileName", value = "/tmp/input.txt")]
    file: PathBuf,
    #[batch_property(name = "fileName")]
    again: String,
    #[batch_property(name = "limit")]
    limit: Option<u32>,
    #[batch_property(name = "prefix", value = "")]
    prefix: std::option::Option<String>,
    #[batch_property(name = "r#type", value = "csv",)]
    r#type: String,
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

fn artifact<T: batch_runtime::artifact::BatchArtifact>() {}

fn main() {
    artifact::<Everything>();
    artifact::<Unit>();
    artifact::<Empty>();
    artifact::<Tuple>();
    let _ = |Tuple(a, b)| (a, b);
}
