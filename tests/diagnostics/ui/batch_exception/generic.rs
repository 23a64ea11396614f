// Spec: CHUNK-EXC-01
use batch_runtime::prelude::*;

#[derive(Debug, BatchException)]
struct Sample<T>(T);

fn main() {}
