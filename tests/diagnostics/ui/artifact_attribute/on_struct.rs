// Spec: ART-01
use batch_runtime::prelude::*;

#[item_reader]
#[derive(BatchArtifact)]
struct Sample;

fn main() {}
