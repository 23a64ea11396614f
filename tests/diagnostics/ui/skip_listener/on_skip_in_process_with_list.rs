// Spec: ART-07, LISTEN-SKIP-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[skip_listener]
impl Sample {
    #[on_skip_in_process]
    fn skipped(&mut self, _ex: &BatchError, _items: &[u64]) {}
}

fn main() {}
