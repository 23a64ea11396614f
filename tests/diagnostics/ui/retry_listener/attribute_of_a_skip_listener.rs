// Spec: ART-03, LISTEN-RETRY-01
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[retry_listener]
impl Sample {
    #[on_skip_in_write]
    fn skipped(&mut self, _ex: &BatchError, _item: &u64) {}
}

fn main() {}
