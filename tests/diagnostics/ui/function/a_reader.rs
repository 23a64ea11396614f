// Spec: ART-15
use batch_runtime::prelude::*;

#[item_reader]
fn next() -> Option<u64> {
    None
}

fn main() {}
