// Spec: ART-03
use batch_runtime::prelude::*;

#[read_item]
pub fn read() -> Option<u32> {
    None
}

fn main() {}
