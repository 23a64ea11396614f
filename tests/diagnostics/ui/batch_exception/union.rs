// Spec: CHUNK-EXC-01
use batch_runtime::prelude::*;

#[derive(BatchException)]
union Sample {
    number: u32,
}

fn main() {}
