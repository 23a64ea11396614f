// Spec: ART-15
use batch_runtime::prelude::*;

#[batchlet]
fn count(#[batch_property(name = "limit")] _: u64) {}

fn main() {}
