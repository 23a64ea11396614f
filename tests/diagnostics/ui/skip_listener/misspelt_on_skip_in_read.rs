// Spec: ART-03, LISTEN-SKIP-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[skip_listener]
impl Sample {
    #[on_skip_in_reader]
    fn skipped(&mut self, _ex: &BatchError) {}
}

fn main() {}
