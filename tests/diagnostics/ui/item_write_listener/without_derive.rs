// Spec: ART-10, LISTEN-WRITE-01
use batch_runtime::prelude::*;

struct Sample;

#[item_write_listener]
impl Sample {
    #[before_write]
    fn before(&mut self, _items: &[u64]) {}
}

fn main() {}
