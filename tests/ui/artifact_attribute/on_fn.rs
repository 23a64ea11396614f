// Spec: ART-01
use batch_runtime::prelude::*;

#[batchlet]
fn process() -> String {
    String::new()
}

fn main() {}
