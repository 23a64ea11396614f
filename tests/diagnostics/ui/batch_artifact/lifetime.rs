// Spec: ART-10
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Sample<'a> {
    name: &'a str,
}

fn main() {}
