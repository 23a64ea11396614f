// Spec: CHUNK-EXC-01
use batch_runtime::prelude::*;

#[derive(Debug, BatchException)]
#[batch_exception("com.example.Sample")]
struct Sample;

impl std::fmt::Display for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("sample")
    }
}

impl std::error::Error for Sample {}

fn main() {}
