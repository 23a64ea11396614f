// Spec: ART-07, LISTEN-SKIP-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[skip_listener]
impl Sample {
    #[on_skip_in_read]
    fn skipped(&mut self, _ex: &BatchError, _item: &u64) {}
}

fn main() {}
