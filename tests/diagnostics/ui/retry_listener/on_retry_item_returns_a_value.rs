// Spec: ART-07, LISTEN-RETRY-06
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[retry_listener]
impl Sample {
    #[on_retry_item]
    fn retried(&mut self, _ex: &BatchError, _item: &u64) -> bool {
        true
    }
}

fn main() {}
