// Spec: ART-10, LISTEN-READ-01
use batch_runtime::prelude::*;

struct Sample;

#[item_read_listener]
impl Sample {
    #[before_read]
    fn before(&mut self) {}
}

fn main() {}
