// Spec: ART-07, LISTEN-RETRY-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[retry_listener]
impl Sample {
    #[on_retry_exception]
    fn retried(&mut self, _ex: &BatchError) {}
}

fn main() {}
