// Spec: CHUNK-EXC-01
use batch_runtime::prelude::*;

#[derive(BatchException)]
struct Sample;

fn main() {}
