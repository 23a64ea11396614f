// Spec: ART-07, JAK-27
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[chunk_listener]
impl Sample {
    #[on_chunk_error]
    fn failed(&mut self) {}
}

fn main() {}
