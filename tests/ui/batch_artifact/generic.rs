// Spec: ART-10
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Sample<T> {
    items: Vec<T>,
}

fn main() {}
