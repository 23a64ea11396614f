// Spec: BPROP-02, BPROP-05
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Sample {
    #[batch_property(name = "fileName", default = "a.csv")]
    file_name: String,
}

fn main() {}
