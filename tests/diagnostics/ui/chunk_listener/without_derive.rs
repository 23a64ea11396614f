// Spec: ART-10, JAK-27
use batch_runtime::prelude::*;

struct Sample;

#[chunk_listener]
impl Sample {
    #[after_chunk]
    fn after(&mut self) {}
}

fn main() {}
