// Spec: ART-15
use batch_runtime::prelude::*;

#[batchlet]
fn count(#[batch_property] limit: &mut u64) {
    *limit += 1;
}

fn main() {}
