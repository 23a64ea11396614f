// Spec: ART-01
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_reader]
impl Drop for Sample {
    #[close]
    fn drop(&mut self) {}
}

fn main() {}
