// Spec: ART-10, LISTEN-RETRY-01
use batch_runtime::prelude::*;

struct Sample;

#[retry_listener]
impl Sample {
    #[on_retry_item]
    fn retried(&mut self, _ex: &BatchError, _item: &u64) {}
}

fn main() {}
