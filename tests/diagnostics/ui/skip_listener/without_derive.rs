// Spec: ART-10, LISTEN-SKIP-01
use batch_runtime::prelude::*;

struct Sample;

#[skip_listener]
impl Sample {
    #[on_skip_in_read]
    fn skipped(&mut self, _ex: &BatchError) {}
}

fn main() {}
