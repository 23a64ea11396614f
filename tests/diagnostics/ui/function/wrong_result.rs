// Spec: ART-15
use batch_runtime::prelude::*;

#[item_processor]
fn doubled(number: &u64) -> u64 {
    number * 2
}

#[decider]
fn enough(least: u64) -> &'static str {
    if least > 1 { "MANY" } else { "FEW" }
}

fn main() {}
